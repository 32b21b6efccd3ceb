"""The report of a run: one HTML file that needs nothing else; and pictures of its motion."""

from tangere.interfaces.report.data import Event, RunData
from tangere.interfaces.report.page import write_report
from tangere.interfaces.report.video import write_still, write_video

__all__ = ["Event", "RunData", "write_report", "write_still", "write_video"]
