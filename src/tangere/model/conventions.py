"""The documents' own joint and frame conventions, and the way from each of them to UR's official standard DH.

Seed convention (000 table 1, 001 table 7): modified DH with proximal frames,

    0_iT = prod Rx(alpha_{i-1}) Tx(a_{i-1}) Rz(theta_i) Tz(d_i)

    i      1     2       3    4       5     6
    alpha  0     90      0    0      -90    90    degrees
    a      0     0       a2   a3      0     0
    d      d1    0       0    d4      d5    d6
    theta  q1    q2+90   q3   q4-90   q5    q6    degrees

(000 table 1 leaves out the +90 and -90 that its own eqs 11 and 32 use; 001 leaves out d1 and d6 and adds them as L_B
and L_TP.) The lengths a2, a3 are negative in 000 (the arm hangs down at zero) and positive in 001 (it stands up).

Flipped-elbow convention (002): standard DH with alpha = -90, 180, 180, -90, 90, 0 degrees and +90 degrees on joints
2 and 4; joint 3 turns the other way.
Every map only shifts and flips angles, so velocities, torques, M, C and g follow without a Jacobian of the map.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tangere.errors import InvalidValue
from tangere.model.frames import inverse, rotation_rpy_deg, transform
from tangere.model.inertia import moved
from tangere.model.model import Array, Link

# q_official = q_seed + offset, degrees: the zero pose of official DH is stretched out horizontally.
_OFFSET_A_NEGATIVE = (0.0, 90.0, 0.0, 90.0, 0.0, 180.0)
_OFFSET_A_POSITIVE = (0.0, -90.0, 0.0, -90.0, 0.0, 180.0)
# Signs and offsets of the flipped-elbow convention [deg]: its frame 3 is upside down, so joint 3 turns the other way.
_FLIPPED_SIGN = (1.0, 1.0, -1.0, 1.0, 1.0, 1.0)
_FLIPPED_OFFSET = (0.0, -90.0, 0.0, -90.0, 0.0, 180.0)


def _six(q: Sequence[float] | Array, what: str) -> Array:
    array = np.asarray(q, dtype=float)
    if array.ndim == 0 or array.shape[-1] != 6:
        raise InvalidValue(f"{what} must have 6 joints on its last axis, got shape {array.shape}")
    return array


def official_from_seed(q_seed: Sequence[float] | Array, *, a_positive: bool) -> Array:
    """Official joint angles of seed angles: q = q_seed + (0, +-90, 0, +-90, 0, 180) degrees, (..., 6) in rad.

    a_positive: False for 000 (a2, a3 < 0: +90), True for 001 (a2, a3 > 0: -90). Base and tool frames are the same.
    """
    offset = _OFFSET_A_POSITIVE if a_positive else _OFFSET_A_NEGATIVE
    return _six(q_seed, "q_seed") + np.deg2rad(offset)


def seed_from_official(q: Sequence[float] | Array, *, a_positive: bool) -> Array:
    """Seed joint angles of official ones, the inverse of official_from_seed, (..., 6) in rad, not wrapped."""
    offset = _OFFSET_A_POSITIVE if a_positive else _OFFSET_A_NEGATIVE
    return _six(q, "q") - np.deg2rad(offset)


def seed_link_transforms(a2: float, a3: float) -> Array:
    """The constant D_i with 0_iT_official = 0_iT_seed D_i, (6, 4, 4); a2 and a3 with the sign the document gives them.

    A point of link i has seed coordinates D_i c_official, an inertia about the COM R_i I_official R_i^T.
    000 table 3 prints official (distal) centres of mass and calls them local to these proximal frames: without D_i
    the upper arm's lies 0.613 m off.
    """
    if a2 == 0.0 or a3 == 0.0 or (a2 > 0.0) != (a3 > 0.0):
        raise InvalidValue(f"a2 and a3 must have the same sign and not be zero, got {a2:g} and {a3:g}")
    half = rotation_rpy_deg((0.0, 0.0, 180.0 if a2 > 0.0 else 0.0))
    zero = (0.0, 0.0, 0.0)
    return np.array(
        [
            transform(rotation_rpy_deg((90.0, 0.0, 0.0)), zero),
            transform(half, (a2, 0.0, 0.0)),
            transform(half, (a3, 0.0, 0.0)),
            transform(np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]), zero),
            transform(np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]]), zero),
            np.eye(4),
        ]
    )


def official_links(links_in_seed: Sequence[Link], a2: float, a3: float) -> tuple[Link, ...]:
    """Links given in seed frames, expressed in the official DH frames: c = D_i^-1 c_seed, I = R_i^T I_seed R_i."""
    transforms = seed_link_transforms(a2, a3)
    if len(links_in_seed) != len(transforms):
        raise InvalidValue(f"expected 6 links, got {len(links_in_seed)}")
    return tuple(moved(link, inverse(D)) for link, D in zip(links_in_seed, transforms, strict=True))


def seed_forward(q_seed: Sequence[float] | Array, a2: float, a3: float, d: Sequence[float] | Array) -> Array:
    """Poses 0_iT of the six seed frames (000 eq 1 and table 1 with its offsets), (..., 6, 4, 4).

    q_seed (..., 6) in rad; d = (d1, 0, 0, d4, d5, d6) in m. 000 eq 45 is printed with the wrong sign of alpha_4 and
    eq 51 without d6; this is the chain of table 1.
    """
    q, lengths = _six(q_seed, "q_seed"), _six(d, "d")
    theta = q + np.deg2rad((0.0, 90.0, 0.0, -90.0, 0.0, 0.0))
    c, s = np.cos(theta), np.sin(theta)
    poses = np.empty((*q.shape, 4, 4))
    T = np.broadcast_to(np.eye(4), (*q.shape[:-1], 4, 4))
    for i, (alpha, a) in enumerate(zip((0, 90, 0, 0, -90, 90), (0.0, 0.0, a2, a3, 0.0, 0.0), strict=True)):
        step = np.zeros((*q.shape[:-1], 4, 4))
        step[..., 0, 0], step[..., 0, 1], step[..., 1, 0], step[..., 1, 1] = c[..., i], -s[..., i], s[..., i], c[..., i]
        step[..., 2, 2] = step[..., 3, 3] = 1.0
        step[..., 2, 3] = lengths[i]
        T = T @ transform(rotation_rpy_deg((alpha, 0.0, 0.0)), (a, 0.0, 0.0)) @ step
        poses[..., i, :, :] = T
    return poses


def official_from_flipped_elbow(q_flipped: Sequence[float] | Array) -> Array:
    """Official joint angles of flipped-elbow ones (002), (..., 6) in rad.

    q = (q1, q2 - 90, -q3, q4 - 90, q5, q6 + 180) degrees. The mechanism is the same with d4 = d2 - d3 + d4 of 002.
    002's base is the official one yawed by 180 degrees: T_002 = Rz(180) T_official, tool frames alike.
    """
    q: Array = _six(q_flipped, "q_flipped") * np.array(_FLIPPED_SIGN) + np.deg2rad(_FLIPPED_OFFSET)
    return q


def flipped_elbow_from_official(q: Sequence[float] | Array) -> Array:
    """Flipped-elbow angles (002) of official ones, the inverse of the map above, (..., 6) in rad, not wrapped."""
    q_flipped: Array = (_six(q, "q") - np.deg2rad(_FLIPPED_OFFSET)) * np.array(_FLIPPED_SIGN)
    return q_flipped


def flipped_elbow_forward(
    q_flipped: Sequence[float] | Array, a2: float, a3: float, d: Sequence[float] | Array
) -> Array:
    """Poses of the six flipped-elbow frames (002, standard DH) in the official base, (..., 6, 4, 4).

    q_flipped (..., 6) in rad; a2, a3 < 0 and d = (d1, d2, d3, d4, d5, d6) in m. 002 looks from a base that is yawed by
    180 degrees; where only the official d4 = d2 - d3 + d4 is known, d2 = d3 = 0.
    """
    q, lengths = _six(q_flipped, "q_flipped"), _six(d, "d")
    theta = q + np.deg2rad((0.0, 90.0, 0.0, 90.0, 0.0, 0.0))
    poses = np.empty((*q.shape, 4, 4))
    T = np.broadcast_to(np.diag((-1.0, -1.0, 1.0, 1.0)), (*q.shape[:-1], 4, 4))
    for i, (alpha, a) in enumerate(zip((-90, 180, 180, -90, 90, 0), (0.0, a2, a3, 0.0, 0.0, 0.0), strict=True)):
        c, s = np.cos(theta[..., i]), np.sin(theta[..., i])
        turn = np.zeros((*q.shape[:-1], 4, 4))
        turn[..., 0, 0], turn[..., 0, 1], turn[..., 1, 0], turn[..., 1, 1] = c, -s, s, c
        turn[..., 2, 2] = turn[..., 3, 3] = 1.0
        turn[..., 2, 3] = lengths[i]
        T = T @ turn @ transform(rotation_rpy_deg((alpha, 0.0, 0.0)), (a, 0.0, 0.0))
        poses[..., i, :, :] = T
    return poses


def document_frames(
    document: str, q: Sequence[float] | Array, a2: float, a3: float, d: Sequence[float] | Array
) -> Array:
    """Frames (..., 6, 4, 4) of all links as a document (000, 001, 002) puts them, at official angles q (..., 6) [rad].

    a2, a3 < 0 and d = (d1, 0, 0, d4, d5, d6) [m]: the official lengths. Base axes are the official ones.
    """
    if document == "002":
        return flipped_elbow_forward(flipped_elbow_from_official(q), a2, a3, d)
    if document not in ("000", "001"):
        raise InvalidValue(f"document: 000, 001 or 002, got {document!r}")
    positive = document == "001"
    sign = -1.0 if positive else 1.0
    return seed_forward(seed_from_official(q, a_positive=positive), sign * a2, sign * a3, d)
