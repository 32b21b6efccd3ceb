from tangere.control.reactions.handover import FloatOnContact as FloatOnContact, StopOnContact as StopOnContact
from tangere.control.reactions.retreat import Retreat as Retreat
from tangere.control.reactions.stop_on_path import PathClock as PathClock, StopOnPath as StopOnPath
