"""An arm for the reader: in space, drawn to scale from its model (links as tubes, frames as triads, the path of the
tool), its solutions side by side, and as a table of its joints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tangere.errors import InvalidValue
from tangere.figures.axes import drawing, polyline
from tangere.figures.markup import Raw, floats, join, number, tag
from tangere.figures.plots import Figure, number_row, small_table
from tangere.figures.things import Thing, arrow
from tangere.figures.things import drawn as thing_drawn
from tangere.model.link_shapes import Segment, base_shape, link_shapes
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.kernels.solutions import IKBatch, IKSolutions
    from tangere.model.model import Model
    from tangere.robots import Robot

WIDTH, HEIGHT = 640, 480  # px of the still drawing
ELEVATION = math.radians(24.0)  # of the eye above the horizon: high enough to see the floor as a floor
GRID = 0.2  # m between the lines of the floor
_AXIS = 0.085  # share of the arm's size that a triad's axis is long: readable, and wrist triads hardly overlap
KINDS = ("tube", "joint", "cap", "pen")  # colours of tangere.model.link_shapes, classes of style.css
AXES = ("x", "y", "z")
APART = 14.0  # px between two letters of axes: nearer ones cannot be read
# where a frame's name may stand [px from its origin], the first that is free
PLACES = tuple(np.array(step) for step in ((-7.0, 14.0), (-12.0, -8.0), (24.0, 18.0), (-40.0, 4.0), (44.0, -4.0),
    (-34.0, 34.0), (34.0, 38.0), (-38.0, -30.0), (36.0, -34.0), (0.0, 52.0), (-66.0, 14.0), (66.0, 14.0)))  # fmt: skip
FELT = 0.02  # share of the largest force from which its arrow is drawn
ACROSS, SHRUNK = 4, 0.4  # small arms beside each other, and their size against a large one: eight fit a notebook


@dataclass(frozen=True)
class Scene:
    """Poses of an arm over time, ready to be projected. K poses of S tubes and m triads."""

    identifier: str
    times: Array  # (K,) s
    points: Array  # (K, S, 2, 3) m, base frame: start and end of each tube
    tubes: tuple[tuple[float, int, int], ...]  # (S,) radius [m], which of KINDS, 1 if its ends are round
    triads: Array  # (K, m, 4, 3): origin and the ends of x, y, z
    names: tuple[str, ...]  # (m,)
    paths: tuple[tuple[str, Array], ...] = ()  # style and (M, 3) points
    azimuth: float = 0.0  # rad, of the eye
    things: tuple[Thing, ...] = ()  # what stands around it
    forces: Array | None = None  # (K, 3) N on the tool, base axes
    first: int = 0  # the pose that is shown first
    arrows: tuple[tuple[Array, Array], ...] = ()  # still pushes: where (3,) m and how hard (3,) N, base axes

    @property
    def centre(self) -> Array:
        """Middle of everything that is drawn."""
        low, high = self._box()
        return np.asarray((low + high) / 2.0)

    @property
    def radius(self) -> float:
        """Of the ball around everything that is drawn [m]."""
        low, high = self._box()
        return max(0.1, 0.5 * float(np.linalg.norm(high - low)))

    def _box(self) -> tuple[Array, Array]:
        more = [*(path for _, path in self.paths), *(one.points for one in self.things)]
        every = np.concatenate([self.points.reshape(-1, 3), self.triads.reshape(-1, 3), *more])
        every = every[np.all(np.isfinite(every), axis=1)]
        if not len(every):
            return np.zeros(3), np.zeros(3)
        return every.min(axis=0), every.max(axis=0)

    def data(self) -> dict[str, Any]:
        """What the script needs to turn and to move it."""
        return {
            "id": self.identifier,
            "scene": True,
            "times": floats(self.times),
            "points": floats(self.points.reshape(-1)),
            "tubes": [[round(radius, 5), kind, ends] for radius, kind, ends in self.tubes],
            "triads": floats(self.triads.reshape(-1)),
            "names": list(self.names),
            "paths": [[style, floats(path.reshape(-1))] for style, path in self.paths],
            "centre": [float(v) for v in self.centre],
            "radius": self.radius,
            "azimuth": self.azimuth,
            "elevation": ELEVATION,
            "grid": GRID,
            "things": [one.data() for one in self.things],
            "forces": None if self.forces is None else floats(self.forces.reshape(-1)),
            "most": self.most,
            "first": self.first,
        }

    @property
    def most(self) -> float:
        """The largest force [N]; 0 where there is none."""
        return 0.0 if self.forces is None else float(np.nanmax(np.linalg.norm(self.forces, axis=1), initial=0.0))

    def still(self, pose: int | None = None) -> Raw:
        """The scene as SVG, seen from its own eye."""
        shown = self.first if pose is None else pose
        return drawing("The arm with its frames, drawn to scale", WIDTH, HEIGHT, self.drawn(shown))

    def drawn(self, pose: int = 0) -> Raw:
        """What the SVG holds, WIDTH x HEIGHT px."""
        scale = min(WIDTH, HEIGHT) / (2.0 * self.radius) * 1.12  # the ball has empty corners: fill them
        right, up, eye = view(self.azimuth, ELEVATION)
        centre = self.centre

        def flat(p: Array) -> Array:
            relative = np.asarray(p) - centre
            return np.stack([WIDTH / 2 + scale * relative @ right, HEIGHT / 2 - scale * relative @ up], axis=-1)

        parts = [tag("path", class_="floor", d="".join(polyline(flat(line)) for line in self._floor()))]
        pieces: list[Raw] = []
        for (start, end), (radius, kind, ends) in zip(self.points[pose], self.tubes, strict=True):
            towards = float((end - start) @ eye) / max(float(np.linalg.norm(end - start)), 1e-9)
            body, face, shine = _tube(flat(start), flat(end), scale * radius, towards, bool(ends))
            drawn = [tag("path", class_=f"solid {KINDS[kind]}", d=body)]
            drawn.append(tag("path", class_="shine", d=shine, stroke_width=f"{0.5 * scale * radius:.1f}"))
            if face:
                drawn.append(tag("path", class_=f"face {KINDS[kind]}", d=face))
            pieces.append(join(*drawn))
        tool = self.triads[pose, -1, 0]
        near = {one.name: float((one.middle - tool) @ eye) > 0.0 for one in self.things}
        parts += [thing_drawn(one, flat, eye, scale) for one in self.things if not near[one.name]]
        order = painting_order(self.points[pose] @ np.stack([right, up, eye], axis=1), [t[0] for t in self.tubes])
        parts += [pieces[k] for k in order]
        parts += [thing_drawn(one, flat, eye, scale) for one in self.things if near[one.name]]
        parts += [tag("path", class_=f"line {style}", d=polyline(flat(path))) for style, path in self.paths]
        parts += _frames(self.names, flat(self.triads[pose]))
        pushes = [*self.arrows, *([] if self.forces is None else [(tool, self.forces[pose])])]
        most = max([self.most, *(float(np.linalg.norm(force)) for _, force in self.arrows)])
        for point, force in pushes:
            size = float(np.linalg.norm(force))
            if size > FELT * most:
                # as long as the force is large, and never too short to be seen
                back = (0.08 + 0.22 * size / most) * self.radius * force / size
                parts.append(arrow(flat(point - back), flat(point), f"{number(size, 3)} N"))
        return join(*parts)

    def _floor(self) -> list[Array]:
        """Lines of the base plane, a whole number of cells around the base."""
        cells = max(2, math.ceil(0.75 * self.radius / GRID))
        reach = cells * GRID
        values = np.arange(-cells, cells + 1) * GRID
        return [np.array([[v, -reach, 0.0], [v, reach, 0.0]]) for v in values] + [
            np.array([[-reach, v, 0.0], [reach, v, 0.0]]) for v in values
        ]


def _frames(names: Sequence[str], triads: Array) -> list[Raw]:
    """Triads (m, 4, 2) [px] with letters where there is room, and names that stand apart, tied to their origins."""
    parts: list[Raw] = []
    letters: list[Array] = []
    for o, *ends in triads:
        for axis, e in zip(AXES, ends, strict=True):
            parts.append(tag("path", class_=f"axis {axis}", d=polyline(np.stack([o, e]))))
            tip = o + 1.18 * (e - o)
            if all(np.hypot(*(tip - other)) > APART for other in letters):
                letters.append(tip)
                parts.append(tag("text", axis, class_=f"axis {axis}", x=f"{tip[0]:.1f}", y=f"{tip[1] + 3:.1f}"))
    placed: list[Array] = []
    for name, (o, *_) in zip(names, triads, strict=True):
        free = (spot for step in PLACES if _clear(spot := o + step, placed, letters))
        at = next(free, o + PLACES[0])
        placed.append(at)
        if np.hypot(*(at - o)) > 2.0 * APART:
            parts.append(tag("path", class_="leader", d=polyline(np.stack([o, at + [6.0, -4.0]]))))
        parts.append(tag("text", name, class_="frame", x=f"{at[0]:.1f}", y=f"{at[1]:.1f}"))
    return parts


def _clear(spot: Array, names: Sequence[Array], letters: Sequence[Array]) -> bool:
    """Whether a name at this spot covers no other name and no letter of an axis."""
    boxes = all(abs(spot[0] - other[0]) > 34.0 or abs(spot[1] - other[1]) > 15.0 for other in names)
    return boxes and all(np.hypot(*(spot - [6.0, 4.0] - other)) > 12.0 for other in letters)


def view(azimuth: float, elevation: float) -> tuple[Array, Array, Array]:
    """Unit vectors to the right and up of the drawing, and towards the eye, in the base frame (parallel projection)."""
    ca, sa, ce, se = math.cos(azimuth), math.sin(azimuth), math.cos(elevation), math.sin(elevation)
    return np.array([-sa, ca, 0.0]), np.array([-ca * se, -sa * se, ce]), np.array([ca * ce, sa * ce, se])


def painting_order(ends: Array, radii: Sequence[float]) -> list[int]:
    """Which tube to draw after which, so that nearer ones cover farther ones.

    ends (S, 2, 3): ends to the right, up and towards the eye. Two tubes that overlap in the drawing are compared where
    they are nearest to each other there; the middle of a long tube says nothing about its end.
    """
    count = len(ends)
    steps = np.linspace(0.0, 1.0, 5)[:, None]
    samples = ends[:, None, 0] * (1.0 - steps) + ends[:, None, 1] * steps  # (S, 5, 3)
    middle = samples[:, 2, 2]
    behind: list[set[int]] = [set() for _ in range(count)]  # what must be drawn before
    for i in range(count):
        for j in range(i + 1, count):
            gaps = np.linalg.norm(samples[i][:, None, :2] - samples[j][None, :, :2], axis=2)
            a, b = np.unravel_index(int(np.argmin(gaps)), gaps.shape)
            if gaps[a, b] < radii[i] + radii[j] + 0.1:  # m; samples of a tube are up to 0.15 m apart
                nearer = i if samples[i][a, 2] > samples[j][b, 2] else j
                behind[nearer].add(i + j - nearer)
    left, order = set(range(count)), []
    while left:
        free = [k for k in left if not behind[k] & left] or list(left)  # a ring has no right order: farthest first
        order.append(min(free, key=lambda k: middle[k]))
        left.discard(order[-1])
    return order


def scene(
    robot: Robot,
    q: Array,
    times: Array,
    identifier: str,
    *,
    frames: bool,
    paths: tuple[tuple[str, Array], ...] = (),
    things: tuple[Thing, ...] = (),
    forces: Array | None = None,
    first: int = 0,
    arrows: tuple[tuple[Array, Array], ...] = (),
) -> Scene:
    """The arm at q (K, n). frames: triads at every link frame, else at base and tcp only. The rest: as Scene has it."""
    model = robot.model
    poses = robot.link_poses(q)  # (K, n, 4, 4)
    T_base_tcp = robot.pose(q)
    base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
    size = max(0.2, sum(float(np.linalg.norm((j.T_parent_joint @ j.T_joint_link)[:3, 3])) for j in model.joints))
    points: list[Array] = []
    tubes: list[tuple[float, int, int]] = []
    for T, segments in _bodies(model, base[:, 0], poses):
        for segment in segments:
            ends = np.stack([segment.start, segment.end])  # (2, 3) in the body's frame
            points.append(np.einsum("kij,ej->kei", T[:, :3, :3], ends) + T[:, None, :3, 3])
            tubes.append((segment.radius, KINDS.index(segment.colour), int(segment.round)))
    points.append(np.stack([poses[:, -1, :3, 3], T_base_tcp[:, :3, 3]], axis=1))
    tubes.append(
        (0.006 * size, KINDS.index("pen"), 1)
    )  # from the flange to the tcp, thin as a pen; a point without tool
    shown = np.concatenate([base, poses if frames else poses[:, :0], T_base_tcp[:, None]], axis=1)
    names = ["0", *(str(i + 1) for i in range(model.dof))] if frames else ["base"]
    if frames and np.allclose(T_base_tcp, poses[:, -1]):  # no tool: the last link frame is the tcp
        shown, names = shown[:, :-1], [*names[:-1], f"{names[-1]} = tcp"]
    else:
        names.append("tcp")
    length = _AXIS * size
    ends = shown[..., None, :3, 3] + length * np.swapaxes(shown[..., :3, :3], -1, -2)
    triads = np.concatenate([shown[..., None, :3, 3], ends], axis=-2)
    # the eye stands to the side of the arm's plane, so that the bend is seen
    tool = T_base_tcp[0, :3, 3]
    azimuth = math.atan2(tool[1], tool[0]) + math.radians(62.0)
    drawn = np.stack(points, axis=1)
    return Scene(
        identifier, times, drawn, tuple(tubes), triads, tuple(names), paths, azimuth, things, forces, first, arrows
    )  # fmt: skip


def _bodies(model: Model, base: Array, poses: Array) -> list[tuple[Array, list[Segment]]]:
    """Where each body is (K, 4, 4) and its shapes: the foot, then each link in its joint's frame after the motion."""
    bodies = [(base, [base_shape(model)])]
    for i, segments in enumerate(link_shapes(model)):
        bodies.append((poses[:, i] @ np.linalg.inv(model.joints[i].T_joint_link), segments))
    return bodies


def _tube(a: Array, b: Array, radius: float, towards: float, ends: bool) -> tuple[str, str, str]:
    """Outline, visible end and highlight of a cylinder (or capsule) from a to b [px].

    A circle of radius r seen at an angle is an ellipse with half axes r and r |towards|, towards being the share of
    the axis that points to the eye.
    """
    along = b - a
    length = float(np.hypot(*along))
    u = along / length if length > 1e-6 else np.array([1.0, 0.0])
    side = radius * np.array([-u[1], u[0]])
    minor = radius if ends else radius * abs(towards)
    arc = f"A{radius:.1f} {minor:.1f} {math.degrees(math.atan2(side[1], side[0])):.1f} 0 0 "
    body = f"M{_at(a + side)}L{_at(b + side)}{arc}{_at(b - side)}L{_at(a - side)}{arc}{_at(a + side)}Z"
    near = b if towards > 0.0 else a
    face = "" if ends else f"M{_at(near + side)}{arc}{_at(near - side)}{arc}{_at(near + side)}Z"
    light = -0.35 * side if side[1] > 0.0 else 0.35 * side  # from above
    return body, face, f"M{_at(a + light)}L{_at(b + light)}"


def _at(point: Array) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def arm_figure(robot: Robot, q: ArrayLike, *, frames: bool = False) -> Figure:
    """The arm at q (n,) [rad], drawn to scale; q (K, n): at the last of them, with the path of its tcp.

    frames: the frame of every link, x y z in orange, green and blue; else those of base and tcp.
    """
    T = robot.pose(q)  # checks q
    states = np.atleast_2d(np.asarray(q, dtype=np.float64))
    if states.ndim != 2 or not len(states):
        raise InvalidValue(f"q: one posture ({robot.dof},) or several (K, {robot.dof}), got shape {np.shape(q)}")
    path = np.asarray(T).reshape(-1, 4, 4)[:, :3, 3]
    paths = (("a", path),) if len(states) > 1 else ()
    drawn = scene(robot, states, np.arange(len(states), dtype=np.float64), "arm", frames=frames, paths=paths)
    return Figure(f"{robot.model.title}, drawn to scale", drawn.drawn(len(states) - 1), WIDTH, HEIGHT)


def solutions_figure(solutions: IKSolutions) -> Figure:
    """Every solution of a pose as a small arm of its own, with the names of its branches."""
    boxes = []
    for k, (q, branch) in enumerate(zip(solutions.q, _branches(solutions), strict=True)):
        place = f"translate({k % ACROSS * WIDTH * SHRUNK:g} {k // ACROSS * HEIGHT * SHRUNK:g}) scale({SHRUNK:g})"
        label = tag("text", branch, class_="title", x=24, y=34, style="font-size:22px")
        boxes.append(tag("g", arm_figure(solutions.robot, q).parts, label, transform=place))
    columns, rows = min(len(boxes), ACROSS) or 1, -(-len(boxes) // ACROSS) or 1
    title = f"{len(boxes)} solutions of {solutions.robot.model.title}"
    return Figure(title, join(*boxes), round(columns * WIDTH * SHRUNK), round(rows * HEIGHT * SHRUNK))


def _branches(solutions: IKSolutions) -> list[str]:
    """Shoulder, elbow and wrist of each solution in words; "" for an arm without branches."""
    words = zip(solutions.shoulder, solutions.elbow, solutions.wrist, strict=True)
    return [", ".join(word for word in three if word) for three in words]


def solutions_table(solutions: IKSolutions) -> str:
    """The solutions as HTML: joint positions in degrees (m for a slide), branches, and what is singular or too far."""
    robot = solutions.robot
    if not solutions:
        return join(f"no solution: out of reach by {number(1e3 * solutions.distance)} mm")
    turn = np.where(robot.revolute, 180.0 / np.pi, 1.0)
    flags = (
        (solutions.singular_shoulder, "singular shoulder"), (solutions.singular_elbow, "singular elbow"),
        (solutions.singular_wrist, "singular wrist"), (~solutions.within_limits, "beyond the limits"),
    )  # fmt: skip
    rows = [
        (*number_row(q * turn), branch, ", ".join(word for flag, word in flags if flag[k]))
        for k, (q, branch) in enumerate(zip(solutions.q, _branches(solutions), strict=True))
    ]
    units = ["°" if turning else "m" for turning in robot.revolute]
    head = (*(f"q{i + 1} [{unit}]" for i, unit in enumerate(units)), "shoulder, elbow, wrist", "")
    return join(f"{len(solutions)} solutions of {robot.name}", small_table(head, rows))


def batch_table(batch: IKBatch) -> str:
    """Poses by how many solutions they have, as HTML, and how far away those are that have none."""
    counts, away = batch.count.reshape(-1), batch.distance.reshape(-1)
    rows = []
    for count in np.unique(counts):
        poses = counts == count
        gap = f"out of reach by {number(1e3 * float(away[poses].max()))} mm at most" if count == 0 else ""
        rows.append((str(count), str(np.count_nonzero(poses)), gap))
    return join(repr(batch), small_table(("solutions", "poses", ""), rows))


def robot_table(robot: Robot) -> str:
    """Name and joints of a robot as HTML: limits of position, speed and torque, what each link weighs."""
    model = robot.model
    turn = np.where(robot.revolute, 180.0 / np.pi, 1.0)
    low, high, speed = (number_row(x * turn) for x in (robot.q_min, robot.q_max, robot.qd_max))
    torque, mass = number_row(robot.tau_max), number_row(np.array([link.mass for link in model.links]))
    rows = [
        (str(i + 1), joint.name, f"{low[i]} … {high[i]}", speed[i], torque[i], mass[i])
        for i, joint in enumerate(model.joints)
    ]
    unit = "°" if robot.revolute.all() else "° or m"
    head = ("", "joint", f"position [{unit}]", f"speed [{unit}/s]", "torque [Nm]", "link [kg]")
    parts = [f"{number(sum(link.mass for link in model.links))} kg", f"parameters {model.parameters}"]
    parts += [f"payload {number(model.payload.mass)} kg"] if model.payload is not None else []
    return join(tag("b", model.title), f": {', '.join(parts)}", small_table(head, rows))
