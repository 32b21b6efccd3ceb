from tangere.control.reactions.soft_hold import FloatOnContact as FloatOnContact
from tangere.control.reactions.stop_on_path import PathClock as PathClock
from tangere.control.reactions.retreat import Retreat as Retreat
from tangere.control.reactions.soft_hold import StopOnContact as StopOnContact
from tangere.control.reactions.stop_on_path import StopOnPath as StopOnPath
