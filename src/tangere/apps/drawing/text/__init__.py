"""Text as curves: a single-line font of our own, the fonts of the system, lines of text set."""
