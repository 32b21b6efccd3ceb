"""Formulas on the data sheets: what is typeset is evaluated, and is what the library computes."""

from __future__ import annotations

import re
from math import atan2, cos, sin, sqrt

import numpy as np
import pytest

import tangere
from tangere.apps.fmu import formulas
from tangere.apps.fmu.kinds import kind_of
from tangere.apps.fmu.pages import documentation_html
from tangere.apps.fmu.part import arm_of
from tangere.kinematics.rotation import quaternion_from_matrix, ypr_from_matrix

EXACT = 1e-12  # sums of a few products of an arm's lengths


def names_of(robot: tangere.Robot, q: np.ndarray) -> dict[str, float]:
    """Everything that a formula may name, as numbers."""
    dh = robot.model.dh
    assert dh is not None
    found = {f"{letter}{i + 1}": f(q[i]) for letter, f in (("c", cos), ("s", sin)) for i in range(6)}
    for digits in ("23", "234"):
        angle = sum(q[int(d) - 1] for d in digits)
        found |= {f"c{digits}": cos(angle), f"s{digits}": sin(angle)}
    return found | {f"a{i + 1}": dh.a[i] for i in range(6)} | {f"d{i + 1}": dh.d[i] for i in range(6)}


def value(text: str, names: dict[str, float]) -> float:
    return float(eval(text, {"sqrt": sqrt, "atan2": atan2}, names))


@pytest.mark.parametrize("arm", ["ur10e", "ur3"])
def test_pose(arm: str, rng: np.random.Generator) -> None:
    robot = tangere.robot(arm)
    for q in rng.uniform(-6.0, 6.0, (50, 6)):
        names, T = names_of(robot, q), robot.pose(q)
        for name, text in formulas.ROTATION.items():
            assert abs(value(text, names) - T[int(name[1]) - 1, int(name[2]) - 1]) < EXACT, name
        for i, text in enumerate(formulas.PLACE.values()):
            assert abs(value(text, names) - T[i, 3]) < EXACT
        product = np.eye(4)
        for rows in formulas.STEPS:
            product = product @ np.array([[value(x, names) for x in row] for row in rows])
        assert np.abs(product - T).max() < EXACT


def test_angles_and_quaternion(rng: np.random.Generator) -> None:
    robot, seen = tangere.robot("ur5e"), set()
    for q in rng.uniform(-6.0, 6.0, (200, 6)):
        R = robot.pose(q)[:3, :3]
        names = {f"r{i + 1}{j + 1}": float(R[i, j]) for i in range(3) for j in range(3)}
        if abs(R[2, 0]) < 0.99:
            angles = [value(text, names) for text in formulas.ANGLES.values()]
            np.testing.assert_allclose(angles, ypr_from_matrix(R), atol=1e-12)
        wanted = quaternion_from_matrix(R)
        sizes = {name: value(text, names) for name, text in formulas.SIZES.items()}
        np.testing.assert_allclose(list(sizes.values()), np.abs(wanted), atol=1e-7)  # a root near zero: half the digits
        largest = max(sizes, key=lambda name: sizes[name])
        seen.add(largest)
        found = {largest: sizes[largest]}
        found |= {name: value(text, names | found) for name, text in formulas.SIGNS[largest].items()}
        got = np.array([found[name] for name in "wxyz"])
        assert min(np.abs(got - wanted).max(), np.abs(got + wanted).max()) < EXACT
    assert seen == set("wxyz")


def test_typeset() -> None:
    """A sign before a product has no brackets, a difference that is subtracted has, an index stands below."""
    assert "(" not in formulas.expression("-a2*c2")
    assert formulas.expression("x - (y - z)").count("(") == 1
    assert formulas.expression("x*(y + z)").count("(") == 1
    assert formulas.expression("s234") == "<msub><mi>s</mi><mn>234</mn></msub>"
    assert "<msqrt>" in formulas.expression("sqrt(1 + r11)/2")
    with pytest.raises(ValueError, match="no form of mathematics"):
        formulas.expression("x < y")


@pytest.mark.parametrize(("arm", "shown"), [("ur10e", True), ("scara", False)])
def test_sheet(arm: str, shown: bool) -> None:
    """Matrices and r_ij for UR arms, angles, quaternion and double cover for all; nothing is fetched from anywhere."""
    made, kind = arm_of(tangere.robot(arm)), kind_of("fk")
    page = documentation_html(kind, made, kind.table(made), "1.2.3")
    assert (page.count("<mtable>") == 7) == shown
    for words in ("Yaw, pitch and roll of a rotation matrix", "Double cover", "Tangere 1.2.3",
                  "drawn to scale", "built only"):  # fmt: skip
        assert words in page
    head = page[page.index("<header"):page.index("</header>")]  # author, date and version stand on top, as in 001
    assert re.search(r"The Tangere authors · 20\d\d-\d\d-\d\d · Tangere 1\.2\.3<", head)
    assert "src=\"http" not in page
    assert "@import" not in page
