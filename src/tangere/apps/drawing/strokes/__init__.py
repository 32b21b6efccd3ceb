"""Strokes of a pen: what is drawn, merged, covered and ordered."""
