"""What a check of an FMU found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["good", "bad", "not checked", "note"]

WORDS = 5  # complaints of one check that are spelled out; the rest is counted
LETTERS = 160  # of one complaint; some checkers list every variable


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: where, what, how it is, and in what words."""

    part: str
    what: str
    outcome: Outcome
    text: str = ""


def judged(part: str, what: str, complaints: Sequence[str], good: str = "") -> Finding:
    """Good where there is no complaint."""
    if not complaints:
        return Finding(part, what, "good", good)
    more = f"; and {len(complaints) - WORDS} more" if len(complaints) > WORDS else ""
    short = [c if len(c) <= LETTERS else c[: LETTERS - 3] + "..." for c in complaints[:WORDS]]
    return Finding(part, what, "bad", "; ".join(short) + more)


Tell = Callable[[str], None]
