/* Inverse dynamics, and the controller that is made of it. */

static void inverse_torque(const Values *v, const double *q, const double *qd, const double *qdd, double *tau)
{
    double x[3 * DOF], friction[DOF];
    memcpy(x, q, DOF * sizeof(double));
    memcpy(x + DOF, qd, DOF * sizeof(double));
    memcpy(x + 2 * DOF, qdd, DOF * sizeof(double));
    tg_inverse_dynamics(x, v->P, tau);
    friction_torque(v->real, qd, friction);
    for (int i = 0; i < DOF; i++)
        tau[i] += friction[i];
}

#if defined(HAS_INVERSE) || !defined(HAS_PLANT)
static void inverse_torque_rate(const Values *v, const double *q, const double *qd, const double *qdd,
                                const double *dq, const double *dqd, const double *dqdd, double *tau)
{
    double M[DOF * DOF], slope[DOF];
    dynamics_rate(v->P, q, qd, qdd, dq, dqd, tau, M);
    friction_slope(v->real, qd, slope);
    for (int i = 0; i < DOF; i++)
        tau[i] += dot(M + DOF * i, dqdd, DOF) + slope[i] * dqd[i];
}
#endif

#ifdef HAS_INVERSE
static void inverse_outputs(Values *v)
{
    double *r = v->real;
    inverse_torque(v, r + ID_q, r + ID_qd, r + ID_qdd, r + ID_tau);
    tg_gravity_torque(r + ID_q, v->P, r + ID_g);
}

static void inverse_rates(const Values *v, const double *d, double *out)
{
    const double *r = v->real, zero[DOF] = {0};
    double M[DOF * DOF];
    inverse_torque_rate(v, r + ID_q, r + ID_qd, r + ID_qdd, d + ID_q, d + ID_qd, d + ID_qdd, out + ID_tau);
    dynamics_rate(v->P, r + ID_q, zero, zero, d + ID_q, zero, out + ID_g, M);
}
#endif

#ifdef HAS_CONTROL
#ifdef HAS_PLANT
#define CONTROL_Q PL_q
#define CONTROL_QD PL_qd
#else
#define CONTROL_Q CT_q
#define CONTROL_QD CT_qd
#endif

/* what computed torque asks of the arm; linear in x, so rates go the same way */
static void control_acceleration(const double *r, const double *x, double *qdd)
{
    for (int i = 0; i < DOF; i++) {
        const double P[] = {r[KP + i], r[KV + i]};
        const double in[] = {x[CONTROL_Q + i], x[CONTROL_QD + i], x[CT_q_des + i], x[CT_qd_des + i], x[CT_qdd_des + i]};
        tg_servo_acceleration(in, P, qdd + i);
    }
}

/* tau = M qdd + C qd + g + friction - J^T F */
static void control_outputs(Values *v)
{
    double qdd[DOF], *r = v->real;
    control_acceleration(r, r, qdd);
    inverse_torque(v, r + CONTROL_Q, r + CONTROL_QD, qdd, r + CT_tau);
#ifndef HAS_PLANT
    if (v->boolean[FEED])
        add_wrench(v->P, r + CT_q, r + CT_wrench, -1.0, r + CT_tau);
#endif
}

#ifndef HAS_PLANT
static void control_rates(const Values *v, const double *d, double *out)
{
    double qdd[DOF], d_qdd[DOF];
    const double *r = v->real;
    control_acceleration(r, r, qdd);
    control_acceleration(r, d, d_qdd);
    inverse_torque_rate(v, r + CT_q, r + CT_qd, qdd, d + CT_q, d + CT_qd, d_qdd, out + CT_tau);
    if (v->boolean[FEED])
        add_wrench_rate(v->P, r + CT_q, d + CT_q, r + CT_wrench, d + CT_wrench, -1.0, out + CT_tau);
}
#endif
#endif
