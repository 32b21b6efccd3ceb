"""Builds the C extension: traces the kernels, prints them as C, compiles. Metadata is in pyproject.toml.

Without a C compiler the package installs all the same and computes with its Python form.
"""

import hashlib
import os
import platform
import sys
import types
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
SOURCE = HERE / "src" / "tangere"
SANITISERS = "address,undefined"
C_SOURCE = "src/tangere/kernels/c"
GENERAL = f"{C_SOURCE}/general.c"
INCLUDED_BY_GENERAL = (
    "general.c", "general.h", "general_batch.h", "lanes.h", "rows.h",
    "tg_math.h", "tg_structures.h", "tg_six.h", "tg_seven.h", "tg_eight.h",
)  # fmt: skip


def generate(folder: Path) -> None:
    """Trace the kernels without importing the package's front door, which wants the extension."""
    package = types.ModuleType("tangere")
    package.__path__ = [str(SOURCE)]
    sys.modules["tangere"] = package
    from tangere.kernels.emit.c import write

    write(folder)


class BuildKernels(build_ext):
    """Generates the kernels' C text into the build folder first."""

    def build_extensions(self) -> None:
        self.force = True  # the C text depends on Python files that setuptools does not watch
        folder = Path(self.build_temp) / "generated"
        generate(folder)
        gnu = self.compiler.compiler_type == "unix"
        for extension in self.extensions:
            extension.include_dirs.append(str(folder))
            if gnu:
                # one IEEE operation per C operation, on every instruction set; sqrt needs no errno to vectorise
                extension.extra_compile_args += ["-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno"]
                extension.extra_compile_args += ["-fno-trapping-math", "-g0", "-Wall", "-Wextra", "-Wno-psabi"]
                # GCC 12 fuses products and sums of what it vectorises by itself, -ffp-contract=off or not
                extension.extra_compile_args += ["-fno-tree-slp-vectorize"] if "rollouts" in extension.name else []
                if os.environ.get("TANGERE_SANITISE"):  # tests/test_sanitised.py: errors of memory and of C's rules
                    extension.extra_compile_args += ["-O0", "-g1", "-U_FORTIFY_SOURCE", f"-fsanitize={SANITISERS}"]
                    extension.extra_link_args.append(f"-fsanitize={SANITISERS}")
        with ThreadPoolExecutor(1) as beside:
            for extension in self.extensions:
                if "kernels" in extension.name:
                    self.general(extension, beside)
            super().build_extensions()

    compiled: Future[list[str]] | None = None  # of general.c, where it is compiled anew

    def get_libraries(self, extension: Extension) -> list[str]:
        """Asked for before linking: what is compiled beside must be there by then."""
        if "kernels" in extension.name and self.compiled is not None:
            self.compiled.result()
        return list(super().get_libraries(extension))

    def general(self, extension: Extension, beside: ThreadPoolExecutor) -> None:
        """The object of general.c, compiled anew only if its text has changed: it takes as long as all the rest."""
        generated = Path(self.build_temp) / "generated"
        texts = sorted([*generated.glob("tg_*.h"), *Path(C_SOURCE).glob("*.h"), Path(GENERAL)])
        own = [t for t in texts if t.name in INCLUDED_BY_GENERAL]
        # straight-line code: what -O2 adds is time to compile. But GCC leaves the upper halves of AVX's registers clean
        # (vzeroupper) only with this one of its flags: without, a call costs 0.1 us more, and what follows it too
        instead = {"-O2": ["-O1", "-fexpensive-optimizations"]}
        flags = [one for flag in extension.extra_compile_args for one in instead.get(flag, [flag])]
        kind = [sys.platform, platform.machine(), sys.implementation.cache_tag]
        key = hashlib.sha256("".join([*flags, *kind, *(t.read_text(encoding="ascii") for t in own)]).encode())
        folder = Path("build") / f"general-{key.hexdigest()[:16]}"
        kept = folder / self.compiler.object_filenames([GENERAL])[0]
        extension.extra_objects.append(str(kept))
        if not kept.exists():
            told = {"include_dirs": extension.include_dirs, "extra_postargs": flags}
            self.compiled = beside.submit(self.compiler.compile, [GENERAL], str(folder), **told)


setup(
    ext_modules=[
        Extension(
            name,
            sources=[f"{C_SOURCE}/{source}"],
            depends=sorted([GENERAL, *(str(header) for header in Path(C_SOURCE).glob("*.h"))]),
            include_dirs=[numpy.get_include(), C_SOURCE],
            optional=True,  # no compiler, no extension: the Python form serves
        )
        for name, source in (
            ("tangere._rollouts", "rollouts.c"),
            ("tangere._periods", "periods.c"),
            ("tangere._kernels", "core.c"),
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
