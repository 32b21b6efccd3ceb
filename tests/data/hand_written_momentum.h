/* The momentum observer's arithmetic as it was written by hand before it was traced (kernels/joint_laws.py).
 * Kept for one release as an oracle: tests/test_laws.py finds the same bits.
 */
#define N 6
#define MAGIC 6755399441055744.0
#define LN2_HI 0x1.62e42feep-1       /* 33 bits: times a whole number below 2^20 it is exact */
#define LN2_LO 0x1.a39ef35793c76p-33 /* what is left of ln 2 */
/* 1/k!, k = 13 ... 2: the next term is 1e-17 of the first for |x| < ln 2 / 2 */
static const double inverse_factorials[] = {
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
    1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      1.0 / 2.0};

/* e^x - 1 for x <= 0, to about one unit in the last place */
static double hand_expm1(double x)
{
    x = x < -60.0 ? -60.0 : x; /* -1 to the last place long before */
    const double whole = x * 0x1.71547652b82fep+0 + MAGIC; /* x / ln 2, rounded in its last bits */
    const double n = whole - MAGIC;
    const double r = (x - n * LN2_HI) - n * LN2_LO;
    double sum = inverse_factorials[0];
    for (int k = 1; k < 12; k++)
        sum = sum * r + inverse_factorials[k];
    sum = r + r * r * sum;
    double power; /* 2^n: the whole number moved up into the exponent */
    unsigned long long bits;
    memcpy(&bits, &whole, sizeof bits);
    bits = (bits << 52) + (1023ULL << 52);
    memcpy(&power, &bits, sizeof bits);
    return power * sum + (power - 1.0);
}

static double hand_tanh(double x)
{
    const double e = hand_expm1(-2.0 * fabs(x));
    const double t = e / (2.0 + e); /* -tanh |x| */
    return x < 0.0 ? t : 0.0 - t;
}

/* rows of `terms`: coulomb, scale, viscous, quadratic, load, offset; ripple: sine and cosine of each order */
static double hand_rubbed(const double *terms, int plain, int orders, const double *order, const double *ripple, int j,
                          double q, double qd, double g, double beta)
{
    const double dry = hand_tanh(qd * terms[N + j]);
    if (plain)
        return beta - (terms[2 * N + j] * qd + terms[j] * dry);
    double sum = (terms[j] + terms[4 * N + j] * fabs(g)) * dry;
    sum = sum + (terms[2 * N + j] + terms[3 * N + j] * fabs(qd)) * qd + terms[5 * N + j];
    for (int k = 0; k < orders; k++) {
        double s, c;
        tg_sincos_test(order[k] * q, &s, &c);
        sum = sum + (ripple[(j * orders + k) * 2] * s + ripple[(j * orders + k) * 2 + 1] * c);
    }
    return beta - sum;
}

/* residuals (n, N) of samples h apart, from p, C^T qd and g (n, N) of the kernels */
void hand_residuals(int n, double h, const double *gain, const double *terms, int plain, int orders, const double *order,
                    const double *ripple, const double *q, const double *qd, const double *tau, const double *p,
                    const double *coriolis, const double *g, double *out)
{
    double r[N] = {0.0}, before[N] = {0.0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < N; j++) {
            const int k = i * N + j;
            double beta = coriolis[k] - g[k];
            if (terms)
                beta = hand_rubbed(terms, plain, orders, order, ripple, j, q[k], qd[k], g[k], beta);
            if (i > 0) {
                const double y = (p[k] - p[k - N]) / h - tau[k] - 0.5 * (before[j] + beta);
                const double w = 0.0 - hand_expm1(0.0 - gain[j] * h);
                r[j] = r[j] + w * (y - r[j]);
            }
            before[j] = beta;
            out[k] = r[j];
        }
}
