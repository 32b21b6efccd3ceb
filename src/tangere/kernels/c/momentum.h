/* Momentum, beta and the weights of the momentum observer, TG_WIDTH samples at a time; one copy per width. */

#ifndef TG_LAW
#define TG_LAW
#define TG_ORDERS 8 /* of the gear ripple, at most: twice what any arm has shown, so that a law has a fixed size */
/* friction = (coulomb + load |g|) tanh(qd scale) + viscous qd + quadratic qd |qd| + offset + ripple; per joint */
typedef struct {
    int none, orders, plain; /* plain: no load, quadratic or offset */
    double coulomb[TG_DOF], load[TG_DOF], scale[TG_DOF], viscous[TG_DOF], quadratic[TG_DOF], offset[TG_DOF];
    double order[TG_ORDERS], sine[TG_DOF][TG_ORDERS], cosine[TG_DOF][TG_ORDERS];
} tg_law;
#define TG_LN2_HI 0x1.62e42feep-1            /* 33 bits: times a whole number below 2^20 it is exact */
#define TG_LN2_LO 0x1.a39ef35793c76p-33      /* what is left of ln 2 */
/* 1/k!, k = 13 ... 2: the next term is 1e-17 of the first for |x| < ln 2 / 2 */
static const double tg_inverse_factorials[] = {
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
    1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      1.0 / 2.0};
#endif

/* e^x - 1 for x <= 0, to about one unit in the last place */
TG_INLINE V TG_FN(expm1)(V x)
{
    x = TG_SELECT(TG_LT(x, TG_SPREAD(-60.0)), TG_SPREAD(-60.0), x); /* -1 to the last place long before */
    const V whole = x * TG_SPREAD(0x1.71547652b82fep+0) + TG_SPREAD(TG_MAGIC); /* x / ln 2, rounded in its last bits */
    const V n = whole - TG_SPREAD(TG_MAGIC);
    const V r = (x - n * TG_SPREAD(TG_LN2_HI)) - n * TG_SPREAD(TG_LN2_LO);
    V sum = TG_SPREAD(tg_inverse_factorials[0]);
    for (int k = 1; k < 12; k++)
        sum = sum * r + TG_SPREAD(tg_inverse_factorials[k]);
    sum = r + r * r * sum;
    V power; /* 2^n: the whole number moved up into the exponent */
#if TG_WIDTH == 1
    unsigned long long bits;
    memcpy(&bits, &whole, sizeof bits);
    bits = (bits << 52) + (1023ULL << 52);
    memcpy(&power, &bits, sizeof bits);
#else
    const TG_MASK one = (TG_MASK)TG_SPREAD(1.0);
    power = (V)(((TG_MASK)whole << 52) + one);
#endif
    return power * sum + (power - TG_SPREAD(1.0));
}

TG_INLINE V TG_FN(tanh)(V x)
{
    const V e = TG_FN(expm1)(TG_SPREAD(-2.0) * TG_ABS(x));
    const V t = e / (TG_SPREAD(2.0) + e); /* -tanh |x| */
    return TG_SELECT(TG_LT(x, TG_SPREAD(0.0)), t, TG_SPREAD(0.0) - t);
}

/* friction of joint j, taken off beta */
TG_INLINE V TG_FN(rubbed)(const tg_law *f, int j, V q, V qd, V g, V beta)
{
    const V dry = TG_FN(tanh)(qd * TG_SPREAD(f->scale[j]));
    if (f->plain)
        return beta - (TG_SPREAD(f->viscous[j]) * qd + TG_SPREAD(f->coulomb[j]) * dry);
    V sum = (TG_SPREAD(f->coulomb[j]) + TG_SPREAD(f->load[j]) * TG_ABS(g)) * dry;
    sum = sum + (TG_SPREAD(f->viscous[j]) + TG_SPREAD(f->quadratic[j]) * TG_ABS(qd)) * qd + TG_SPREAD(f->offset[j]);
    for (int k = 0; k < f->orders; k++) {
        V s, c;
        TG_FN(sincos)(TG_SPREAD(f->order[k]) * q, &s, &c);
        sum = sum + (TG_SPREAD(f->sine[j][k]) * s + TG_SPREAD(f->cosine[j][k]) * c);
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
            w[j] = TG_SPREAD(0.0) - TG_FN(expm1)(TG_SPREAD(0.0) - TG_SPREAD(K[j]) * span);
        TG_FN(scatter)(out + start * rates, w, rates, lanes);
    }
}
