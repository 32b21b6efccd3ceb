/* Kernels of arms in general (kernels/general.py): calibrated URs, other six-axis arms, seven axes, sliding joints.
 *
 * A source file of its own, because it knows nothing of Python. Kernels of arms without sliding joints take turned
 * angles: the offsets are the first parameters and are added here. */
#include <math.h>
#include <string.h>

#include "general.h"

#define X(name, joints, sliding, parameters) {joints, parameters},
const tg_structure tg_structures[TG_STRUCTURES] = {TG_EACH_STRUCTURE(X)};
#undef X
#define X(name, joints, sliding, parameters) TG_T_##name,
enum { TG_EACH_STRUCTURE(X) };
#undef X

static inline int tg_is_point(const char *input) { return input[0] == 'p'; }

/* input g of a kernel, `size` numbers of an arm with dof joints, has this many for the structure */
static inline int tg_padded(const tg_shape *s, int g, int joints) { return tg_is_point(s->names[g]) ? 3 : joints; }

static inline int tg_turned(int t) { return t != TG_T_eight; }

/* Where the numbers of a kernel's outputs for dof joints lie among those for the structure's joints. */
static int tg_places(int k, int dof, int joints, int *place)
{
    const tg_shape *s = &tg_shapes_of[dof][k], *whole = &tg_shapes_of[joints][k];
    int count = 0;
    for (int o = 0, base = 0; o < s->outputs; base += tg_output_size(whole, o++)) {
        int d[3] = {1, 1, 1}, w[3] = {1, 1, 1};
        for (int i = 0; i < s->dims[o][0]; i++) {
            d[3 - s->dims[o][0] + i] = s->dims[o][1 + i];
            w[3 - s->dims[o][0] + i] = whole->dims[o][1 + i];
        }
        for (int a = 0; a < d[0]; a++)
            for (int b = 0; b < d[1]; b++)
                for (int c = 0; c < d[2]; c++)
                    place[count++] = base + (a * w[1] + b) * w[2] + c;
    }
    return count;
}

/* ---- one state ------------------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define TG_WIDTH 2
#define TG_SUFFIX w2
#include "lanes.h"
#include "tg_math.h"
#include "rows.h"
#undef TG_WIDTH
#undef TG_SUFFIX
/* sines and cosines of the angles of one state, in pairs of lanes; there is room for eight */
#define TG_IN_PAIRS(x) for (int i = 0; i < TG_TURNED; i += 2) tg_sincos_at_w2((x) + i, sines + i, cosines + i);
#else
#define TG_IN_PAIRS(x) for (int i = 0; i < TG_TURNED; i++) TG_FN(sincos)((x)[i], sines + i, cosines + i);
#endif

#define TG_WIDTH 1
#define TG_SUFFIX w1
#include "lanes.h"
#include "tg_math.h"
#include "rows.h"
#undef TG_ANGLES
#define TG_ANGLES(x) double sines[8], cosines[8]; TG_IN_PAIRS(x)
#define TG_TURNED 6
#include "tg_six.h"
#undef TG_TURNED
#define TG_TURNED 8
#include "tg_seven.h"
#include "tg_eight.h"
#undef TG_TURNED
#define TG_ALL_STRUCTURES
#include "general_batch.h"
#undef TG_ALL_STRUCTURES
#undef TG_WIDTH
#undef TG_SUFFIX

/* ---- six joints in the lanes of AVX ------------------------------------------------------------------------------ */

/* TG_PLAIN: without, for valgrind, which does not know every instruction of AVX */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(TG_PLAIN)
#define TG_X86 1
#pragma GCC push_options
#pragma GCC target("avx2")
#define TG_WIDTH 4
#define TG_SUFFIX w4
#include "lanes.h"
#include "tg_math.h"
#include "rows.h"
#include "tg_six.h"
#include "general_batch.h"
#undef TG_WIDTH
#undef TG_SUFFIX

/* one state again, in the shorter instructions that come with AVX, and in vectors of four what is alike (codegen/packs.py) */
typedef double tg_four __attribute__((vector_size(32)));
typedef double tg_four_at __attribute__((vector_size(32), aligned(8), may_alias));
#define TG_FOURS
#define TG_WIDTH 1
#define TG_SUFFIX v1
#include "lanes.h"
#include "tg_math.h"
#include "rows.h"
#undef TG_ANGLES
#define TG_ANGLES(x) double sines[6], cosines[6]; tg_sincos_at_w4(x, sines, cosines); tg_sincos_at_w4((x) + 2, sines + 2, cosines + 2);
#include "tg_six.h"
#include "general_batch.h"
#undef TG_FOURS
#undef TG_WIDTH
#undef TG_SUFFIX
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#define TG_WIDTH 8
#define TG_SUFFIX w8
#include "lanes.h"
#include "tg_math.h"
#include "rows.h"
#include "tg_six.h"
#include "general_batch.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#pragma GCC pop_options
#endif

/* ---- what the other source file calls ----------------------------------------------------------------------------- */

void tg_general_one(int t, int k, int dof, const double *x, const double *P, double *y)
{
    const int joints = tg_structures[t].joints;
    const tg_shape *s = &tg_shapes_of[dof][k];
    double padded[TG_GENERAL_INPUT + 2], whole[TG_GENERAL_OUTPUT]; /* sines are computed in pairs */
    int place[TG_GENERAL_OUTPUT];
    for (int g = 0, from = 0, to = 0; g < s->inputs; from += s->sizes[g++]) {
        const int size = s->sizes[g], room = tg_padded(s, g, joints);
        for (int i = 0; i < room; i++)
            padded[to + i] = i < size ? x[from + i] : 0.0;
        to += room;
        padded[to] = 0.0;
    }
    if (tg_turned(t))
        for (int i = 0; i < joints; i++)
            padded[i] += P[i];
    tg_kernels_of_w1[t][k](padded, P, dof == joints ? y : whole);
    const int count = dof == joints ? 0 : tg_places(k, dof, joints, place);
    for (int i = 0; i < count; i++)
        y[i] = whole[place[i]];
}

const tg_six_forms tg_six[] = {
#ifdef TG_X86
    {"avx512", tg_kernels_of_v1[TG_T_six], tg_rows_w8, tg_polish_w8},
    {"avx2", tg_kernels_of_v1[TG_T_six], tg_rows_w4, tg_polish_w4},
#endif
    {"", tg_kernels_of_w1[TG_T_six], tg_rows_w1, tg_polish_w1},
};

void tg_general_many(const tg_six_forms *six, int t, int k, int dof, ptrdiff_t n, const double *const *in,
                     const double *P, double *const *out)
{
    (t == TG_T_six ? six->many : tg_rows_w1)(t, k, dof, n, in, P, out);
}
