"""The table of kernels: every quantity that is traced, with its inputs and the shapes of its outputs.

The C extension, the Python form and whatever other emitters there are (kernels/emit) are made from this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tangere.codegen.trace import Graph, Symbol
from tangere.dynamics import composite, newton_euler
from tangere.dynamics.laws import servo_acceleration
from tangere.kernels.laws import detection, onset, task
from tangere.kinematics import forward
from tangere.kinematics import inverse_closed_form as inverse
from tangere.kinematics.chain import Chain
from tangere.kinematics.vectors import Scalar

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """A quantity of a chain: `function(chain, *inputs)` gives its outputs, flat."""

    name: str
    inputs: tuple[str, ...]  # names of arguments with one entry per joint, or "point" (3)
    outputs: Callable[[int], tuple[Shape, ...]]  # shapes for n joints
    function: Callable[..., list[Scalar]]
    help: str

    def input_sizes(self, dof: int) -> list[int]:
        """Entries per input."""
        return [3 if name == "point" else dof for name in self.inputs]

    def size(self, dof: int) -> int:
        """Entries of all outputs together."""
        return sum(prod(s) for s in self.outputs(dof))


@dataclass(frozen=True)
class Trace:
    """A traced kernel: its graph and outputs; inputs are x[0...] in order, parameters P[0...]."""

    graph: Graph
    outputs: list[Symbol]
    angles: int = 0  # how many numbers at the head of x are joint positions: emitters may share their sines


_PAIR, _TRIPLE = ("q", "qd"), ("q", "qd", "qdd")

KERNELS: tuple[Kernel, ...] = (
    Kernel("pose", ("q",), lambda n: ((4, 4),), forward.pose, "T_base_tcp (4, 4)"),
    Kernel("link_poses", ("q",), lambda n: ((n, 4, 4),), forward.link_poses, "T_base_link of every link (n, 4, 4)"),
    Kernel("jacobian", ("q",), lambda n: ((6, n),), forward.jacobian, "geometric Jacobian at the tcp (6, n)"),
    Kernel(
        "link_jacobians",
        ("q",),
        lambda n: ((n, 3, n), (n, 3, n)),
        forward.link_jacobians,
        "Jv (n, 3, n) and Jw (n, 3, n) at every link's centre of mass",
    ),
    Kernel(
        "jacobian_rate_times_velocity",
        _PAIR,
        lambda n: ((6,),),
        forward.jacobian_rate_times_velocity,
        "Jdot qd at the tcp (6,)",
    ),
    Kernel("mass_matrix", ("q",), lambda n: ((n, n),), composite.mass_matrix, "M(q) (n, n)"),
    Kernel("coriolis_matrix", _PAIR, lambda n: ((n, n),), composite.coriolis_matrix, "Christoffel C(q, qd) (n, n)"),
    Kernel("gravity_torque", ("q",), lambda n: ((n,),), newton_euler.gravity_torque, "g(q) (n,)"),
    Kernel("bias_torque", _PAIR, lambda n: ((n,),), newton_euler.bias_torque, "C qd + g (n,)"),
    Kernel(
        "inverse_dynamics",
        _TRIPLE,
        lambda n: ((n,),),
        newton_euler.inverse_dynamics,
        "tau = M qdd + C qd + g (n,)",
    ),
    Kernel(
        "forward_dynamics",
        ("q", "qd", "tau"),
        lambda n: ((n,),),
        composite.forward_dynamics,
        "qdd = M^-1 (tau - C qd - g) (n,)",
    ),
    Kernel(
        "momentum_terms",
        _PAIR,
        lambda n: ((n,), (n,), (n,)),
        newton_euler.momentum_terms,
        "p = M qd, C^T qd, g (n,) each",
    ),
    Kernel(
        "inverse_dynamics_derivatives",
        _TRIPLE,
        lambda n: ((n, n), (n, n), (n, n)),
        composite.inverse_dynamics_derivatives,
        "d tau/dq, d tau/dqd, d tau/dqdd (n, n) each",
    ),
    Kernel("energy", _PAIR, lambda n: ((), ()), newton_euler.energy, "kinetic and potential energy [J]"),
    Kernel("regressor", _TRIPLE, lambda n: ((n, 10 * n),), newton_euler.regressor, "Y with tau = Y pi (n, 10 n)"),
)


def point_kernel(link: int) -> Kernel:
    """Jacobian at a point of one link (counted from 0): a kernel of its own per link."""
    return Kernel(
        f"jacobian_link{link + 1}",
        ("q", "point"),
        lambda n: ((6, n),),
        lambda chain, q, point: forward.point_jacobian(chain, link, q, point),
        f"geometric Jacobian at a point of link {link + 1} (6, n)",
    )


def all_kernels(dof: int) -> list[Kernel]:
    """The table with the point Jacobians of an arm with `dof` joints."""
    return [*KERNELS, *(point_kernel(i) for i in range(dof))]


def trace(
    kernel: Kernel, dof: int, chain: Callable[[list[Symbol]], Chain], parameter_count: int, *, unfolded: bool = False
) -> Trace:
    """Run the kernel on symbols. `chain` makes the chain from the parameter symbols (or from numbers alone).

    unfolded: for a text in which what is alike is computed side by side (codegen.packs).
    """
    graph = Graph()
    graph.unfolded = unfolded
    P = graph.inputs("P", parameter_count, uniform=True)
    sizes = kernel.input_sizes(dof)
    x = graph.inputs("x", sum(sizes))
    arguments, start = [], 0
    for size in sizes:
        arguments.append(x[start : start + size])
        start += size
    outputs = [graph.lift(y) for y in kernel.function(chain(P), *arguments)]
    if len(outputs) != kernel.size(dof):
        raise AssertionError(f"kernel {kernel.name} gives {len(outputs)} numbers, its table says {kernel.size(dof)}")
    return Trace(graph, outputs, sizes[0] if kernel.inputs[0] == "q" else 0)


@dataclass(frozen=True)
class Law:
    """A step with memory: `function(n, P, *inputs, state)` gives the next state, then its outputs, flat.

    Sizes are those for n joints. A law of an arm is given the chain in place of n, and its parameters follow the arm's;
    nothing else in a law depends on an arm, but through its inputs and parameters.
    """

    name: str
    inputs: Callable[[int], tuple[int, ...]]
    parameters: Callable[[int], int]
    start: Callable[[int], list[float]]  # the state before the first sample
    outputs: Callable[[int], int]
    function: Callable[..., list[Scalar]]
    names: tuple[str, ...] = ()  # of the inputs, where they must be finite: what is not is refused by its name
    arm: bool = False
    rounds: int = 1  # how often it is run on a sample, each time with the state before

    def state(self, dof: int) -> int:
        """Numbers that are remembered."""
        return len(self.start(dof))


def _servo(n: int, _: list[Scalar], *sample: list[Scalar]) -> list[Scalar]:
    """Computed torque's acceleration, joint by joint, of kp, kv, q, qd, q_des, qd_des, qdd_des; nothing is kept."""
    return [servo_acceleration(*(part[j] for part in sample[:7])) for j in range(n)]


LAWS: tuple[Law, ...] = (
    Law(
        "detection",
        lambda n: (detection.LAGS, n, n),
        detection.limits_size,
        detection.start,
        detection.output_size,
        detection.step,
    ),
    Law("onset", lambda n: (n, 2), onset.parameters_size, onset.start, onset.output_size, onset.step),
    Law("servo", lambda n: (n,) * 7, lambda n: 0, lambda n: [], lambda n: n, _servo),
    Law(
        "pose_error", lambda n: (task.POSE, task.POSE), lambda n: 0, lambda n: [], lambda n: 6,
        lambda n, P, *x: task.pose_error(*x[:2]),
    ),
    Law(
        "tip_sense", lambda n: (2, n, n, n, 6), lambda n: n + 12, task.tip_start, task.tip_sensed, task.tip_sense,
        ("time and period", "q", "qd", "tau", "wrench"), arm=True,
    ),
    Law(
        "tip_torque", lambda n: (len(task.tip_start(n)) + task.tip_sensed(n), task.POSE, 6, 6, 4), lambda n: 13,
        lambda n: [0.0] * 6, lambda n: n + 8, task.tip_torque,
        ("what was sensed", "T", "v", "a", "h, pressing, along, integral"), arm=True,
    ),
    Law(
        "springs_sense", lambda n: (n, n, task.POSE, 6, 6, 6), lambda n: 13, lambda n: [], task.springs_sensed,
        lambda chain, P, *x: task.springs_sense(chain, P, *x[:6]), ("q", "qd", "T", "v", "a", "wrench"), arm=True,
    ),
    Law("modes", lambda n: (), lambda n: 0, task.modes_start, lambda n: 0, task.modes, rounds=task.SWEEPS),
    Law(
        "springs_torque", lambda n: (task.springs_sensed(n), len(task.modes_start(n))), lambda n: 8, lambda n: [],
        lambda n: n, lambda n, P, *x: task.springs_torque(n, P, *x[:2]),
    ),
)  # fmt: skip
# Numbers of joints that laws are compiled for; an arm with fewer is watched as one whose other joints stand
LAW_DOFS = (6, 8)


def trace_law(law: Law, dof: int, chain: Callable[[list[Symbol]], Chain] | None = None, numbers: int = 0) -> Trace:
    """Run the law on symbols: x holds its inputs, then its state; the outputs begin with the next state.

    chain: makes the arm of a law of an arm from the first `numbers` of the parameters.
    """
    graph = Graph()
    P, sizes, kept = graph.inputs("P", numbers + law.parameters(dof), uniform=True), law.inputs(dof), law.state(dof)
    x = graph.inputs("x", sum(sizes) + kept)
    starts = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    arguments = [x[first : first + size] for first, size in zip(starts, (*sizes, kept), strict=True)]
    about = dof if chain is None else chain(P[:numbers])
    outputs = [graph.lift(y) for y in law.function(about, P[numbers:], *arguments)]
    if len(outputs) != kept + law.outputs(dof):
        raise AssertionError(f"law {law.name} gives {len(outputs)} numbers, not {kept + law.outputs(dof)}")
    return Trace(graph, outputs)


# Inverse kinematics of a UR: not a quantity of any chain, so beside the table. Sizes of x and of the outputs.
IK_BRANCH_INPUTS = 12 + 4 + 1 + 3  # flange pose; reference q1, q3, q6 and whether given; correction; signs
IK_BRANCH_OUTPUTS = 6 + len(inverse.OUTPUTS)
IK_PREPARE_OUTPUTS = 12 + 3
IK_MERGE_INPUTS = 6 * inverse.LANES + inverse.LANES + 6 + 1


def trace_ik(parameter_count: int) -> dict[str, Trace]:
    """The kernels of the closed-form inverse kinematics; P begins with lengths, tool rotation, tool position."""
    traces = {}
    for name, project in (("ik_prepare", False), ("ik_project", True)):
        graph = Graph()
        P, T = graph.inputs("P", parameter_count, uniform=True), graph.inputs("x", 16)
        tool = ([P[6:9], P[9:12], P[12:15]], P[15:18])
        traces[name] = Trace(graph, [graph.lift(y) for y in inverse.prepare(tool, T, project=project)])
    for name in ("ik_regular", "ik_branch"):
        graph = Graph()
        P, x = graph.inputs("P", parameter_count, uniform=True), graph.inputs("x", IK_BRANCH_INPUTS)
        signs = (x[17], x[18], x[19])
        if name == "ik_regular":
            y = inverse.regular_branch(P[:6], x[:12], signs)
        else:
            y = inverse.branch(P[:6], x[:12], (x[12], x[13], x[14], x[15]), x[16], signs)
        traces[name] = Trace(graph, [graph.lift(a) for a in y])
    graph = Graph()
    P, x = graph.inputs("P", parameter_count, uniform=True), graph.inputs("x", IK_MERGE_INPUTS)
    q, rest = x[:48], x[48:]
    traces["ik_merge"] = Trace(graph, [graph.lift(a) for a in inverse.merge(q, rest[:8], rest[8:14], rest[14])])
    return traces
