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
    static const char *const sentences[] = {TG_INERTIA_SENTENCES};
    for (int i = 0; i < DOF; i++)
        if (!is_body(r + INERTIA + 6 * i))
            return sentences[i];
    return is_body(r + LOAD_INERTIA) ? NULL : "payload.inertia: no body has this inertia";
}

/* by joint: what the kernels of friction take beside the velocity */
static inline void friction_of(const double *r, int i, double *P)
{
    P[0] = r[COULOMB + i];
    P[1] = 1.0 / r[WIDTH];
    P[2] = r[VISCOUS + i];
}

static inline void friction_torque(const double *r, const double *qd, double *torque)
{
    double P[3];
    for (int i = 0; i < DOF; i++) {
        friction_of(r, i, P);
        tg_plain_friction(qd + i, P, torque + i);
    }
}

/* its derivative by qd, a diagonal */
static inline void friction_slope(const double *r, const double *qd, double *slope)
{
    double P[3];
    for (int i = 0; i < DOF; i++) {
        friction_of(r, i, P);
        tg_friction_slope(qd + i, P, slope + i);
    }
}

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
    double J[6 * DOF];
    if (!any_nonzero(F, 6))
        return;
    tg_jacobian(q, P, J);
    for (int i = 0; i < DOF; i++)
        for (int k = 0; k < 6; k++)
            tau[i] += sign * (J[DOF * k + i] * F[k]);
}

/* tau += sign (dJ^T F + J^T dF) */
static inline void add_wrench_rate(const double *P, const double *q, const double *dq, const double *F, const double *dF,
                            double sign, double *tau)
{
    double x[2 * DOF], dJ[6 * DOF];
    add_wrench(P, q, dF, sign, tau);
    if (!any_nonzero(F, 6))
        return;
    memcpy(x, q, DOF * sizeof(double));
    memcpy(x + DOF, dq, DOF * sizeof(double));
    tg_jacobian_rate(x, P, dJ);
    for (int i = 0; i < DOF; i++)
        for (int k = 0; k < 6; k++)
            tau[i] += sign * (dJ[DOF * k + i] * F[k]);
}
#endif

#if defined(HAS_PLANT) || defined(HAS_INVERSE) || defined(HAS_CONTROL)
/* tau = d(inverse dynamics) for rates of q and qd, and M (DOF, DOF): the part that follows qdd */
static inline void dynamics_rate(const double *P, const double *q, const double *qd, const double *qdd, const double *dq,
                          const double *dqd, double *tau, double *M)
{
    double x[3 * DOF], D[3 * DOF * DOF];
    memcpy(x, q, DOF * sizeof(double));
    memcpy(x + DOF, qd, DOF * sizeof(double));
    memcpy(x + 2 * DOF, qdd, DOF * sizeof(double));
    tg_inverse_dynamics_derivatives(x, P, D);
    for (int i = 0; i < DOF; i++) {
        tau[i] = 0.0;
        for (int k = 0; k < DOF; k++)
            tau[i] += D[DOF * i + k] * dq[k] + D[DOF * DOF + DOF * i + k] * dqd[k];
    }
    memcpy(M, D + 2 * DOF * DOF, DOF * DOF * sizeof(double));
}
#endif
