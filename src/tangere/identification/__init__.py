"""Identification: drive gains, friction, rotor inertia, payload and inertial parameters from ordinary logs."""

from tangere.identification.identify_motions import identify
from tangere.identification.model import IdentifiedModel
from tangere.identification.model_file import read_model
from tangere.identification.prior import prior_drive
from tangere.identification.residual import momentum_residual, moving_rms
from tangere.identification.samples import Motion
from tangere.identification.touch_logs import DriveGains, drive_gains

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
