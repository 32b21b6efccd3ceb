/* What every block with masses needs: friction, and a wrench seen from the joints. */

/* whether xx, yy, zz, xy, xz, yz are of a body: no principal moment is larger than the other two together.
 *
 * Then S = tr(I) / 2 - I, the second moments of the mass, has no negative eigenvalue: no principal minor is negative.
 * A thin rod or disk has a zero there, which rounding may miss: by 1e-9 of the trace at most, for numbers of 9 digits.
 */
static int is_body(const double *m)
{
    const double half = 0.5 * (m[0] + m[1] + m[2]), slack = 2e-9 * half;
    const double a = half - m[0] + slack, b = half - m[1] + slack, c = half - m[2] + slack;
    const double ab = -m[3], ac = -m[4], bc = -m[5];
    return half >= 0.0 && a >= 0.0 && b >= 0.0 && c >= 0.0 && a * b >= ab * ab && a * c >= ac * ac &&
           b * c >= bc * bc && a * (b * c - bc * bc) - ab * (ab * c - bc * ac) + ac * (ab * bc - b * ac) >= 0.0;
}

/* NULL, or which inertia no body could have */
static const char *masses_problem(const double *r)
{
    static const char *const sentences[] = {
        "arm.inertia: no body has the inertia of link 1", "arm.inertia: no body has the inertia of link 2",
        "arm.inertia: no body has the inertia of link 3", "arm.inertia: no body has the inertia of link 4",
        "arm.inertia: no body has the inertia of link 5", "arm.inertia: no body has the inertia of link 6"};
    for (int i = 0; i < 6; i++)
        if (!is_body(r + INERTIA + 6 * i))
            return sentences[i];
    return is_body(r + LOAD_INERTIA) ? NULL : "payload.inertia: no body has this inertia";
}

/* coulomb tanh(qd / width) + viscous qd */
static void friction_torque(const double *r, const double *qd, double *torque)
{
    const double scale = 1.0 / r[WIDTH];
    for (int i = 0; i < 6; i++) {
        torque[i] = r[VISCOUS + i] * qd[i];
        if (r[COULOMB + i] > 0.0)
            torque[i] += tanh(qd[i] * scale) * r[COULOMB + i];
    }
}

#if defined(HAS_PLANT) || defined(HAS_INVERSE) || defined(HAS_CONTROL)
/* its derivative by qd, a diagonal */
static inline void friction_slope(const double *r, const double *qd, double *slope)
{
    const double scale = 1.0 / r[WIDTH];
    for (int i = 0; i < 6; i++) {
        const double t = tanh(qd[i] * scale);
        slope[i] = r[VISCOUS + i] + r[COULOMB + i] * scale * (1.0 - t * t);
    }
}
#endif

#if defined(HAS_PLANT) || defined(HAS_CONTROL)
static int any_nonzero(const double *x, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i] != 0.0)
            return 1;
    return 0;
}

/* tau += sign J(q)^T F */
static void add_wrench(const double *P, const double *q, const double *F, double sign, double *tau)
{
    double J[36];
    if (!any_nonzero(F, 6))
        return;
    tg_jacobian(q, P, J);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            tau[i] += sign * (J[6 * k + i] * F[k]);
}

/* tau += sign (dJ^T F + J^T dF) */
static inline void add_wrench_rate(const double *P, const double *q, const double *dq, const double *F, const double *dF,
                            double sign, double *tau)
{
    double x[12], dJ[36];
    add_wrench(P, q, dF, sign, tau);
    if (!any_nonzero(F, 6))
        return;
    memcpy(x, q, 6 * sizeof(double));
    memcpy(x + 6, dq, 6 * sizeof(double));
    tg_jacobian_rate(x, P, dJ);
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 6; k++)
            tau[i] += sign * (dJ[6 * k + i] * F[k]);
}
#endif

#if defined(HAS_PLANT) || defined(HAS_INVERSE) || defined(HAS_CONTROL)
/* tau = d(inverse dynamics) for rates of q and qd, and M (36): the part that follows qdd */
static inline void dynamics_rate(const double *P, const double *q, const double *qd, const double *qdd, const double *dq,
                          const double *dqd, double *tau, double *M)
{
    double x[18], D[108];
    memcpy(x, q, 6 * sizeof(double));
    memcpy(x + 6, qd, 6 * sizeof(double));
    memcpy(x + 12, qdd, 6 * sizeof(double));
    tg_inverse_dynamics_derivatives(x, P, D);
    for (int i = 0; i < 6; i++) {
        tau[i] = 0.0;
        for (int k = 0; k < 6; k++)
            tau[i] += D[6 * i + k] * dq[k] + D[36 + 6 * i + k] * dqd[k];
    }
    memcpy(M, D + 72, 36 * sizeof(double));
}
#endif
