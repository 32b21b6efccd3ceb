"""What a text may be told: the options of `tangere write`."""

from __future__ import annotations

from dataclasses import dataclass

from tangere.apps.drawing.settings import SIZE, length
from tangere.settings import check, setting, word

SINGLE = "single-line"  # the font of our own
HEIGHT = (1e-3, 1.0)  # m of a capital: two widths of a pen's line; nothing reaches farther
ALIGNS = ("left", "centre", "right")


@dataclass(frozen=True)
class TextSettings:
    """How text is set; the values are the defaults of `tangere write`."""

    height: float = setting(
        0.012, "m", "of a capital letter", parse=length, typed="mm", low=HEIGHT[0], high=HEIGHT[1], metavar="LENGTH"
    )
    font: str = word(
        SINGLE, "single-line: the middle lines of letters, made for a pen; or a font of the system, or its file, as "
        "outlines (--hatch fills them)", metavar="NAME|FILE",
    )  # fmt: skip
    align: str = word("left", "of the lines to each other", ALIGNS)
    line_distance: float = setting(
        1.8, "", "from line to line, in heights of a capital", low=0.5, high=20.0, metavar="X"
    )
    letter_distance: float = setting(
        0.0, "m", "of additional paper between two letters", parse=length, typed="mm", low=-0.1, high=1.0,
        metavar="LENGTH",
    )  # fmt: skip
    wrap: float | None = setting(
        None, "m", "longest line: longer ones are broken between words", parse=length, typed="mm", low=0.0, above=True,
        high=SIZE[1], metavar="LENGTH",
    )  # fmt: skip

    def __post_init__(self) -> None:
        check(self)
