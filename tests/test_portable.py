"""The C of the extensions compiles for systems that we do not have: macOS on both processors, and Windows.

Compiled by zig, which brings the headers of these systems. Those of Python and numpy are the ones installed here, with
the sizes of the other system: nothing is linked and nothing is run. The long form compiles every file for every system.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tangere.kernels.emit.c import write

C = Path(__file__).parent.parent / "src" / "tangere" / "kernels" / "c"
SYSTEMS = ("aarch64-macos", "x86_64-macos", "x86_64-windows-gnu")
LONG = os.environ.get("TANGERE_SOAK") == "1"
CASES = [("x86_64-windows-gnu", "core.c")]  # the system that differs most
if LONG:
    FILES = [*re.findall(r'"tangere\._\w+", "(\w+\.c)"', (C.parents[3] / "setup.py").read_text()), "general.c"]
    CASES = [(system, file) for system in SYSTEMS for file in FILES]
# what Python's own configuration for Windows says, as far as its headers ask: long has four bytes there
WINDOWS = """
MS_WIN64=1 MS_WINDOWS=1 NT_THREADS=1 HAVE_STDINT_H=1 HAVE_STDDEF_H=1 HAVE_WCHAR_H=1 HAVE_SYS_TYPES_H=1 HAVE_SYS_STAT_H=1
DOUBLE_IS_LITTLE_ENDIAN_IEEE754=1 SIZEOF_SHORT=2 SIZEOF_INT=4 SIZEOF_LONG=4 SIZEOF_LONG_LONG=8 SIZEOF_VOID_P=8
SIZEOF_SIZE_T=8 SIZEOF_TIME_T=8 SIZEOF_WCHAR_T=2 SIZEOF_DOUBLE=8 SIZEOF_FLOAT=4 SIZEOF_PID_T=4 ALIGNOF_SIZE_T=8
ALIGNOF_MAX_ALIGN_T=16
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    write(folder)
    return folder


def headers(system: str, folder: Path) -> list[str]:
    """Headers of Python and numpy as they would be there."""
    python, numpy = folder / "python", folder / "numpy"
    shutil.copytree(sysconfig.get_paths()["include"], python)
    shutil.copytree(np.get_include(), numpy)
    config = numpy / "numpy" / "_numpyconfig.h"
    text = config.read_text().replace("#define NPY_HAVE_ENDIAN_H 1", "")  # a header of Linux
    if "windows" in system:
        (python / "pyconfig.h").write_text("".join(f"#define {one.replace('=', ' ')}\n" for one in WINDOWS.split()))
        text = re.sub(r"(NPY_SIZEOF_LONG) 8", r"\1 4", text)
        text = re.sub(r"(NPY_SIZEOF_LONGDOUBLE) 16", r"\1 8", text)
        text = re.sub(r"(NPY_SIZEOF_COMPLEX_LONGDOUBLE) 32", r"\1 16", text)
    config.write_text(text)
    return [f"-I{python}", f"-I{numpy}"]


@pytest.mark.parametrize(("system", "file"), CASES)
def test_compiles_without_a_warning(system, file, generated, tmp_path):
    flags = ["-std=c11", "-O0", "-g0", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Werror"]
    made = tmp_path / "made.o"
    command = [sys.executable, "-m", "ziglang", "cc", "-target", system, *flags, *headers(system, tmp_path), f"-I{C}"]
    command += [f"-I{generated}", "-c", str(C / file), "-o", str(made)]
    own = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr[:3000]
    magic = made.read_bytes()[:4]  # Mach-O of 64 bits, or COFF for x86-64
    assert magic == bytes.fromhex("cffaedfe") if "macos" in system else magic[:2] == bytes.fromhex("6486")
