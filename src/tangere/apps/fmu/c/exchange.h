/* Model exchange: the host integrates. */

static int for_exchange(const Instance *I, const char *function)
{
    if (I->now.type == (int)fmi2ModelExchange)
        return 1;
    say(I, fmi2Error, "%s is for model exchange, this instance is for co-simulation", function);
    return 0;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterEventMode)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2EnterEventMode", EVENT | CONTINUOUS | STEPPING) || !for_exchange(I, "fmi2EnterEventMode"))
        return fmi2Error;
    I->now.mode = EVENT;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2NewDiscreteStates)(fmi2Component c, fmi2EventInfo *info)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2NewDiscreteStates", EVENT) || missing(I, "fmi2NewDiscreteStates", "eventInfo", 1, info))
        return fmi2Error;
    memset(info, 0, sizeof *info);
    fmi2Status status = computed(I);
    if (status > fmi2Warning)
        return status;
    block_commit(&I->now);
#ifdef HAS_OBSERVER
    const double before = I->now.memory[TICK];
    block_sample(&I->now);
    if (I->now.memory[TICK] != before)
        say(I, fmi2OK, "sample at %.9g s", I->now.time);
    I->now.stale_outputs = 1;
    status = computed(I);
    info->nextEventTimeDefined = fmi2True;
    info->nextEventTime = block_next(&I->now);
#endif
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterContinuousTimeMode)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2EnterContinuousTimeMode", EVENT))
        return fmi2Error;
    I->now.mode = CONTINUOUS;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2CompletedIntegratorStep)(fmi2Component c, fmi2Boolean no_set_state_prior,
                                                              fmi2Boolean *event, fmi2Boolean *terminate)
{
    Instance *I = (Instance *)c;
    (void)no_set_state_prior;
    if (!allowed(I, "fmi2CompletedIntegratorStep", CONTINUOUS) ||
        missing(I, "fmi2CompletedIntegratorStep", "enterEventMode", 1, event) ||
        missing(I, "fmi2CompletedIntegratorStep", "terminateSimulation", 1, terminate))
        return fmi2Error;
    *event = *terminate = fmi2False;
    const fmi2Status status = computed(I);
    if (status <= fmi2Warning)
        block_commit(&I->now);
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetTime)(fmi2Component c, fmi2Real time)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetTime", EVENT | CONTINUOUS))
        return fmi2Error;
    if (!all_finite(&time, 1))
        return say(I, fmi2Error, "fmi2SetTime: the time is not a finite number");
    I->now.time = time;
    return fmi2OK;
}

/* the number of states that a caller names */
static int counts(const Instance *I, const char *function, size_t n, int right)
{
    if (n == (size_t)right)
        return 1;
    say(I, fmi2Error, "%s: %lu values were asked for, there are %d", function, (unsigned long)n, right);
    return 0;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetContinuousStates)(fmi2Component c, const fmi2Real x[], size_t n)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetContinuousStates", CONTINUOUS) || missing(I, "fmi2SetContinuousStates", "x", n, x) ||
        !counts(I, "fmi2SetContinuousStates", n, N_STATES))
        return fmi2Error;
    for (size_t k = 0; k < n; k++)
        if (!(fabs(x[k]) <= ANGLE_MAX))
            return say(I, fmi2Discard, "fmi2SetContinuousStates: state %lu is %g", (unsigned long)k + 1, x[k]);
    for (size_t k = 0; k < n; k++)
        I->now.real[tg_states[k]] = x[k];
    I->now.stale_outputs = 1;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetContinuousStates)(fmi2Component c, fmi2Real x[], size_t n)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2GetContinuousStates", GETTABLE) || !for_exchange(I, "fmi2GetContinuousStates") ||
        missing(I, "fmi2GetContinuousStates", "x", n, x) || !counts(I, "fmi2GetContinuousStates", n, N_STATES))
        return fmi2Error;
    const fmi2Status status = computed(I);
    for (size_t k = 0; k < n; k++)
        x[k] = I->now.real[tg_states[k]];
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetDerivatives)(fmi2Component c, fmi2Real derivatives[], size_t n)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2GetDerivatives", GETTABLE) || !for_exchange(I, "fmi2GetDerivatives") ||
        missing(I, "fmi2GetDerivatives", "derivatives", n, derivatives) ||
        !counts(I, "fmi2GetDerivatives", n, N_STATES))
        return fmi2Error;
    const fmi2Status status = computed(I);
    if (status > fmi2Warning)
        return status;
    for (size_t k = 0; k < n; k++)
        derivatives[k] = I->now.real[tg_derivatives[k]];
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetEventIndicators)(fmi2Component c, fmi2Real indicators[], size_t n)
{
    Instance *I = (Instance *)c;
    (void)indicators;
    if (!allowed(I, "fmi2GetEventIndicators", GETTABLE) || !for_exchange(I, "fmi2GetEventIndicators") ||
        !counts(I, "fmi2GetEventIndicators", n, 0))
        return fmi2Error;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetNominalsOfContinuousStates)(fmi2Component c, fmi2Real nominals[], size_t n)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2GetNominalsOfContinuousStates", ANY_MODE) ||
        !for_exchange(I, "fmi2GetNominalsOfContinuousStates") ||
        missing(I, "fmi2GetNominalsOfContinuousStates", "x_nominal", n, nominals) ||
        !counts(I, "fmi2GetNominalsOfContinuousStates", n, N_STATES))
        return fmi2Error;
    for (size_t k = 0; k < n; k++)
        nominals[k] = 1.0; /* rad, rad/s */
    return fmi2OK;
}
