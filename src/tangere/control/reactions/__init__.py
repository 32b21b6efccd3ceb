"""Reactions to a touch: controllers that are given an Event (on_event), each wrapped around the task's controller.

StopOnPath slows the path's own time to a halt, StopOnContact holds softly, Retreat backs off along the force, and
FloatOnContact lets the arm be led by hand. None of them is a safety function.
"""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
