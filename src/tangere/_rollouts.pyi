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
ENV_ROBOT: int
ENV_STATE: int
ENV_OUT: int

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
    references: int,
    pushes: int,
    runge_kutta: bool,
    noisy: int,
    begins: bool,
    watched: bool,
    seed: int,
) -> None: ...
def envs(
    instruction_set: str,
    belief: _A,
    common: _A,
    robots: _A,
    action: _A,
    state: _A,
    out: _A,
    first: int,
    count: int,
    periods: int,
    sample: int,
    noisy: int,
    seed: int,
) -> None: ...
