"""A URScript program, frame by frame, in a world of one's own: no controller box, no sockets, no simulator.

`Machine.frame` is given what the arm measures and answers with what the arm shall do in the next 2 ms. Here the arm is
simply where it shall be; a register that the program waits for is written from outside after a second. What the program
says comes to the host. `tangere script run` does the same with a simulated arm, through the one loop.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.script import FRAME, Machine, QuietHost, check, load
from tangere.types import State

PROGRAM = """\
def pick():
  above = get_target_tcp_pose()
  textmsg("waiting at ", above)
  while read_input_integer_register(24) == 0:
    sync()
  end
  movel(pose_add(above, p[0, 0, -0.1, 0, 0, 0]), a=1.2, v=0.25)
  set_tool_digital_out(0, True)
  movel(above, a=1.2, v=0.25)
  write_output_integer_register(24, 2)
end
"""
START = np.radians([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])


class World(QuietHost):
    """Prints what the program says; everything else is as quiet as before."""

    def message(self, kind: str, text: str) -> None:
        print(f"  {kind}: {text}")


def main() -> None:
    wrong = PROGRAM.replace("movel(above", "moveL(above")
    for problem in check(wrong):
        print("checked before it runs:", problem)

    robot, host = tangere.robot("ur5e"), World()
    machine = Machine(load(PROGRAM), robot, START, host)
    state, lowest, frames = State(0.0, FRAME, START, np.zeros(6), robot.gravity_torque(START)), np.inf, 0
    path = []
    while machine.running:
        if frames == 500:
            host.registers.in_int[24] = 1
        setpoint = machine.frame(state)
        frames += 1
        state = State(frames * FRAME, FRAME, setpoint.q, setpoint.qd, robot.gravity_torque(setpoint.q))
        path.append(setpoint.q)
        lowest = min(lowest, float(robot.pose(setpoint.q)[2, 3]))

    print(f"{machine.ended.how} after {frames * FRAME:.2f} s")
    print(f"lowest point {1e3 * (robot.pose(START)[2, 3] - lowest):.1f} mm below the start")
    print(f"gripper {host.signals.digital_out[16]}, register {host.registers.out_int[24]}")
    log = tangere.Log({"time": FRAME * np.arange(frames), "q": np.array(path)})
    print(f"picture: {log.plot('q').save(Path(tempfile.mkdtemp(prefix='tangere-')) / 'program.svg')}")


if __name__ == "__main__":
    main()
