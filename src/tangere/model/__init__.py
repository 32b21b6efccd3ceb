"""Arms as data: loading, checking, importing and exporting the description of a serial arm."""

from tangere.model.loading import load, names, parameter_sets
from tangere.model.model import DH, Drives, Joint, Link, Model, Payload, Source

__all__ = ["DH", "Drives", "Joint", "Link", "Model", "Payload", "Source", "load", "names", "parameter_sets"]
