"""Virtual arms for tests: in a process of their own, with clients in another one where they are not ours."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from tangere.rtde.client import Rtde
from tangere.rtde.dashboard import Dashboard

HOME = [0.0, -1.57, 1.57, -1.57, -1.57, 0.0]
AT_WALL = [0.55, 0.0, 0.35, 0.0, math.pi / 2, 0.0]  # the rod looks at the wall, 5 cm before it
WALL = 0.6  # m
_HOSTS = count(os.getpid() % 200 + 20)
CHILD = 600.0  # [s] after which a client counts as hung: a busy computer takes minutes for what takes seconds
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) + 2


def address() -> str:
    """A place on loopback that no other test uses."""
    return f"127.{WORKER}.{os.getpid() % 250}.{next(_HOSTS) % 250 + 1}"


@contextmanager
def ready(
    host: str, *options: str, robot: str = "ur5e", clock: str = "fast"
) -> Iterator[subprocess.Popen[str]]:
    """The process of an arm that is ready there; whatever happens, it is gone afterwards."""
    words = [sys.executable, "-m", "tangere", "virtual", robot, "--address", host, "--clock", clock, *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"ready {robot} at {host}"), line
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def virtual(*options: str, robot: str = "ur5e", clock: str = "fast") -> Iterator[str]:
    """The address of an arm that is ready; it must end with 0 on SIGTERM."""
    host = address()
    with ready(host, *options, robot=robot, clock=clock) as process:
        yield host
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def upload(host: str, text: str, port: int = 30002) -> socket.socket:
    sock = socket.create_connection((host, port), 5)
    sock.sendall(text.encode())
    return sock


def until(rtde: Rtde, what, seconds: float = 60.0) -> dict:
    """Values as soon as they are so; seconds of the controller's clock."""
    values = rtde.receive(20.0)
    assert values is not None
    end = values["timestamp"] + seconds
    while not what(values):
        assert values["timestamp"] < end, values
        values = rtde.receive(20.0)
        assert values is not None
    return values


def listening(host: str, *names: str) -> Rtde:
    rtde = Rtde(host)
    recipe = rtde.outputs(("timestamp", *names))
    assert not recipe.missing
    rtde.start()
    return rtde


def recover(host: str) -> None:
    """Power on and release the brakes where something has stopped the arm."""
    with Dashboard(host) as desk:
        if desk.word("safetymode") == "NORMAL" and desk.word("robotmode") == "RUNNING":
            return
        desk.ask("restart safety")
        desk.ask("brake release")
    with listening(host, "robot_mode") as rtde:  # opened now: what it tells is younger than the commands
        until(rtde, lambda v: v["robot_mode"] == 7)


def in_child(test: Callable[..., None]) -> Callable[..., None]:
    """The test runs in a process of its own: a client that crashes or waits for ever takes only that with it."""

    @functools.wraps(test)
    def run(**arguments: object) -> None:
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe(duplex=False)

        def work() -> None:
            try:
                test(**arguments)
                there.send("")
            except BaseException:
                there.send(traceback.format_exc())
            finally:
                sys.stdout.flush()
                os._exit(0)  # neither pytest's nor the client's end is this process's business

        process = context.Process(target=work)
        process.start()
        there.close()
        try:
            said = here.recv() if here.poll(CHILD) else f"no end within {CHILD:g} s"
        except EOFError:
            process.join(5)
            said = f"the client's process ended with {process.exitcode}"
        finally:
            process.kill()
            process.join()
        if said:
            pytest.fail(said, pytrace=False)

    return run


class Driven:
    """ur_rtde's Control and Receive interfaces, and the controller's clock."""

    def __init__(self, host: str, start: list[float] | None = None) -> None:
        import rtde_control
        import rtde_receive

        self.host = host
        self.now = rtde_receive.RTDEReceiveInterface(host)
        self.control = rtde_control.RTDEControlInterface(host)
        if start is not None:
            assert self.control.moveJ(start, 3.0, 10.0)

    def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Time of the controller's clock passes, or until something is so: whether it is.

        For something 20 s of the wall's clock are left, too: a fast one runs on while this process has no processor.
        """
        end, patient = self.now.getTimestamp() + seconds, time.monotonic() + (0.0 if until is None else 20.0)
        while self.now.getTimestamp() < end or time.monotonic() < patient:
            if until is not None and until():
                return True
            time.sleep(1e-3)
        return until is not None and until()

    def q(self) -> np.ndarray:
        self.wait(0.3)
        return np.array(self.now.getActualQ())

    def tool(self) -> np.ndarray:
        self.wait(0.3)
        return np.array(self.now.getActualTCPPose())

    def speed(self) -> np.ndarray:
        """Mean over some samples: the arm's tachometers are noisy."""
        samples = []
        for _ in range(40):
            self.wait(0.004)
            samples.append(self.now.getActualTCPSpeed())
        return np.mean(samples, axis=0)

    def to_wall(self) -> None:
        assert self.control.moveJ_IK(AT_WALL, 2.0, 6.0)
        self.wait(0.3)
        assert self.control.zeroFtSensor()
