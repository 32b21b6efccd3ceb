"""Observers: the torque of the environment, estimated from what was applied and what moved."""

from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.momentum import MomentumObserver

__all__ = ["AccelerationObserver", "MomentumObserver"]
