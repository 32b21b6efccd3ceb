/* Momentum, beta and the weights of the momentum observer, TG_WIDTH samples at a time; one copy per width. */

#ifndef TG_LAW
#define TG_LAW
#define TG_ORDERS 16 /* of the ripple, at most: more than identification tries, so that a law has a fixed size */
/* parameters of the laws plain_friction, drive_friction and ripple (kernels/joint_laws.py), per joint */
typedef struct {
    int none, plain, orders[TG_DOF]; /* plain: no load, quadratic or offset; orders: those that a joint has */
    double terms[TG_DOF][6], ripple[TG_DOF][TG_ORDERS][7];
} tg_law;
#endif

/* friction of joint j, taken off beta */
TG_INLINE V TG_FN(rubbed)(const tg_law *f, int j, V q, V qd, V g, V beta)
{
    const V state[2] = {qd, g};
    V sum;
    if (f->plain) {
        TG_FN(plain_friction)(state, f->terms[j], &sum);
        return beta - sum;
    }
    TG_FN(drive_friction)(state, f->terms[j], &sum);
    if (!f->orders[j])
        return beta - sum;
    V place[3] = {q, g, qd};
    TG_FN(direction)(&qd, f->terms[j] + 1, place + 2);
    for (int k = 0; k < f->orders[j]; k++) {
        V more;
        TG_FN(ripple)(place, f->ripple[j][k], &more);
        sum = sum + more;
    }
    return beta - sum;
}

/* p and beta = C^T qd - g - friction (rows of TG_DOF) of n samples */
TG_MAYBE_UNUSED static void TG_FN(momentum)(const double *P, const tg_law *f, npy_intp n, const double *q,
                                            const double *qd, double *p, double *beta)
{
    V x[2 * TG_DOF], y[3 * TG_DOF];
    for (npy_intp start = 0; start < n; start += TG_WIDTH) {
        const int lanes = n - start < TG_WIDTH ? (int)(n - start) : TG_WIDTH;
        TG_FN(gather)(x, q + start * TG_DOF, TG_DOF, lanes);
        TG_FN(gather)(x + TG_DOF, qd + start * TG_DOF, TG_DOF, lanes);
        TG_FN(momentum_terms)(x, P, y);
        V *const left = y + TG_DOF;
        for (int j = 0; j < TG_DOF; j++) {
            left[j] = left[j] - y[2 * TG_DOF + j];
            if (!f->none)
                left[j] = TG_FN(rubbed)(f, j, x[j], x[TG_DOF + j], y[2 * TG_DOF + j], left[j]);
        }
        TG_FN(scatter)(p + start * TG_DOF, y, TG_DOF, lanes);
        TG_FN(scatter)(beta + start * TG_DOF, left, TG_DOF, lanes);
    }
}

/* 1 - exp(-K h): rows of `rates` numbers for n periods */
TG_MAYBE_UNUSED static void TG_FN(weights)(const double *K, int rates, npy_intp n, const double *h, double *out)
{
    for (npy_intp start = 0; start < n; start += TG_WIDTH) {
        const int lanes = n - start < TG_WIDTH ? (int)(n - start) : TG_WIDTH;
        V span, w[TG_DOF];
        TG_FN(gather)(&span, h + start, 1, lanes);
        for (int j = 0; j < rates; j++)
            TG_FN(lag_weight)(&span, K + j, &w[j]);
        TG_FN(scatter)(out + start * rates, w, rates, lanes);
    }
}
