"""The table of laws of one joint: friction, the observer's balance and lag, whole turns, as rows that emitters print.

The compiled observer (kernels/c/momentum.h, observer.h) calls them in C; classes in Python call dynamics.laws itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tangere.codegen.functions import cos, sin, where
from tangere.codegen.trace import Graph
from tangere.dynamics import laws
from tangere.kernels.table import Trace
from tangere.kinematics.inverse_closed_form import whole_turns
from tangere.kinematics.vectors import Scalar


@dataclass(frozen=True)
class JointLaw:
    """A law of one joint: `function(*inputs, *parameters)` gives its outputs; state goes in and comes out as numbers.

    inputs differ from sample to sample, parameters are those of the joint.
    """

    name: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    function: Callable[..., Scalar | list[Scalar]]
    help: str


def _drive_friction(
    qd: Scalar, g: Scalar, coulomb: Scalar, scale: Scalar, viscous: Scalar, quadratic: Scalar, load: Scalar,
    offset: Scalar,
) -> Scalar:  # fmt: skip
    return laws.drive_friction(qd, scale, laws.loaded_coulomb(coulomb, load, g), viscous, quadratic, offset)


def _ripple(
    q: Scalar, g: Scalar, s: Scalar, order: Scalar, sine: Scalar, cosine: Scalar, sine_load: Scalar,
    cosine_load: Scalar, sine_drag: Scalar, cosine_drag: Scalar,
) -> Scalar:  # fmt: skip
    a = laws.ripple_amplitude(sine, sine_load, sine_drag, g, s)
    b = laws.ripple_amplitude(cosine, cosine_load, cosine_drag, g, s)
    return laws.ripple_torque(a, b, sin(order * q), cos(order * q))


def _turned(q: Scalar, reference: Scalar, low: Scalar, high: Scalar) -> list[Scalar]:
    moved, allowed = whole_turns(q, reference, low, high)
    return [moved, where(allowed, 1.0, 0.0)]


_DRIVE = ("coulomb", "scale", "viscous", "quadratic", "load", "offset")

JOINT_LAWS: tuple[JointLaw, ...] = (
    JointLaw(
        "plain_friction", ("qd",), _DRIVE[:3], ("torque",),
        lambda qd, coulomb, scale, viscous: laws.sliding_friction(qd, scale, coulomb, viscous),
        "Coulomb and viscous friction [Nm]",
    ),
    JointLaw("drive_friction", ("qd", "g"), _DRIVE, ("torque",), _drive_friction, "of a drive, without ripple [Nm]"),
    JointLaw("direction", ("qd",), ("scale",), ("s",), laws.direction, "which way a joint turns, -1 to 1"),
    JointLaw(
        "ripple", ("q", "g", "s"),
        ("order", "sine", "cosine", "sine_load", "cosine_load", "sine_drag", "cosine_drag"), ("torque",), _ripple,
        "one order of a drive's ripple [Nm]",
    ),
    JointLaw(
        "momentum_balance", ("p0", "p1", "beta0", "beta1", "tau", "h"), (), ("y",), laws.momentum_balance,
        "mean external torque of a period [Nm]",
    ),
    JointLaw("lag_weight", ("h",), ("rate",), ("w",), lambda h, rate: laws.lag_weight(rate, h), "1 - exp(-rate h)"),
    JointLaw("lag", ("r", "y", "weight"), (), ("r",), laws.lag, "a first-order lag that follows y"),
    JointLaw(
        "turned", ("q", "reference"), ("low", "high"), ("q", "allowed"), _turned,
        "q with the whole turns that bring it nearest to the reference within the limits [rad], 1 if any does",
    ),
)  # fmt: skip


def trace_joint_law(law: JointLaw) -> Trace:
    """Run the law on symbols: inputs are x[0...], parameters P[0...]."""
    graph = Graph()
    x = graph.inputs("x", len(law.inputs))
    P = graph.inputs("P", len(law.parameters), uniform=True)
    y = law.function(*x, *P)
    return Trace(graph, [graph.lift(a) for a in (y if isinstance(y, list) else [y])])
