/* Batches in blocks of TG_WIDTH samples, and the eight branches of inverse kinematics in lanes; one copy per width. */

#include "rows.h"

#define X(name) TG_FN(name),
static void (*const TG_FN(kernels)[TG_KERNELS])(const V *restrict, const double *restrict, V *restrict) = {
    TG_EACH_KERNEL(X)};
#ifdef TG_IS_SCALAR
static void (*const TG_FN(laws)[TG_LAWS])(const V *restrict, const double *restrict, V *restrict) = {TG_EACH_LAW(X)};
#endif
#undef X

TG_MAYBE_UNUSED static void TG_FN(batch)(int k, npy_intp n, const double *const *in, const double *P, double *const *out)
{
    const tg_shape *s = &tg_shapes[k];
    V x[TG_MAX_INPUT], y[TG_MAX_OUTPUT];
    for (npy_intp start = 0; start < n; start += TG_WIDTH) {
        const int lanes = n - start < TG_WIDTH ? (int)(n - start) : TG_WIDTH;
        for (int g = 0, at = 0; g < s->inputs; at += s->sizes[g++])
            TG_FN(gather)(x + at, in[g] + start * s->sizes[g], s->sizes[g], lanes);
        TG_FN(kernels)[k](x, P, y);
        for (int o = 0, at = 0; o < s->outputs; at += tg_output_size(s, o++))
            TG_FN(scatter)(out[o] + start * tg_output_size(s, o), y + at, tg_output_size(s, o), lanes);
    }
}

/* All branches of one flange pose: out[k][j] is output j of branch k. careful: 0 away from singularities and within
 * reach, 1 anywhere, 2 with a q6 of its own for each branch in place of a reference. */
TG_MAYBE_UNUSED static void TG_FN(ik_branches)(int careful, const double *flange, const double *reference,
                                               const double *P, double out[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS])
{
    V x[TG_IK_BRANCH_INPUTS], y[TG_IK_BRANCH_OUTPUTS];
    for (int j = 0; j < 12; j++)
        x[j] = TG_SPREAD(flange[j]);
    if (careful == 1) {
        x[12] = TG_SPREAD(reference ? reference[0] : 0.0);
        x[13] = TG_SPREAD(reference ? reference[2] : 0.0);
        x[14] = TG_SPREAD(reference ? reference[5] : 0.0);
        x[15] = TG_SPREAD(reference ? 1.0 : 0.0);
        x[16] = TG_SPREAD(flange[12]); /* the correction */
    } else if (careful) {
        x[12] = x[13] = x[15] = TG_SPREAD(0.0);
        x[16] = TG_SPREAD(flange[12]);
    }
    for (int first = 0; first < TG_IK_LANES; first += TG_WIDTH) {
        for (int j = 0; j < 3; j++)
            memcpy(&x[17 + j], &tg_ik_signs[j][first], sizeof(V));
        if (!careful)
            TG_FN(ik_regular)(x, P, y);
        else {
            if (careful == 2)
                memcpy(&x[14], reference + first, sizeof(V));
            TG_FN(ik_branch)(x, P, y);
        }
        TG_FN(scatter)(&out[first][0], y, TG_IK_BRANCH_OUTPUTS, TG_WIDTH);
    }
}
