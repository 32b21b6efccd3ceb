"""Runs: plant, controller, observers and reaction joined in one loop, and what they leave: log, manifest, summary."""

from tangere.run.log import Log
from tangere.run.result import RunResult
from tangere.run.run import run

__all__ = ["Log", "RunResult", "run"]
