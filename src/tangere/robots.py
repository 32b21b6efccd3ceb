"""The robot: a model with its kernels."""
# mypy: disable-error-code="empty-body"
# (methods under @kernel have signature and docstring here, and their body in the kernels)

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere.errors import InvalidValue
from tangere.kernels import general, ur
from tangere.kernels.backend import COMPILED, Kernels, kernel, say_once
from tangere.kernels.payloads import PayloadMap, payload_map
from tangere.kernels.traced import TracedKernels
from tangere.kernels.twin import twin_of
from tangere.kinematics.checks import checked
from tangere.model.inertia import payload_body
from tangere.model.loading import load
from tangere.model.model import Array, Drives, Model, Payload

if TYPE_CHECKING:
    from tangere.figures.plots import Figure
    from tangere.kernels.batch import Batch
    from tangere.kernels.solutions import IKBatch, IKSolutions
    from tangere.studio.show import Shown

# What robots that differ in nothing but their payload have in common.
SLIDING = {  # of a joint that slides
    "rad": "m", "deg": "m", "mrad": "mm", "rad/s": "m/s", "rad/s2": "m/s2", "Nm": "N", "mrad/s": "mm/s",
    "Nm/A": "N/A", "Nm s/rad": "N s/m", "kg m²": "kg", "kg m2": "kg",
}  # fmt: skip
_SHARED = ("_payloads", "_structure", "_twin", "q_max", "q_min", "qd_max", "revolute", "tau_max")


class Robot(Kernels):
    """A serial arm that computes: kinematics, inverse kinematics and dynamics of its model.

        M(q) qdd + C(q, qd) qd + g(q) = tau + tau_ext

    All methods take one state or any leading batch axes, as arrays or lists: q, qd, qdd, tau (..., n) in rad, rad/s,
    rad/s2, Nm (m, m/s, m/s2, N for a joint that slides). The rigid body only: friction and motor currents are in
    `drives`; rotor inertia is in M if and only if the robot was made with it. Made by tangere.robot().
    """

    __slots__ = ("__weakref__", "_nominal", "_parameters", "model", "rotor_inertia", *_SHARED)

    model: Model
    q_min: Array  # (n,) rad or m
    q_max: Array
    qd_max: Array  # (n,) rad/s or m/s
    tau_max: Array  # (n,) Nm or N
    _parameters: Array | None
    _structure: int | None  # of kernels.general.STRUCTURES; None: a UR, or the Python form alone
    _twin: Array | None
    _payloads: PayloadMap | None
    rotor_inertia: Array  # (n,) kg m2, what is on the diagonal of M beyond the links
    revolute: NDArray[np.bool_]  # (n,)

    def __init__(self, model: Model, rotor_inertia: bool | ArrayLike = False, nominal: Model | None = None) -> None:
        rotor = _rotor(model, rotor_inertia)
        parameters = None
        self._twin = self._payloads = self._structure = None
        structure = general.structure_of(model) if COMPILED else None
        if COMPILED and ur.is_ur(model):
            parameters = ur.parameters_of(model, rotor_inertia=rotor)
        elif structure is not None:
            parameters = general.parameters_of(structure, model, rotor_inertia=rotor)
            self._structure = general.STRUCTURES.index(structure)
            self._twin = twin_of(model, nominal)
        self._begin(model, rotor, nominal, parameters)
        self.q_min = np.array([j.q_min for j in model.joints])
        self.q_max = np.array([j.q_max for j in model.joints])
        self.qd_max = np.array([j.qd_max for j in model.joints])
        self.tau_max = np.array([j.tau_max for j in model.joints])
        self.revolute = np.array([j.kind == "revolute" for j in model.joints])
        for array in (rotor, self.q_min, self.q_max, self.qd_max, self.tau_max, self.revolute):
            array.flags.writeable = False

    def _begin(self, model: Model, rotor: Array, nominal: Model | None, parameters: Array | None) -> None:
        """The kernels for these parameters, and what depends on the payload."""
        self.model, self._nominal, self.rotor_inertia, self._parameters = model, nominal, rotor, parameters
        if parameters is not None and self._structure is None:
            super().__init__(parameters)
            return
        say_once()
        traced = TracedKernels(model, rotor_inertia=rotor, nominal=nominal)
        traced.robot = weakref.ref(self)  # no cycle: the kernels live as long as the robot
        if self._structure is None:
            super().__init__(None, traced)
        else:
            super().__init__(parameters, traced, self._structure, model.dof, self._twin)

    @property
    def kernel_parameters(self) -> Array | None:
        """The numbers of the compiled kernels of six turning axes; None where none serve this arm."""
        six = self._structure is None or (general.STRUCTURES[self._structure] is general.SIX and self.dof == ur.DOF)
        return self._parameters if six else None

    @property
    def closed_form(self) -> bool:
        """Whether inverse kinematics knows all solutions: a UR, nominal, calibrated or from a URDF."""
        return ur.is_ur(self.model) or twin_of(self.model, self._nominal) is not None

    def with_payload(self, payload: Payload | float | Sequence[Any] | None) -> Robot:
        """The same robot with another payload, in microseconds: a gripper that has closed.

        payload: mass [kg], (mass, com) or (mass, com, inertia about the com), in flange axes; None for none.
        """
        body = None if payload is None else payload_body(payload)
        model = replace(self.model, payload=body)
        if not self.compiled:
            return Robot(model, self.rotor_inertia, self._nominal)
        if self._payloads is None:
            self._payloads = payload_map(self.model, self.rotor_inertia)
        other = Robot.__new__(Robot)
        for name in _SHARED:
            setattr(other, name, getattr(self, name))
        other._begin(model, self.rotor_inertia, self._nominal, self._payloads.parameters(body))
        return other

    @property
    def name(self) -> str:
        """Name of the arm, as tangere.robot() takes it."""
        return self.model.name

    @property
    def dof(self) -> int:
        """Number of joints."""
        return self.model.dof

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, from the base on; those of UR's own drivers for a UR."""
        return tuple(joint.name for joint in self.model.joints)

    def unit(self, joint: int, turning: str) -> str:
        """The unit of a quantity of a joint (from 1): `turning` ("Nm"), or what it is where the joint slides ("N").

        A joint that the arm does not have turns: whoever writes a note in a control loop is not to raise.
        """
        return turning if self.revolute[joint - 1 : joint].all() else SLIDING[turning]

    def units(self, turning: str) -> str:
        """The same for all joints in words: "Nm", or "Nm, joint 4: N" where the fourth slides."""
        sliding = [str(j + 1) for j in np.flatnonzero(~self.revolute)]
        if not sliding or turning not in SLIDING:
            return turning
        other = SLIDING[turning]
        return other if len(sliding) == self.dof else f"{turning}, joint {', '.join(sliding)}: {other}"

    @property
    def drives(self) -> Drives:
        """Gains, rotor inertia and friction of the joints; nan where not known."""
        return self.model.drives

    # ---- kinematics ----
    # Static types cannot count axes: six numbers are one pose, a list of arrays is many, of an array it is not known.

    @kernel
    def pose(self, q: ArrayLike, form: str = "matrix") -> Array:
        """Pose of the tcp in the base frame, T_base_tcp (..., 4, 4), for q (..., n) [rad].

        form="ur" gives x y z rx ry rz (..., 6) instead: position [m] and rotation vector [rad], as the pendant shows
        them. Warns, once, where q looks like degrees.
        """

    fk = pose

    @kernel
    def link_poses(self, q: ArrayLike) -> Array:
        """Frames of all links in the base frame (..., n, 4, 4); DH frames 1 ... n for a UR."""

    @kernel
    def jacobian(self, q: ArrayLike, link: int | None = None, point: ArrayLike | None = None) -> Array:
        """Geometric Jacobian (..., 6, n), linear rows first, base axes.

        At the tcp, or at `point` (..., 3) [m], given in the frame of link number `link` (1 ... n).
        (v, omega) = J qd;  tau = J^T (force, moment).
        """

    @kernel
    def link_jacobians(self, q: ArrayLike) -> tuple[Array, Array]:
        """Jv (..., n, 3, n) and Jw (..., n, 3, n) at every link's centre of mass, base axes."""

    @kernel
    def jacobian_rate_times_velocity(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """Jdot qd (..., 6): acceleration of the tcp while qdd = 0.

        Linear [m/s2] before angular [rad/s2], base axes.
        """

    @overload
    def inverse_kinematics(self, T: Sequence[float], reference: ArrayLike | None = None) -> IKSolutions: ...
    @overload
    def inverse_kinematics(self, T: Sequence[Array], reference: ArrayLike | None = None) -> IKBatch: ...
    @overload
    def inverse_kinematics(self, T: ArrayLike, reference: ArrayLike | None = None) -> Any: ...
    @kernel
    def inverse_kinematics(self, T: ArrayLike, reference: ArrayLike | None = None) -> Any:
        """All solutions of the pose T_base_tcp as an IKSolutions value (leading axes: IKBatch).

        T: (..., 4, 4), or UR's x y z rx ry rz (..., 6) in m and rad. `reference` (n,) settles what a singular pose
        leaves open (q6 at a wrist singularity). Closed form for a UR; for an arm that is nearly one (calibrated, or
        from a URDF) the closed form of the nearest UR, polished, and next to a singularity more than eight solutions
        may be found (a batch keeps eight); a numeric search for other arms. A pose out of reach is an answer too: no
        solutions, and how far away it is.
        """

    ik = inverse_kinematics

    # ---- dynamics ----

    @kernel
    def mass_matrix(self, q: ArrayLike) -> Array:
        """M(q) (..., n, n) [kg m2]; with rotor inertia on the diagonal if the robot was made so."""

    @kernel
    def coriolis_matrix(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C(q, qd) (..., n, n) with the Christoffel symbols: Mdot = C + C^T."""

    @kernel
    def gravity_torque(self, q: ArrayLike) -> Array:
        """g(q) (..., n) [Nm]: the torque that holds the arm still."""

    @kernel
    def bias_torque(self, q: ArrayLike, qd: ArrayLike) -> Array:
        """C qd + g (..., n) [Nm]: the torque that keeps qdd = 0."""

    @kernel
    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """tau = M qdd + C qd + g (..., n) [Nm]; without friction."""

    @kernel
    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Array:
        """qdd = M^-1 (tau - C qd - g) (..., n) [rad/s2]; without friction."""

    @kernel
    def momentum_terms(self, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array, Array]:
        """p = M qd, C^T qd and g (..., n) each: what a momentum observer needs."""

    @kernel
    def inverse_dynamics_derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Array, Array, Array]:
        """d tau/dq, d tau/dqd, d tau/dqdd (..., n, n) each; element [i, k] is d tau_i / d x_k."""

    @kernel
    def energy(self, q: ArrayLike, qd: ArrayLike) -> tuple[Any, Any]:
        """Kinetic and potential energy [J]; potential energy is zero at the base's origin.

        Two numbers for one state, two arrays (...) for many.
        """

    @kernel
    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Y (..., n, 10 n) with tau = Y pi.

        pi = (m, m cx, m cy, m cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) per link, about the origin of the link's frame.
        """

    # ---- many ----

    def batch(self, device: str = "cpu", dtype: Any = "float64") -> Batch:
        """Every quantity over rows of any DLPack array (numpy, torch, cupy, jax), on the "cpu" or a "cuda" device."""
        from tangere.kernels.batch import Batch

        return Batch(self, device, dtype)

    # ---- the reader ----

    def plot(self, q: ArrayLike, *, frames: bool = False) -> Figure:
        """The arm at q (n,), or at each of q (K, n), drawn to scale; frames: with the frames of all links."""
        from tangere.figures.arm import arm_figure

        return arm_figure(self, q, frames=frames)

    def show(self, q: ArrayLike | None = None, **options: Any) -> Shown:
        """The arm in the browser, or in a notebook, with a slider for each joint: `tangere.show`, extra `studio`."""
        import tangere

        return tangere.show(self, q, **options)

    def __repr__(self) -> str:
        return f"Robot({self.model.name!r}, parameters={self.model.parameters!r}, dof={self.dof})"

    def _repr_html_(self) -> str:
        from tangere.figures.arm import robot_table

        return robot_table(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Robot, (self.model, self.rotor_inertia, self._nominal))


def _rotor(model: Model, rotor_inertia: bool | ArrayLike) -> Array:
    if rotor_inertia is False:
        return np.zeros(model.dof)
    if rotor_inertia is True:
        values = np.array(model.drives.rotor_inertia, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise InvalidValue(
                f"the rotor inertia of {model.name} is not known for every joint ({values}): "
                f"pass rotor_inertia=[...] with {model.dof} numbers in kg m2"
            )
        return values
    values = np.array(checked(rotor_inertia, (model.dof,), "rotor_inertia"))
    if values.ndim != 1 or np.any(values < 0.0):
        raise InvalidValue(f"rotor_inertia must be {model.dof} numbers >= 0 in kg m2, got {rotor_inertia!r}")
    return values


def robot(
    name_or_path: str | os.PathLike[str],
    *,
    payload: Payload | float | Sequence[Any] | None = None,
    tool: str | Sequence[float] | Array | None = None,
    gravity: str | Sequence[float] | Array | None = None,
    mounting: str | Sequence[float] | Array | None = None,
    parameters: str | os.PathLike[str] | None = None,
    rotor_inertia: bool | ArrayLike = False,
    calibration: str | os.PathLike[str] | None = None,
    tip: str | None = None,
) -> Robot:
    """The robot of that name (tangere.models() lists them) or of that file (.toml, .urdf).

    payload: mass [kg], (mass, com) or (mass, com, inertia about the com), in flange axes.
    tool: T_flange_tcp as 4x4, as x y z rx ry rz (UR's TCP form) or as x y z; or "2f-85", "hand-e", "pen", with mass.
    gravity or mounting: "table", "wall", "ceiling", or the vector of gravity in base axes [m/s2]; one of the two.
    parameters: another set of numbers for the arm, by name or as a model file; or the robot_calibration_summary.txt
        of its controller, for gains and friction of its joints.
    rotor_inertia: True adds the drives' reflected rotor inertia to M; six numbers [kg m2] add those.
    calibration: the arm's own UR calibration.yaml. tip: last link of a URDF with branches.
    """
    if gravity is not None and mounting is not None:
        raise InvalidValue(f"gravity= and mounting= say the same: give one of them, got {gravity!r} and {mounting!r}")
    gravity = mounting if gravity is None else gravity
    options: dict[str, Any] = {
        "payload": payload, "tool": tool, "gravity": gravity, "parameters": parameters, "tip": tip
    }  # fmt: skip
    model = load(name_or_path, calibration=calibration, **options)
    nominal = None
    if calibration is not None:
        uncalibrated = load(name_or_path, **options)
        nominal = uncalibrated if ur.is_ur(uncalibrated) else None
    return Robot(model, rotor_inertia, nominal)


def as_robot(given: Robot | str | os.PathLike[str]) -> Robot:
    """A robot as it is, or the one of that name or file."""
    return given if isinstance(given, Robot) else robot(given)
