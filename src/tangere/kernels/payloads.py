"""A changed payload in microseconds: the kernels' parameters as a function of it.

Moments of mass add up, and regrouping them is linear: an arm's parameters are those without payload plus a matrix times
the payload's ten moments (m, h = m c, S = int r r^T dm, about the flange). Only the centre of mass of the last link,
which Jacobians of links ask for, is a quotient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tangere.kernels import general, ur
from tangere.kinematics.chain import EMPTY, Body, body_of, chain_of
from tangere.kinematics.vectors import Scalar
from tangere.model.model import Array, Model, Payload

_S_ROWS, _S_COLUMNS = (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)  # of the six entries of S that differ


@dataclass(frozen=True)
class PayloadMap:
    """Parameters of one arm for any payload."""

    bare: Array  # (k,) without payload
    slope: Array  # (k, 10) per moment of the payload
    last: Array  # (4,) mass and first moment of the last link in its joint frame, without payload
    last_slope: Array  # (4, 10)
    com: int  # where the centre of mass of the last link begins

    def parameters(self, payload: Payload | None) -> Array:
        """The parameter vector (k,) with that payload."""
        moments = np.zeros(10) if payload is None else _moments(payload)
        parameters: Array = self.bare + self.slope @ moments
        total = self.last + self.last_slope @ moments
        parameters[self.com : self.com + 3] = total[1:] / total[0]
        return parameters


def _moments(payload: Payload) -> Array:
    """m, h and S of kinematics.chain.body_of, in plain numbers: this is called while a robot moves."""
    m, c, inertia = payload.mass, payload.com.tolist(), payload.inertia.tolist()
    half = 0.5 * (inertia[0][0] + inertia[1][1] + inertia[2][2])
    S = [half * (i == j) - inertia[i][j] + m * c[i] * c[j] for i, j in zip(_S_ROWS, _S_COLUMNS, strict=True)]
    return np.array([m, m * c[0], m * c[1], m * c[2], *S])


def _units() -> Body:
    """Ten bodies at once, each with one moment 1 and all others 0."""
    e = np.eye(10)
    S: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
    for k, (i, j) in enumerate(zip(_S_ROWS, _S_COLUMNS, strict=True)):
        S[i][j] = S[j][i] = e[4 + k]
    return Body(e[0], [e[1], e[2], e[3]], S)


def _slope(values: Callable[[Body], Sequence[Scalar]]) -> Array:
    """What the payload's moments add to each of the values (k, 10); they are linear in the last body."""
    units, none = values(_units()), values(EMPTY)
    return np.array([np.broadcast_to(np.asarray(a) - b, (10,)) for a, b in zip(units, none, strict=True)])


def payload_map(model: Model, rotor_inertia: Array) -> PayloadMap:
    """For a UR or an arm in general, whichever kernels serve the model."""
    bare = replace(model, payload=None)
    structure = None if ur.is_ur(model) else general.structure_of(model)
    if structure is None:
        return _of_ur(bare, rotor_inertia)
    chain = chain_of(bare, rotor_inertia=rotor_inertia)
    R, p = chain.R_link[-1], chain.p_link[-1]
    others = [EMPTY] * (model.dof - 1)

    def vector(last: Body) -> Sequence[Scalar]:
        return general.vector(structure, general.canonical(replace(chain, bodies=[*others, last.moved(R, p)])))

    def tip(last: Body) -> Sequence[Scalar]:
        body = general.canonical(replace(chain, bodies=[*others, last.moved(R, p)])).bodies[-1]
        return [body.m, *body.h]

    own = general.canonical(chain).bodies[-1]
    return PayloadMap(
        bare=general.parameters_of(structure, bare, rotor_inertia=rotor_inertia),
        slope=_slope(vector),
        last=np.array([own.m, *own.h]),
        last_slope=_slope(tip),
        com=structure.com_at(model.dof - 1),
    )


def _of_ur(bare: Model, rotor_inertia: Array) -> PayloadMap:
    parameters = ur.parameters_of(bare, rotor_inertia=rotor_inertia)
    lengths = parameters[:6].tolist()
    others = [EMPTY] * (ur.DOF - 1)

    def vector(last: Body) -> Sequence[Scalar]:
        masses = ur.mass_parameters(lengths, [*others, last], [0.0] * 3, [0.0] * ur.DOF, centres=False)
        return [*[0.0] * (ur.PARAMETER_COUNT - len(masses)), *masses]

    own = body_of(bare.links[-1])  # the last joint frame of a UR is its link frame
    return PayloadMap(
        parameters, _slope(vector), np.array([own.m, *own.h]), np.eye(10)[:4], ur.COM_AT + 3 * (ur.DOF - 1)
    )
