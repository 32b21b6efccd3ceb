"""Robots that answer: simulated, recorded or real, all behind the Plant protocol of tangere.types."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
