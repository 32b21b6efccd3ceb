"""Figures as SVG text: axes, curves, points, bars, the arm in space; they know numbers and a model, no logs."""
