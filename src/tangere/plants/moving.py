"""The bodies of a scene while it is simulated: when a ball is let go, and what force the arm felt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tangere.plants.scene.bodies import Body
from tangere.types import Array


class Moving:
    """Releases balls in time and, if asked to, records the force of all contacts on the arm in every period.

    arm: which bodies of the MuJoCo model are the arm's. forces: (N + 1, 3) [N], base axes: nothing, then one row per
    write; row k belongs to the sample k of a run, as Truth.wrench does.
    """

    def __init__(self, mujoco: Any, model: Any, data: Any, bodies: Sequence[Body], arm: range, record: bool) -> None:
        self._model, self._data, self._force_of = model, data, mujoco.mj_contactForce
        kinds = mujoco.mjtObj
        free = {b.name: b.release for b in bodies if b.mass is not None}
        self._balls = sorted((time, mujoco.mj_name2id(model, kinds.mjOBJ_BODY, name)) for name, time in free.items())
        self._of_arm = [int(body) in arm for body in model.geom_bodyid]
        self._record, self._local = record, np.zeros(6)
        self.reset()

    def reset(self) -> None:
        """Every ball is held again; the record is empty."""
        for _, body in self._balls:
            self._model.body_gravcomp[body] = 1.0
        self._held = list(self._balls)
        self._forces: list[Array] = [np.zeros(3)]

    @property
    def forces(self) -> Array:
        """(N + 1, 3) N."""
        return np.array(self._forces)

    def before(self, middle: float) -> None:
        """Before the step whose middle is at this time [s]."""
        while self._held and self._held[0][0] <= middle:
            self._model.body_gravcomp[self._held.pop(0)[1]] = 0.0

    def after(self) -> None:
        """After the step."""
        if self._record:
            self._forces.append(self._force())

    def _force(self) -> Array:
        """Sum of the contact forces on the arm in the last step; MuJoCo gives what acts on the second geom."""
        total = np.zeros(3)
        for i in range(self._data.ncon):
            contact = self._data.contact[i]
            sign = self._of_arm[contact.geom2] - self._of_arm[contact.geom1]
            if sign:
                self._force_of(self._model, self._data, i, self._local)
                total += sign * (self._local[:3] @ contact.frame.reshape(3, 3))
        return total
