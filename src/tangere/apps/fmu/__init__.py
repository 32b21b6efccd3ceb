"""FMUs: blocks of a UR arm in plain C after FMI 2.0, made from the kernels of the library.

write_fmu(kind, robot, out) writes one, KINDS are the eight kinds.
"""

from tangere.lazy import attach

__getattr__, __dir__ = attach(__name__)
