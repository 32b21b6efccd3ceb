"""A run as it goes on, in Foxglove: the topics of the log, live, by Foxglove's WebSocket protocol.

Foxglove connects to ws://127.0.0.1:8765; foxglove_layout.json beside this file shows arm, curves and events.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tangere.errors import InvalidValue, TangereError, extra
from tangere.logs.channels import EVENTS_TOPIC, TEXT, Channel, Views, channels_of
from tangere.logs.files import plain
from tangere.logs.ros_messages import DEFINITIONS, Filled, Template, text
from tangere.options import FOXGLOVE_PORT as PORT
from tangere.types import Array, Command, Event, Reference, State

if TYPE_CHECKING:
    from tangere.loop.result import RunResult
    from tangere.loop.sinks import RunInfo

HOST = "127.0.0.1"
LAYOUT = Path(__file__).with_name("foxglove_layout.json")
# [1/s] of a run's own time: an eye sees no more of a curve, and a run without a pace goes on 20 times faster than life
RATE = 100.0


@dataclass
class _Out:
    """A topic and how its message is filled from a row."""

    channel: Any
    filled: Filled
    places: Mapping[str, list[int]]  # hole -> columns of the row


class FoxgloveSink:
    """Shows a run to whoever connects with Foxglove; implements loop.sinks.Sink.

    /joint_states, /tangere/reference, /tangere/command, /tangere/residual and /tangere/truth 100 times a second of the
    run, /tf and the pose of the tool 30 times; /robot_description and /tf_static to everyone who comes; events as JSON.
    """

    def __init__(self, port: int = PORT, say: Callable[[str], None] = lambda text: None) -> None:
        self.port, self._say = port, say
        self._server: Any = None
        self._outs: list[_Out] = []
        self._once: dict[str, tuple[Any, bytes]] = {}
        self._slot = -1.0

    @property
    def address(self) -> str:
        """Where Foxglove connects to."""
        return f"ws://{HOST}:{self.port}"

    def open(self, run: RunInfo) -> None:
        """Listen; a port that is taken is an error before the run begins."""
        with extra("--foxglove needs Foxglove's package: pip install 'tangere[foxglove]'"):
            import foxglove
        self._foxglove = foxglove
        self._context = foxglove.Context()
        try:
            listener: Any = _Latecomers(self)
            self._server = foxglove.start_server(
                name="tangere", host=HOST, port=self.port, context=self._context, server_listener=listener,
            )  # fmt: skip
        except Exception as problem:  # of the library's own kinds
            raise TangereError(
                f"Foxglove's port {self.port} cannot be had ({problem}); is another run there? Give another number"
            ) from None
        self.port = int(self._server.port)
        n = run.dof
        self._start_ns = time.time_ns()
        widths = {"time": 0} | dict.fromkeys(
            ("q", "qd", "tau", "q_des", "qd_des", "tau_cmd", "residual", "q_true", "qd_true", "tau_ext_true"), n
        )
        self._layout: dict[str, slice] = {}
        at = 0
        for name, width in widths.items():
            self._layout[name] = slice(at, at + max(width, 1))
            at += max(width, 1)
        self._row = np.full(at, np.nan)
        joints = run.joints or tuple(f"joint_{k + 1}" for k in range(n))
        for channel in channels_of(widths, joints)[0]:
            if channel.topic.startswith(("/joint_states", "/tangere/")) and channel.topic != "/tangere/columns":
                self._outs.append(self._out(channel, self._layout))
        self._views = Views(self._layout, run.robot)
        self._often = [self._out(channel, self._views.often.layout) for channel in self._views.often.channels]
        for channel in self._views.once.channels:
            numbers = {
                hole: self._views.first[self._views.once.layout[name]] for hole, (name,) in channel.columns.items()
            }
            data = Filled(channel.template).bytes(self._start_ns, numbers)
            self._once[channel.topic] = (self._channel(channel), data)
        self._events = self._channel(Channel(EVENTS_TOPIC, TEXT, Template(), {}))
        for one, data in self._once.values():
            one.log(data, log_time=self._start_ns)
        self._say(f"Foxglove: open connection {self.address}, import layout {LAYOUT}")

    def _channel(self, channel: Channel) -> Any:
        schema = self._foxglove.Schema(
            name=channel.type, encoding="ros2msg", data=DEFINITIONS[channel.type].encode()
        )  # fmt: skip
        return self._foxglove.Channel(channel.topic, schema=schema, message_encoding="cdr", context=self._context)

    def _out(self, channel: Channel, layout: Mapping[str, slice]) -> _Out:
        places = {
            hole: [i for name in names for i in range(layout[name].start, layout[name].stop)]
            for hole, names in channel.columns.items()
        }
        return _Out(self._channel(channel), Filled(channel.template), places)

    def row(
        self, state: State, command: Command | None, residual: Array | None, reference: Reference | None, truth: Any
    ) -> None:
        """One period; most are left out."""
        slot = np.floor(state.time * RATE + 1e-6)
        if slot == self._slot:
            return
        self._slot = slot
        row, layout = self._row, self._layout
        row[:] = np.nan
        row[0] = state.time
        known = {"q": state.q, "qd": state.qd, "tau": state.tau, "residual": residual}
        known |= {"tau_cmd": None if command is None else command.tau}
        if reference is not None:
            known |= {"q_des": reference.q, "qd_des": reference.qd}
        if truth is not None:
            known |= {"q_true": truth.q, "qd_true": truth.qd, "tau_ext_true": truth.tau_ext}
        for name, values in known.items():
            if values is not None:
                row[layout[name]] = values
        ns = self._ns(state.time)
        for out in self._outs:
            if np.isfinite(row[next(iter(out.places.values()))[0]]):
                self._log(out, row, ns)
        shown, values_now = self._views.table(row[None], row[:1])
        if len(shown):
            for out in self._often:
                self._log(out, values_now[0], ns)

    def event(self, event: Event) -> None:
        """An event in one of its phases, as the log has it."""
        data = text(json.dumps(plain(event.record()), allow_nan=False))
        self._events.log(data, log_time=self._ns(event.time_s))

    def close(self, result: RunResult | None = None) -> None:
        """Stop listening; may be called twice."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _log(self, out: _Out, row: Array, ns: int) -> None:
        out.channel.log(out.filled.bytes(ns, {hole: row[at] for hole, at in out.places.items()}), log_time=ns)

    def _ns(self, seconds: float) -> int:
        return max(self._start_ns + round(seconds * 1e9), 0)

    def again(self, topic: str) -> None:
        """Somebody wants a topic: what is said once is said again."""
        found = self._once.get(topic)
        if found is not None:
            found[0].log(found[1], log_time=time.time_ns())


class _Latecomers:
    """Called by the server, in threads of its own; what Foxglove's ServerListener may have and this does not need."""

    def __init__(self, sink: FoxgloveSink) -> None:
        self._sink = sink

    def on_subscribe(self, client: Any, channel: Any) -> None:
        self._sink.again(channel.topic)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("on_"):
            return lambda *_: None
        raise AttributeError(name)


def sink_of(given: str | None, say: Callable[[str], None]) -> FoxgloveSink | None:
    """The sink of --foxglove [PORT], None where it was not given; say: is told where to look."""
    if given is None:
        return None
    if not re.fullmatch(r"\d{1,5}", given) or not int(given) < 65536:
        raise InvalidValue(f"--foxglove: a port from 0 (any) to 65535, got {given!r}")
    return FoxgloveSink(int(given), say)
