"""Tools by name: mass and point reach kinematics, dynamics and runs; where they are from is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tangere
from tangere.apps.scenarios.execute import again, execute
from tangere.errors import InvalidValue
from tangere.model.tools import TOOLS


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_payload_and_point(name: str) -> None:
    tool, q = TOOLS[name], np.array([0.3, -1.1, 1.4, -0.9, 0.7, -0.4])
    bare, armed = tangere.robot("ur5e"), tangere.robot("ur5e", tool=name)
    by_hand = tangere.robot("ur5e", tool=(0.0, 0.0, tool.tcp), payload=tool.payload)
    assert np.array_equal(armed.mass_matrix(q), by_hand.mass_matrix(q))
    assert np.allclose(armed.pose(q)[:3, 3], bare.pose(q)[:3, 3] + tool.tcp * bare.pose(q)[:3, 2], atol=1e-15)
    # its weight at its centre of mass, by the flange's own Jacobian
    J = bare.jacobian(q, link=6, point=(0.0, 0.0, tool.com))[:3]
    weight = J.T @ np.array((0.0, 0.0, 9.81 * tool.mass))
    assert np.allclose(armed.gravity_torque(q) - bare.gravity_torque(q), weight, atol=2e-3 * tool.mass)
    assert [s.grade for s in armed.model.sources if s.group == "tool"] == ["approximated"]
    assert np.all(np.linalg.eigvalsh(tool.payload.inertia) > 0.0)


def test_mistakes_are_said() -> None:
    with pytest.raises(InvalidValue, match="2f-85, hand-e, pen"):
        tangere.robot("ur5e", tool="gripper")
    with pytest.raises(InvalidValue, match="has its own mass"):
        tangere.robot("ur5e", tool="hand-e", payload=1.0)
    with pytest.raises(InvalidValue, match="a tool of its own"):
        execute("touch", {"tool": "pen"}, out="unused")


def test_friction_rotors_sensors_and_a_gripper_on_a_ur5e(tmp_path: Path) -> None:
    """Known to the controller it disturbs nothing; a push is felt beside it."""
    given = {
        "robot": "ur5e", "tool": "2f-85", "friction": "full", "sensors": "typical", "duration": 3.0, "period": 2e-3,
        "push": "joint=2,torque=20,start=1.5,duration=1",
    }  # fmt: skip
    done = execute("circle", given, out=tmp_path, csv=False)
    q = np.full(6, 0.4)
    assert np.array_equal(done.built.world.true.gravity_torque(q), done.built.world.believed.gravity_torque(q))
    assert done.built.world.true.model.payload is not None
    assert np.all(done.built.world.true.rotor_inertia > 0.0)
    assert [event["joint"] for event in done.summary["events"] if event["alarm"]] == [2]
    repeated, kept = again(tmp_path)
    assert np.array_equal(repeated.result.log["q"], kept["q"])
