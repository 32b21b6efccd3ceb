/* Batches of the kernels of arms in general, in blocks of TG_WIDTH samples; one copy per width. */

typedef void (*const TG_FN(kernel_of))(const V *restrict, const double *restrict, V *restrict);
#define X(name) TG_FN(name),
static TG_FN(kernel_of) TG_FN(kernels_of)[TG_STRUCTURES][TG_KERNELS_MAX] = {
    {TG_EACH_SIX(X)},
#ifdef TG_ALL_STRUCTURES
    {TG_EACH_SEVEN(X)},
    {TG_EACH_EIGHT(X)},
#endif
};
#undef X

TG_MAYBE_UNUSED static void TG_FN(rows)(int t, int k, int dof, ptrdiff_t n, const double *const *in, const double *P,
                        double *const *out)
{
    const tg_shape *s = &tg_shapes_of[dof][k];
    const int joints = tg_structures[t].joints;
    V x[TG_GENERAL_INPUT + 2], y[TG_GENERAL_OUTPUT];
    int place[TG_GENERAL_OUTPUT];
    const int count = dof < joints ? tg_places(k, dof, joints, place) : 0;
    memset(x, 0, sizeof x);
    for (ptrdiff_t start = 0; start < n; start += TG_WIDTH) {
        const int lanes = n - start < TG_WIDTH ? (int)(n - start) : TG_WIDTH;
        for (int g = 0, at = 0; g < s->inputs; at += tg_padded(s, g++, joints))
            TG_FN(gather)(x + at, in[g] + start * s->sizes[g], s->sizes[g], lanes);
        if (tg_turned(t))
            for (int i = 0; i < dof; i++)
                x[i] = x[i] + TG_SPREAD(P[i]);
        TG_FN(kernels_of)[t][k](x, P, y);
        for (int i = 0; i < count; i++) /* places only grow: no number is overwritten before it was moved */
            y[i] = y[place[i]];
        for (int o = 0, at = 0; o < s->outputs; at += tg_output_size(s, o++))
            TG_FN(scatter)(out[o] + start * tg_output_size(s, o), y + at, tg_output_size(s, o), lanes);
    }
}

/* where the numbers after q and its step lie in a search */
#define TG_AT_COST 12
#define TG_AT_FAILED 13
#define TG_AT_PIVOT 14
#define TG_AT_LENGTH 16

TG_MAYBE_UNUSED static void TG_FN(polish)(const double *P, const double *pose, double free, int rounds, int count,
                                          tg_search *searches)
{
    V x[TG_SEARCH + 13], y[TG_SEARCH];
    for (int i = 0; i < 12; i++)
        x[TG_SEARCH + i] = TG_SPREAD(pose[i]);
    x[TG_SEARCH + 12] = TG_SPREAD(free);
    for (int first = 0; first < count; first += TG_WIDTH) {
        const int lanes = count - first < TG_WIDTH ? count - first : TG_WIDTH;
        for (int i = 0; i < lanes; i++) {
            double *s = searches[first + i];
            memset(s + 6, 0, (TG_SEARCH - 6) * sizeof(double));
            s[TG_AT_COST] = s[TG_AT_LENGTH] = TG_SEARCH_UNKNOWN;
            s[TG_AT_PIVOT] = 1.0;
        }
        TG_FN(gather)(x, searches[first], TG_SEARCH, lanes);
        for (int round = 0, over = 0; round < rounds && !over; round++) {
            TG_FN(six_round)(x, P, y);
            memcpy(x, y, sizeof y);
            const double *flat = (const double *)x;
            over = 1;
            for (int i = 0; i < TG_WIDTH; i++)
                over &= flat[TG_AT_COST * TG_WIDTH + i] <= TG_SEARCH_DONE ||
                        flat[TG_AT_FAILED * TG_WIDTH + i] >= TG_SEARCH_FAILED_MAX;
        }
        TG_FN(scatter)(searches[first], x, TG_SEARCH, lanes);
    }
}
