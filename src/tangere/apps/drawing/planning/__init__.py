"""Drawing: from a picture to ordered strokes, to a canvas, to a motion of the pen."""

from tangere.apps.drawing.planning.demo_pictures import shipped_picture, shipped_pictures
from tangere.apps.drawing.planning.make import strokes_of
from tangere.apps.drawing.planning.merge import merged
from tangere.apps.drawing.planning.order import ordered
from tangere.apps.drawing.planning.picture import Picture, picture_from, read_picture
from tangere.apps.drawing.planning.preview import figures, preview_svg
from tangere.apps.drawing.planning.raster import png_bytes, rendered
from tangere.apps.drawing.planning.simplify import simplified, smoothed
from tangere.apps.drawing.planning.strokes import Strokes
from tangere.apps.drawing.planning.svg_read import read_svg
from tangere.apps.drawing.planning.svg_write import svg_text, write_svg
from tangere.apps.drawing.planning.tracing import Tracing, fitted, trace

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
