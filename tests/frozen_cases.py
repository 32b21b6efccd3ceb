"""The commands whose outcome is frozen in tests/frozen, one JSON file each.

    python tests/frozen_cases.py [NAME...]           compare (all, or those whose name contains NAME)
    python tests/frozen_cases.py --write [NAME...]   write the files anew: what is there now becomes the truth

A case is one or more command lines, run in a folder of its own; what the last one printed and everything that lies in
`out` afterwards is reduced (frozen_reduce.py) and compared by test_frozen.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frozen_reduce import CONTACT, EXACT, SMOOTH, difference, lines, options, reduce_file

FOLDER = Path(__file__).resolve().parent / "frozen"
TESTS = str(FOLDER.parent)


def command_line(words: Sequence[str]) -> int:
    """The console entry point."""
    from tangere.cli.main import main

    return main(list(words))


SQUARE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">
<path d="M 20 20 L 80 20 L 50 70 Z"/><path d="M 30 80 C 40 95 60 95 70 80"/></svg>
"""
OWN = """scenario = "sine"
plant = "rigid"
duration = 1.2
ramp = 0.3
amplitude = 0.1
friction = "viscous"

[[push]]
joint = 3
torque = -15.0
start = 0.5005
duration = 0.25
"""
BROKEN = 'scenario = "circle"\nspeed_of_light = 3\n'
FILES = {"square.svg": SQUARE, "own.toml": OWN, "broken.toml": BROKEN, "empty.csv": "", "text.csv": "a,b\n1,two\n"}


@dataclass(frozen=True)
class Case:
    """commands: DATA stands for the folder of recordings, TESTS for that of the tests.

    rtol: of numbers. stdin: file that the last one reads.
    """

    name: str
    commands: tuple[str, ...]
    rtol: float = SMOOTH
    stdin: str | None = None
    help: bool = False
    slow: bool = False

    @property
    def data(self) -> bool:
        """Needs recordings."""
        return any("DATA" in command for command in self.commands)


def execute(case: Case, folder: Path, data: Path | None) -> dict[str, Any]:
    """Run a case in an empty folder and reduce what it left."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    if any("out/" in command for command in case.commands):
        (folder / "out").mkdir()
    code, out, err = 0, "", ""
    with _inside(folder):
        for i, command in enumerate(case.commands):
            words = [word.replace("DATA", str(data)).replace("TESTS", TESTS) for word in shlex.split(command)]
            stdin = case.stdin if i + 1 == len(case.commands) else None
            code, out, err = _call(words, stdin)
            if i + 1 < len(case.commands) and code:
                raise AssertionError(f"{case.name}: {command}: exit code {code}: {err}")

    def anonymous(text: str) -> str:
        for path, name in ((folder, "FOLDER"), (data, "DATA"), (TESTS, "TESTS")):
            text = text if path is None else text.replace(str(path), name)
        return text

    found: dict[str, Any] = {"code": code}
    if case.help:
        return {**found, "help": options(out)}
    out = anonymous(out)
    if out.startswith("{"):
        found["events"] = [json.loads(line) for line in out.splitlines()]
    else:
        found["stdout"] = lines(out)
    found["stderr"] = lines(anonymous(err))
    left: dict[str, Any] = {}
    for path in sorted((folder / "out").rglob("*")) if (folder / "out").is_dir() else ():
        if path.is_file():
            reduced = reduce_file(path, case.rtol == EXACT)
            left[path.relative_to(folder / "out").as_posix()] = reduced
    found["files"] = left
    return json.loads(anonymous(json.dumps(found, ensure_ascii=False)))


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _call(words: Sequence[str], stdin: str | None) -> tuple[int, str, str]:
    out, err, keyboard = io.StringIO(), io.StringIO(), sys.stdin
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        if stdin is not None:
            sys.stdin = stack.enter_context(open(stdin))
        try:
            code = command_line(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            sys.stdin = keyboard
    return code, out.getvalue(), err.getvalue()


JOINT = "--push joint=2,torque=20,start=0.4005,duration=0.3"
LINK = "--push link=4,force=0/0/-40,start=0.4005,duration=0.3"
SHORT = "duration=1.2"
RAMP = "duration=1.2 ramp=0.3"


def _runs() -> Iterator[Case]:
    for plant, rtol in (("rigid", EXACT), ("mujoco", SMOOTH)):
        runs = {
            "circle": f"circle {JOINT} --set {RAMP}",
            "circle_000c": f"circle --model 000-C --set {RAMP}",
            "circle_real": f"circle {JOINT} --set {RAMP} mass=1.05 friction=full sensors=ur10e --seed 3",
            "hold_link": f"hold {LINK} --set {SHORT}",
            "hold_two": f"hold {JOINT} --push joint=5,torque=-8,start=0.8,duration=0.1 --set {SHORT} period=2ms",
            "sine": f"sine {JOINT} --set {RAMP} acceleration_residual=on",
            "impedance": f"impedance {LINK} --set {SHORT}",
            "reach": "reach --set period=4ms",
        }
        for name, words in runs.items():
            # a path in space, a posture, a gain by inertia: the last bits of LAPACK's answers hang on the processor
            # (of reach 3e-8 of a residual's sum: what two torques of 100 Nm leave, 1e-7 Nm)
            own = rtol if name == "sine" else CONTACT if name == "reach" and plant == "rigid" else SMOOTH
            yield Case(f"run_{name}_{plant}", (f"run {words} --plant {plant} --out out",), own)
    for arm in ("ur3e", "ur5e", "ur16e", "ur20"):
        words = "--push joint=2,torque=15,start=0.4005,duration=0.3"
        yield Case(f"run_sine_{arm}", (f"run sine --robot {arm} --plant rigid {words} --set {RAMP} --out out",), EXACT)
    yield Case("run_own_toml", ("run own.toml --out out",), EXACT)
    yield Case("run_payload", (f"run hold --plant rigid --set {SHORT} payload=1.5 kp=64 threshold=3 --out out",))
    yield Case("run_stiction", (f"run sine {JOINT} --set {RAMP} friction=stiction drives=off --out out",))
    yield Case("run_wall", ("run wall-circle --set duration=0.8 --out out",), CONTACT)
    yield Case("run_wall_own", ("run wall-circle --set duration=0.8 pose=own force=8 --out out",), CONTACT)
    for reaction in ("none", "stop", "soft", "retreat", "float"):
        # without a reaction the tool hammers: from 0.8 s on the last bits of BLAS decide where it strikes next
        words = f"run touch --set duration={0.75 if reaction == 'none' else 1} reaction={reaction} --out out"
        yield Case(f"touch_{reaction}", (words,), CONTACT)
    for obstacle in ("hand", "falling", "nothing"):
        words = f"run touch --set duration=1.2 obstacle={obstacle} --out out"
        yield Case(f"touch_{obstacle}", (words,), CONTACT)
    short = "run touch --set duration=0.62 reaction=stop speed=0.1 --out out"
    yield Case("touch_short", (short,), CONTACT)
    again = f"run circle --plant rigid {JOINT} --set {RAMP} --out out"
    yield Case("rerun", (again, "rerun out"))


CONTACTS = "--robot ur10e --columns t,q,qd,current"
TARGETS = "target_current,target_moment"
MODEL = "identify 'DATA/ur3e_runs/ur3e_runs_500Hz.npz:*_23*' --rate 500 --robot ur3e --inertial none"
TUNE = "tune 'DATA/ur3e_runs/ur3e_runs_500Hz.npz:*_10*' --rate 500Hz --robot ur3e"
PUSHED = "run sine --push joint=2,torque=60,start=1.4005,duration=0.8 --set duration=3.5 ramp=0.5 friction=full"
FREE = "run sine --set duration=9 period=4ms ramp=0.5 amplitude=0.4 frequency=0.3 friction=full"


def _logs() -> Iterator[Case]:
    log, page = "seen/log.csv --robot ur10e", "--report out/page.html"
    for plant, rtol in (("rigid", SMOOTH), ("mujoco", SMOOTH)):
        run = f"{PUSHED} --plant {plant} --out seen"
        yield Case(f"watch_{plant}", (run, f"watch --json {log} {page}"), rtol)
    run = f"{PUSHED} --plant rigid --out seen"
    yield Case("watch_table", (run, f"watch {log} --wanted 1,2:2 --payload-change +2.5,+3"))
    yield Case("watch_stdin", (run, "watch --json - --robot ur10e"), stdin="seen/log.csv")
    free = f"{FREE} --plant rigid --out free"
    learn = "identify free/log.csv --robot ur10e --holdout 0 --inertial none --out out/model.toml"
    yield Case("identify_simulated", (free, learn), CONTACT)
    tune = "tune free/log.csv --robot ur10e --model out/model.toml --rate 1/h --out out/tuned.toml --report out/t.html"
    yield Case("tune_simulated", (free, learn, tune), CONTACT)
    watch = f"watch --json {log} --model out/tuned.toml"
    yield Case("watch_tuned", (free, learn, tune, run, watch), CONTACT)
    for name, columns in (("link4", "_:6"), ("no_torque", TARGETS), ("ur-static", TARGETS)):
        words = f"watch --json DATA/ur10e_contacts/{name}.csv {CONTACTS},{columns} {page}"
        yield Case(f"watch_{name.replace('-', '_')}", (words,), CONTACT)
    yield Case("watch_ur3e_rtde", ("watch --json DATA/ur3e_rtde/L3L4.csv --robot ur3e",), CONTACT)
    yield Case("watch_ur3e_stamps", ("watch --json DATA/ur3e_rtde/WEIGHTS-PLOT.csv --robot ur3e",), CONTACT)
    words = "identify DATA/ur3e_rtde/L1L2.csv DATA/ur3e_rtde/L2L3.csv DATA/ur3e_rtde/L3L4.csv --robot ur3e --holdout 0"
    yield Case("identify_ur3e_rtde", (f"{words} --inertial none --out out/model.toml",), CONTACT)
    twin, how = "TESTS/data/ur5e_simulated.npz", "--rate 100 --columns q,qd,torque --robot ur5e"
    for key in ("touched", "stop"):
        yield Case(f"watch_twin_{key}", (f"watch --json {twin}:{key} {how} {page}",), CONTACT)
    words = f"identify {twin}:free {twin}:touched {how} --inertial none --holdout 0 --out out/model.toml"
    yield Case("identify_twin_touched", (words,), CONTACT)
    yield Case("identify_ur3e", (f"{MODEL} --out out/model.toml",), CONTACT)
    tune = f"{TUNE} --model model.toml --out out/tuned.toml --report out/page.html"
    yield Case("tune_ur3e", (f"{MODEL} --out model.toml --no-report", tune), CONTACT)
    watch = f"watch --json 'DATA/ur3e_runs/ur3e_runs_500Hz.npz:quintic__*_044' --rate 500 --robot ur3e {page}"
    yield Case("watch_ur3e", (f"{MODEL} --out model.toml --no-report", f"{watch} --model model.toml"), CONTACT)
    words = "identify DATA/ur10_excitation/ur10_exciting_trajectory.csv --robot ur10 --holdout 0 --out out/model.toml"
    yield Case("identify_ur10_links", (words,), CONTACT, slow=True)
    words = MODEL.replace("--inertial none", "--inertial payload")
    yield Case("identify_payload", (f"{words} --out out/model.toml",), CONTACT)
    words = f"identify DATA/ur10e_contacts/ur-static.csv {CONTACTS},{TARGETS} --holdout 0 --out out/model.toml"
    yield Case("identify_static", (words,), CONTACT)


def _drawings() -> Iterator[Case]:
    for picture in ("snail.svg", "snail.png", "still_life"):
        words = f"draw {picture} --preview --size 100mm --out out"
        yield Case(f"draw_plan_{picture.replace('.', '_')}", (words,), EXACT)
    variants = {
        "hard": "--stiffness 1e5",
        "soft": "--stiffness 2e3 --force 3",
        "tilted": "--canvas-error 2mm,2deg --sensor builtin",
        "unseen": "--sensor none --noise off",
        "height_pi": "--controller height-pi",
        "wall": "--robot ur10e --canvas wall --model-error 0 --margin 5mm",
        "probe": "--canvas-error 3mm,2deg --probe",
        "hole": "--hole 0,0,6,6 --bump 5,5,0.5,4",
    }
    for name, words in variants.items():
        yield Case(f"draw_{name}", (f"draw square.svg --size 30mm --speed 100mm/s {words} --out out",), CONTACT)
    yield Case("draw_both", ("draw square.svg --size 30mm --speed 100mm/s --controller both --out out",), CONTACT)


def _others() -> Iterator[Case]:
    small = "study --trials 8 --minutes 0.2 --learn 0.2 --workers 1 --seed 5 --out out"
    yield Case("study", (small,), CONTACT)
    real = "study --logs 'DATA/ur3e_runs/ur3e_runs_500Hz.npz:*_10*' --rate 500 --robot ur3e --model model.toml"
    yield Case("study_logs", (f"{MODEL} --out model.toml --no-report", f"{real} --workers 1 --out out"), CONTACT)
    larger = "study --trials 40 --minutes 1 --learn 0.5 --workers 2 --out out"
    yield Case("study_larger", (larger,), CONTACT, slow=True)
    for kind in ("fk", "ik", "dynamics", "inverse-dynamics", "controller", "observer", "arm", "all"):
        words = f"fmu {kind} --robot ur10e --out out/block.fmu"
        yield Case(f"fmu_{kind.replace('-', '_')}", (words,), EXACT)
    yield Case("fmu_fk_ur3e", ("fmu fk --robot ur3e --out out/block.fmu",), EXACT)
    yield Case("fmu_drives", ("fmu dynamics --robot ur10e --drives full --out out/block.fmu",), EXACT)
    yield Case("fmu_check", ("fmu fk --robot ur3e --platforms linux64 --out block.fmu", "fmu check block.fmu"), CONTACT)
    yield Case("models", ("models",), EXACT)
    yield Case("check", ("check ur10e",), EXACT)
    yield Case("check_parameters", ("check ur10e --parameters 000-C",), EXACT)
    yield Case("demo", ("demo",), SMOOTH)
    yield Case("script_square", ("run script --plant rigid --out out",), SMOOTH)
    yield Case("scenarios", ("scenarios",), EXACT)
    yield Case("draw_list", ("draw --list",), EXACT)
    for name in ("circle", "hold", "sine", "impedance", "reach", "wall-circle", "touch", "script"):
        yield Case(f"scenario_{name.replace('-', '_')}", (f"scenarios {name}",), EXACT)
    logs = ("excite", "identify", "tune", "watch", "study")
    others = ("run", "rerun", "scenarios", "draw", "write", "models", "check", "bench", "demo", "fmu", "script")
    for command in ("", *logs, *others, "fmu fk", "fmu arm", "fmu catalogue", "fmu check", "fmu bench",
                    "script check", "script run", "script bench"):  # fmt: skip
        name = f"help_{command.replace(' ', '_')}".rstrip("_")
        yield Case(name, (f"{command} --help",), EXACT, help=True)


MISTAKES = {
    "no_command": "nonsense",
    "no_scenario": "run squircle",
    "no_setting": "run circle --set colour=red --out out",
    "no_number": "run circle --set duration=long --out out",
    "too_short": "run circle --set duration=1.5 --out out",
    "no_arm": "run circle --robot ur99 --out out",
    "no_push": "run circle --push joint=9,torque=20,start=3,duration=2 --out out",
    "push_words": "run circle --push joint=2,start=3 --out out",
    "no_contact": "run touch --plant rigid --out out",
    "broken_toml": "run broken.toml --out out",
    "no_log": "watch missing.csv --robot ur5e",
    "empty_log": "watch empty.csv --robot ur5e",
    "text_log": "watch text.csv --robot ur5e",
    "no_robot": "watch empty.csv",
    "no_model": "tune text.csv --robot ur5e --model missing.toml",
    "identify_text": "identify text.csv --robot ur5e --out out/model.toml",
    "no_picture": "draw missing.svg",
    "picture_size": "draw square.svg --size 2km --out out",
    "out_of_reach": "draw square.svg --size 900mm --out out",
    "study_little": "study --minutes 0.01 --out out",
    "unphysical": "check ur10e --parameters 001-literal",
    "no_parameters": "check ur10e --parameters nonsense",
    "no_folder": "rerun missing",
    "no_kind": "fmu nonsense",
}
CASES = [
    *_runs(),
    *_logs(),
    *_drawings(),
    *_others(),
    *(Case(f"mistake_{name}", (words,), EXACT) for name, words in MISTAKES.items()),
]


def main(words: Sequence[str]) -> int:
    """Compare or write; says the processor time of each case."""
    from conftest import _folder

    data, write = _folder("TANGERE_DATA", "data"), "--write" in words
    names = [word for word in words if not word.startswith("--")]
    FOLDER.mkdir(exist_ok=True)
    failed, total = 0, time.process_time()
    for case in CASES:
        if names and not any(name in case.name for name in names):
            continue
        if case.data and not data.is_dir():
            print(f"{case.name}: no recordings")
            continue
        start, file = time.process_time(), FOLDER / f"{case.name}.json"
        with tempfile.TemporaryDirectory() as folder:
            now = execute(case, Path(folder).resolve(), data)
        found = None
        if write:
            file.write_text(json.dumps(now, ensure_ascii=False, separators=(",", ":")) + "\n")
        else:
            found = difference(json.loads(file.read_text()), now, case.rtol)
        failed += found is not None
        seconds, size = time.process_time() - start, file.stat().st_size / 1e3
        print(f"{case.name}: {found or 'ok'} ({seconds:.1f} s, {size:.1f} kB, exit code {now['code']})", flush=True)
    print(f"{time.process_time() - total:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
