"""What a drawing may be told: the options of `tangere draw`, checked before anything is planned or written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from tangere.errors import InvalidValue
from tangere.plants.joints import JointSettings
from tangere.settings import altered, check, count, flag, numbers, other, parted, setting, word

if TYPE_CHECKING:
    from tangere.apps.drawing.drawing import CanvasError

Controllers = Literal["hybrid", "height-pi"]
SensorName = Literal["ideal", "builtin", "none"]
BOTH = get_args(Controllers)
STIFFNESS = (2e3, 1e5)  # N/m: a soft pad, and a hard pen on a table: what the controllers are made and tested for
# share by which masses and inertias may differ from what is believed: half, or twice; beyond, the arm falls
MODEL_ERROR = (-0.5, 1.0)
OFFSET_MAX = 0.02  # m: as far below the plan as the pen looks for paper; above, the pen's way to the paper is no longer
TILT_MAX = 20.0  # deg: beyond, a pen upright on the plan is no longer upright on the paper, nor the paper where it was
SIZE = (0.01, 3.0)  # m: ten widths of a pen's line and more; nothing reaches farther
TOLERANCE = 0.1e-3  # m, of the simplification: a fifth of a pen's line, twice what a UR repeats
TOLERANCES = (1e-5, 2e-3)  # m: what a UR repeats; four widths of a pen's line
HATCHES = (2e-4, 0.05)  # m: closer than half a pen's line nothing gets darker; wider is no hatching
FORCE_MAX = 1e4  # N: a slip of the keys; what the arm can press with there is checked, and said, by the plan
SPEED_MAX = 0.5  # m/s: twice the travel in the air
NOISE_MAX = 20.0  # times the default: 2 N and 0.04 rad/s per sample, beyond which no pen touches anything gently
FAR = 5.0  # m, beyond any arm: a length whose unit was forgotten


def length(given: Any, name: str) -> float:
    """A length [m] whose unit must be said where it could be mistaken: nobody draws several metres."""
    value = numbers(given, name, "m", (1,))[0]
    if isinstance(given, str) and abs(value) >= FAR:
        if given.strip()[-1:].isalpha():
            raise InvalidValue(f"{name}: no arm reaches {given.strip()}; a length such as 200mm")
        raise InvalidValue(f"{name}: {given!r} is {value:g} m; millimetres? write {given.strip()}mm")
    return value


def _bare(part: Any) -> bool:
    """Whether it is a text without a unit; what is no text is in SI."""
    return isinstance(part, str) and not part.strip()[-1:].isalpha()


def _size(given: Any, name: str) -> float | tuple[float, float]:
    parts = given.lower().replace("\u00d7", "x").split("x") if isinstance(given, str) else parted(given)
    if len(parts) > 2:
        raise InvalidValue(f"{name}: a length such as 200mm, or 200x150mm, got {given!r}")
    unit = str(parts[-1]).strip().lstrip("0123456789.eE+- ")
    sides = [length(f"{part}{unit}" if _bare(part) else part, name) for part in parts]
    if min(sides) <= 0.0:
        raise InvalidValue(f"{name}: a positive length, got {given!r}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _canvas(given: Any, name: str) -> str:
    """A place by its word; an angle in deg and a pose in m and rad, whatever units they were said in."""
    word = given.strip() if isinstance(given, str) else ",".join(map(str, parted(given)))
    if word.endswith("rad") and "," not in word:
        return f"{math.degrees(numbers(word, name, 'rad', (1,))[0]):.12g}deg"
    if word.count(",") == 5 and any(c.isalpha() and c not in "eE" for c in word):
        return ",".join(f"{x:.15g}" for x in numbers(word, name, "m,m,m,rad,rad,rad", (6,)))
    return word


def _noise(given: Any, name: str) -> float:
    try:
        factor = float({"default": 1.0, "on": 1.0, "off": 0.0}.get(str(given), given))
    except (TypeError, ValueError):
        factor = math.nan
    if not (math.isfinite(factor) and factor >= 0.0):
        raise InvalidValue(f"{name}: default, off, or a factor from 0 on, got {given!r}")
    return factor


def _canvas_error(given: Any, name: str) -> tuple[float, float]:
    parts = parted(given)
    if len(parts) > 2:
        raise InvalidValue(f"{name}: a length and an angle such as 3mm,2deg, got {given!r}")
    if len(parts) == 1 and str(parts[0]).endswith(("deg", "rad")):
        parts = [0.0, *parts]
    if any(_bare(part) and part.strip("0.+-") for part in parts):
        raise InvalidValue(f"{name}: with units, such as 3mm,2deg, got {given!r}")
    return length(parts[0], name), numbers(parts[1], name, "rad", (1,))[0] if len(parts) == 2 else 0.0


def _spot(given: Any, name: str) -> tuple[float, ...]:
    """Four lengths, in mm where a text says no unit."""
    parts = [f"{part}mm" if _bare(part) else part for part in parted(given)]
    if len(parts) != 4:
        raise InvalidValue(f"{name}: four lengths with commas between, got {given!r}")
    return tuple(length(part, name) for part in parts)


def _thresholds(given: Any, name: str) -> tuple[float, ...]:
    try:
        return numbers(given, name, "", (2,))
    except InvalidValue:
        raise InvalidValue(f"{name}: two numbers LOW,HIGH such as 8,20, got {given!r}") from None


def _points(given: Any, name: str) -> tuple[tuple[float, ...], ...]:
    words = given.replace(";", " ").split() if isinstance(given, str) else parted(given)
    try:
        points = tuple(numbers(word, name, "m", (3,)) for word in words)
    except InvalidValue:
        points = ()
    if len(points) != 3:
        raise InvalidValue(f'{name}: three points in m, "0.3,-0.1,0 0.5,-0.1,0 0.3,0.1,0", got {given!r}')
    return points


@dataclass(frozen=True)
class DrawingSettings:
    """Everything that a drawing may be told, in SI; the values are the defaults of `tangere draw`."""

    robot: str = word("ur5e", "the arm", metavar="NAME|FILE")
    force: float = setting(5.0, "N", "with which the pen is pressed", low=0.0, above=True, high=FORCE_MAX)
    size: float | tuple[float, float] = setting(
        0.2, "m", "longer side of the drawing, or width and height such as 200x150mm", parse=_size, typed="mm",
        low=SIZE[0], high=SIZE[1], metavar="LENGTH|WxH",
    )  # fmt: skip
    canvas: str = other(
        "table", "where the paper is: on the table, on a wall in front, on a board that leans (30deg), or "
        "x,y,z,rx,ry,rz of its middle in m and rad", _canvas, metavar="table|wall|ANGLE|POSE",
    )  # fmt: skip
    controller: str = word(
        "hybrid", "hybrid force-motion control, the height PI of document 004, or both for comparison",
        (*BOTH, "both"),
    )  # fmt: skip
    sensor: str = word(
        "ideal", "where the force comes from: an ideal wrist sensor, the one in a UR's flange, or none: the momentum "
        "observer", get_args(SensorName),
    )  # fmt: skip
    stiffness: float = setting(
        2e4, "N/m", f"of pen and paper together, {STIFFNESS[0]:g} to {STIFFNESS[1]:g}",
        low=STIFFNESS[0], high=STIFFNESS[1],
    )  # fmt: skip
    model_error: float = setting(
        0.05, "", f"by which the masses and inertias of the arm are larger than believed, {MODEL_ERROR[0]:g} to "
        f"{MODEL_ERROR[1]:g}", low=MODEL_ERROR[0], high=MODEL_ERROR[1], metavar="SHARE",
    )  # fmt: skip
    noise: float = setting(
        1.0, "", "of force and speed, 0.1 N and 0.002 rad/s per sample of 1 kHz, or so many times that", parse=_noise,
        low=0.0, high=NOISE_MAX, metavar="default|off|FACTOR",
    )  # fmt: skip
    canvas_error: tuple[float, float] = other(
        (0.0, 0.0), f"how much higher and tilted the paper really lies, up to {1e3 * OFFSET_MAX:g}mm and "
        f"{TILT_MAX:g}deg; nobody is told", _canvas_error, metavar="LENGTH,ANGLE",
    )  # fmt: skip
    bump: tuple[float, float, float, float] | None = other(
        None, "a cap on the paper, in mm from its middle; nobody is told", _spot, metavar="X,Y,HEIGHT,RADIUS"
    )
    hole: tuple[float, float, float, float] | None = other(
        None, "a hole in the paper, in mm: the pen loses the surface; nobody is told", _spot, metavar="X,Y,W,H"
    )
    seed: int = count(0, "of everything random", low=0, metavar="N")
    style: str = word(
        "auto", "centre lines of a line drawing, edges of a photograph, its tones by hatching, or lines or edges by "
        "what the picture looks like", ("auto", "lines", "edges", "tones"),
    )  # fmt: skip
    hatch: str = word(
        "none", "areas of an SVG: by their outline only, filled with parallel lines, or with lines that cross; tones: "
        "whether their lines cross", ("none", "lines", "cross"),
    )  # fmt: skip
    hatch_angle: float = setting(
        math.radians(45.0), "rad", "of the lines that fill, from the horizontal", typed="deg", low=-math.pi,
        high=math.pi, metavar="ANGLE",
    )  # fmt: skip
    hatch_distance: float | None = setting(
        None, "m", "from line to line where it is black, farther where it is lighter (default: 1mm; of tones 0.5mm, "
        "the width of the pen)", parse=length, typed="mm", low=HATCHES[0], high=HATCHES[1], metavar="LENGTH",
    )  # fmt: skip
    font: str = word(
        "auto", "of text in an SVG: what it says, where this machine has it, else the single-line font (auto); "
        "single-line; or a font of this machine", metavar="NAME|FILE",
    )  # fmt: skip
    # a calm hand's
    speed: float = setting(
        0.05, "m/s", "of the pen on the paper", low=0.0, above=True, high=SPEED_MAX, metavar="SPEED"
    )
    margin: float = setting(
        0.0, "m", "of empty paper all round", parse=length, typed="mm", low=0.0, high=SIZE[1], metavar="LENGTH"
    )
    paper_friction: float = setting(0.3, "", "of pen and paper", low=0.0, high=2.0)
    # 004 has none of it
    drives: bool = altered(JointSettings, "drives", False)
    friction: str = altered(JointSettings, "friction", "none")
    friction_model: str = altered(JointSettings, "friction_model", "same")
    sensors: str = altered(
        JointSettings, "sensors", "ideal", help="noise of the joints' torques; typical: a UR10e's, scaled by joint size"
    )
    place: bool = flag(False, "where the drawing does not fit: take the placement that is offered")
    tolerance: float = setting(
        TOLERANCE, "m", "by which the lines may be simplified", parse=length, typed="mm", low=TOLERANCES[0],
        high=TOLERANCES[1], metavar="LENGTH",
    )  # fmt: skip
    thresholds: tuple[float, float] | None = other(
        None, "of the edges of a photograph, in grey levels per pixel (default: found in the picture)", _thresholds,
        metavar="LOW,HIGH",
    )  # fmt: skip
    canvas_points: tuple[tuple[float, ...], ...] | None = other(
        None, "instead of --canvas: the paper's lower left, lower right and upper left corner in m, as touched by the "
        "pen", _points, metavar='"X,Y,Z X,Y,Z X,Y,Z"',
    )  # fmt: skip
    probe: bool = flag(
        False, "touch the paper at five points first (marks of 0.3 mm), then plan on the plane that was found"
    )

    def __post_init__(self) -> None:
        check(self)
        offset, tilt = self.canvas_error
        for value, most, unit in ((1e3 * offset, 1e3 * OFFSET_MAX, "mm"), (math.degrees(tilt), TILT_MAX, "deg")):
            if not abs(value) <= most:
                raise InvalidValue(f"canvas_error: {-most:g} to {most:g} {unit}, got {value:g}")
        if self.thresholds is not None:
            low, high = self.thresholds
            if not 0.0 < low <= high < 255.0:
                raise InvalidValue(f"thresholds: 0 < low <= high < 255 grey levels per pixel, got {low:g}, {high:g}")
        if self.canvas_points is not None and self.canvas != "table":
            raise InvalidValue(f"canvas: either three touched points or {self.canvas!r}, not both")
        if self.bump is not None or self.hole is not None:
            _ = self.surface  # refuses a bump or a hole that cannot be, before anything is planned

    @property
    def surface(self) -> CanvasError:
        """How the real paper differs from the planned one."""
        from tangere.apps.drawing.drawing import CanvasError
        from tangere.plants.scene.bodies import Bump, Hole

        bumps = () if self.bump is None else (Bump(*self.bump),)
        return CanvasError(*self.canvas_error, bumps=bumps, hole=None if self.hole is None else Hole(*self.hole))

    @property
    def controllers(self) -> tuple[Controllers, ...]:
        """The controllers that draw, one after the other."""
        return BOTH if self.controller == "both" else (self.controller,)
