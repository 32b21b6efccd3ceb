"""One call's like quantities side by side: straight-line C in which the numbers that a trace calls alike share vectors.

The momenta of all joints pass the same step of the chain, the torques of all joints come of one link's motion: the same
operations on other numbers. What a trace says to be `alike` is computed in the lanes of a vector of four, with
everything before it that is alike as well; what is not is put into its lane. Every lane has its operation as the scalar
text has it, so the bits are the same. GNU C only: whatever the machine has for vectors of four doubles serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tangere.codegen.trace import Graph, Symbol

FOUR = 4  # doubles of a vector: what AVX holds
_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_EITHER_WAY = ("add", "mul")  # order of the arguments is free
Lanes = tuple[int | None, ...]  # a node for each lane; None: whatever comes there


class Packs:
    """Which nodes of a graph share a vector, found from the groups that the trace calls alike, the earliest first."""

    def __init__(self, graph: Graph, outputs: Sequence[Symbol]) -> None:
        self._graph = graph
        self.made: list[tuple[Lanes, str, list[int | str]]] = []  # lanes, operation, pieces: packs or scalars
        self._by_first: dict[tuple[int, int], list[int]] = {}  # (lane, node) -> packs that have it there
        self._before: list[int] = []  # of each pack: the nodes that must be there first, a bit for each
        order = graph.live(outputs)
        live = set(order)
        self._needs: dict[int, int] = {}  # of each node, itself and all that it is made of, a bit for each
        for i in order:
            bits = 1 << i
            for a in graph.nodes[i].args:
                bits |= self._needs[a]
            self._needs[i] = bits
        groups = []
        for group in graph.alike:
            for first in range(0, len(group), FOUR):
                lanes: Lanes = tuple(i if i in live else None for i in group[first : first + FOUR])
                if sum(i is not None for i in lanes) > 1:
                    groups.append(lanes)
        for lanes in sorted(groups, key=lambda lanes: max(i for i in lanes if i is not None)):
            if self._pack(lanes) is None and len(set(lanes) - {None}) > 1:
                self._add(lanes, "with", ["", *(f"{k}:{i}" for k, i in enumerate(lanes) if i is not None)])
        self.place = {  # of each node that is in a vector: which, and in which lane
            node: (number, lane)
            for number, (lanes, operation, _) in reversed(list(enumerate(self.made)))
            for lane, node in enumerate(lanes)
            if node is not None and operation != "with"
        }

    def _found(self, lanes: Lanes) -> int | None:
        """A pack that has these numbers in these lanes."""
        at = next(k for k, i in enumerate(lanes) if i is not None)
        node = lanes[at]
        assert node is not None
        for number in self._by_first.get((at, node), ()):
            have = self.made[number][0]
            if all(i is None or (k < len(have) and have[k] == i) for k, i in enumerate(lanes)):
                return number
        return None

    def _add(self, lanes: Lanes, operation: str, pieces: list[int | str]) -> int | None:
        """A new pack; None where a number in it, or in what it is made of, would be needed before it is there."""
        own = before = 0
        for i in () if operation == "with" else lanes:  # that one is made of numbers that are there
            if i is not None:
                own |= 1 << i
                before |= self._needs[i] & ~(1 << i)
        others = [
            0 if kind == "with" else sum(1 << i for i in have if i is not None) for have, kind, _ in self.made
        ]
        for theirs, needed in zip(others, self._before, strict=True):
            if theirs & before:
                before |= needed | theirs
        if before & own:
            return None
        later = [k for k, needed in enumerate(self._before) if needed & own]
        if any(others[k] & before & ~own for k in later):
            return None
        for k in later:
            self._before[k] |= before | own
        number = len(self.made)
        self.made.append((lanes, operation, pieces))
        self._before.append(before)
        for k, i in enumerate(lanes):
            if i is not None:
                self._by_first.setdefault((k, i), []).append(number)
        return number

    def _pack(self, lanes: Lanes) -> int | None:
        """The number of a pack of these nodes; None where it would only be put together from single numbers."""
        if (found := self._found(lanes)) is not None:
            return found
        nodes = self._graph.nodes
        kinds: dict[str, list[int]] = {}
        for k, i in enumerate(lanes):
            if i is not None and nodes[i].op in _OPERATORS:
                kinds.setdefault(nodes[i].op, []).append(k)
        operation, members = max(kinds.items(), key=lambda item: len(item[1]), default=("", []))
        same: Lanes = tuple(i if k in members else None for k, i in enumerate(lanes))
        if len(set(same) - {None}) < 2:  # none, or one number
            return None
        number = self._found(same)
        if number is None:
            pieces = self._pieces(operation, same)
            number = None if pieces is None else self._add(same, operation, pieces)
            if number is None:
                return None
        if same == lanes:
            return number
        others = [f"{k}:{i}" for k, i in enumerate(lanes) if i is not None and k not in members]
        return self._add(lanes, "with", [number, *others])

    def _pieces(self, operation: str, lanes: Lanes) -> list[int | str] | None:
        """Both arguments of a pack, each a pack or, as text, one number for all lanes or one for each."""
        sides: list[list[int | None]] = [[None] * len(lanes) for _ in range(2)]
        first: tuple[int, ...] | None = None
        for k, i in enumerate(lanes):
            if i is None:
                continue
            args = self._graph.nodes[i].args
            if first is None:
                first = args
            elif operation in _EITHER_WAY and self._fit(first, args[::-1]) > self._fit(first, args):
                args = args[::-1]
            for side, argument in zip(sides, args, strict=True):
                side[k] = argument
        pieces: list[int | str] = []
        for side in sides:
            known = [i for i in side if i is not None]
            piece: int | str | None = f"={known[0]}" if all(i == known[0] for i in known) else self._pack(tuple(side))
            pieces.append(":" + ",".join("" if i is None else str(i) for i in side) if piece is None else piece)
        single = sum(isinstance(piece, str) and piece[0] == ":" for piece in pieces)
        return None if single == len(pieces) else pieces

    def _fit(self, one: tuple[int, ...], other: tuple[int, ...]) -> int:
        """How well the arguments of two lanes go beside each other."""
        nodes = self._graph.nodes
        fit = 0
        for a, b in zip(one, other, strict=True):
            if a == b:
                fit += 4
            elif nodes[a].op == nodes[b].op:
                fit += 1 + (nodes[a].op == "input" and nodes[a].uniform == nodes[b].uniform)
                fit += any(a in lanes and b in lanes for lanes, _, _ in self._near(a))
        return fit

    def _near(self, node: int) -> list[tuple[Lanes, str, list[int | str]]]:
        return [self.made[n] for k in range(FOUR) for n in self._by_first.get((k, node), ())]


def statements(graph: Graph, outputs: Sequence[Symbol], packs: Packs, scalar: Callable[[int], str]) -> list[str]:
    """The text of all nodes that the outputs need, in the order of the trace as far as packs allow; scalar: of a node.

    A number of a pack that is needed by itself is a name, too: t12 is v3[1].
    """
    lines: list[str] = []
    done: set[str] = set()
    nodes = graph.nodes

    def single(i: int) -> list[str]:
        """What has to stand before the statement of a node."""
        if i in packs.place:
            return [f"v{packs.place[i][0]}"]
        return [f"t{a}" for a in nodes[i].args]

    def pack(number: int) -> list[str]:
        needed = []
        for piece in packs.made[number][2]:
            if isinstance(piece, int):
                needed.append(f"v{piece}")
            elif piece:
                needed += [f"t{i}" for i in _numbers(piece)]
        return needed

    def text(name: str) -> str:
        number = int(name[1:])
        if name[0] == "v":
            return _pack_text(graph, packs, number)
        if number in packs.place:
            vector, lane = packs.place[number]
            return f"const double t{number} = v{vector}[{lane}];"
        return scalar(number)

    def before(name: str) -> list[str]:
        return (single if name[0] == "t" else pack)(int(name[1:]))

    needed = {f"t{o.index}" for o in outputs}
    waiting = list(needed)
    while waiting:
        found = set(before(waiting.pop())) - needed
        needed |= found
        waiting += found
    for node in graph.live(outputs):
        stack = [name for name in (f"t{node}", f"v{packs.place.get(node, (-1,))[0]}") if name in needed]
        while stack:
            name = stack[-1]
            missing = [x for x in before(name) if x not in done]
            if name in done or not missing:
                stack.pop()
                if name not in done and (line := text(name)):
                    lines.append(line)
                done.add(name)
                continue
            if len(stack) > 10 * len(nodes):
                raise AssertionError("a pack needs itself")
            stack += reversed(missing)
    return lines


def _numbers(piece: str) -> list[int]:
    """The single nodes of a piece: =i for all lanes, :i,j,,k one for each, k:i one for lane k."""
    return [int(i) for i in piece[piece.index(piece[0] if piece[0] in "=:" else ":") + 1 :].split(",") if i]


def _pack_text(graph: Graph, packs: Packs, number: int) -> str:
    _, operation, pieces = packs.made[number]
    if operation == "with":
        put = " ".join(
            f"v{number}[{p.split(':')[0]}] = {_name(graph, _numbers(p)[0])};" for p in pieces[1:] if isinstance(p, str)
        )
        if pieces[0] == "":
            alone = {p.split(":")[0]: _numbers(p)[0] for p in pieces[1:] if isinstance(p, str)}
            each = (_name(graph, alone[str(k)]) if str(k) in alone else "0.0" for k in range(FOUR))
            return f"const tg_four v{number} = {{{', '.join(each)}}};"
        return f"tg_four v{number} = v{pieces[0]}; {put}"
    body = f" {_OPERATORS[operation]} ".join(_argument(graph, p) for p in pieces)
    return f"const tg_four v{number} = {body};"


def _argument(graph: Graph, piece: int | str) -> str:
    if isinstance(piece, int):
        return f"v{piece}"
    if piece[0] == "=":
        return _name(graph, int(piece[1:]))
    return "(tg_four){" + ", ".join(_name(graph, int(i)) if i else "0.0" for i in piece[1:].split(",")) + "}"


def _name(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    if node.op == "const":
        assert isinstance(node.value, float)
        return f"({node.value.hex()})"
    if node.op == "input":
        assert isinstance(node.value, tuple)
        return f"{node.value[0]}[{node.value[1]}]"
    return f"t{i}"
