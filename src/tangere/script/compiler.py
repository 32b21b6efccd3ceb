"""A resolved program to Python bytecode, with the line numbers of the URScript text.

Coloured functions become generators: a yield is the end of a frame. Variables are called v_NAME, functions f_NAME,
builtins b_NAME; what the code needs beside them (spent, stored, ...) is given by `Machine`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from tangere.script import syntax
from tangere.script.builtin import NEWEST, Version
from tangere.script.resolve import (
    CHANGING,
    LEGACY,
    LEGACY_IN,
    MAIN,
    Resolved,
    Scope,
    builtins,
    calls_itself,
    resolve,
)
from tangere.script.syntax import Node, ScriptError
from tangere.script.values import List, Pose, Text

_ARITHMETIC = {"+": ast.Add, "-": ast.Sub, "/": ast.Div, "%": ast.Mod}
_COMPARISON = {"==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, ">": ast.Gt, "<=": ast.LtE, ">=": ast.GtE}
FILE = "<urscript>"  # what stands for a file name in the bytecode: lines of frames with it are the program's
ENTRY = "main"  # name of the generator of the program's own body


@dataclass(frozen=True)
class Program:
    """A program that can run, as often as wanted and in several machines at once."""

    name: str
    kind: str  # def, or sec: runs beside another program, within one frame
    code: CodeType
    constants: dict[str, Any]
    functions: tuple[str, ...]  # its own
    coloured: frozenset[str]  # those that may have to wait
    warnings: tuple[str, ...]
    version: Version


@lru_cache(maxsize=8)  # clients send the same text again and again; reading a long one takes 50 ms
def load(text: str, version: Version = NEWEST) -> Program:
    """The program of a text, ready to run. Raises ScriptError with the first thing that is wrong."""
    found = resolve(text, version)
    for problem in found.errors:
        raise ScriptError(problem.message, problem.line, problem.column)
    compiler = _Compiler(found)
    try:
        code = compile(compiler.module(), FILE, "exec")
    except (RecursionError, MemoryError):
        raise ScriptError("expressions and blocks are nested too deep", 1) from None
    own = tuple(name for name in found.scopes if name != MAIN)
    coloured = frozenset(name for name in own if found.scopes[name].coloured)
    said = tuple(str(problem) for problem in found.problems)
    return Program(found.name, found.kind, code, compiler.constants, own, coloured, said, version)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *arguments: ast.expr, **named: ast.expr) -> ast.Call:
    return ast.Call(_name(name), list(arguments), [ast.keyword(key, value) for key, value in named.items()])


def _placed(node: Any, at: Node) -> Any:
    """The node and what is below it, where that has no place yet, at a place of the program."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if hasattr(one, "lineno"):
            continue
        if isinstance(one, ast.expr | ast.stmt | ast.keyword | ast.arg):
            one.lineno = one.end_lineno = at.line
            one.col_offset = one.end_col_offset = at.column - 1
        waiting.extend(ast.iter_child_nodes(one))
    return node


class _Compiler:
    def __init__(self, found: Resolved) -> None:
        self.found = found
        self.scope: Scope = found.scopes[MAIN]
        self.constants: dict[str, Any] = {}

    def module(self) -> ast.Module:
        """Every function, then the program's own body."""
        body: list[ast.stmt] = []
        for name, scope in self.found.scopes.items():
            body.append(self._function(f"f_{name}" if name != MAIN else ENTRY, scope))
        return ast.Module(body, [])

    def _constant(self, value: Any) -> ast.expr:
        name = f"c_{len(self.constants)}"
        self.constants[name] = value
        return _name(name)

    # ---------------------------------------------------------------------------------------------------- functions

    def _function(self, name: str, scope: Scope) -> ast.stmt:
        self.scope = scope
        at = Node(scope.line, 1)
        before: list[ast.stmt] = []
        defaults: list[ast.expr] = []
        if scope.outer:
            before.append(ast.Global([f"v_{outer}" for outer in sorted(scope.outer)]))
        if scope.name != MAIN and calls_itself(self.found, scope.name):
            before.append(self._guard())
        for parameter, default in scope.parameters:
            if isinstance(default, syntax.Constant):
                defaults.append(self._expression(default))
            elif default is not None:  # computed when it is called, as it may name variables
                defaults.append(_name("unset"))
                missing = ast.Compare(_name(f"v_{parameter}"), [ast.Is()], [_name("unset")])
                given = ast.Assign([ast.Name(f"v_{parameter}", ast.Store())], self._expression(default))
                before.append(ast.If(missing, [given], []))
        body = before + self._block(scope.body)
        if scope.coloured:  # a generator also where no yield was met
            body.append(ast.If(ast.Constant(False), [ast.Expr(ast.Yield(None))], []))
        arguments = ast.arguments(
            [], [ast.arg(f"v_{parameter}") for parameter, _ in scope.parameters], None, [], [], None, defaults
        )
        made: ast.stmt = _placed(ast.FunctionDef(name, arguments, body or [ast.Pass()], [], None), at)
        return made

    def _guard(self) -> ast.stmt:
        """The end of the frame where the slice is spent."""
        return ast.If(_call("spent"), [ast.Expr(ast.Yield(None))], [])

    # --------------------------------------------------------------------------------------------------- statements

    def _block(self, body: tuple[Node, ...]) -> list[ast.stmt]:
        found = []
        for node in body:
            made = self._statement(node)
            if made is not None:
                found.append(_placed(made, node))
        return found

    def _statement(self, node: Node) -> ast.stmt | None:
        if isinstance(node, syntax.Function):
            return None  # all of them stand in the module
        if isinstance(node, syntax.Assign):
            return self._assign(node)
        if isinstance(node, syntax.Expression):
            if isinstance(node.value, syntax.Call) and node.value.value is not None and node.value.name in CHANGING:
                return self._changed(node.value)
            return ast.Expr(self._expression(node.value))
        if isinstance(node, syntax.If):
            otherwise = self._block(node.otherwise)
            for condition, body in reversed(node.arms):
                arm = ast.If(self._expression(condition), self._block(body) or [ast.Pass()], otherwise)
                otherwise = [_placed(arm, condition)]
            return otherwise[0]
        if isinstance(node, syntax.While):
            loop = [_placed(self._guard(), node), *self._block(node.body)]
            return ast.While(self._expression(node.condition), loop, [])
        if isinstance(node, syntax.Return):
            return ast.Return(ast.Constant(0) if node.value is None else self._expression(node.value))
        if isinstance(node, syntax.OnThread):
            thread = self._expression(node.thread)
            return ast.Expr(_call("kill", thread) if node.word == "kill" else ast.YieldFrom(_call("join", thread)))
        assert isinstance(node, syntax.Word)
        plain: dict[str, ast.stmt] = {"break": ast.Break(), "continue": ast.Continue(), "pass": ast.Pass()}
        return plain.get(node.word) or ast.Expr(_call(node.word))

    def _store(self, name: str, value: ast.expr) -> ast.stmt:
        return ast.Assign([ast.Name(f"v_{name}", ast.Store())], value)

    def _assign(self, node: syntax.Assign) -> ast.stmt:
        name, value = node.root.name, node.value
        if value is None:  # declared only: has no value before it is given one
            return ast.Pass()
        new = self._expression(value)
        if isinstance(node.place, syntax.Name):
            return self._store(name, new)
        known = name in self.scope.local or name in self.found.shared
        if isinstance(node.place, syntax.Index) and name in LEGACY and not known:
            return ast.Expr(_call(f"b_{LEGACY[name]}", self._expression(node.place.indices[0]), new))
        return self._store(name, _call("stored", _name(f"v_{name}"), self._path(node.place), new))

    def _path(self, place: Node) -> ast.expr:
        """Indices and member names from the variable to the place, each computed once."""
        keys: list[ast.expr] = []
        while isinstance(place, syntax.Index | syntax.Member):
            if isinstance(place, syntax.Index):
                keys[:0] = [self._expression(index) for index in place.indices]
            else:
                keys.insert(0, ast.Constant(place.name))
            place = place.value
        return ast.Tuple(keys, ast.Load())

    def _changed(self, call: syntax.Call) -> ast.stmt:
        """list.append(x) and its like, as an assignment."""
        assert call.value is not None
        root = call.value
        while isinstance(root, syntax.Index | syntax.Member):
            root = root.value
        assert isinstance(root, syntax.Name)
        arguments = [self._expression(argument) for argument in call.positional]
        new = _call("changed", ast.Constant(call.name), self._expression(call.value), *arguments)
        return self._store(root.name, _call("stored", _name(f"v_{root.name}"), self._path(call.value), new))

    # -------------------------------------------------------------------------------------------------- expressions

    def _expression(self, node: Node) -> ast.expr:
        made: ast.expr = _placed(self._made(node), node)
        return made

    def _made(self, node: Node) -> ast.expr:
        if isinstance(node, syntax.Constant):
            return self._constant(Text(node.value)) if isinstance(node.value, str) else ast.Constant(node.value)
        if isinstance(node, syntax.Name):
            return _name(f"v_{node.name}")
        if isinstance(node, syntax.Items):
            return self._items(node)
        if isinstance(node, syntax.Unary):
            sign: ast.unaryop = ast.USub() if node.operator == "-" else ast.Not()
            return ast.UnaryOp(sign, self._expression(node.value))
        if isinstance(node, syntax.Binary):
            return self._binary(node)
        if isinstance(node, syntax.Index):
            return self._index(node)
        if isinstance(node, syntax.Member):
            return _call("member", self._expression(node.value), ast.Constant(node.name))
        assert isinstance(node, syntax.Call)
        return self._called(node)

    def _items(self, node: syntax.Items) -> ast.expr:
        kind = Pose if node.pose else List
        if all(isinstance(item, syntax.Constant) and not isinstance(item.value, str) for item in node.items):
            return self._constant(kind([item.value for item in node.items if isinstance(item, syntax.Constant)]))
        items = ast.Tuple([self._expression(item) for item in node.items], ast.Load())
        return _call("Pose" if node.pose else "entries", items)

    def _binary(self, node: syntax.Binary) -> ast.expr:
        left, right = self._expression(node.left), self._expression(node.right)
        if node.operator == "*":
            return _call("product", left, right)
        if node.operator in _ARITHMETIC:
            return ast.BinOp(left, _ARITHMETIC[node.operator](), right)
        if node.operator in _COMPARISON:
            return ast.Compare(left, [_COMPARISON[node.operator]()], [right])
        if node.operator == "xor":
            return _call("exclusive", left, right)
        return ast.BoolOp(ast.And() if node.operator == "and" else ast.Or(), [left, right])

    def _index(self, node: syntax.Index) -> ast.expr:
        root = node.value
        own = self.scope.local | self.found.shared
        if isinstance(root, syntax.Name) and root.name in LEGACY_IN and root.name not in own:
            return _call(f"b_{LEGACY_IN[root.name]}", self._expression(node.indices[0]))
        value = self._expression(root)
        for index in node.indices:
            listed = isinstance(value, ast.Name | ast.Subscript | ast.Call)  # Python warns of elements of a number
            if listed and isinstance(index, syntax.Constant) and type(index.value) is int:
                value = ast.Subscript(value, ast.Constant(index.value), ast.Load())
            else:
                value = _call("element", value, self._expression(index))
        return value

    def _called(self, node: syntax.Call) -> ast.expr:
        positional = [self._expression(argument) for argument in node.positional]
        if node.value is not None:
            return _call("asked", ast.Constant(node.name), self._expression(node.value), *positional)
        named = {name: self._expression(argument) for name, argument in node.named}
        own = self.found.scopes.get(node.name)
        if own is not None:
            call = _call(f"f_{node.name}", *positional, **{f"v_{name}": value for name, value in named.items()})
            if node.thread:
                return _call("started", ast.Constant(node.name), call)
            return ast.YieldFrom(call) if own.coloured else call
        if node.name == "struct":
            return _call("struct", **named)
        if node.name == "sync":
            return ast.Yield(None)
        known = builtins().get(node.name)
        if known is None:  # one that is not modelled
            return _call("not_modelled", ast.Constant(node.name))
        call = _call(f"b_{node.name}", *positional, **named)
        return ast.YieldFrom(call) if known.blocking else call
