"""Programs as drivers upload them: they connect back to a host, which streams goals to them, and end when it is silent.

The first is ours, with every construct of UR's external control program (test_virtual_external_control.py has that).
UR's programs are not part of the repository: TANGERE_UR_PROGRAMS is a folder with them, here with
joint_impedance_cartesian_circle_motion.script of URScript_Examples.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import HOME, listening, until, upload, virtual

MULTIPLY = 1_000_000  # numbers travel as integers
IDLE, SERVO, SPEED, TORQUE, SPLINE, END = 0, 1, 2, 3, 4, 9  # modes
PAYLOAD, ZERO = 1, 0  # commands

DRIVER = """
# constants
MULT = {multiply}
IDLE = 0
SERVO = 1
SPEED = 2
TORQUE = 3
SPLINE = 4
UNINITIALISED = -1
WAITING = 0
RUNNING = 1
RESULT_SUCCESS = 0
RESULT_CANCELED = 1

global mode = IDLE
global goal = get_joint_positions()
global speed = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
global torque = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
global state = UNINITIALISED
global held = 0
global points_left = 0
global result = RESULT_SUCCESS
global warned = 0
thread_move = 0
thread_spline = 0
thread_commands = 0

$ 3 "a label, as the pendant writes them"
def within(start, stop, time, most=6.28):
  local k = 0
  while k < 6:
    local v = norm(stop[k] - start[k]) / time
    if v > most:
      local text = str_cat(str_cat("joint ", k), str_cat(
        " too fast: ", v))
      if warned == 0:
        popup(text, title="driver", blocking=False, warning=True)
      end
      if warned * get_steptime() % 5.0 == 0:
        textmsg(text)
      end
      warned = warned + 1
      return False
    end
    k = k + 1
  end
  return True
end

thread servo():
  while mode == SERVO:
    enter_critical
    q = goal
    local old = state
    if state > UNINITIALISED:
      state = WAITING
    end
    if old == RUNNING or old == WAITING:
      held = held + 1
      servoj(q, t=get_steptime(), lookahead_time=0.1, gain=300)
    else:
      sync()
    end
    exit_critical
  end
  stopj(4.0)
end

thread turn():
  while mode == SPEED:
    qd = speed
    speedj(qd, 40.0, get_steptime())
  end
  stopj(4.0)
end

thread push():
  while mode == TORQUE:
    local tau = torque
    direct_torque(tau, viscous_scale=[0.9, 0.9, 0.8, 0.9, 0.9, 0.9], coulomb_scale=[0.8, 0.8, 0.7, 0.8, 0.8, 0.8])
  end
  stopj(4.0)
end

def quintic(start, stop, time):
  # rest to rest
  local c3 = (stop - start) * 10.0 / pow(time, 3)
  local c4 = (start - stop) * 15.0 / pow(time, 4)
  local c5 = (stop - start) * 6.0 / pow(time, 5)
  local t = 0.0
  while (time - t) > get_steptime():
    t = t + get_steptime()
    local qd = 3 * c3 * pow(t, 2) + 4 * c4 * pow(t, 3) + 5 * c5 * pow(t, 4)
    speedj(qd, 40.0, get_steptime())
  end
  return True and (points_left <= 1)
end

thread spline():
  while points_left > 0:
    local raw = socket_read_binary_integer(7, "points", 60.0)
    if raw[0] > 0:
      local q = [raw[1] / MULT, raw[2] / MULT, raw[3] / MULT, raw[4] / MULT, raw[5] / MULT, raw[6] / MULT]
      local time = raw[7] / MULT
      if within(get_joint_positions(), q, time):
        quintic(get_joint_positions(), q, time)
      else:
        result = RESULT_CANCELED
      end
      points_left = points_left - 1
    else:
      result = RESULT_CANCELED
      points_left = 0
    end
  end
  stopj(4.0)
  socket_send_int(result, "points")
end

thread commands():
  while True:
    raw = socket_read_binary_integer(5, "commands", 0)
    if raw[0] > 0:
      if raw[1] == 0:
        zero_ftsensor()
      elif raw[1] == 1:
        set_payload(raw[2] / MULT, [raw[3] / MULT, raw[4] / MULT, raw[5] / MULT])
      end
    end
  end
end

socket_open("{host}", {reverse}, "reverse")
while not socket_open("{host}", {points}, "points"):
  sleep(0.1)
end
socket_open("{host}", {told}, "commands")
textmsg("driver: connected")
thread_commands = run commands()

going = True
while going:
  enter_critical
  local in = socket_read_binary_integer(8, "reverse", {silence})
  if in[0] > 0:
    local values = [in[2] / MULT, in[3] / MULT, in[4] / MULT, in[5] / MULT, in[6] / MULT, in[7] / MULT]
    if in[8] != mode:
      mode = in[8]
      join thread_move
      if mode == SERVO:
        goal = get_joint_positions()
        state = UNINITIALISED
        thread_move = run servo()
      elif mode == SPEED:
        thread_move = run turn()
      elif mode == TORQUE:
        thread_move = run push()
      elif mode == SPLINE:
        points_left = in[1]
        thread_move = 0
        thread_spline = run spline()
      else:
        thread_move = 0
      end
    end
    if mode == SERVO and within(goal, values, get_steptime(), 20.0):
      goal = values
      state = RUNNING
    elif mode == SPEED:
      speed = values
    elif mode == TORQUE:
      torque = values
    elif mode == 9:
      going = False
    end
  else:
    textmsg("driver: no command in time, ends")
    going = False
  end
  exit_critical
end
mode = IDLE
join thread_move
kill thread_spline
kill thread_commands
socket_close("reverse")
socket_close("points")
socket_close("commands")
textmsg(str_cat("driver: ended, held ", held))
"""


class Driven:
    """The host of the program: three sockets that the arm connects to."""

    def __init__(self, host: str, program: Callable[[int, int, int], str]) -> None:
        self._doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        text = program(*(door.getsockname()[1] for door in self._doors))
        self.told = socket.create_connection((host, 30001), 20)
        self._upload = upload(host, f"def driver():\n{text}end\n", 30001)
        self.sockets = []
        for door in self._doors:
            door.settimeout(60)
            self.sockets.append(door.accept()[0])

    def send(self, mode: int, values: Sequence[float] = (0.0,) * 6, number: int = 0) -> None:
        """One command: a number, six values, the mode."""
        self.sockets[0].sendall(struct.pack(">8i", number, *(round(MULTIPLY * x) for x in values), mode))

    def points(self, rows: Sequence[tuple[Sequence[float], float]]) -> int:
        """Send points of a spline, each with its time [s]; what the program says of it."""
        for q, time in rows:
            self.sockets[1].sendall(struct.pack(">7i", *(round(MULTIPLY * x) for x in (*q, time))))
        self.sockets[1].settimeout(60)
        return int(struct.unpack(">i", self.sockets[1].recv(4))[0])

    def command(self, kind: int, values: Sequence[float] = (0.0,) * 4) -> None:
        """Beside the motion."""
        self.sockets[2].sendall(struct.pack(">5i", kind, *(round(MULTIPLY * x) for x in values)))

    def hear(self, what: str) -> None:
        """Until the program's messages have that."""
        self.told.settimeout(60)
        heard = b""
        while what.encode() not in heard:
            heard = heard[-200:] + self.told.recv(1 << 16)

    def close(self) -> None:
        for one in (*self.sockets, *self._doors, self.told, self._upload):
            one.close()


def driver(silence: float) -> Callable[[int, int, int], str]:
    """Our program, which ends when nothing comes for so long [s]."""
    return lambda reverse, points, told: DRIVER.format(
        multiply=MULTIPLY, host="127.0.0.1", reverse=reverse, points=points, told=told, silence=silence
    )


FIELDS = ("actual_q", "actual_qd", "payload", "runtime_state", "safety_mode")


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with virtual() as address:
        yield address


def test_goals_are_streamed_to_a_program(host: str) -> None:
    """Servo, speed, torque, spline, commands beside them, and the end: in one connection, as drivers do it."""
    with listening(host, *FIELDS) as rtde, closing(Driven(host, driver(3600.0))) as driven:
        driven.hear("driver: connected")
        at = np.array(until(rtde, lambda v: v["runtime_state"] == 2)["actual_q"])
        for _ in range(200):
            at = at + [5e-4, 0.0, 0.0, 0.0, 0.0, -1e-3]
            driven.send(SERVO, at)
        until(rtde, lambda v: np.abs(v["actual_q"] - at).max() < 1e-3, 600.0)
        driven.send(SPEED, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
        values = until(rtde, lambda v: v["actual_q"][0] > at[0] + 0.05, 600.0)
        assert values["actual_qd"][0] == pytest.approx(0.1, abs=0.02)
        driven.send(TORQUE)
        still = until(rtde, lambda v: np.abs(v["actual_qd"]).max() < 0.01, 600.0)
        later = until(rtde, lambda v: v["timestamp"] > still["timestamp"] + 2.0, 600.0)
        assert np.abs(np.subtract(later["actual_q"], still["actual_q"])).max() < 1e-2  # gravity is made up for
        driven.send(SPLINE, number=2)
        goal = np.add(HOME, [0.3, 0.1, -0.1, 0.2, 0.1, -0.3])
        assert driven.points([(np.add(HOME, 0.05), 1.0), (goal, 1.5)]) == 0
        # speeds are integrated: no position is fed back
        near = until(rtde, lambda v: np.abs(np.subtract(v["actual_q"], goal)).max() < 5e-3, 600.0)
        values = until(rtde, lambda v: v["timestamp"] > near["timestamp"] + 0.5, 600.0)
        assert np.abs(np.subtract(values["actual_q"], goal)).max() < 5e-3
        assert np.abs(values["actual_qd"]).max() < 0.01
        driven.command(PAYLOAD, [1.5, 0.0, 0.0, 0.05])
        until(rtde, lambda v: v["payload"] == 1.5, 600.0)
        driven.command(ZERO)
        driven.send(END)
        driven.hear("driver: ended, held")
        until(rtde, lambda v: v["runtime_state"] == 1, 600.0)
        assert values["safety_mode"] == 1


def test_a_silent_host_ends_the_program_and_the_arm_stands(host: str) -> None:
    with listening(host, *FIELDS) as rtde, closing(Driven(host, driver(0.5))) as driven:
        driven.hear("driver: connected")
        driven.send(SPEED, [0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
        until(rtde, lambda v: v["actual_qd"][0] > 0.15, 600.0)
        driven.hear("no command in time")
        until(rtde, lambda v: v["runtime_state"] == 1, 600.0)
        values = until(rtde, lambda v: np.abs(v["actual_qd"]).max() < 0.01, 60.0)
        assert values["safety_mode"] == 1


@pytest.mark.parametrize(
    ("robot", "start", "radius"),
    [("ur3e", "0,-110,130,-110,-90,0", 0.15), ("ur5e", "0,-110,130,-110,-90,0", 0.25),
     ("ur10e", "0,-120,135,-105,-90,0", 0.35)],
)  # fmt: skip
def test_the_impedance_example_of_universal_robots_draws_its_circle(robot: str, start: str, radius: float) -> None:
    """Torques from the program's own inverse kinematics and dynamics; it picks its circle by the arm's reach."""
    folder = os.environ.get("TANGERE_UR_PROGRAMS")
    path = Path(folder or ".") / "joint_impedance_cartesian_circle_motion.script"
    if not folder or not path.is_file():
        pytest.skip(f"TANGERE_UR_PROGRAMS: a folder with {path.name} of UR's URScript_Examples; not tried")
    program = f"def impedance():\n{path.read_text()}end\n"
    fields = ("actual_TCP_pose", "runtime_state")
    with (
        virtual("--sensors", "ideal", "--start", start, robot=robot) as host,
        listening(host, *fields) as rtde,
        upload(host, program),
    ):
        began = until(rtde, lambda v: v["runtime_state"] == 2)["timestamp"]
        places = [until(rtde, lambda v: True) for _ in range(4000)]
        assert places[-1]["runtime_state"] == 2
        assert places[-1]["timestamp"] == pytest.approx(began + 8.0, abs=0.01)
    drawn = np.ptp([one["actual_TCP_pose"][:3] for one in places], axis=0)
    assert drawn[:2] == pytest.approx(2.0 * radius, abs=0.03)  # [m]
    assert drawn[2] < 0.03
