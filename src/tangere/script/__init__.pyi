from tangere.script.builtin import version as version
from tangere.script.compiler import Program as Program, load as load
from tangere.script.host import (
    FRAME as FRAME,
    Host as Host,
    QuietHost as QuietHost,
    Registers as Registers,
    Setpoint as Setpoint,
    Signals as Signals,
)
from tangere.script.syntax import ScriptError as ScriptError
from tangere.script.machine import Ended as Ended, Machine as Machine
from tangere.script.resolve import Problem as Problem, check as check
from tangere.script.values import ScriptException as ScriptException
