"""What each part of a block computes, in the words and symbols of its data sheet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Equations:
    """Title, lines of mathematics, what they mean, and where they come from."""

    title: str
    lines: tuple[str, ...]
    text: str
    sources: tuple[str, ...]


_DH = "Universal Robots: DH parameters for calculations of kinematics and dynamics"
_WILLIAMS = "R. L. Williams II: Universal Robot URe-Series Kinematics, 2024"
_MOMENTUM = "A. De Luca et al.: Collision detection and safe reaction with the DLR-III lightweight arm, IROS 2006"

PARTS: dict[str, Equations] = {
    "FK": Equations(
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
        (_DH, _WILLIAMS),
    ),
    "IK": Equations(
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
    "PLANT": Equations(
        "Forward dynamics",
        (
            "M(q) qdd + C(q, qd) qd + g(q) + friction(qd) = tau + tau_ext + J(q)^T wrench",
            "friction = coulomb tanh(qd / width) + viscous qd",
            "M contains rotor_inertia on its diagonal; kinetic energy = qd^T M qd / 2",
        ),
        "States q and qd. In co-simulation the inputs are held over a step, which is integrated by the classical "
        "Runge-Kutta method of order 4 in equal internal steps no longer than step_max, and short enough for friction. "
        "Error of a free swing of a UR10e over 0.5 s: 4e-9 J at 1 ms, 16 times less at half the step. Joint and torque "
        "limits are not applied.",
        (_DH, "R. Featherstone: Rigid Body Dynamics Algorithms, 2008"),
    ),
    "INVERSE": Equations(
        "Inverse dynamics",
        ("tau = M(q) qdd + C(q, qd) qd + g(q) + friction(qd)", "friction = coulomb tanh(qd / width) + viscous qd"),
        "The torque that gives this motion with nothing touching the arm.",
        (_DH, "R. Featherstone: Rigid Body Dynamics Algorithms, 2008"),
    ),
    "CONTROL": Equations(
        "Computed torque",
        (
            "e = q_des - q",
            "tau = M(q) (qdd_des + kp e + kv de/dt) + C(q, qd) qd + g(q) + friction(qd) - J^T wrench",
            "exact model:  d2e/dt2 + kv de/dt + kp e = 0   for every joint by itself",
        ),
        "The wrench is subtracted only with feed_wrench (the controller block). The arm block computes tau at every "
        "sample and holds it between.",
        ("J. Y. S. Luh, M. W. Walker, R. P. C. Paul: Resolved-acceleration control of mechanical manipulators, 1980",),
    ),
    "OBSERVER": Equations(
        "Momentum observer",
        (
            "p = M qd,   beta = C^T qd - g - friction(qd)",
            "y_k = (p_k - p_k-1) / h - tau_k-1 - (beta_k-1 + beta_k) / 2",
            "r_k = r_k-1 + (1 - exp(-K h)) (y_k - r_k-1)      =>      dr/dt = K (tau_ext - r)",
        ),
        "Sampled every period; in co-simulation the observer block samples at the first communication point that is "
        "due, with the time h that has really passed, before it steps. tau is the torque that is held from this "
        "sample to the next: the same signal that goes to the arm. A contact begins when |r| > threshold_on at any "
        "joint and ends when |r| < threshold_off at all. It is not a safety function.",
        (_MOMENTUM,),
    ),
}
