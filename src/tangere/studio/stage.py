"""What stands in the scene: floor, arms, arrows, labels, touches. Everything that is drawn goes through here."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.kinematics.rotation import quaternion_from_matrix
from tangere.report.section import link_words
from tangere.robots import Robot
from tangere.studio.meshes import Mesh, arm_meshes, colour, package_meshes
from tangere.types import Array, Event

FORCE = (214, 69, 46)  # a force that acts
FELT = (232, 146, 12)  # what is felt: amber
PER_NEWTON = 1.0 / 250.0  # [m/N] length of an arrow: 60 N are a hand's length
GHOSTS = ((46, 134, 193), (232, 146, 12), (39, 147, 97), (136, 84, 163), (140, 86, 75), (22, 130, 130), (120, 110, 30),
          (90, 90, 100))  # fmt: skip
LIGHT = {"cell_color": (224, 228, 232), "section_color": (196, 202, 208), "plane_color": (246, 248, 250)}
DARK = {"cell_color": (52, 56, 62), "section_color": (74, 80, 88), "plane_color": (33, 36, 41)}


# signs that mean something in html or in markdown, as html writes them
_SIGNS = {ord(sign): f"&#{ord(sign)};" for sign in "&<>`*_[]!|$#\\{}~()\"'"}


def words(text: object) -> str:
    """A text from a log, a file or a user, so that neither html nor markdown finds anything in it."""
    return "".join(c if c.isprintable() else " " for c in str(text)).translate(_SIGNS)


class Arm:
    """An arm in the scene, solid or as a ghost."""

    def __init__(
        self, server: Any, robot: Robot, name: str, *, ghost: tuple[int, int, int] | None = None, opacity: float = 0.22,
        meshes: str | None = None,
    ) -> None:  # fmt: skip
        self.robot, self.name, self.ghost = robot, name, ghost
        model = robot.model
        self.meshes: list[dict[str, Mesh]] = arm_meshes(model) if meshes is None else package_meshes(meshes, model)
        self._inverse = np.stack([np.linalg.inv(joint.T_joint_link) for joint in robot.model.joints])
        self.frames: list[Any] = []
        self.parts: list[dict[str, Any]] = []
        self.links = np.zeros((robot.dof, 4, 4))
        self.q = np.full(robot.dof, np.nan)
        for i, body in enumerate(self.meshes):
            self.frames.append(server.scene.add_frame(f"{name}/{i}", show_axes=False))
            look: dict[str, Any] = {} if ghost is None else {"opacity": opacity, "cast_shadow": False}
            self.parts.append({
                kind: server.scene.add_mesh_simple(
                    f"{name}/{i}/{kind.removeprefix('#')}", mesh.vertices.astype(np.float32), mesh.faces,
                    color=colour(kind) if ghost is None else ghost, **look,
                )
                for kind, mesh in body.items()
            })  # fmt: skip

    def place(self, q: Array) -> None:
        """Show the arm at q (n,)."""
        if np.array_equal(q, self.q):
            return
        self.q = np.array(q)
        self.links = self.robot.link_poses(self.q)
        joints = self.links @ self._inverse
        turns = quaternion_from_matrix(joints[:, :3, :3])
        for frame, turn, T in zip(self.frames[1:], turns, joints, strict=True):
            frame.wxyz, frame.position = turn, T[:3, 3]

    def in_link(self, link: int, point: Array) -> Array:
        """A point of space (3,) in the frame of a link (from 1) where it is shown now."""
        T = self.links[link - 1]
        return np.asarray(T[:3, :3].T @ (np.asarray(point) - T[:3, 3]))

    def in_base(self, link: int, point: Array) -> Array:
        """A point of a link's frame in space."""
        T = self.links[link - 1]
        return np.asarray(T[:3, :3] @ np.asarray(point) + T[:3, 3])

    def paint(self, link: int, share: float, colour_of: tuple[int, int, int] = FELT) -> None:
        """Colour a link (from 1) by how sure it is that it was touched: 0 its own colour, 1 amber (or another one)."""
        for kind, part in self.parts[link].items():
            own = np.array(colour(kind) if self.ghost is None else self.ghost)
            tint = tuple(int(c) for c in np.rint(own + min(max(share, 0.0), 1.0) * (np.array(colour_of) - own)))
            if tuple(part.color) != tint:
                part.color = tint

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return bool(self.frames[0].visible)

    @visible.setter
    def visible(self, shown: bool) -> None:
        for frame in self.frames:
            if frame.visible != shown:
                frame.visible = shown

    def uncover(self) -> None:
        """Show a ghost without base and first link: they stand where those of the arm do, and two are striped."""
        self.visible = True
        self.frames[0].visible = self.frames[1].visible = False


class Arrow:
    """A force with its size beside it."""

    def __init__(self, server: Any, name: str, colour: tuple[int, int, int]) -> None:
        self._arrow = server.scene.add_arrows(
            name, np.zeros((1, 2, 3), np.float32), np.array([colour], np.uint8), shaft_radius=0.009, head_radius=0.022,
            head_length=0.05, visible=False,
        )  # fmt: skip
        self._label = server.scene.add_label(f"{name}/text", "", visible=False, anchor="bottom-left")

    @property
    def text(self) -> str:
        """What stands beside it; "" while it is hidden."""
        return str(self._label.text) if self._label.visible else ""

    def show(self, point: Array, force: Array, text: str) -> None:
        """From the point [m] along the force [N]."""
        tip = point + PER_NEWTON * force
        self._arrow.points = np.array([[point, tip]], dtype=np.float32)
        self._label.position = tip
        if self._label.text != text:
            self._label.text = text
        if not self._arrow.visible:
            self._arrow.visible = self._label.visible = True

    def hide(self) -> None:
        """Nothing acts."""
        if self._arrow.visible:
            self._arrow.visible = self._label.visible = False


class Stage:
    """The scene of one server."""

    def __init__(self, server: Any, robot: Robot, *, dark: bool = False, meshes: str | None = None) -> None:
        self.server, self.robot = server, robot
        server.gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False, brand_color=(46, 110, 160)
        )
        scene = server.scene
        scene.world_axes.visible = False
        scene.configure_default_lights(cast_shadow=False)
        self._floor: Any = None
        self.dark(dark)
        reach = float(np.linalg.norm(robot.link_poses(np.zeros(robot.dof))[-1][:3, 3])) or 1.0
        server.initial_camera.position = tuple(reach * np.array((1.05, -1.1, 0.85)))
        server.initial_camera.look_at = tuple(reach * np.array((0.1, 0.0, 0.3)))
        self.arm = Arm(server, robot, "/arm", meshes=meshes)
        self.force = Arrow(server, "/force", FORCE)
        self.felt = Arrow(server, "/felt", FELT)

    def dark(self, dark: bool) -> None:
        """Floor and theme."""
        self.server.gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False, brand_color=(46, 110, 160)
        )
        if self._floor is not None:
            self._floor.remove()
        self._floor = self.server.scene.add_grid(
            "/floor", 4, 4, cell_size=0.1, section_size=0.5, plane_opacity=0.9, **(DARK if dark else LIGHT)
        )


def probability(event: Event, link: int) -> float:
    """How sure it is that this link (from 1) was touched."""
    if event.link == link:
        return event.link_probability
    return next((share for other, share in event.links if other == link), 0.0)


def draw_touch(stage: Stage, event: Event | None) -> None:
    """Links by their probability, and the force where it was felt; None: nothing is felt."""
    for link in range(1, stage.robot.dof + 1):
        stage.arm.paint(link, 0.0 if event is None else probability(event, link))
    if event is not None and event.link and event.point is not None and event.force is not None:
        text = f"felt: link {event.link}, {event.force_n or 0.0:.0f} N, {event.link_probability:.0%}"
        stage.felt.show(stage.arm.in_base(event.link, event.point), event.force, text)
    else:
        stage.felt.hide()


def sentence(event: Event, robot: Robot) -> str:
    """An event of an arm in one line of the page."""
    what = f"**{event.kind}** at {event.time_s:.2f} s, joint {event.joint}, {abs(event.torque_nm):.1f} "
    what += robot.unit(event.joint, "Nm")
    if event.link is not None and event.force_n is not None:
        after = "" if event.isolated_s is None else f", told after {event.isolated_s - event.onset_s:.1f} s"
        between = "" if event.force_interval_n is None else " ({:.0f} to {:.0f})".format(*event.force_interval_n)
        what += f": link {event.link} ({event.link_probability:.0%}), {event.force_n:.0f} N{between}{after}"
    elif event.why_no_link:
        what += f": cannot tell which link, {words(link_words(event))}"
    return what + ("" if event.end_s is None else f", ended after {event.end_s - event.onset_s:.1f} s")
