/* The momentum observer: r follows the external torque with a lag of 1 / K, from samples of q, qd and tau.
 *
 *   p = M qd,  beta = C^T qd - g - friction(qd)
 *   y_k = (p_k - p_{k-1}) / h - tau_{k-1} - (beta_{k-1} + beta_k) / 2,   r_k = r_{k-1} + (1 - exp(-K h)) (y_k - r_{k-1})
 */

#ifdef HAS_PLANT
#define OBSERVED_Q PL_q
#define OBSERVED_QD PL_qd
#define OBSERVED_TAU CT_tau
#else
#define OBSERVED_Q OB_q
#define OBSERVED_QD OB_qd
#define OBSERVED_TAU OB_tau
#endif

#define OB_SNAPSHOT (2 * DOF + DOF + 1) /* terms, torque, time: consecutive in memory */

/* p (DOF) and beta (DOF) */
static void observer_terms(const Values *v, double *terms)
{
    double x[2 * DOF], y[3 * DOF], friction[DOF];
    const double *r = v->real;
    memcpy(x, r + OBSERVED_Q, DOF * sizeof(double));
    memcpy(x + DOF, r + OBSERVED_QD, DOF * sizeof(double));
    tg_momentum_terms(x, v->P, y);
    friction_torque(r, x + DOF, friction);
    for (int i = 0; i < DOF; i++) {
        terms[i] = y[i];
        terms[DOF + i] = y[DOF + i] - y[2 * DOF + i] - friction[i];
    }
}

/* contact flag and joint from the residual, with hysteresis */
static void observer_detect(Values *v)
{
    const double *r = v->real;
    int above = 0, joint = 0;
    double largest = -1.0;
    for (int i = 0; i < DOF; i++) {
        const double size = fabs(r[OB_residual + i]);
        const double share = size / (r[ON + i] > 0.0 ? r[ON + i] : 1e-300);
        above |= size > r[(v->boolean[OB_contact] ? OFF : ON) + i];
        if (share > largest) {
            largest = share;
            joint = i + 1;
        }
    }
    if (above == v->boolean[OB_contact])
        return;
    v->boolean[OB_contact] = above;
    v->integer[OB_joint] = above ? joint : 0;
}

/* a sample now; asked twice at one instant, the second answer replaces the first */
static void observer_sample(Values *v)
{
    double terms[2 * DOF], *m = v->memory, *r = v->real;
    if (m[OB_anchored] > 0.5 && v->time == m[OB_time]) {
        if (m[OB_held] < 0.5) { /* the first sample of all: nothing to compare with */
            observer_terms(v, m + OB_terms);
            memcpy(m + OB_torque, r + OBSERVED_TAU, DOF * sizeof(double));
            return;
        }
        memcpy(m + OB_terms, m + OB_old, OB_SNAPSHOT * sizeof(double)); /* as it was before the first answer */
        memcpy(r + OB_residual, m + OB_old_residual, DOF * sizeof(double));
        v->boolean[OB_contact] = m[OB_old_contact] > 0.5;
        v->integer[OB_joint] = (int)m[OB_old_joint];
    }
    memcpy(m + OB_old, m + OB_terms, OB_SNAPSHOT * sizeof(double));
    memcpy(m + OB_old_residual, r + OB_residual, DOF * sizeof(double));
    m[OB_old_contact] = v->boolean[OB_contact];
    m[OB_old_joint] = v->integer[OB_joint];
    observer_terms(v, terms);
    const double h = v->time - m[OB_time];
    m[OB_held] = m[OB_anchored] > 0.5;
    if (m[OB_anchored] > 0.5 && h > 0.0)
        for (int i = 0; i < DOF; i++) {
            const double over[] = {m[OB_terms + i], terms[i], m[OB_terms + DOF + i], terms[DOF + i], m[OB_torque + i], h};
            double next[3] = {r[OB_residual + i]}; /* residual, mean external torque, weight */
            tg_momentum_balance(over, NULL, next + 1);
            tg_lag_weight(&h, r + GAIN + i, next + 2);
            tg_lag(next, NULL, r + OB_residual + i);
        }
    memcpy(m + OB_terms, terms, 2 * DOF * sizeof(double));
    memcpy(m + OB_torque, r + OBSERVED_TAU, DOF * sizeof(double));
    m[OB_time] = v->time;
    m[OB_anchored] = 1.0;
    observer_detect(v);
}
