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
#define TG_AT_FIRM 14
#define TG_AT_LENGTH 16

/* A lane whose search is over takes the next one: searches need from four to forty rounds, and none waits for another. */
TG_MAYBE_UNUSED static void TG_FN(polish)(const double *P, const double *pose, double free, int rounds, int count,
                                          tg_search *searches)
{
    V x[TG_SEARCH + 13], y[TG_SEARCH];
    double *const flat = (double *)x;
    int at[TG_WIDTH], made[TG_WIDTH], next = 0, busy = 0; /* search of each lane, and its rounds so far */
    for (int i = 0; i < 12; i++)
        x[TG_SEARCH + i] = TG_SPREAD(pose[i]);
    x[TG_SEARCH + 12] = TG_SPREAD(free);
    if (!count)
        return;
    for (int l = 0; l < TG_WIDTH; l++)
        at[l] = made[l] = -1;
    do {
        for (int l = 0; l < TG_WIDTH; l++) {
            if (at[l] >= 0) {
                const double cost = flat[TG_AT_COST * TG_WIDTH + l], failed = flat[TG_AT_FAILED * TG_WIDTH + l];
                if (++made[l] < rounds && !(cost <= TG_SEARCH_DONE || failed >= TG_SEARCH_FAILED_MAX))
                    continue;
                for (int i = 0; i < TG_SEARCH; i++)
                    searches[at[l]][i] = flat[i * TG_WIDTH + l];
                at[l] = -1;
                busy--;
            }
            if (next == count && made[l] >= 0)
                continue;
            const int from = next < count ? next : 0; /* a lane too many begins as the first, and is not looked at */
            for (int i = 0; i < TG_SEARCH; i++)
                flat[i * TG_WIDTH + l] = i < 6 ? searches[from][i] : 0.0;
            flat[TG_AT_COST * TG_WIDTH + l] = flat[TG_AT_LENGTH * TG_WIDTH + l] = TG_SEARCH_UNKNOWN;
            flat[TG_AT_FIRM * TG_WIDTH + l] = 1.0;
            made[l] = 0;
            if (next < count) {
                at[l] = next++;
                busy++;
            }
        }
        if (busy) {
            TG_FN(six_round)(x, P, y);
            memcpy(x, y, sizeof y);
        }
    } while (busy);
}
