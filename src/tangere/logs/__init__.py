"""What a run or a robot recorded: one log, its readers and its writers."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
