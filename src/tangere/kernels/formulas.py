"""Jacobian, mass matrix, Coriolis matrix and gravity of an arm as formulas to read (000 sections 2 and 3).

They are traced from the same algorithms as the kernels, with the numbers of the arm in them, then multiplied out and
factored anew (codegen.normal_form). Of an arm whose axes point anywhere nobody would read that: it keeps the recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from tangere.codegen.normal_form import Angles, TooLong, angle_sums, normal_form
from tangere.codegen.trace import Graph, Symbol, operation_count
from tangere.errors import InvalidValue
from tangere.kernels import ur
from tangere.kernels.emit.formulas import Formula, Language, function
from tangere.kernels.table import KERNELS, Kernel, trace
from tangere.kinematics import forward
from tangere.kinematics.chain import Chain, chain_of, parallel_groups
from tangere.kinematics.vectors import Scalar, Vector
from tangere.model.model import Model

Quantity = Literal["jacobian", "mass-matrix", "coriolis", "gravity"]
At = Literal["com", "origin"]
# terms of one polynomial while it is multiplied out; a UR10e has some 1500 on its way
TERMS_MAX = 3000
# multiplied out it is read more easily than a recursion, which is worth twice the operations
WORTH = 2.0


@dataclass(frozen=True)
class _Quantity:
    kernel: str
    symbol: str
    says: str


QUANTITIES: dict[Quantity, _Quantity] = {
    "jacobian": _Quantity("jacobian", "J", "geometric Jacobian, base axes: rows v [m/s], then omega [rad/s]"),
    "mass-matrix": _Quantity("mass_matrix", "M", "mass matrix M(q) [kg m2], [kg m], [kg]; without rotors"),
    "coriolis": _Quantity("coriolis_matrix", "C", "Coriolis matrix C(q, qd) with the Christoffel symbols"),
    "gravity": _Quantity("gravity_torque", "g", "torque of gravity g(q) [Nm], [N]"),
}


def formula_text(
    model: Model, quantity: Quantity, language: Language, *, link: int | None = None, at: At = "com"
) -> str:
    """The quantity of a model as text in one of the LANGUAGES; the arguments are those of `formula`.

    The first lines are comments: what it is, of which arm, and how many operations it takes.
    """
    return function(formula(model, quantity, link=link, at=at), language)


def formula(model: Model, quantity: Quantity, *, link: int | None = None, at: At = "com") -> Formula:
    """The quantity of a model, simplified.

    link: Jacobian at a link's centre of mass (`at="origin"`: at its frame's origin), counted from 1, in place of the
    tool point.
    """
    what = QUANTITIES[quantity]
    if link is not None and quantity != "jacobian":
        raise InvalidValue(f"link: only the Jacobian is asked for at a link; {quantity} belongs to the whole arm")
    if link is not None and not 1 <= link <= model.dof:
        raise InvalidValue(f"link: from 1 to {model.dof}, got {link}")
    graph, outputs, way = _shortest(_kernel(what.kernel, link, at), _chain(model))
    shape = {"jacobian": (6, model.dof), "gravity": (model.dof,)}.get(quantity, (model.dof, model.dof))
    inputs = ("q", "qd") if quantity == "coriolis" else ("q",)
    place = "the tool point" if link is None else f"the {'centre of mass' if at == 'com' else 'origin'} of link {link}"
    units = ", q [rad]" if all(j.kind == "revolute" for j in model.joints) else ", q [rad], [m] where a joint slides"
    title = f"{_plain(model.title)}: {what.says}{f'; at {place}' if quantity == 'jacobian' else ''}{units}"
    name = quantity.replace("-", "_")
    return Formula(name, what.symbol, shape, inputs, model.dof, graph, outputs, title, way)


def _kernel(name: str, link: int | None, at: At) -> Kernel:
    def of_link(chain: Chain, q: Vector) -> list[Scalar]:
        assert link is not None
        if at == "origin":
            return forward.point_jacobian(chain, link - 1, q, [0.0] * 3)
        n = chain.dof
        blocks = forward.link_jacobians(chain, q)
        linear, angular = blocks[: 3 * n * n], blocks[3 * n * n :]
        return [x for block in (linear, angular) for x in block[3 * n * (link - 1) : 3 * n * link]]

    found = next(k for k in KERNELS if k.name == name)
    return found if link is None else Kernel(name, ("q",), found.outputs, of_link, found.help)


def _shortest(kernel: Kernel, chain: Chain) -> tuple[Graph, list[Symbol], str]:
    """The form with the fewest operations: multiplied out over sums of angles or over angles, or as computed."""
    traced = trace(kernel, chain.dof, lambda _: chain, 0)
    turning = [t == 1.0 for t in chain.turns]
    groups = parallel_groups(chain)
    forms: list[tuple[float, Graph, list[Symbol], str]] = []

    def add(angles: Angles) -> None:
        try:
            graph, outputs = normal_form(traced.graph, traced.outputs, angles, most=TERMS_MAX)
        except TooLong:
            return
        forms.append((operation_count(graph, outputs), graph, outputs, "multiplied out and factored"))

    add(angle_sums(groups, turning))
    if groups != list(range(chain.dof)):
        add(angle_sums(list(range(chain.dof)), turning))
    count = operation_count(traced.graph, traced.outputs)
    way = "in steps from joint to joint: multiplied out it is longer"
    forms.append((WORTH * count, traced.graph, traced.outputs, way))
    return min(forms, key=lambda form: form[0])[1:]


def _chain(model: Model) -> Chain:
    """The model's chain with quarter turns as whole numbers, 0 in place of 6e-17."""
    if ur.is_ur(model):
        return ur.chain(ur.parameters_of(model).tolist())
    chain = chain_of(model)
    R, R_link = ([[[round(x, 15) for x in row] for row in A] for A in many] for many in (chain.R, chain.R_link))
    return replace(chain, R=R, R_link=R_link).regrouped()


def _plain(title: str) -> str:
    """A name from a file as part of a comment: nothing that could end it."""
    return re.sub(r"[^A-Za-z0-9 .,()-]", "", title)[:60] or "an arm"
