"""Builtins about the arm: what was measured, kinematics and dynamics, tool, payload, force mode, freedrive."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tangere.script import poses
from tangere.script.arm import Arm, ProtectiveStop
from tangere.script.builtin import builtin
from tangere.script.compliance import ForceMode, Freedrive, six
from tangere.script.functions_values import pose_argument
from tangere.script.values import List, Pose, ScriptException, Value, numbers, shown
from tangere.types import Array

STEADY = 250  # frames for which the arm has to stand: UR's half second
# [N], [Nm]: a wrench against the direction of motion that counts as contact, and what counts as none (modelled)
CONTACT, CONTACT_MOMENT, FREE = 5.0, 0.5, 0.2
NOTHING, EVERY, ORIGIN = List((0.0,) * 6), List((1,) * 6), Pose((0.0,) * 6)
BASE = ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.0, 0.0, 0.0])


def _rows(matrix: Array) -> List:
    return List([List(row) for row in matrix.tolist()])


class ArmFunctions:
    """Functions of one arm."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm

    # ------------------------------------------------------------------------------------------------------ measured

    @builtin("get_actual_joint_positions", "get_joint_positions")
    def get_actual_joint_positions(self) -> List:
        """Measured [rad]."""
        return List(self._arm.state.q.tolist())

    @builtin()
    def get_target_joint_positions(self) -> List:
        """Where the arm shall be [rad]."""
        return List(self._arm.q.tolist())

    @builtin("get_actual_joint_speeds", "get_joint_speeds")
    def get_actual_joint_speeds(self) -> List:
        """Measured [rad/s]."""
        return List(self._arm.state.qd.tolist())

    @builtin()
    def get_target_joint_speeds(self) -> List:
        """[rad/s]."""
        return List(self._arm.qd.tolist())

    @builtin(since="5.23 10.10")
    def get_target_joint_accelerations(self) -> List:
        """[rad/s2]."""
        return List(self._arm.qdd.tolist())

    @builtin(since="5.4")
    def get_actual_joint_positions_history(self, steps: Value = 0) -> List:
        """Measured so many frames ago [rad]."""
        history = self._arm.history
        if not 0 <= steps < len(history):
            raise ScriptException(f"get_actual_joint_positions_history: 0 to {len(history) - 1} steps, got {steps}")
        return List(history[-1 - int(steps)].q.tolist())

    @builtin()
    def get_actual_tcp_pose(self) -> Pose:
        """The tool where it was measured."""
        return poses.pose(self._arm.frame_at(self._arm.state.q))

    @builtin()
    def get_target_tcp_pose(self) -> Pose:
        """The tool where it shall be."""
        return poses.pose(self._arm.frame_at(self._arm.q))

    @builtin(since="5.4")
    def get_target_waypoint(self) -> Pose:
        """Where the present move ends, else where the tool shall be."""
        return self.get_target_tcp_pose() if self._arm.waypoint is None else poses.pose(self._arm.waypoint)

    @builtin()
    def get_actual_tool_flange_pose(self) -> Pose:
        """The flange where it was measured."""
        return poses.pose(self._arm.frame_with(self._arm.state.q, BASE))

    @builtin()
    def get_actual_tcp_speed(self) -> List:
        """Velocity of the tool (6,) [m/s, rad/s], base axes."""
        return List((self._arm.jacobian(self._arm.state.q) @ self._arm.state.qd).tolist())

    @builtin()
    def get_target_tcp_speed(self) -> List:
        """The same as it shall be."""
        return List((self._arm.jacobian(self._arm.q) @ self._arm.qd).tolist())

    @builtin()
    def get_tcp_force(self) -> List:
        """Force [N] and moment [Nm] of the environment on the arm at the tool, base axes."""
        return numbers(self._arm.wrench())

    @builtin()
    def force(self) -> float:
        """Size of that force [N]."""
        return math.hypot(*self._arm.wrench()[:3])

    @builtin()
    def get_joint_torques(self) -> List:
        """Torque of each joint without gravity [Nm]."""
        state = self._arm.state
        return List((state.tau - self._arm.robot.gravity_torque(state.q)).tolist())

    @builtin()
    def is_steady(self) -> bool:
        """Whether the arm has stood still for half a second."""
        return self._arm.steady >= STEADY

    @builtin(since="5.4")
    def tool_contact(self, direction: Value = NOTHING) -> int:
        """Frames since the tool touched something against its direction of motion (6,); 0: it touches nothing.

        direction zero: along the velocity of the tool. Modelled: a force of 5 N or a moment of 0.5 Nm against it.
        """
        arm = self._arm
        way = six(direction, "tool_contact")
        if not way.any():
            way = arm.jacobian(arm.q) @ arm.qd
        along = [float(np.linalg.norm(part)) for part in (way[:3], way[3:])]
        if not any(along):
            return 0

        def against(wrench: Array | None) -> float:
            """The wrench against the way, as a share of what counts."""
            if wrench is None:
                return 0.0
            force = -float(wrench[:3] @ way[:3]) / along[0] / CONTACT if along[0] else 0.0
            moment = -float(wrench[3:] @ way[3:]) / along[1] / CONTACT_MOMENT if along[1] else 0.0
            return max(force, moment)

        if against(np.array(arm.wrench())) < 1.0:
            return 0
        zero = np.array(arm.wrench_zero)
        for steps, state in enumerate(reversed(arm.history)):
            if state.wrench is None or against(state.wrench - zero) < FREE:
                return max(1, steps)
        return len(arm.history)

    # ---------------------------------------------------------------------------------------- kinematics and dynamics

    def _q(self, q: Value, what: str) -> Array:
        return self._arm.state.q if q is None else six(q, what)

    @builtin()
    def get_forward_kin(self, q: Value = None, tcp: Value = None) -> Pose:
        """The tool at q [rad]; nothing given: where it is."""
        joints = self._q(q, "get_forward_kin")
        if tcp is None:
            return poses.pose(self._arm.frame_at(joints))
        return poses.pose(self._arm.frame_with(joints, pose_argument(tcp, "get_forward_kin")))

    def _solution(self, x: Value, qnear: Value, tcp: Value, what: str) -> Array | None:
        near = self._arm.q if qnear is None else six(qnear, what)
        tool = None if tcp is None else pose_argument(tcp, what)
        return self._arm.nearest(pose_argument(x, what), near, tool)

    @builtin(later={"tcp": "3.15 5.10"})
    def get_inverse_kin(
        self, x: Value, qnear: Value = None, maxPositionError: Value = 1e-10, maxOrientationError: Value = 1e-10,
        tcp: Value = None,
    ) -> List:  # fmt: skip
        """The joints nearest to qnear that bring the tool to x; an exception where there are none."""
        found = self._solution(x, qnear, tcp, "get_inverse_kin")
        if found is None:
            raise ScriptException(f"get_inverse_kin: no solution for {shown(x)}")
        return List(found.tolist())

    @builtin(since="3.15 5.10")
    def get_inverse_kin_has_solution(
        self, pose: Value, qnear: Value = None, maxPositionError: Value = 1e-10, maxOrientationError: Value = 1e-10,
        tcp: Value = None,
    ) -> bool:  # fmt: skip
        """Whether there is one."""
        return self._solution(pose, qnear, tcp, "get_inverse_kin_has_solution") is not None

    @builtin()
    def is_within_safety_limits(self, pose: Value) -> bool:
        """Whether a pose, or six joint angles, can be reached within the joint limits."""
        if isinstance(pose, Pose):
            return self._solution(pose, None, None, "is_within_safety_limits") is not None
        q, robot = six(pose, "is_within_safety_limits"), self._arm.robot
        return bool(np.all((q >= robot.q_min) & (q <= robot.q_max)))

    @builtin(since="5.23 10.10")
    def get_mass_matrix(self, q: Value = None, include_rotors_inertia: Value = False) -> List:
        """M(q) [kg m2]."""
        arm = self._arm
        M = arm.robot.mass_matrix(self._q(q, "get_mass_matrix"))
        rotors = np.diag(arm.robot.rotor_inertia)
        if include_rotors_inertia and not rotors.any():
            rotors = -np.diag(np.nan_to_num(np.asarray(arm.robot.drives.rotor_inertia, dtype=np.float64)))
            return _rows(M - rotors)
        return _rows(M if include_rotors_inertia else M - rotors)

    @builtin(since="5.23 10.10")
    def get_coriolis_and_centrifugal_torques(self, q: Value = None, qd: Value = None) -> List:
        """C(q, qd) qd [Nm]."""
        what = "get_coriolis_and_centrifugal_torques"
        joints, speeds = self._q(q, what), self._arm.state.qd if qd is None else six(qd, what)
        robot = self._arm.robot
        return List((robot.bias_torque(joints, speeds) - robot.gravity_torque(joints)).tolist())

    @builtin(since="5.23 10.10")
    def get_jacobian(self, q: Value = None, tcp: Value = None) -> List:
        """J (6 x 6) at the tool, base axes, linear rows first."""
        tool = None if tcp is None else pose_argument(tcp, "get_jacobian")
        return _rows(self._arm.jacobian(self._q(q, "get_jacobian"), tool))

    @builtin(since="5.23 10.10")
    def get_jacobian_time_derivative(self, q: Value = None, qd: Value = None, tcp: Value = None) -> List:
        """dJ/dt (6 x 6), by central differences along qd: right to some 1e-9."""
        what = "get_jacobian_time_derivative"
        joints, speeds = self._q(q, what), self._arm.state.qd if qd is None else six(qd, what)
        tool, h = None if tcp is None else pose_argument(tcp, what), 1e-6  # [s]: 1e-6 squared is rounding
        ahead, behind = (self._arm.jacobian(joints + k * speeds, tool) for k in (h, -h))
        return _rows((ahead - behind) / (2.0 * h))

    # ------------------------------------------------------------------------------------------------------ settings

    @builtin()
    def get_steptime(self) -> float:
        """[s] of a frame."""
        return self._arm.frame

    @builtin()
    def set_tcp(self, pose: Value, tcp_name: Value = "") -> None:
        """The tool's frame at the flange."""
        self._arm.set_tcp(pose_argument(pose, "set_tcp"))

    @builtin(since="3.10")
    def get_tcp_offset(self) -> Pose:
        """The tool's frame at the flange."""
        return poses.pose(self._arm.tcp)

    @builtin("set_payload", "set_payload_mass")
    def set_payload(self, m: Value, cog: Value = None) -> None:
        """Mass [kg] at the flange, and its centre [m]; where that is not given, the tool's point."""
        centre: Sequence[float] = self._arm.tcp[1] if cog is None else tuple(cog)
        self._arm.set_payload(float(m), centre)

    @builtin()
    def set_payload_cog(self, CoG: Value) -> None:
        """Centre [m] of the mass at the flange."""
        self._arm.set_payload(self._arm.payload.mass, tuple(CoG))

    @builtin(since="5.10")
    def set_target_payload(
        self, m: Value, cog: Value, inertia: Value = NOTHING, transition_time: Value = 0
    ) -> None:
        """Mass [kg], centre [m] and inertia about it (Ixx Iyy Izz Ixy Ixz Iyz) [kg m2]; at once (modelled)."""
        xx, yy, zz, xy, xz, yz = six(inertia, "set_target_payload").tolist()
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        self._arm.set_payload(float(m), tuple(cog), matrix)

    @builtin("get_target_payload", "get_target_payload_mass")
    def get_target_payload(self) -> float:
        """[kg]."""
        return float(self._arm.payload.mass)

    @builtin()
    def get_target_payload_cog(self) -> List:
        """[m]."""
        return numbers(self._arm.payload.com)

    @builtin(since="3.15 5.10")
    def get_target_payload_inertia(self) -> List:
        """Ixx Iyy Izz Ixy Ixz Iyz [kg m2]."""
        I = self._arm.payload.inertia  # noqa: E741 - its symbol
        return numbers((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))

    @builtin()
    def set_gravity(self, d: Value) -> None:
        """The acceleration that the base feels (3,) [m/s2]: [0, 0, 9.82] stands upright."""
        self._arm.set_gravity(tuple(d))

    @builtin()
    def zero_ftsensor(self) -> None:
        """The force that is felt now counts as none."""
        arm = self._arm
        arm.wrench_zero = [a + b for a, b in zip(arm.wrench(), arm.wrench_zero, strict=True)]

    @builtin(since="3.10")
    def protective_stop(self) -> None:
        """Stop the arm, and the program."""
        raise ProtectiveStop("protective_stop() was called")

    # -------------------------------------------------------------------------------------- force mode and freedrive

    @builtin()
    def force_mode(self, task_frame: Value, selection_vector: Value, wrench: Value, type: Value, limits: Value) -> None:
        """Press with a wrench along some axes of a frame, follow the program along the others; type: see ForceMode."""
        if type not in (1, 2, 3):
            raise ScriptException(f"force_mode: type 1, 2 or 3, got {shown(type)}")
        arm = self._arm
        selected = six(selection_vector, "force_mode: selection_vector") != 0.0
        wish, most = six(wrench, "force_mode: wrench"), np.abs(six(limits, "force_mode: limits"))
        new = ForceMode(arm, pose_argument(task_frame, "force_mode"), selected, wish, int(type), most)
        if isinstance(arm.compliance, ForceMode):
            arm.compliance.changed(new)
        else:
            arm.compliance = new

    @builtin()
    def end_force_mode(self) -> None:
        """Follow the program along all axes."""
        self._release(ForceMode)

    @builtin(since="3.5")
    def force_mode_set_damping(self, damping: Value) -> None:
        """0 (none) to 1; stays until it is set again."""
        self._arm.force_damping = min(1.0, max(0.0, float(damping)))

    @builtin(since="5.0")
    def force_mode_set_gain_scaling(self, scaling: Value) -> None:
        """0 to 2; stays until it is set again."""
        self._arm.force_gain = min(2.0, max(0.0, float(scaling)))

    @builtin()
    def freedrive_mode(self, freeAxes: Value = EVERY, feature: Value = ORIGIN) -> None:
        """The arm can be led by hand, along the free axes of a frame."""
        free = six(freeAxes, "freedrive_mode: freeAxes") != 0.0
        self._arm.compliance = Freedrive(self._arm, free, pose_argument(feature, "freedrive_mode"))

    @builtin()
    def teach_mode(self) -> None:
        """The same, along all axes."""
        self.freedrive_mode()

    @builtin("end_freedrive_mode", "end_teach_mode")
    def end_freedrive_mode(self) -> None:
        """Hold the arm where it is."""
        self._release(Freedrive)

    @builtin(since="5.10")
    def get_freedrive_status(self) -> int:
        """1 while the arm can be led, else 0."""
        return int(isinstance(self._arm.compliance, Freedrive))

    def _release(self, kind: type) -> None:
        found = self._arm.compliance
        if found is not None and isinstance(found, kind):
            found.released(self._arm)
            self._arm.compliance = None
