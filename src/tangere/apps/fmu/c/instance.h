/* One instance of the block: its values, its mode, its voice. Nothing is shared between instances. */

#define TG_STATE(x) ((x) > 0 ? (x) : 1) /* arrays of C99 have at least one element */

/* modes of the state machine of FMI 2.0, as bits */
enum {
    INSTANTIATED = 1, INITIALISING = 2, EVENT = 4, CONTINUOUS = 8, STEPPING = 16, TERMINATED = 32, FAILED = 64
};
#define ANY_MODE 127

/* everything that changes: copied as it is by get, set and serialise */
typedef struct {
    double real[TG_STATE(N_REAL)];
    double time, start_time, stop_time, tolerance;
    double P[TG_PARAMETERS]; /* what the kernels take, computed from the parameters */
    double memory[TG_STATE(MEMORY)];
    int integer[TG_STATE(N_INTEGER)];
    int boolean[TG_STATE(N_BOOLEAN)];
    int mode, type;
    int has_stop;
    int stale_parameters, stale_outputs; /* P, or the outputs, must be computed before they are read */
    int notice;                          /* status of the last computation of the outputs: fmi2OK or fmi2Warning */
} Values;

typedef struct {
    Values now, fresh; /* fresh: as instantiated, for reset */
    fmi2CallbackFunctions callbacks;
    char *name;
    unsigned long long file; /* hash of the GUID: states of other files are refused */
    unsigned log;            /* categories that are told, a bit for each status */
} Instance;

#define LOG_ALL 31u /* fmi2OK ... fmi2Fatal */

static fmi2String tg_category(fmi2Status status)
{
    switch (status) {
    case fmi2OK: return "logEvents";
    case fmi2Warning: return "logStatusWarning";
    case fmi2Discard: return "logStatusDiscard";
    case fmi2Error: return "logStatusError";
    default: return "logStatusFatal";
    }
}

/* tells the host where it asked for this category, and returns the status, so that a refusal is one line */
static fmi2Status say(const Instance *I, fmi2Status status, const char *format, ...)
{
    char text[400];
    va_list arguments;
    if (!I->callbacks.logger || !(I->log & 1u << status))
        return status;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++)
        if (*c == '%' || *c == '#') /* both mean something to a logger of FMI 2.0 */
            *c = '.';
    I->callbacks.logger(I->callbacks.componentEnvironment, I->name, status, tg_category(status), text);
    return status;
}

/* Fowler, Noll and Vo's hash: notices bytes that were changed */
static unsigned long long tg_hash(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    unsigned long long h = 14695981039346656037ULL;
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * 1099511628211ULL;
    return h;
}

static const char *mode_name(int mode)
{
    switch (mode) {
    case INSTANTIATED: return "instantiated";
    case INITIALISING: return "initialization mode";
    case EVENT: return "event mode";
    case CONTINUOUS: return "continuous-time mode";
    case STEPPING: return "step mode";
    case TERMINATED: return "terminated";
    default: return "failed";
    }
}

/* whether the function may be called now; says why not */
static int allowed(const Instance *I, const char *function, int modes)
{
    if (!I)
        return 0;
    if (I->now.mode & modes)
        return 1;
    say(I, fmi2Error, "%s must not be called in this state (%s)", function, mode_name(I->now.mode));
    return 0;
}

/* a null pointer where numbers should be */
static int missing(const Instance *I, const char *function, const char *argument, size_t count, const void *pointer)
{
    if (pointer || !count)
        return 0;
    say(I, fmi2Error, "%s: %s is a null pointer", function, argument);
    return 1;
}

static void *tg_allocate(const fmi2CallbackFunctions *callbacks, size_t size)
{
    if (callbacks->allocateMemory && callbacks->freeMemory)
        return callbacks->allocateMemory(1, size);
    return calloc(1, size);
}

static void tg_release(const fmi2CallbackFunctions *callbacks, void *memory)
{
    if (callbacks->allocateMemory && callbacks->freeMemory)
        callbacks->freeMemory(memory);
    else
        free(memory);
}

static int all_finite(const double *x, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += 0.0 * x[i]; /* 0 times infinity is nan, and nan stays */
    return sum == 0.0;
}
