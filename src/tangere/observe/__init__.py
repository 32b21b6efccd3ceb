"""Observers: the torque of the environment, estimated from what was applied and what moved."""
