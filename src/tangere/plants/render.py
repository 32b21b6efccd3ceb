"""Pictures of a MuJoCo scene without a screen."""

from __future__ import annotations

import ctypes
import os
import weakref
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tangere.errors import InvalidValue, MissingExtra

# Libraries that draw without a screen, in the order tried: software first, it draws the same everywhere.
_LIBRARIES = {"osmesa": ("libOSMesa.so.8", "libOSMesa.so.6", "libOSMesa.so"), "egl": ("libEGL.so.1", "libEGL.so")}
_MAX = (1920, 1080)  # pixels; the off-screen buffer that the MJCF asks for


@dataclass(frozen=True)
class Camera:
    """Where the picture is taken from: around `lookat`, angles in degrees as MuJoCo has them."""

    lookat: tuple[float, float, float] = (0.0, 0.0, 0.45)  # m, base axes: the middle of an upright UR10e's work space
    distance: float = 2.4  # m: all of a UR10e in view
    azimuth: float = 135.0  # degrees about z
    elevation: float = -18.0  # degrees, negative looks down


class OffScreen:
    """Draws one MuJoCo model at one size. MUJOCO_GL (osmesa, egl, glfw) chooses the library; else the first found."""

    def __init__(self, model: Any, width: int, height: int) -> None:
        if not (0 < width <= _MAX[0] and 0 < height <= _MAX[1]):
            raise InvalidValue(f"a picture is at most {_MAX[0]} x {_MAX[1]} pixels, got {width} x {height}")
        self._mujoco: Any = import_module("mujoco")
        self._model, self.size = model, (width, height)
        self._gl = _context(width, height)
        self._gl.make_current()
        self._scene = self._mujoco.MjvScene(model, maxgeom=1000)
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_SHADOW] = 0  # shadows triple the time of a software picture
        self._scene.flags[self._mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
        self._options, self._camera = self._mujoco.MjvOption(), self._mujoco.MjvCamera()
        self._target = self._mujoco.MjrContext(model, self._mujoco.mjtFontScale.mjFONTSCALE_100)
        self._mujoco.mjr_setBuffer(self._mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._target)
        self._window = self._mujoco.MjrRect(0, 0, width, height)
        # also at the interpreter's end, where the library's own clean-up comes too late
        self._release = weakref.finalize(self, _release, self._gl, self._target)

    def picture(self, data: Any, camera: Camera | None = None) -> NDArray[np.uint8]:
        """The scene as (height, width, 3), first row on top."""
        view = Camera() if camera is None else camera
        self._camera.lookat[:] = view.lookat
        self._camera.distance = view.distance
        self._camera.azimuth, self._camera.elevation = view.azimuth, view.elevation
        self._gl.make_current()
        mujoco = self._mujoco
        mujoco.mjv_updateScene(
            self._model, data, self._options, None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene
        )
        mujoco.mjr_render(self._window, self._scene, self._target)
        pixels = np.empty((self.size[1], self.size[0], 3), dtype=np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._window, self._target)
        return pixels[::-1].copy()

    def close(self) -> None:
        """Release the context; may be called twice."""
        self._release()


def _release(gl: Any, target: Any) -> None:
    gl.make_current()
    target.free()
    gl.free()


def _context(width: int, height: int) -> Any:
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    choices = [wanted] if wanted in ("osmesa", "egl", "glfw") else [k for k in _LIBRARIES if _found(_LIBRARIES[k])]
    why = ""
    for name in choices:
        try:
            return import_module(f"mujoco.{name}").GLContext(width, height)
        except Exception as problem:
            why = f" ({name}: {problem})"
    raise MissingExtra(
        "pictures without a screen need OSMesa or EGL: on Debian `apt-get install libosmesa6`, "
        f"and MUJOCO_GL=osmesa if another library is found first{why}"
    )


def _found(libraries: tuple[str, ...]) -> bool:
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError:
            continue
        return True
    return False
