"""What the names of a program mean, which functions may take time, and everything that is wrong before it runs.

Names: what the program's own body assigns, or what is declared `global` anywhere, lives in one place that every
function and thread sees. Elsewhere a name that is assigned without a word is that one if it exists, else local.

Colours: URScript has no function values, so it is known who calls whom. A function is coloured if it may have to wait
in the middle: it calls something that takes physical time, joins a thread, has a loop (whose slice of a frame may end)
or calls itself. Coloured functions become generators, all others stay plain functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from tangere.script import syntax
from tangere.script.builtin import NEWEST, NOT_MODELLED, Builtin, Version, collected, exists
from tangere.script.functions_arm import ArmFunctions
from tangere.script.functions_host import HostFunctions
from tangere.script.functions_motion import MotionFunctions
from tangere.script.functions_values import Values
from tangere.script.parser import parse
from tangere.script.syntax import Assign, Call, Function, Name, Node, ScriptError, walk

SYNC = Builtin("sync", (), 0, blocking=True)  # the compiler's own: nothing but the end of a frame
STRUCT = Builtin("struct", (), 0)  # takes any names
CONSTANTS = ("PI",)
LEGACY = {"digital_out": "set_digital_out", "analog_out": "set_analog_out"}  # digital_out[2] = True
LEGACY_IN = {"digital_in": "get_digital_in", "digital_out": "get_digital_out", "analog_in": "get_analog_in"}
# Methods of a list, with their number of arguments; those that change it stand as a statement of their own.
CHANGING = {"append": 1, "insert": 2, "extend": 1, "remove": 1, "clear": 0}
ASKING = {"length": 0, "capacity": 0, "slice": 2}
MAIN = ""  # key of the program's own body among its functions


@cache
def builtins() -> dict[str, Builtin]:
    """Every builtin by name, of all versions."""
    own = {"sync": SYNC, "struct": STRUCT}
    return collected(Values, ArmFunctions, MotionFunctions, HostFunctions) | own


@dataclass(frozen=True)
class Problem:
    """Something wrong with a program; both places count from 1."""

    line: int
    column: int
    message: str
    error: bool = True  # False: it runs, but perhaps not as meant

    def __str__(self) -> str:
        kind = "error" if self.error else "warning"
        return f"{self.line}:{self.column}: {kind}: {self.message}"


@dataclass
class Scope:
    """The body of a program or of a function."""

    name: str
    kind: str
    body: tuple[Node, ...]
    parameters: tuple[tuple[str, Node | None], ...] = ()
    line: int = 1
    local: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)  # names of the program that it assigns
    calls: set[str] = field(default_factory=set)
    waits: bool = False  # takes physical time
    coloured: bool = False

    def __post_init__(self) -> None:
        defaults = (default for _, default in self.parameters if default is not None)
        self.nodes = list(walk((*defaults, *self.body), inside=False))  # without those of functions inside it
        self.assigned = [node for node in self.nodes if isinstance(node, Assign)]


@dataclass
class Resolved:
    """A program whose names are known."""

    name: str
    kind: str  # def, sec, thread
    scopes: dict[str, Scope]  # by name; MAIN: the program's own body
    shared: set[str]
    problems: list[Problem]
    version: Version

    @property
    def errors(self) -> list[Problem]:
        """What keeps it from running."""
        return [problem for problem in self.problems if problem.error]


def check(text: str, version: Version = NEWEST) -> list[Problem]:
    """Everything that is wrong with a program, in the order of its lines."""
    try:
        return resolve(text, version).problems
    except ScriptError as problem:
        return [Problem(problem.line, problem.column, problem.message)]


def resolve(text: str, version: Version = NEWEST) -> Resolved:
    """The program of a text. Raises ScriptError where it cannot be read; what else is wrong is in `problems`."""
    items = parse(text)
    only = items[0] if len(items) == 1 else None
    if isinstance(only, Function) and not only.parameters:
        found = Resolved(only.name, only.kind, {}, set(), [], version)
        main = Scope(MAIN, only.kind, only.body, line=only.line)
    else:
        found = Resolved("unnamed", "def", {}, set(), [], version)
        main = Scope(MAIN, "def", items)
    found.scopes[MAIN] = main
    for node in walk(main.body):
        if isinstance(node, Function):
            if node.name in found.scopes:
                first = found.scopes[node.name].line
                _tell(found, node, f"{node.name!r} is already the name of a function, in line {first}")
            found.scopes[node.name] = Scope(node.name, node.kind, node.body, node.parameters, node.line)
            if node.kind == "sec":
                _tell(found, node, "a secondary program (sec) stands alone, not inside another program")
    _share(found)
    for scope in found.scopes.values():
        _Checker(found, scope).check()
    _colour(found)
    if found.kind == "sec" and any(scope.waits for scope in found.scopes.values()):
        _tell(found, None, "a secondary program (sec) may not move the arm, wait or read sockets")
    found.problems.sort(key=lambda problem: (problem.line, problem.column))
    return found


def _tell(found: Resolved, node: Node | None, message: str, error: bool = True) -> None:
    place = (1, 1) if node is None else (node.line, node.column)
    found.problems.append(Problem(*place, message, error))


def _legacy(node: Assign) -> bool:
    return isinstance(node.place, syntax.Index) and node.root.name in LEGACY


def _share(found: Resolved) -> None:
    """Which names the whole program sees, and which each function keeps."""
    for scope in found.scopes.values():
        for node in scope.assigned:
            if node.scope == "global" or (scope.name == MAIN and not _legacy(node)):
                found.shared.add(node.root.name)
    for scope in found.scopes.values():
        said = {node.root.name for node in scope.assigned if node.scope == "local"}
        scope.local = set() if scope.name == MAIN else said | {name for name, _ in scope.parameters}
        for node in scope.assigned:
            name = node.root.name
            if name in scope.local or _legacy(node):
                continue
            if name in found.shared:
                scope.outer.add(name)
            else:
                scope.local.add(name)


class _Checker:
    """Looks at every name and call of one scope."""

    def __init__(self, found: Resolved, scope: Scope) -> None:
        self.found, self.scope = found, scope

    def check(self) -> None:
        scope = self.scope
        self._loops(scope.body, inside=False)
        skip: set[int] = set()  # methods that change a list, where they stand as they should
        for node in scope.nodes:
            if isinstance(node, syntax.While):
                scope.coloured = True
            elif isinstance(node, syntax.OnThread) and node.word == "join":
                scope.waits = True
            elif isinstance(node, syntax.Expression) and isinstance(node.value, Call) and node.value.value is not None:
                skip.add(id(node.value))
            elif isinstance(node, Name):
                self._name(node)
            elif isinstance(node, Call):
                self._call(node, id(node) in skip)

    def _loops(self, body: tuple[Node, ...], inside: bool) -> None:
        """break and continue stand in a loop."""
        for node in body:
            if isinstance(node, syntax.Word) and node.word in ("break", "continue") and not inside:
                _tell(self.found, node, f"{node.word!r} stands outside of a loop")
            elif isinstance(node, syntax.While):
                self._loops(node.body, True)
            elif isinstance(node, syntax.If):
                for _, block in node.arms:
                    self._loops(block, inside)
                self._loops(node.otherwise, inside)

    def _name(self, node: Name) -> None:
        known = node.name in self.scope.local or node.name in self.found.shared
        if known or node.name in CONSTANTS or node.name in LEGACY_IN or node.name in LEGACY:
            return
        function = node.name in self.found.scopes or node.name in builtins()
        hint = ": it is a function, call it with (...)" if function else ""
        _tell(self.found, node, f"the name {node.name!r} is given no value anywhere{hint}")

    def _call(self, node: Call, statement: bool) -> None:
        if node.value is not None:
            self._method(node, statement)
            return
        own = self.found.scopes.get(node.name) if node.name else None
        if own is not None:
            self._own(node, own)
            return
        if node.thread:
            _tell(self.found, node, f"there is no thread {node.name!r}")
            return
        known = builtins().get(node.name)
        if known is None:
            if node.name in NOT_MODELLED:
                _tell(self.found, node, f"{node.name} is not modelled: a call ends the program", error=False)
            else:
                _tell(self.found, node, _unknown(node.name, self.found))
        elif not exists(known.since, self.found.version):
            _tell(self.found, node, _too_old(node.name, known.since, self.found.version))
        else:
            self._builtin(node, known)

    def _builtin(self, node: Call, known: Builtin) -> None:
        self.scope.waits |= known.blocking
        if known is STRUCT:
            if node.positional:
                _tell(self.found, node, "struct takes names only: struct(a=1, b=2)")
            return
        there = [name for name in known.parameters if exists(known.later.get(name, ""), self.found.version)]
        for name, _ in node.named:
            if name in known.later and name not in there:
                _tell(self.found, node, _too_old(f"{name} of {node.name}", known.later[name], self.found.version))
        self._arguments(node, known.parameters, known.required, known.signature)

    def _own(self, node: Call, own: Scope) -> None:
        if node.thread and own.kind != "thread":
            _tell(self.found, node, f"run starts a thread, but {node.name!r} is a function")
        elif own.kind == "thread" and not node.thread:
            _tell(self.found, node, f"{node.name!r} is a thread: run {node.name}()")
        if not node.thread:
            self.scope.calls.add(node.name)
        names = tuple(name for name, _ in own.parameters)
        required = sum(default is None for _, default in own.parameters)
        self._arguments(node, names, required, f"{node.name}({', '.join(names)})")

    def _arguments(self, node: Call, names: tuple[str, ...], required: int, signature: str) -> None:
        given = len(node.positional)
        if given > len(names):
            _tell(self.found, node, f"{given} arguments, but it is {signature}")
            return
        told = {*names[:given], *(name for name, _ in node.named)}
        for name, _ in node.named:
            if name not in names:
                _tell(self.found, node, f"no argument {name!r}: it is {signature}")
            elif name in names[:given]:
                _tell(self.found, node, f"the argument {name!r} is given twice")
        missing = [name for name in names[:required] if name not in told]
        if missing:
            _tell(self.found, node, f"the argument {missing[0]!r} is missing: it is {signature}")

    def _method(self, node: Call, statement: bool) -> None:
        count = ASKING.get(node.name, CHANGING.get(node.name))
        if count is None:
            known = ", ".join((*CHANGING, *ASKING))
            _tell(self.found, node, f"a list has no method {node.name!r}; it has {known}")
            return
        if len(node.positional) != count or node.named:
            _tell(self.found, node, f"{node.name} takes {count} arguments")
        root = node.value
        while isinstance(root, syntax.Index | syntax.Member):
            root = root.value
        if node.name in CHANGING:
            if not statement or not isinstance(root, Name):
                _tell(self.found, node, f"{node.name} changes a variable: it stands as a statement of its own")
            elif root.name in self.found.shared and root.name not in self.scope.local:
                self.scope.outer.add(root.name)


def _unknown(name: str, found: Resolved) -> str:
    import difflib

    names = [*builtins(), *(scope for scope in found.scopes if scope)]
    same = [known for known in names if known.lower() == name.lower()]  # case matters, people forget
    close = same or difflib.get_close_matches(name, names, 1)
    return f"there is no function {name!r}" + (f"; did you mean {close[0]!r}?" if close else "")


def _too_old(what: str, since: str, version: Version) -> str:
    running = ".".join(map(str, version))
    return f"{what} is not in PolyScope {running}, only since {since.replace(' ', ' and ')}"


def _colour(found: Resolved) -> None:
    """Spread from function to caller: who waits, and who may have to wait in the middle."""
    scopes = found.scopes
    for name, scope in scopes.items():
        scope.coloured |= scope.waits or scope.kind == "thread" or name == MAIN or _reaches(scopes, name)
    changed = True
    while changed:
        changed = False
        for scope in scopes.values():
            for called in scope.calls:
                other = scopes[called]
                if (other.waits and not scope.waits) or (other.coloured and not scope.coloured):
                    scope.waits |= other.waits
                    scope.coloured |= other.coloured
                    changed = True


def _reaches(scopes: dict[str, Scope], name: str) -> bool:
    """Whether a function may call itself, over others too."""
    seen: set[str] = set()
    waiting = list(scopes[name].calls)
    while waiting:
        one = waiting.pop()
        if one == name:
            return True
        if one not in seen:
            seen.add(one)
            waiting.extend(scopes[one].calls)
    return False


def calls_itself(found: Resolved, name: str) -> bool:
    """Whether a function may call itself: its calls then count against the slice of a frame, as loops do."""
    return _reaches(found.scopes, name)
