"""SVG files read as lines and written."""
