"""What is believed of an arm before a log is read: its data sheet, and how far a real arm may be from it."""

from __future__ import annotations

import numpy as np

from tangere.model.model import Link, Model
from tangere.observe.identify.inertial import SIZE, metric, parameters_of_link
from tangere.observe.identify.samples import TERMS
from tangere.types import Array

# Relative standard deviation of a link's pseudo-inertia from the data sheet. Sheets leave out cables, covers and what
# was mounted; between 0.1 and 1 the held-out residual of a UR3e changes by less than 2 % in five joints and 10 % in
# the fifth (best from 0.3 on), while 1 moves masses from link to link that no motion can tell apart.
LINK_SIGMA = 0.3
# A tool that nobody mentioned is what is most often wrong: the last link may also differ by a body such as this one.
_TOOL = Link("tool", 1.0, np.array([0.0, 0.0, 0.05]), 0.0025 * np.eye(3))  # 1 kg, 5 cm out, 5 cm of gyration radius
PAYLOAD_MASS = 5.0  # kg, standard deviation of an unknown payload's mass; its first moment: 0.2 m times it
PAYLOAD_ARM = 0.2  # m
# Reflected rotor inertia where the arm's data has none, in kg m2 per Nm of peak torque: 0.011 to 0.018 in a UR10e's
# controller, 0.004 to 0.010 found on a UR3e; taken as known to its own size.
ROTOR_PER_TORQUE = 0.015
# Standard deviations of the terms of friction, as shares of the joint's peak torque (per rad/s, per rad2/s2): about the
# largest seen on UR3e, UR10e and UR10 (Coulomb 0.11, viscous 0.22, offset 0.016, quadratic 0.13), so that a few seconds
# of data outweigh them.
_SHARES = {"coulomb": 0.2, "viscous": 0.2, "offset": 0.03, "quadratic": 0.2}
_LOAD = 0.2  # of the load itself; 0.05 to 0.1 was seen on a UR3e
_RIPPLE = 0.01  # of peak torque; 0.011 in the first wrist of a UR3e
_PEAK = 100.0  # Nm, where the arm's data has no peak torque


def peak_torque(model: Model) -> Array:
    """Peak torque (n,) [Nm] of the joints, the scale of everything that a drive does."""
    peak = np.array([joint.tau_max for joint in model.joints])
    return np.where(np.isfinite(peak), peak, _PEAK)


def link_prior(model: Model) -> tuple[Array, Array]:
    """Mean (10 n,) and information (10 n, 10 n) of the links' parameters, without payload."""
    mean = np.concatenate([parameters_of_link(link) for link in model.links])
    information = np.zeros((len(mean), len(mean)))
    for i in range(len(model.links)):
        own = slice(SIZE * i, SIZE * (i + 1))
        scale = mean[own]
        if i == len(model.links) - 1:
            scale = scale + parameters_of_link(_TOOL)
        information[own, own] = metric(scale) / LINK_SIGMA**2
    return mean, information


def payload_prior(model: Model) -> tuple[Array, Array]:
    """The same for a payload in the place of the last link, all other links taken as known (mean 0, no weight)."""
    size = SIZE * len(model.links)
    information = np.zeros((size, size))
    last = np.arange(size - SIZE, size - SIZE + 4)
    sigma = PAYLOAD_MASS * np.array([1.0, PAYLOAD_ARM, PAYLOAD_ARM, PAYLOAD_ARM])
    information[last, last] = 1.0 / sigma**2
    mean = np.zeros(size)
    mean[size - SIZE] = 1.0  # kg: inside m > 0, far inside its own uncertainty
    return mean, information


def drive_prior(model: Model, orders: int) -> tuple[Array, Array]:
    """Mean and standard deviation (n, terms) of the drives' terms: TERMS, then two per order of the ripple."""
    peak = peak_torque(model)
    mean = np.zeros((len(peak), len(TERMS) + 2 * orders))
    sigma = np.empty_like(mean)
    for k, term in enumerate(TERMS):
        sigma[:, k] = _LOAD if term == "load" else _SHARES.get(term, 0.0) * peak
    for term in ("coulomb", "viscous"):
        known = getattr(model.drives, term)
        mean[:, TERMS.index(term)] = np.where(np.isfinite(known), known, 0.02 * peak)
    rotor = TERMS.index("rotor_inertia")
    known = model.drives.rotor_inertia
    mean[:, rotor] = np.where(np.isfinite(known) & (known > 0.0), known, ROTOR_PER_TORQUE * peak)
    sigma[:, rotor] = mean[:, rotor]
    sigma[:, len(TERMS) :] = (_RIPPLE * peak)[:, None]
    return mean, sigma
