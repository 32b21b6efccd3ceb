"""The report of a run: one HTML file that needs nothing else; and pictures of its motion."""

from tangere.report.data import Event, RunData
from tangere.report.page import write_report
from tangere.report.video import write_still, write_video

__all__ = ["Event", "RunData", "write_report", "write_still", "write_video"]
