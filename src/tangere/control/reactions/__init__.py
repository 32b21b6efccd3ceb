"""Reactions to a touch: controllers that are given a Contact (on_contact), each wrapped around the task's controller.

StopOnPath slows the path's own time to a halt, StopOnContact holds softly, Retreat backs off along the force, and
FloatOnContact lets the arm be led by hand. None of them is a safety function.
"""

from tangere.control.reactions.floating import FloatOnContact
from tangere.control.reactions.path_clock import PathClock
from tangere.control.reactions.retreat import Retreat
from tangere.control.reactions.soft_hold import StopOnContact
from tangere.control.reactions.stop_on_path import StopOnPath

__all__ = ["FloatOnContact", "PathClock", "Retreat", "StopOnContact", "StopOnPath"]
