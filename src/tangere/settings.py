"""One setting and one group of settings: name, unit, default, range or choices, help.

A group is a frozen dataclass whose fields are made by `setting`, `word`, `flag` and `count`. Options, TOML keys,
manifest entries, words of a page and tables of documentation come from it; a default is written there and nowhere else.

One rule for units: a bare number has the unit that the setting documents, and every unit of the same kind is understood
behind a number: 150mm, "150 mm", 20deg, 5%. In a list a unit at the end is that of all: 700,100,300 mm.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tangere import foreign
from tangere.errors import InvalidValue, ModelFileError, unknown

# unit -> (kind, factor to SI); the first of a kind is its SI unit
UNITS: dict[str, tuple[str, float]] = {
    "": ("number", 1.0), "%": ("number", 0.01),
    "s": ("time", 1.0), "ms": ("time", 1e-3), "us": ("time", 1e-6), "min": ("time", 60.0), "h": ("time", 3600.0),
    "m": ("length", 1.0), "mm": ("length", 1e-3), "cm": ("length", 1e-2),
    "rad": ("angle", 1.0), "deg": ("angle", math.pi / 180.0),
    "m/s": ("speed", 1.0), "mm/s": ("speed", 1e-3), "cm/s": ("speed", 1e-2), "m/s2": ("acceleration", 1.0),
    "rad/s": ("rate", 1.0), "deg/s": ("rate", math.pi / 180.0),
    "Nm": ("torque", 1.0), "N": ("force", 1.0), "kN": ("force", 1e3), "kg": ("mass", 1.0), "g": ("mass", 1e-3),
    "N/m": ("stiffness", 1.0), "N/mm": ("stiffness", 1e3), "Nm/rad": ("turning stiffness", 1.0),
    "Nm/A": ("torque per current", 1.0),
    "Hz": ("frequency", 1.0), "kHz": ("frequency", 1e3),
    "1/s": ("gain", 1.0), "1/s2": ("stiffness of the error", 1.0),
    "1/h": ("how often", 1.0), "1/min": ("how often", 60.0), "1/day": ("how often", 1.0 / 24.0),
}  # fmt: skip
USUAL_LENGTHS = (0.0, 10.0)  # m: no arm, tool or path is longer; who writes 150 means mm
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)\b)\s*(.*?)\s*", re.I)
_FLAGS = {"on": True, "off": False, "true": True, "false": False}

Group = TypeVar("Group")


@dataclass(frozen=True)
class Setting:
    """One thing that can be set.

    unit: of the value and of a bare number; several with commas between (kg,m,m,m) where the numbers of a list differ.
    typed: unit of a bare number in a text, where it is another than the value's ("deg" of an angle that is kept in
    rad). size: lengths that a list may have, () for any; None: one number, no list. low, high: the range, in `unit`;
    above: low itself is outside. usual: (low, high) beyond which a value is probably meant in another unit.
    parse(given, name): reads a value that needs more than a number, word or flag; plain: makes JSON of it.
    """

    name: str
    unit: str
    default: Any
    help: str
    kind: str = "number"  # or count, word, flag, other
    choices: tuple[str, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    size: tuple[int, ...] | None = None
    lone: bool = False  # of a list: one number alone stays a number
    typed: str = ""
    usual: tuple[float, float] | None = None
    option: str = ""  # name of the option where it is not the setting's
    metavar: str = ""
    repeat: bool = False  # its option may be given several times: the texts go into a tuple
    parse: Callable[[Any, str], Any] | None = None
    plain: Callable[[Any], Any] | None = None
    optional: bool = True  # may be None: a field of a group says so by its type

    @property
    def label(self) -> str:
        """Name and unit as a page shows them: radius [m]."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def read(self, given: Any, name: str = "") -> Any:
        """The given value in the setting's unit, checked; lists as tuples. name: what an error calls it."""
        name = name or self.name
        if given is None and self.optional:
            return None
        if given is None:
            raise InvalidValue(f"{name}: a value is missing")
        if self.parse is not None:
            value = self.parse(given, name)
        elif self.kind == "word":
            value = given
        elif self.kind == "flag":
            value = _FLAGS.get(given.lower(), given) if isinstance(given, str) else given
        else:
            value = self._numbers(given, name)
        self.check(value, name)
        return value

    def check(self, value: Any, name: str = "") -> None:
        """Refuse a value that is no such word, flag or number, or lies outside the range."""
        name = name or self.name
        if value is None or self.kind == "other":
            return
        if self.kind == "word":
            if not isinstance(value, str):
                raise InvalidValue(f"{name}: got {value!r}, valid: {', '.join(self.choices) or 'a text'}")
            if self.choices and value not in self.choices:
                raise unknown(name, value, self.choices, f"{name}: got {value!r}, valid: {', '.join(self.choices)}")
            return
        if self.kind == "flag":
            if not isinstance(value, bool) and value not in self.choices:  # of a flag: words beside on and off
                raise InvalidValue(f"{name}: got {value!r}, valid: {', '.join(('on', 'off', *self.choices))}")
            return
        for number in value if isinstance(value, tuple | list) else (value,):
            if not (math.isfinite(number) and self.low <= number <= self.high) or (self.above and number == self.low):
                raise InvalidValue(f"{name}: {self._range()}, got {number:g}")

    def doubt(self, value: Any) -> str:
        """A sentence if the value looks as if another unit had been meant; "" if not."""
        if value is None or self.kind != "number":
            return ""
        numbers = value if isinstance(value, tuple) else (value,)
        unit, usual = self.unit, self.usual
        if usual is None:  # of every length
            unit, usual = "m", USUAL_LENGTHS
            numbers = tuple(n for n, its in zip(numbers, _spread(self.unit, len(numbers)), strict=True) if its == "m")
        size = max(map(abs, numbers), default=0.0)
        low, high = usual
        if size == 0.0 or low <= size <= high:
            return ""
        shown, spelled = ",".join(f"{number:g}" for number in numbers), f" {unit}" if unit else ""
        kind = UNITS[unit][0]
        others = [other for other, (its, _) in UNITS.items() if its == kind and other not in ("", "%", unit)]
        hint = f"; {' or '.join(others)}? write {shown}{others[0]}" if others else ""
        range_ = f"{low:g} to {high:g}{spelled}" if low else f"up to {high:g}{spelled}"
        return f"{self.name}: {shown}{spelled} is unusual ({range_} is what is meant as a rule){hint}"

    def text(self, value: Any) -> str:
        """A value as it would be typed, without its unit."""
        if value is None or value == ():
            return ""
        if isinstance(value, bool):
            return "on" if value else "off"
        if self.parse is not None and self.plain is not None:
            return _assigned(self.plain(value))
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    @property
    def default_text(self) -> str:
        """The default as a help text shows it, with its unit; "" where there is none."""
        if self.default is None or self.kind == "flag":
            return ""
        value, unit = self.default, self.typed or self.unit
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = value * _factor(self.unit) / _factor(unit)
            return f"{value:g}{unit if unit[:1].isalpha() or not unit else ' ' + unit}"
        return self.text(value)

    def _range(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        what = "a finite number"
        if math.isinf(self.high) and math.isinf(self.low):
            return what + unit
        least = f"above {self.low:g}" if self.above else f"{self.low:g}"
        if math.isinf(self.high):
            return f"{least}{unit}" if self.above else f"{least}{unit} or more"
        return f"{least} to {self.high:g}{unit}"

    def _numbers(self, given: Any, name: str) -> Any:
        parts = parted(given)
        if self.size is None:
            if len(parts) != 1:
                raise InvalidValue(f"{name}: one number, got {given!r}")
        elif not parts or (self.size and len(parts) not in self.size):
            raise InvalidValue(
                f"{name}: {' or '.join(map(str, self.size)) or 'some'} numbers, got {len(parts)}: {given!r}"
            )
        units = _spread(self.unit, len(parts))
        texts = _spread(self.typed or self.unit, len(parts))
        _same_at_the_end(parts, units)
        numbers = tuple(_number(name, *its) for its in zip(parts, units, texts, strict=True))
        if self.kind == "count":
            if any(number != int(number) for number in numbers):
                raise InvalidValue(f"{name}: a whole number, got {given!r}")
            numbers = tuple(_exact(part, number) for part, number in zip(parts, numbers, strict=True))
        return numbers[0] if self.size is None or (self.lone and len(numbers) == 1) else numbers


def setting(default: Any, unit: str, help: str, **more: Any) -> Any:
    """A field of a group: one number, or with `size` a tuple of them, in `unit`. more: as Setting has it."""
    return _field(Setting("", unit, default, help, **more))


def word(default: Any, help: str, choices: Sequence[str] = (), **more: Any) -> Any:
    """A field of a group: a text, or one of `choices`."""
    return _field(Setting("", "", default, help, "word", tuple(choices), **more))


def flag(default: bool, help: str, **more: Any) -> Any:
    """A field of a group: on or off."""
    return _field(Setting("", "", default, help, "flag", **more))


def count(default: Any, help: str, **more: Any) -> Any:
    """A field of a group: a whole number."""
    return _field(Setting("", "", default, help, "count", **more))


def other(default: Any, help: str, parse: Callable[[Any, str], Any], **more: Any) -> Any:
    """A field of a group that reads its value itself."""
    return _field(Setting("", more.pop("unit", ""), default, help, "other", parse=parse, **more))


def repeated(help: str, **more: Any) -> Any:
    """A field of a group: a tuple of texts, of an option that may be given several times."""
    return other((), help, lambda given, name: tuple(given), repeat=True, **more)


def altered(group: type[Any], name: str, default: Any, **more: Any) -> Any:
    """A field of a group that stands on another: its setting of that name with another default. more: as Setting."""
    return _field(replace(settings_of(group)[name], default=default, **more))


def _field(one: Setting) -> Any:
    default = MISSING if one.default is MISSING else one.default
    return dataclasses.field(default=default, metadata={"setting": one})


def settings_of(group: type[Any]) -> dict[str, Setting]:
    """The settings of a group by name, in its order."""
    found = {}
    for part in dataclasses.fields(group):
        one = part.metadata.get("setting")
        if one is not None:
            found[part.name] = replace(one, name=part.name, default=part.default, optional="None" in str(part.type))
    return found


def check(group: Any) -> None:
    """Refuse what a group must not hold; for its __post_init__."""
    for name, one in settings_of(type(group)).items():
        one.check(getattr(group, name))


def merged(group: type[Group], *layers: Mapping[str, Any]) -> Group:
    """A group of its defaults and each layer over the one before; an unknown name lists the known ones."""
    known = settings_of(group)
    values = {}
    for layer in layers:
        for name, given in layer.items():
            if name not in known:
                raise unknown("setting", name, sorted(known))
            values[name] = known[name].read(given)
    return group(**values)


def plain(group: Any) -> dict[str, Any]:
    """A group as data that `merged` reads back: what a manifest holds."""
    found = {}
    for name, one in settings_of(type(group)).items():
        value = getattr(group, name)
        found[name] = one.plain(value) if one.plain is not None and value is not None else value
    return found


def doubts(group: Any, told: Mapping[str, Any]) -> tuple[str, ...]:
    """Sentences about what was told and looks as if another unit had been meant; with a unit nobody doubts it."""
    known = settings_of(type(group))
    bare = [name for name, given in told.items() if name in known and not any(_unit(part) for part in parted(given))]
    return tuple(filter(None, (known[name].doubt(getattr(group, name)) for name in bare)))


def numbers(given: Any, name: str, unit: str, size: tuple[int, ...]) -> tuple[float, ...]:
    """Numbers with their units, commas or slashes between, as many as one of `size` says; unit: as Setting has it."""
    found: tuple[float, ...] = Setting(name, unit, None, "", size=size).read(given)
    return found


def parted(given: Any) -> list[Any]:
    """The parts of a list: a text with commas or slashes between its numbers, or a sequence."""
    if isinstance(given, str):
        parts = given.split(",") if "," in given else given.split("/") if _is_list(given) else [given]
        return [part.strip() for part in parts]
    return list(given) if isinstance(given, Sequence) else [given]


def _is_list(text: str) -> bool:
    """Whether a text is several numbers: 0.7/0.1/0.3 (units such as rad/s are no lists)."""
    *before, last = text.split("/")
    return bool(before) and all(_is_number(part) for part in [*before, _split(last)[0]])


def _is_number(text: str) -> bool:
    found = _NUMBER.fullmatch(text)
    return found is not None and not found[2]


def _split(text: str) -> tuple[str, str]:
    """Number and unit: "150 mm", "150mm" or "0.1/h"; a text that does not begin with a number has no unit."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text.strip(), ""
    return found[1], f"1{found[2]}" if found[2].startswith("/") else found[2]


def _unit(part: Any) -> str:
    return _split(part)[1] if isinstance(part, str) else ""


def _spread(units: str, size: int) -> list[str]:
    """One unit per number."""
    each = units.split(",")
    return each[:size] if len(each) > 1 else each * size


def _same_at_the_end(parts: list[Any], units: Sequence[str]) -> None:
    """700, 100, 300 mm: a unit at the end alone is that of all before it that are of its kind."""
    unit = _unit(parts[-1])
    kinds = [UNITS[its][0] for its in units]
    alike = [i for i, kind in enumerate(kinds[:-1]) if kind == kinds[-1]]
    if unit and not any(_unit(parts[i]) for i in alike):
        for i in alike:
            if isinstance(parts[i], str):
                parts[i] = f"{parts[i]} {unit}"


def _factor(unit: str) -> float:
    return UNITS[unit][1]


def _number(name: str, given: Any, unit: str, typed: str) -> float:
    if isinstance(given, bool):
        raise InvalidValue(f"{name}: a number, got {given!r}")
    text, its = given, unit
    if isinstance(given, str):
        text, its = _split(given)
        its = its or typed
        kind = UNITS[unit][0]
        if UNITS.get(its, ("",))[0] != kind:
            fitting = ", ".join(u for u, (k, _) in UNITS.items() if k == kind and u) or "none"
            raise InvalidValue(f"{name}: {given!r} has the unit {its!r}, valid units: {fitting}")
    try:
        number = float(text)
    except (TypeError, ValueError):
        example = f", e.g. 1 or '1 {unit}'" if unit else ""
        raise InvalidValue(f"{name}: a number{example}, got {given!r}") from None
    except OverflowError:  # a whole number beyond every float
        number = math.inf
    if not math.isfinite(number):
        raise InvalidValue(f"{name}: a finite number, got {given!r}")
    if its == unit:
        return number
    return number * _factor(its) if _factor(unit) == 1.0 else number * (_factor(its) / _factor(unit))


def _exact(given: Any, number: float) -> int:
    """A whole number as it was written: beyond 2^53 a float is another one."""
    try:
        return int(given)
    except ValueError:  # 1e6
        return int(number)


def _assigned(value: Any) -> str:
    """A mapping, or several, as key=value with commas between."""
    if isinstance(value, Mapping):
        return ",".join(
            f"{key}={'/'.join(f'{x:g}' for x in entry) if isinstance(entry, tuple | list) else f'{entry:g}'}"
            for key, entry in value.items()
        )
    return "; ".join(map(_assigned, value))


def read_scenario(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A scenario file: TOML with `scenario = "circle"` and settings, all at the top level; push may be a list."""
    file = Path(path)
    raw = foreign.read_bytes(file, foreign.TEXT_MAX, ModelFileError)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise ModelFileError(f"{file} is no TOML: {problem.reason} at byte {problem.start}") from None
    data = foreign.toml(text, file, ModelFileError, said=" is no TOML")
    if not isinstance(data.get("scenario"), str):
        raise ModelFileError(f'{file}: the field scenario is missing, e.g. scenario = "circle"')
    return data


def assignments(texts: Sequence[str]) -> dict[str, str]:
    """--set key=value ... as a mapping."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidValue(f"--set takes key=value, got {text!r}")
        found[name.strip()] = value.strip()
    return found
