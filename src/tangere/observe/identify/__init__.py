"""Identification: drive gains, friction, rotor inertia, payload and inertial parameters from ordinary logs."""

from tangere.observe.identify.gains import DriveGains, drive_gains
from tangere.observe.identify.identify import identify
from tangere.observe.identify.model import IdentifiedModel
from tangere.observe.identify.model_file import read_model
from tangere.observe.identify.prior import prior_drive
from tangere.observe.identify.residual import momentum_residual, moving_rms
from tangere.observe.identify.samples import Motion

__all__ = [
    "DriveGains",
    "IdentifiedModel",
    "Motion",
    "drive_gains",
    "identify",
    "momentum_residual",
    "moving_rms",
    "prior_drive",
    "read_model",
]
