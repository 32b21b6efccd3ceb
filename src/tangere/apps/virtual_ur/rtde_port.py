"""The RTDE side of a virtual controller: one connection each, recipes, who owns which input."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tangere.rtde import fields, wire
from tangere.rtde.wire import IN_USE, NOT_FOUND, Kind, Recipe

if TYPE_CHECKING:
    from tangere.apps.virtual_ur.controller import Controller


# First versions that answer to questions for properties (read, not tried: modelled).
PROPERTIES: dict[int, tuple[int, ...]] = {5: (5, 26), 10: (10, 13)}


class Owners:
    """Which connection holds which input; a field bus may hold some for ever."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._by: dict[str, object] = dict.fromkeys(taken, "field bus")

    def free(self, name: str, who: object) -> bool:
        """Whether the connection may write the input."""
        return self._by.get(name, who) is who

    def claim(self, names: tuple[str, ...], who: object) -> None:
        """The connection holds them until it ends."""
        self._by.update(dict.fromkeys(names, who))

    def release(self, who: object) -> None:
        """The connection has ended; the values stay."""
        self._by = {name: owner for name, owner in self._by.items() if owner is not who}


class RtdePort:
    """One client: answers its questions and packs its data. Bytes in, bytes out; the socket is somebody else's."""

    def __init__(self, exchange: Controller, owners: Owners) -> None:
        self._exchange, self._owners = exchange, owners
        self._packages = wire.Packages()
        self.protocol, self.started = 1, False
        self._recipe: Recipe | None = None
        self._packed: Callable[[], bytes] = bytes
        self._every, self._frame = 1, 0
        self._inputs: dict[int, tuple[Recipe, Callable[[Sequence[Any]], None]]] = {}
        self.fresh = False  # whether inputs have come since the last frame (lock-step waits for them)
        self.dropped = 0  # packages with inputs that fit no recipe

    @property
    def writes(self) -> bool:
        """Whether it is a client that sends inputs and is given outputs: lock-step waits for such."""
        return self.started and bool(self._inputs)

    def feed(self, data: bytes) -> bytes:
        """Answers to what the client sent; ProtocolError: the connection is to be closed."""
        return b"".join(self._answer(kind, payload) for kind, payload in self._packages.feed(data))

    def outputs(self) -> bytes:
        """The data package of this frame; empty: none is due."""
        if not self.started or self._recipe is None:
            return b""
        self._frame += 1
        if self._frame % self._every:
            return b""
        return self._packed()

    def close(self) -> None:
        """The connection has ended."""
        self._owners.release(self)

    def _answer(self, kind: int, payload: bytes) -> bytes:
        if kind == Kind.VERSION:
            asked = struct.unpack_from(">H", payload)[0] if len(payload) >= 2 else 0
            if asked in (1, 2):
                self.protocol = asked
            return wire.accepted(Kind.VERSION, asked in (1, 2))
        if kind == Kind.CONTROLLER:
            return wire.controller_answer(self._exchange.version)
        if kind == Kind.OUTPUTS:
            return self._set_outputs(*wire.read_outputs_request(payload, self.protocol))
        if kind == Kind.INPUTS:
            return self._set_inputs(wire.names_of(payload[: wire.LISTED]))
        if kind == Kind.START:
            self.started = self._recipe is not None
            return wire.accepted(Kind.START, self.started)
        if kind == Kind.PAUSE:
            self.started = False
            return wire.accepted(Kind.PAUSE, True)
        if kind == Kind.DATA:
            return self._take(payload)
        if kind == Kind.TEXT:
            return b""
        if kind == Kind.PROPERTIES and self._exchange.version >= PROPERTIES.get(self._exchange.version[0], (99,)):
            return self._properties(payload)
        raise wire.ProtocolError(f"a package of type {kind}")

    def _set_outputs(self, frequency: float, names: tuple[str, ...]) -> bytes:
        version = self._exchange.version
        types = tuple(fields.output_type(name, version) or NOT_FOUND for name in names)
        whole = NOT_FOUND not in types and bool(names)
        recipe = Recipe(1 if whole else 0, names, types)
        self.started, self._recipe = False, recipe if whole else None
        if whole:
            self._packed = self._exchange.exchange.packer(recipe, self.protocol)
        rate = self._exchange.rate
        wanted = frequency if 0.0 < frequency <= rate else float(rate)
        self._every, self._frame = max(1, round(rate / wanted)), -1
        return wire.recipe_answer(Kind.OUTPUTS, recipe, self.protocol)

    def _set_inputs(self, names: tuple[str, ...]) -> bytes:
        version = self._exchange.version

        def kind(name: str) -> str:
            known = fields.input_type(name, version)
            return NOT_FOUND if known is None else known if self._owners.free(name, self) else IN_USE

        types = tuple(kind(name) for name in names)
        whole = bool(names) and not {NOT_FOUND, IN_USE} & set(types) and len(self._inputs) < 255
        recipe = Recipe(len(self._inputs) + 1 if whole else 0, names, types)
        if whole:
            self._inputs[recipe.number] = (recipe, self._exchange.exchange.taker(names))
            self._owners.claim(names, self)
        return wire.recipe_answer(Kind.INPUTS, recipe, self.protocol)

    def _take(self, payload: bytes) -> bytes:
        found = self._inputs.get(payload[0]) if payload else None
        if found is None or len(payload) - 1 < found[0].width:
            why = "no such recipe" if found is None else f"{len(payload) - 1} bytes, its recipe has {found[0].width}"
            if not self.dropped:  # once a connection: who sends one sends thousands
                self._exchange.tell("text", f"RTDE: inputs dropped: {why}", 0)
            self.dropped += 1
            return wire.text(f"inputs dropped: {why}", "RTDE", 2, self.protocol)
        recipe, take = found
        take(recipe.values(payload[1:]))
        self.fresh = True
        return b""

    def _properties(self, payload: bytes) -> bytes:
        """Constants by name; where one is not known, no values at all."""
        major, minor, bugfix, build = self._exchange.version
        known = {
            "v1.software.version": ("UINT64", major << 48 | minor << 32 | bugfix << 16 | build),
            "v1.control_box.type": ("UINT32", 1 << 24 | (2 if self._exchange.profile.e_series else 1) << 16),
            "v1.robot_arm.tool_flange.type": ("UINT32", 1 << 24),
        }
        found = [known.get(name, (NOT_FOUND, 0)) for name in wire.names_of(payload)]
        types = ",".join(kind for kind, _ in found).encode()
        values = b""
        if all(kind != NOT_FOUND for kind, _ in found):
            values = b"".join(struct.pack(">" + wire.TYPES[kind], value) for kind, value in found)
        return wire.package(Kind.PROPERTIES, struct.pack(">H", len(types)) + types + values)
