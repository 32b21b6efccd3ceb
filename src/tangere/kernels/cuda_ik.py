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

from tangere.codegen.polynomials import DOUBLE, SINGLE, Coefficients, arctangent2
from tangere.codegen.trace import Graph, Symbol, hoisted
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit.cuda import banked, prelude, text_of
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

/* the four branches of a shoulder by the short form: their angles, 24 numbers */
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

#ifdef __CUDACC__
#define TG_EACH (int)(16 / sizeof(tg_io)) /* numbers of the 16 bytes that a thread moves at a time */
#define TG_PARTS (24 / TG_EACH)           /* of the angles of a shoulder */
typedef struct __align__(16) { tg_io v[TG_EACH]; } tg_part;
typedef tg_part tg_rows[TG_PARTS + 1];    /* with one more no two threads of a quarter of a warp meet in a bank */

/* rows of 24 angles of the threads of a warp into memory, side by side; i: the pose of this thread, or -1 */
TG_SHARED void tg_hand_over(const tg_poses *p, int i, int shoulder, const tg_io *row, tg_rows *tile)
{
    const int lane = threadIdx.x & 31;
    tile += threadIdx.x - lane;
#pragma unroll
    for (int k = 0; k < TG_PARTS; k++) {
        tg_part part;
        for (int j = 0; j < TG_EACH; j++)
            part.v[j] = row[TG_EACH * k + j];
        tile[lane][k] = part;
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < TG_PARTS; k++) {
        const int e = lane + 32 * k, of = e / TG_PARTS, at = e % TG_PARTS, pose = __shfl_sync(~0u, i, of);
        if (pose >= 0)
            ((tg_part *)p->q)[(tg_long)pose * 2 * TG_PARTS + shoulder * TG_PARTS + at] = tile[of][at];
    }
    __syncwarp();
}
#endif

/* pose i by the short form; whether it needs more
 * On a device all threads of a warp come here together, those without a pose with i = -1.
 */
template <typename R, typename Rows> TG_SHARED int tg_pose(const tg_poses *p, const tg_uniform *u, int i, Rows *tile)
{
    R T[16], flange[TG_PREPARED], x[13];
    const tg_io *const given = p->T + 16 * (tg_long)(i < 0 ? 0 : i);
#ifdef __CUDACC__
    if (((unsigned long long)p->T & 15) == 0)
        for (int k = 0; k < 16 / TG_EACH; k++) {
            const tg_part part = ((const tg_part *)given)[k];
            for (int j = 0; j < TG_EACH; j++)
                T[TG_EACH * k + j] = (R)part.v[j];
        }
    else
#endif
    for (int j = 0; j < 16; j++)
        T[j] = (R)given[j];
    const int good = tg_flange(T, u, flange);
    for (int j = 0; j < 12; j++)
        x[j] = flange[j];
    tg_found found = {0, 0, 0};
    TG_SLOWLY
    for (int shoulder = 0; shoulder < 2; shoulder++) {
#ifdef __CUDACC__
        tg_io row[24];
        tg_shoulder(x, u, shoulder, good, row, &found);
        tg_hand_over(p, i, shoulder, row, tile);
#else
        tg_shoulder(x, u, shoulder, good, p->q + 48 * (tg_long)i + 24 * shoulder, &found);
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

/* what the careful form finds of a pose: numbers for the merging of equal solutions; flags and miss of each branch */
typedef struct { double m[TG_MERGED], miss[8]; tg_bytes flags[8]; } tg_eight;

/* one branch of pose i by the careful form */
TG_SHARED void tg_lane(const tg_poses *p, const tg_uniform *u, tg_long i, int lane, tg_eight *all)
{
    double T[16], flange[TG_PREPARED], x[TG_INPUTS], b[TG_BRANCH];
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
    x[17] = lane & 4 ? -1.0 : 1.0;
    x[18] = lane & 2 ? -1.0 : 1.0;
    x[19] = lane & 1 ? -1.0 : 1.0;
    tg_ik_branch_k(x, u->ik_branch, b);
    for (int j = 0; j < 6; j++) {
        p->q[(8 * i + lane) * 6 + j] = (tg_io)b[j];
        all->m[6 * lane + j] = b[j];
    }
    all->flags[lane] = good ? 0 : 128;
    for (int j = 8; j < TG_BRANCH; j++)
        all->flags[lane] |= (tg_bytes)(b[j] > 0.5) << (j - 8);
    all->m[48 + lane] = b[6];
    all->miss[lane] = b[7];
    if (lane < 6)
        all->m[56 + lane] = reference ? (double)reference[lane] : 0.0;
    if (lane == 6)
        all->m[62] = x[15];
}

/* what the eight branches of pose i give together */
TG_SHARED void tg_together(const tg_poses *p, const tg_uniform *u, tg_long i, const tg_eight *all)
{
    double keep[8], near = 1e300;
    tg_bytes valid = 0, flags = 0, singular = 0;
    for (int lane = 0; lane < 8; lane++) {
        keep[lane] = all->m[48 + lane];
        singular |= all->flags[lane] & 7;
    }
    if (singular) /* elsewhere no two solutions are equal */
        tg_ik_merge_k(all->m, u->ik_merge, keep);
    for (int lane = 0; lane < 8; lane++) {
        valid |= (tg_bytes)(!(all->flags[lane] & 128) && keep[lane] > 0.5) << (8 * lane);
        flags |= (all->flags[lane] & 127) << (8 * lane);
        near = all->miss[lane] < near ? all->miss[lane] : near;
    }
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
/* room: blocks that a multiprocessor should have room for, 0: as many as there are */
#define TG_GLOBAL(name, room) \
    extern "C" __global__ void __launch_bounds__(TG_BLOCK, room) name(const __grid_constant__ tg_poses p, \
                                                                      const __grid_constant__ tg_uniform u)
TG_GLOBAL(tg_ik, sizeof(tg_short) == 4 ? 4 : 0) /* float64 needs its registers */
{
    __shared__ tg_rows tile[TG_BLOCK];
    const tg_long i = blockIdx.x * (tg_long)TG_BLOCK + threadIdx.x;
    if (tg_pose<tg_short>(&p, &u, i < p.n ? (int)i : -1, tile))
        TG_LIST(p) = (int)i;
}
TG_GLOBAL(tg_ik_again, 4)
{
    __shared__ tg_rows tile[TG_BLOCK];
    const tg_long count = *p.again_count, stride = gridDim.x * (tg_long)TG_BLOCK;
    for (tg_long first = blockIdx.x * (tg_long)TG_BLOCK; first < count; first += stride) {
        const int i = first + threadIdx.x < count ? p.again[first + threadIdx.x] : -1;
        if (tg_pose<double>(&p, &u, i, tile))
            p.careful[atomicAdd(p.count, 1)] = i;
    }
}
TG_GLOBAL(tg_ik_careful, 0) /* a thread for each branch */
{
    __shared__ tg_eight all[TG_BLOCK / 8];
    const int lane = threadIdx.x & 7, group = threadIdx.x / 8;
    const tg_long count = *p.count, stride = gridDim.x * (tg_long)(TG_BLOCK / 8);
    for (tg_long first = blockIdx.x * (tg_long)(TG_BLOCK / 8); first < count; first += stride) {
        const tg_long i = first + group < count ? p.careful[first + group] : -1;
        if (i >= 0)
            tg_lane(&p, &u, i, lane, all + group);
        __syncwarp();
        if (i >= 0 && lane == 0)
            tg_together(&p, &u, i, all + group);
        __syncwarp();
    }
}
#else
static int atomicAdd(int *at, int more) { const int was = *at; *at += more; return was; }
extern "C" void tg_ik(const tg_poses *p, const tg_uniform *u)
{
    int nothing = 0;
    tg_eight all;
    for (tg_long i = 0; i < p->n; i++)
        if (tg_pose<tg_short>(p, u, (int)i, &nothing))
            TG_LIST(*p) = (int)i;
    for (int k = 0; k < *p->again_count; k++)
        if (tg_pose<double>(p, u, p->again[k], &nothing))
            p->careful[atomicAdd(p->count, 1)] = p->again[k];
    for (int k = 0; k < *p->count; k++) {
        for (int lane = 0; lane < 8; lane++)
            tg_lane(p, u, p->careful[k], lane, &all);
        tg_together(p, u, p->careful[k], &all);
    }
}
#endif
"""


class _Angles(Graph):
    """A graph that has the polynomial of atan2 in place of a call: points that are mirrored share most of it."""

    def __init__(self, of: Coefficients) -> None:
        super().__init__()
        self._of = of

    def operation(self, op: str, *args: Symbol, mask: bool = False) -> Symbol:
        """As Graph's."""
        if op == "atan2":
            y, x = args
            angle: Symbol = arctangent2(y, x, self._of)
            return angle
        return super().operation(op, *args, mask=mask)


def _side(near: tuple[float, float, float], of: Coefficients) -> Trace:
    """The four branches of one shoulder by the short form; x: the flange pose (12), the sign of the shoulder."""
    graph = _Angles(of)
    P, x = graph.inputs("P", ur.PARAMETER_COUNT, uniform=True), graph.inputs("x", 13)
    out: list[Symbol] = []
    for _, wrist, elbow in inverse.SIGNS[:4]:
        y = inverse.regular_branch(P[:6], x[:12], (x[12], 1.0, elbow), near, mirror=wrist < 0.0)
        out += [graph.lift(a) for a in (*y[:8], y[11])]
    return Trace(graph, out)


@cache
def _parts(single: bool) -> dict[str, tuple[list[Symbol], list[Symbol]]]:
    """Outputs over constants, and the constants' expressions, of each kernel; single: of those in float32."""
    own = trace_ik(ur.PARAMETER_COUNT)
    del own["ik_regular"]
    traces = {"ik_prepare": own["ik_prepare"]} if single else own
    traces["ik_side"] = _side(NEAR_SINGLE, SINGLE) if single else _side((inverse.NEAR,) * 3, DOUBLE)
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
    lines = [prelude(False, plain=True), f"typedef {number} tg_io;\ntypedef {number} tg_short;"]
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
        lines = lines if short else [banked("\n".join(lines))]
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
