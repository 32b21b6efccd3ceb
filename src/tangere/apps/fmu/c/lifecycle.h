/* From fmi2Instantiate to fmi2FreeInstance. */

FMI2_EXPORT const char *FMI2_NAME(fmi2GetTypesPlatform)(void) { return "default"; }
FMI2_EXPORT const char *FMI2_NAME(fmi2GetVersion)(void) { return "2.0"; }

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetDebugLogging)(fmi2Component c, fmi2Boolean on, size_t n,
                                                      const fmi2String categories[])
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetDebugLogging", ANY_MODE) || missing(I, "fmi2SetDebugLogging", "categories", n, categories))
        return fmi2Error;
    unsigned chosen = n ? 0u : LOG_ALL;
    for (size_t k = 0; k < n; k++) {
        unsigned found = 0u;
        if (missing(I, "fmi2SetDebugLogging", "a category", 1, categories[k]))
            return fmi2Error;
        for (int status = fmi2OK; status <= fmi2Fatal; status++)
            if (strcmp(categories[k], tg_category((fmi2Status)status)) == 0)
                found = 1u << status;
        if (strcmp(categories[k], "logAll") == 0)
            found = LOG_ALL;
        if (!found)
            return say(I, fmi2Error, "fmi2SetDebugLogging: unknown category %.80s", categories[k]);
        chosen |= found;
    }
    I->log = on ? chosen : 0u;
    return fmi2OK;
}

FMI2_EXPORT fmi2Component FMI2_NAME(fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid,
                                                     fmi2String location, const fmi2CallbackFunctions *callbacks,
                                                     fmi2Boolean visible, fmi2Boolean logging)
{
    (void)visible;
    if (!callbacks)
        return NULL; /* nobody to tell */
    Instance asked; /* only for its voice */
    memset(&asked, 0, sizeof asked);
    char unnamed[] = "unnamed";
    asked.callbacks = *callbacks;
    asked.name = unnamed;
    asked.log = LOG_ALL; /* why there is no instance is always told: no status could */
    if (!name || !*name) {
        say(&asked, fmi2Error, "fmi2Instantiate: the instance has no name");
        return NULL;
    }
    const char *problem = NULL;
    if (!guid)
        problem = "no GUID was given";
    else if (type != fmi2ModelExchange && type != fmi2CoSimulation)
        problem = "the type is neither model exchange nor co-simulation";
    const size_t length = strlen(name);
    Instance *I = problem ? NULL : tg_allocate(callbacks, sizeof *I + length + 1);
    if (!problem && !I)
        problem = "there is no memory left";
    if (!problem) {
        memset(I, 0, sizeof *I);
        I->callbacks = *callbacks;
        I->name = (char *)(I + 1);
        memcpy(I->name, name, length + 1);
        I->log = logging ? LOG_ALL : 0u;
        I->file = tg_hash(guid, strlen(guid));
        problem = tg_load(callbacks, location, guid, &I->now);
    }
    if (problem) {
        say(&asked, fmi2Error, "fmi2Instantiate: %s", problem);
        if (I)
            tg_release(callbacks, I);
        return NULL;
    }
    I->now.type = (int)type;
    I->now.mode = INSTANTIATED;
    I->now.stale_parameters = I->now.stale_outputs = 1;
    memcpy(&I->fresh, &I->now, sizeof I->now);
    return I;
}

FMI2_EXPORT void FMI2_NAME(fmi2FreeInstance)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!I)
        return;
    const fmi2CallbackFunctions callbacks = I->callbacks;
    tg_release(&callbacks, I);
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetupExperiment)(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance,
                                                      fmi2Real start, fmi2Boolean has_stop, fmi2Real stop)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetupExperiment", INSTANTIATED))
        return fmi2Error;
    if (!all_finite(&start, 1) || (has_stop && !(all_finite(&stop, 1) && stop >= start)))
        return say(I, fmi2Error, "fmi2SetupExperiment: start and stop time must be finite and in this order");
    if (has_tolerance && !(tolerance > 0.0))
        return say(I, fmi2Error, "fmi2SetupExperiment: the tolerance must be positive");
    I->now.start_time = I->now.time = start;
    I->now.has_stop = has_stop != fmi2False;
    I->now.stop_time = stop;
    I->now.tolerance = has_tolerance ? tolerance : 0.0;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2EnterInitializationMode)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2EnterInitializationMode", INSTANTIATED))
        return fmi2Error;
    I->now.mode = INITIALISING;
    I->now.stale_outputs = 1;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2ExitInitializationMode)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2ExitInitializationMode", INITIALISING))
        return fmi2Error;
    I->now.stale_outputs = 1;
    const fmi2Status status = computed(I);
    if (status > fmi2Warning)
        return status;
    block_commit(&I->now); /* what follows goes on from the start: the same quaternion, the same solution */
    I->now.mode = I->now.type == (int)fmi2ModelExchange ? EVENT : STEPPING;
    return status;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Terminate)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2Terminate", EVENT | CONTINUOUS | STEPPING))
        return fmi2Error;
    I->now.mode = TERMINATED;
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2Reset)(fmi2Component c)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2Reset", ANY_MODE))
        return fmi2Error;
    memcpy(&I->now, &I->fresh, sizeof I->now);
    return fmi2OK;
}
