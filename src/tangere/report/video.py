"""A clip of a run, and a still: the arm in its own shapes, drawn off screen by MuJoCo."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, extra
from tangere.figures.markup import strided
from tangere.logs.files import replacing
from tangere.plants.scene.mjcf import to_mjcf
from tangere.report.section import drawable
from tangere.types import Array

if TYPE_CHECKING:
    from tangere.logs.log import Log
    from tangere.plants.scene.scene import Scene
    from tangere.robots import Robot

Picture = NDArray[np.uint8]

FRAMES = 150  # at most: ten seconds at 15 frames a second, about 12 s of software rendering at 640 x 480
_RATE = 30.0  # frames a second at most: more is not seen
_PIECES = 300  # tubes that a path is drawn with; the off-screen scene holds 1000 shapes, the arm's included
_TRAIL = 0.004  # m, radius of those tubes: seen from 2 m away
INK = 800  # points of marks: as many as fit
_LINE = 0.0012  # m, radius of a mark: wider than ink, so that it is seen at all
_PIECE = "tangere-path-"
_REACH = 1.08  # distance of the eye, in extents of what is seen: everything in view at MuJoCo's 45 degrees
_AROUND = 0.2  # [m] links on both sides of the points between which they are
_DOWN = -18.0  # degrees, the eye looks down: the floor is seen as a floor
# colours [0, 1]: a bright sky and floor, so that the picture looks at home on a white page
_SKY = ((1.0, 1.0, 1.0), (0.82, 0.87, 0.92))
_FLOOR = ((0.80, 0.81, 0.82), (0.74, 0.76, 0.78))
_INK = (0.78, 0.31, 0.04, 1.0)


def write_video(
    plant_or_robot: Any,
    log: Log,
    path: str | os.PathLike[str],
    *,
    frames: int = FRAMES,
    size: tuple[int, int] = (640, 480),
    trail: bool = True,
    marks: tuple[Array, Array] | None = None,
) -> Path:
    """Write the motion in `log` as an mp4 in real time (faster where that would take more than `frames` pictures).

    plant_or_robot: a Robot, or a plant that has one (its scene - table, wall, pen - is drawn too). Column q_true is
    shown where there is one, else q. trail: the path of the tool so far. marks: instead of it what the tool has left
    behind, times (K,) [s] and points (K, 3) [m], at most INK of them, with a row of NaN where it was lifted. Needs
    mujoco, OSMesa or EGL, imageio and imageio-ffmpeg: MissingExtra says what is not there.
    """
    if not 1 <= frames <= FRAMES:
        raise InvalidValue(f"frames: 1 to {FRAMES}, got {frames!r}")
    robot, scene = _robot_of(plant_or_robot)
    q = log["q_true"] if "q_true" in log else log["q"]
    good = np.flatnonzero(drawable(q))
    if not len(good) or q.shape[1] != robot.dof:
        raise InvalidValue(f"no motion to film: the log has {len(good)} samples of {q.shape[1]} joints for {robot!r}")
    times, q = log.time[good], q[good]
    wanted = max(1, min(frames, math.ceil((times[-1] - times[0]) * _RATE)))
    shown = np.searchsorted(times, np.linspace(times[0], times[-1], wanted)).clip(0, len(times) - 1)
    rate = float(np.clip(wanted / max(times[-1] - times[0], 1e-3), 1.0, _RATE))
    imageio = _imageio()
    tcp, until, look = robot.pose(q)[:, :3, 3], shown if trail else None, (_PIECES, _TRAIL)
    if marks is not None:
        until, tcp, look = np.searchsorted(marks[0], times[shown], side="right"), marks[1][:INK], (INK, _LINE)
    with replacing(path) as temporary:
        # libx264 wants a name that ends in mp4 and even sides; quality 7 of 10 is about 300 kB for 150 pictures
        clip = temporary.with_suffix(".mp4")
        try:
            with imageio.get_writer(clip, fps=rate, quality=7, macro_block_size=2, codec="libx264") as writer:
                for picture in _pictures(robot, scene, q[shown], size, tcp, until, *look):
                    writer.append_data(picture)
            clip.replace(temporary)
        finally:
            clip.unlink(missing_ok=True)
    return Path(path)


def write_still(
    path: str | os.PathLike[str], robot: Robot | None = None, *, size: tuple[int, int] = (960, 540)
) -> Path:
    """Write a picture (png) of an arm that draws a circle: a UR10e unless another is given; at most 960 x 540."""
    import tangere

    arm = tangere.robot("ur10e") if robot is None else robot
    q, circle = _circle(arm)
    width, height = size
    (large,) = _pictures(arm, None, q[None], (2 * width, 2 * height), circle, np.array([len(circle) - 1]))
    # twice as large and averaged: smooth edges, which the software renderer does not make itself
    picture = large.reshape(height, 2, width, 2, 3).mean(axis=(1, 3)).astype(np.uint8)
    imageio = _imageio()
    with replacing(path) as temporary:
        temporary.write_bytes(imageio.imwrite("<bytes>", picture, format="png"))
    return Path(path)


def _pictures(
    robot: Robot,
    scene: Scene | None,
    q: Array,
    size: tuple[int, int],
    path: Array,
    until: NDArray[Any] | None,
    most: int = _PIECES,
    radius: float = _TRAIL,
) -> Iterator[Picture]:
    """Pictures (height, width, 3) of the arm at q (K, n), each with the path up to index until[k]."""
    render = _renderer()
    mujoco = import_module("mujoco")
    rows = strided(len(path), most)
    model = _model(robot, scene, path[rows], radius)
    data = mujoco.MjData(model)
    points = np.concatenate([robot.link_poses(q)[..., :3, 3].reshape(-1, 3), path, np.zeros((1, 3))])
    points = points[np.isfinite(points[:, 0])]
    low, high = points.min(axis=0), points.max(axis=0)
    extent = max(0.3, float(np.linalg.norm(high - low)))
    middle = (low + high) / 2.0
    if radius != _LINE:
        extent += _AROUND
    else:  # what is drawn is what one wants to see: half way towards it, and all of it in view
        middle = (middle + np.nanmean(path, axis=0)) / 2.0
    side = math.degrees(math.atan2(path[0, 1], path[0, 0])) + 180.0 - 55.0  # to the side of the arm's plane
    camera = render.Camera(tuple(float(v) for v in middle), _REACH * extent, side, _DOWN)
    screen = render.OffScreen(model, *size)
    # a piece's number is that of the row where it begins; where the tool was lifted there is none
    named = [(g, model.geom(g).name or "") for g in range(model.ngeom)]
    pieces = [g for g, name in named if name.startswith(_PIECE)]
    begins = np.array([int(name.removeprefix(_PIECE)) for _, name in named if name.startswith(_PIECE)], dtype=int)
    try:
        for k in range(len(q)):
            data.qpos[: robot.dof] = q[k]
            mujoco.mj_forward(model, data)
            seen = 0 if until is None else int(np.searchsorted(rows, until[k], side="right")) - 1
            model.geom_rgba[pieces, 3] = begins < seen  # what is not drawn yet is transparent
            yield screen.picture(data, camera)
    finally:
        screen.close()


def _model(robot: Robot, scene: Scene | None, path: Array, radius: float) -> Any:
    """The arm in its scene with a floor, a sky and the path as short tubes named piece0, piece1, ..."""
    mujoco = import_module("mujoco")
    spec = mujoco.MjSpec.from_string(to_mjcf(robot.model, scene=scene))
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=_SKY[0], rgb2=_SKY[1], width=256, height=256,
    )  # fmt: skip
    spec.add_texture(
        name="floor", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=_FLOOR[0], rgb2=_FLOOR[1], width=256, height=256,
    )  # fmt: skip
    floor = spec.add_material(name="floor")
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "floor"
    floor.texrepeat = [5.0, 5.0]  # fields of about 0.2 m
    floor.texuniform = True
    nothing = {"contype": 0, "conaffinity": 0}
    world = spec.worldbody
    if scene is None or not any(body.kind == "surface" for body in scene.bodies):
        plane = mujoco.mjtGeom.mjGEOM_PLANE
        size, rgba = [4.0, 4.0, 0.05], [1.0, 1.0, 1.0, 1.0]
        world.add_geom(type=plane, size=size, pos=[0.0, 0.0, -1e-3], material="floor", rgba=rgba, **nothing)
    world.add_light(pos=[1.0, -1.0, 3.0], dir=[-0.3, 0.3, -1.0], diffuse=[0.35] * 3, specular=[0.1] * 3)
    for k, (start, end) in enumerate(pairwise(path)):
        if np.linalg.norm(end - start) > 1e-6:  # MuJoCo refuses a tube without a length
            ends = [*start.tolist(), *end.tolist()]
            capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
            world.add_geom(name=f"{_PIECE}{k}", type=capsule, fromto=ends, size=[radius, 0, 0], rgba=_INK, **nothing)
    return spec.compile()


def _circle(robot: Robot) -> tuple[Array, Array]:
    """A pose of the arm, and the points of a circle of 0.15 m in front of it with the tool pointing down."""
    reach = float(np.linalg.norm(robot.pose(np.zeros(robot.dof))[:3, 3]))
    centre = np.array([0.55 * reach, -0.1 * reach, 0.25 * reach])
    angles = np.linspace(-1.2 * math.pi, 0.45 * math.pi, 200)  # the tool ends at the far side, the line is seen
    points = centre + 0.125 * reach * np.stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)], axis=1)
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    T[:3, 3] = points[-1]
    solutions = np.asarray(robot.inverse_kinematics(T).q)
    elbow_up = solutions[np.argmax(robot.link_poses(solutions)[:, 1, 2, 3])]  # the highest elbow looks best
    return elbow_up, points


def _robot_of(source: Any) -> tuple[Robot, Scene | None]:
    robot = getattr(source, "robot", source)
    if not hasattr(robot, "link_poses"):
        raise InvalidValue(f"a video needs a Robot or a plant that has one, got {type(source).__name__}")
    return robot, getattr(source, "scene", None)


def _renderer() -> Any:
    with extra("pictures are drawn by mujoco: pip install 'tangere[sim]'"):
        import_module("mujoco")
    return import_module("tangere.plants.render")


def _imageio() -> Any:
    with extra("videos need imageio and imageio-ffmpeg: pip install 'tangere[video]'"):
        import_module("imageio_ffmpeg")
        return import_module("imageio.v2")
