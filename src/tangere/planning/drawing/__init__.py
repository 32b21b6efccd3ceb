"""Drawing: from a picture to ordered strokes, to a canvas, to a motion of the pen."""

from tangere.planning.drawing.demo_pictures import shipped_picture, shipped_pictures
from tangere.planning.drawing.make import strokes_of
from tangere.planning.drawing.merge import merged
from tangere.planning.drawing.order import ordered
from tangere.planning.drawing.picture import Picture, picture_from, read_picture
from tangere.planning.drawing.preview import figures, preview_svg
from tangere.planning.drawing.raster import png_bytes, rendered
from tangere.planning.drawing.simplify import simplified, smoothed
from tangere.planning.drawing.strokes import Strokes
from tangere.planning.drawing.svg_read import read_svg
from tangere.planning.drawing.svg_write import svg_text, write_svg
from tangere.planning.drawing.trace import Tracing, fitted, trace

__all__ = [
    "Picture",
    "Strokes",
    "Tracing",
    "figures",
    "fitted",
    "merged",
    "ordered",
    "picture_from",
    "png_bytes",
    "preview_svg",
    "read_picture",
    "read_svg",
    "rendered",
    "shipped_picture",
    "shipped_pictures",
    "simplified",
    "smoothed",
    "strokes_of",
    "svg_text",
    "trace",
    "write_svg",
]
