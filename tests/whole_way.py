"""The whole way with an arm that nobody knows, by commands and its network port: doctor to watch, then it is pushed.

    python tests/whole_way.py --seed 7                  one arm, 100 pushes, an hour without any
    python tests/whole_way.py --seed 7 --hours 0.1
    python tests/whole_way.py --seed 7 --beside 2 --wall 565      what was watched 565 s after the start counts

It prints a line of JSON as each part is over: seconds of the arm's clock until it was tuned, pushes felt, false alarms.
"""

from __future__ import annotations

import argparse
import json
import math
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from virtual_arms import address, listening, ready, until

from tangere.apps.virtual_ur.controller import BOOTED
from tangere.rtde.client import Rtde
from tangere.rtde.dashboard import Dashboard

BOX = "-0.6,-0.6,0.05,0.6,0.6,1.2"
HOME = np.array([0.0, -1.57, 1.57, -1.57, -1.57, 0.0])
FIRST, APART, LASTS = 60.0, 8.0, 0.5  # [s] of pushes: the first, from one to the next, each
LATE = 0.5  # [s] after its onset within which a push counts as felt
SETTLES = 2.5  # [s] after a push in which an alarm is part of it: it is let go, and stiction settles
PROTECTIVE_STOP, UNLOCKED = 3, 5.1  # the safety mode; [s] after it when it can be unlocked
# `tune` reads a log whole where it may take 3.1 kB for each of its samples; of 45 minutes it reads 6 within the default
MEMORY = "6GB"
MOVE = 2.0  # [s] that a move of `work` lasts at least on average
# What `tune` is asked for: of ten arms watched for an hour each, one would have a false alarm by its default of 0.1/h
RATE = "0.01/h"


def tangere(*words: str, ok: tuple[int, ...] = (0,)) -> str:
    """What a command says."""
    done = subprocess.run([sys.executable, "-m", "tangere", *words], capture_output=True, text=True, check=False)
    assert done.returncode in ok, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def work(seed: int, seconds: float) -> str:
    """A program as at work: moves between postures, at several speeds, and rests. For so long [s] no move comes twice.

    Forty moves over and over teach `tune` forty moves: it takes each time for another one, and promises too much.
    """
    rng = np.random.default_rng(seed)
    lines = ["def work():", "  while True:"]
    for k in range(round(seconds / MOVE)):
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


def attend(host: str, text: str, stops: list[float], over: threading.Event) -> None:
    """Where a push has stopped the arm it is unlocked as by hand, and the program runs again. stops: their stamps [s].

    A push that is twice what can be felt may be more than the arm puts up with.
    """
    with Rtde(host) as rtde:
        rtde.outputs(("timestamp", "safety_mode"), 10.0)
        rtde.start()
        stopped = False
        while not over.is_set():
            values = rtde.receive(1.0)
            if values is None:
                continue
            now, before, stopped = float(values["timestamp"]), stopped, values["safety_mode"] == PROTECTIVE_STOP  # type: ignore[arg-type]
            if stopped and not before:
                stops.append(now)
            elif stopped and now > stops[-1] + UNLOCKED:
                with Dashboard(host) as desk:
                    desk.ask("unlock protective stop")
            elif before and not stopped:
                with socket.create_connection((host, 30002), 20) as port:
                    port.sendall(text.encode())


def watched(
    host: str, robot: str, folder: Path, seconds: float, *, begun: Callable[[], None] = lambda: None,
    end: float = math.inf,
) -> tuple[list[dict[str, Any]], float, float]:  # fmt: skip
    """Alarms of a live arm, as they were last told; the stamp up to which all were seen, and how long that was [s].

    begun: called once it is watched; until then its clock is slow. end: of perf_counter, at which the watch is ended.
    """
    words = ("watch", host, "--robot", robot, "--model", str(folder / "tuned.toml"), "--json", "--heartbeat", "1")
    events: dict[int, dict[str, Any]] = {}
    newest, lasted = 0.0, 0.0
    is_watched = is_cut = False
    command = [sys.executable, "-m", "tangere", *words, "--seconds", f"{seconds:g}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["phase"] != "heartbeat":
                events[event["event"]] = event
            elif event["time_s"] is not None:
                if not is_watched:
                    begun()
                is_watched = True
                newest, lasted = event["time_s"], event["seconds"]
            if time.perf_counter() > end and not is_cut:
                process.terminate()
                is_cut = True
    assert process.returncode == 0, process.returncode
    return [event for event in events.values() if event["alarm"]], newest if is_cut else math.inf, lasted


def pushes(felt: np.ndarray, count: int, seed: int) -> list[tuple[float, int, float]]:
    """Onset [s], joint from 1 and torque [Nm]: twice what can be felt."""
    rng = np.random.default_rng(seed)
    joints = rng.permutation(np.arange(count) % 6)
    torque = 2.0 * rng.choice((-1.0, 1.0), count) * felt[joints]
    return [(FIRST + APART * k, int(joints[k]) + 1, float(torque[k])) for k in range(count)]


def taught(seed: int, robot: str, folder: Path, excite: float, free: float) -> dict[str, Any]:
    """From doctor to tune. felt_nm (6,): what can be felt wherever a joint is, moving, turning or standing [Nm]."""
    host = address()
    with ready(host, "--draw", str(seed), robot=robot):
        calibration = str(folder / "calibration.yaml")
        tangere("calibration", host, "--out", calibration)
        verdict = json.loads(
            tangere("doctor", host, "--robot", robot, "--calibration", calibration, "--seconds", "1", "--json")
        )
        motion, model = folder / "excitation.script", str(folder / "model.toml")
        words = ("--robot", robot, "--box", BOX, "--seconds", f"{excite:g}", "--out", str(motion))
        tangere("excite", *words, "--no-report")

        def recorded(name: str, text: str, seconds: float) -> str:
            upload(host, text)
            log = str(folder / f"{name}.mcap")
            tangere("record", host, "--seconds", f"{seconds:g}", "--out", log)
            return log

        excited = recorded("excited", motion.read_text(), excite + 10.0)
        with ThreadPoolExecutor(1) as beside:
            learned = beside.submit(tangere, "identify", excited, "--robot", robot, "--out", model, "--no-report")
            moved = recorded("free", work(seed, free), free)
            learned.result()
        with listening(host, "actual_q") as rtde:
            took = until(rtde, lambda v: True)["timestamp"] - BOOTED
    words = (moved, "--robot", robot, "--model", model, "--rate", RATE, "--out", str(folder / "tuned.toml"))
    says = json.loads(tangere("--memory", MEMORY, "tune", *words, "--json"))
    return {"doctor": verdict["verdict"], "arm_seconds": round(took, 1), "felt_nm": np.max(says["felt_nm"], axis=0)}


def pushed(seed: int, robot: str, folder: Path, todo: list[tuple[float, int, float]], end: float) -> dict[str, Any]:
    """The arm at work, pushed: those felt, those missed, alarms between them."""
    options = [
        word for at, joint, torque in todo
        for word in ("--push", f"joint={joint},torque={torque:.4f},start={at:.3f},duration={LASTS}")
    ]  # fmt: skip
    host = address()
    with ready(host, "--draw", str(seed), *options, robot=robot):
        seconds = FIRST + APART * len(todo)
        program, stops, over = work(seed + 1, seconds), list[float](), threading.Event()
        attendant = threading.Thread(target=attend, args=(host, program, stops, over))
        upload(host, program)
        try:
            found, newest, _ = watched(host, robot, folder, seconds, begun=attendant.start, end=end)
        finally:
            over.set()
        attendant.join()
    todo = [push for push in todo if push[0] + LATE < newest - BOOTED]  # those that came
    alarms = {event["time_s"] - BOOTED: event["reason"] for event in found}
    missed = [push for push in todo if not any(0.0 <= at - push[0] <= LATE for at in alarms)]
    between = [(at, why) for at, why in alarms.items() if not any(0.0 <= at - t <= LASTS + SETTLES for t, _, _ in todo)]
    felt = len(todo) - len(missed)
    return {"pushes": len(todo), "felt": felt, "missed": missed, "false_between": between, "stops": len(stops)}


def untouched(seed: int, robot: str, folder: Path, program: int, seconds: float, end: float) -> dict[str, Any]:
    """The arm at work, and nobody there: every alarm is false. program: the seed of its moves."""
    host = address()
    with ready(host, "--draw", str(seed), robot=robot):
        upload(host, work(program, seconds))
        found, _, lasted = watched(host, robot, folder, seconds, end=end)
    return {"hours": lasted / 3600.0, "false": [(e["time_s"] - BOOTED, e["reason"]) for e in found]}


def whole_way(
    seed: int, robot: str = "ur5e", *, excite: float = 60.0, free: float = 2700.0, count: int = 100, hours: float = 1.0,
    beside: int = 1, end: float = math.inf, keep: Path | None = None,
    tell: Callable[[dict[str, Any]], None] = lambda part: None,
) -> dict[str, Any]:  # fmt: skip
    """From doctor to watch. excite, free [s]: what is recorded to identify and to tune; hours: watched untouched.

    beside: virtual arms of that seed that share the hours; the pushes have one of their own. end: of perf_counter, at
    which what was watched has to do. keep: the folder of what the commands leave. tell: is given each part.
    """
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with nullcontext(keep) if keep is not None else tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        found = {"seed": seed, "robot": robot} | taught(seed, robot, folder, excite, free)
        can_be_felt = found.pop("felt_nm")
        found["pushed_nm"] = np.round(2.0 * can_be_felt, 2).tolist()
        tell(found)
        share, todo = 3600.0 * hours / beside, pushes(can_be_felt, count, seed)

        def part(what: Callable[..., dict[str, Any]], *more: Any) -> dict[str, Any]:
            one = what(seed, robot, folder, *more, end)
            tell({"seed": seed} | one)
            return one

        with ThreadPoolExecutor(1 + beside) as pool:
            parts = [pool.submit(part, pushed, todo)] if count else []
            parts += [pool.submit(part, untouched, seed + 2 + k, share) for k in range(beside) if hours]
        for one in [part.result() for part in parts]:
            sums = {name: found.get(name, type(value)()) + value for name, value in one.items()}
            found |= sums
    return found


def main() -> None:
    """One arm or several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, nargs="+", default=[7])
    parser.add_argument("--robot", default="ur5e")
    parser.add_argument("--free", type=float, default=2700.0, help="[s] of free motion to tune with")
    parser.add_argument("--pushes", type=int, default=100)
    parser.add_argument("--hours", type=float, default=1.0, help="watched untouched")
    parser.add_argument("--beside", type=int, default=1, help="virtual arms side by side that share these hours")
    parser.add_argument("--wall", type=float, default=math.inf, help="[s] from the start to the end of watching")
    parser.add_argument("--keep", type=Path, help="folder for what the commands leave, one in it for each seed")
    a = parser.parse_args()
    for seed in a.seed:
        began = time.perf_counter()

        def tell(part: dict[str, Any], began: float = began) -> None:
            print(json.dumps(part | {"wall_s": round(time.perf_counter() - began)}), flush=True)

        keep = None if a.keep is None else a.keep / str(seed)
        more = {"hours": a.hours, "beside": a.beside, "end": began + a.wall, "keep": keep, "tell": tell}
        tell(whole_way(seed, a.robot, free=a.free, count=a.pushes, **more))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
