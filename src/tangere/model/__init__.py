"""Arms as data: loading, checking, importing and exporting the description of a serial arm."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
