"""What the tests of ROS 2 share: a domain of their own, waiting without a clock in the assertions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tangere.ros2.network import Network

PATIENCE = 60.0  # [s] the machine may be busy; nothing is judged by how long it takes


def network(**more: Any) -> Network:
    """A domain that no other test process has; 0 is left to people."""
    return Network(1 + os.getpid() % 100, **more)


def until(ready: Callable[[], Any], what: str = "") -> Any:
    """Wait for something to become true."""
    deadline = time.monotonic() + PATIENCE
    while not (found := ready()):
        assert time.monotonic() < deadline, f"{what or ready} within {PATIENCE:g} s"
        time.sleep(0.005)
    return found


@contextmanager
def process(*words: str, ready: str = "") -> Iterator[subprocess.Popen[str]]:
    """A command of ours in a process of its own, ended with SIGTERM; ready: how the line begins that is waited for."""
    command = [sys.executable, "-m", "tangere", *words]
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        if ready:
            assert done.stdout is not None
            for line in done.stdout:
                if line.startswith(ready):
                    break
            else:
                raise AssertionError(f"{' '.join(words)}: {done.communicate()[1]}")
        yield done
    finally:
        done.terminate()
        done.communicate(timeout=PATIENCE)
