"""From strokes to a motion of the arm: paper, reach, placement, path and joints."""
