/* The block as the runtime sees it: parameters, outputs, rates, steps and samples of the parts that it is made of. */

#define SAME_TIME 1e-6 /* of a period: two instants this close are one */
#define PERIODS_MAX 1e6 /* sampling periods in one step: a longer one is refused, it would take seconds */

/* P from the parameters, where one was changed; NULL, or what is impossible about them */
static const char *block_refresh(Values *v)
{
    if (!v->stale_parameters)
        return NULL;
#ifdef HAS_MASS
    const char *problem = masses_problem(v->real);
    if (problem)
        return problem;
    tg_parameters(v->real, NULL, v->P);
    if (!(v->real[MASS + DOF - 1] + v->real[LOAD_MASS] > 0.0))
        return "the last link and the payload together have no mass";
#else
    tg_kinematic_parameters(v->real, NULL, v->P);
#endif
    if (!all_finite(v->P, TG_PARAMETERS))
        return "the parameters are no numbers that an arm could have";
    v->stale_parameters = 0;
    return NULL;
}

/* while initialising, states and memories follow their start values */
static void block_start(Values *v)
{
#ifdef HAS_PLANT
    memcpy(v->real + PL_q, v->real + PL_q_start, DOF * sizeof(double));
    memcpy(v->real + PL_qd, v->real + PL_qd_start, DOF * sizeof(double));
#endif
#ifdef HAS_IK
    memcpy(v->memory + IK_before, v->real + IK_start, 6 * sizeof(double));
#endif
#if defined(HAS_PLANT) && defined(HAS_CONTROL)
    control_outputs(v);
#endif
    (void)v;
}

/* outputs from inputs, states and parameters; NULL, or a sentence about what could not be found */
static const char *block_outputs(Values *v)
{
    const char *notice = NULL;
    if (v->mode & (INSTANTIATED | INITIALISING))
        block_start(v);
#ifdef HAS_FK
    fk_outputs(v);
#endif
#ifdef HAS_IK
    notice = ik_outputs(v);
#endif
#ifdef HAS_PLANT
    plant_outputs(v);
#endif
#ifdef HAS_INVERSE
    inverse_outputs(v);
#endif
#if defined(HAS_CONTROL) && !defined(HAS_PLANT)
    control_outputs(v);
#endif
    return notice;
}

/* rates of all outputs and derivatives for rates d of inputs and states; nan where there is none */
static void block_rates(const Values *v, double *d, double *out)
{
#ifdef HAS_PLANT
    if (v->mode == INITIALISING)
        for (int i = 0; i < DOF; i++) {
            d[PL_q + i] += d[PL_q_start + i];
            d[PL_qd + i] += d[PL_qd_start + i];
        }
    plant_rates(v, d, out);
#endif
#ifdef HAS_FK
    fk_rates(v, d, out);
#endif
#ifdef HAS_IK
    ik_rates(v, d, out);
#endif
#ifdef HAS_INVERSE
    inverse_rates(v, d, out);
#endif
#if defined(HAS_CONTROL) && !defined(HAS_PLANT)
    control_rates(v, d, out);
#endif
    (void)v;
    (void)d;
    (void)out;
}

/* a step was accepted: what the next outputs must be continuous with */
static void block_commit(Values *v)
{
#ifdef HAS_FK
    memcpy(v->memory + FK_before, v->real + FK_quaternion, 4 * sizeof(double));
#endif
#ifdef HAS_PLANT
    memcpy(v->memory + PL_before, v->real + PL_quaternion, 4 * sizeof(double));
#endif
#ifdef HAS_IK
    if (v->boolean[IK_found])
        memcpy(v->memory + IK_before, v->real + IK_q, 6 * sizeof(double));
#endif
    (void)v;
}

#ifdef HAS_OBSERVER
/* when the next sample is due */
static double block_next(const Values *v)
{
    return v->start_time + v->memory[TICK] * v->real[PERIOD];
}

/* takes a sample if one is due */
static void block_sample(Values *v)
{
    const double period = v->real[PERIOD];
    const int again = v->memory[OB_anchored] > 0.5 && v->time == v->memory[OB_time];
    if (!again && v->time < block_next(v) - SAME_TIME * period)
        return;
    observer_sample(v);
#ifdef HAS_PLANT
    control_outputs(v);
    memcpy(v->memory + OB_torque, v->real + CT_tau, DOF * sizeof(double));
#endif
    v->memory[TICK] = floor((v->time - v->start_time) / period + SAME_TIME) + 1.0;
}
#endif

/* the longest step [s] that co-simulation takes */
static double block_longest(const Values *v)
{
#ifdef HAS_PLANT
    const double longest = SUBSTEPS_MAX * v->real[STEP_MAX];
#ifdef HAS_OBSERVER
    if (v->real[PERIOD] <= longest) /* it is cut into periods, each of them short enough */
        return PERIODS_MAX * v->real[PERIOD];
#endif
    return longest;
#else
    (void)v;
    return HUGE_VAL;
#endif
}

/* co-simulation from v->time over h with the inputs held; NULL, or what went wrong */
static const char *block_step(Values *v, double h)
{
#if defined(HAS_OBSERVER) && defined(HAS_PLANT)
    const double end = v->time + h, slack = SAME_TIME * v->real[PERIOD];
    while (v->time < end) {
        block_sample(v);
        const double next = block_next(v), until = next < end - slack ? next : end;
        const char *problem = plant_integrate(v, until - v->time);
        if (problem)
            return problem;
        v->time = until;
    }
#elif defined(HAS_OBSERVER)
    block_sample(v);
#elif defined(HAS_PLANT)
    return plant_integrate(v, h);
#endif
    (void)v;
    (void)h;
    return NULL;
}
