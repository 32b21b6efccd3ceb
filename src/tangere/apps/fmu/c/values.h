/* Reading and writing variables. */

enum { FIXED, TUNABLE, INPUT, COMPUTED }; /* tg_group.access */

/* the group that element i of a list of groups belongs to */
static const tg_group *group_of(const tg_group *groups, int count, int i)
{
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (groups[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return groups + low;
}

/* 0, or the sentence that says why a variable must not be set now */
static const char *locked(const Values *v, const tg_group *g)
{
    if (g->access == COMPUTED)
        return "is computed by the block and cannot be set";
    if (v->mode & (INSTANTIATED | INITIALISING))
        return NULL;
    if (g->access == FIXED)
        return "is a fixed parameter and can only be set before the simulation starts";
    if (g->access == TUNABLE && v->mode == CONTINUOUS)
        return "is a parameter and can only be set in event mode";
    return NULL;
}

/* whether a value reference is one of `total` from `base` */
static int known_reference(fmi2ValueReference vr, unsigned base, unsigned total)
{
    return vr - base < total; /* unsigned: what is below wraps round to far above */
}

static fmi2Status unknown_reference(const Instance *I, const char *function, unsigned reference)
{
    return say(I, fmi2Error, "%s: there is no such variable with value reference %u", function, reference);
}

/* outputs up to date; what is wrong with parameters or state is an error, a pose that has no solution a warning */
static fmi2Status computed(Instance *I)
{
    Values *v = &I->now;
    const char *problem = block_refresh(v);
    if (problem)
        return say(I, fmi2Error, "%s", problem);
    if (v->stale_outputs) {
        problem = block_outputs(v);
        v->stale_outputs = 0;
        v->notice = problem ? fmi2Warning : fmi2OK;
        if (problem)
            say(I, fmi2Warning, "%s", problem);
        if (!all_finite(v->real, N_REAL)) {
            v->stale_outputs = 1;
            return say(I, fmi2Error, "an output is not a finite number: the inputs are too large");
        }
    }
    return (fmi2Status)v->notice;
}

#define GETTABLE (INITIALISING | EVENT | CONTINUOUS | STEPPING | TERMINATED | FAILED)
#define SETTABLE (INSTANTIATED | INITIALISING | EVENT | CONTINUOUS | STEPPING)

/* the same for the three types: checks, references to elements, then `body` with element i and number k */
#define GETTER(function, type, base, total, array, body)                                                               \
    FMI2_EXPORT fmi2Status FMI2_NAME(function)(fmi2Component c, const fmi2ValueReference vr[], size_t n, type value[]) \
    {                                                                                                                  \
        Instance *I = (Instance *)c;                                                                                   \
        if (!allowed(I, #function, GETTABLE) || missing(I, #function, "vr", n, vr) ||                                  \
            missing(I, #function, "value", n, value))                                                                  \
            return fmi2Error;                                                                                          \
        for (size_t k = 0; k < n; k++)                                                                                 \
            if (!known_reference(vr[k], base, total))                                                                  \
                return unknown_reference(I, #function, vr[k]);                                                         \
        const fmi2Status status = computed(I);                                                                         \
        if (status > fmi2Warning)                                                                                      \
            return status;                                                                                             \
        for (size_t k = 0; k < n; k++) {                                                                               \
            const unsigned i = vr[k] - (base);                                                                         \
            body;                                                                                                      \
        }                                                                                                              \
        return status;                                                                                                 \
    }

GETTER(fmi2GetReal, fmi2Real, 0u, N_REAL, real, value[k] = I->now.real[i])
GETTER(fmi2GetInteger, fmi2Integer, INTEGER_BASE, N_INTEGER, integer, value[k] = I->now.integer[i])
GETTER(fmi2GetBoolean, fmi2Boolean, BOOLEAN_BASE, N_BOOLEAN, boolean, value[k] = I->now.boolean[i])

/* what the three setters check before anything is written */
static fmi2Status settable(const Instance *I, const char *function, const fmi2ValueReference vr[], size_t n,
                           unsigned base, int total, const tg_group *groups, int group_count)
{
    for (size_t k = 0; k < n; k++) {
        if (!known_reference(vr[k], base, (unsigned)total))
            return unknown_reference(I, function, vr[k]);
        const tg_group *g = group_of(groups, group_count, (int)(vr[k] - base));
        const char *problem = locked(&I->now, g);
        if (problem)
            return say(I, fmi2Error, "%s: %s %s", function, g->name, problem);
    }
    return fmi2OK;
}

/* a new value: outputs and, after a parameter, P are stale */
static void changed(Instance *I, const tg_group *g)
{
    I->now.stale_outputs = 1;
    if (g->access != INPUT)
        I->now.stale_parameters = 1;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetReal)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                              const fmi2Real value[])
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetReal", SETTABLE) || missing(I, "fmi2SetReal", "vr", n, vr) ||
        missing(I, "fmi2SetReal", "value", n, value))
        return fmi2Error;
    const fmi2Status status = settable(I, "fmi2SetReal", vr, n, 0, N_REAL, tg_reals, N_REAL_GROUPS);
    if (status != fmi2OK)
        return status;
    for (size_t k = 0; k < n; k++) {
        const tg_group *g = group_of(tg_reals, N_REAL_GROUPS, (int)vr[k]);
        if (!(value[k] >= g->low && value[k] <= g->high)) /* nan fails too */
            return say(I, fmi2Discard, "fmi2SetReal: %s, element %d: %g is not within %g and %g", g->name,
                       (int)vr[k] - g->first + 1, value[k], g->low, g->high);
    }
    for (size_t k = 0; k < n; k++) {
        I->now.real[vr[k]] = value[k];
        changed(I, group_of(tg_reals, N_REAL_GROUPS, (int)vr[k]));
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetInteger)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                 const fmi2Integer value[])
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetInteger", SETTABLE) || missing(I, "fmi2SetInteger", "vr", n, vr) ||
        missing(I, "fmi2SetInteger", "value", n, value))
        return fmi2Error;
    const fmi2Status status =
        settable(I, "fmi2SetInteger", vr, n, INTEGER_BASE, N_INTEGER, tg_integers, N_INTEGER_GROUPS);
    if (status != fmi2OK)
        return status;
    for (size_t k = 0; k < n; k++) {
        const tg_group *g = group_of(tg_integers, N_INTEGER_GROUPS, (int)(vr[k] - INTEGER_BASE));
        if (value[k] < g->low || value[k] > g->high)
            return say(I, fmi2Discard, "fmi2SetInteger: %s: %d is not within %g and %g", g->name, value[k], g->low,
                       g->high);
    }
    for (size_t k = 0; k < n; k++) {
        I->now.integer[vr[k] - INTEGER_BASE] = value[k];
        changed(I, group_of(tg_integers, N_INTEGER_GROUPS, (int)(vr[k] - INTEGER_BASE)));
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetBoolean)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                 const fmi2Boolean value[])
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetBoolean", SETTABLE) || missing(I, "fmi2SetBoolean", "vr", n, vr) ||
        missing(I, "fmi2SetBoolean", "value", n, value))
        return fmi2Error;
    const fmi2Status status =
        settable(I, "fmi2SetBoolean", vr, n, BOOLEAN_BASE, N_BOOLEAN, tg_booleans, N_BOOLEAN_GROUPS);
    if (status != fmi2OK)
        return status;
    for (size_t k = 0; k < n; k++) {
        I->now.boolean[vr[k] - BOOLEAN_BASE] = value[k] != fmi2False;
        changed(I, group_of(tg_booleans, N_BOOLEAN_GROUPS, (int)(vr[k] - BOOLEAN_BASE)));
    }
    return fmi2OK;
}

/* there are no strings */
FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetString)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                fmi2String value[])
{
    Instance *I = (Instance *)c;
    (void)value;
    if (!allowed(I, "fmi2GetString", GETTABLE) || missing(I, "fmi2GetString", "vr", n, vr))
        return fmi2Error;
    return n ? unknown_reference(I, "fmi2GetString", vr[0]) : fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetString)(fmi2Component c, const fmi2ValueReference vr[], size_t n,
                                                const fmi2String value[])
{
    Instance *I = (Instance *)c;
    (void)value;
    if (!allowed(I, "fmi2SetString", SETTABLE) || missing(I, "fmi2SetString", "vr", n, vr))
        return fmi2Error;
    return n ? unknown_reference(I, "fmi2SetString", vr[0]) : fmi2OK;
}
