"""Pictures from files: PNG, JPEG and what else Pillow reads, as plain RGB on white paper.

The size is read from the header and judged before a single pixel is decoded: a file of some kilobytes can claim a
picture of gigabytes. Whatever the file holds (palette, grey, 16 bit, CMYK, transparency, a turned camera) becomes
eight bits of red, green and blue, upright, laid over white (over black where the ink itself is white).
"""

from __future__ import annotations

import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tangere import foreign
from tangere.errors import InvalidValue, extra

# Largest picture [pixels] that is decoded: 50 million (the sensor of a good camera) are 150 MB as RGB.
PIXELS_MAX = 50_000_000
# Kinds that Pillow hands to a program of the system (Ghostscript runs what stands in a file), whatever a file is called
PROGRAMS = ("EPS", "WMF")
# Largest file [bytes]: 50 million pixels of 16 bit RGB, hardly compressed.
BYTES_MAX = 300_000_000
# Longest side [pixels] that is traced: at 200 mm one pixel is then 0.1 mm, a third of the finest pen line.
SIDE_MAX = 2000
# Ink with all channels above this [of 255] does not stand out from white.
LIGHT = 230
# What Pillow raises over damaged files.
DAMAGED = (OSError, ValueError, SyntaxError, IndexError, TypeError, MemoryError)
# A side below this [pixels] holds no line with two ends.
SIDE_MIN = 3


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture ready to be traced: red, green and blue on white paper, row 0 at the top."""

    rgb: NDArray[np.uint8]  # (h, w, 3)
    notes: tuple[str, ...] = ()  # what was reduced, turned or laid over white

    @property
    def width(self) -> int:
        """Columns [pixels]."""
        return int(self.rgb.shape[1])

    @property
    def height(self) -> int:
        """Rows [pixels]."""
        return int(self.rgb.shape[0])


def tones(picture: Picture) -> NDArray[np.uint8]:
    """(h, w) where the picture is grey, else (h, w, 3): a third of the work for the same result."""
    rgb = picture.rgb
    first = np.ascontiguousarray(rgb[..., 0])
    if np.array_equal(first, rgb[..., 1]) and np.array_equal(first, rgb[..., 2]):
        return first
    return rgb


def strongest(values: Any) -> Any:
    """(h, w) the largest of the channels of (h, w) or (h, w, 3)."""
    if values.ndim == 2:
        return values
    return np.maximum(np.maximum(values[..., 0], values[..., 1]), values[..., 2])


def opencv() -> Any:
    """OpenCV's Python module, or the error that says how to install it."""
    with extra("tracing a picture needs OpenCV: pip install 'tangere[draw]'"):
        import cv2
    return cv2


def read_picture(source: str | Path | bytes, *, side_max: int = SIDE_MAX) -> Picture:
    """Read a picture file (or its bytes): header first, then pixels, then reduced to side_max on its longer side.

    Raises InvalidValue for a file that is missing, no picture, damaged, or larger than PIXELS_MAX.
    """
    with extra("reading a picture needs Pillow: pip install 'tangere[draw]'"):
        from PIL import Image, ImageOps
    name = "the picture" if isinstance(source, bytes) else str(source)
    notes: list[str] = []
    raw = source if isinstance(source, bytes) else foreign.read_bytes(source, BYTES_MAX)
    data = io.BytesIO(raw)
    Image.init()  # all readers of Pillow, before the limits that hold while reading
    with foreign.reading(name, len(raw)), data, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of large pictures; our own limit is below
        try:
            image = Image.open(data, formats=[kind for kind in Image.OPEN if kind not in PROGRAMS])
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            if isinstance(error, Image.DecompressionBombError):
                count = re.search(r"\d+", str(error))  # Pillow says how many, and a limit of its own
                raise InvalidValue(
                    f"{name} is too large: {count[0] if count else 'far too many'} pixels by its header; "
                    f"at most {PIXELS_MAX // 1_000_000} million are read: reduce it"
                ) from error
            raise InvalidValue(f"{name} is not a picture that can be read (PNG, JPEG or SVG is)") from error
        columns, rows = image.size
        if columns * rows > PIXELS_MAX:
            raise InvalidValue(
                f"{name} is {columns} x {rows} pixels by its header; "
                f"at most {PIXELS_MAX // 1_000_000} million are read: reduce it"
            )
        if min(columns, rows) < SIDE_MIN:
            raise InvalidValue(f"{name} is {columns} x {rows} pixels; a picture needs at least {SIDE_MIN} x {SIDE_MIN}")
        try:
            if image.format == "JPEG":
                # decodes a large JPEG at 1/2, 1/4 or 1/8, still above side_max
                image.draft("RGB", (side_max, side_max))
            unpacked = image.size[0] * image.size[1] * (1 if image.mode in ("1", "L", "P") else 4)
            if unpacked > foreign.budget(len(raw)):
                raise InvalidValue(
                    f"{name}: {columns} x {rows} pixels take {unpacked // 1_000_000} MB unpacked, "
                    f"{foreign.budget(len(raw)) // 1_000_000} is what a file of this size may take: reduce it; "
                    "tangere --memory SIZE allows more"
                )
            image.load()
            if 3 * unpacked > foreign.budget(len(raw)) and image.mode in ("L", "RGB", "RGBA"):
                image.thumbnail((side_max, side_max))  # before it is copied
            upright = ImageOps.exif_transpose(image)
        except InvalidValue:
            raise
        except (*DAMAGED, Image.DecompressionBombError) as error:
            raise InvalidValue(f"{name} is damaged: {error}") from error
        if getattr(image, "n_frames", 1) > 1:
            notes.append(f"only the first of {getattr(image, 'n_frames', 1)} frames is drawn")
        if image.getexif().get(0x0112, 1) not in (0, 1):
            notes.append("turned upright as the camera recorded")
        rgb = _on_white(upright if upright is not None else image, notes)
    turned = rgb.shape[0] != rgb.shape[1] and (rgb.shape[1] > rgb.shape[0]) != (columns > rows)
    original = (rows, columns) if turned else (columns, rows)
    return reduced(Picture(rgb, tuple(notes)), side_max=side_max, original=original)


def picture_from(pixels: ArrayLike, *, side_max: int = SIDE_MAX) -> Picture:
    """A picture from an array (h, w), (h, w, 3) or (h, w, 4): eight or sixteen bits, bool, or floats in [0, 1]."""
    array = np.asarray(pixels)
    if array.ndim < 2 or array.shape[2:] not in ((), (1,), (3,), (4,)) or min(array.shape[:2]) < SIDE_MIN:
        raise InvalidValue(
            f"pixels of shape {array.shape}; (h, w), (h, w, 3) or (h, w, 4) from {SIDE_MIN} x {SIDE_MIN} on are valid"
        )
    if array.shape[0] * array.shape[1] > PIXELS_MAX:
        raise InvalidValue(
            f"{array.shape[1]} x {array.shape[0]} pixels; at most {PIXELS_MAX // 1_000_000} million are traced"
        )
    whole = {"bool": 1.0, "uint8": 255.0, "uint16": 65535.0}  # what stands for white
    if array.dtype.name not in whole and array.dtype.kind != "f":
        raise InvalidValue(f"pixels of type {array.dtype}; uint8, uint16, bool or floats in [0, 1] are read")
    values = array / whole.get(array.dtype.name, 1.0)
    if not np.isfinite(values).all() or values.min() < 0.0 or values.max() > 1.0:
        raise InvalidValue("float pixels must be finite and in [0, 1]")
    if values.ndim == 2:
        values = values[..., None]
    if values.shape[2] == 4:
        values = values[..., :3] * values[..., 3:] + 1.0 - values[..., 3:]
    rgb = np.broadcast_to(np.rint(255.0 * values).astype(np.uint8), (*values.shape[:2], 3))
    return reduced(Picture(np.ascontiguousarray(rgb)), side_max=side_max)


def reduced(picture: Picture, *, side_max: int = SIDE_MAX, original: tuple[int, int] | None = None) -> Picture:
    """The picture with its longer side at most side_max [pixels]; the note says so.

    `original` (columns, rows) is what the file held where the decoder has reduced it already.
    """
    if side_max < 16:
        raise InvalidValue(f"side_max {side_max} pixels; at least 16")
    columns, rows = original or (picture.width, picture.height)
    longest = max(picture.width, picture.height)
    rgb = picture.rgb
    if longest > side_max:
        cv2 = opencv()
        size = [max(SIDE_MIN, round(side * side_max / longest)) for side in (picture.width, picture.height)]
        rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
    if rgb.shape[:2] == (rows, columns):
        return picture
    note = f"reduced from {columns} x {rows} to {rgb.shape[1]} x {rgb.shape[0]} pixels: finer than the pen can draw"
    return Picture(rgb, (*picture.notes, note))


def enlarged(picture: Picture, side: int) -> Picture:
    """The picture enlarged by the largest whole factor that leaves its longer side at most `side` [pixels]."""
    factor = side // max(picture.width, picture.height)
    if factor < 2:
        return picture
    cv2 = opencv()
    return Picture(cv2.resize(picture.rgb, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC), picture.notes)


def _on_white(image: Any, notes: list[str]) -> NDArray[np.uint8]:
    """(h, w, 3) from any mode of Pillow, transparency laid over white."""
    from PIL import Image

    mode = image.mode
    if mode in ("I;16", "I;16B", "I;16L", "I", "F"):
        values = np.asarray(image, dtype=float)
        most = float(max(values.max(), 1e-300))
        # 16 bit files hold 0..65535, or the 10, 12 or 14 bits of a camera or scanner; a float file what it holds
        top = most if mode == "F" else next((t for t in (1023.0, 4095.0, 16383.0) if 255.0 < most <= t), 65535.0)
        grey = np.rint(255.0 * np.clip(values / top, 0.0, 1.0)).astype(np.uint8)
        return np.ascontiguousarray(np.repeat(grey[..., None], 3, axis=2))
    if mode in ("LA", "La", "PA", "RGBA", "RGBa") or (mode in ("P", "L", "RGB", "1") and "transparency" in image.info):
        rgba = image.convert("RGBA")
        paper = 255
        if rgba.getextrema()[3][0] < 255:
            values = np.asarray(rgba)
            seen = values[values[..., 3] > 127][:, :3]
            # ink that would not be seen on white was meant for a dark ground
            paper = 0 if seen.size and seen.min() > LIGHT else 255
            notes.append(f"transparent parts are {'white' if paper else 'black'} paper")
        white = Image.new("RGBA", rgba.size, (paper, paper, paper, 255))
        return np.ascontiguousarray(np.asarray(Image.alpha_composite(white, rgba).convert("RGB")))
    return np.ascontiguousarray(np.asarray(image.convert("RGB")))
