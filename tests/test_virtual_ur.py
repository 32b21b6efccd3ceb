"""A virtual controller in a process of its own, driven over its ports: by our clients, and by hostile ones."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from virtual_arms import listening, until, upload, virtual

import tangere
from tangere.cli.main import main
from tangere.rtde import primary
from tangere.rtde.client import Address, InputsTaken, Rtde
from tangere.rtde.dashboard import Dashboard
from tangere.rtde.rows import RtdeRows
from tangere.rtde.wire import Recipe


def test_a_program_moves_the_arm_and_says_so() -> None:
    goal = [0.3, -1.2, 1.4, -1.7, -1.5, 0.2]
    with virtual() as host, listening(host, "actual_q", "target_q", "runtime_state", "output_int_register_3") as rtde:
        first = until(rtde, lambda v: True)
        assert first["runtime_state"] == 1
        told = socket.create_connection((host, 30001), 5)
        with (
            told,
            upload(
                host, f'def go():\n  movej({goal})\n  write_output_integer_register(3, 7)\n  textmsg("done")\nend\n'
            ),
        ):
            until(rtde, lambda v: v["runtime_state"] == 2)
            values = until(rtde, lambda v: v["output_int_register_3"] == 7)
            assert np.abs(np.array(values["target_q"]) - goal).max() < 1e-9
            settled = values["timestamp"] + 0.2
            values = until(rtde, lambda v: v["timestamp"] > settled)
            assert np.abs(np.array(values["actual_q"]) - goal).max() < 1e-4  # [rad] asked of moveJ
            assert values["runtime_state"] == 1
            told.settimeout(5)
            heard = b""
            while b"done" not in heard:
                heard += told.recv(1 << 16)


def test_errors_of_a_program_are_told_with_their_line() -> None:
    wrong = "def wrong():\n  a = [1, 2]\n  b = a[5]\nend\n"
    with virtual() as host, socket.create_connection((host, 30001), 5) as told, upload(host, wrong):
        cut, found = primary.Messages(), b""
        told.settimeout(10)
        while not found:
            for kind, content in cut.feed(told.recv(1 << 16)):
                if kind == primary.Kind.ROBOT and content[9] == primary.Note.EXCEPTION:
                    found = content
        assert struct.unpack_from(">i", found, 10)[0] == 3  # the line


@pytest.mark.parametrize(
    ("version", "known"), [("3.15.8", False), ("5.4.0", False), ("5.22.1", False), ("5.23.0", True)]
)
def test_versions_have_their_fields(version: str, known: bool) -> None:
    robot = "ur5" if version.startswith("3.") else "ur5e"
    with virtual("--polyscope", version, robot=robot) as host, Rtde(host) as rtde:
        assert ".".join(map(str, rtde.version[:3])) == version
        recipe = rtde.outputs(("timestamp", "actual_current_as_torque"))
        assert (not recipe.missing) is known
        assert recipe.number == (1 if known else 0)


def test_inputs_have_one_owner_and_are_given_back() -> None:
    names = ("input_int_register_24", "input_double_register_24")
    with (
        virtual("--profile", "ethernet-ip") as host,
        Rtde(host) as first,
        Rtde(host) as second,
        listening(host, *names) as seen,
    ):
        recipe = first.inputs(names)
        with pytest.raises(InputsTaken, match="input_int_register_24"):
            second.inputs(names)
        with pytest.raises(InputsTaken, match="field bus"):
            second.inputs(["input_int_register_0"])
        with pytest.raises(InputsTaken):
            second.inputs(["speed_slider_mask", "speed_slider_fraction"])
        first.send(recipe, (7, 1.5))
        values = until(seen, lambda v: v["input_int_register_24"] == 7)
        assert values["input_double_register_24"] == 1.5
        first.close()
        assert freed(second, names).number == 1  # with the connection; the value stays
        assert until(seen, lambda v: True)["input_int_register_24"] == 7


def freed(client: Rtde, names: tuple[str, ...]) -> Recipe:
    """The recipe of inputs that another client has just given back: as soon as the controller has seen it go."""
    end = time.monotonic() + 30.0
    while True:
        try:
            return client.inputs(names)
        except InputsTaken:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_modes_by_the_dashboard() -> None:
    with virtual("--profile", "booting,remote-off") as host, Dashboard(host) as desk:
        assert desk.greeting == "Connected: Universal Robots Dashboard Server"
        assert desk.word("robotmode") == "POWER_OFF"
        assert desk.ask("is in remote control") == "false"
        assert desk.ask("power on") == "Powering on"
        assert desk.ask("nonsense") == "could not understand: 'nonsense'"
        with listening(host, "robot_mode", "runtime_state") as rtde:
            until(rtde, lambda v: v["robot_mode"] == 5)
            assert desk.ask("brake release") == "Brake releasing"
            until(rtde, lambda v: v["robot_mode"] == 7)
            with upload(host, "def go():\n  while True:\n    sync()\n  end\nend\n"):
                end = until(rtde, lambda v: True)["timestamp"] + 0.5
                assert (
                    until(rtde, lambda v: v["timestamp"] > end)["runtime_state"] == 1
                )  # refused: not in remote control
        assert desk.ask("quit") == "Disconnected"


def test_a_hard_push_stops_the_arm_and_it_can_be_unlocked_after_five_seconds() -> None:
    names = ("safety_mode", "runtime_state")  # by the real clock: 5 s of the fast one may pass before we have asked
    with virtual(clock="real") as host, Dashboard(host) as desk, listening(host, *names) as rtde:
        with upload(host, "def go():\n  while True:\n    sync()\n  end\nend\n"):
            until(rtde, lambda v: v["runtime_state"] == 2)
            assert desk.ask("push joint=2,torque=120,duration=0.5") == "Pushing"
            stopped = until(rtde, lambda v: v["safety_mode"] == 3)
            assert stopped["runtime_state"] == 1
            assert desk.ask("unlock protective stop").startswith("Cannot unlock")
            until(rtde, lambda v: v["timestamp"] > stopped["timestamp"] + 5.1)
            assert desk.ask("unlock protective stop") == "Protective stop releasing"
            until(rtde, lambda v: v["safety_mode"] == 1)
        assert "unknown" in desk.ask("push jiont=2,torque=1")


def test_calibration_of_an_unknown_arm(tmp_path: Path) -> None:
    with virtual("--draw", "11", robot="ur10e") as host:
        out = tmp_path / "calibration.yaml"
        done = command("calibration", host, "--out", str(out))
        assert done.returncode == 0, done.stderr
        arm = tangere.robot("ur10e", calibration=out)
        rows = RtdeRows(Address(host), seconds=0.1)
        for row in rows:
            ours = arm.pose(row.values["q"], form="ur")
            assert np.abs(ours[:3] - row.values["actual_TCP_pose"][:3]).max() < 1e-7  # [m]; asked: 0.1 mm
    nominal = tangere.robot("ur10e").pose(row.values["q"], form="ur")
    assert np.abs(nominal[:3] - row.values["actual_TCP_pose"][:3]).max() > 1e-4


def command(*words: str, **more) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "tangere", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=600, check=False, **more)


@pytest.mark.parametrize(
    ("options", "words", "expected"),
    [
        ((), (), set()),
        (("--profile", "remote-off"), (), {"remote_off"}),
        (("--profile", "ethernet-ip"), (), {"inputs_taken"}),
        (("--profile", "booting"), (), {"not_running"}),
        (("--polyscope", "5.9.0"), (), {"old_version"}),
        ((), ("--payload", "1.5"), {"wrong_payload"}),
        (("--draw", "3"), (), {"calibration_missing"}),
    ],
)
def test_doctor_names_what_is_wrong(options, words, expected) -> None:
    with virtual(*options, clock="real") as host:
        done = command("doctor", host, "--robot", "ur5e", "--seconds", "1", "--json", *words)
        found = json.loads(done.stdout)
        # what depends on how busy this computer is says nothing of the arm
        assert set(found["problems"]) - {"jitter", "late", "busy"} == expected
        assert done.returncode == 0


def test_doctor_of_another_arm_and_of_none() -> None:
    with virtual(clock="real") as host:
        done = command("doctor", host, "--robot", "ur10e", "--seconds", "1", "--json")
        assert "wrong_model" in json.loads(done.stdout)["problems"]
        assert done.returncode == 1
        for port in (30001, 30003):  # ports of the arm, not that of RTDE
            done = command("doctor", f"rtde://{host}:{port}", "--json")
            assert f"port {port}, does not speak RTDE, which is port 30004" in done.stdout
        lost = command("doctor", host, "--calibration", "nowhere.yaml", "--seconds", "1", "--json")
        assert json.loads(lost.stdout)["verdict"] == "passive OK"  # what could not be judged stands in torque's way
        assert "failed" in json.loads(lost.stdout)["problems"]
    done = command("doctor", "127.9.9.9", "--json")
    assert json.loads(done.stdout)["problems"] == ["unreachable"]
    assert done.returncode == 1


def test_record_gives_a_log_that_reads_like_any(tmp_path: Path) -> None:
    with virtual("--draw", "4", clock="real") as host:
        for name in ("log.mcap", "log.csv"):
            done = command("record", host, "--out", str(tmp_path / name), "--seconds", "1", "--robot", "ur5e")
            assert done.returncode == 0, done.stderr
            log = tangere.read(tmp_path / name)
            assert log.duration == pytest.approx(1.0, abs=0.01)
            assert {"q", "qd", "actual_current_as_torque", "target_current", "control_step"} <= set(log.columns)
        done = command("record", host, "--out", str(tmp_path / "log.txt"))
        assert done.returncode == 1
        assert "mcap" in done.stderr


def test_watch_feels_a_push_and_calls_a_command(tmp_path: Path) -> None:
    heard = tmp_path / "heard.txt"
    script = tmp_path / "alarm.py"
    script.write_text(f"import sys\nopen({str(heard)!r}, 'a').write(sys.stdin.read() + '\\n')\n")
    # again and again: a busy computer may take long until it watches
    pushes = [word for k in range(5, 120, 4) for word in ("--push", f"joint=2,torque=60,start={k},duration=1")]
    with virtual(*pushes, clock="real") as host:
        done = command(
            "watch", host, "--robot", "ur5e", "--json", "--seconds", "10", "--on-event", f"{sys.executable} {script}",
            "--set-output", "3",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(event["alarm"] for event in events), (done.stdout, done.stderr)
    assert len(heard.read_text().splitlines()) == len(events)


def test_another_arm_is_not_watched() -> None:
    """By a ur10e's model a ur5e's gravity would be one long touch."""
    with virtual(robot="ur5e") as host:
        done = command("watch", host, "--robot", "ur10e", "--seconds", "1")
        assert done.returncode == 1
        assert "is a ur5e by its own controller" in done.stderr
        done = command("record", host, "--robot", "ur10e", "--seconds", "1", "--out", "no.csv")
        assert done.returncode == 1
        assert "is a ur5e by its own controller" in done.stderr
        seen = command("doctor", host, "--robot", "ur7e", "--seconds", "1")  # tells the number of the arm it came from
        assert "wrong_model" not in seen.stdout
        assert "a ur7e, as --robot says" in seen.stdout


def test_strangers_do_no_harm() -> None:
    """Half packages, wrong sizes, unknown types, long lines, many connections: the arm goes on for the others."""
    with virtual() as host, listening(host, "actual_q") as rtde:
        rng = np.random.default_rng(5)
        crowd = [socket.create_connection((host, 30004), 5) for _ in range(40)]
        for k, sock in enumerate(crowd):
            sock.sendall([b"\x00\x02U", b"\x00\x04Zz", struct.pack(">HB", 2052, 73) + b"a," * 1024, b"\x00"][k % 4])
        for port in (29999, 30001, 30002, 30003, 30004):
            with socket.create_connection((host, port), 5) as sock:
                for _ in range(50):
                    try:
                        sock.sendall(rng.bytes(int(rng.integers(1, 3000))))
                    except OSError:
                        break
        before = until(rtde, lambda v: True)["timestamp"]
        until(rtde, lambda v: v["timestamp"] > before + 0.2)
        for sock in crowd:
            sock.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("virtual", "ur5f"), "ur5e"),
        (("virtual", "pendulum"), "six joints"),
        (("virtual", "ur5e", "--address", "0.0.0.0"), "--anywhere"),
        (("virtual", "ur5e", "--polyscope", "five"), "5.26.0"),
        (("virtual", "ur5e", "--polyscope", "3.15"), "PolyScope 3 drives UR3, UR5 and UR10"),
        (("virtual", "ur10", "--polyscope", "5.26.0"), "PolyScope 3 drives UR3, UR5 and UR10"),
        (("virtual", "ur5e", "--profile", "remote"), "remote-off"),
        (("doctor", "nowhere.csv"), "rtde://HOST"),
        (("doctor", "127.9.9.9", "--robot", "ur55e"), "did you mean 'ur5e'"),
        (("doctor", "127.9.9.9", "--robot", "ur5e", "--calibration", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
        (("script", "send", "127.9.9.9", "program.script"), "the program comes first"),
        (("watch", "log.csv", "--robot", "ur5e", "--set-output", "1"), "live arm"),
    ],
)
def test_mistakes_are_told_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    done = command(*words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_an_arm_of_no_seed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["virtual", "ur5e", "--draw=-1"]) == 1
    assert capsys.readouterr().err == "error: --draw: 0 or more, got -1\n"
