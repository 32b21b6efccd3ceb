"""Virtual arms for tests: in a process of their own, with clients in another one where they are not ours."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tangere.rtde.client import Rtde

_HOSTS = count(os.getpid() % 200 + 20)
CHILD = 120.0  # [s] after which a client counts as hung; a whole test takes a few seconds
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) + 2


@contextmanager
def virtual(*options: str, robot: str = "ur5e", clock: str = "fast") -> Iterator[str]:
    """The address of an arm that is ready; it must end with 0 on SIGTERM."""
    host = f"127.{WORKER}.{os.getpid() % 250}.{next(_HOSTS) % 250 + 1}"
    words = [sys.executable, "-m", "tangere", "virtual", robot, "--address", host, "--clock", clock, *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(f"ready {robot} at {host}"), line
        yield host
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


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
