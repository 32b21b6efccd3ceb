"""Controllers, one file each: start once, step every period, stop once (types.Controller)."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
