"""The parts that blocks are put together from, each with its variables: pose, inverse, plant, controller, observer."""

from __future__ import annotations

from dataclasses import replace

from tangere.apps.fmu.numbers import Arm
from tangere.apps.fmu.variables import Causality, Group, Variability
from tangere.control.computed_torque import KP
from tangere.observe.momentum import GAIN
from tangere.observe.threshold import OFF_RATIO

WRENCH = ("Force", "Force", "Force", "Torque", "Torque", "Torque")
JACOBIAN = ("Length", "Length", "Length", "Cosine", "Cosine", "Cosine")

KINEMATIC = ("LENGTHS", "TOOL")
DYNAMIC = ("LENGTHS", "GRAVITY", "MASS", "COM", "INERTIA", "LOAD_MASS", "LOAD_COM", "LOAD_INERTIA", "ROTOR")
FRICTION = ("COULOMB", "VISCOUS", "WIDTH")
# Nm: residual that counts as a touch where nothing else is said; a fifth of the push that the documents show
THRESHOLD = 5.0


def parameter(
    key: str, name: str, shape: tuple[int, ...], text: str, declared: str | tuple[str, ...],
    start: tuple[float, ...], *, tunable: bool = True, low: float | None = None, high: float | None = None,
) -> Group:  # fmt: skip
    """A real parameter."""
    variability: Variability = "tunable" if tunable else "fixed"
    return Group(key, name, shape, "Real", "parameter", variability, text, declared, start, low, high)


def signal(
    key: str, name: str, shape: tuple[int, ...], causality: Causality, text: str, declared: str | tuple[str, ...],
    start: tuple[float, ...] | None = None, *, depends: tuple[str, ...] = (), initially: tuple[str, ...] = (),
    nominal: float | None = None,
) -> Group:  # fmt: skip
    """A real input or output that may change at any time."""
    return Group(
        key, name, shape, "Real", causality, "continuous", text, declared, start,
        depends=depends, initially=initially, nominal=nominal,
    )  # fmt: skip


def kinematics(arm: Arm) -> list[Group]:
    """Lengths and tool."""
    return [
        parameter("LENGTHS", "arm.dh", (6,), "d1, a2, a3, d4, d5, d6 of the standard DH table", "Length",
                  arm.lengths, tunable=False),
        parameter("TOOL", "tool", (6,), "tcp in the flange frame: x, y, z and rotation vector rx, ry, rz",
                  ("Position",) * 3 + ("RotationVector",) * 3, arm.tool),
    ]  # fmt: skip


def dynamics(arm: Arm) -> list[Group]:
    """Everything that has mass. The order is that of the C kernel `parameters`."""
    inertia = "xx, yy, zz, xy, xz, yz"
    return [
        *kinematics(arm),
        parameter("GRAVITY", "gravity", (3,), "gravity in base axes", "Acceleration", arm.gravity),
        parameter("MASS", "arm.mass", (6,), "mass of the links", "Mass", arm.mass, tunable=False, low=0.0),
        parameter("COM", "arm.com", (6, 3), "centre of mass of each link, in its DH frame", "Position", arm.com,
                  tunable=False),
        parameter("INERTIA", "arm.inertia", (6, 6), f"{inertia} of each link about its centre of mass, DH axes",
                  "Inertia", arm.inertia, tunable=False),
        parameter("LOAD_MASS", "payload.mass", (), "mass at the flange", "Mass", (arm.payload_mass,), low=0.0),
        parameter("LOAD_COM", "payload.com", (3,), "its centre of mass, flange axes", "Position", arm.payload_com),
        parameter("LOAD_INERTIA", "payload.inertia", (6,), f"its {inertia} about the centre of mass, flange axes",
                  "Inertia", arm.payload_inertia),
        parameter("ROTOR", "rotor_inertia", (6,), "rotor inertia of the drives at the joint side", "Inertia",
                  arm.rotor_inertia, low=0.0),
    ]  # fmt: skip


def friction(arm: Arm) -> list[Group]:
    """coulomb tanh(qd / width) + viscous qd."""
    return [
        parameter("COULOMB", "friction.coulomb", (6,), "dry friction", "Torque", arm.coulomb, low=0.0),
        parameter("VISCOUS", "friction.viscous", (6,), "viscous friction", "Damping", arm.viscous, low=0.0),
        parameter("WIDTH", "friction.width", (), "speed over which dry friction turns round", "AngularVelocity",
                  (arm.width,), low=1e-6),
    ]  # fmt: skip


def quaternion_sign() -> Group:
    """Continuous or canonical."""
    return Group("SIGN", "quaternion_sign", (), "Integer", "parameter", "fixed",
                 "which of the two quaternions of a rotation is put out", "QuaternionSign", (1,))  # fmt: skip


def pose_of(prefix: str, q: str, *, begin: tuple[str, ...] = ()) -> list[Group]:
    """The pose of the tcp in four forms, computed from the joint positions `q` (a key)."""
    first = (*KINEMATIC, *begin)
    return [
        signal(f"{prefix}_position", "position", (3,), "output", "position of the tcp, base axes", "Position",
               depends=(q,), initially=first),
        signal(f"{prefix}_R", "R", (3, 3), "output", "rotation of the tcp: columns are its axes in base axes",
               "Cosine", depends=(q,), initially=first),
        signal(f"{prefix}_quaternion", "quaternion", (4,), "output", "rotation as quaternion w, x, y, z", "Cosine",
               depends=(q,), initially=(*first, "SIGN")),
        signal(f"{prefix}_ypr", "ypr", (3,), "output", "rotation as yaw, pitch, roll: R = Rz Ry Rx", "Angle",
               depends=(q,), initially=first),
    ]  # fmt: skip


def forward(arm: Arm) -> list[Group]:
    """Joint positions in, pose and Jacobian out."""
    q = replace(
        signal("FK_q", "q", (6,), "input", "joint positions", "Angle", arm.q_start, nominal=1.0),
        low=arm.q_min, high=arm.q_max,
    )  # fmt: skip
    J = signal("FK_J", "J", (6, 6), "output", "geometric Jacobian at the tcp: velocity over angular velocity",
               JACOBIAN, depends=("FK_q",), initially=(*KINEMATIC, "OFFSETS"))  # fmt: skip
    offsets = Group("OFFSETS", "offsets", (), "Boolean", "parameter", "fixed",
                    "false: the pose without base height d1, flange d6 and tool", start=(1,))  # fmt: skip
    return [quaternion_sign(), offsets, q, *pose_of("FK", "FK_q", begin=("OFFSETS",)), J]


def inverse(arm: Arm) -> list[Group]:
    """Pose in, all solutions out."""
    given = ("IK_position", "IK_R", "IK_quaternion", "IK_ypr")
    begin = ("LENGTHS", "TOOL", "ORIENTATION", "IK_start")
    chosen = (*begin, "SELECTION", "BRANCH", "LIMITED", "Q_MIN", "Q_MAX")

    def whole(key: str, name: str, shape: tuple[int, ...], kind: str, text: str, first: tuple[str, ...]) -> Group:
        return Group(key, name, shape, kind, "output", "discrete", text, depends=given, initially=first)  # type: ignore[arg-type]

    return [
        Group("ORIENTATION", "orientation", (), "Integer", "parameter", "fixed",
              "which input carries the orientation", "Orientation", (1,)),
        Group("SELECTION", "selection", (), "Integer", "parameter", "tunable", "how q is chosen", "Selection",
              (1,)),
        Group("BRANCH", "wanted_branch", (), "Integer", "parameter", "tunable", "branch that q takes if so selected",
              start=(1,), low=1, high=8),
        Group("LIMITED", "within_limits", (), "Boolean", "parameter", "tunable",
              "q must lie within the joint limits; whole turns are added where that helps", start=(1,)),
        parameter("Q_MIN", "q_min", (6,), "lower joint limits", "Angle", arm.q_min, tunable=False),
        parameter("Q_MAX", "q_max", (6,), "upper joint limits", "Angle", arm.q_max, tunable=False),
        parameter("IK_start", "q_previous", (6,),
                  "q at the start is the solution nearest to this, or this where the pose given in initialization has "
                  "none; from then on the nearest to the q before", "Angle", arm.q_start, tunable=False),
        signal("IK_position", "position", (3,), "input", "position of the tcp, base axes", "Position",
               arm.start_position),
        signal("IK_R", "R", (3, 3), "input", "rotation of the tcp", "Cosine", arm.start_R),
        signal("IK_quaternion", "quaternion", (4,), "input", "rotation as quaternion w, x, y, z", "Cosine",
               arm.start_quaternion),
        signal("IK_ypr", "ypr", (3,), "input", "rotation as yaw, pitch, roll", "Angle", arm.start_ypr),
        signal("IK_q", "q", (6,), "output", "the chosen solution; held while there is none", "Angle", depends=given,
               initially=chosen, nominal=1.0),
        signal("IK_solutions", "solutions", (8, 6), "output",
               "the solution of every branch, each angle in (-180, 180] deg; what is not valid is none", "Angle",
               depends=given, initially=begin),
        signal("IK_distance", "distance", (), "output", "how far the pose is out of reach", "Length", depends=given,
               initially=begin),
        whole("IK_valid", "valid", (8,), "Boolean", "whether the branch solves the pose", begin),
        whole("IK_singular", "singular", (8,), "Boolean", "whether the branch's solution is singular", begin),
        whole("IK_flags", "flags", (8,), "Integer",
              "1 singular shoulder + 2 singular elbow + 4 singular wrist + 8 elbow up", begin),
        whole("IK_count", "count", (), "Integer", "number of solutions", begin),
        whole("IK_branch", "branch", (), "Integer", "branch of the chosen solution, 0 where there is none", chosen),
        whole("IK_found", "found", (), "Boolean", "whether q solves the pose", chosen),
    ]  # fmt: skip


def plant(arm: Arm, tau: str) -> list[Group]:
    """The arm itself: torques and pushes in, motion out. tau: key of the torque, an input or held by a controller."""
    begin = ("PL_q_start", "PL_qd_start")
    forces = (tau, "PL_wrench", "PL_tau_ext")
    state = ("PL_q", "PL_qd")
    load = tuple(k for k in DYNAMIC if k != "ROTOR")
    return [
        parameter("PL_q_start", "q_start", (6,), "joint positions at the start", "Angle", arm.q_start, tunable=False),
        parameter("PL_qd_start", "qd_start", (6,), "joint velocities at the start", "AngularVelocity", (0.0,) * 6,
                  tunable=False),
        parameter("STEP_MAX", "step_max", (), "longest internal step of the integrator (co-simulation)", "Duration",
                  (1e-3,), low=1e-6),
        *([] if tau != "PL_tau" else [replace(
            signal("PL_tau", "tau", (6,), "input", "joint torques, gravity included", "Torque",
                   arm.start_gravity_torque, nominal=10.0),
            low=tuple(-x for x in arm.tau_max), high=arm.tau_max)]),
        signal("PL_wrench", "wrench", (6,), "input", "force and moment of the environment on the tcp, base axes",
               WRENCH, (0.0,) * 6, nominal=10.0),
        signal("PL_tau_ext", "tau_ext", (6,), "input", "external torque at the joints, beside the wrench", "Torque",
               (0.0,) * 6, nominal=10.0),
        replace(signal("PL_q", "q", (6,), "output", "joint positions", "Angle", depends=("=PL_q",),
                       initially=("PL_q_start",), nominal=1.0), state=True),
        replace(signal("PL_qd", "qd", (6,), "output", "joint velocities", "AngularVelocity", depends=("=PL_qd",),
                       initially=("PL_qd_start",), nominal=1.0), state=True),
        replace(signal("PL_dq", "der(q)", (6,), "local", "rate of the joint positions", "AngularVelocity",
                       depends=("=PL_qd",), initially=begin), derivative_of="PL_q"),
        replace(signal("PL_qdd", "qdd", (6,), "output", "joint accelerations", "AngularAcceleration",
                       depends=(*state, *forces), initially=(*DYNAMIC, "TOOL", *FRICTION), nominal=10.0),
                derivative_of="PL_qd"),
        signal("PL_kinetic", "kinetic_energy", (), "output", "kinetic energy", "Energy", nominal=10.0,
               depends=state, initially=DYNAMIC),
        signal("PL_potential", "potential_energy", (), "output", "potential energy, 0 with all mass at the base",
               "Energy", nominal=100.0, depends=("PL_q",), initially=load),
        *pose_of("PL", "PL_q"),
    ]  # fmt: skip


def inverse_dynamics(arm: Arm) -> list[Group]:
    """Motion in, torque out."""
    return [
        signal("ID_q", "q", (6,), "input", "joint positions", "Angle", arm.q_start, nominal=1.0),
        signal("ID_qd", "qd", (6,), "input", "joint velocities", "AngularVelocity", (0.0,) * 6, nominal=1.0),
        signal("ID_qdd", "qdd", (6,), "input", "joint accelerations", "AngularAcceleration", (0.0,) * 6, nominal=10.0),
        signal("ID_tau", "tau", (6,), "output", "joint torques that give this motion", "Torque",
               depends=("ID_q", "ID_qd", "ID_qdd"), initially=(*DYNAMIC, *FRICTION), nominal=10.0),
        signal("ID_g", "gravity_torque", (6,), "output", "joint torques that hold the arm", "Torque",
               depends=("ID_q",), initially=tuple(k for k in DYNAMIC if k != "ROTOR"), nominal=10.0),
    ]  # fmt: skip


def gains() -> list[Group]:
    """PD gains of computed torque."""
    return [
        parameter("KP", "kp", (6,), "gain of the position error", "SquaredRate", (KP,) * 6, low=0.0),
        parameter("KV", "kv", (6,), "gain of the velocity error; 2 sqrt(kp) is critical", "Rate",
                  (2.0 * KP**0.5,) * 6, low=0.0),
    ]  # fmt: skip


def desired(arm: Arm) -> list[Group]:
    """Where the arm should be."""
    return [
        signal("CT_q_des", "q_des", (6,), "input", "desired joint positions", "Angle", arm.q_start, nominal=1.0),
        signal("CT_qd_des", "qd_des", (6,), "input", "desired joint velocities", "AngularVelocity", (0.0,) * 6,
               nominal=1.0),
        signal("CT_qdd_des", "qdd_des", (6,), "input", "desired joint accelerations", "AngularAcceleration",
               (0.0,) * 6, nominal=10.0),
    ]  # fmt: skip


def controller(arm: Arm) -> list[Group]:
    """Computed torque with PD."""
    inputs = ("CT_q_des", "CT_qd_des", "CT_qdd_des", "CT_q", "CT_qd", "CT_wrench")
    return [
        *gains(),
        Group("FEED", "feed_wrench", (), "Boolean", "parameter", "tunable",
              "subtract what the measured wrench does to the joints", start=(0,)),
        *desired(arm),
        signal("CT_q", "q", (6,), "input", "measured joint positions", "Angle", arm.q_start, nominal=1.0),
        signal("CT_qd", "qd", (6,), "input", "measured joint velocities", "AngularVelocity", (0.0,) * 6, nominal=1.0),
        signal("CT_wrench", "wrench", (6,), "input", "measured force and moment on the tcp, base axes", WRENCH,
               (0.0,) * 6, nominal=10.0),
        signal("CT_tau", "tau", (6,), "output", "joint torques, gravity included", "Torque", depends=inputs,
               initially=(*DYNAMIC, "TOOL", *FRICTION, "KP", "KV", "FEED"), nominal=10.0),
    ]  # fmt: skip


def detection() -> list[Group]:
    """Gain of the observer and thresholds of the touch."""
    return [
        parameter("GAIN", "gain", (6,), "K of the momentum observer", "Rate", (GAIN,) * 6, low=0.0),
        parameter("ON", "threshold_on", (6,), "a touch begins above, at any joint", "Torque", (THRESHOLD,) * 6,
                  low=0.0),
        parameter("OFF", "threshold_off", (6,), "a touch ends below, at all joints", "Torque",
                  (OFF_RATIO * THRESHOLD,) * 6, low=0.0),
        parameter("PERIOD", "period", (), "time between samples", "Duration", (1e-3,), low=1e-5, tunable=False),
    ]  # fmt: skip


def touch(*, depends: tuple[str, ...]) -> list[Group]:
    """What the observer says; changes at samples only."""
    return [
        Group("OB_residual", "residual", (6,), "Real", "output", "discrete", "estimate of the external joint torque",
              "Torque", nominal=10.0, depends=depends),
        Group("OB_contact", "contact", (), "Boolean", "output", "discrete", "something touches the arm",
              depends=depends),
        Group("OB_joint", "contact_joint", (), "Integer", "output", "discrete",
              "joint with the largest residual against its threshold when the touch began, 0 while there is none",
              depends=depends),
    ]  # fmt: skip


def observer(arm: Arm) -> list[Group]:
    """Momentum observer, sampled."""
    inputs = ("OB_q", "OB_qd", "OB_tau")
    return [
        *detection(),
        signal("OB_q", "q", (6,), "input", "measured joint positions", "Angle", arm.q_start, nominal=1.0),
        signal("OB_qd", "qd", (6,), "input", "measured joint velocities", "AngularVelocity", (0.0,) * 6, nominal=1.0),
        signal("OB_tau", "tau", (6,), "input", "joint torques that are applied from now to the next sample", "Torque",
               arm.start_gravity_torque, nominal=10.0),
        *touch(depends=inputs),
    ]  # fmt: skip
