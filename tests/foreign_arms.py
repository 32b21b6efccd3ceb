"""Three arms that are no UR, made by hand: seven axes, a SCARA, and six axes whose wrist is not spherical."""

from __future__ import annotations

from pathlib import Path

QUARTER = 1.5707963267948966
# kind, xyz, rpy, low, high, speed, effort, mass, centre of mass, radius of gyration; every axis is the joint's z
Row = tuple[str, str, tuple[float, float, float], float, float, float, float, float, str, float]
SEVEN: tuple[Row, ...] = (
    ("revolute", "0 0 0.15", (0, 0, 0), -2.9, 2.9, 1.5, 176, 5.0, "0 0 0.1", 0.1),
    ("revolute", "0 0 0.19", (QUARTER, 0, 0), -2.0, 2.0, 1.5, 176, 4.0, "0 0.1 0", 0.1),
    ("revolute", "0 0.21 0", (-QUARTER, 0, 0), -2.9, 2.9, 1.7, 110, 3.0, "0 0 0.1", 0.1),
    ("revolute", "0 0 0.19", (-QUARTER, 0, 0), -2.0, 2.0, 1.3, 110, 2.7, "0 -0.1 0", 0.1),
    ("revolute", "0 -0.21 0", (QUARTER, 0, 0), -2.9, 2.9, 2.2, 110, 1.7, "0 0 0.1", 0.08),
    ("revolute", "0 0 0.19", (QUARTER, 0, 0), -2.0, 2.0, 2.3, 40, 1.6, "0 0 0", 0.07),
    ("revolute", "0 0.08 0", (-QUARTER, 0, 0), -3.0, 3.0, 2.3, 40, 0.3, "0 0 0.02", 0.05),
)
SCARA: tuple[Row, ...] = (
    ("revolute", "0 0 0.25", (0, 0, 0), -2.6, 2.6, 6.0, 100, 8.0, "0.15 0 0", 0.1),
    ("revolute", "0.325 0 0", (0, 0, 0), -2.5, 2.5, 9.0, 60, 5.0, "0.1 0 0", 0.1),
    ("prismatic", "0.275 0 0", (2 * QUARTER, 0, 0), 0.0, 0.21, 1.1, 150, 1.0, "0 0 -0.05", 0.05),
    ("continuous", "0 0 0", (0, 0, 0), 0.0, 0.0, 30.0, 10, 0.3, "0 0 0", 0.04),
)
SIX: tuple[Row, ...] = (
    ("revolute", "0 0 0.3", (0, 0, 0), -2.9, 2.9, 2.5, 200, 10.0, "0 0 0.1", 0.15),
    ("revolute", "0.1 0 0.1", (-QUARTER, 0, 0), -2.2, 2.2, 2.5, 200, 8.0, "0.2 0 0", 0.15),
    ("revolute", "0.45 0 0", (0, 0, 0), -2.4, 2.4, 2.5, 150, 6.0, "0.1 0 0.05", 0.12),
    ("revolute", "0.1 0 0.15", (QUARTER, 0, 0), -3.1, 3.1, 4.0, 60, 3.0, "0 0 0.1", 0.08),
    ("revolute", "0.03 0 0.3", (-QUARTER, 0, 0), -2.2, 2.2, 4.0, 60, 2.0, "0 0 0.02", 0.06),
    ("revolute", "0 -0.04 0.09", (QUARTER, 0, 0.3), -6.0, 6.0, 6.0, 30, 0.5, "0 0 0.02", 0.04),
)
ARMS = {"seven": SEVEN, "sorter": SCARA, "six": SIX}


def urdf(name: str, rows: tuple[Row, ...]) -> str:
    """The URDF of a chain, with a tool frame 0.1 m beyond the last link."""
    text, parent = [f'<robot name="{name}">', '<link name="base_link"/>'], "base_link"
    for i, (kind, xyz, rpy, low, high, speed, effort, mass, com, radius) in enumerate(rows, 1):
        turn, moment = " ".join(map(str, rpy)), mass * radius * radius
        text.append(
            f'<joint name="joint_{i}" type="{kind}"><parent link="{parent}"/><child link="link_{i}"/>'
            f'<origin xyz="{xyz}" rpy="{turn}"/><axis xyz="0 0 1"/>'
            f'<limit lower="{low}" upper="{high}" velocity="{speed}" effort="{effort}"/></joint>'
            f'<link name="link_{i}"><inertial><origin xyz="{com}"/><mass value="{mass}"/><inertia ixx="{moment}" '
            f'iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )
        parent = f"link_{i}"
    text.append(
        f'<joint name="tip" type="fixed"><parent link="{parent}"/><child link="tool0"/><origin xyz="0 0 0.1"/></joint>'
        '<link name="tool0"/></robot>'
    )
    return "\n".join(text)


def written(folder: Path, name: str) -> Path:
    """The URDF of one of ARMS in a folder."""
    file = folder / f"{name}.urdf"
    file.write_text(urdf(name, ARMS[name]))
    return file
