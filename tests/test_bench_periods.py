"""What a period of an ordinary run costs beside MuJoCo's step: what `tangere bench --run` prints."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from test_bench import without

from tangere.apps.bench import bench
from tangere.errors import InvalidValue, TangereError


def test_a_period_beside_mujoco(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench --run --json`: the agreed keys; a ratio is that of the two times shown; without MuJoCo one sentence."""
    from tangere.apps.bench import periods

    monkeypatch.setattr(periods, "SECONDS", 2.0)
    monkeypatch.setattr(periods, "ROUNDS", 1)
    monkeypatch.setattr(periods, "_command", lambda name, folder: 3.0)
    assert bench.main(Namespace(ordinary=True, json="-", seconds=0.0, robot="ur5e")) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["robot"], result["periods"], result["rounds"]) == ("ur5e", 2000, 1)
    assert 0.0 < result["mj_step_us"] < result["loop_us"] < result["run_us"]
    assert result["command_us"] == pytest.approx(3.0 / 2000 * 1e6)
    for name in periods.NAMES:
        assert result[f"{name}_ratio"] == pytest.approx(result[f"{name}_us"] / result["mj_step_us"], rel=1e-3)
    assert bench.main(Namespace(ordinary=True, seconds=0.0)) == 0
    assert "the whole command" in capsys.readouterr().out
    without(monkeypatch, "mujoco")
    with pytest.raises(TangereError, match="--run needs mujoco"):
        bench.main(Namespace(ordinary=True, seconds=0.0))
    with pytest.raises(InvalidValue, match="one of UR arms, got scara"):
        bench.main(Namespace(ordinary=True, robot="scara"))


def test_the_command_is_measured_without_the_start_of_an_interpreter(tmp_path: Path, monkeypatch: Any) -> None:
    from tangere.apps.bench import periods

    monkeypatch.setattr(periods, "SECONDS", 2.0)
    whole = periods._command("ur10e", tmp_path)
    assert (tmp_path / "run" / "summary.json").exists()
    assert whole > 0.0
