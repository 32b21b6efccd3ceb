"""Types of the compiled rollouts (see kernels/c/rollouts.c)."""

import numpy as np
from numpy.typing import NDArray

_A = NDArray[np.float64]

ROBOT: int
PUSH: int
RESULT: int
LOGGED: int
COMMON: int
PUSHES_MAX: int

def run(
    instruction_set: str,
    single: bool,
    belief: _A,
    reference: _A,
    common: _A,
    robots: _A,
    results: _A,
    log: _A | None,
    stop: bytearray,
    first: int,
    count: int,
    steps: int,
    every: int,
    pushes: int,
    runge_kutta: bool,
    noisy: int,
    begins: bool,
    watched: bool,
    seed: int,
) -> None: ...
