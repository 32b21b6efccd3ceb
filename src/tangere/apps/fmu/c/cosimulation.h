/* Co-simulation: the block integrates and samples itself. */

#ifdef HAS_OBSERVER
#define TG_LIMITING "period and step_max" /* what the longest step comes from */
#else
#define TG_LIMITING "step_max"
#endif

/* a step failed: the states are again what they were before it, so that what can still be read are numbers */
static void failed_step(Instance *I, const double *states, double time)
{
    for (int i = 0; i < N_STATES; i++)
        I->now.real[tg_states[i]] = states[i];
    I->now.time = time;
    I->now.stale_outputs = 1;
    I->now.mode = FAILED;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DoStep)(fmi2Component c, fmi2Real time, fmi2Real h, fmi2Boolean no_set_prior)
{
    Instance *I = (Instance *)c;
    (void)no_set_prior;
    if (!allowed(I, "fmi2DoStep", STEPPING))
        return fmi2Error;
    Values *v = &I->now;
    const double end = time + h;
    const double slack = 1e-9 * (1.0 + fabs(v->time)); /* sums of steps round */
    if (!all_finite(&end, 1) || !(h > 0.0) || !(end > time))
        return say(I, fmi2Error, "fmi2DoStep: a step of %g s from %g s is none", h, time);
    if (fabs(time - v->time) > slack)
        return say(I, fmi2Error, "fmi2DoStep: the step begins at %.9g s, the block is at %.9g s", time, v->time);
    if (v->has_stop && end > v->stop_time + slack)
        return say(I, fmi2Error, "fmi2DoStep: the step ends at %.9g s, after the stop time %.9g s", end, v->stop_time);
    const double longest = block_longest(v);
    if (h > longest * (1.0 + 1e-9)) /* sums round; nothing was done, a shorter step may follow */
        return say(I, fmi2Discard, "fmi2DoStep: a step of %.9g s is too long for %s, one of %.9g s would do", h,
                   TG_LIMITING, longest);
    fmi2Status status = computed(I);
    if (status > fmi2Warning)
        return status;
    double states[TG_STATE(N_STATES)];
    for (int i = 0; i < N_STATES; i++)
        states[i] = v->real[tg_states[i]];
    v->time = time;
    const char *problem = block_step(v, h);
    if (problem) {
        failed_step(I, states, time);
        return say(I, fmi2Error, "fmi2DoStep from %.9g s: %s", time, problem);
    }
    v->time = end;
#if N_STATES || defined(HAS_OBSERVER)
    v->stale_outputs = 1;
    status = computed(I);
    if (status > fmi2Warning) {
        failed_step(I, states, time);
        return status;
    }
#endif
    block_commit(v);
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CancelStep)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2CancelStep", ANY_MODE))
        return fmi2Error;
    return say(I, fmi2Error, "fmi2CancelStep: no step is under way, they are never asynchronous");
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetRealInputDerivatives)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                              const fmi2Integer order[], const fmi2Real value[])
{
    Instance *I = (Instance *)c;
    (void)vr;
    (void)order;
    (void)value;
    if (!allowed(I, "fmi2SetRealInputDerivatives", INSTANTIATED | INITIALISING | STEPPING))
        return fmi2Error;
    return n ? say(I, fmi2Error, "fmi2SetRealInputDerivatives: inputs are held over a step, not interpolated") : fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealOutputDerivatives)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                               const fmi2Integer order[], fmi2Real value[])
{
    Instance *I = (Instance *)c;
    (void)vr;
    (void)order;
    (void)value;
    if (!allowed(I, "fmi2GetRealOutputDerivatives", STEPPING | TERMINATED | FAILED))
        return fmi2Error;
    return n ? say(I, fmi2Error, "fmi2GetRealOutputDerivatives: outputs are given without derivatives") : fmi2OK;
}

/* the answer to every question about asynchronous steps but one */
static fmi2Status no_status(const Instance *I, const char *function, const void *value)
{
    if (!allowed(I, function, STEPPING | TERMINATED | FAILED) || missing(I, function, "value", 1, value))
        return fmi2Error;
    return say(I, fmi2Discard, "%s: steps are never asynchronous", function);
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)kind;
    return no_status((Instance *)c, "fmi2GetStatus", value);
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    Instance *I = (Instance *)c;
    if (kind != fmi2LastSuccessfulTime)
        return no_status(I, "fmi2GetRealStatus", value);
    if (!allowed(I, "fmi2GetRealStatus", STEPPING | TERMINATED | FAILED) ||
        missing(I, "fmi2GetRealStatus", "value", 1, value))
        return fmi2Error;
    *value = I->now.time;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value)
{
    (void)kind;
    return no_status((Instance *)c, "fmi2GetIntegerStatus", value);
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    Instance *I = (Instance *)c;
    if (kind != fmi2Terminated)
        return no_status(I, "fmi2GetBooleanStatus", value);
    if (!allowed(I, "fmi2GetBooleanStatus", STEPPING | TERMINATED | FAILED) ||
        missing(I, "fmi2GetBooleanStatus", "value", 1, value))
        return fmi2Error;
    *value = fmi2False;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2String *value)
{
    (void)kind;
    return no_status((Instance *)c, "fmi2GetStringStatus", value);
}
