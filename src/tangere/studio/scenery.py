"""Things that the simulated arm can touch: a table, a wall, a hand, a ball that falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tangere.kinematics.rotation import quaternion_from_matrix
from tangere.plants.scene.bodies import Body, ball, pad, table, wall
from tangere.plants.scene.scene import Scene
from tangere.robots import Robot
from tangere.types import Array

AWAY = 0.12  # [m] from the arm where it stands to a wall or a hand: pulled there within a second, not touched before
ABOVE = 0.5  # [m] from which the ball falls: it arrives with 3 m/s
HELD = 2.0  # [s] for which it is held: the run is being looked at by then, and watched
BALL_MASS = 1.0  # [kg] a filled bottle
COLOURS = {"table": (222, 216, 202), "wall": (222, 216, 202), "hand": (226, 178, 150), "ball": (217, 115, 64)}


def bodies_of(name: str, robot: Robot, q: Array) -> tuple[Body, ...]:
    """What stands around an arm that is at q (n,)."""
    tcp = robot.pose(q)[:3, 3]
    around = float(np.arctan2(tcp[1], tcp[0]))
    if name == "table":
        return (table(),)
    if name == "wall":
        widest = max(float(np.linalg.norm(T[:2, 3])) for T in robot.link_poses(q))
        return (wall(widest + AWAY, around, height=float(max(tcp[2], 0.3))),)
    if name == "hand":
        side = np.array((-np.sin(around), np.cos(around), 0.0))
        return (pad("hand", tuple((tcp + AWAY * side).tolist()), tuple((-side).tolist())),)
    if name == "ball":
        links = robot.link_poses(q)
        middle = 0.5 * (links[min(1, len(links) - 1)][:3, 3] + links[min(2, len(links) - 1)][:3, 3])
        return (ball("ball", tuple((middle + np.array((0.0, 0.0, ABOVE))).tolist()), mass=BALL_MASS, release=HELD),)
    return ()


def scene_of(bodies: tuple[Body, ...]) -> Scene | None:
    """The scene in which links meet them; None without any."""
    return Scene(bodies, links_collide=True) if bodies else None


class Place:
    """Where the body that moves is in a MuJoCo plant."""

    def __init__(self, plant: Any, bodies: tuple[Body, ...]) -> None:
        self._at = None
        moving = [body.name for body in bodies if body.mass is not None]
        if moving:
            self._at = plant.data.body(moving[0]).xpos

    def read(self) -> Array:
        """(3,) [m], base axes; zero where nothing moves."""
        return np.zeros(3) if self._at is None else np.array(self._at)


class Scenery:
    """The same things on the page."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._parts: list[Any] = []
        self._ball: Any = None

    def show(self, name: str, bodies: tuple[Body, ...]) -> None:
        """These in place of those before."""
        for part in self._parts:
            part.remove()
        self._parts, self._ball = [], None
        for body in bodies:
            for i, part in enumerate(body.shape.parts()):
                T = body.T @ part.T
                place = {"position": T[:3, 3], "wxyz": quaternion_from_matrix(T[:3, :3]), "color": COLOURS[name]}
                where = f"/scenery/{i}"
                if part.kind == "sphere":
                    self._parts.append(self._server.scene.add_icosphere(where, radius=part.size[0], **place))
                    self._ball = self._parts[-1]
                else:
                    size = tuple(2.0 * half for half in part.size)
                    look = {"opacity": 0.5} if name == "wall" else {}
                    self._parts.append(self._server.scene.add_box(where, dimensions=size, **look, **place))

    def move(self, place: Array) -> None:
        """What moves, to where it is."""
        if self._ball is not None and place.any():
            self._ball.position = place
