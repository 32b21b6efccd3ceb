"""The figures of the documents, drawn by the code that computes what they show.

Frames of 000 and 002 on the arm to scale, frames shifted into the centres of mass (002 figure 3), and 003's ten
sketches, from what dynamics asks to weights projected onto the joints. All on one page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tangere
from tangere.apps.textbook import sketches

Q = np.radians([20.0, -75.0, 100.0, -115.0, -90.0, 15.0])


def main() -> None:
    arm, planar = tangere.robot("ur10e"), tangere.robot("planar3r")
    figures = {
        "frames_000": sketches.frames_figure(arm, Q, "000"),
        "frames_002": sketches.frames_figure(tangere.robot("ur10"), Q, "002"),
        "loops_000": sketches.computed_torque_sketch(),
        "centres_of_mass": sketches.centres_figure(arm, Q),
        "dynamics": sketches.dynamics_sketch(),
        "cartesian": sketches.coordinates_sketch("cartesian", (0.8, 0.9, 0.8)),
        "cylindrical": sketches.coordinates_sketch("cylindrical", (1.1, 0.9, 0.8)),
        "spherical": sketches.coordinates_sketch("spherical", (1.3, 0.9, 0.9)),
        "body": sketches.body_sketch(),
        "mapping": sketches.mapping_sketch(planar, (0.5, 0.9, 0.4)),
        "scara": sketches.scara_sketch(),
        "floating_base": sketches.floating_base_sketch(planar, (0.3, 0.6, -0.4)),
        "virtual_displacement": sketches.virtual_displacement_sketch(planar, (0.4, 0.5, 0.3), 2),
        "action": sketches.action_sketch(),
        "pendulum": sketches.pendulum_sketch(),
        "projected": sketches.projected_sketch(planar, (0.4, 0.5, 0.3)),
    }
    place = Path(tempfile.mkdtemp())
    for name, figure in figures.items():
        figure.save(place / f"{name}.svg")
        print(f"{name}: {figure.title}")
    shown = [f"<figure>{figure.svg}<figcaption>{figure.title}</figcaption></figure>" for figure in figures.values()]
    page = "\n".join(shown)
    (place / "document_figures.html").write_text(f"<!doctype html><title>Figures of the documents</title>{page}\n")
    print(place / "document_figures.html")


if __name__ == "__main__":
    main()
