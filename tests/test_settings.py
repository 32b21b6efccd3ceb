"""What a scenario can be told: units, lists, flags, choices, files, and what is refused with which words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

from tangere.apps.scenarios.hold import HoldSettings
from tangere.errors import InvalidValue, ModelFileError, UnknownName
from tangere.options import Parser, add_options, group_from
from tangere.settings import (
    UNITS,
    Setting,
    assignments,
    check,
    count,
    doubts,
    flag,
    merged,
    numbers,
    plain,
    read_scenario,
    repeated,
    setting,
    settings_of,
    word,
)

LENGTH = Setting("x", "m", 0.1, "a length")
TIME = Setting("x", "s", 1.0, "a time")
PLAIN = Setting("x", "", 1.0, "a number")
COUNT = Setting("x", "", 0, "how many", "count")
FLAG = Setting("x", "", True, "whether", "flag")
WORD = Setting("x", "", "a", "which", "word", ("a", "b"))
TEXT = Setting("x", "", None, "any", "word")
POINT = Setting("x", "m", (0.0, 0.0, 0.0), "a point", size=(3,))
SOME = Setting("x", "", (1.0,), "one or six", size=(1, 6))


@pytest.mark.parametrize(
    ("key", "given", "si"),
    [
        (LENGTH, "150 mm", 0.15),
        (LENGTH, "150mm", 0.15),
        (LENGTH, " 15  cm ", 0.15),
        (LENGTH, "1.5e2mm", 0.15),
        (LENGTH, "-1E-1", -0.1),
        (LENGTH, 0.15, 0.15),
        (LENGTH, 1, 1.0),
        (TIME, "2 ms", 0.002),
        (TIME, "2ms", 0.002),
        (TIME, "500 us", 0.0005),
        (TIME, "2 min", 120.0),
        (Setting("x", "rad", 0.0, ""), "90 deg", math.pi / 2),
        (Setting("x", "rad/s", 0.0, ""), "180 deg/s", math.pi),
        (Setting("x", "rad/s", 0.0, ""), "2rad/s", 2.0),
        (Setting("x", "1/s2", 0.0, ""), "100 1/s2", 100.0),
        (Setting("x", "Nm", 0.0, ""), "20 Nm", 20.0),
        (Setting("x", "N/m", 0.0, ""), "500 N/m", 500.0),
        (PLAIN, "1.05", 1.05),
        (COUNT, "3", 3),
        (COUNT, 3.0, 3),
    ],
)
def test_a_number_may_carry_its_unit(key: Setting, given: object, si: float) -> None:
    found = key.read(given)
    assert found == pytest.approx(si, rel=1e-15, abs=0.0)  # one multiplication
    assert type(found) is type(si)


def test_every_unit_is_read_with_and_without_a_space_and_by_its_own_kind_only() -> None:
    for unit, (kind, factor) in UNITS.items():
        key = Setting("x", next(u for u, (k, f) in UNITS.items() if k == kind and f == 1.0), 0.0, "")
        assert key.read(f"3 {unit}") == 3.0 * factor
        if unit[:1].isalpha() or unit == "%":  # "31/s" would be another number
            assert key.read(f"3{unit}") == 3.0 * factor
        other = "kg" if kind != "mass" else "m"
        with pytest.raises(InvalidValue) as refused:
            key.read(f"3 {other}")
        assert unit in str(refused.value)  # the valid ones are named


def test_units_in_si() -> None:
    assert {unit: factor for unit, (_, factor) in UNITS.items() if factor != 1.0} == pytest.approx({
        "%": 0.01, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0, "mm": 1e-3, "cm": 1e-2, "deg": math.pi / 180.0,
        "mm/s": 1e-3, "cm/s": 1e-2, "deg/s": math.pi / 180.0, "kN": 1e3, "g": 1e-3, "N/mm": 1e3, "kHz": 1e3,
        "1/min": 60.0, "1/day": 1.0 / 24.0,
    })  # fmt: skip


def test_a_bare_number_has_the_documented_unit_and_any_other_of_its_kind_is_understood() -> None:
    angles = Setting("q", "deg", (), "joint positions", size=())
    assert angles.read("0,-90,90") == (0.0, -90.0, 90.0)
    assert angles.read("0rad,-1.5707963267948966rad,90deg") == pytest.approx((0.0, -90.0, 90.0), rel=1e-15)
    assert angles.read("0,-1.5707963267948966,0 rad") == pytest.approx((0.0, -90.0, 0.0), rel=1e-15)
    assert angles.read([0, "90deg"]) == (0.0, 90.0)
    kept = Setting("start", "rad", None, "typed in degrees, kept in radians", size=(2,), typed="deg")
    assert kept.read("90,180") == pytest.approx((math.pi / 2, math.pi), rel=1e-15)
    assert kept.read("1rad,180") == pytest.approx((1.0, math.pi), rel=1e-15)
    assert kept.read((1.0, 2.0)) == (1.0, 2.0)  # numbers of Python are SI
    assert Setting("x", "1/h", 0.1, "").read("1/day") == pytest.approx(1.0 / 24.0)
    assert Setting("x", "1/h", 0.1, "").read("0.5/min") == pytest.approx(30.0)
    assert PLAIN.read("105%") == pytest.approx(1.05)


def test_the_numbers_of_a_list_may_have_units_of_their_own() -> None:
    assert numbers("2,0,0,50mm", "--payload", "kg,m,m,m", (1, 4)) == (2.0, 0.0, 0.0, 0.05)
    assert numbers("500g", "--payload", "kg,m,m,m", (1, 4)) == (0.5,)
    assert numbers("10,20,30mm,0,0,90deg", "--tool", "m,m,m,rad,rad,rad", (3, 6))[:3] == (10.0, 20.0, 0.03)
    assert numbers("0,0,30mm", "--tool", "m,m,m,rad,rad,rad", (3, 6)) == (0.0, 0.0, 0.03)
    turned = numbers("0,0,0,0,90,180deg", "--tool", "m,m,m,rad,rad,rad", (3, 6))
    assert turned == pytest.approx((0.0, 0.0, 0.0, 0.0, math.pi / 2, math.pi), rel=1e-15)
    with pytest.raises(InvalidValue, match="--payload: '0m' has the unit 'm', valid units: kg, g"):
        numbers("0m,0,0,0", "--payload", "kg,m,m,m", (4,))


@dataclass(frozen=True)
class Own:
    """A group as scenarios and commands have it."""

    length: float = setting(0.1, "m", "a length", low=0.0, above=True, high=2.0)
    time: float = setting(1.0, "s", "a time", usual=(0.1, 10.0))
    word: str = word("a", "which", ("a", "b"))
    times: int = count(3, "how often", low=0)
    on: bool = flag(False, "whether")
    q: tuple[float, ...] = setting((90.0, 0.0), "deg", "joints", size=(), usual=(2.0 * math.pi, 720.0))

    def __post_init__(self) -> None:
        check(self)


def test_a_group_gives_labels_defaults_and_plain_data_that_reads_back() -> None:
    labels = [one.label for one in settings_of(Own).values()]
    assert labels == ["length [m]", "time [s]", "word", "times", "on", "q [deg]"]
    changed = Own(length=0.5, on=True, q=(1.0,))
    assert merged(Own, plain(changed)) == changed
    assert merged(Own, {"length": "5 mm"}, {"length": "6 mm"}).length == 0.006


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": 0.0}, "length: above 0 to 2 m, got 0"),
        ({"length": 2.5}, "length: above 0 to 2 m, got 2.5"),
        ({"length": math.nan}, "length: above 0 to 2 m, got nan"),
        ({"times": -1}, "times: 0 or more, got -1"),
        ({"word": "c"}, "word: got 'c', valid: a, b"),
        ({"on": 1}, "on: got 1, valid: on, off"),
    ],
)
def test_a_group_refuses_what_is_out_of_range_however_it_is_made(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        Own(**change)
    with pytest.raises(InvalidValue):
        merged(Own, change)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"time": 0.01}, "0.01 s is unusual (0.1 to 10 s is what is meant as a rule); ms or us or min or h? write"),
        ({"time": "20"}, "time: 20 s is unusual"),
        ({"q": "0,-1.57,1.57"}, "q: 0,-1.57,1.57 deg is unusual (6.28319 to 720 deg"),
        ({"q": "0,-1.57,1.57"}, "rad? write 0,-1.57,1.57rad"),
        ({"time": "10 ms"}, ""),
        ({"time": 5}, ""),
        ({"q": "0,-90,1.57"}, ""),
        ({"q": "1,2,3deg"}, ""),
        ({"q": "0,0,0"}, ""),
        ({"length": 0.001}, ""),
        ({}, ""),
    ],
)
def test_values_that_look_like_another_unit_are_doubted(told: dict[str, Any], words: str) -> None:
    found = doubts(merged(Own, told), told)
    assert len(found) == bool(words)
    assert words in "".join(found)


def test_a_length_that_no_arm_has_is_doubted() -> None:
    tool = Setting("tool", "m", None, "")
    assert tool.doubt(100.0) == (
        "tool: 100 m is unusual (up to 10 m is what is meant as a rule); mm or cm? write 100mm"
    )
    assert tool.doubt(9.9) == tool.doubt(None) == ""
    payload = Setting("payload", "kg,m,m,m", None, "", size=(1, 4))
    assert payload.doubt((20.0,)) == payload.doubt((20.0, 0.0, 0.0, 0.1)) == ""
    assert payload.doubt((1.0, 0.0, 0.0, 50.0)).endswith("write 0,0,50mm")
    assert Setting("time", "s", None, "").doubt(1e4) == ""


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        (LENGTH, "3 s", "x: '3 s' has the unit 's', valid units: m, mm, cm"),
        (LENGTH, "3 parsec", "'parsec', valid units: m, mm, cm"),
        (PLAIN, "3 m", "valid units: %"),
        (LENGTH, "far", "x: a number, e.g. 1 or '1 m', got 'far'"),
        (PLAIN, "", "a number, got ''"),
        (PLAIN, "nan", "a finite number, got 'nan'"),
        (PLAIN, math.nan, "a finite number, got nan"),
        (LENGTH, "inf", "a finite number, got 'inf'"),
        (LENGTH, "-inf mm", "a finite number, got '-inf mm'"),
        (PLAIN, 10**400, "a finite number"),
        (PLAIN, True, "a number, got True"),
        (PLAIN, {"a": 1}, "a number, got {'a': 1}"),
        (PLAIN, [1.0, 2.0], r"one number, got \[1.0, 2.0\]"),
        (PLAIN, "1,2", "one number, got '1,2'"),
        (COUNT, "1.5", "a whole number, got '1.5'"),
        (COUNT, 1e-9, "a whole number"),
        (FLAG, "maybe", "got 'maybe', valid: on, off"),
        (FLAG, 1, "got 1, valid: on, off"),
        (WORD, "c", "got 'c', valid: a, b"),
        (WORD, 1, "got 1, valid: a, b"),
        (TEXT, 1, "valid: a text"),
        (POINT, "1,2", "x: 3 numbers, got 2"),
        (POINT, 1.0, "x: 3 numbers, got 1: 1.0"),
        (POINT, "1 m", "x: 3 numbers, got 1"),
        (POINT, "1,2,3 kg", "valid units: m, mm, cm"),
        (POINT, [1, "nan", 3], "a finite number"),
        (POINT, [], "x: 3 numbers, got 0"),
        (SOME, [1, 2], "x: 1 or 6 numbers, got 2"),
    ],
)
def test_what_is_no_value_is_refused_with_what_would_be(key: Setting, given: object, words: str) -> None:
    with pytest.raises(InvalidValue, match=words.replace("(", r"\(")):
        key.read(given)


@pytest.mark.parametrize(
    "given",
    [
        "0.7,0.1,-0.003", "0.7/0.1/-0.003", "0.7 / 0.1 / -0.003 m", "700,100,-3 mm", "700mm, 10 cm, -0.003",
        "700 mm,0.1,-3 mm", "0.7/0.1/-3e-3", [0.7, 0.1, -0.003], (0.7, "100 mm", "-3mm"),
    ],
)  # fmt: skip
def test_a_list_in_every_form_and_a_unit_at_its_end_is_that_of_all(given: object) -> None:
    found = POINT.read(given)
    assert isinstance(found, tuple)
    assert found == pytest.approx((0.7, 0.1, -0.003), rel=1e-15)


def test_one_number_where_a_list_may_have_one() -> None:
    assert SOME.read(5) == (5.0,)
    assert SOME.read("5") == (5.0,)
    assert SOME.read("1,2,3,4,5,6") == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


@pytest.mark.parametrize("given", [2**63 + 1, str(2**63 + 1), f" {2**63 + 1} "])
def test_whole_numbers_are_not_rounded(given: object) -> None:
    """A seed of 64 bits is no float; 1e6 is a whole number, too."""
    seed = Setting("seed", "", 0, "of everything random", "count")
    assert seed.read(given) == 2**63 + 1
    assert seed.read("1e6") == seed.read(1e6) == 10**6


def test_flags() -> None:
    for given, found in (("on", True), ("OFF", False), ("true", True), ("False", False), (True, True)):
        assert FLAG.read(given) is found


def test_words_and_nothing() -> None:
    assert WORD.read("b") == "b"
    assert TEXT.read("anything") == "anything"
    assert Setting("x", "kg", None, "").read(None) is None


def test_nothing_in_the_place_of_a_value_is_refused_where_a_value_is_needed() -> None:
    @dataclass(frozen=True)
    class Group:
        side: float = setting(1.0, "m", "a length")
        name: str | None = word("a", "a name, or none")

    assert merged(Group, {"name": None}).name is None
    with pytest.raises(InvalidValue, match="side: a value is missing"):
        merged(Group, {"side": None})


def test_an_unknown_key_lists_the_known_and_says_what_was_meant() -> None:
    known = "length, on, q, time, times, word"
    with pytest.raises(UnknownName, match=f"unknown setting 'lenght'; known: {known}; did you mean 'length'\\?"):
        merged(Own, {"lenght": 1})
    with pytest.raises(UnknownName, match=f"unknown setting 'colour'; known: {known}$"):
        merged(Own, {"colour": 1})


def test_assignments() -> None:
    assert assignments(["a=1 mm", " b = x=y ", "a=2"]) == {"a": "2", "b": "x=y"}
    for wrong in ("a", "=1", "", " =1"):
        with pytest.raises(InvalidValue, match="--set takes key=value, got"):
            assignments([wrong])


def test_scenario_files(tmp_path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('scenario = "circle"\nradius = "150 mm"\n[[push]]\njoint = 2\ntorque = 20\nstart = 1\n')
    assert read_scenario(file) == {
        "scenario": "circle", "radius": "150 mm", "push": [{"joint": 2, "torque": 20, "start": 1}],
    }  # fmt: skip
    for text, words in (
        ("radius = 1", "mine.toml: the field scenario is missing, e.g. scenario ="),
        ("scenario = 3", "the field scenario is missing"),
        ("scenario = circle", "mine.toml is no TOML: .*line 1"),
        ("<html>", "is no TOML"),
    ):
        file.write_text(text)
        with pytest.raises(ModelFileError, match=words):
            read_scenario(file)
    file.write_bytes(b'scenario = "\xff"')
    with pytest.raises(ModelFileError, match="is no TOML"):
        read_scenario(file)
    with pytest.raises(ModelFileError, match=r"cannot read .*no\.toml: No such file"):
        read_scenario(tmp_path / "no.toml")
    with pytest.raises(ModelFileError, match=r"cannot read .*directory"):
        read_scenario(tmp_path)


def test_what_is_out_of_range_is_told_with_the_unit() -> None:
    ranges = (({}, "a finite number N"), ({"low": 0.0}, "0 N or more"), ({"high": 2.0, "low": 0.0}, "0 to 2 N"))
    for more, words in ranges:
        with pytest.raises(InvalidValue, match=f"^f: {words}, got nan"):
            Setting("f", "N", 1.0, "a force", **more).check(float("nan"))


def test_an_option_that_may_be_given_again_and_again() -> None:
    @dataclass(frozen=True)
    class Group:
        when: tuple[str, ...] = repeated("a time", metavar="T")

    parser = Parser()
    add_options(parser, Group)
    assert group_from(Group, parser.parse_args(["--when", "1", "--when", "-2"])) == Group(("1", "-2"))
    assert group_from(Group, parser.parse_args([])) == Group(())
    assert "--when T" in parser.format_help()


def test_the_help_of_an_option_names_its_unit() -> None:
    parser = Parser()
    add_options(parser, Own)
    said = parser.format_help()
    assert all(words in said for words in ("--length m", "--time s", "--word {a,b}", "--times X", "--q deg"))


@pytest.mark.parametrize(
    ("name", "usual", "unusual"), [("kv", 1000.0, 1001.0), ("kv", 2.0, 1.9), ("q", (6.3,) * 6, (6.28,) * 6)]
)
def test_the_edges_of_what_is_usual(name: str, usual: Any, unusual: Any) -> None:
    one = settings_of(HoldSettings)[name]
    assert one.doubt(usual) == ""
    assert "is unusual" in one.doubt(unusual)


def test_a_unit_at_the_end_is_that_of_its_own_kind_only() -> None:
    load = Setting("load", "kg,m,m,m", None, "what is carried", size=(1, 4))
    assert load.read("2,10,20,30mm") == pytest.approx((2.0, 0.01, 0.02, 0.03))
