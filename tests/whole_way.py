"""The whole way with an arm that nobody knows, by commands and its network port: doctor to watch, then it is pushed.

    python tests/whole_way.py --seed 7                  one arm, 100 pushes, an hour without any
    python tests/whole_way.py --seed 7 --hours 0.1

It prints one line of JSON: seconds of the arm's clock until it was tuned, pushes felt, false alarms.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from virtual_arms import address, listening, ready, until

from tangere.apps.virtual_ur.controller import BOOTED

BOX = "-0.6,-0.6,0.05,0.6,0.6,1.2"
HOME = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
FIRST, APART, LASTS = 60.0, 5.0, 0.5  # [s] of pushes: the first, from one to the next, each
LATE = 0.5  # [s] after its onset within which a push counts as felt
SETTLES = 2.5  # [s] after a push in which an alarm is part of it: it is let go, and stiction settles
MOVES = 40  # of the program that the arm works by


def tangere(*words: str, ok: tuple[int, ...] = (0,)) -> str:
    """What a command says."""
    done = subprocess.run([sys.executable, "-m", "tangere", *words], capture_output=True, text=True, check=False)
    assert done.returncode in ok, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def work(seed: int) -> str:
    """A program as at work: moves between postures, at several speeds, and rests."""
    rng = np.random.default_rng(seed)
    lines = ["def work():", "  while True:"]
    for k in range(MOVES):
        q = ", ".join(f"{x:.4f}" for x in HOME + rng.uniform(-0.8, 0.8, 6))
        lines.append(f"    movej([{q}], a={rng.uniform(0.7, 1.4):.2f}, v={rng.uniform(0.3, 1.05):.2f})")
        if k % 4 == 3:
            lines.append(f"    sleep({rng.uniform(0.2, 3.0):.2f})")
    return "\n".join([*lines, "  end", "end", ""])


def upload(host: str, text: str) -> None:
    """A program, once it runs."""
    with listening(host, "runtime_state") as rtde, socket.create_connection((host, 30002), 20) as port:
        until(rtde, lambda v: v["runtime_state"] == 1, 3600.0)
        port.sendall(text.encode())
        until(rtde, lambda v: v["runtime_state"] == 2)


def watched(host: str, robot: str, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Events of a live arm, as they were last told."""
    words = ("watch", host, "--robot", robot, "--model", str(folder / "tuned.toml"), "--json")
    told = tangere(*words, "--seconds", f"{seconds:g}", ok=(0, 3))
    events: dict[int, dict[str, Any]] = {}
    for line in told.splitlines():
        event = json.loads(line)
        if "event" in event:
            events[event["event"]] = event
    return [event for event in events.values() if event["alarm"]]


def pushes(felt: np.ndarray, count: int, seed: int) -> list[tuple[float, int, float]]:
    """Onset [s], joint from 1 and torque [Nm]: twice what can be felt."""
    rng = np.random.default_rng(seed)
    joints = rng.permutation(np.arange(count) % 6)
    torque = 2.0 * rng.choice((-1.0, 1.0), count) * felt[joints]
    return [(FIRST + APART * k, int(joints[k]) + 1, float(torque[k])) for k in range(count)]


def whole_way(
    seed: int, robot: str = "ur5e", *, excite: float = 60.0, free: float = 600.0, count: int = 100, hours: float = 1.0
) -> dict[str, Any]:
    """From doctor to watch. excite, free [s]: what is recorded to identify and to tune; hours: watched untouched."""
    host = address()
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        with ready(host, "--draw", str(seed), robot=robot):
            calibration = str(folder / "calibration.yaml")
            tangere("calibration", host, "--out", calibration)
            verdict = json.loads(
                tangere("doctor", host, "--robot", robot, "--calibration", calibration, "--seconds", "1", "--json")
            )
            motion = folder / "excitation.script"
            words = ("--robot", robot, "--box", BOX, "--seconds", f"{excite:g}", "--out", str(motion))
            tangere("excite", *words, "--no-report")
            for name, text, seconds in (("excited", motion.read_text(), excite + 10.0), ("free", work(seed), free)):
                upload(host, text)
                tangere("record", host, "--seconds", f"{seconds:g}", "--out", str(folder / f"{name}.mcap"))
            with listening(host, "actual_q") as rtde:
                took = until(rtde, lambda v: True)["timestamp"] - BOOTED
        model, tuned = str(folder / "model.toml"), folder / "tuned.toml"
        tangere("identify", str(folder / "excited.mcap"), "--robot", robot, "--out", model, "--no-report")
        words = (str(folder / "free.mcap"), "--robot", robot, "--model", model, "--out", str(tuned))
        says = json.loads(tangere("tune", *words, "--json"))
        can_be_felt = np.max(says["felt_nm"], axis=0)  # (6,) [Nm] wherever a joint is: moving, turning or standing
        todo = pushes(can_be_felt, count, seed)
        sizes = np.round(2.0 * can_be_felt, 2).tolist()
        options = [
            word for at, joint, torque in todo
            for word in ("--push", f"joint={joint},torque={torque:.4f},start={at:.3f},duration={LASTS}")
        ]  # fmt: skip
        with ready(host, "--draw", str(seed), *options, robot=robot):
            upload(host, work(seed + 1))
            alarms = [event["time_s"] - BOOTED for event in watched(host, robot, folder, FIRST + APART * count)]
        felt = [any(0.0 <= at - t <= LATE for at in alarms) for t, _, _ in todo]
        between = [at for at in alarms if not any(0.0 <= at - t <= LASTS + SETTLES for t, _, _ in todo)]
        false = 0
        if hours:
            with ready(host, "--draw", str(seed), robot=robot):
                upload(host, work(seed + 2))
                false = len(watched(host, robot, folder, 3600.0 * hours))
    missed = sorted({joint for (_, joint, _), one in zip(todo, felt, strict=True) if not one})
    return {
        "seed": seed, "robot": robot, "doctor": verdict["verdict"], "arm_seconds": round(took, 1), "pushes": count,
        "felt": sum(felt), "missed_joints": missed, "false_between": len(between), "hours": hours, "false": false,
        "pushed_nm": sizes,
    }  # fmt: skip


def main() -> None:
    """One arm or several."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[7])
    parser.add_argument("--robot", default="ur5e")
    parser.add_argument("--free", type=float, default=600.0)
    parser.add_argument("--pushes", type=int, default=100)
    parser.add_argument("--hours", type=float, default=1.0)
    a = parser.parse_args()
    for seed in a.seed:
        began = time.perf_counter()
        found = whole_way(seed, a.robot, free=a.free, count=a.pushes, hours=a.hours)
        print(json.dumps(found | {"wall_s": round(time.perf_counter() - began)}), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
