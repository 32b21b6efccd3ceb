"""Errors of Tangere: one root, and a ValueError wherever a value is at fault."""

from __future__ import annotations


class TangereError(Exception):
    """Root of every error that Tangere raises on purpose."""


class InvalidValue(TangereError, ValueError):
    """An argument has a wrong shape, is not finite, or lies outside what the call accepts."""


class UnknownName(InvalidValue):
    """A robot, parameter set or other name that does not exist; the message lists those that do."""


class UnphysicalModel(InvalidValue):
    """A mass or inertia that no rigid body can have."""


class ModelFileError(InvalidValue):
    """A model file (TOML, URDF, calibration) that cannot be read; names the file and the field."""


class MissingExtra(TangereError, ImportError):
    """A feature needs an optional dependency; the message says which extra installs it."""


class NoSolution(TangereError):
    """A choice was asked from an answer that holds none: a pose out of reach, or outside the joint limits."""
