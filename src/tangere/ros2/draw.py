"""The image node: a picture, from a file or as a message, becomes the path of a pen; and what the arm drew of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from tangere.apps.drawing.draw_picture import Prepared, prepare
from tangere.apps.drawing.settings import DrawingSettings
from tangere.errors import InvalidValue, TangereError, extra
from tangere.ros2.cdr import Message
from tangere.ros2.ik import PATH, PATH_TYPE, path_message
from tangere.ros2.node import Node
from tangere.ros2.participant import Quality
from tangere.types import Array

IMAGE, IMAGE_TYPE = "/image", "sensor_msgs/msg/Image"
STEP = 0.02  # [s] between two poses of a path: at 50 mm/s one each millimetre; cubics between them stray by nanometres
DOWN = 0.5e-3  # [m] above the paper below which the pen leaves ink: half of what a soft tip gives way
THERE = 2e-4  # [m] from the end of its path: the pen is there
ENCODINGS = {"mono8": "L", "8UC1": "L", "rgb8": "RGB", "bgr8": "RGB", "rgba8": "RGBA", "bgra8": "RGBA"}
LARGEST = 8000  # pixels of the longer side


@dataclass(frozen=True)
class Drawn:
    """What the arm drew: lines (k, 2) [m] on the paper, and how far ink and plan are from each other at most [m]."""

    lines: tuple[Array, ...]
    astray: float  # ink from the plan
    missing: float  # the plan from the ink

    @property
    def length(self) -> float:
        """[m] of ink."""
        return float(sum(np.linalg.norm(np.diff(line, axis=0), axis=1).sum() for line in self.lines))


class DrawNode:
    """Publishes the path of tool0 for pictures on /tangere/path, and follows the pen by the arm's joint states."""

    def __init__(self, node: Node, settings: DrawingSettings, *, listen: bool = True) -> None:
        self.node, self.settings = node, settings
        self.pictures: SimpleQueue[Message] = SimpleQueue()
        self._publisher = node.publisher(PATH, PATH_TYPE)
        self._tips: list[Array] = []
        self._joints: tuple[str, ...] = ()
        self._robot: Any = None
        if listen:
            node.subscription(IMAGE, IMAGE_TYPE, self._image, Quality(2), anybody=True)
        node.subscription("/joint_states", "sensor_msgs/msg/JointState", self._state, Quality(500), anybody=True)

    def _image(self, message: Message) -> None:
        if self.pictures.qsize() < 4:  # a camera sends thirty a second; an arm draws one in minutes
            self.pictures.put(message)

    def picture(self, seconds: float) -> Message | None:
        """The next picture that comes as a message; None: none within the time."""
        try:
            return self.pictures.get(timeout=seconds)
        except Empty:
            return None

    def plan(self, picture: str | Message) -> Prepared:
        """Strokes and the pen's way, of a file or a message."""
        if isinstance(picture, str):
            return prepare(picture, self.settings)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "picture.png"
            file.write_bytes(png_of(picture))
            return prepare(file, self.settings)

    def send(self, prepared: Prepared, seconds: float = 30.0, *, follow: bool = False) -> int:
        """Publish the path as soon as somebody listens; how many poses it has. follow: `drawn` is asked for next."""
        plan = prepared.plan
        if not self.node.wait(lambda: self._publisher.writer.matched > 0, seconds):
            raise TangereError(f"nobody listens to {PATH}; start `tangere ros2 ik` first (same --domain?)")
        every = max(1, round(STEP / plan.period))
        chosen = np.unique(np.append(np.arange(0, len(plan.q), every), len(plan.q) - 1))
        tool = np.linalg.inv(prepared.robot.model.T_flange_tcp)
        T = prepared.robot.pose(plan.q[chosen]) @ tool
        self._joints = tuple(joint.name for joint in prepared.robot.model.joints)
        self._tips, self._robot = [], prepared.robot if follow else None
        self._publisher.publish(path_message(T, (chosen * plan.period).tolist()))
        return len(chosen)

    def drawn(self, prepared: Prepared, progress: Callable[[float], None] = lambda share: None) -> Drawn:
        """Wait until the arm has drawn it; what it drew. An arm that does not move is an error after a while."""
        plan = prepared.plan
        last = _on_paper(prepared, prepared.robot.pose(plan.q[-1:])[:, :3, 3])[0]
        limit = 3.0 * plan.duration + 60.0
        seen, was_down = 0, False

        def over() -> bool:
            nonlocal seen, was_down
            new = self._tips[seen:]
            if not new:
                return False
            seen += len(new)
            way = _on_paper(prepared, np.array(new))
            was_down = was_down or bool((way[:, 2] < DOWN).any())
            return was_down and float(np.linalg.norm(way[-1] - last)) < THERE

        if not self.node.wait(over, limit):
            raise TangereError(f"the pen did not come to the end of its path within {limit:.0f} s; does the arm move?")
        self._robot = None
        return traced(prepared, np.array(self._tips))

    def _state(self, message: Message) -> None:
        if not self._joints or self._robot is None:
            return
        try:
            q = np.asarray(message.position, dtype=np.float64)[[message.name.index(joint) for joint in self._joints]]
        except (ValueError, IndexError):
            return
        self._tips.append(self._robot.pose(q)[:3, 3])


def traced(prepared: Prepared, tips: Array) -> Drawn:
    """Ink of a way of the tip (k, 3) in base: where it was down on the paper."""
    way = _on_paper(prepared, tips)
    down = way[:, 2] < DOWN
    edges = np.flatnonzero(np.diff(np.concatenate(([0], down.astype(int), [0]))))
    lines = tuple(way[a:b, :2] for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a > 1)
    if not lines:
        return Drawn((), float("inf"), float("inf"))
    ink = np.concatenate(lines)
    wanted = np.concatenate(prepared.plan.polylines())
    return Drawn(lines, _farthest(ink[:: max(1, len(ink) // 4000)], wanted), _farthest(wanted, ink))


def _farthest(points: Array, others: Array) -> float:
    """The greatest distance [m] of a point to the nearest of the others."""
    return max(float(np.sqrt(((others - point) ** 2).sum(axis=1).min())) for point in points)


def _on_paper(prepared: Prepared, points: Array) -> Array:
    """Points (k, 3) in base as x, y and height on the paper."""
    T = np.linalg.inv(prepared.canvas.T_base_canvas)
    return np.asarray(points @ T[:3, :3].T + T[:3, 3])


def png_of(message: Message) -> bytes:
    """A sensor_msgs/Image as PNG; 8 bits a channel."""
    with extra("pictures need Pillow: pip install 'tangere[draw]'"):
        from PIL import Image
    import io

    mode = ENCODINGS.get(message.encoding)
    if mode is None:
        raise InvalidValue(f"a picture in {message.encoding!r}: known are {', '.join(ENCODINGS)}")
    channels, w, h, step = len(mode), int(message.width), int(message.height), int(message.step)
    data = np.asarray(message.data, dtype=np.uint8)
    if not (0 < w <= LARGEST and 0 < h <= LARGEST and step >= w * channels and len(data) >= h * step):
        raise InvalidValue(f"a picture of {w} x {h} pixels, {step} bytes a line, does not go with {len(data)} bytes")
    pixels = data[: h * step].reshape(h, step)[:, : w * channels].reshape(h, w, channels)
    if message.encoding.startswith("bgr"):
        pixels = pixels[..., [2, 1, 0, *range(3, channels)]]
    out = io.BytesIO()
    Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode=mode).save(out, "PNG")
    return out.getvalue()


def image_message(pixels: Array) -> Message:
    """A grey picture (h, w) of bytes as sensor_msgs/Image."""
    grey = np.asarray(pixels, dtype=np.uint8)
    return Message(height=grey.shape[0], width=grey.shape[1], encoding="mono8", step=grey.shape[1], data=grey.tobytes())
