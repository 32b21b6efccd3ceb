"""Kinematics to look at: all inverse kinematics solutions of a tool that is dragged, frames, masses, an ellipsoid."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.kernels.solutions import IKSolutions
from tangere.kinematics.rotation import matrix_from_quaternion, quaternion_from_matrix
from tangere.model.conventions import document_frames
from tangere.robots import Robot
from tangere.studio.stage import FELT, FORCE, GHOSTS, Arm
from tangere.types import Array

MOST = 8  # ghosts: a UR has at most eight solutions
AXIS = 0.12  # [m] length of a frame's axes
BALL = 0.018  # [m] radius of a centre of mass of 1 kg; it grows with the cube root
NO_FRAMES = "none"
DOCUMENTS = {"000": "document 000", "001": "document 001", "002": "document 002"}
APART = 0.07  # [m] between two numbers: the height of one where the whole arm is seen
COVERED = 1e-3  # [m, and of a rotation's entries] within which two links lie in one place
COLOUR_NAMES = ("blue", "amber", "green", "violet", "brown", "teal", "olive", "grey")  # of stage.GHOSTS
NEAR = 0.05  # smallest singular value of J over the largest, below which a pose is called near a singularity
ELLIPSOID = 0.25  # [m] longest half axis of the ellipsoid of velocities as it is drawn


class Learn:
    """What is drawn beside an arm to understand it. `at` says where the arm is; the arm itself is not moved here."""

    def __init__(self, server: Any, arm: Arm, *, name: str = "/learn") -> None:
        self.server, self.arm, self.robot, self._name = server, arm, arm.robot, name
        self.ghosts: list[Arm] = []
        self.labels: list[Any] = []
        self.handle: Any = None
        self.solutions: IKSolutions | None = None
        self.said = ""
        self._frames: list[Any] = []
        self._balls: list[Any] = []
        self._ellipsoid: Any = None
        self._wanted = {"masses": False, "ellipsoid": False}
        self.conventions = conventions(self.robot)
        self._convention = NO_FRAMES

    def gui(self) -> None:
        """The widgets, in whatever container is open."""
        gui = self.server.gui
        self.inverse_box = gui.add_checkbox("drag the tool", False, hint="all solutions of its pose as ghosts")
        self.text = gui.add_markdown("")
        self.frames_box = gui.add_dropdown(
            "frames", list(self.conventions), hint="of every link: x red, y green, z blue"
        )
        boxes = {
            "masses": gui.add_checkbox("centres of mass", False),
            "ellipsoid": gui.add_checkbox("ellipsoid", False, hint="how fast the tool can go, each way"),
        }

        async def inverse(_: Any) -> None:
            self.drag(bool(self.inverse_box.value))

        def follower(name: str, box: Any) -> Any:
            async def chosen(_: Any) -> None:
                self._wanted[name] = bool(box.value)
                self.place()

            return chosen

        async def framed(_: Any) -> None:
            self.frames(self.frames_box.value)

        self.inverse_box.on_update(inverse)
        self.frames_box.on_update(framed)
        for name, box in boxes.items():
            box.on_update(follower(name, box))

    # ---- inverse kinematics ----

    def drag(self, on: bool) -> None:
        """Put a handle at the tool, or take it away with its ghosts."""
        if on and self.handle is None:
            T = self.robot.pose(self.arm.q)
            self.handle = self.server.scene.add_transform_controls(
                f"{self._name}/tool", scale=0.3, position=T[:3, 3], wxyz=quaternion_from_matrix(T[:3, :3]),
                depth_test=False,
            )  # fmt: skip
            self.handle.on_update(self._dragged)
            self.solve(T)
        elif not on and self.handle is not None:
            self.handle.remove()
            self.handle, self.solutions = None, None
            self._hide(0)
            self._say("")

    async def _dragged(self, _: Any) -> None:
        T = np.eye(4)
        T[:3, :3] = matrix_from_quaternion(np.asarray(self.handle.wxyz, dtype=np.float64))
        T[:3, 3] = self.handle.position
        self.solve(T)

    def solve(self, T: Array) -> None:
        """All solutions of the pose T (4, 4) as ghosts, or why there is none."""
        self.solutions = found = self.robot.inverse_kinematics(T, reference=self.arm.q)
        with self.server.atomic():
            for i, q in enumerate(list(found)[:MOST]):
                self._ghost(i).place(q)
                wrong = FORCE if singular(found, i) else None if found.within_limits[i] else FELT
                for link in range(1, self.robot.dof + 1):
                    self.ghosts[i].paint(link, 0.0 if wrong is None else 1.0, wrong or FELT)
                self._uncover(i)
                at = self._elbow(q)
                while any(float(np.linalg.norm(np.asarray(one.position) - at)) < APART for one in self.labels[:i]):
                    at = at + np.array((0.0, 0.0, 1.01 * APART))  # elbows in one place: one number above the other
                self.labels[i].position = at
                self.labels[i].visible = True
            self._hide(min(len(found), MOST))
        if not len(found):
            self._say(f"**out of reach** by {1e3 * found.distance:.0f} mm: no solution")
        else:
            bad = [i for i in range(len(found)) if singular(found, i)]
            outside = [i for i in range(len(found)) if not found.within_limits[i]]
            told = f"**{len(found)} solutions** of this pose"
            told += f"; {len(bad)} singular (red)" if bad else ""
            told += f"; {len(outside)} beyond a joint limit (amber)" if outside else ""
            names = [
                "red" if i in bad else "amber, outside" if i in outside else name
                for i, name in zip(range(len(found)), COLOUR_NAMES, strict=False)
            ]
            self._say(told + "".join(f"\n- {colour}, {label(found, i)}" for i, colour in enumerate(names)))

    def _uncover(self, i: int) -> None:
        """Show a ghost but for links that lie where another one's do: two in one place are striped."""
        ghost = self.ghosts[i]
        ghost.frames[0].visible = ghost.frames[1].visible = False  # a base and a housing that turns in its place
        for k in range(1, self.robot.dof):
            here = ghost.links[k]
            before = (self.arm, *self.ghosts[:i])
            covered = any(float(np.abs(other.links[k] - here).max()) < COVERED for other in before)
            ghost.frames[k + 1].visible = not covered

    def _elbow(self, q: Array) -> Array:
        """Where a ghost's number stands: above the end of the second link, where solutions differ most."""
        links = self.robot.link_poses(q)
        return np.asarray(links[min(1, len(links) - 1)][:3, 3] + np.array((0.0, 0.0, 0.1)))

    def _ghost(self, i: int) -> Arm:
        while len(self.ghosts) <= i:
            k = len(self.ghosts)
            self.ghosts.append(Arm(self.server, self.robot, f"{self._name}/ghost{k}", ghost=GHOSTS[k % len(GHOSTS)]))
            self.labels.append(self.server.scene.add_label(f"{self._name}/label{k}", str(k + 1), visible=False))
        return self.ghosts[i]

    def _hide(self, first: int) -> None:
        for ghost, text in zip(self.ghosts[first:], self.labels[first:], strict=True):
            ghost.visible = False
            if text.visible:
                text.visible = False

    def _say(self, text: str) -> None:
        self.said = text
        if hasattr(self, "text") and self.text.content != text:
            self.text.content = text

    # ---- what follows the arm ----

    def place(self) -> None:
        """Frames, masses and the ellipsoid where the arm is now."""
        q = self.arm.q
        if not np.isfinite(q).all():
            return
        poses = self.arm.links
        self._show_frames(poses)
        self._show_masses(poses)
        self._show_ellipsoid(q)

    def frames(self, convention: str) -> None:
        """Show the frames of every link in that convention, one of `conventions`."""
        self._convention = convention
        self.place()

    def _show_frames(self, poses: Array) -> None:
        wanted = self._convention != NO_FRAMES
        if wanted and not self._frames:
            for i in range(len(poses)):
                name = f"{self._name}/frame{i + 1}"
                self._frames.append(self.server.scene.add_frame(name, axes_length=AXIS, axes_radius=0.004))
                self.server.scene.add_label(f"{name}/number", str(i + 1), position=(0.0, 0.0, 1.1 * AXIS))
        document = self.conventions[self._convention]
        if wanted and document:
            poses = document_frames(document, self.arm.q, *_lengths(self.robot))
        turns = quaternion_from_matrix(poses[:, :3, :3])
        for frame, T, turn in zip(self._frames, poses, turns, strict=False):
            frame.visible = wanted
            frame.position, frame.wxyz = T[:3, 3], turn

    def _show_masses(self, poses: Array) -> None:
        wanted = self._wanted["masses"]
        links = self.robot.model.links
        if wanted and not self._balls:
            for i, link in enumerate(links):
                self._balls.append(self.server.scene.add_icosphere(
                    f"{self._name}/mass{i + 1}", radius=BALL * float(np.cbrt(max(link.mass, 1e-3))), color=(30, 30, 34)
                ))  # fmt: skip
        for ball, T, link in zip(self._balls, poses, links, strict=False):
            ball.visible = wanted
            ball.position = T[:3, :3] @ np.asarray(link.com) + T[:3, 3]

    def _show_ellipsoid(self, q: Array) -> None:
        if not self._wanted["ellipsoid"]:
            if self._ellipsoid is not None:
                self._ellipsoid.visible = False
            return
        J = self.robot.jacobian(q)[:3]
        turn, sizes, _ = np.linalg.svd(J)
        turn = turn if np.linalg.det(turn) > 0.0 else -turn
        share = sizes / max(float(sizes[0]), 1e-9)
        if self._ellipsoid is None:
            self._ellipsoid = self.server.scene.add_icosphere(
                f"{self._name}/ellipsoid", radius=1.0, color=(46, 134, 193), opacity=0.35
            )
        self._ellipsoid.visible = True
        self._ellipsoid.scale = tuple((ELLIPSOID * np.maximum(share, 0.01)).tolist())
        self._ellipsoid.wxyz, self._ellipsoid.position = quaternion_from_matrix(turn), self.robot.pose(q)[:3, 3]
        near = share[-1] < NEAR
        self._ellipsoid.color = (214, 69, 46) if near else (46, 134, 193)


def _lengths(robot: Robot) -> tuple[float, float, Array]:
    """a2, a3 and d (6,) [m] of an arm as UR's official DH has them."""
    links = np.stack([joint.T_joint_link for joint in robot.model.joints])
    return float(links[1, 0, 3]), float(links[2, 0, 3]), links[:, 2, 3]


def conventions(robot: Robot) -> dict[str, str]:
    """Frames that can be shown, by their name, with the document that has them; of a UR those of the documents, too."""
    found = {NO_FRAMES: "", "DH": ""}
    if robot.dof == 6:
        q = np.linspace(-1.0, 1.5, 6)
        flange = robot.link_poses(q)[-1]
        for document, name in DOCUMENTS.items():
            there = document_frames(document, q, *_lengths(robot))[-1]
            if float(np.abs(there[:3, 3] - flange[:3, 3]).max()) < 1e-6:
                found[name] = document
    return found


def singular(found: IKSolutions, i: int) -> bool:
    """Whether a solution stands in a singularity."""
    return bool(found.singular_shoulder[i] or found.singular_elbow[i] or found.singular_wrist[i])


def label(found: IKSolutions, i: int) -> str:
    """A solution in words: shoulder, elbow and wrist where the arm has them, and what is wrong with it."""
    names = [f"{part} {word[i]}" for part, word in (
        ("shoulder", found.shoulder), ("elbow", found.elbow), ("wrist", found.wrist)) if word[i]]  # fmt: skip
    names += ["singular"] if singular(found, i) else []
    names += [] if found.within_limits[i] else ["beyond a limit"]
    return f"{i + 1}: {', '.join(names)}" if names else f"{i + 1}"
