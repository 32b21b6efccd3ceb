"""Formulas for data sheets: expressions of Python as MathML, which browsers typeset by themselves.

What a page shows is what a test evaluates: r11 = c1*(c234*c5*c6 - s234*s6) + ... is one text for both. A name is a
letter or a Greek word, and what follows it its index: s234, r11, theta.
"""

from __future__ import annotations

import ast
import re

from tangere.figures.markup import Raw, join, tag

# T_base_flange of a UR, the product of its six matrices; c234 = cos(q2 + q3 + q4)
ROTATION = {
    "r11": "c1*(c234*c5*c6 - s234*s6) + s1*s5*c6",
    "r21": "s1*(c234*c5*c6 - s234*s6) - c1*s5*c6",
    "r31": "s234*c5*c6 + c234*s6",
    "r12": "-c1*(c234*c5*s6 + s234*c6) - s1*s5*s6",
    "r22": "-s1*(c234*c5*s6 + s234*c6) + c1*s5*s6",
    "r32": "-s234*c5*s6 + c234*c6",
    "r13": "-c1*c234*s5 + s1*c5",
    "r23": "-s1*c234*s5 - c1*c5",
    "r33": "-s234*s5",
}
PLACE = {
    "x": "c1*(a2*c2 + a3*c23 + d5*s234 - d6*c234*s5) + s1*(d4 + d6*c5)",
    "y": "s1*(a2*c2 + a3*c23 + d5*s234 - d6*c234*s5) - c1*(d4 + d6*c5)",
    "z": "d1 + a2*s2 + a3*s23 - d5*c234 - d6*s234*s5",
}
# A_i = Rz(q_i) Tz(d_i) Tx(a_i) Rx(alpha_i) with alpha = 90, 0, 0, 90, -90, 0 deg
STEPS = (
    (("c1", "0", "s1", "0"), ("s1", "0", "-c1", "0"), ("0", "1", "0", "d1"), ("0", "0", "0", "1")),
    (("c2", "-s2", "0", "a2*c2"), ("s2", "c2", "0", "a2*s2"), ("0", "0", "1", "0"), ("0", "0", "0", "1")),
    (("c3", "-s3", "0", "a3*c3"), ("s3", "c3", "0", "a3*s3"), ("0", "0", "1", "0"), ("0", "0", "0", "1")),
    (("c4", "0", "s4", "0"), ("s4", "0", "-c4", "0"), ("0", "1", "0", "d4"), ("0", "0", "0", "1")),
    (("c5", "0", "-s5", "0"), ("s5", "0", "c5", "0"), ("0", "-1", "0", "d5"), ("0", "0", "0", "1")),
    (("c6", "-s6", "0", "0"), ("s6", "c6", "0", "0"), ("0", "0", "1", "d6"), ("0", "0", "0", "1")),
)
ANGLES = {"yaw": "atan2(r21, r11)", "pitch": "atan2(-r31, sqrt(r32**2 + r33**2))", "roll": "atan2(r32, r33)"}
SIZES = {
    "w": "sqrt(1 + r11 + r22 + r33)/2",
    "x": "sqrt(1 + r11 - r22 - r33)/2",
    "y": "sqrt(1 - r11 + r22 - r33)/2",
    "z": "sqrt(1 - r11 - r22 + r33)/2",
}
# by the largest component, which is taken positive: the other three
SIGNS = {
    "w": {"x": "(r32 - r23)/(4*w)", "y": "(r13 - r31)/(4*w)", "z": "(r21 - r12)/(4*w)"},
    "x": {"w": "(r32 - r23)/(4*x)", "y": "(r12 + r21)/(4*x)", "z": "(r13 + r31)/(4*x)"},
    "y": {"w": "(r13 - r31)/(4*y)", "x": "(r12 + r21)/(4*y)", "z": "(r23 + r32)/(4*y)"},
    "z": {"w": "(r21 - r12)/(4*z)", "x": "(r13 + r31)/(4*z)", "y": "(r23 + r32)/(4*z)"},
}
_GREEK = {"alpha": "α", "theta": "θ", "pi": "π"}
_FUNCTIONS = ("atan2", "cos", "sin", "arccos")
STYLE = Raw(
    "<style>math{font-size:1.02em}.formulas{display:flex;flex-wrap:wrap;gap:14px 34px;margin:12px 0;align-items:center;"
    "overflow:auto hidden}.formulas.column{flex-direction:column;align-items:flex-start;gap:8px;overflow:visible}"
    "@media print{.formulas{overflow:visible}}</style>"
)


def _name(text: str) -> Raw:
    letter, index = re.fullmatch(r"([A-Za-z]+?)_?(\d*|base_tcp|flange_tcp|i)", text).groups()  # type: ignore[union-attr]
    shown = tag("mi", _GREEK.get(letter, letter))
    return tag("msub", shown, tag("mn" if index.isdigit() else "mi", index.replace("_", " "))) if index else shown


def _operator(text: str) -> Raw:
    return tag("mo", text)


def _fenced(body: Raw) -> Raw:
    return join(_operator("("), body, _operator(")"))


def _node(node: ast.expr, level: int = 0) -> Raw:
    """level: how tightly what stands around binds: 0 nothing, 1 a difference, 2 a product."""
    match node:
        case ast.Name(id=text):
            return _name(text)
        case ast.Constant(value=value):
            return tag("mn", value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            body = join(_operator("−"), _node(inner, 2))
            return _fenced(body) if level > 0 else body
        case ast.BinOp(left=a, op=ast.Add() | ast.Sub() as op, right=b):
            sign = "+" if isinstance(op, ast.Add) else "−"
            body = join(_node(a, 0), _operator(sign), _node(b, 1))
            return _fenced(body) if level > 1 or (level == 1 and sign == "−") else body
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            first = _node(a, 0 if isinstance(a, ast.UnaryOp) else 2)  # a sign before all factors needs no brackets
            return join(first, Raw("<mspace width='0.17em'></mspace>"), _node(b, 2))
        case ast.BinOp(left=a, op=ast.Div(), right=b):
            return tag("mfrac", tag("mrow", _node(a)), tag("mrow", _node(b)))
        case ast.BinOp(left=a, op=ast.Pow(), right=b):
            return tag("msubsup", *_parts(a), _node(b)) if _parts(a) else tag("msup", _node(a, 2), _node(b))
        case ast.Call(func=ast.Name(id="sqrt"), args=[inner]):
            return tag("msqrt", _node(inner))
        case ast.Call(func=ast.Name(id="abs"), args=[inner]):
            return join(_operator("|"), _node(inner), _operator("|"))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            listed = [_node(a) for a in arguments]
            between = [x for a in listed for x in (_operator(","), a)][1:]
            return join(tag("mi", name, mathvariant="normal"), _fenced(join(*between)))
        case _:
            raise ValueError(f"no form of mathematics for {ast.unparse(node)!r}")


def _parts(node: ast.expr) -> tuple[Raw, ...]:
    """Letter and index of a name that has one: a power goes above the index."""
    if isinstance(node, ast.Name) and (found := re.fullmatch(r"([a-z])(\d+)", node.id)):
        return tag("mi", found[1]), tag("mn", found[2])
    return ()


def expression(text: str) -> Raw:
    """MathML of an expression, without its frame."""
    return _node(ast.parse(text, mode="eval").body)


def math(*parts: Raw) -> Raw:
    """A formula that stands by itself."""
    return tag("math", tag("mrow", *parts), display="block", xmlns="http://www.w3.org/1998/Math/MathML")


def equation(left: str, right: str) -> Raw:
    """left = right."""
    return math(expression(left), _operator("="), expression(right))


def matrix(rows: tuple[tuple[str, ...], ...]) -> Raw:
    """A matrix in brackets."""
    body = tag("mtable", *(tag("mtr", *(tag("mtd", expression(x)) for x in row)) for row in rows))
    return join(_operator("["), body, _operator("]"))


def _all(formulas: dict[str, str], *, bars: bool = False) -> Raw:
    shown = (equation(f"abs({name})" if bars else name, text) for name, text in formulas.items())
    return tag("div", *shown, class_="formulas column")


def forward_formulas() -> Raw:
    """Pose of a UR's flange: the six matrices, their product, its entries."""
    steps = [math(_name(f"A{i}"), _operator("="), matrix(rows)) for i, rows in enumerate(STEPS, 1)]
    whole = tuple((f"r{i}1", f"r{i}2", f"r{i}3", "xyz"[i - 1]) for i in (1, 2, 3))
    product = join(*(_name(f"A{i}") for i in range(1, 7)))
    return join(
        tag("h4", "Matrices"), tag("div", *steps, class_="formulas"),
        math(product, _operator("="), matrix((*whole, ("0", "0", "0", "1")))),
        tag("h4", "Their product: rotation and place of the flange"),
        tag("div", _all(ROTATION), _all(PLACE), class_="formulas"),
        tag("p", "c and s are cosine and sine, an index of several digits means the sum of those angles: "
            "c₂₃₄ = cos(q₂ + q₃ + q₄). Joints 2, 3 and 4 have parallel axes, hence the sums.", class_="sub"),
    )  # fmt: skip


def rotation_formulas(figure: Raw) -> Raw:
    """Yaw, pitch, roll and quaternion of a rotation matrix; figure: of the double cover."""
    cases = [tag("div", tag("b", f"{largest} largest"), _all(others)) for largest, others in SIGNS.items()]
    return join(
        tag("h4", "Yaw, pitch and roll of a rotation matrix"), _all(ANGLES),
        tag("h4", "Quaternion of a rotation matrix"),
        tag("p", "First the sizes of the four components:"), _all(SIZES, bars=True),
        tag("p", "Then the signs: the largest is taken positive, the others follow from it, which divides by nothing "
            "small:"), tag("div", *cases, class_="formulas"),
        tag("p", "q and −q are the same rotation: an angle θ about n, or 2π − θ about −n. The block puts out the one "
            "nearer to that of the step before, or, if so chosen, the one whose first nonzero component is positive."),
        figure,
    )  # fmt: skip
