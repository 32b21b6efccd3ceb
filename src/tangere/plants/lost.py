"""The error of a plant that no longer answers."""

from __future__ import annotations

from tangere.errors import TangereError


class PlantLost(TangereError):
    """A plant gives no more samples: silent hardware, a recording at its end, a simulation that diverged."""
