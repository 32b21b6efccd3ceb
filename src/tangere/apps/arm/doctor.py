"""What stands between an arm and its user: checks in the order in which things fail, each with cause and cure.

Everything is listened to; nothing is moved and no input is held. The one exception is the question who owns the inputs:
registers 24 to 47 and the speed slider are asked for, and given back at once, without a value being sent.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tangere.apps.arm.examination import Examination, Finding, Status, first_line
from tangere.errors import PlantLost, TangereError
from tangere.kinematics.rotation import pose_from_ur
from tangere.plants.rtde_plant import GRAVITY_OFF, GRAVITY_SHARE, SLOW, controllers_arm
from tangere.plants.torque_loop import scales_known, torque_known
from tangere.robots import Robot, robot
from tangere.rtde import fields, primary
from tangere.rtde.client import Address, InputsTaken, Rtde, connect
from tangere.rtde.dashboard import Dashboard
from tangere.rtde.rows import FIELDS, RtdeRows
from tangere.rtde.wire import ProtocolError
from tangere.types import Array

PORTS = {
    29999: "dashboard",
    30001: "primary interface",
    30002: "secondary interface",
    30003: "realtime interface",
    30004: "RTDE",
}
JITTER = 5e-3  # [s] of round trips above which a network is no place for 500 packages a second
LATE = 0.01  # share of late packages that a torque loop still bears
CALIBRATED, NOMINAL = 1e-4, 5e-3  # [m] between our pose and the arm's: with its calibration, and by its type alone


def examine(
    address: Address,
    name: str | None = None,
    *,
    calibration: str | None = None,
    payload: float | None = None,
    seconds: float = 10.0,
    progress: Callable[[str, float], None] | None = None,
) -> Examination:
    """Look at an arm. name: the arm it should be; calibration: its file; payload [kg]: what is mounted, if known."""
    if name is not None:
        robot(name, calibration=calibration)  # a mistyped name or file is refused, not found to be a fault of the arm
    seen = Examination(address.host)
    doctor = _Doctor(address, name, calibration, payload, seconds, seen)
    steps = list(doctor.steps())
    for k, (what, step) in enumerate(steps):
        if progress is not None:
            progress(what, k / len(steps))
        if doctor.over:
            break
        try:
            step()
        except (TangereError, OSError) as problem:
            # what could not be looked at is not known to be right, and without packages there is nothing to listen to
            doctor.add(what, "fault", str(problem), kind="failed", torque=True, passive=what == "rate")
    return seen


class _Doctor:
    def __init__(
        self, address: Address, name: str | None, calibration: str | None, payload: float | None, seconds: float,
        seen: Examination,
    ) -> None:  # fmt: skip
        self.address, self.name, self.calibration, self.payload = address, name, calibration, payload
        self.seconds, self.seen, self.over = seconds, seen, False
        self.version: tuple[int, ...] = ()
        self.told: primary.Told | None = None
        self.columns: dict[str, Array] = {}
        self.open: set[int] = set()

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """What is looked at, in this order."""
        yield "network", self._network
        yield "ports", self._ports
        yield "version", self._version
        yield "model", self._model
        yield "remote control", self._remote
        yield "modes", self._modes
        yield "inputs", self._inputs
        yield "fields", self._fields
        yield "rate", self._rate
        yield "calibration", self._calibration
        yield "payload and gravity", self._payload
        yield "torque commands", self._torque
        yield "speed slider", self._slider
        yield "this computer", self._computer

    def add(
        self, check: str, status: Status, found: str, cause: str = "", cure: str = "", kind: str = "", *,
        torque: bool = False, passive: bool = False,
    ) -> None:  # fmt: skip
        """One more finding; torque, passive: whether it stands in the way of torque control, of listening."""
        self.seen.findings.append(Finding(check, status, found, cause, cure, kind))
        if torque or passive:
            self.seen.torque_blocked.append(check)
        if passive:
            self.seen.passive_blocked.append(check)

    def _network(self) -> None:
        try:
            with Rtde(self.address.host, self.address.port) as connection:
                times = [connection.round_trip() for _ in range(200)]
        except (PlantLost, ProtocolError) as problem:
            self.add(
                "network", "fault", str(problem), "the arm is off, on another network, or its RTDE service is off",
                "switch it on, look at cable and address (PolyScope: Settings, Network)", "unreachable",
                passive=True,
            )  # fmt: skip
            self.over = True
            return
        middle, worst = 1e3 * float(np.median(times)), 1e3 * float(np.quantile(times, 0.99))
        self.seen.figures |= {"round_trip_median_ms": middle, "round_trip_p99_ms": worst}
        late = worst > 1e3 * JITTER
        here = self.address.loopback
        self.add(
            "network", "warning" if late else "ok", f"a round trip takes {middle:.2f} ms, {worst:.2f} ms for 1 in 100",
            ("this computer is busy" if here else "wireless, a switch under load, or a busy computer") if late else "",
            ("end other programs" if here else "connect the arm by a cable of its own") if late else "",
            "jitter" if late else "",
        )  # fmt: skip

    def _ports(self) -> None:
        for port in PORTS:
            try:
                connect(self.address.host, port, 1.0).close()
                self.open.add(port)
            except PlantLost:
                pass
        closed = [f"{port} ({PORTS[port]})" for port in PORTS if port not in self.open]
        if closed:
            self.add(
                "ports", "warning", f"closed: {', '.join(closed)}", "services are off since 5.10, or PolyScope X",
                "PolyScope: Settings, Security, Services", "ports_closed", torque=30002 not in self.open,
            )  # fmt: skip
        else:
            self.add("ports", "ok", "29999 and 30001 to 30004 are open")

    def _version(self) -> None:
        with Rtde(self.address.host, self.address.port) as connection:
            self.version = connection.version
            text = f"PolyScope {'.'.join(map(str, self.version))}, RTDE protocol {connection.protocol}"
        self.seen.figures["version"] = ".".join(map(str, self.version))
        if not torque_known(self.version):
            self.add(
                "version", "warning", text, "torque commands begin with 5.23 (PolyScope X: 10.10)",
                "update the controller, or use what listens: record, watch", "old_version", torque=True,
            )  # fmt: skip
        else:
            self.add("version", "ok", text)

    def _model(self) -> None:
        if 30001 not in self.open:
            self.add("model", "skipped", "the primary interface is closed")
            return
        self.told = primary.introduction(self.address.host, wait=3.0)
        if self.told.configuration is None:
            self.add("model", "warning", "the controller did not say which arm it drives", kind="model_unknown")
            return
        says = primary.arm_name(self.told)
        self.seen.figures["model"] = says
        if self.name is None:
            self.name = says
            self.add("model", "ok", f"the controller drives a {says}")
        elif primary.another_arm(self.told, robot(self.name)):
            self.add(
                "model", "fault", f"the controller drives a {says}, --robot says {self.name}",
                "another arm, or another address than was meant", f"give --robot {says}", "wrong_model", passive=True,
            )  # fmt: skip
            self.name = says  # what follows is judged by the arm that is there
        else:
            self.add("model", "ok", f"a {self.name.lower()}, as --robot says")

    def _remote(self) -> None:
        if 29999 not in self.open:
            self.add("remote control", "skipped", "there is no dashboard to ask (PolyScope X has none)")
            return
        with Dashboard(self.address.host) as desk:
            answer = desk.ask("is in remote control")
        if answer.lower() == "true":
            self.add("remote control", "ok", "remote control is on")
        elif answer.lower() == "false":
            self.add(
                "remote control", "warning", "remote control is off", "the pendant has the arm",
                "PolyScope: the icon at the top right, Remote Control; listening works without", "remote_off",
                torque=True,
            )  # fmt: skip
        else:
            self.add("remote control", "skipped", f"this version does not tell ({answer[:60]})")

    def _modes(self) -> None:
        with Rtde(self.address.host, self.address.port) as connection:
            connection.known_outputs(("robot_mode", "safety_mode"))
            connection.start()
            values = connection.receive()
        if values is None:
            self.add("modes", "fault", "RTDE answers, but sends no data", kind="silent", passive=True)
            return
        robot_mode, safety = int(values["robot_mode"]), int(values["safety_mode"])  # type: ignore[arg-type]
        self.seen.figures |= {"robot_mode": robot_mode, "safety_mode": safety}
        if robot_mode != 7:
            self.add(
                "modes", "warning", f"robot mode {robot_mode}, not running (7)", "powered off, or the brakes hold",
                "switch the arm on at the pendant and release the brakes", "not_running", torque=True,
            )  # fmt: skip
        elif safety not in (1, 2):
            self.add(
                "modes", "warning", f"safety mode {safety}: stopped", "protective stop, emergency stop or fault",
                "look at the arm, then unlock it at the pendant", "safety_stop", torque=True,
            )  # fmt: skip
        else:
            self.add("modes", "ok", "running, no stop")

    def _inputs(self) -> None:
        groups = {
            "registers 24 to 47": [f"input_{kind}_register_{k}" for kind in ("int", "double") for k in range(24, 48)],
            "registers 0 to 23": [f"input_{kind}_register_{k}" for kind in ("int", "double") for k in range(24)],
            "the speed slider": ["speed_slider_mask", "speed_slider_fraction"],
        }
        taken = []
        for what, names in groups.items():
            with Rtde(self.address.host, self.address.port) as connection:
                try:
                    connection.inputs(names)
                except InputsTaken:
                    taken.append(what)
        if taken:
            upper = "registers 24 to 47" in taken
            self.add(
                "inputs", "warning", f"in use: {', '.join(taken)}",
                "EtherNet/IP or PROFINET is on, or another client (a ROS driver, a URCap) is connected",
                "switch the field bus off (Installation, Fieldbus) or end the other client"
                if upper else "our own loop uses 24 to 47; other clients need 0 to 23",
                "inputs_taken", torque=upper,
            )  # fmt: skip
        else:
            self.add("inputs", "ok", "registers and speed slider are free")

    def _fields(self) -> None:
        missing = [name for name in FIELDS if fields.output_type(name, self.version) is None]
        torque = "actual_current_as_torque" not in missing
        self.seen.figures["fields_missing"] = missing
        text = "every field of a recording is there" if not missing else f"this version has no {', '.join(missing)}"
        cure = "" if torque else "torque is made of currents: `tangere identify` finds the gains of this arm"
        self.add("fields", "ok", text, "", cure)

    def _rate(self) -> None:
        rows = RtdeRows(self.address, seconds=self.seconds, patience=0.0)
        collected: dict[str, list[Array]] = {}
        stamps, walls = [], []
        for row in rows:
            walls.append(time.perf_counter())
            stamps.append(row.time)
            for name, value in row.values.items():
                collected.setdefault(name, []).append(value)
        self.columns = {name: np.array(values) for name, values in collected.items()} | {"time": np.array(stamps)}
        if len(stamps) < 10:
            self.add("rate", "fault", f"{len(stamps)} samples in {self.seconds:g} s", kind="silent", passive=True)
            return
        gaps = np.diff(walls)
        lost = rows.problems["samples lost"]
        late = float(np.mean(gaps > 2.5 * rows.period))
        rate = (len(stamps) - 1) / (stamps[-1] - stamps[0])
        self.seen.figures |= {
            "rate_hz": rate, "lost": lost, "late_share": late, "worst_gap_ms": 1e3 * float(gaps.max())
        }  # fmt: skip
        text = (
            f"{rate:.1f} samples per second, {lost} lost, {100 * late:.2f} % late, {1e3 * gaps.max():.1f} ms at worst"
        )
        bad = late > LATE or lost > 0
        self.add(
            "rate", "warning" if bad else "ok", text, "a busy computer or a slow network" if bad else "",
            "end other programs, use a cable, give the process a real-time priority" if bad else "",
            "late" if bad else "", torque=late > LATE,
        )  # fmt: skip

    def _arm(self) -> Robot | None:
        if self.name is None:
            return None
        reported = {name: values[-1] for name, values in self.columns.items()}
        return controllers_arm(robot(self.name, calibration=self.calibration), reported)

    def _reported(self, name: str) -> Array | None:
        return self.columns[name][-1] if name in self.columns else None

    def _calibration(self) -> None:
        arm = self._arm()
        pose = self.columns.get("actual_TCP_pose")
        if arm is None or pose is None:
            self.add("calibration", "skipped", "no arm to compare with; give --robot")
            return
        offset = self._reported("tcp_offset")
        tool = np.eye(4) if offset is None else pose_from_ur(offset)
        ours = np.stack([arm.pose(q) @ tool for q in self.columns["q"][::50]])
        distance = float(np.linalg.norm(ours[:, :3, 3] - pose[::50, :3], axis=1).max())
        self.seen.figures["pose_difference_mm"] = 1e3 * distance
        text = f"our tool point lies {1e3 * distance:.3f} mm from the arm's"
        if distance < CALIBRATED:
            self.add("calibration", "ok", text)
        elif self.calibration is None and distance < NOMINAL:
            self.add(
                "calibration", "warning", text + ": no calibration was given",
                "every arm leaves the factory with its own",
                f"tangere calibration {self.address.host} --out calibration.yaml, then --calibration calibration.yaml",
                "calibration_missing",
            )  # fmt: skip
        else:
            self.add(
                "calibration", "fault", text, "the calibration of another arm, another model, or an untold tool",
                f"tangere calibration {self.address.host} --out calibration.yaml", "calibration_wrong", torque=True,
            )  # fmt: skip

    def _payload(self) -> None:
        arm = self._arm()
        moment, qd = self.columns.get("tau_cmd"), self.columns.get("qd")
        told, mounted = self._reported("payload"), self.payload
        if mounted is not None and told is not None and abs(float(told) - mounted) > 0.02 + 0.02 * mounted:
            self.add(
                "payload and gravity", "fault",
                f"the controller was told {float(told):.2f} kg, {mounted:.2f} kg are mounted",
                "the installation's payload is another", "set it: Installation, Payload", "wrong_payload", torque=True,
            )  # fmt: skip
            return
        if arm is None or moment is None or qd is None:
            self.add("payload and gravity", "skipped", "this controller does not tell its torques")
            return
        still = np.abs(qd).max(axis=1) < SLOW
        if not still.any():
            self.add("payload and gravity", "skipped", "the arm moves; at rest its torques tell payload and gravity")
            return
        gravity = np.stack([arm.gravity_torque(q) for q in self.columns["q"][still][::50]])
        off = np.abs(moment[still][::50] - gravity).max(axis=0)
        self.seen.figures["gravity_difference_nm"] = off.tolist()
        text = (
            f"the controller's torque at rest differs from our gravity by {off.max():.2f} Nm (joint {off.argmax() + 1})"
        )
        if np.all(off < GRAVITY_SHARE * arm.tau_max + GRAVITY_OFF):
            mass = "" if told is None else f", payload {float(told):.2f} kg"
            self.add("payload and gravity", "ok", text + mass)
        else:
            self.add(
                "payload and gravity", "fault", text, "another model, mounting or payload than the controller has",
                "compare payload, mounting (wall, ceiling) and --robot", "wrong_gravity", torque=True,
            )  # fmt: skip

    def _torque(self) -> None:
        if not torque_known(self.version):
            self.add("torque commands", "warning", "direct_torque is not there in this version", torque=True)
        elif scales_known(self.version):
            self.add("torque commands", "ok", "direct_torque with friction scales")
        else:
            self.add("torque commands", "ok", "direct_torque with friction_comp on or off (scales begin with 5.25.1)")

    def _slider(self) -> None:
        scaling = self._reported("speed_scaling")
        if scaling is None:
            self.add("speed slider", "skipped", "this controller does not tell it")
        elif float(scaling) < 0.999:
            self.add(
                "speed slider", "warning", f"at {100 * float(scaling):.0f} %", "somebody slowed the arm down",
                "move the slider of the pendant to 100 %", "slider",
            )  # fmt: skip
        else:
            self.add("speed slider", "ok", "100 %")

    def _computer(self) -> None:
        load, cores = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1
        governor = first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
        real_time = "PREEMPT_RT" in platform.version()
        self.seen.figures |= {"load": load, "cores": cores, "governor": governor, "real_time_kernel": real_time}
        busy = load > cores
        text = f"load {load:.1f} on {cores} cores, {'a' if real_time else 'no'} real-time kernel"
        text += f", governor {governor}" if governor else ""
        self.add(
            "this computer", "warning" if busy else "ok", text, "other programs compute" if busy else "",
            "end them before torque control" if busy else "", "busy" if busy else "",
        )  # fmt: skip
