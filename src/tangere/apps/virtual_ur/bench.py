"""How fast a virtual controller is on this computer: in process, and over its ports in lock-step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tangere.apps.virtual_ur.controller import Controller
from tangere.apps.virtual_ur.inside import Inside
from tangere.apps.virtual_ur.modes import Profile
from tangere.apps.virtual_ur.rtde_port import Owners, RtdePort
from tangere.apps.virtual_ur.server import Server
from tangere.model.model import Model
from tangere.plants.torque_loop import INPUTS, OUTPUTS, Limits, Mode, Wish, program
from tangere.rtde import wire
from tangere.rtde.client import Rtde

FRAMES, ROUNDS = 1000, 5  # the best of some rounds counts: other programs only ever add time
RUN = 1  # number of the run that the torque loop is told
SEEN = ("timestamp", "actual_q", "actual_qd", "runtime_state", *OUTPUTS)  # what a client of the loop asks for
SERVO = "def go():\n  q = get_actual_joint_positions()\n  while True:\n    servoj(q)\n  end\nend\n"


def measured(model: Model, address: str) -> dict[str, Any]:
    """Frames per second: {"in process": {plant: {program: n}}, "lock-step": n}."""
    inside: dict[str, dict[str, int]] = {}
    for plant in ("rigid", "mujoco"):
        inside[plant] = {what: round(_frames(model, plant, text)) for what, text in _programs(model).items()}
    lockstep = round(_lockstep(model, address))
    return {"robot": model.name, "unit": "frames/s", "in process": inside, "lock-step": lockstep}


def _programs(model: Model) -> dict[str, str]:
    robot = Inside(model, plant="rigid").belief
    return {"torque loop": program(Limits.of(robot), RUN, (5, 26, 0)), "servoj": SERVO, "none": ""}


def _row() -> list[float]:
    """Inputs of the torque loop: sequence, wish, run, no torque, no share of friction."""
    return [0, int(Wish.TORQUE), RUN, *(0.0,) * (len(INPUTS) - 3)]


def _frames(model: Model, plant: Any, text: str) -> float:
    """Whole frames: inputs, program, plant, the package of a client."""
    controller = Controller(Inside(model, plant=plant), Profile())
    if text:
        controller.upload(text)
    port = RtdePort(controller, Owners())
    for question in (wire.version_request(2), wire.outputs_request(SEEN, 500.0, 2), wire.package(wire.Kind.START)):
        port.feed(question)
    take, row = controller.exchange.taker(INPUTS), _row()

    def frames(count: int) -> None:
        for _ in range(count):
            row[0] += 1
            take(row)
            controller.tick()
            port.outputs()

    frames(100)
    return FRAMES / _best(lambda: frames(FRAMES), time.process_time)


def _best(work: Callable[[], None], clock: Callable[[], float] = time.perf_counter) -> float:
    """[s] of the fastest round; by the processor's time where one thread does it all, whatever else computes."""
    times = []
    for _ in range(ROUNDS):
        begin = clock()
        work()
        times.append(clock() - begin)
    return min(times)


def _lockstep(model: Model, address: str) -> float:
    """Cycles of a client that sends a torque for every package that it reads, over a socket, in one process."""
    controller = Controller(Inside(model, plant="rigid"), Profile())
    server = Server(controller, address, clock="lockstep")
    served = threading.Thread(target=server.serve, daemon=True)
    served.start()
    try:
        with Rtde(address) as rtde:
            rtde.outputs(SEEN)
            recipe, row = rtde.inputs(INPUTS), _row()
            controller.upload(_programs(model)["torque loop"])
            rtde.start()

            def cycles(count: int) -> None:
                for _ in range(count):
                    row[0] += 1
                    rtde.send(recipe, _numbers(row))
                    rtde.receive()

            cycles(100)
            found = FRAMES / _best(lambda: cycles(FRAMES))
            if controller.registers.out_int[25] not in (Mode.TORQUE, Mode.HELD):
                raise RuntimeError(f"the torque loop has stopped: {controller.said}")
            return found
    finally:
        server.stop()
        served.join(5.0)
        server.close()


def _numbers(row: Sequence[float]) -> list[float]:
    return [int(row[0]), *row[1:]]


def text(found: dict[str, Any]) -> str:
    """The figures for a terminal."""
    lines = [f"virtual {found['robot']}: frames per second (500 are real time)"]
    for plant, rows in found["in process"].items():
        lines += [f"  in process, {plant:<7} {what:<12} {count:>7}" for what, count in rows.items()]
    return "\n".join([*lines, f"  lock-step over a socket, torque loop {found['lock-step']:>4}"])
