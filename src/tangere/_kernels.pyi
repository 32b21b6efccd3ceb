"""Types of the compiled kernels (see kernels/c)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.types import State

_A = NDArray[np.float64]

parameter_count: int

class Kernels:
    """Parameters of one arm and a method for each kernel; tangere.robots.Robot declares them."""

    def __init__(
        self,
        parameters: ArrayLike | None,
        traced: object = None,
        structure: int = -1,
        dof: int = 6,
        twin: ArrayLike | None = None,
    ) -> None: ...
    @property
    def compiled(self) -> bool:
        """Whether compiled kernels compute, or the Python form."""
    @staticmethod
    def _nearest(q: _A, q_ref: ArrayLike, q_min: _A, q_max: _A, revolute: NDArray[np.bool_]) -> _A | None: ...
    def _runge_kutta(self, q: _A, qd: _A, tau: _A, friction: _A | None, h: float) -> tuple[_A, _A] | None: ...
    @property
    def ur_kernels(self) -> bool:
        """Whether the kernels made for a UR's geometry compute, its closed form among them."""

class Momentum:
    def __init__(
        self,
        arm: Kernels,
        gain: _A,
        start: _A,
        terms: _A | None,
        orders: Sequence[float],
        ripple: _A,
        delay: float,
        gap: float,
        first: bool,
    ) -> None: ...
    @property
    def residual(self) -> _A: ...
    @property
    def fresh(self) -> bool: ...
    def reset(self, state: State) -> None: ...
    def update(self, state: State) -> _A: ...
    def balance(self, state: State) -> list[float] | None: ...
    def replay(self, time: _A, period: _A | None, q: _A, qd: _A, tau: _A) -> tuple[_A, NDArray[np.bool_]]: ...

class Step:
    def __init__(self, name: str, parameters: _A, state: _A) -> None: ...
    @property
    def parameters(self) -> _A: ...
    @property
    def before(self) -> _A: ...
    @property
    def after(self) -> _A: ...
    def update(self, *inputs: Sequence[float] | _A) -> float: ...
    def rows(self, inputs: _A) -> _A: ...

class Answer:
    @property
    def q(self) -> _A: ...
    @property
    def flags(self) -> NDArray[np.uint8]: ...
    @property
    def _candidates(self) -> _A: ...
    @property
    def lanes(self) -> NDArray[np.uint8]: ...
    @property
    def count(self) -> int: ...
    @property
    def correction(self) -> float: ...
    @property
    def distance(self) -> float: ...
    @property
    def robot(self) -> Any: ...

def register(
    solutions: type,
    batch: Callable[..., Any],
    rescue: Callable[..., Any],
    broadcast: Callable[..., Any],
    refuse: Callable[..., None],
    far: Callable[..., None],
    formed: Callable[..., Any],
    transforms: Callable[..., Any],
    found: Callable[..., Any],
) -> None: ...
def instruction_sets() -> list[str]: ...
def use(name: str) -> None: ...
def threads(count: int) -> int: ...
