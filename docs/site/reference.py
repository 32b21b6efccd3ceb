"""The reference: a page for each package that users import from, with every name that it offers."""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "tangere"

# page -> packages or modules whose offered names stand there, and what the page is about
PAGES: dict[str, tuple[str, str]] = {
    "tangere": ("tangere", "The front door: arms, runs, logs, and the commands as functions."),
    "control": ("tangere.control", "Controllers and reactions: `start`, `step`, `stop`."),
    "observe": ("tangere.observe", "Observers, detection and isolation of touches."),
    "plants": ("tangere.plants", "What moves: simulated arms, an arm over the network, sensors, faults, pushes."),
    "planning": ("tangere.planning", "Paths and trajectories."),
    "logs": ("tangere.logs", "Recordings: reading, writing, following."),
    "model": ("tangere.model", "Arms as data."),
    "identification": ("tangere.identification", "Models learned from logs."),
    "script": ("tangere.script", "URScript: checking and running programs."),
    "gym": ("tangere.gym", "Learning environments."),
    "jax": ("tangere.jax", "An arm as functions for jit, vmap and grad."),
    "types": ("tangere.types", "What passes between parts: samples, commands, events, protocols."),
    "errors": ("tangere.errors", "What can be raised."),
}


def names(module: str) -> list[str]:
    """The public names of a package (its stub says them) or of a module (what is defined there)."""
    import importlib
    import inspect

    from tangere.lazy import offered

    stub = SOURCE.parent.joinpath(*module.split(".")) / "__init__.pyi"
    if stub.is_file():
        return [name for name, (_, there) in offered(module, stub).items() if there]
    loaded = importlib.import_module(module)
    if hasattr(loaded, "__all__"):
        return list(loaded.__all__)
    return [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module
    ]


def write(stage: Path, thin: bool = False) -> None:
    """reference/*.md; thin: names only."""
    folder = stage / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# Reference", "", "From the docstrings. Shapes, units and frames follow the",
             "[conventions](../conventions.md): SI and radians, leading batch axes.", "",
             "| module | what it has | |", "|---|---|---|"]  # fmt: skip
    for page, (module, about) in PAGES.items():
        offers = sorted(names(module), key=str.lower)
        index.append(f"| [`{module}`]({page}.md) | {about} | {len(offers)} names |")
        lines = [f"# {module}", "", about, ""]
        for name in offers:
            lines += [f"`{module}.{name}`" if thin else f"::: {module}.{name}", ""]
        (folder / f"{page}.md").write_text("\n".join(lines))
    (folder / "index.md").write_text("\n".join(index) + "\n")
