"""The kinematic blocks: forward kinematics (fk) and inverse kinematics (ik)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tangere.apps.fmu.part import (
    EXACT,
    POSITION,
    UNLIMITED,
    Answer,
    ArmNumbers,
    Equations,
    Kind,
    Part,
    length_parameters,
)
from tangere.apps.fmu.variables import Group, parameter, real_input, real_output
from tangere.kinematics.rotation import quaternion_from_matrix, ypr_from_matrix

if TYPE_CHECKING:
    from tangere.apps.fmu.check import Asked
    from tangere.types import Array

JACOBIAN = ("Length", "Length", "Length", "Cosine", "Cosine", "Cosine")  # types of its rows
DH_SOURCE = "Universal Robots: DH parameters for calculations of kinematics and dynamics"
_WILLIAMS = "R. L. Williams II: Universal Robot URe-Series Kinematics, 2024"

# the pose and Jacobian of the tcp, which plants need as well
POSE = Part("POSE", ("kinematic_parameters", "pose", "jacobian"))
FK = Part(
    "FK",
    ("jacobian_rate",),
    memory=(("FK_before", 0, 4),),
    equations=Equations(
        "Forward kinematics",
        (
            "A_i = Rz(q_i) Tz(d_i) Tx(a_i) Rx(alpha_i),   alpha = (90, 0, 0, 90, -90, 0) deg",
            "T_base_tcp = A_1 A_2 A_3 A_4 A_5 A_6 T_flange_tcp",
            "(v, w) = J(q) qd   at the tcp, base axes",
            "R = Rz(yaw) Ry(pitch) Rx(roll);   quaternion (w, x, y, z), w = cos(angle / 2)",
        ),
        "With offsets = false, d1, d6 and the tool are left out: the pose of frame 6 in frame 0 as Williams prints "
        "it. At pitch = +-90 deg only yaw -+ roll is defined, roll is then 0. A continuous quaternion keeps the sign "
        "of the step before; a canonical one has its first nonzero component positive.",
        (DH_SOURCE, _WILLIAMS),
    ),
    serial=Equations(
        "Forward kinematics",
        (
            "A_i = T_link_joint(i) motion(q_i) T_joint_link(i),   motion: a turn about z, or a shift along it",
            "T_base_tcp = A_1 A_2 ... A_n T_flange_tcp",
            "(v, w) = J(q) qd   at the tcp, base axes",
            "R = Rz(yaw) Ry(pitch) Rx(roll);   quaternion (w, x, y, z), w = cos(angle / 2)",
        ),
        "arm.joints holds where each joint stands in the frame of the link before it, arm.links where the frame of its "
        "link is, seen from the joint. At pitch = +-90 deg only yaw -+ roll is defined, roll is then 0. A "
        "continuous quaternion keeps the sign of the step before; a canonical one has its first nonzero component "
        "positive.",
        ("the arm's own file",),
    ),
)  # fmt: skip
IK = Part(
    "IK",
    ("kinematic_parameters", "pose", "jacobian", "ik_prepare", "ik_project", "ik_regular", "ik_branch", "ik_merge",
     "turned"),
    header="part_ik.h",
    closed=True,
    memory=(("IK_before", 6, 0),),
    equations=Equations(
        "Inverse kinematics",
        (
            "p5 = p - d6 R[:,3]",
            "q1 = atan2(p5y, p5x) + 90 deg +- arccos(d4 / |p5xy|)                       shoulder",
            "q5 = +- arccos(s1 r13 - c1 r23)                                            wrist",
            "q6 = atan2(-+(s1 r12 - c1 r22), +-(s1 r11 - c1 r21))",
            "q3 = +- arccos((X^2 + Y^2 - a2^2 - a3^2) / (2 a2 a3))                      elbow",
            "q2 = atan2(Y, X) - atan2(a3 s3, a2 + a3 c3),   q4 = q234 - q2 - q3",
        ),
        "Branches 1 ... 8 count shoulder (+, -), wrist (+, -), elbow (+, -), the last one fastest. (X, Y) is the "
        "wrist in the plane of the arm. Singular poses are solved: at a wrist singularity q6 stays at the step "
        "before. A pose out of reach holds q, clears found and tells distance; the call that computed it "
        "returns a warning.",
        (_WILLIAMS, "closed form of Tangere, valid at and near every singularity"),
    ),
)  # fmt: skip


def quaternion_sign() -> Group:
    """Continuous or canonical."""
    return Group("SIGN", "quaternion_sign", (), "Integer", "parameter", "fixed",
                 "which of the two quaternions of a rotation is put out", "QuaternionSign", (1,))  # fmt: skip


def pose_of(arm: ArmNumbers, prefix: str, q: str, *, begin: tuple[str, ...] = ()) -> list[Group]:
    """The pose of the tcp in four forms, computed from the joint positions `q` (a key)."""
    first = (*arm.kinematic, *begin)
    return [
        real_output(f"{prefix}_position", "position", (3,), "position of the tcp, base axes", "Position", (q,), first),
        real_output(f"{prefix}_R", "R", (3, 3), "rotation of the tcp: columns are its axes in base axes", "Cosine",
                    (q,), first),
        real_output(f"{prefix}_quaternion", "quaternion", (4,), "rotation as quaternion w, x, y, z", "Cosine", (q,),
                    (*first, "SIGN")),
        real_output(f"{prefix}_ypr", "ypr", (3,), "rotation as yaw, pitch, roll: R = Rz Ry Rx", "Angle", (q,), first),
    ]  # fmt: skip


def _limits(arm: ArmNumbers) -> tuple[Array, Array]:
    return np.maximum(arm.robot.q_min, -UNLIMITED), np.minimum(arm.robot.q_max, UNLIMITED)


def forward(arm: ArmNumbers) -> list[Group]:
    """Joint positions in, pose and Jacobian out."""
    offsets = [Group("OFFSETS", "offsets", (), "Boolean", "parameter", "fixed",
                     "false: the pose without base height d1, flange d6 and tool", start=(1,))]  # fmt: skip
    offsets = offsets if arm.family.closed else []
    begin = tuple(g.key for g in offsets)
    q = real_input("FK_q", "q", (arm.dof,), "joint positions", arm.of_joints(*POSITION), arm.q_start, nominal=1.0,
                   limits=_limits(arm))  # fmt: skip
    turning = bool(arm.robot.revolute.all())
    J = real_output("FK_J", "J", (6, arm.dof), "geometric Jacobian at the tcp: velocity over angular velocity",
                    JACOBIAN if turning else "", ("FK_q",), (*arm.kinematic, *begin))  # fmt: skip
    return [quaternion_sign(), *offsets, q, *pose_of(arm, "FK", "FK_q", begin=begin), J]


def inverse(arm: ArmNumbers) -> list[Group]:
    """Pose in, all solutions out."""
    given = ("IK_position", "IK_R", "IK_quaternion", "IK_ypr")
    begin = ("LENGTHS", "TOOL", "ORIENTATION", "IK_start")
    chosen = (*begin, "SELECTION", "BRANCH", "LIMITED", "Q_MIN", "Q_MAX")
    (q_min, q_max), T = _limits(arm), arm.T_start
    R = T[:3, :3]

    def whole(key: str, name: str, shape: tuple[int, ...], kind: str, text: str, first: tuple[str, ...]) -> Group:
        return Group(key, name, shape, kind, "output", "discrete", text, depends=given, initially=first)  # type: ignore[arg-type]

    return [
        Group("ORIENTATION", "orientation", (), "Integer", "parameter", "fixed",
              "which input carries the orientation", "Orientation", (1,)),
        Group("SELECTION", "selection", (), "Integer", "parameter", "tunable", "how q is chosen", "Selection", (1,)),
        Group("BRANCH", "wanted_branch", (), "Integer", "parameter", "tunable", "branch that q takes if so selected",
              start=(1,), low=1, high=8),
        Group("LIMITED", "within_limits", (), "Boolean", "parameter", "tunable",
              "q must lie within the joint limits; whole turns are added where that helps", start=(1,)),
        parameter("Q_MIN", "q_min", (6,), "lower joint limits", "Angle", q_min, tunable=False),
        parameter("Q_MAX", "q_max", (6,), "upper joint limits", "Angle", q_max, tunable=False),
        parameter("IK_start", "q_previous", (6,),
                  "q at the start is the solution nearest to this, or this where the pose given in initialization has "
                  "none; from then on the nearest to the q before", "Angle", arm.q_start, tunable=False),
        real_input("IK_position", "position", (3,), "position of the tcp, base axes", "Position", T[:3, 3]),
        real_input("IK_R", "R", (3, 3), "rotation of the tcp", "Cosine", R),
        real_input("IK_quaternion", "quaternion", (4,), "rotation as quaternion w, x, y, z", "Cosine",
                   quaternion_from_matrix(R)),
        real_input("IK_ypr", "ypr", (3,), "rotation as yaw, pitch, roll", "Angle", ypr_from_matrix(R)),
        real_output("IK_q", "q", (6,), "the chosen solution; held while there is none", "Angle", given, chosen,
                    nominal=1.0),
        real_output("IK_solutions", "solutions", (8, 6),
                    "the solution of every branch, each angle in (-180, 180] deg; what is not valid is none", "Angle",
                    given, begin),
        real_output("IK_distance", "distance", (), "how far the pose is out of reach", "Length", given, begin),
        whole("IK_valid", "valid", (8,), "Boolean", "whether the branch solves the pose", begin),
        whole("IK_singular", "singular", (8,), "Boolean", "whether the branch's solution is singular", begin),
        whole("IK_flags", "flags", (8,), "Integer",
              "1 singular shoulder + 2 singular elbow + 4 singular wrist + 8 elbow up", begin),
        whole("IK_count", "count", (), "Integer", "number of solutions", begin),
        whole("IK_branch", "branch", (), "Integer", "branch of the chosen solution, 0 where there is none", chosen),
        whole("IK_found", "found", (), "Boolean", "whether q solves the pose", chosen),
    ]  # fmt: skip


def _ask_fk(b: Asked) -> str:
    if "offsets" in b.groups and not b.get("offsets")[0]:
        return "not checked: the file leaves the offsets out"
    continuous = b.start("quaternion_sign")[0] == 1
    before = b.get("quaternion")  # no step is made: its sign goes on from here
    for _k in range(40):
        q = b.rng.uniform(-6.0, 6.0, b.robot.dof)
        b.set(q=q)
        T = b.robot.pose(q)
        b.compare("position", T[:3, 3])
        b.compare("R", T[:3, :3])
        b.compare("J", b.robot.jacobian(q))
        want = quaternion_from_matrix(T[:3, :3])
        b.compare("quaternion", -want if continuous and want @ before < 0.0 else want)
        if abs(T[2, 0]) < 0.99:  # near pitch = 90 deg yaw and roll lose digits
            b.compare("ypr", ypr_from_matrix(T[:3, :3]))
    return "40 random positions: pose in all forms, Jacobian"


def _ask_ik(b: Asked) -> str:
    from tangere.kernels.solutions import IKSolutions

    if b.get("orientation")[0] != 1:
        return "not checked: the file takes the orientation in another form than R"
    total, before = 0, b.get("q")  # what it goes on from, until a step is made
    for _k in range(40):
        T = b.robot.pose(b.rng.uniform(-3.0, 3.0, 6))
        b.set(position=T[:3, 3], R=T[:3, :3])
        found = b.robot.inverse_kinematics(T, before)
        assert isinstance(found, IKSolutions)  # one pose was asked for
        lanes = np.flatnonzero(b.get("valid"))
        if lanes.tolist() != found.lanes.tolist():
            b.worst = np.inf
            return f"branches {(lanes + 1).tolist()} instead of {(found.lanes + 1).tolist()}"
        off = b.get("solutions").reshape(8, 6)[lanes] - found.q
        b.worst = max(b.worst, float(np.abs(off).max()))
        b.worst = max(b.worst, float(np.abs(b.robot.pose(b.get("q")) - T).max()) if b.get("found")[0] else np.inf)
        total += len(found)
    return f"40 random poses: {total} solutions, the chosen one leads back"


KINDS = (
    Kind(
        name="fk",
        suffix="FK",
        title="Forward kinematics",
        summary="forward kinematics: joint positions in; pose in four forms and Jacobian out",
        text="Pose of the tool and geometric Jacobian from the joint positions.",
        colour=(52, 211, 153),
        parts=(POSE, FK),
        groups=lambda arm: [*length_parameters(arm), *forward(arm)],
        answers=(Answer("forward kinematics", _ask_fk, EXACT),),
    ),
    Kind(
        name="ik",
        suffix="IK",
        title="Inverse kinematics",
        summary="inverse kinematics: pose in; all eight solutions with flags, and the chosen one, out",
        text="All eight closed-form solutions of a pose, and the one nearest to the step before.",
        colour=(251, 191, 36),
        parts=(IK,),
        groups=lambda arm: [*length_parameters(arm), *inverse(arm)],
        answers=(Answer("inverse kinematics", _ask_ik, EXACT),),
    ),
)  # fmt: skip
