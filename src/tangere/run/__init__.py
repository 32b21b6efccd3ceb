"""Runs: plant, controller, observers and reaction joined in one loop, and what they leave: log, manifest, summary."""
