"""Measurements against peers: the command `tangere bench`."""
