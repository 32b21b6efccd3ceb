"""manifest.json: written whole or not at all, read back equal, and a hash that changes with every number of a model."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import tangere
from tangere.errors import InvalidValue
from tangere.logs import files
from tangere.loop.folder import Manifest, load_manifest, model_hash, write_json, write_manifest


def some_manifest():
    robot = tangere.robot("ur10e")
    scenario = {"name": "circle", "push": {"joint": 2, "torque": 0.1 + 0.2}, "q": [1.0, 2.0], "video": None}
    return Manifest.of(["tangere", "run", "circle"], scenario, seeds={"sensors": 7}, models={"plant": robot})


def test_it_reads_back_equal(tmp_path):
    manifest = some_manifest()
    path = write_manifest(manifest, tmp_path)
    assert path == tmp_path / "manifest.json"
    assert load_manifest(tmp_path) == load_manifest(path) == manifest
    assert manifest.versions["numpy"] == np.__version__
    assert manifest.versions["python"]
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_nothing_names_the_machine_or_its_user():
    assert set(some_manifest().platform) == {"system", "machine", "byteorder"}


def test_a_model_s_hash_is_its_numbers():
    robot = tangere.robot("ur10e")
    assert model_hash(robot) == model_hash(tangere.robot("ur10e"))
    others = [
        tangere.robot("ur5e"),
        tangere.robot("ur10e", payload=1e-12),
        tangere.robot("ur10e", tool=[0.0, 0.0, 1e-15]),
        tangere.robot("ur10e", rotor_inertia=np.full(6, 0.1)),
        tangere.robot("ur10e", gravity="wall"),
    ]
    hashes = {model_hash(other) for other in [robot, *others]}
    assert len(hashes) == 6
    model = robot.model
    assert model_hash(dataclasses.replace(model, sources=())) == model_hash(model)
    link = dataclasses.replace(model.links[5], mass=np.nextafter(model.links[5].mass, 1.0))
    assert model_hash(dataclasses.replace(model, links=(*model.links[:5], link))) != model_hash(model)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    write_manifest(some_manifest(), tmp_path)
    before = (tmp_path / "manifest.json").read_bytes()

    def torn(self, text, **how):
        with self.open("w") as file:
            file.write(text[:20])
        raise OSError("power cut")

    with (tmp_path / "manifest.json").open("rb") as reader:  # a reader in the middle of it keeps the file it opened
        write_manifest(dataclasses.replace(some_manifest(), command=("other",)), tmp_path)
        assert reader.read() == before
    before = (tmp_path / "manifest.json").read_bytes()
    monkeypatch.setattr(files.Path, "write_text", torn)
    with pytest.raises(InvalidValue, match=r"cannot write .*power cut"):
        write_manifest(some_manifest(), tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


def test_json_that_every_reader_accepts(tmp_path):
    given = {"a": np.array([1.0, np.nan]), "b": np.float64(np.inf), "c": (1, True, None, "ü"), "d": tmp_path}
    write_json(given, tmp_path / "a")

    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads((tmp_path / "a").read_text(), parse_constant=refuse)
    assert data == {"a": [1.0, None], "b": None, "c": [1, True, None, "ü"], "d": str(tmp_path)}
    with pytest.raises(InvalidValue, match="cannot be written as JSON"):
        write_json({"a": object()}, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_what_is_no_manifest_is_refused(tmp_path):
    with pytest.raises(InvalidValue, match="cannot read"):
        load_manifest(tmp_path)
    for text, said in (("{", "no manifest"), ("[]", "format"), ('{"format": 2}', "format 1")):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InvalidValue, match=said):
            load_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 1, "command": [], "scenario": {}, "extra": 1}')
    with pytest.raises(InvalidValue, match="extra"):
        load_manifest(tmp_path)
    with pytest.raises(InvalidValue, match="cannot write"):
        write_manifest(some_manifest(), tmp_path / "no")
