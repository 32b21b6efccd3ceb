"""Prints traced kernels as JAX: the text of the Python emitter over jax.numpy, for jit, vmap and grad.

Numbers in the text are Python's, which take on the precision of the arrays they meet: one text serves float32 and
float64. Sines and the like are XLA's own, whose derivatives JAX knows: they may differ from our polynomials by a unit
of the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tangere.codegen.trace import Graph, Symbol
from tangere.errors import MissingExtra
from tangere.kernels.emit import python as emit_python


def compiled(
    graph: Graph, inputs: Sequence[str], outputs: Sequence[Symbol], *, parameters: str = "P", batch: bool = True
) -> Callable[..., tuple[Any, ...]]:
    """The kernel as a pure function of lists of JAX arrays; `batch` makes no difference."""
    jnp = numpy_of_jax()
    text = emit_python.source(graph, inputs, outputs, parameters=parameters, batch=True)
    namespace: dict[str, Any] = {
        "sin": jnp.sin, "cos": jnp.cos, "sqrt": jnp.sqrt, "atan2": jnp.arctan2, "rint": jnp.round, "abs": jnp.abs,
        "where": jnp.where, "expm1": jnp.expm1, "tanh": jnp.tanh, "log": jnp.log,
        "power_of_two": lambda n: jnp.ldexp(jnp.ones_like(n), n.astype(int)),
        "exponent": lambda x: jnp.frexp(x)[1].astype(x.dtype) - 1.0,
        "mantissa": lambda x: 2.0 * jnp.frexp(x)[0],
    }  # fmt: skip
    exec(compile(text, "<traced kernel>", "exec"), namespace)  # text consists of our own tokens and numbers only
    kernel: Callable[..., tuple[Any, ...]] = namespace["kernel"]
    return kernel


def numpy_of_jax() -> Any:
    """jax.numpy, or the sentence that says how to get it."""
    try:
        import jax.numpy as jnp
    except ImportError as error:
        raise MissingExtra(f"JAX is not installed ({error}): pip install 'tangere[jax]'") from None
    return jnp
