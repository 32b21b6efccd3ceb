"""URScript: programs of Universal Robots arms, read, checked and run. Knows no socket and no arm that moves."""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
