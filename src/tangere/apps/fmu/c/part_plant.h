/* The moving arm: M qdd + C qd + g + friction = tau + tau_ext + J^T wrench. */

#define STIFFNESS_MAX 1.0 /* step times the fastest rate of friction: Runge-Kutta of order 4 is stable up to 2.8 */
#define SUBSTEPS_MAX 100000 /* a longer step is refused: it would take seconds */

#ifdef HAS_CONTROL
#define PLANT_TAU CT_tau /* the arm's torque is the controller's */
#else
#define PLANT_TAU PL_tau
#endif

static void plant_acceleration(const Values *v, const double *q, const double *qd, double *qdd)
{
    double x[3 * DOF], friction[DOF];
    const double *r = v->real;
    memcpy(x, q, DOF * sizeof(double));
    memcpy(x + DOF, qd, DOF * sizeof(double));
    friction_torque(r, qd, friction);
    for (int i = 0; i < DOF; i++)
        x[2 * DOF + i] = r[PLANT_TAU + i] + r[PL_tau_ext + i] - friction[i];
    add_wrench(v->P, q, r + PL_wrench, 1.0, x + 2 * DOF);
    tg_forward_dynamics(x, v->P, qdd);
}

static void plant_derivatives(Values *v)
{
    double *r = v->real;
    memcpy(r + PL_dq, r + PL_qd, DOF * sizeof(double));
    plant_acceleration(v, r + PL_q, r + PL_qd, r + PL_qdd);
}

static void plant_outputs(Values *v)
{
    double T[16], x[2 * DOF], energy[2], *r = v->real;
    plant_derivatives(v);
    memcpy(x, r + PL_q, DOF * sizeof(double));
    memcpy(x + DOF, r + PL_qd, DOF * sizeof(double));
    tg_energy(x, v->P, energy);
    r[PL_kinetic] = energy[0];
    r[PL_potential] = energy[1];
    tg_pose(r + PL_q, v->P, T);
    pose_forms(T, v->memory + PL_before, v->integer[SIGN], r + PL_position, r + PL_R, r + PL_quaternion, r + PL_ypr);
}

static void plant_rates(const Values *v, const double *d, double *out)
{
    double M[DOF * DOF], torque[DOF], friction[DOF], J[6 * DOF], twist[6], x[2 * DOF], terms[3 * DOF];
    const double *r = v->real, *dq = d + PL_q, *dqd = d + PL_qd;
    memcpy(out + PL_q, dq, DOF * sizeof(double));
    memcpy(out + PL_qd, dqd, DOF * sizeof(double));
    memcpy(out + PL_dq, dqd, DOF * sizeof(double));
    /* d qdd = M^-1 (d tau - d(inverse dynamics) - d friction) */
    dynamics_rate(v->P, r + PL_q, r + PL_qd, r + PL_qdd, dq, dqd, torque, M);
    friction_slope(r, r + PL_qd, friction);
    for (int i = 0; i < DOF; i++)
        out[PL_qdd + i] = d[PLANT_TAU + i] + d[PL_tau_ext + i] - torque[i] - friction[i] * dqd[i];
    add_wrench_rate(v->P, r + PL_q, dq, r + PL_wrench, d + PL_wrench, 1.0, out + PL_qdd);
    /* the slopes of the kinetic energy are p = M qd and C^T qd, that of the potential energy is g */
    memcpy(x, r + PL_q, DOF * sizeof(double));
    memcpy(x + DOF, r + PL_qd, DOF * sizeof(double));
    tg_momentum_terms(x, v->P, terms);
    out[PL_kinetic] = dot(terms, dqd, DOF) + dot(terms + DOF, dq, DOF);
    out[PL_potential] = dot(terms + 2 * DOF, dq, DOF);
    tg_jacobian(r + PL_q, v->P, J);
    for (int i = 0; i < 6; i++)
        twist[i] = dot(J + DOF * i, dq, DOF);
    pose_rates(twist, r + PL_R, r + PL_quaternion, r + PL_ypr, out + PL_position, out + PL_R, out + PL_quaternion,
               out + PL_ypr);
    if (!cholesky(M)) {
        for (int i = 0; i < DOF; i++)
            out[PL_qdd + i] = NAN;
        return;
    }
    cholesky_solve(M, out + PL_qdd);
}

/* one classical Runge-Kutta step of length h with everything else held */
static void plant_runge_kutta(Values *v, double h)
{
    double a[4][DOF], w[4][DOF], p[DOF];
    double *q = v->real + PL_q, *qd = v->real + PL_qd;
    static const double at[4] = {0.0, 0.5, 0.5, 1.0};
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < DOF; i++) {
            w[s][i] = s ? qd[i] + (at[s] * h) * a[s - 1][i] : qd[i];
            p[i] = s ? q[i] + (at[s] * h) * w[s - 1][i] : q[i];
        }
        plant_acceleration(v, p, w[s], a[s]);
    }
    for (int i = 0; i < DOF; i++) {
        q[i] += (h / 6.0) * (w[0][i] + 2.0 * (w[1][i] + w[2][i]) + w[3][i]);
        qd[i] += (h / 6.0) * (a[0][i] + 2.0 * (a[1][i] + a[2][i]) + a[3][i]);
    }
}

/* an upper bound of the rates [1/s] at which friction acts: the trace of M^-1 diag(slope at rest) */
static double plant_rate(const Values *v)
{
    double M[DOF * DOF], rate = 0.0;
    const double *r = v->real;
    if (!any_nonzero(r + COULOMB, DOF) && !any_nonzero(r + VISCOUS, DOF))
        return 0.0;
    tg_mass_matrix(r + PL_q, v->P, M);
    if (!cholesky(M))
        return HUGE_VAL;
    for (int i = 0; i < DOF; i++) {
        double column[DOF] = {0};
        column[i] = 1.0;
        cholesky_solve(M, column);
        rate += column[i] * (r[COULOMB + i] / r[WIDTH] + r[VISCOUS + i]);
    }
    return rate;
}

/* integrates over h in equal steps, short enough for step_max and for friction; NULL, or what went wrong */
static const char *plant_integrate(Values *v, double h)
{
    double n = ceil(h / v->real[STEP_MAX] - 1e-9);
    const double stiff = ceil(h * plant_rate(v) / STIFFNESS_MAX);
    n = n > stiff ? n : stiff;
    if (!(n <= SUBSTEPS_MAX))
        return "friction is too steep for the inertia that it acts on";
    const int count = n < 1.0 ? 1 : (int)n;
    for (int i = 0; i < count; i++)
        plant_runge_kutta(v, h / count);
    if (!all_finite(v->real + PL_q, 2 * DOF))
        return "the motion left the finite numbers";
    for (int i = 0; i < DOF; i++)
        if (fabs(v->real[PL_q + i]) > ANGLE_MAX)
            return "a joint went farther than 1e6 rad or m";
    return NULL;
}
