"""The closed-form inverse kinematics of a UR as CUDA: one thread for a pose, a second kernel for the careful poses.

As the compiled form goes about it (kernels/c/ik.h): the short form of all eight branches; the poses near a singularity,
about one in six hundred, and those without an answer go to a list, which the second kernel works off with the careful
form and the merging of equal solutions. How long the list is stays on the device. Numbers in between are float64, in
whatever precision poses and angles are given: next to a singularity float32 is lost.
"""

from __future__ import annotations

from functools import cache

from tangere.codegen.trace import Symbol, hoisted
from tangere.kernels import ur
from tangere.kernels.emit import c as emit_c
from tangere.kernels.emit.cuda import prelude
from tangere.kernels.table import IK_BRANCH_INPUTS, IK_BRANCH_OUTPUTS, IK_MERGE_INPUTS, IK_PREPARE_OUTPUTS, trace_ik
from tangere.kinematics import inverse_closed_form as inverse

_BODY = """
typedef struct {
    const tg_io *T, *reference; /* poses (n, 16); joint vectors (n, 6), one for all, or none */
    tg_io *q, *correction, *distance;
    unsigned char *valid, *flags;
    int *list, *count;
    tg_long n, step; /* step: from reference to reference */
} tg_poses;
#ifdef __CUDACC__
#define TG_SHARED static __device__ __forceinline__
#else
#define TG_SHARED static inline
static int atomicAdd(int *at, int more) { const int was = *at; *at += more; return was; }
#endif

/* a pose as that of the flange; whether it is one */
TG_SHARED int tg_flange(const tg_poses *p, const tg_uniform *u, tg_long i, double *flange)
{
    double T[16];
    for (int j = 0; j < 16; j++)
        T[j] = (double)p->T[16 * i + j];
    TG_FN(ik_prepare)(T, u->ik_prepare, flange);
    if (!(flange[12] <= TG_EXACT_ROTATION))
        TG_FN(ik_project)(T, u->ik_project, flange);
    return flange[14] <= TG_ROTATION_TOLERANCE && flange[12] <= TG_ROTATION_TOLERANCE && flange[13] > 0.5;
}

TG_SHARED void tg_signs(int lane, double *x)
{
    x[17] = lane & 4 ? -1.0 : 1.0;
    x[18] = lane & 2 ? -1.0 : 1.0;
    x[19] = lane & 1 ? -1.0 : 1.0;
}

TG_SHARED void tg_branch_out(const tg_poses *p, tg_long i, int lane, const double *b)
{
    unsigned char bits = 0;
    for (int j = 0; j < 6; j++)
        p->q[(8 * i + lane) * 6 + j] = (tg_io)b[j];
    for (int j = 8; j < TG_BRANCH; j++)
        bits |= (unsigned char)((b[j] > 0.5) << (j - 8));
    p->flags[8 * i + lane] = bits;
}

/* all branches by the short form; poses that need more go to the list */
TG_SHARED void tg_pose(const tg_poses *p, const tg_uniform *u, tg_long i)
{
    double flange[TG_PREPARED], x[TG_INPUTS], b[TG_BRANCH];
    const int good = tg_flange(p, u, i, flange);
    for (int j = 0; j < 12; j++)
        x[j] = flange[j];
    for (int j = 12; j < TG_INPUTS; j++)
        x[j] = 0.0;
    int careful = 0, found = 0;
    TG_SLOWLY
    for (int lane = 0; lane < 8; lane++) {
        tg_signs(lane, x);
        TG_FN(ik_regular)(x, u->ik_regular, b);
        tg_branch_out(p, i, lane, b);
        const int valid = good && b[6] > 0.5;
        p->valid[8 * i + lane] = (unsigned char)valid;
        found |= valid;
        careful |= b[7] > 0.5;
    }
    p->correction[i] = (tg_io)flange[12];
    p->distance[i] = (tg_io)0.0;
    if (!found || careful)
        p->list[atomicAdd(p->count, 1)] = (int)i;
}

/* number k of the list by the careful form */
TG_SHARED void tg_careful(const tg_poses *p, const tg_uniform *u, tg_long k)
{
    const tg_long i = p->list[k];
    double flange[TG_PREPARED], x[TG_INPUTS], b[TG_BRANCH], m[TG_MERGED], keep[8], near = 1e300;
    const int good = tg_flange(p, u, i, flange);
    const tg_io *const reference = p->reference ? p->reference + i * p->step : 0;
    for (int j = 0; j < 12; j++)
        x[j] = flange[j];
    x[12] = reference ? (double)reference[0] : 0.0;
    x[13] = reference ? (double)reference[2] : 0.0;
    x[14] = reference ? (double)reference[5] : 0.0;
    x[15] = reference ? 1.0 : 0.0;
    x[16] = flange[12];
    TG_SLOWLY
    for (int lane = 0; lane < 8; lane++) {
        tg_signs(lane, x);
        TG_FN(ik_branch)(x, u->ik_branch, b);
        tg_branch_out(p, i, lane, b);
        for (int j = 0; j < 6; j++)
            m[6 * lane + j] = b[j];
        m[48 + lane] = b[6];
        near = b[7] < near ? b[7] : near;
    }
    for (int j = 0; j < 6; j++)
        m[56 + j] = reference ? (double)reference[j] : 0.0;
    m[62] = x[15];
    TG_FN(ik_merge)(m, u->ik_merge, keep);
    int found = 0;
    for (int lane = 0; lane < 8; lane++) {
        const int valid = good && keep[lane] > 0.5;
        p->valid[8 * i + lane] = (unsigned char)valid;
        found |= valid;
    }
    p->distance[i] = (tg_io)(found ? 0.0 : near);
}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(TG_BLOCK) tg_ik(const __grid_constant__ tg_poses p,
                                                             const __grid_constant__ tg_uniform u)
{
    const tg_long i = blockIdx.x * (tg_long)TG_BLOCK + threadIdx.x;
    if (i < p.n)
        tg_pose(&p, &u, i);
}
extern "C" __global__ void __launch_bounds__(TG_BLOCK) tg_ik_careful(const __grid_constant__ tg_poses p,
                                                                     const __grid_constant__ tg_uniform u)
{
    const tg_long stride = gridDim.x * (tg_long)TG_BLOCK;
    for (tg_long k = blockIdx.x * (tg_long)TG_BLOCK + threadIdx.x; k < *p.count; k += stride)
        tg_careful(&p, &u, k);
}
#else
extern "C" void tg_ik(const tg_poses *p, const tg_uniform *u)
{
    for (tg_long i = 0; i < p->n; i++)
        tg_pose(p, u, i);
    for (tg_long k = 0; k < *p->count; k++)
        tg_careful(p, u, k);
}
#endif
"""


@cache
def _parts() -> dict[str, tuple[list[Symbol], list[Symbol]]]:
    """Outputs over constants, and the constants' expressions, of each kernel."""
    traces = trace_ik(ur.PARAMETER_COUNT)
    return {name: hoisted(t.graph, t.outputs, "u", uniform=True) for name, t in traces.items()}


@cache
def text(single: bool) -> str:
    """`tg_ik(poses, u)` and `tg_ik_careful(poses, u)`; single: poses and angles are float32."""
    defines = {
        "TG_PREPARED": IK_PREPARE_OUTPUTS, "TG_INPUTS": IK_BRANCH_INPUTS, "TG_BRANCH": IK_BRANCH_OUTPUTS,
        "TG_MERGED": IK_MERGE_INPUTS, "TG_EXACT_ROTATION": repr(inverse.EXACT_ROTATION),
        "TG_ROTATION_TOLERANCE": repr(inverse.ROTATION_TOLERANCE),
    }  # fmt: skip
    lines = [prelude(False), f"typedef {'float' if single else 'double'} tg_io;"]
    lines.append('#ifdef __CUDACC__\n#define TG_SLOWLY _Pragma("unroll 1")\n#else\n#define TG_SLOWLY\n#endif')
    lines += [f"#define {name} {value}" for name, value in defines.items()]
    members = []
    for name, (outputs, heads) in _parts().items():
        lines.append(emit_c.function(name, outputs[0].graph, ["x"], outputs, parameters="u", number="double"))
        members.append(f"double {name}[{max(1, len(heads))}];")
    return "\n".join([*lines, f"typedef struct {{ {' '.join(members)} }} tg_uniform;", _BODY])


def constants(parameters: list[float]) -> list[float]:
    """The numbers of tg_uniform for an arm's parameters."""
    from tangere.kernels.emit.python import compiled

    out: list[float] = []
    for _, heads in _parts().values():
        values = compiled(heads[0].graph, [], heads, batch=False)(parameters) if heads else (0.0,)
        out += [float(value) for value in values]
    return out
