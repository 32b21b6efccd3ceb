"""Mutated files for every reader: whatever comes in, a result or an error of ours goes out.

python tests/fuzz_readers.py 5000 [READER ...] is the long form (`make fuzz`); the seed of each input is its number, the
first one TANGERE_SEED.
"""

from __future__ import annotations

import io
import os
import random
import resource
import sqlite3
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np
from fuzz_mutations import mutated, rechunked, regrown, reshaped, reworded, rezipped, there

from tangere import foreign
from tangere.errors import TangereError
from tangere.identification.model import read_model
from tangere.logs import ros_messages
from tangere.logs.csv_log import write_csv
from tangere.logs.log import Log
from tangere.logs.mcap_log import write_mcap
from tangere.logs.recordings import follow, recordings
from tangere.model.calibration import calibrated, calibration_text, dh_frames, read_motor_calibration
from tangere.model.loading import load
from tangere.model.urdf_text import to_urdf

SHAPED = {
    ".npz": rezipped, ".fmu": rezipped, ".mcap": rechunked, ".json": reshaped,
    **dict.fromkeys((".bin", ".png", ".db3", ".glb"), mutated), **dict.fromkeys((".urdf", ".svg", ".xml", ".dae"), regrown),
}  # fmt: skip


def seeds(folder: Path) -> dict[str, tuple[list[bytes], Callable[[Path], object], str]]:
    """reader -> files that are right, what reads one, and the ending of its name."""
    arm = load("ur10e")
    t = np.arange(40) * 0.01
    wave = np.sin(t[:, None] * np.arange(1, 7))
    log = Log({"time": t, "q": wave, "qd": np.cos(wave), "actual_current": wave**2})
    write_csv(log, folder / "a.csv")
    write_mcap(log, folder / "a.mcap")
    np.savez(folder / "a.npz", t=t, q=wave, qd=wave, current=wave)
    np.savez_compressed(folder / "b.npz", run=np.concatenate([wave, wave, wave], axis=1))
    dh = arm.dh
    assert dh is not None
    frames = dh_frames(arm, np.zeros(6), dh.a, dh.d, dh.alpha)
    urdf = to_urdf(arm).encode()
    toml = (Path(sys.modules["tangere.model"].__path__[0]) / "data" / "ur10e.toml").read_bytes()
    summary = "".join(f"**** Joint {i} :\nK_tau\n0.12\n0.5 1 2 30 4 5\n1.5 1 3 30 4 5\n" for i in range(6)).encode()
    names = [joint.name for joint in arm.joints]
    read = {
        "toml": ([toml], load, ".toml"),
        "scenario": ([b'scenario = "circle"\nradius = 0.1\npush = ["joint=2,torque=20,start=3,duration=2"]\n'], _scenario, ".toml"),
        "urdf": ([urdf], load, ".urdf"),
        "calibration": ([calibration_text(frames, "1").encode()], lambda p: calibrated(arm, p), ".yaml"),
        "motors": ([summary], read_motor_calibration, ".txt"),
        "csv": ([(folder / "a.csv").read_bytes()], recordings, ".csv"),
        "stream": ([(folder / "a.csv").read_bytes()], _stream, ".csv"),
        "npz": ([(folder / name).read_bytes() for name in ("a.npz", "b.npz")], _npz, ".npz"),
        "mcap": ([(folder / "a.mcap").read_bytes()], recordings, ".mcap"),
        "db3": ([_db3(folder / "a.db3", names, wave)], recordings, ".db3"),
        "manifest": ([_run(folder / "run", "manifest.json")], lambda p: _page(p, folder / "run", "manifest.json"), ".json"),
        "summary": ([_run(folder / "run", "summary.json")], lambda p: _page(p, folder / "run", "summary.json"), ".json"),
        "model": ([_model()], read_model, ".toml"),
        "fmu": ([_fmu()], _opened, ".fmu"),
        "rtde": ([_packages()], _rtde, ".bin"),
        "primary": ([_messages()], _primary, ".bin"),
        "dashboard": ([b"Connected: Universal Robots Dashboard Server\nRobotmode: RUNNING\nPolyscope 5.11.0\n"], _dashboard, ".bin"),
        "ros2": (_ros2_messages(), _ros2, ".bin"),
        "svg": ([SVG], _svg, ".svg"),
        "picture": (_pictures(), _picture, ".png"),
    }  # fmt: skip
    if there("trimesh") and there("collada"):
        for ending, what in (("dae", "mesh"), ("stl", "triangles"), ("obj", "surfaces"), ("glb", "scene")):
            read[what] = ([_box(ending)], _mesh, f".{ending}")
    if "mujoco" in sys.modules or there("mujoco"):
        read["mjcf"] = ([MJCF], load, ".xml")
    return {name: one for name, one in read.items() if one[0]}


SVG = b"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 80" width="100mm"><style>.a{stroke:#000;fill:none}</style>
<defs><g id="s"><circle cx="5" cy="5" r="4"/></g></defs><path class="a" d="M10 10 C20 0 30 40 50 10 A5 9 30 1 0 70 40 Z"/>
<g transform="rotate(10) scale(1.5,2)"><rect x="1" y="2" width="30" height="9" rx="2" stroke-dasharray="3 1"/></g>
<use href="#s" x="20"/><text x="5" y="60" font-size="8">ab</text><polyline points="1,2 3,4 5,60"/></svg>"""
MJCF = b"""<mujoco model="two"><worldbody><body name="a" pos="0 0 1"><joint name="j1" axis="0 0 1" range="-90 90"/>
<inertial pos="0 0 0.1" mass="2" diaginertia="0.1 0.1 0.1"/><body name="b" pos="0 0 0.5"><joint name="j2" axis="0 1 0"/>
<geom type="capsule" size="0.05 0.2" mass="1"/><site name="tcp" pos="0 0 0.3"/></body></body></worldbody>
<actuator><motor joint="j1" forcerange="-5 5" forcelimited="true"/></actuator></mujoco>"""


def _scenario(path: Path) -> object:
    from tangere.settings import read_scenario

    return read_scenario(path)


def _stream(path: Path) -> object:
    with path.open("rb") as file:
        return list(follow(foreign.lines(file)))


def _npz(path: Path) -> object:
    return recordings(path, rate=100.0)


@cache
def _made() -> dict[str, bytes]:
    """Files of a run that is pushed, and of a model; once, as the latter takes a second."""
    import tangere
    from tangere.cli.main import main

    t = np.arange(0.0, 3.0, 1e-2)
    q = 0.2 * np.sin(np.outer(t, np.linspace(0.5, 1.0, 6))) + np.array([0.0, -1.2, 1.3, -0.4, 1.1, 0.2])
    log = Log({"time": t, "q": q, "qd": np.gradient(q, t, axis=0), "tau": tangere.robot("ur10e").gravity_torque(q)})
    with tempfile.TemporaryDirectory() as name, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        run = ["run", "hold", "--plant", "rigid", "--set", "duration=0.1", "--push", "joint=2,torque=60,start=0.02,duration=0.05"]
        assert main([*run, "--out", f"{name}/run"]) == 0
        write_csv(log, f"{name}/log.csv")
        assert main(["identify", f"{name}/log.csv", "--robot", "ur10e", "--inertial", "none", "--out", f"{name}/model.toml"]) == 0
        files = ("run/manifest.json", "run/summary.json", "run/log.mcap", "model.toml")
        return {file: (Path(name) / file).read_bytes() for file in files}


def _run(folder: Path, wanted: str) -> bytes:
    """A run's folder, and one of its files."""
    folder.mkdir(exist_ok=True)
    for name in ("manifest.json", "summary.json", "log.mcap"):
        (folder / name).write_bytes(_made()[f"run/{name}"])
    return _made()[f"run/{wanted}"]


def _page(path: Path, folder: Path, name: str) -> object:
    """The page of a run one of whose files is another."""
    from tangere.loop.folder import load_manifest
    from tangere.report.data import run_data
    from tangere.report.page import report_html

    (folder / name).write_bytes(path.read_bytes())
    page = report_html(run_data(folder))
    load_manifest(folder)
    return page


def _model() -> bytes:
    return _made()["model.toml"]


def _mesh(path: Path) -> object:
    from tangere.studio.meshes import read_mesh

    return read_mesh(path)


def _db3(path: Path, names: list[str], q: np.ndarray) -> bytes:
    """A bag of ROS 2 in SQLite."""
    layout = ros_messages.joint_state(names, ["position"])
    at, _, count = layout.holes["position"]
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT)")
        base.execute("CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)")
        base.execute("INSERT INTO topics VALUES (1, '/joint_states', 'sensor_msgs/msg/JointState')")
        for k, row in enumerate(q):
            data = layout.data[:at] + row.astype("<f8").tobytes() + layout.data[at + 8 * count :]
            base.execute("INSERT INTO messages VALUES (?, 1, ?, ?)", (k, 1 + 10_000_000 * k, data))
    return path.read_bytes()


def _fmu() -> bytes:
    from tangere.apps.fmu.opened import opened  # noqa: F401 (loaded before the limits)

    text = """<?xml version="1.0"?><fmiModelDescription fmiVersion="2.0" modelName="a" guid="{1}"><CoSimulation
modelIdentifier="a"/><ModelVariables><ScalarVariable name="x" valueReference="0" causality="output"><Real start="1"/>
</ScalarVariable></ModelVariables><ModelStructure><Outputs><Unknown index="1"/></Outputs></ModelStructure></fmiModelDescription>"""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("modelDescription.xml", text)
        archive.writestr("resources/parameters.txt", "tangere-fmu 1\nkind fk\n")
    return data.getvalue()


def _opened(path: Path) -> object:
    from tangere.apps.fmu.check_file import check_file
    from tangere.apps.fmu.opened import opened

    with tempfile.TemporaryDirectory() as folder:
        fmu = opened(path, Path(folder))
        return check_file(fmu)


def _packages() -> bytes:
    from tangere.rtde import wire

    recipe = wire.Recipe(1, ("timestamp", "actual_q"), ("DOUBLE", "VECTOR6D"))
    return b"".join([
        wire.recipe_answer(wire.Kind.OUTPUTS, recipe, 2), wire.text("hello", "me", 2, 2), wire.controller_answer((5, 11, 0, 1)),
        *(wire.data(recipe, (0.01 * k, (0.1,) * 6)) for k in range(5)),
    ])  # fmt: skip


def _rtde(path: Path) -> object:
    from tangere.rtde import wire

    recipe = wire.Recipe(1, ("timestamp", "actual_q"), ("DOUBLE", "VECTOR6D"))
    for kind, payload in wire.Packages().feed(path.read_bytes()):
        if kind == wire.Kind.OUTPUTS:
            recipe = wire.read_recipe(wire.Kind.OUTPUTS, recipe.names, payload, 2)
        elif kind == wire.Kind.TEXT:
            wire.read_text(payload, 2)
        elif kind == wire.Kind.CONTROLLER:
            wire.read_controller(payload)
        elif kind == wire.Kind.DATA and not recipe.missing:
            recipe.unpack(payload[1:])
    return None


def _messages() -> bytes:
    from tangere.rtde import primary

    six = (0.1,) * 6
    kinematics = primary.Calibration(six, six, six, six).pack()
    version = primary.pack_version(1, "URControl", (5, 11, 0, 1), "today")
    return version + primary.message(16, kinematics)


def _primary(path: Path) -> object:
    from tangere.rtde import primary

    for kind, content in primary.Messages().feed(path.read_bytes()):
        if kind == 16:
            for part, inside in primary.parts(content):
                (primary.Calibration if part == primary.Part.KINEMATICS else primary.Configuration).read(inside)
        else:
            primary.read_version(content)
    return None


def _dashboard(path: Path) -> object:
    """Three answers of a dashboard that says these bytes."""
    from tangere.rtde.dashboard import Dashboard

    class Said(io.BytesIO):
        def recv(self, size: int) -> bytes:
            return self.read(min(size, 64))

    board = Dashboard.__new__(Dashboard)
    board.host, board._rest, board._sock = "arm", b"", Said(path.read_bytes())  # type: ignore[assignment]
    answers = [board._line() for _ in range(3)]
    assert all(answer.isprintable() for answer in answers)
    return answers


def _box(ending: str) -> bytes:
    """A box as a mesh file."""
    import trimesh

    made = trimesh.creation.box((1.0, 2.0, 3.0)).export(file_type=ending)
    return made.encode() if isinstance(made, str) else made


def _ros2_messages() -> list[bytes]:
    """The name of a type, a line end, and a message of it."""
    from tangere.ros2.cdr import Codec
    from tangere.ros2.interfaces import interfaces_of

    codec, header = Codec(interfaces_of()), {"frame_id": "base", "stamp": {"sec": 3, "nanosec": 5}}
    points = [{"positions": [0.1] * 6, "velocities": [0.2] * 6} for _ in range(3)]
    given: dict[str, dict[str, object]] = {
        "sensor_msgs/msg/JointState": {"header": header, "name": ["a", "b"], "position": [0.1, 0.2]},
        "trajectory_msgs/msg/JointTrajectory": {"header": header, "joint_names": ["a", "b"], "points": points},
        "geometry_msgs/msg/WrenchStamped": {"header": header, "wrench": {"force": {"x": 1.0}}},
    }
    return [name.encode() + b"\n" + codec.encode(name, message) for name, message in given.items()]


def _ros2(path: Path) -> object:
    from tangere.ros2.cdr import Codec
    from tangere.ros2.interfaces import interfaces_of

    name, _, data = path.read_bytes().partition(b"\n")
    known = ("sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory", "geometry_msgs/msg/WrenchStamped")
    kind = next((one for one in known if one.encode() == name), known[len(data) % 3])
    return Codec(interfaces_of()).decode(kind, data)


def _svg(path: Path) -> object:
    from tangere.apps.drawing.picture.svg import read_svg

    return read_svg(path, areas=True)


def _pictures() -> list[bytes]:
    if not there("PIL") or not there("cv2"):
        return []
    from PIL import Image

    made = []
    pixels = (np.add.outer(np.arange(40), np.arange(50)) * 3 % 256).astype(np.uint8)
    for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"):
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, kind)
        made.append(data.getvalue())
    return made


def _picture(path: Path) -> object:
    from tangere.apps.drawing.picture.picture import read_picture

    return read_picture(path)


def fuzz(reader: str, numbers: range, folder: Path) -> list[str]:
    """Read mutated inputs; what went wrong, in words with the seed of the input."""
    right, read, ending = seeds(folder)[reader]
    place = folder / f"hostile{ending}"
    faults = []
    for data in right:  # what is right is read; and what is loaded late is loaded before memory is looked at
        place.write_bytes(data)
        try:
            read(place)
        except Exception as problem:
            return [f"{reader}: what is right is refused: {problem!r}"]
    before, here = set(folder.iterdir()), set(Path().iterdir())
    top = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    foreign.allow(foreign.UNTOLD, net=True)
    try:
        for number in numbers:
            rng = random.Random(number)
            change = mutated if number % 2 else SHAPED.get(ending, reworded)
            place.write_bytes(change(rng.choice(right), rng))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read(place)
            except TangereError as problem:
                said = foreign.line(str(problem))
                if not said.isprintable() or len(said) > foreign.LINE:
                    faults.append(f"{reader}, seed {number}: {said[:80]!r} is no line")
            except Exception as problem:
                faults.append(f"{reader}, seed {number}: {type(problem).__name__}: {str(problem)[:100]}")
    finally:
        foreign.allow(foreign.UNTOLD, net=False)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - top) * 1024
    if more > 2 * foreign.LEAST:
        faults.append(f"{reader}: {more / 1e6:.0f} MB")
    faults += [f"{reader}: wrote {path.name}" for path in (set(folder.iterdir()) - before) | (set(Path().iterdir()) - here)]
    return faults


def main(words: list[str]) -> int:
    """The long form."""
    count = int(words[0]) if words else 5000
    first = int(os.environ.get("TANGERE_SEED", "0"))
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for reader in words[1:] or list(seeds(Path(name))):
            print(f"{reader}: seeds {first} to {first + count - 1}", flush=True)
            for fault in fuzz(reader, range(first, first + count), Path(name)):
                print("  " + fault, flush=True)
                wrong += 1
    print(f"{wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
