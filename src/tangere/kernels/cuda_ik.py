"""The closed-form inverse kinematics of a UR as CUDA: one thread for a pose, another kernel for the careful poses.

As the compiled form goes about it (kernels/c/ik.h): the short form of all eight branches, the four of one shoulder at a
time, which share most of their arithmetic; the poses near a singularity and those without an answer go to a list, which
a second kernel works off with the careful form and the merging of equal solutions. How long the list is stays on the
device. In float64 the answer has the processor's bits. In float32 the short form is computed in float32, which loses
its digits sooner: what is not far enough from a singularity for it is done again in float64, by a kernel in between.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tangere.codegen.polynomials import SINGLE
from tangere.codegen.trace import Graph, Symbol, hoisted
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit.cuda import prelude, text_of
from tangere.kernels.table import (
    IK_BRANCH_INPUTS,
    IK_BRANCH_OUTPUTS,
    IK_MERGE_INPUTS,
    IK_PREPARE_OUTPUTS,
    Trace,
    trace_ik,
)
from tangere.kinematics import inverse_closed_form as inverse

SIDE = 9  # numbers of a branch in the short form: six angles, valid, near, elbow up
# as inverse.NEAR for shoulder [m], wrist and elbow, where the short form is computed in float32: with these the largest
# error of an angle was 9e-6 rad over 200 000 poses each of a UR10e and a UR3, and a sixth of the poses is done again
NEAR_SINGLE = (0.05, 0.05, 0.12)
# [-] how far a float32 rotation may be from one and be taken as it is: its entries are rounded to 6e-8
EXACT_SINGLE = 1e-6

_BODY = """
typedef unsigned long long tg_bytes; /* eight bytes, one for each branch */
typedef struct {
    const tg_io *T, *reference; /* poses (n, 16); joint vectors (n, 6), one for all, or none */
    tg_io *q, *correction, *distance;
    tg_bytes *valid, *flags;
    int *careful, *count;   /* poses for the careful form, and how many */
    int *again, *again_count; /* in float32: those for the short form in float64 before it */
    tg_long n, step;          /* step: from reference to reference */
} tg_poses;
#ifdef __CUDACC__
#define TG_SHARED static __device__ __forceinline__
#else
#define TG_SHARED static inline
#endif

typedef struct { tg_bytes valid, flags; int careful; } tg_found;

/* a pose as that of the flange; whether it is one */
TG_SHARED int tg_flange(const double *T, const tg_uniform *u, double *flange)
{
    tg_ik_prepare_k(T, u->ik_prepare, flange);
    if (!(flange[12] <= TG_EXACT_ROTATION))
        tg_ik_project_k(T, u->ik_project, flange);
    return flange[14] <= TG_ROTATION_TOLERANCE && flange[12] <= TG_ROTATION_TOLERANCE && flange[13] > 0.5;
}
TG_SHARED void tg_four(const double *x, const tg_uniform *u, double *b) { tg_ik_side_k(x, u->ik_side, b); }
#ifdef TG_SHORT_SINGLE
TG_SHARED int tg_flange(const float *T, const tg_uniform *u, float *flange)
{
    tg_ik_prepare_s(T, u->single_prepare, flange);
    return flange[14] <= TG_EXACT_SINGLE && flange[12] <= TG_EXACT_SINGLE && flange[13] > 0.5f;
}
TG_SHARED void tg_four(const float *x, const tg_uniform *u, float *b) { tg_ik_side_s(x, u->single_side, b); }
#endif

/* the four branches of a shoulder by the short form: angles into a row of 24 */
template <typename R>
TG_SHARED void tg_shoulder(R *x, const tg_uniform *u, int shoulder, int good, tg_io *row, tg_found *found)
{
    R b[4 * TG_SIDE];
    x[12] = shoulder ? (R)-1 : (R)1;
    tg_four(x, u, b);
    for (int k = 0; k < 4; k++) {
        const int bit = 8 * (4 * shoulder + k);
        for (int j = 0; j < 6; j++)
            row[6 * k + j] = (tg_io)b[TG_SIDE * k + j];
        found->valid |= (tg_bytes)(good && b[TG_SIDE * k + 6] > (R)0.5) << bit;
        found->careful |= b[TG_SIDE * k + 7] > (R)0.5;
        found->flags |= (tg_bytes)(b[TG_SIDE * k + 8] > (R)0.5 ? 8 : 0) << bit;
    }
}

/* pose i by the short form; whether it needs more
 * On a device all threads of a block come here together, those without a pose with i = -1: rows of angles go to memory
 * side by side, by way of `tile` (25 numbers a thread); `rows` tells whose they are.
 */
template <typename R>
TG_SHARED int tg_pose(const tg_poses *p, const tg_uniform *u, tg_long i, int thread, tg_io *tile, tg_long *rows)
{
    R T[16], flange[TG_PREPARED], x[13];
    for (int j = 0; j < 16; j++)
        T[j] = i < 0 ? (R)0 : (R)p->T[16 * i + j];
    const int good = tg_flange(T, u, flange);
    for (int j = 0; j < 12; j++)
        x[j] = flange[j];
    tg_found found = {0, 0, 0};
    TG_SLOWLY
    for (int shoulder = 0; shoulder < 2; shoulder++) {
#ifdef __CUDACC__
        tg_shoulder(x, u, shoulder, good, tile + 25 * thread, &found);
        rows[thread] = i;
        __syncthreads();
        for (int e = thread; e < TG_BLOCK * 24; e += TG_BLOCK)
            if (rows[e / 24] >= 0)
                p->q[rows[e / 24] * 48 + 24 * shoulder + e % 24] = tile[e / 24 * 25 + e % 24];
        __syncthreads();
#else
        tg_shoulder(x, u, shoulder, good, p->q + 48 * i + 24 * shoulder, &found);
#endif
    }
    if (i < 0)
        return 0;
    p->valid[i] = found.valid;
    p->flags[i] = found.flags;
    p->correction[i] = (tg_io)flange[12];
    p->distance[i] = (tg_io)0;
    return !found.valid || found.careful;
}

/* pose i by the careful form, with the merging of equal solutions */
TG_SHARED void tg_careful(const tg_poses *p, const tg_uniform *u, tg_long i)
{
    double T[16], flange[TG_PREPARED], x[TG_INPUTS], b[TG_BRANCH], m[TG_MERGED], keep[8], near = 1e300;
    for (int j = 0; j < 16; j++)
        T[j] = (double)p->T[16 * i + j];
    const int good = tg_flange(T, u, flange);
    const tg_io *const reference = p->reference ? p->reference + i * p->step : 0;
    for (int j = 0; j < 12; j++)
        x[j] = flange[j];
    x[12] = reference ? (double)reference[0] : 0.0;
    x[13] = reference ? (double)reference[2] : 0.0;
    x[14] = reference ? (double)reference[5] : 0.0;
    x[15] = reference ? 1.0 : 0.0;
    x[16] = flange[12];
    tg_bytes valid = 0, flags = 0;
    TG_SLOWLY
    for (int lane = 0; lane < 8; lane++) {
        x[17] = lane & 4 ? -1.0 : 1.0;
        x[18] = lane & 2 ? -1.0 : 1.0;
        x[19] = lane & 1 ? -1.0 : 1.0;
        tg_ik_branch_k(x, u->ik_branch, b);
        for (int j = 0; j < 6; j++) {
            p->q[(8 * i + lane) * 6 + j] = (tg_io)b[j];
            m[6 * lane + j] = b[j];
        }
        for (int j = 8; j < TG_BRANCH; j++)
            flags |= (tg_bytes)(b[j] > 0.5) << (8 * lane + j - 8);
        m[48 + lane] = b[6];
        near = b[7] < near ? b[7] : near;
    }
    for (int j = 0; j < 6; j++)
        m[56 + j] = reference ? (double)reference[j] : 0.0;
    m[62] = x[15];
    tg_ik_merge_k(m, u->ik_merge, keep);
    for (int lane = 0; lane < 8; lane++)
        valid |= (tg_bytes)(good && keep[lane] > 0.5) << (8 * lane);
    p->valid[i] = valid;
    p->flags[i] = flags;
    p->distance[i] = (tg_io)(valid ? 0.0 : near);
}

#ifdef TG_SHORT_SINGLE
#define TG_LIST(p) (p).again[atomicAdd((p).again_count, 1)]
#else
#define TG_LIST(p) (p).careful[atomicAdd((p).count, 1)]
#endif
#ifdef __CUDACC__
#define TG_GLOBAL(name) \
    extern "C" __global__ void __launch_bounds__(TG_BLOCK) name(const __grid_constant__ tg_poses p, \
                                                                const __grid_constant__ tg_uniform u)
TG_GLOBAL(tg_ik)
{
    __shared__ tg_io tile[25 * TG_BLOCK];
    __shared__ tg_long rows[TG_BLOCK];
    const tg_long i = blockIdx.x * (tg_long)TG_BLOCK + threadIdx.x;
    if (tg_pose<tg_short>(&p, &u, i < p.n ? i : -1, threadIdx.x, tile, rows))
        TG_LIST(p) = (int)i;
}
TG_GLOBAL(tg_ik_again)
{
    __shared__ tg_io tile[25 * TG_BLOCK];
    __shared__ tg_long rows[TG_BLOCK];
    const tg_long count = *p.again_count, stride = gridDim.x * (tg_long)TG_BLOCK;
    for (tg_long first = blockIdx.x * (tg_long)TG_BLOCK; first < count; first += stride) {
        const tg_long i = first + threadIdx.x < count ? p.again[first + threadIdx.x] : -1;
        if (tg_pose<double>(&p, &u, i, threadIdx.x, tile, rows))
            p.careful[atomicAdd(p.count, 1)] = (int)i;
    }
}
TG_GLOBAL(tg_ik_careful)
{
    const tg_long stride = gridDim.x * (tg_long)TG_BLOCK;
    for (tg_long k = blockIdx.x * (tg_long)TG_BLOCK + threadIdx.x; k < *p.count; k += stride)
        tg_careful(&p, &u, p.careful[k]);
}
#else
static int atomicAdd(int *at, int more) { const int was = *at; *at += more; return was; }
extern "C" void tg_ik(const tg_poses *p, const tg_uniform *u)
{
    for (tg_long i = 0; i < p->n; i++)
        if (tg_pose<tg_short>(p, u, i, 0, 0, 0))
            TG_LIST(*p) = (int)i;
    for (int k = 0; k < *p->again_count; k++)
        if (tg_pose<double>(p, u, p->again[k], 0, 0, 0))
            p->careful[atomicAdd(p->count, 1)] = p->again[k];
    for (int k = 0; k < *p->count; k++)
        tg_careful(p, u, p->careful[k]);
}
#endif
"""


def _side(near: tuple[float, float, float]) -> Trace:
    """The four branches of one shoulder by the short form; x: the flange pose (12), the sign of the shoulder."""
    graph = Graph()
    P, x = graph.inputs("P", ur.PARAMETER_COUNT, uniform=True), graph.inputs("x", 13)
    out: list[Symbol] = []
    for _, wrist, elbow in inverse.SIGNS[:4]:
        y = inverse.regular_branch(P[:6], x[:12], (x[12], wrist, elbow), near)
        out += [graph.lift(a) for a in (*y[:8], y[11])]
    return Trace(graph, out)


@cache
def _parts(single: bool) -> dict[str, tuple[list[Symbol], list[Symbol]]]:
    """Outputs over constants, and the constants' expressions, of each kernel; single: of those in float32."""
    own = trace_ik(ur.PARAMETER_COUNT)
    del own["ik_regular"]
    traces = {"ik_prepare": own["ik_prepare"]} if single else own
    traces["ik_side"] = _side(NEAR_SINGLE if single else (inverse.NEAR,) * 3)
    return {name: hoisted(t.graph, t.outputs, "u", uniform=True) for name, t in traces.items()}


@cache
def text(single: bool) -> str:
    """`tg_ik(poses, u)`, then `tg_ik_again` in float32, then `tg_ik_careful`; single: poses and angles are float32."""
    defines = {
        "TG_PREPARED": IK_PREPARE_OUTPUTS, "TG_INPUTS": IK_BRANCH_INPUTS, "TG_BRANCH": IK_BRANCH_OUTPUTS,
        "TG_MERGED": IK_MERGE_INPUTS, "TG_SIDE": SIDE, "TG_EXACT_ROTATION": repr(inverse.EXACT_ROTATION),
        "TG_ROTATION_TOLERANCE": repr(inverse.ROTATION_TOLERANCE), "TG_EXACT_SINGLE": f"{EXACT_SINGLE}f",
    }  # fmt: skip
    number = "float" if single else "double"
    lines = [prelude(False), f"typedef {number} tg_io;\ntypedef {number} tg_short;"]
    lines.append('#ifdef __CUDACC__\n#define TG_SLOWLY _Pragma("unroll 1")\n#else\n#define TG_SLOWLY\n#endif')
    lines += [f"#define {name} {value}" for name, value in defines.items()]
    members = []
    for short in (False, True)[: 1 + single]:
        if short:
            lines.append("#undef TG_SUFFIX\n#define TG_SUFFIX s\n#define TG_SINGLE 1\n#define TG_SHORT_SINGLE 1")
            lines += [text_of("lanes.h"), emit_c.math_functions((), SINGLE)]
        for name, (outputs, heads) in _parts(short).items():
            lines.append(emit_c.function(name, outputs[0].graph, ["x"], outputs, parameters="u", number="TG_REAL"))
            member = f"float {name.replace('ik', 'single')}" if short else f"double {name}"
            members.append(f"{member}[{max(1, len(heads))}];")
    return "\n".join([*lines, f"typedef struct {{ {' '.join(members)} }} tg_uniform;", _BODY])


def constants(parameters: list[float], single: bool) -> bytes:
    """The numbers of tg_uniform for an arm's parameters."""
    from tangere.kernels.emit.python import compiled

    out = b""
    for short in (False, True)[: 1 + single]:
        for _, heads in _parts(short).values():
            values = compiled(heads[0].graph, [], heads, batch=False)(parameters) if heads else (0.0,)
            out += np.array(values, dtype=np.float32 if short else np.float64).tobytes()
    return out + bytes(-len(out) % 8)
