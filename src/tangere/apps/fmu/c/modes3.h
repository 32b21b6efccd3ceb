/* From initialisation to the last step, states and derivatives: calls of FMI 3.0 as calls of the block. */

#define HANDED(c, call) ((fmi3Status)FMI2_NAME(call)(inside(c)))

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance,
                                                              fmi3Float64 tolerance, fmi3Float64 start,
                                                              fmi3Boolean has_stop, fmi3Float64 stop)
{
    Instance *I = inside(c);
    const fmi2Status status = FMI2_NAME(fmi2SetupExperiment)(I, has_tolerance, tolerance, start, has_stop, stop);
    return status > fmi2Warning ? (fmi3Status)status : HANDED(c, fmi2EnterInitializationMode);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3ExitInitializationMode)(fmi3Instance c)
{
    return HANDED(c, fmi2ExitInitializationMode);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EnterEventMode)(fmi3Instance c) { return HANDED(c, fmi2EnterEventMode); }
FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Terminate)(fmi3Instance c) { return HANDED(c, fmi2Terminate); }
FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Reset)(fmi3Instance c) { return HANDED(c, fmi2Reset); }

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EnterContinuousTimeMode)(fmi3Instance c)
{
    return HANDED(c, fmi2EnterContinuousTimeMode);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EnterConfigurationMode)(fmi3Instance c)
{
    return said(c, fmi3Error, "fmi3EnterConfigurationMode", "there are no structural parameters");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3ExitConfigurationMode)(fmi3Instance c)
{
    return said(c, fmi3Error, "fmi3ExitConfigurationMode", "there are no structural parameters");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EnterStepMode)(fmi3Instance c)
{
    return said(c, fmi3Error, "fmi3EnterStepMode", "co-simulation has no event mode here");
}

/* variables that depend on each other are listed in modelDescription.xml, for good */
FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetNumberOfVariableDependencies)(fmi3Instance c, fmi3ValueReference vr, size_t *n)
{
    (void)vr;
    (void)n;
    return said(c, fmi3Error, "fmi3GetNumberOfVariableDependencies", "the dependencies are those of the description");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetVariableDependencies)(fmi3Instance c, fmi3ValueReference dependent,
                                                              size_t of[], fmi3ValueReference independent[],
                                                              size_t elements[], fmi3DependencyKind kinds[], size_t n)
{
    (void)dependent;
    (void)of;
    (void)independent;
    (void)elements;
    (void)kinds;
    (void)n;
    return said(c, fmi3Error, "fmi3GetVariableDependencies", "the dependencies are those of the description");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    return (fmi3Status)FMI2_NAME(fmi2GetFMUstate)(inside(c), state);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state)
{
    return (fmi3Status)FMI2_NAME(fmi2SetFMUstate)(inside(c), state);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    return (fmi3Status)FMI2_NAME(fmi2FreeFMUstate)(inside(c), state);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t *size)
{
    return (fmi3Status)FMI2_NAME(fmi2SerializedFMUstateSize)(inside(c), state, size);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2SerializeFMUstate)(inside(c), state, (fmi2Byte *)bytes, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3DeserializeFMUState)(fmi3Instance c, const fmi3Byte bytes[], size_t n,
                                                          fmi3FMUState *state)
{
    return (fmi3Status)FMI2_NAME(fmi2DeSerializeFMUstate)(inside(c), (const fmi2Byte *)bytes, n, state);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetDirectionalDerivative)(fmi3Instance c, const fmi3ValueReference unknown[],
                                                               size_t n_unknown, const fmi3ValueReference known[],
                                                               size_t n_known, const fmi3Float64 seed[], size_t n_seed,
                                                               fmi3Float64 sensitivity[], size_t n_sensitivity)
{
    static const char function[] = "fmi3GetDirectionalDerivative";
    Instance *I = inside(c);
    fmi2ValueReference u[ROOM_REAL], k[ROOM_REAL];
    if (!allowed(I, function, GETTABLE))
        return fmi3Error;
    const long nu = expanded(I, function, tg_float64s, N_FLOAT64S, 0u, unknown, n_unknown, n_sensitivity, u, ROOM_REAL);
    const long nk = expanded(I, function, tg_float64s, N_FLOAT64S, 0u, known, n_known, n_seed, k, ROOM_REAL);
    if (nu < 0 || nk < 0)
        return fmi3Error;
    return (fmi3Status)FMI2_NAME(fmi2GetDirectionalDerivative)(I, u, (size_t)nu, k, (size_t)nk, seed, sensitivity);
}

/* J^T s, a column of J at a time: as many directional derivatives as there are known elements */
FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetAdjointDerivative)(fmi3Instance c, const fmi3ValueReference unknown[],
                                                           size_t n_unknown, const fmi3ValueReference known[],
                                                           size_t n_known, const fmi3Float64 seed[], size_t n_seed,
                                                           fmi3Float64 sensitivity[], size_t n_sensitivity)
{
    static const char function[] = "fmi3GetAdjointDerivative";
    Instance *I = inside(c);
    fmi2ValueReference u[ROOM_REAL], k[ROOM_REAL];
    double column[ROOM_REAL] = {0};
    if (!allowed(I, function, GETTABLE) || missing(I, function, "seed", n_seed, seed) ||
        missing(I, function, "sensitivity", n_sensitivity, sensitivity))
        return fmi3Error;
    const long nu = expanded(I, function, tg_float64s, N_FLOAT64S, 0u, unknown, n_unknown, n_seed, u, ROOM_REAL);
    const long nk = expanded(I, function, tg_float64s, N_FLOAT64S, 0u, known, n_known, n_sensitivity, k, ROOM_REAL);
    if (nu < 0 || nk < 0)
        return fmi3Error;
    if (!all_finite(seed, (int)nu))
        return said(c, fmi3Error, function, "a seed is not a finite number");
    const double one = 1.0;
    for (long j = 0; j < nk; j++) {
        const fmi2Status status = FMI2_NAME(fmi2GetDirectionalDerivative)(I, u, (size_t)nu, k + j, 1, &one, column);
        if (status > fmi2Warning)
            return (fmi3Status)status;
        sensitivity[j] = 0.0;
        for (long i = 0; i < nu; i++)
            sensitivity[j] += column[i] * seed[i];
    }
    return fmi3OK;
}

#define NO_CLOCKS(function, ...)                                                                                       \
    FMI3_EXPORT fmi3Status FMI3_NAME(function)(fmi3Instance c, const fmi3ValueReference vr[], size_t n, __VA_ARGS__)

NO_CLOCKS(fmi3GetIntervalDecimal, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
{
    (void)intervals;
    (void)qualifiers;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3GetIntervalDecimal", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3GetIntervalFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])
{
    (void)counters;
    (void)resolutions;
    (void)qualifiers;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3GetIntervalFraction", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3GetShiftDecimal, fmi3Float64 shifts[])
{
    (void)shifts;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3GetShiftDecimal", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3GetShiftFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3GetShiftFraction", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3SetIntervalDecimal, const fmi3Float64 intervals[])
{
    (void)intervals;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3SetIntervalDecimal", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3SetIntervalFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3SetIntervalFraction", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3SetShiftDecimal, const fmi3Float64 shifts[])
{
    (void)shifts;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3SetShiftDecimal", "there are no clocks") : fmi3OK;
}
NO_CLOCKS(fmi3SetShiftFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)counters;
    (void)resolutions;
    (void)vr;
    return n ? said(c, fmi3Error, "fmi3SetShiftFraction", "there are no clocks") : fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3ActivateModelPartition)(fmi3Instance c, fmi3ValueReference clock, fmi3Float64 time)
{
    (void)clock;
    (void)time;
    return said(c, fmi3Error, "fmi3ActivateModelPartition", "there are no clocks");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3EvaluateDiscreteStates)(fmi3Instance c)
{
    return allowed(inside(c), "fmi3EvaluateDiscreteStates", INITIALISING | EVENT) ? fmi3OK : fmi3Error;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *need_update,
                                                           fmi3Boolean *terminate, fmi3Boolean *nominals_changed,
                                                           fmi3Boolean *values_changed, fmi3Boolean *next_defined,
                                                           fmi3Float64 *next)
{
    static const char function[] = "fmi3UpdateDiscreteStates";
    Instance *I = inside(c);
    fmi2EventInfo info;
    memset(&info, 0, sizeof info);
    if (!allowed(I, function, EVENT) || missing(I, function, "discreteStatesNeedUpdate", 1, need_update) ||
        missing(I, function, "terminateSimulation", 1, terminate) ||
        missing(I, function, "nominalsOfContinuousStatesChanged", 1, nominals_changed) ||
        missing(I, function, "valuesOfContinuousStatesChanged", 1, values_changed) ||
        missing(I, function, "nextEventTimeDefined", 1, next_defined) ||
        missing(I, function, "nextEventTime", 1, next))
        return fmi3Error;
    const fmi2Status status = FMI2_NAME(fmi2NewDiscreteStates)(I, &info);
    *need_update = info.newDiscreteStatesNeeded != fmi2False;
    *terminate = info.terminateSimulation != fmi2False;
    *nominals_changed = info.nominalsOfContinuousStatesChanged != fmi2False;
    *values_changed = info.valuesOfContinuousStatesChanged != fmi2False;
    *next_defined = info.nextEventTimeDefined != fmi2False;
    *next = info.nextEventTime;
    return (fmi3Status)status;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean no_set_prior,
                                                              fmi3Boolean *event, fmi3Boolean *terminate)
{
    static const char function[] = "fmi3CompletedIntegratorStep";
    Instance *I = inside(c);
    fmi2Boolean enter = fmi2False, end = fmi2False;
    if (!allowed(I, function, CONTINUOUS) || missing(I, function, "enterEventMode", 1, event) ||
        missing(I, function, "terminateSimulation", 1, terminate))
        return fmi3Error;
    const fmi2Status status = FMI2_NAME(fmi2CompletedIntegratorStep)(I, no_set_prior, &enter, &end);
    *event = enter != fmi2False;
    *terminate = end != fmi2False;
    return (fmi3Status)status;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetTime)(fmi3Instance c, fmi3Float64 time)
{
    return (fmi3Status)FMI2_NAME(fmi2SetTime)(inside(c), time);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetContinuousStates)(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2SetContinuousStates)(inside(c), x, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetContinuousStates)(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2GetContinuousStates)(inside(c), x, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetContinuousStateDerivatives)(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2GetDerivatives)(inside(c), x, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetEventIndicators)(fmi3Instance c, fmi3Float64 indicators[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2GetEventIndicators)(inside(c), indicators, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetNominalsOfContinuousStates)(fmi3Instance c, fmi3Float64 nominals[], size_t n)
{
    return (fmi3Status)FMI2_NAME(fmi2GetNominalsOfContinuousStates)(inside(c), nominals, n);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetNumberOfEventIndicators)(fmi3Instance c, size_t *n)
{
    if (!inside(c) || missing(inside(c), "fmi3GetNumberOfEventIndicators", "nEventIndicators", 1, n))
        return fmi3Error;
    *n = 0;
    return fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetNumberOfContinuousStates)(fmi3Instance c, size_t *n)
{
    if (!inside(c) || missing(inside(c), "fmi3GetNumberOfContinuousStates", "nContinuousStates", 1, n))
        return fmi3Error;
    *n = N_STATES;
    return fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetOutputDerivatives)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                                           const fmi3Int32 orders[], fmi3Float64 values[],
                                                           size_t n_values)
{
    (void)vr;
    (void)orders;
    (void)values;
    return n || n_values ? said(c, fmi3Error, "fmi3GetOutputDerivatives", "outputs are given without derivatives")
                         : fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3DoStep)(fmi3Instance c, fmi3Float64 time, fmi3Float64 h, fmi3Boolean no_set_prior,
                                             fmi3Boolean *event_needed, fmi3Boolean *terminate, fmi3Boolean *early,
                                             fmi3Float64 *last)
{
    static const char function[] = "fmi3DoStep";
    Instance *I = inside(c);
    if (!allowed(I, function, STEPPING) || missing(I, function, "eventHandlingNeeded", 1, event_needed) ||
        missing(I, function, "terminateSimulation", 1, terminate) || missing(I, function, "earlyReturn", 1, early) ||
        missing(I, function, "lastSuccessfulTime", 1, last))
        return fmi3Error;
    *event_needed = *terminate = *early = false;
    const fmi2Status status = FMI2_NAME(fmi2DoStep)(I, time, h, no_set_prior);
    *last = I->now.time;
    return (fmi3Status)status;
}
