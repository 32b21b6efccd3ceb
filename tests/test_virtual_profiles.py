"""Controllers by version of PolyScope and by how they were set up: which fields, functions and gates they have."""

from __future__ import annotations

import struct

import pytest

import tangere
from tangere.apps.virtual_ur import primary_port
from tangere.apps.virtual_ur.command import polyscope_of, profile_of
from tangere.apps.virtual_ur.controller import COLLISION, Controller
from tangere.apps.virtual_ur.dashboard_port import DashboardPort
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import RobotMode, SafetyMode
from tangere.apps.virtual_ur.rtde_port import Owners, RtdePort
from tangere.errors import TangereError
from tangere.model.loading import load, names
from tangere.rtde import primary, wire
from tangere.script.compiler import load as program

VERSIONS = ("3.15.8", "5.4.0", "5.9.0", "5.22.0", "5.25.1", "5.26.0", "10.12.1")
# name -> the versions of the list above that have it
FIELDS = {
    "actual_q": VERSIONS,
    "payload": ("3.15.8", "5.9.0", "5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    "tcp_offset": ("3.15.8", "5.9.0", "5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    "ft_raw_wrench": ("5.9.0", "5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    "payload_inertia": ("3.15.8", "5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    "actual_current_as_torque": ("5.25.1", "5.26.0", "10.12.1"),
    "control_step": ("5.26.0",),
}
SIX = "[0,0,0,0,0,0]"
CALLS = {
    f"movej({SIX})": VERSIONS,
    f"tool_contact({SIX})": VERSIONS[1:],
    f"x = get_inverse_kin_has_solution(p{SIX})": ("3.15.8", "5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    f"set_target_payload(1, [0,0,0], {SIX})": ("5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    f"optimovej({SIX})": ("5.22.0", "5.25.1", "5.26.0", "10.12.1"),
    "x = get_mass_matrix()": ("5.25.1", "5.26.0", "10.12.1"),
    f"direct_torque({SIX}, friction_comp=True)": ("5.25.1", "5.26.0", "10.12.1"),
    f"direct_torque({SIX}, {SIX}, {SIX})": ("5.25.1", "5.26.0", "10.12.1"),
}


def made(version: str = "5.26.0", names: str | None = None) -> Controller:
    profile = profile_of(version, names)
    return Controller(Inside(load("ur5e"), plant="rigid", frame=2e-3 if profile.e_series else 8e-3), profile)


@pytest.mark.parametrize("name", [name for name in names() if name.startswith("ur")])
def test_every_arm_is_known_by_what_its_controller_tells(name: str) -> None:
    """UR7e and UR12e tell the numbers of the arms that they were made from; PolyScope 3 drives the three of CB3."""
    version = polyscope_of(name, None)
    assert version.startswith("3.") is (name in ("ur3", "ur5", "ur10"))
    profile = profile_of(version, None)
    frame = 2e-3 if profile.e_series else 8e-3
    controller = Controller(Inside(load(name), plant="rigid", frame=frame), profile, name=name)
    sent = primary_port.state(controller, whole=True)
    parts = dict(primary.parts(sent[5:]))
    configuration = primary.Configuration.read(parts[primary.Part.CONFIGURATION])
    calibration = primary.Calibration.read(parts[primary.Part.KINEMATICS])
    told = primary.Told("", profile.version, configuration, calibration)
    assert primary.another_arm(told, tangere.robot(name)) == ""
    assert primary.another_arm(told, tangere.robot("ur16e" if name != "ur16e" else "ur3e")) == primary.arm_name(told)


def ticks(controller: Controller, seconds: float) -> None:
    for _ in range(round(seconds * controller.rate)):
        controller.tick()


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_and_functions_of_a_version(version: str) -> None:
    controller = made(version)
    assert controller.rate == (125 if version.startswith("3") else 500)
    for name, known in FIELDS.items():
        port = RtdePort(controller, Owners())
        port.feed(wire.version_request(2))
        answer = port.feed(wire.outputs_request((name,), 125.0, 2))
        assert (answer[3] == 1) is (version in known), name  # the recipe's number
        if version in known:
            port.feed(wire.package(wire.Kind.START))
            controller.tick()
            packages = [port.outputs() for _ in range(8)]
            assert {struct.unpack_from(">H", one)[0] == len(one) for one in packages if one} == {True}
    for call, known in CALLS.items():
        text = f"def go():\n  {call}\nend\n"
        numbers = tuple(int(part) for part in version.split("."))
        if version in known:
            program(text, numbers)
        else:
            with pytest.raises(TangereError, match=version.rpartition(".")[0]):
                program(text, numbers)


def test_direct_torque_between_5_23_and_5_25_takes_no_scales() -> None:
    program(f"direct_torque({SIX}, friction_comp=False)\n", (5, 24, 0))
    with pytest.raises(TangereError, match="viscous_scale"):
        program(f"direct_torque({SIX}, viscous_scale={SIX})\n", (5, 24, 0))


def test_power_on_and_brake_release_take_their_time() -> None:
    controller = made(names="booting")
    desk = DashboardPort(controller)
    controller.upload("def go():\n  sync()\nend\n")
    assert not controller.playing  # brakes are closed
    assert desk.feed(b"power on\n") == b"Powering on\n"
    ticks(controller, 0.9)
    assert controller.robot_mode == RobotMode.POWER_ON
    ticks(controller, 0.2)
    assert controller.robot_mode == RobotMode.IDLE
    desk.feed(b"brake release\n")
    ticks(controller, 0.9)
    assert controller.robot_mode == RobotMode.IDLE
    ticks(controller, 0.2)
    assert controller.robot_mode == RobotMode.RUNNING
    before = controller.inside.state.q
    desk.feed(b"power off\n")
    ticks(controller, 0.5)
    assert abs(controller.inside.state.q - before).max() < 1e-3  # the brakes hold


def test_remote_control_off_refuses_programs() -> None:
    controller = made(names="remote-off")
    controller.upload("def go():\n  while True:\n    sync()\n  end\nend\n")
    controller.tick()
    assert not controller.playing
    assert "remote control is off" in controller.said[-1][2]
    assert DashboardPort(controller).feed(b"is in remote control\n") == b"false\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("movej([0, -7.5, 1.5, -1.5, -1.5, 0])", "cannot turn"),
        ("speedj([0, 0, 0, 0, 0, 9], 40, 1)", "joint 6"),
        ("while True:\n    direct_torque([0, 0, 0, 0, 0, 28])\n  end", "faster than its limit"),
        ("servoj([1.5, -1.57, 1.57, -1.57, -1.57, 0], 0, 0, 1, 0.03, 2000)", "joint 1"),
        ("movel(p[3, 0, 0.3, 0, 0, 0])", "cannot be reached"),
    ],
)
def test_limits_stop_the_arm_or_the_program(text: str, said: str) -> None:
    controller = made()
    controller.upload(f"def go():\n  {text}\nend\n")
    ticks(controller, 3.0)
    assert not controller.playing
    assert any(said in entry[2] for entry in controller.said), controller.said
    q = controller.inside.state.q
    ticks(controller, 0.5)
    assert abs(controller.inside.state.q - q).max() < 1e-2  # it stands


@pytest.mark.parametrize("arm", ["ur5e", "ur20"])
def test_a_driver_may_stream_steps_of_speed(arm: str) -> None:
    """ROS drivers stream speedj with 40 rad/s2: a jump to 0.1 rad/s is no collision."""
    controller = Controller(Inside(load(arm)), profile_of("5.26.0", None))
    ticks(controller, 0.05)
    controller.upload("def go():\n  while True:\n    speedj([0.1, 0.1, 0, 0, 0, 0], 40, 0.002)\n  end\nend\n")
    ticks(controller, 0.5)
    assert controller.safety_mode == SafetyMode.NORMAL
    assert controller.inside.state.qd[:2] == pytest.approx(0.1, abs=0.01)


def test_a_collision_stops_the_arm_and_five_seconds_later_it_can_be_unlocked() -> None:
    controller = made()
    desk = DashboardPort(controller)
    limit = float(controller.inside.belief.tau_max[0])
    for share, mode in ((0.8, SafetyMode.NORMAL), (1.3, SafetyMode.PROTECTIVE_STOP)):
        assert controller.push(f"joint=1,torque={share * COLLISION * limit!r},duration=0.5") == ""
        ticks(controller, 1.0)
        assert controller.safety_mode == mode
    ticks(controller, 3.0)
    assert desk.feed(b"unlock protective stop\n").startswith(b"Cannot unlock")
    ticks(controller, 1.5)
    assert desk.feed(b"unlock protective stop\n") == b"Protective stop releasing\n"
    assert controller.safety_mode == SafetyMode.NORMAL


def test_a_field_bus_holds_its_registers() -> None:
    controller = made(names="ethernet-ip")
    port = RtdePort(controller, Owners(controller.profile.taken))
    port.feed(wire.version_request(2))
    for name, free in (("input_int_register_0", False), ("input_double_register_23", False),
                       ("speed_slider_mask", False), ("input_int_register_24", True)):  # fmt: skip
        answer = port.feed(wire.inputs_request((name,)))
        assert (answer[4:] != b"IN_USE") is free
