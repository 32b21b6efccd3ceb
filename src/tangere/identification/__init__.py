"""Identification: drive gains, friction, rotor inertia, payload and inertial parameters from ordinary logs."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
