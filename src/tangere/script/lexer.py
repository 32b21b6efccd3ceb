"""URScript text to tokens: what each is, where it stands, and whether it is the first of its line.

Ends of lines mean little in URScript (see `parser`), so they are no tokens: each token knows if it begins a line. A `;`
ends a statement as a new line does. A comment begins with #, a line that begins with $ is a label of a pendant program.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tangere.errors import InvalidValue

KEYWORDS = frozenset(
    ("def", "sec", "thread", "end", "if", "elif", "else", "while", "return", "break", "continue", "halt", "pass",
     "global", "local", "run", "kill", "join", "enter_critical", "exit_critical", "and", "or", "xor", "not", "True",
     "False")
)  # fmt: skip
# Characters of a program; beyond it nothing is read. The largest script of a public client has some 60 000.
LONGEST = 4_000_000
_TOKEN = re.compile(
    r"""(?P<newline>\n)|(?P<blank>[ \t\r\f\v\ufeff\xa0]+|\#[^\n]*)
    |(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"[^"\n]*"|'[^'\n]*')
    |(?P<operator>==|!=|<=|>=|[-+*/%<>=()\[\],:.;])
    |(?P<label>\$[^\n]*)""",
    re.VERBOSE,
)


class ScriptError(InvalidValue):
    """A program that cannot be read: what is wrong, and its line and column, both counted from 1."""

    def __init__(self, message: str, line: int, column: int = 1) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message, self.line, self.column = message, line, column

    def __reduce__(self) -> tuple[type[ScriptError], tuple[str, int, int]]:
        return ScriptError, (self.message, self.line, self.column)


class Token(NamedTuple):
    """One word of a program."""

    kind: str  # number, name, keyword, text, operator, end
    text: str  # as written; of a text what stands between its quotes
    line: int  # from 1
    column: int  # from 1
    first: bool  # nothing but blanks stands before it in its line (or since the last `;`)


def tokens(program: str) -> list[Token]:
    """The tokens of a program, the last of kind "end". Raises ScriptError for what is no URScript."""
    if len(program) > LONGEST:
        raise ScriptError(f"the program has {len(program)} characters, at most {LONGEST} are read", 1)
    found: list[Token] = []
    line, begin, position, first = 1, 0, 0, True
    match, size = _TOKEN.match, len(program)
    while position < size:
        one = match(program, position)
        if one is None:
            raise ScriptError(_unreadable(program[position]), line, position - begin + 1)
        kind, text, column = str(one.lastgroup), one.group(), position - begin + 1
        position = one.end()
        if kind == "newline":
            line, begin, first = line + 1, position, True
        elif kind == "blank":
            pass
        elif text == ";":
            first = True
        elif kind == "label":
            if not first:
                raise ScriptError("a label ($ ...) stands in a line of its own", line, column)
        else:
            if kind == "name" and text in KEYWORDS:
                kind = "keyword"
            elif kind == "text":
                text = text[1:-1]
            found.append(Token(kind, text, line, column, first))
            first = False
    found.append(Token("end", "", line, position - begin + 1, True))
    return found


def _unreadable(character: str) -> str:
    if character in "\"'":
        return f"the text that begins with {character} does not end in its line"
    return f"{character!r} means nothing in URScript"
