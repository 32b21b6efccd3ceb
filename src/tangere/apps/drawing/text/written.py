"""A text as a picture file, which is drawn as any other, and can be drawn again from its folder."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tangere.apps.drawing.settings import SIZE, DrawingSettings
from tangere.apps.drawing.text.layout import set_text, text_svg
from tangere.apps.drawing.text.settings import TextSettings
from tangere.errors import InvalidValue

NAME_MAX = 32  # letters of a text that its file is named by


@contextmanager
def written(text: str, settings: TextSettings, filled: bool = False) -> Iterator[tuple[Path, tuple[float, float]]]:
    """(an SVG file with the text in a temporary folder, the width and height [m] of what is written).

    filled: letters of an outline font are areas, to be hatched.
    """
    laid = set_text(text, settings)
    if max(laid.size) > SIZE[1]:
        wide, high = laid.size
        raise InvalidValue(
            f"the text is {1e3 * wide:.0f} x {1e3 * high:.0f} mm at a height of {1e3 * settings.height:g} mm: no arm "
            "reaches that; a smaller --height, shorter lines (\\n), or --wrap 300mm"
        )
    with tempfile.TemporaryDirectory(prefix="tangere-") as folder:
        path = Path(folder) / f"{named(text)}.svg"
        path.write_text(text_svg(laid, filled), encoding="utf-8")
        yield path, laid.size


def named(text: str) -> str:
    """A file name that recalls a text: its letters and digits, "text" where it has none."""
    words = re.sub(r"[^\w-]+", "_", text.replace("\\n", " "), flags=re.ASCII)[:NAME_MAX].strip("_")
    return words or "text"


def sized(settings: DrawingSettings, size: tuple[float, float]) -> DrawingSettings:
    """The settings with the paper as large as the text and its margin."""
    return replace(settings, size=(size[0] + 2.0 * settings.margin, size[1] + 2.0 * settings.margin), style="auto")
