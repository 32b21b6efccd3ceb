"""How well a push on a patch of surface explains a residual: evidence in closed form, then refined where it counts.

One hypothesis is a patch and a size of force s. Five unknowns u say where on the patch and which force:

    point = p + d1 u4 t1 + d2 u5 t2 (bent with the surface),  d = half the patch: neighbours overlap to a flat density
    force = s [-(1 - sigma_n u1) n + sigma_t (u2 t1 + u3 t2)],  n, t1, t2 at that point;  sigma_t = mu / 2

sigma_t is the standard deviation of a direction spread evenly over a friction cone of coefficient mu; sigma_n makes
sizes s of a geometric row overlap to a density flat in log(size). Then residual = J^T force + noise, noise ~ N(0, S).
u1, u4, u5 ~ N(0, 1). (u2, u3) is flat up to the cone's edge, |u| = 2: density exp(-(|u| / 2)^8) / (pi Gamma(1/4)).
Modes are looked for as if that were N(0, I); each hypothesis is then weighted by the mean of the ratio (_cone).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tangere.model.link_shapes import LinkSurface
from tangere.robots import Robot
from tangere.types import Array

Rows = NDArray[np.intp]

# a hypothesis this many nats below the best of the coarse pass is dropped: e^-12 of a thousand such is below 1 %, and
# the coarse pass itself errs by a few nats
KEPT = 12.0
NODES = 7  # per direction of Gauss's rule over the cone: within 10 % of the integral wherever a hypothesis counts
ROUNDS = 3  # of Gauss-Newton from u = 0: the model is bilinear in point and force, the second already changes little


@dataclass(frozen=True)
class Patches:
    """All patches at one posture, base axes, with the torques (n,) of unit forces there."""

    link: Rows  # (m,) counted from 1
    weight: Array  # (m,) prior; sums to 1 over all links
    point: Array  # (m, 3)
    normal: Array
    t1: Array
    t2: Array
    curvature: Array  # (m, 2)
    half: Array  # (m, 2) d1, d2
    linear: Array  # (m, 3, n)
    angular: Array  # (m, 3, n)


def placed(robot: Robot, q: Array, surfaces: list[LinkSurface]) -> Patches:
    """The patches at a posture. Every link that has a surface is as likely as any other, and so is every m2 of it."""
    poses = robot.link_poses(q)
    parts = [surface for surface in surfaces if len(surface)]
    rows: list[tuple[Array, ...]] = []
    for surface in parts:
        T = poses[surface.link - 1]
        R = T[:3, :3].T
        J = robot.jacobian(q, link=surface.link, point=surface.point)
        weight = surface.area / (surface.area.sum() * len(parts))
        rows.append((
            weight, surface.point @ R + T[:3, 3], surface.normal @ R, surface.t1 @ R, surface.t2 @ R,
            surface.curvature, 0.5 * surface.size, J[:, :3], J[:, 3:],
        ))  # fmt: skip
    link = np.repeat([surface.link for surface in parts], [len(surface) for surface in parts])
    return Patches(link, *(np.concatenate(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Prior:
    """What is believed of a push before anything is felt."""

    sizes: Array  # (k,) [N], a geometric row
    sigma_n: float  # relative spread around each size
    sigma_t: float  # tangential force against normal force, per direction


@dataclass(frozen=True)
class Hypotheses:
    """The (patch, size) pairs that count, refined."""

    patch: Rows  # (h,) row of Patches
    log_evidence: Array  # (h,) with the prior's weight
    point: Array  # (h, 3) [m], base axes
    force: Array  # (h, 3) [N], base axes
    normal: Array  # (h, 3)
    misfit: Array  # (h,) squared Mahalanobis distance of what is left
    size_sd: Array  # (h,) [N], of the force's size within the hypothesis
    point_sd: Array  # (h,) [m], of the point within the hypothesis


def explain(patches: Patches, prior: Prior, white: Array, residual: Array) -> Hypotheses:
    """Refined hypotheses for residual (n,) [Nm]; white (n, n) turns its noise into N(0, I): white S white^T = I."""
    coarse = _coarse(patches, prior, white, residual)
    patch, size = np.nonzero(coarse > coarse.max() - KEPT)
    return _refined(patches, prior, white, residual, patch, prior.sizes[size])


def _columns(patches: Patches, prior: Prior, white: Array) -> tuple[Array, Array]:
    """Whitened torque of a unit push and its derivative by u: (m, n), (m, n, 5). Torque of a size s is s times that."""
    linear = np.stack((patches.normal, patches.t1, patches.t2), axis=1) @ patches.linear  # (m, 3, n)
    angular = np.stack((patches.t2, -patches.t1), axis=1) @ patches.angular  # moment of -normal moved by t1, by t2
    H = np.empty((len(linear), 5, linear.shape[2]))
    H[:, 0] = prior.sigma_n * linear[:, 0]
    H[:, 1:3] = prior.sigma_t * linear[:, 1:]
    H[:, 3:] = patches.half[:, :, None] * (angular - patches.curvature[:, :, None] * linear[:, 1:])
    return -linear[:, 0] @ white.T, np.swapaxes(H @ white.T, 1, 2)


def _coarse(patches: Patches, prior: Prior, white: Array, residual: Array) -> Array:
    """log of weight times evidence (m, k), linearised at u = 0.

        e = white residual - s a,   G = s H,   -2 log = |e|^2 - e^T G (I + G^T G)^-1 G^T e + log det(I + G^T G)

    With H^T H = V diag(lambda) V^T once per patch every size is a sum of five terms.
    """
    a, H = _columns(patches, prior, white)
    r = white @ residual
    values, vectors = np.linalg.eigh(np.swapaxes(H, 1, 2) @ H)
    values = np.maximum(values, 0.0)
    basis = H @ vectors
    Hr = np.einsum("n,mnj->mj", r, basis)[:, None]
    Ha = np.einsum("mn,mnj->mj", a, basis)[:, None]
    s = prior.sizes[:, None]
    grown = 1.0 + s * s * values[:, None]  # (m, k, 5)
    e2 = r @ r - 2.0 * np.outer(a @ r, prior.sizes) + np.outer(np.sum(a * a, axis=1), prior.sizes**2)
    gain = np.sum((s * (Hr - s * Ha)) ** 2 / grown, axis=2)
    return np.asarray(
        np.log(patches.weight / len(prior.sizes))[:, None] - 0.5 * (e2 - gain + np.sum(np.log(grown), axis=2))
    )


def _refined(patches: Patches, prior: Prior, white: Array, residual: Array, patch: Rows, s: Array) -> Hypotheses:
    """Laplace's evidence at the mode of each hypothesis, on the bent patch: -2 log = misfit + |u|^2 + log det."""
    n, t1, t2 = patches.normal[patch], patches.t1[patch], patches.t2[patch]
    bend, half = patches.curvature[patch], patches.half[patch]
    linear, angular = patches.linear[patch] @ white.T, patches.angular[patch] @ white.T  # whitened from here on
    r = white @ residual
    u = np.zeros((len(s), 5))
    eye = np.eye(5)
    for k in range(ROUNDS + 1):
        # at most 1 rad around the bend: a mode further away belongs to another patch
        angle = np.clip(bend * half * u[:, 3:], -1.0, 1.0)
        sine, fall = np.sin(angle), 2.0 * np.sin(0.5 * angle) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.where(bend > 0.0, sine / bend, half * u[:, 3:])
            sunk = np.where(bend > 0.0, fall / bend, 0.0).sum(axis=1)
        out = n * (1.0 - fall.sum(axis=1))[:, None] + sine[:, :1] * t1 + sine[:, 1:] * t2
        out /= np.linalg.norm(out, axis=1)[:, None]
        e1 = np.cross(t2, out)
        e1 /= np.linalg.norm(e1, axis=1)[:, None]
        e2 = np.cross(out, e1)
        offset = moved[:, :1] * t1 + moved[:, 1:] * t2 - sunk[:, None] * n
        normal_part = (1.0 - prior.sigma_n * u[:, 0])[:, None]
        force = s[:, None] * (-normal_part * out + prior.sigma_t * (u[:, 1:2] * e1 + u[:, 2:3] * e2))

        J = linear + np.cross(np.swapaxes(angular, 1, 2), offset[:, None], axis=2).swapaxes(1, 2)
        left = r - np.einsum("hi,hij->hj", force, J)
        if k == ROUNDS:
            break
        axes = np.stack((out, e1, e2), axis=1) @ J  # (h, 3, n)
        G = np.empty((len(s), 5, J.shape[2]))
        G[:, 0] = (s * prior.sigma_n)[:, None] * axes[:, 0]
        G[:, 1:3] = (s * prior.sigma_t)[:, None, None] * axes[:, 1:]
        turn = (half * bend * (s[:, None] * normal_part))[:, :, None] * axes[:, 1:]
        shift = np.stack((np.cross(e1, force), np.cross(e2, force)), axis=1) @ angular
        G[:, 3:] = half[:, :, None] * shift - turn
        A = eye + G @ np.swapaxes(G, 1, 2)
        b = np.einsum("hkj,hj->hk", G, left) + np.einsum("hkj,hj->hk", A - eye, u)
        u = np.linalg.solve(A, b[:, :, None])[:, :, 0]
    misfit = np.sum(left * left, axis=1)
    logdet = np.linalg.slogdet(A)[1]
    V = np.asarray(np.linalg.inv(A), dtype=np.float64)
    along = force / np.maximum(np.linalg.norm(force, axis=1), 1e-12)[:, None]  # |force| by u1, u2, u3
    slope = s[:, None] * np.einsum("hki,hi->hk", np.stack((out, e1, e2), axis=1), along)
    slope *= (prior.sigma_n, prior.sigma_t, prior.sigma_t)
    size_sd = np.sqrt(np.maximum(np.einsum("hk,hkl,hl->h", slope, V[:, :3, :3], slope), 0.0))
    point_sd = np.sqrt(V[:, 3, 3] * half[:, 0] ** 2 + V[:, 4, 4] * half[:, 1] ** 2)
    log_evidence = np.log(patches.weight[patch] / len(prior.sizes)) - 0.5 * (misfit + np.sum(u * u, axis=1) + logdet)
    log_evidence += _cone(u[:, 1:3], V[:, 1:3, 1:3])
    return Hypotheses(patch, log_evidence, patches.point[patch] + offset, force, out, misfit, size_sd, point_sd)


def _cone(mean: Array, V: Array) -> Array:
    """log of the mean over N(mean, V) of flat / normal, the densities of (u2, u3) to the cone's edge: (h,).

        flat / normal = exp(|u|^2 / 2 - (|u| / 2)^8) 2 / Gamma(1/4)

    Of a normal density one push in seven lies outside the cone; that many wrong links are explained by it.
    """
    nodes, weights = _gauss()
    a = np.sqrt(V[:, :1, 0])
    b = V[:, 1:, 0] / a
    c = np.sqrt(np.maximum(V[:, 1:, 1] - b * b, 0.0))
    square = (mean[:, :1] + a * nodes[0]) ** 2 + (mean[:, 1:] + b * nodes[0] + c * nodes[1]) ** 2
    ratio = np.exp(0.5 * square - (0.25 * square) ** 4) @ weights
    # far outside nothing is left: a number that stays finite
    return np.asarray(np.log(np.maximum(ratio, 1e-100)) + math.log(2.0 / math.gamma(0.25)))


@cache
def _gauss() -> tuple[Array, Array]:
    """Nodes (2, NODES^2) and weights of the mean over N(0, I) in two directions."""
    x, w = np.polynomial.hermite_e.hermegauss(NODES)
    return np.stack(np.meshgrid(x, x)).reshape(2, -1), np.outer(w, w).ravel() / w.sum() ** 2


def two_pushes(patches: Patches, prior: Prior, white: Array, residual: Array) -> float:
    """log evidence of two pushes at once on any two links, with torques taken as Gaussian: N(0, I + s^2 (C_i + C_j)).

    C_i is the second moment of the whitened torque of a unit push anywhere on link i. Wide on purpose: it stands for
    all that is not one push.
    """
    a, H = _columns(patches, prior, white)
    r = white @ residual
    moments = []
    for link in np.unique(patches.link):
        mine = patches.link == link
        w = patches.weight[mine] / patches.weight[mine].sum()
        columns = np.concatenate((a[mine][:, :, None], H[mine][:, :, :3]), axis=2)
        moments.append(np.einsum("m,mnk,mlk->nl", w, columns, columns, optimize=True))
    first, second = np.triu_indices(len(moments))
    C = np.array(moments)
    K = np.eye(len(r)) + prior.sizes[:, None, None, None] ** 2 * (C[first] + C[second])
    rhs = np.broadcast_to(r[:, None], (*K.shape[:2], len(r), 1))
    logs = -0.5 * (np.linalg.solve(K, rhs)[..., 0] @ r + np.linalg.slogdet(K)[1])
    top = float(logs.max())
    return top + float(np.log(np.mean(np.exp(logs - top))))
