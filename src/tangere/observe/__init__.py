"""Observers and detection: the torque of the environment, estimated from what was applied and what moved."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
