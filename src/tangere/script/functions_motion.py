"""Builtins that move the arm. Each is a generator: what it does in a frame stands before its yield.

A move uses one frame at least. Only one thread may move the arm in a frame. Where no thread does, the arm brakes.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from tangere.script.arm import Arm, ProtectiveStop
from tangere.script.builtin import builtin
from tangere.script.compliance import COULOMB, VISCOUS, six
from tangere.script.functions_values import pose_argument
from tangere.script.host import STILL, Host
from tangere.script.poses import Frame
from tangere.script.segments import Arc, Blend, JointSegment, Segment, Straight, ToolSegment, Trapezoid
from tangere.script.values import Pose, ScriptException, Value, shown
from tangere.types import Array

Frames = Generator[None, None, None]
# What servoj takes of its two numbers, and how much of each joint's speed an optimove is given (UR's ranges).
LOOKAHEAD, GAIN = (0.03, 0.2), (100.0, 2000.0)
USUAL_GAIN = 300.0
OPTIMOVE = 40.0  # [rad/s2] acceleration of an optimove at full share (modelled)
OPTIMOVE_TOOL = (3.0, 15.0)  # [m/s], [m/s2] of an optimovel at full share (modelled)
SLOWEST = 1e-6  # [rad/s] counts as rest


def _ramp(now: Array, goal: Array, most: float) -> Array:
    """From one velocity towards another, by `most` at the largest entry."""
    way = goal - now
    size = float(np.abs(way).max())
    return goal if size <= most else now + way * (most / size)


class MotionFunctions:
    """Moves of one arm."""

    def __init__(self, arm: Arm, host: Host) -> None:
        self._arm, self._host = arm, host
        self._scales: list[tuple[Value, Array]] = [(None, VISCOUS), (None, COULOMB)]

    def _frames(self, time: Value) -> int:
        """Frames of a time [s], one at least."""
        if not math.isfinite(time):
            raise ScriptException(f"a time is needed, got {shown(time)}")
        return max(1, round(float(time) / self._arm.frame))

    # ----------------------------------------------------------------------------------------------- moves to a goal

    def _start(self) -> tuple[Array, Frame]:
        """Where a move begins: at the end of the one that it is blended with, else at the target."""
        arm = self._arm
        if arm.tail is None:
            return arm.q, arm.frame_at(arm.q)
        end = arm.tail[0].end
        return arm.followed(end, arm.q)[0], end

    def _left(self) -> float:
        """[s] that the move before still takes: the next one speeds up in that time."""
        tail = self._arm.tail
        return 0.0 if tail is None else max(0.0, tail[0].law.duration - tail[1])

    def _goal(self, value: Value, what: str) -> Frame:
        """The tool at a pose that can be reached, or at six joint angles."""
        if not isinstance(value, Pose):
            return self._arm.frame_at(six(value, what))
        goal = pose_argument(value, what)
        if self._arm.nearest(goal, self._arm.q) is None:
            raise ScriptException(f"{what}: {shown(value)} cannot be reached")
        return goal

    def _joints(self, value: Value, near: Array, what: str) -> Array:
        if not isinstance(value, Pose):
            return six(value, what)
        found = self._arm.nearest(pose_argument(value, what), near)
        if found is None:
            raise ScriptException(f"{what}: {shown(value)} cannot be reached")
        return found

    def _run(self, segment: Segment, radius: float) -> Frames:
        """Follow a segment, first blended with what is left of the move before, up to its own blend radius."""
        arm, host = self._arm, self._host
        tail, arm.tail = arm.tail, None
        blend = None if tail is None else Blend(arm, *tail, segment)
        busy = 0.0 if blend is None else blend.handed_over
        law = segment.law
        time, last = 0.0, max(law.duration, busy)
        x, y, z = segment.end[1]
        arm.waypoint = segment.end
        while True:
            speed = host.speed
            time += arm.frame * speed
            motion = segment if blend is None or time >= busy else blend
            q, qd = motion.joints(arm, time, speed)
            arm.move(q, qd, (qd - arm.qd) / arm.frame if qd is not arm.qd else STILL)
            yield
            if time >= last:
                arm.waypoint = None
                return
            if radius > 0.0 and time >= busy and time >= law.ramp:
                p = arm.frame_at(arm.q)[1]
                if (p[0] - x) ** 2 + (p[1] - y) ** 2 + (p[2] - z) ** 2 < radius * radius:
                    law.hand_over(time)
                    arm.tail = (segment, time)
                    return

    def _joint_move(self, goal: Value, a: float, v: float, t: float, r: float, what: str) -> Frames:
        start, _ = self._start()
        end = self._joints(goal, start, what)
        outside = (end < self._arm.robot.q_min - 1e-9) | (end > self._arm.robot.q_max + 1e-9)
        if outside.any():
            joint = int(outside.argmax()) + 1
            raise ScriptException(f"{what}: joint {joint} cannot turn to {end[joint - 1]:.4g} rad")
        law = Trapezoid(float(np.abs(end - start).max()), float(v), float(a), float(t), self._left())
        return self._run(JointSegment(self._arm, start, end, law), float(r))

    def _tool_move(self, goal: Value, a: float, v: float, t: float, r: float, what: str) -> Frames:
        _, start = self._start()
        end = self._goal(goal, what)
        line = Straight(start, end)
        law = Trapezoid(line.length, float(v), float(a), float(t), self._left())
        return self._run(ToolSegment(self._arm, start, end, law, line), float(r))

    @builtin(blocking=True)
    def movej(self, q: Value, a: Value = 1.4, v: Value = 1.05, t: Value = 0, r: Value = 0) -> Frames:
        """Joints together to q [rad] or to a pose; a [rad/s2], v [rad/s] of the leading one; t [s]; r: blend [m]."""
        yield from self._joint_move(q, a, v, t, r, "movej")

    @builtin(blocking=True)
    def movel(self, pose: Value, a: Value = 1.2, v: Value = 0.25, t: Value = 0, r: Value = 0) -> Frames:
        """The tool straight to a pose, or to that of six joint angles; a [m/s2], v [m/s]; t [s]; r: blend [m]."""
        yield from self._tool_move(pose, a, v, t, r, "movel")

    @builtin(blocking=True)
    def movep(self, pose: Value, a: Value = 1.2, v: Value = 0.25, r: Value = 0) -> Frames:
        """As movel; the speed stays where points follow each other in a line."""
        yield from self._tool_move(pose, a, v, 0.0, r, "movep")

    @builtin(blocking=True)
    def movec(
        self, pose_via: Value, pose_to: Value, a: Value = 1.2, v: Value = 0.25, r: Value = 0, mode: Value = 0
    ) -> Frames:
        """The tool on an arc over a point to a pose. mode 1: it keeps its angle to the arc."""
        _, start = self._start()
        via, end = self._goal(pose_via, "movec"), self._goal(pose_to, "movec")
        curve = Arc(start, via[1], end, fixed=mode == 1)
        law = Trapezoid(curve.length, float(v), float(a), start=self._left())
        yield from self._run(ToolSegment(self._arm, start, curve.goal, law, curve), float(r))

    @builtin(blocking=True, since="5.21 10.8")
    def optimovej(self, q: Value, a: Value = 0.3, v: Value = 0.3, r: Value = 0) -> Frames:
        """As movej with shares 0 ... 1 of what the arm can."""
        a, v = self._shares(a, v)
        yield from self._joint_move(q, a * OPTIMOVE, v * float(self._arm.robot.qd_max.min()), 0.0, r, "optimovej")

    @builtin(blocking=True, since="5.21 10.8")
    def optimovel(self, pose: Value, a: Value = 0.3, v: Value = 0.3, r: Value = 0) -> Frames:
        """As movel with shares 0 ... 1 of what the arm can."""
        a, v = self._shares(a, v)
        yield from self._tool_move(pose, a * OPTIMOVE_TOOL[1], v * OPTIMOVE_TOOL[0], 0.0, r, "optimovel")

    @staticmethod
    def _shares(a: Value, v: Value) -> tuple[float, float]:
        if not (0.0 < a <= 1.0 and 0.0 < v <= 1.0):
            raise ScriptException(f"optimove: shares above 0, at most 1, got a = {shown(a)}, v = {shown(v)}")
        return float(a), float(v)

    @builtin(blocking=True)
    def servoc(self, pose: Value, a: Value = 1.2, v: Value = 0.25, r: Value = 0) -> Frames:
        """The tool to a pose as movel goes (modelled)."""
        yield from self._tool_move(pose, a, v, 0.0, r, "servoc")

    # ----------------------------------------------------------------------------------------- goals of every frame

    @builtin(blocking=True)
    def servoj(
        self, q: Value, a: Value = 0, v: Value = 0, t: Value = 0.002, lookahead_time: Value = 0.1, gain: Value = 300
    ) -> Frames:
        """Follow joint angles that come again and again; a and v mean nothing, as UR says.

            qdd = w^2 (q_goal - q) - 2 w qd,   w = 2 / lookahead_time sqrt(gain / 300)

        A goal that moves evenly is followed with a delay of lookahead_time [s] at the usual gain (modelled).
        """
        arm, goal = self._arm, six(q, "servoj")
        w = 2.0 / min(LOOKAHEAD[1], max(LOOKAHEAD[0], lookahead_time))
        w *= math.sqrt(min(GAIN[1], max(GAIN[0], gain)) / USUAL_GAIN)
        limit = arm.robot.qd_max
        arm.tail = None
        for _ in range(self._frames(t)):
            qdd = (goal - arm.q) * (w * w) - arm.qd * (2.0 * w)
            qd = arm.qd + qdd * arm.frame
            if abs(qd).max() > 1.0:  # cheap first: no joint of a UR is slower than that
                qd = np.minimum(np.maximum(qd, -limit), limit)
            arm.move(arm.q + qd * arm.frame, qd, qdd)
            yield

    @builtin(blocking=True)
    def speedj(self, qd: Value, a: Value = 1.4, t: Value = 0) -> Frames:
        """Joint speeds [rad/s], by acceleration a [rad/s2]; returns after t [s], or when they are reached."""
        arm, goal = self._arm, six(qd, "speedj")
        # programs that compute their acceleration come to 0: the speed stays for that time
        most = 0.0 if a == 0 and t > 0 else self._positive(a, "speedj") * arm.frame
        frames, count = self._frames(t) if t > 0 else 0, 0
        arm.tail = None
        while True:
            wish = goal * self._host.speed
            new = arm.checked_speed(_ramp(arm.qd, wish, most))
            arm.change(new)
            yield
            count += 1
            if count >= frames if frames else np.array_equal(new, wish):
                return

    @builtin(blocking=True)
    def speedl(self, xd: Value, a: Value = 1.2, t: Value = 0, aRot: Value = None) -> Frames:
        """Velocity of the tool (6,) [m/s, rad/s], base axes, by acceleration a [m/s2] (aRot [rad/s2])."""
        arm, goal = self._arm, six(xd, "speedl")
        most = self._positive(a, "speedl") * arm.frame
        turning = most if aRot is None else self._positive(aRot, "speedl") * arm.frame
        frames, count = self._frames(t) if t > 0 else 0, 0
        arm.tail = None
        now: Array = arm.jacobian(arm.q).dot(arm.qd)
        while True:
            wish = goal * self._host.speed
            new = np.concatenate((_ramp(now[:3], wish[:3], most), _ramp(now[3:], wish[3:], turning)))
            self._tool_speed(new)
            now = new
            yield
            count += 1
            if count >= frames if frames else np.array_equal(new, wish):
                return

    def _tool_speed(self, v: Array) -> None:
        """One frame with a velocity of the tool at its end."""
        arm = self._arm
        try:
            qd: Array = np.asarray(np.linalg.solve(arm.jacobian(arm.q + arm.qd * arm.frame), v), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise ProtectiveStop("the arm is singular: no joint speeds give this velocity of the tool") from None
        arm.checked_speed(qd)
        arm.change(qd)

    @staticmethod
    def _positive(a: Value, what: str) -> float:
        if not (a > 0.0 and math.isfinite(a)):
            raise ScriptException(f"{what}: the acceleration must be positive, got {shown(a)}")
        return float(a)

    @builtin(blocking=True)
    def stopj(self, a: Value = 2.0) -> Frames:
        """All joints to rest by a [rad/s2]."""
        arm, most = self._arm, self._positive(a, "stopj") * self._arm.frame
        arm.tail = None
        while True:
            new = _ramp(arm.qd, STILL, most)
            arm.change(new)
            yield
            if new is STILL:
                return

    @builtin(blocking=True)
    def stopl(self, a: Value = 2.0, aRot: Value = None) -> Frames:
        """The tool to rest, straight on, by a [m/s2]."""
        arm, most = self._arm, self._positive(a, "stopl") * self._arm.frame
        arm.tail = None
        while True:
            v = arm.jacobian(arm.q).dot(arm.qd)
            size = float(np.abs(v).max())
            share = 0.0 if size <= most or np.abs(arm.qd).max() < SLOWEST else 1.0 - most / size
            new = arm.qd * share if share else STILL
            arm.change(new)
            yield
            if new is STILL:
                return

    @builtin(
        "direct_torque", "torque_command", blocking=True, since="5.23 10.10",
        later={"viscous_scale": "5.25.1 10.12.1", "coulomb_scale": "5.25.1 10.12.1"},
    )  # fmt: skip
    def direct_torque(
        self, torque: Value, viscous_scale: Value = None, coulomb_scale: Value = None, friction_comp: Value = None
    ) -> Frames:
        """Joint torques [Nm] for one frame; gravity is added. Scales 0 ... 1: how much friction is made up for.

        friction_comp: of older versions, means nothing where scales are given; also taken as the second argument.
        """
        if isinstance(viscous_scale, bool):
            viscous_scale, friction_comp = None, viscous_scale
        viscous, coulomb = VISCOUS, COULOMB
        if viscous_scale is not None or coulomb_scale is not None:
            viscous = VISCOUS if viscous_scale is None else self._scale(0, viscous_scale)
            coulomb = COULOMB if coulomb_scale is None else self._scale(1, coulomb_scale)
        elif friction_comp is False:
            viscous = coulomb = STILL
        self._arm.torque(six(torque, "direct_torque"), viscous, coulomb)
        yield

    def _scale(self, which: int, value: Value) -> Array:
        """Of viscous (0) or Coulomb (1) friction; a loop says the same in every frame."""
        said, found = self._scales[which]
        if value == said:
            return found
        found = six(value, "direct_torque")
        if found.min() < 0.0 or found.max() > 1.0:
            raise ScriptException(f"direct_torque: scales from 0 to 1, got {shown(value)}")
        self._scales[which] = value, found
        return found
