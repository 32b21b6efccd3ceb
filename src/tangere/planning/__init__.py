"""Trajectories: paths in space, time laws, and the joint motion that follows from both."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
