"""Observers: the torque of the environment, estimated from what was applied and what moved."""

from tangere.observe.acceleration import AccelerationObserver
from tangere.observe.momentum import MomentumObserver
from tangere.observe.threshold import Detection, ThresholdDetector, thresholds_from_quiet

__all__ = ["AccelerationObserver", "Detection", "MomentumObserver", "ThresholdDetector", "thresholds_from_quiet"]
