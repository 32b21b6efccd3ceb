"""Inertial parameters of links as numbers of a linear model, and what makes them those of a body that can exist."""

from __future__ import annotations

from functools import cache

import numpy as np

from tangere.model.inertia import with_payload
from tangere.model.model import Array, Link, Model

SIZE = 10  # m, hx, hy, hz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz: as robot.regressor orders them
_UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def parameters_of_link(link: Link) -> Array:
    """pi (10,): mass, first moment h = m c and inertia about the *origin* of the link frame, link axes."""
    c = link.com
    inertia = link.inertia + link.mass * (float(c @ c) * np.eye(3) - np.outer(c, c))
    return np.array([link.mass, *(link.mass * c), *(inertia[i, k] for i, k in _UPPER)])


def parameters_of(model: Model) -> Array:
    """pi (10 n,) of all links, payload included in the last: tau = robot.regressor(q, qd, qdd) @ pi."""
    links = [*model.links[:-1], with_payload(model.links[-1], model.payload)]
    return np.concatenate([parameters_of_link(link) for link in links])


def link_of(pi: Array, name: str) -> Link:
    """The body with these ten parameters: c = h / m, I about the centre of mass."""
    mass, c = float(pi[0]), pi[1:4] / pi[0]
    inertia = np.zeros((3, 3))
    for value, (i, k) in zip(pi[4:], _UPPER, strict=True):
        inertia[i, k] = inertia[k, i] = value
    return Link(name, mass, c, inertia - mass * (float(c @ c) * np.eye(3) - np.outer(c, c)))


def pseudo_inertia(pi: Array) -> Array:
    """P (4, 4) = int [x; 1] [x; 1]^T dm = [S h; h^T m], S = tr(I)/2 - I; a body exists if and only if P > 0."""
    inertia = np.zeros((3, 3))
    for value, (i, k) in zip(pi[4:], _UPPER, strict=True):
        inertia[i, k] = inertia[k, i] = value
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = pi[1:4]
    P[3, 3] = pi[0]
    return P


@cache
def pseudo_inertia_basis() -> Array:
    """E (10, 4, 4) with P(pi) = sum_k pi_k E_k, read-only."""
    basis = np.stack([pseudo_inertia(unit) for unit in np.eye(SIZE)])
    basis.flags.writeable = False
    return basis


def metric(pi: Array) -> Array:
    """G (10, 10) with dpi^T G dpi = tr((P^-1 dP)^2): how far a change is, whatever the frame and units.

    A change of size s in it moves the mass, the second moments and the centre of mass (against the body's own radius
    of gyration) by about s, relative. pi: a body with P > 0.
    """
    inverse = np.linalg.inv(pseudo_inertia(pi))
    steps = inverse @ pseudo_inertia_basis()
    return np.asarray(np.einsum("kab,lba->kl", steps, steps))


def is_physical(pi: Array) -> bool:
    """Whether every ten of pi (10 n,) are those of a rigid body: positive mass, P > 0 (so the triangle holds too)."""
    return all(bool(np.linalg.eigvalsh(pseudo_inertia(body))[0] > 0.0) for body in pi.reshape(-1, SIZE))
