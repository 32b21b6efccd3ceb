"""The emitters: printed code computes what was traced, C and Python alike, and holds no word that came from data."""

from __future__ import annotations

import ctypes
import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracles import random_arm

import tangere
from tangere.codegen import functions as f
from tangere.codegen import polynomials as p
from tangere.codegen.trace import Graph, Symbol
from tangere.errors import UnknownName
from tangere.kernels import emit
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit import python as emit_python
from tangere.kernels.joint_laws import JOINT_LAWS
from tangere.kernels.table import KERNELS, LAW_DOFS, LAWS, all_kernels, trace
from tangere.kernels.traced import TracedKernels
from tangere.kinematics.chain import chain_of
from tangere.model.model import Model

HOSTILE = ('"); import os #', "'''\nimport os\n'''", "*/ int main() {", "\\\n#include <x>", "{0.__class__}", "été\x00")


def everything() -> tuple[Graph, list[Symbol]]:
    """A graph with every operation, over two inputs and one parameter."""
    graph = Graph()
    x, y = graph.inputs("x", 2)
    (P,) = graph.inputs("P", 1, uniform=True)
    inside = (x < y) & (P <= x) | (y > 1.0)
    return graph, [
        x + y * P, x - y, x / y, -(x * P), f.sin(x) + f.cos(x), f.cos(y), f.sqrt(f.absolute(x)), f.atan2(y, x),
        f.where(inside, x, -y), f.rounded(3.0 * x), f.where(P < 0.0, x, y), graph.constant(-2.5), P, P * P + 0.1,
        f.where(P < 2.0, 1.0, P) * x,
    ]  # fmt: skip


def expected(x: float, y: float, P: float) -> list[float]:
    inside = (x < y and P <= x) or y > 1.0
    return [
        x + y * P, x - y, x / y, -(x * P), np.sin(x) + np.cos(x), np.cos(y), np.sqrt(abs(x)), np.arctan2(y, x),
        x if inside else -y, float(round(3.0 * x)), x if P < 0.0 else y, -2.5, P, P * P + 0.1,
        (1.0 if P < 2.0 else P) * x,
    ]  # fmt: skip


SAMPLES = [(0.3, -0.7, 1.5), (2.0, 2.5, -1.0), (-1.2, 0.4, 0.1), (0.9, 1.2, 0.5), (0.5, 0.6, 2.5)]


@pytest.mark.parametrize("sample", SAMPLES)
def test_python_single_and_batch(sample: tuple[float, float, float]) -> None:
    graph, outputs = everything()
    x, y, P = sample
    wanted = expected(*sample)
    single = emit_python.compiled(graph, ["x"], outputs, batch=False)([x, y], [P])
    assert single == pytest.approx(wanted, abs=1e-15)
    batch = emit_python.compiled(graph, ["x"], outputs, batch=True)([np.array([x, y]), np.array([y, x])], [P])
    other = expected(y, x, P)
    for column, a, b in zip(batch, wanted, other, strict=True):
        assert np.broadcast_to(column, (2,)) == pytest.approx([a, b], abs=1e-15)


C_MAIN = """
#include <math.h>
#include <string.h>
#define TG_WIDTH {width}
#define TG_SUFFIX test
#include "lanes.h"
{math}
{text}
void run(const double *x, const double *P, double *out)
{{
    V in[2], result[{count}];
    for (int i = 0; i < 2; i++)
        in[i] = TG_SPREAD(x[i]);
    TG_FN(all)(in, P, result);
    for (int i = 0; i < {count}; i++)
        memcpy(out + i, &result[i], sizeof(double));
}}
"""


def library(folder: Path, text: str) -> ctypes.CDLL:
    """C text, compiled with the kernels' own headers; skipped where nothing compiles."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    source, built = folder / "all.c", folder / "all.so"
    source.write_text(text)
    headers = Path(tangere.__file__).parent / "kernels" / "c"
    flags = ["-std=gnu11", "-O1", "-ffp-contract=off", "-shared", "-fPIC", f"-I{headers}", "-Wno-psabi"]
    subprocess.run([compiler, *flags, str(source), "-o", str(built), "-lm"], check=True, capture_output=True)
    return ctypes.CDLL(str(built))


@pytest.mark.parametrize("width", [1, 2, 4])
def test_c(width: int, tmp_path: Path) -> None:
    """Compiled with the kernels' own macros, in one lane and in several, the C form gives the same numbers.

    1e-15: sin, cos and atan2 are polynomials of our own there, an ulp apart.
    """
    graph, outputs = everything()
    text = emit_c.function("all", graph, ["x"], outputs, inline=True)
    run = library(tmp_path, C_MAIN.format(width=width, math=emit_c.math_functions(), text=text, count=len(outputs))).run
    for x, y, P in SAMPLES:
        out = (ctypes.c_double * len(outputs))()
        run((ctypes.c_double * 2)(x, y), (ctypes.c_double * 1)(P), out)
        assert list(out) == pytest.approx(expected(x, y, P), abs=1e-15)


C_ELEMENTARY = """
#include <math.h>
#include <string.h>
{single}
#define TG_WIDTH {width}
#define TG_SUFFIX test
#include "lanes.h"
{math}
void run(int n, const TG_REAL *x, TG_REAL *out)
{{
    for (int i = 0; i < n; i += TG_WIDTH) {{
        V in, y[6];
        memcpy(&in, x + i, sizeof in);
        y[0] = TG_FN(expm1)(in);
        y[1] = TG_FN(tanh)(in);
        y[2] = TG_FN(log)(TG_ABS(in) + TG_SPREAD(0.5));
        TG_FN(sincos)(in, &y[3], &y[4]);
        y[5] = TG_FN(atan2)(in, TG_SPREAD(0.7));
        for (int k = 0; k < 6; k++)
            memcpy(out + k * n + i, &y[k], sizeof in);
    }}
}}
"""


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(("of", "dtype"), [(p.DOUBLE, np.float64), (p.SINGLE, np.float32)])
def test_elementary_functions_have_the_same_bits_in_c_and_python(
    width: int, of: p.Coefficients, dtype: type, tmp_path: Path
) -> None:
    """In lanes of every width, in either precision; and in what the Python emitter prints, for one number and many."""
    single = "#define TG_SINGLE 1" if dtype == np.float32 else ""
    math = emit_c.math_functions(("expm1", "tanh", "log"), of)
    run = library(tmp_path, C_ELEMENTARY.format(single=single, width=width, math=math)).run
    rng = np.random.default_rng(8)
    x = np.concatenate([rng.uniform(-40.0, 40.0, 3072), 10.0 ** rng.uniform(-20.0, 0.0, 1024)]).astype(dtype)
    out = np.empty((6, x.size), dtype)
    run(x.size, x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p))
    shifted = np.abs(x) + dtype(0.5)
    own = (p.exponential_minus_one(x, of), p.hyperbolic_tangent(x, of), p.logarithm(shifted, of), *p.sincos(x, of))
    for got, wanted in zip(out[:5], own, strict=True):
        assert np.array_equal(got, wanted)
    if dtype == np.float64:
        assert np.array_equal(out[5], p.arctangent2(x, np.full_like(x, 0.7), of))
        graph = Graph()
        u, v = graph.inputs("x", 2)
        printed = [f.expm1(u), f.tanh(u), f.log(v)]
        batch = emit_python.compiled(graph, ["x"], printed, batch=True)([x, shifted], [])
        one = emit_python.compiled(graph, ["x"], printed, batch=False)([float(x[5]), float(shifted[5])], [])
        for k in range(3):
            assert np.array_equal(batch[k], out[k])
            assert float(one[k]) == out[k][5]


def test_numbers_are_printed_exactly() -> None:
    """Hexadecimal in C, repr in Python: every bit of a constant survives."""
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    value = 0.1 + 1e-17 + 2**-55
    out = [x * value]
    assert value.hex() in emit_c.function("k", graph, ["x"], out, inline=False)
    assert repr(value) in emit_python.source(graph, ["x"], out, parameters="P", batch=False)
    assert emit_python.compiled(graph, ["x"], out, batch=False)([1.0], []) == (value,)


def test_negative_constants_keep_their_sign_behind_a_minus() -> None:
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    out = [x - graph.constant(-2.0), x + (-3.0), graph.constant(-1.5) - x]
    assert emit_python.compiled(graph, ["x"], out, batch=False)([10.0], []) == (12.0, 7.0, -11.5)


def test_only_what_is_needed_is_printed() -> None:
    graph = Graph()
    x, y = graph.inputs("x", 2)
    wanted, other = x + y, f.sqrt(x)
    text = emit_python.source(graph, ["x"], [wanted], parameters="P", batch=False)
    assert "sqrt" not in text
    assert other.index != wanted.index


def test_names_must_be_identifiers() -> None:
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    for name in (*HOSTILE, "two words", ""):
        with pytest.raises(ValueError, match="not an identifier"):
            emit_c.function(name, graph, ["x"], [x], inline=False)


def test_unknown_operations_are_refused() -> None:
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    strange = graph.operation("lambertw", x)
    with pytest.raises(ValueError, match="lambertw"):
        emit_c.function("k", graph, ["x"], [strange], inline=False)
    with pytest.raises(ValueError, match="lambertw"):
        emit_python.source(graph, ["x"], [strange], parameters="P", batch=False)


def test_sines_of_joint_angles_come_from_the_shared_table() -> None:
    """Of the numbers at the head of the first group, as many as there are angles, and of nothing else."""
    graph = Graph()
    x = graph.inputs("x", 3)
    out = [f.sin(x[0]), f.cos(x[1]), f.sin(x[2])]
    text = emit_c.function("k", graph, ["x"], out, angles=2)
    assert text.count("TG_ANGLES(x)") == 1
    assert [text.count(f"TG_SINCOS({i}, x[{i}]") for i in range(3)] == [1, 1, 0]
    assert "TG_FN(sincos)(x[2]" in text
    alone = emit_c.function("k", graph, ["x"], out)
    assert "TG_ANGLES" not in alone
    assert "TG_SINCOS" not in alone


def test_a_new_emitter_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropped into the folder it is found by its name, and makes every kernel of a robot."""
    (tmp_path / "halved.py").write_text(
        "from tangere.kernels.emit import python\n"
        "def compiled(graph, inputs, outputs, **how):\n"
        "    kernel = python.compiled(graph, inputs, outputs, **how)\n"
        "    return lambda *x: tuple(0.5 * y for y in kernel(*x))\n"
    )
    assert emit.targets() == ("c", "cuda", "formulas", "jax", "python", "urscript")
    monkeypatch.setattr(emit, "__path__", [*emit.__path__, str(tmp_path)])
    assert emit.targets() == ("c", "cuda", "formulas", "halved", "jax", "python", "urscript")
    for name in ("ur5e", "scara"):
        model = tangere.robot(name).model
        q = np.full(model.dof, 0.3)
        plain, halved = (
            TracedKernels(model, rotor_inertia=np.zeros(model.dof), target=target) for target in ("python", "halved")
        )
        np.testing.assert_array_equal(halved.mass_matrix(q), 0.5 * plain.mass_matrix(q))
    for bad in ("c", "fortran"):
        with pytest.raises(UnknownName, match=f"{bad}.*python"):
            emit.runnable(bad)


# ----------------------------------------------------------------------------- no string from data in generated text


def hostile_arm() -> Model:
    """An arm whose every name is an attempt to become code."""
    arm = random_arm(2, "rprr")
    joints = tuple(dataclasses.replace(j, name=HOSTILE[i]) for i, j in enumerate(arm.joints))
    links = tuple(dataclasses.replace(k, name=HOSTILE[-1 - i]) for i, k in enumerate(arm.links))
    return dataclasses.replace(
        arm, name=HOSTILE[0], title=HOSTILE[1], parameters=HOSTILE[2], joints=joints, links=links
    )


def test_hostile_names_never_reach_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text that is compiled while such a robot computes consists of our own tokens and of numbers."""
    texts: list[str] = []
    source = emit_python.source

    def recorded(*args: object, **keywords: object) -> str:
        text: str = source(*args, **keywords)  # type: ignore[arg-type]
        texts.append(text)
        return text

    monkeypatch.setattr(emit_python, "source", recorded)
    robot = TracedKernels(hostile_arm(), rotor_inertia=np.zeros(4))
    q = [0.1, 0.2, 0.3, 0.4]
    for kernel in KERNELS:
        getattr(robot, kernel.name)(*[q] * len(kernel.inputs))
    robot.jacobian(q, 2, [0.1, 0.2, 0.3])
    assert len(texts) >= len(KERNELS)
    line = re.compile(r"    (t\d+ = |return \()[-+*/<=&|(), .\w\[\]]*$")
    words = {"sin", "cos", "sqrt", "atan2", "abs", "rint", "where", "if", "else", "return", "x", "P"}
    for text in texts:
        head, *body = text.splitlines()
        assert head == "def kernel(x, P):"
        assert all(line.match(row) for row in body)
        found = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"\b(t\d+|\d[\d.]*e[-+]?\d+)\b", "", "\n".join(body))))
        assert found <= words


def test_constants_from_a_file_are_numbers_or_nothing() -> None:
    """What is not a finite real number never becomes a constant of the trace."""
    graph = Graph()
    (x,) = graph.inputs("x", 1)
    with pytest.raises((TypeError, ValueError)):
        x + "1); import os; (1"  # type: ignore[operator]
    arm = random_arm(2, "rr")
    bad = dataclasses.replace(arm.links[0], mass='1"); import os #')  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)):
        chain_of(dataclasses.replace(arm, links=(bad, *arm.links[1:])))


def test_the_c_text_is_made_from_the_table_alone() -> None:
    """Its words are C, our macros, and the names of our kernels; nothing else could get in."""
    text, table = emit_c.kernels_text(), emit_c.table_text()
    assert text.isascii()
    assert table.isascii()
    bare = re.sub(r"/\*.*?\*/|0x[\d.a-f]+p[-+]\d+|0X\S+", " ", text, flags=re.DOTALL)
    words = set(re.findall(r"[A-Za-z_]\w*", bare))
    words -= {w for w in words if re.fullmatch(r"(t|unused)\d+|TG_\w+", w)}
    ours = {k.name for k in all_kernels(6)}
    ours |= {f"{law.name}_{n}" for law in LAWS for n in (emit_c.ARMS if law.arm else LAW_DOFS)}
    ours |= {joint.name for joint in JOINT_LAWS} | {"expm1", "expm1_", "tanh", "tanh_"}
    language = {"void", "const", "double", "int", "restrict", "return", "V", "x", "P", "p", "out", "in", "y", "s", "c"}
    language |= {"define", "undef", "ifdef", "ifndef", "if", "else", "endif", "defined", "static", "inline"}
    left = words - ours - language
    assert {w for w in left if not re.fullmatch(r"(sincos|atan2|ik|tg|angles|sines|cosines)\w*", w)} == set()
    for kernel in all_kernels(6):
        assert f"TG_FN({kernel.name})" in text
        assert f'{{"{kernel.name}"' in table


def test_the_text_is_the_same_every_time() -> None:
    """No order of a set, no address: a build repeats byte by byte."""
    kernel = next(k for k in KERNELS if k.name == "inverse_dynamics_derivatives")
    arm = random_arm(4, "rpr")
    texts = set()
    for _ in range(2):
        t = trace(kernel, 3, lambda _: chain_of(arm), 0)
        texts.add(emit_python.source(t.graph, ["x"], t.outputs, parameters="P", batch=True))
    assert len(texts) == 1
    assert emit_c.table_text() == emit_c.table_text()
