"""Wrong files of arms are refused with the file and the field in the message; options reach the model."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from oracles import pinocchio_model

from tangere.errors import InvalidValue, ModelFileError, UnknownName, UnphysicalModel
from tangere.model.loading import load
from tangere.model.model import Array, Model

DATA = Path(importlib.import_module("tangere.model").__file__ or "").parent / "data"


def edited(tmp_path: Path, old: str, new: str, arm: str = "ur10e") -> Path:
    """A copy of an arm's file with one piece of text replaced."""
    text = (DATA / f"{arm}.toml").read_text()
    assert old in text
    path = tmp_path / "edited.toml"
    path.write_text(text.replace(old, new, 1))
    return path


def test_a_file_is_loaded_like_the_name(tmp_path: Path) -> None:
    path = edited(tmp_path, 'title = "Universal Robots UR10e"', 'title = "mine"')
    model = load(path)
    assert model.title == "mine"
    assert load(str(path)).links[1].mass == load("ur10e").links[1].mass


@pytest.mark.parametrize("given", ["ur11", "", "UR-10e", "ur10e\n", "ur10e.exe", "..", "data"])
def test_unknown_robot_lists_the_known(given: str) -> None:
    with pytest.raises(UnknownName, match="ur3e, ur5e, ur10e") as caught:
        load(given)
    assert isinstance(caught.value, ValueError)


def test_unknown_parameters_list_the_known() -> None:
    with pytest.raises(UnknownName, match=r"official, 000-C, 000-D.*ur-ros2"):
        load("ur10e", parameters="001")
    with pytest.raises(InvalidValue, match="known names"):
        load(10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("schema_version = 1", "schema_version = 2", "schema_version"),
        ("schema_version = 1\n", "", "schema_version"),
        ('name = "ur10e"', "name = 10", "name"),
        ('name = "ur10e"', 'name = "x\\u0007"', "name"),
        ('title = "Universal Robots UR10e"\n', "", "title"),
        ("mass = 13.051\n", "", r"links\[1\].mass"),
        ("mass = 13.051", 'mass = "13.051"', r"links\[1\].mass"),
        ("mass = 13.051", "mass = nan", r"links\[1\].mass"),
        ("mass = 13.051", "mass = true", r"links\[1\].mass"),
        ("mass = 13.051", "mas = 13.051", r"links\[1\].mas is unknown"),
        ("com = [0.38, 0.0, 0.158]", "com = [0.38, 0.158]", r"links\[1\].com"),
        ("com = [0.38, 0.0, 0.158]", "com = [0.38, inf, 0.158]", r"links\[1\].com\[1\]"),
        ("xx = 0.0341, ", "", r"links\[0\].inertia.xx"),
        ("xz = -0.0043", "zx = -0.0043", r"links\[0\].inertia.zx"),
        ("a = -0.6127, ", "", r"joints\[1\].dh.a"),
        ("speed_deg = 120", "speed = 120", r"joints\[0\].speed"),
        ("speed_deg = 120", "speed_deg = 0", r"joints\[0\].speed_deg"),
        ("range_deg = [-360, 360]", "range_deg = [360, -360]", r"joints\[0\].range_deg"),
        ("range_deg = [-360, 360]", "range_deg = [nan, nan]", r"joints\[0\].range_deg"),
        ('name = "elbow_joint"', 'name = "wrist_1_joint"', r"joints\[3\].name.*twice"),
        ('name = "upper_arm"', 'name = "shoulder"', r"links\[1\].name.*twice"),
        ('name = "elbow_joint"', 'name = "elbow_joint"\nkind = "helical"', r"joints\[2\].kind"),
        ("gain = [11.976, ", "gain = [", "drives.gain"),
        ("gain = [11.976, ", "gain = [-1.0, ", "drives.gain"),
        ("mass = 13.051", "mass = 1e999", r"links\[1\].mass must be finite"),
        ('name = "ur10e"', '"\\u001b[2J" = 1\nname = "ur10e"', r"'\\x1b\[2J' is unknown"),
        ("joints = [2, 3, 4, 5]", 'joints = "all"', r"sources\[\d+\].joints must be a list"),
        ('grade = "vendor"', 'grade = "excellent"', r"sources\[0\].grade"),
        ('group = "inertia"', 'group = "inertias"', "sources has no entry for inertia"),
        ('group = "drives.viscous"', 'group = "drives.other"', "sources has no entry for drives.viscous"),
        ("gravity = [0.0, 0.0, -9.81]", "gravity = -9.81", "gravity"),
        ("[[links]]\n", "[[unknown]]\n", "unknown is unknown"),
    ],
)
def test_bad_field_names_file_and_field(tmp_path: Path, old: str, new: str, field: str) -> None:
    with pytest.raises(ModelFileError, match=rf"edited\.toml: field .*{field}"):
        load(edited(tmp_path, old, new))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.toml: cannot be read"):
        load(tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("schema_version = = 1")
    with pytest.raises(ModelFileError, match=r"broken\.toml: is not valid TOML"):
        load(tmp_path / "broken.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="not UTF-8"):
        load(tmp_path / "binary.toml")
    (tmp_path / "deep.toml").write_text(f"x = {'[' * 20000}")
    with pytest.raises(ModelFileError, match="not valid TOML"):
        load(tmp_path / "deep.toml")
    with pytest.raises(ModelFileError, match="cannot be read"):
        load("nul\0.toml")
    with pytest.raises(ModelFileError, match="ends in"):
        load(tmp_path / "arm.json")
    with pytest.raises(ModelFileError, match=r"must be TOML"):
        load("ur10e", parameters=tmp_path / "set.urdf")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("mass = 13.051", "mass = -1.0", "upper_arm: mass -1 kg must be positive"),
        ("mass = 13.051", "mass = 0.0", "upper_arm: mass 0 kg must be positive"),
        ("xx = 0.0341", "xx = 0.0001", "shoulder: principal moments .* break the triangle inequality"),
        ("xx = 0.0341", "xx = -0.0341", "shoulder: principal moments -0.03"),
        ("xx = 0.0004, yy = 0.0004, zz = 0.0003", "xx = 0.0, yy = 0.0, zz = 0.0", "wrist_3: .* is positive"),
    ],
)
def test_impossible_bodies_are_refused(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(UnphysicalModel, match=sentence) as caught:
        load(edited(tmp_path, old, new))
    assert "Source of the inertia" in str(caught.value)


def test_damaged_files_raise_only_our_errors(tmp_path: Path, rng: np.random.Generator) -> None:
    """300 random deletions, copies and exchanges of pieces of a file: it loads, or one of our errors says why not."""
    text, path, refused = (DATA / "ur10e.toml").read_text(), tmp_path / "damaged.toml", 0
    for _ in range(300):
        start, other = (int(value) for value in rng.integers(0, len(text), 2))
        length = int(rng.integers(1, 40))
        piece = str(rng.choice(["", text[other : other + length], "nan", "[", '"', "-1e400", "\0", "\u202e"]))
        path.write_text(text[:start] + piece + text[start + length :])
        try:
            load(path)
        except InvalidValue:  # the root of ours that are ValueErrors
            refused += 1
    assert 150 < refused < 300  # most damage is noticed; some falls into comments and texts


def test_options_that_do_not_fit() -> None:
    with pytest.raises(InvalidValue, match="tip="):
        load("ur10e", tip="tool0")
    with pytest.raises(InvalidValue, match="base="):
        load("ur10e", base="base")


def mass_at_tip(model: Model, q: Array) -> float:
    """Gravity torque on joint 2, from Pinocchio."""
    import pinocchio as pin

    pm, pd = pinocchio_model(model)
    return float(pin.computeGeneralizedGravity(pm, pd, q)[1])


def test_payload_tool_gravity_reach_the_model() -> None:
    """A payload of 2 kg adds m g times its distance from joint 2; the ceiling flips gravity."""
    q = np.zeros(6)  # stretched out along -x: the flange is a2 + a3 = -1.18425 m from joint 2
    bare = mass_at_tip(load("ur10e"), q)
    loaded = mass_at_tip(load("ur10e", payload=2.0), q)
    assert loaded - bare == pytest.approx(2.0 * 9.81 * (-0.6127 - 0.57155), rel=1e-12)
    assert mass_at_tip(load("ur10e", gravity="ceiling"), q) == pytest.approx(-bare, rel=1e-12)
    model = load("ur10e", tool=[0.0, 0.0, 0.1])
    assert model.T_flange_tcp[2, 3] == 0.1


def test_numbers_too_long_to_print_are_refused_like_others(tmp_path: Path) -> None:
    """Python refuses to write whole numbers of thousands of digits; the error must still name file and line."""
    for digits in ("0x" + "f" * 6000, str(10**400)):
        path = edited(tmp_path, "mass = 7.369", f"mass = {digits}")
        line = next(n for n, row in enumerate(path.read_text().splitlines(), 1) if digits in row)
        with pytest.raises(ModelFileError, match=rf"edited\.toml, line {line}: a number of 250 digits"):
            load(path)


def test_source_texts_cannot_steer_a_terminal(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="text must be printable"):
        load(edited(tmp_path, 'text = "', 'text = "\\u001b]0;mine\\u0007'))


def test_a_tool_that_is_nearly_a_rotation_becomes_one() -> None:
    tool = np.eye(4)
    tool[0, 1] = 4e-7
    R = load("ur10e", tool=tool).T_flange_tcp[:3, :3]
    assert np.max(np.abs(R.T @ R - np.eye(3))) < 1e-15
    assert np.max(np.abs(R - tool[:3, :3])) < 4e-7


def test_options_of_a_wrong_kind_raise_our_errors() -> None:
    for options in ({"tool": [0, 0, 0, 1e300, 0, 0]}, {"payload": object()}, {"payload": 1j}, {"parameters": 3}):
        with pytest.raises(InvalidValue):
            load("ur10e", **options)  # type: ignore[arg-type]


def test_tables_of_an_identified_model_are_carried_and_checked(tmp_path: Path) -> None:
    """[identified] and [detection] are no numbers of the arm: any content, but a table; and never for another arm."""
    file = tmp_path / "model.toml"
    source = '[[sources]]\ngroup = "drives"\ngrade = "measured"\ntext = "a log"\n'
    head = 'schema_version = 1\nname = "ur3e"\nparameters = "identified"\n'
    file.write_text(f'{head}[identified]\nanything = [1, "two"]\n[detection]\nx = 3\n{source}')
    model = load("ur3e", parameters=file)
    assert model.parameters == "identified"
    assert [link.mass for link in model.links] == [link.mass for link in load("ur3e").links]
    with pytest.raises(ModelFileError, match="identified on that arm, not on 'ur10e'"):
        load("ur10e", parameters=file)
    file.write_text("schema_version = 1\ndetection = 3\n")
    with pytest.raises(ModelFileError, match="detection must be a table"):
        load("ur3e", parameters=file)
    file.write_text("schema_version = 1\n[identifed]\nx = 3\n")
    with pytest.raises(ModelFileError, match="identifed is unknown"):
        load("ur3e", parameters=file)


def test_a_payload_alone_is_a_whole_parameter_set(tmp_path: Path) -> None:
    """As docs/arms.md prints it: neither links nor drives change, so that nothing needs a source."""
    text = (Path(__file__).parents[1] / "docs" / "arms.md").read_text()
    (block,) = [part for part in re.findall(r"```toml\n(.*?)```", text, re.S) if "[payload]\nmass = 3.0" in part]
    file = tmp_path / "payload.toml"
    file.write_text(block)
    model = load("ur10e", parameters=file)
    assert model.payload is not None
    assert model.payload.mass == 3.0
    assert model.sources == load("ur10e").sources
    file.write_text(block + "\n[drives]\ncoulomb = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]\n")
    with pytest.raises(InvalidValue, match="field sources is missing"):
        load("ur10e", parameters=file)
