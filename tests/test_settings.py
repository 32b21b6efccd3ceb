"""What a scenario can be told: units, lists, flags, choices, files, and what is refused with which words."""

from __future__ import annotations

import math

import pytest

from tangere.errors import InvalidValue, ModelFileError, UnknownName
from tangere.loop.settings import UNITS, Key, assignments, merged, read_scenario, value_of

LENGTH = Key("length", 0.1, "a length")
TIME = Key("time", 1.0, "a time")
PLAIN = Key("number", 1.0, "a number")
COUNT = Key("count", 0, "how many")
FLAG = Key("flag", True, "whether")
WORD = Key("word", "a", "which", ("a", "b"))
POINT = Key("length", (0.0, 0.0, 0.0), "a point", size=(3,))
SOME = Key("number", (1.0,), "one or six", size=(1, 6))


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
        (Key("angle", 0.0, ""), "90 deg", math.pi / 2),
        (Key("rate", 0.0, ""), "180 deg/s", math.pi),
        (Key("rate", 0.0, ""), "2rad/s", 2.0),
        (Key("stiffness of the error", 0.0, ""), "100 1/s2", 100.0),
        (Key("torque", 0.0, ""), "20 Nm", 20.0),
        (Key("stiffness", 0.0, ""), "500 N/m", 500.0),
        (PLAIN, "1.05", 1.05),
        (COUNT, "3", 3),
        (COUNT, 3.0, 3),
    ],
)
def test_a_number_may_carry_its_unit(key: Key, given: object, si: float) -> None:
    found = value_of("x", key, given)
    assert found == pytest.approx(si, rel=1e-15, abs=0.0)  # one multiplication
    assert type(found) is type(si)


def test_every_unit_is_read_with_and_without_a_space_and_by_its_own_kind_only() -> None:
    for unit, (kind, factor) in UNITS.items():
        key = Key(kind, 0.0, "")
        assert value_of("x", key, f"3 {unit}") == 3.0 * factor
        if unit[0].isalpha():  # "31/s" would be another number
            assert value_of("x", key, f"3{unit}") == 3.0 * factor
        other = "kg" if kind != "mass" else "m"
        with pytest.raises(InvalidValue) as refused:
            value_of("x", key, f"3 {other}")
        assert unit in str(refused.value)  # the valid ones are named


@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        (LENGTH, "3 s", "x: '3 s' has the unit 's', valid units: m, mm, cm"),
        (LENGTH, "3 parsec", "'parsec', valid units: m, mm, cm"),
        (PLAIN, "3 m", "valid units: none"),
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
        (Key("word", None, ""), 1, "valid: a text"),
        (POINT, "1,2", "x: 3 numbers, got 2"),
        (POINT, 1.0, "x: 3 numbers, got 1: 1.0"),
        (POINT, "1 m", "x: 3 numbers, got 1"),
        (POINT, "1,2,3 kg", "valid units: m, mm, cm"),
        (POINT, [1, "nan", 3], "a finite number"),
        (POINT, [], "x: 3 numbers, got 0"),
        (SOME, [1, 2], "x: 1 or 6 numbers, got 2"),
    ],
)
def test_what_is_no_value_is_refused_with_what_would_be(key: Key, given: object, words: str) -> None:
    with pytest.raises(InvalidValue, match=words.replace("(", r"\(")):
        value_of("x", key, given)


@pytest.mark.parametrize(
    "given",
    [
        "0.7,0.1,-0.003", "0.7/0.1/-0.003", "0.7 / 0.1 / -0.003 m", "700,100,-3 mm", "700mm, 10 cm, -0.003",
        "700 mm,0.1,-3 mm", "0.7/0.1/-3e-3", [0.7, 0.1, -0.003], (0.7, "100 mm", "-3mm"),
    ],
)  # fmt: skip
def test_a_list_in_every_form_and_a_unit_at_its_end_is_that_of_all(given: object) -> None:
    found = value_of("x", POINT, given)
    assert isinstance(found, tuple)
    assert found == pytest.approx((0.7, 0.1, -0.003), rel=1e-15)


def test_one_number_where_a_list_may_have_one() -> None:
    assert value_of("x", SOME, 5) == (5.0,)
    assert value_of("x", SOME, "5") == (5.0,)
    assert value_of("x", SOME, "1,2,3,4,5,6") == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)


def test_flags() -> None:
    for given, found in (("on", True), ("OFF", False), ("true", True), ("False", False), (True, True)):
        assert value_of("x", FLAG, given) is found


def test_words_and_nothing() -> None:
    assert value_of("x", WORD, "b") == "b"
    assert value_of("x", Key("word", None, ""), "anything") == "anything"
    assert value_of("x", Key("mass", None, ""), None) is None


def test_layers_go_over_the_defaults_and_an_unknown_key_lists_the_known() -> None:
    keys = {"length": LENGTH, "time": TIME, "word": WORD}
    assert merged(keys) == {"length": 0.1, "time": 1.0, "word": "a"}
    found = merged(keys, {"length": "1 mm", "time": 2}, {"length": "2 mm"})
    assert found == {"length": 0.002, "time": 2.0, "word": "a"}
    with pytest.raises(UnknownName, match="unknown setting 'lenght'; known: length, time, word"):
        merged(keys, {"lenght": 1})


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
