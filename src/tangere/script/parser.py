"""URScript tokens to the tree of a program.

The grammar, with what is special about it:

    file      := item*        item := (def|sec|thread) NAME ( parameters ) : block end | statement
    statement := if ... elif ... else ... end | while ... end | return [expression in the same line] | break | continue
               | halt | pass | enter_critical | exit_critical | kill expression | join expression
               | [global|local] place [= expression] | expression
    expression: or xor < and < not < comparison < + - < * / % < unary minus < call, index, member

A statement may follow another in the same line without a separator, and an expression may go on in the next line: real
programs have both. A new line therefore only forbids to go on with ( [ . + or -, which could begin a statement.
Indentation means nothing. `p` is also a name: p[...] with six entries is a pose, else an element of the variable p.
"""

from __future__ import annotations

from math import isfinite

from tangere.script import syntax
from tangere.script.syntax import Node, ScriptError, Token, tokens

# Levels of blocks and brackets, operators in a row and arms of an if: far more than programs have (a client's longest
# if has 70 arms), few enough that neither this parser nor Python's compiler runs out of stack.
DEEPEST = 60
IN_A_ROW = 200
ARMS = 250
# Loops inside each other: Python's compiler takes 20 blocks.
LOOPS = 18
DIGITS = 18  # of a whole number: URScript's have 32 bits, which is 10
COMPARISONS = frozenset(("==", "!=", "<", ">", "<=", ">="))
_PLAIN = frozenset(("break", "continue", "halt", "pass", "enter_critical", "exit_critical"))
_CLOSING = frozenset(("end", "elif", "else"))


def parse(program: str) -> tuple[Node, ...]:
    """The items of a file: functions and statements. Raises ScriptError with line and column."""
    return _Parser(tokens(program)).program()


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens, self._next = found, 0
        self.now = found[0]
        self._depth = self._loops = 0

    # ------------------------------------------------------------------------------------------------------- tokens

    def _step(self) -> Token:
        taken = self.now
        if taken.kind != "end":
            self._next += 1
            self.now = self._tokens[self._next]
        return taken

    def _at(self, text: str) -> bool:
        return self.now.text == text and self.now.kind in ("operator", "keyword")

    def _take(self, text: str) -> bool:
        """Whether the next token is that one, which is then taken."""
        if self._at(text):
            self._step()
            return True
        return False

    def _expect(self, text: str, why: str = "") -> Token:
        if not self._at(text):
            raise self._wrong(f"expected {text!r}{why}")
        return self._step()

    def _wrong(self, what: str, at: Token | None = None) -> ScriptError:
        token = at or self.now
        words = {"end": "the end of the program", "text": f'"{token.text}"'}
        return ScriptError(f"{what}, found {words.get(token.kind, repr(token.text))}", token.line, token.column)

    def _name(self, what: str = "a name") -> str:
        if self.now.kind != "name":
            raise self._wrong(f"expected {what}")
        return self._step().text

    def _deeper(self, at: Token) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ScriptError(f"more than {DEEPEST} blocks and brackets inside each other", at.line, at.column)

    # --------------------------------------------------------------------------------------------------- statements

    def program(self) -> tuple[Node, ...]:
        """Everything up to the end."""
        found = []
        while self.now.kind != "end":
            found.append(self._statement())
        return tuple(found)

    def _block(self, opened: Token) -> tuple[Node, ...]:
        self._expect(":", f" after this {opened.text!r}")
        self._deeper(opened)
        found = []
        while not (self.now.kind == "keyword" and self.now.text in _CLOSING):
            if self.now.kind == "end":
                raise ScriptError(
                    f"the program ends, but the {opened.text!r} of line {opened.line} has no 'end'",
                    self.now.line, self.now.column,
                )  # fmt: skip
            found.append(self._statement())
        self._depth -= 1
        return tuple(found)

    def _statement(self) -> Node:
        token = self.now
        if token.kind == "keyword":
            word, place = token.text, (token.line, token.column)
            if word in ("def", "sec", "thread"):
                return self._function()
            if word == "if":
                return self._if()
            if word == "while":
                return self._while()
            if word in _PLAIN:
                self._step()
                return syntax.Word(*place, word)
            if word in ("kill", "join"):
                self._step()
                return syntax.OnThread(*place, word, self._expression())
            if word == "return":
                self._step()
                bare = self.now.first or (self.now.kind == "keyword" and self.now.text in _CLOSING)
                return syntax.Return(*place, None if bare else self._expression())
            if word in ("global", "local"):
                self._step()
                return self._declared(word, place)
        value = self._expression()
        if self._at("="):
            sign = self._step()
            root = value
            while isinstance(root, syntax.Index | syntax.Member):
                root = root.value
            if not isinstance(root, syntax.Name):
                what = "a value can only be given to a variable, an element or a member"
                raise ScriptError(what, sign.line, sign.column)
            return syntax.Assign(token.line, token.column, value, self._expression())
        return syntax.Expression(token.line, token.column, value)

    def _declared(self, scope: str, place: tuple[int, int]) -> Node:
        at = self.now
        target: Node = syntax.Name(at.line, at.column, self._name(f"the name of a {scope} variable"))
        target = self._postfix(target) if self._at("[") or self._at(".") else target
        if not isinstance(target, syntax.Name | syntax.Index | syntax.Member):
            raise ScriptError(f"{scope} is followed by a variable", at.line, at.column)
        value = self._expression() if self._take("=") else None
        if value is None and not isinstance(target, syntax.Name):
            raise self._wrong("expected '='")
        return syntax.Assign(*place, target, value, scope)

    def _function(self) -> Node:
        opened = self._step()
        name, loops = self._name(f"the name of a {opened.text}"), self._loops
        parameters: list[tuple[str, Node | None]] = []
        self._loops = 0
        self._expect("(")
        while not self._at(")"):
            at, default = self.now, None
            parameter = self._name("a parameter")
            if any(known == parameter for known, _ in parameters):
                raise ScriptError(f"the parameter {parameter!r} stands here twice", at.line, at.column)
            if self._take("="):
                default = self._expression()
            elif parameters and parameters[-1][1] is not None:
                raise ScriptError(f"{parameter!r} needs a default, as the one before has", at.line, at.column)
            parameters.append((parameter, default))
            if not self._at(")"):
                self._expect(",")
        self._expect(")")
        body = self._block(opened)
        self._end(opened)
        self._loops = loops
        kind = opened.text
        assert kind in ("def", "sec", "thread")
        return syntax.Function(opened.line, opened.column, kind, name, tuple(parameters), body)  # type: ignore[arg-type]

    def _end(self, opened: Token) -> None:
        self._expect("end", f" of the {opened.text!r} of line {opened.line}")

    def _if(self) -> Node:
        opened, arms, otherwise = self.now, [], ()
        word = self._step()
        while True:
            condition = self._expression()
            arms.append((condition, self._block(word)))
            if len(arms) > ARMS:
                raise ScriptError(f"more than {ARMS} arms of one if", word.line, word.column)
            if not self._at("elif"):
                break
            word = self._step()
        if self._at("else"):
            otherwise = self._block(self._step())  # type: ignore[assignment]
        self._end(opened)
        return syntax.If(opened.line, opened.column, tuple(arms), otherwise)

    def _while(self) -> Node:
        opened = self._step()
        self._loops += 1
        if self._loops > LOOPS:
            raise ScriptError(f"more than {LOOPS} loops inside each other", opened.line, opened.column)
        condition = self._expression()
        body = self._block(opened)
        self._end(opened)
        self._loops -= 1
        return syntax.While(opened.line, opened.column, condition, body)

    # -------------------------------------------------------------------------------------------------- expressions

    def _expression(self) -> Node:
        self._deeper(self.now)
        left = self._and()
        count = 0
        while self._at("or") or self._at("xor"):
            count = self._counted(count)
            sign = self._step()
            left = syntax.Binary(sign.line, sign.column, sign.text, left, self._and())
        self._depth -= 1
        return left

    def _counted(self, count: int) -> int:
        if count >= IN_A_ROW:
            at = self.now
            raise ScriptError(f"more than {IN_A_ROW} operators in a row: use brackets", at.line, at.column)
        return count + 1

    def _and(self) -> Node:
        left, count = self._not(), 0
        while self._at("and"):
            count = self._counted(count)
            sign = self._step()
            left = syntax.Binary(sign.line, sign.column, "and", left, self._not())
        return left

    def _not(self) -> Node:
        signs = self._signs(("not",))
        value = self._comparison()
        for sign in reversed(signs):
            value = syntax.Unary(sign.line, sign.column, "not", value)
        return value

    def _signs(self, known: tuple[str, ...]) -> list[Token]:
        """Signs before a value, in a row."""
        found: list[Token] = []
        while any(self._at(sign) for sign in known):
            if len(found) == DEEPEST:
                raise ScriptError(f"more than {DEEPEST} signs in a row", self.now.line, self.now.column)
            found.append(self._step())
        return found

    def _comparison(self) -> Node:
        left, count = self._sum(), 0
        while self.now.kind == "operator" and self.now.text in COMPARISONS:
            count = self._counted(count)
            sign = self._step()
            left = syntax.Binary(sign.line, sign.column, sign.text, left, self._sum())
        return left

    def _sum(self) -> Node:
        left, count = self._product(), 0
        while (self._at("+") or self._at("-")) and not self.now.first:
            count = self._counted(count)
            sign = self._step()
            left = syntax.Binary(sign.line, sign.column, sign.text, left, self._product())
        return left

    def _product(self) -> Node:
        left, count = self._unary(), 0
        while self._at("*") or self._at("/") or self._at("%"):
            count = self._counted(count)
            sign = self._step()
            left = syntax.Binary(sign.line, sign.column, sign.text, left, self._unary())
        return left

    def _unary(self) -> Node:
        signs = self._signs(("-", "+"))
        value = self._postfix(self._atom())
        for sign in reversed(signs):
            if sign.text == "-":
                value = syntax.Unary(sign.line, sign.column, "-", value)
        return value

    def _postfix(self, value: Node) -> Node:
        count = 0
        while self.now.kind == "operator" and not self.now.first:
            token = self.now
            if token.text == "(":
                at = token._replace(line=value.line, column=value.column)
                if isinstance(value, syntax.Name):
                    value = self._call(value.name, at)
                elif isinstance(value, syntax.Member):
                    value = self._call(value.name, at, value.value)
                else:
                    raise ScriptError("only a function can be called", token.line, token.column)
            elif token.text == "[":
                self._step()
                indices = self._items("]")
                if isinstance(value, syntax.Name) and value.name == "p" and len(indices) == 6:
                    value = syntax.Items(value.line, value.column, indices, pose=True)
                elif 1 <= len(indices) <= 2:
                    value = syntax.Index(token.line, token.column, value, indices)
                else:
                    what = f"one index or two, got {len(indices)} (a pose p[...] has six entries)"
                    raise ScriptError(what, token.line, token.column)
            elif token.text == ".":
                self._step()
                value = syntax.Member(token.line, token.column, value, self._name("a member's name"))
            else:
                break
            count = self._counted(count)
        return value

    def _items(self, closing: str) -> tuple[Node, ...]:
        found = []
        while not self._at(closing):
            found.append(self._expression())
            if not self._at(closing):
                self._expect(",", f" or {closing!r}")
        self._step()
        return tuple(found)

    def _call(self, name: str, at: Token, value: Node | None = None, thread: bool = False) -> Node:
        self._expect("(")
        positional: list[Node] = []
        named: list[tuple[str, Node]] = []
        while not self._at(")"):
            following = self._tokens[self._next + 1] if self.now.kind == "name" else None
            if following is not None and following.kind == "operator" and following.text == "=":
                where = self._step()
                self._step()
                if any(known == where.text for known, _ in named):
                    raise ScriptError(f"the argument {where.text!r} stands here twice", where.line, where.column)
                named.append((where.text, self._expression()))
            elif named:
                raise self._wrong("after an argument with a name all have one")
            else:
                positional.append(self._expression())
            if not self._at(")"):
                self._expect(",", " or ')'")
        self._step()
        return syntax.Call(at.line, at.column, name, tuple(positional), tuple(named), thread, value)

    def _atom(self) -> Node:
        token = self.now
        place = (token.line, token.column)
        if token.kind == "number":
            self._step()
            return syntax.Constant(*place, _number(token))
        if token.kind == "text":
            self._step()
            return syntax.Constant(*place, token.text)
        if token.kind == "name":
            self._step()
            return syntax.Name(*place, token.text)
        if self._at("True") or self._at("False"):
            return syntax.Constant(*place, self._step().text == "True")
        if self._take("run"):
            at = self.now
            return self._call(self._name("the name of a thread"), at, thread=True)
        if self._take("("):
            value = self._expression()
            self._expect(")")
            return value
        if self._take("["):
            return syntax.Items(*place, self._items("]"))
        raise self._wrong("expected a value")


def _number(token: Token) -> int | float:
    text = token.text
    if text[:2] in ("0x", "0X", "0b", "0B"):
        return int(text[2:], 16 if text[1] in "xX" else 2) if len(text) <= DIGITS else _large(token)
    if text.isdigit():
        return int(text) if len(text) <= DIGITS else _large(token)
    value = float(text)
    return value if isfinite(value) else _large(token)


def _large(token: Token) -> int:
    raise ScriptError(f"the number {token.text[:20]}... is too large", token.line, token.column)
