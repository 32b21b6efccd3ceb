/* An instance of FMI 3.0: one of FMI 2.0 and the host's voice. Statuses have the same numbers in both. */

typedef struct {
    fmi2Component block;
    fmi3LogMessageCallback log;
    fmi3InstanceEnvironment environment;
} Instance3;

/* what the block says, handed on to the host of FMI 3.0 */
static void tg3_log(fmi2ComponentEnvironment c, fmi2String name, fmi2Status status, fmi2String category,
                    fmi2String message, ...)
{
    /* functions are called what the host calls them */
    static const char *const names[][2] = {{"fmi2SetReal", "fmi3SetFloat64"}, {"fmi2SetInteger", "fmi3SetInt32"},
                                           {"fmi2DeSerializeFMUstate", "fmi3DeserializeFMUState"},
                                           {"fmi2GetDerivatives", "fmi3GetContinuousStateDerivatives"},
                                           {"fmi2", "fmi3"}};
    const Instance3 *A = (const Instance3 *)c;
    char text[440];
    (void)name;
    if (!A->log)
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i][0]);
        if (strncmp(message, names[i][0], n) == 0) {
            snprintf(text, sizeof text, "%s%s", names[i][1], message + n);
            message = text;
            break;
        }
    }
    A->log(A->environment, (fmi3Status)status, category, message);
}

/* the block inside; NULL where there is no instance */
static Instance *inside(fmi3Instance c) { return c ? (Instance *)((Instance3 *)c)->block : NULL; }

static fmi3Status said(fmi3Instance c, fmi3Status status, const char *function, const char *text)
{
    const Instance *I = inside(c);
    return I ? (fmi3Status)say(I, (fmi2Status)status, "%s: %s", function, text) : fmi3Error;
}

static fmi3Instance tg3_instantiate(fmi2Type type, fmi3String name, fmi3String token, fmi3String path, bool logging,
                                    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log)
{
    Instance3 *A = calloc(1, sizeof *A);
    if (!A)
        return NULL;
    A->log = log;
    A->environment = environment;
    const fmi2CallbackFunctions callbacks = {tg3_log, NULL, NULL, NULL, A};
    /* FMI 3.0 gives a path, FMI 2.0 a URI: a percent sign of the path must not count as the beginning of a code */
    char *uri = NULL;
    if (path) {
        uri = calloc(3 * strlen(path) + 1, 1);
        for (size_t i = 0, k = 0; uri && path[i]; i++) {
            if (path[i] == '%') {
                memcpy(uri + k, "%25", 3);
                k += 3;
            } else
                uri[k++] = path[i];
        }
    }
    A->block = FMI2_NAME(fmi2Instantiate)(name, type, token, uri, &callbacks, fmi2False, logging);
    free(uri);
    if (A->block)
        return A;
    free(A);
    return NULL;
}

FMI3_EXPORT const char *FMI3_NAME(fmi3GetVersion)(void) { return "3.0"; }

FMI3_EXPORT fmi3Instance FMI3_NAME(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token, fmi3String path,
                                                                 fmi3Boolean visible, fmi3Boolean logging,
                                                                 fmi3InstanceEnvironment environment,
                                                                 fmi3LogMessageCallback log)
{
    (void)visible;
    return tg3_instantiate(fmi2ModelExchange, name, token, path, logging, environment, log);
}

FMI3_EXPORT fmi3Instance FMI3_NAME(fmi3InstantiateCoSimulation)(
    fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible, fmi3Boolean logging,
    fmi3Boolean event_mode_used, fmi3Boolean early_return_allowed, const fmi3ValueReference intermediate[],
    size_t n_intermediate, fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update)
{
    (void)visible;
    (void)early_return_allowed;
    (void)intermediate;
    (void)update;
    if (event_mode_used || n_intermediate) {
        if (log)
            log(environment, fmi3Error, "logStatusError",
                "fmi3InstantiateCoSimulation: event mode and intermediate variables are not offered");
        return NULL;
    }
    return tg3_instantiate(fmi2CoSimulation, name, token, path, logging, environment, log);
}

FMI3_EXPORT fmi3Instance FMI3_NAME(fmi3InstantiateScheduledExecution)(
    fmi3String name, fmi3String token, fmi3String path, fmi3Boolean visible, fmi3Boolean logging,
    fmi3InstanceEnvironment environment, fmi3LogMessageCallback log, fmi3ClockUpdateCallback update,
    fmi3LockPreemptionCallback lock, fmi3UnlockPreemptionCallback unlock)
{
    (void)name;
    (void)token;
    (void)path;
    (void)visible;
    (void)logging;
    (void)update;
    (void)lock;
    (void)unlock;
    if (log)
        log(environment, fmi3Error, "logStatusError", "fmi3InstantiateScheduledExecution is not offered by this block");
    return NULL;
}

FMI3_EXPORT void FMI3_NAME(fmi3FreeInstance)(fmi3Instance c)
{
    if (!c)
        return;
    FMI2_NAME(fmi2FreeInstance)(inside(c));
    free(c);
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n,
                                                      const fmi3String categories[])
{
    return (fmi3Status)FMI2_NAME(fmi2SetDebugLogging)(inside(c), on, n, categories);
}
