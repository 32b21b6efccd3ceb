/* A library of FMI 3.0 in the hands of a host that speaks FMI 2.0: functions of 2.0 before those of 3.0.
 *
 * An array has one value reference in FMI 3.0. The host names elements, by numbers that it has given them before the
 * first instance (the command `array`); here they become whole arrays again.
 */
#ifndef TG_DRIVER_FMI3_H
#define TG_DRIVER_FMI3_H

#include "driver.h"
#include "driver_calls3.h"

#define WIDE3 4096   /* elements of one call */
#define ARRAYS3 2048 /* variables */

typedef struct {
    char type; /* letter of TYPES3 */
    fmi2ValueReference first;
    fmi3ValueReference reference;
    size_t size;
} Array3;

typedef struct {
    In c;
    double start; /* of time: FMI 2.0 names it earlier than 3.0 */
} Instance3;

static struct {
#define MEMBER(name, result, arguments) result(*name) arguments;
    FUNCTIONS3(MEMBER)
#undef MEMBER
} f3;
static Array3 arrays3[ARRAYS3];
static size_t arrays3_count;
static double elements3[WIDE3];

static In of3(Comp c) { return ((Instance3 *)c)->c; }

static void hear3(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String text)
{
    hear(environment, NULL, (fmi2Status)status, category, "%s", text ? text : "");
}

/* the array that an element belongs to, NULL where there is none: they are in order */
static const Array3 *array3_of(fmi2ValueReference element)
{
    size_t low = 0, high = arrays3_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (element < arrays3[middle].first)
            high = middle;
        else if (element - arrays3[middle].first >= arrays3[middle].size)
            low = middle + 1;
        else
            return arrays3 + middle;
    }
    return NULL;
}

static int add_array3(char type, fmi2ValueReference first, fmi3ValueReference reference, size_t size)
{
    const Array3 a = {type, first, reference, size};
    const Array3 *last = arrays3_count ? arrays3 + arrays3_count - 1 : NULL;
    if (arrays3_count == ARRAYS3 || !size || size > WIDE3 || (last && first < last->first + last->size))
        return 1;
    arrays3[arrays3_count++] = a;
    return 0;
}

static fmi2Status get_array3(In c, const Array3 *a)
{
    fmi3Status status = fmi3Error;
    switch (a->type) {
#define GET(letter, Type, kind)                                                                                        \
    case letter: {                                                                                                     \
        static kind values[WIDE3];                                                                                     \
        status = f3.fmi3Get##Type(c, &a->reference, 1, values, a->size);                                               \
        for (size_t i = 0; i < a->size; i++)                                                                           \
            elements3[i] = (double)values[i];                                                                          \
        break;                                                                                                         \
    }
        TYPES3(GET)
#undef GET
    }
    return (fmi2Status)status;
}

static fmi2Status set_array3(In c, const Array3 *a)
{
    fmi3Status status = fmi3Error;
    switch (a->type) {
#define SET(letter, Type, kind)                                                                                        \
    case letter: {                                                                                                     \
        static kind values[WIDE3];                                                                                     \
        for (size_t i = 0; i < a->size; i++)                                                                           \
            values[i] = (kind)elements3[i];                                                                            \
        status = f3.fmi3Set##Type(c, &a->reference, 1, values, a->size);                                               \
        break;                                                                                                         \
    }
        TYPES3(SET)
#undef SET
    }
    return (fmi2Status)status;
}

/* what is no element is asked for as it is, to be refused */
static fmi2Status refused3(In c, fmi2ValueReference reference)
{
    const fmi3ValueReference unknown = reference;
    return (fmi2Status)f3.fmi3GetFloat64(c, &unknown, 1, elements3, 1);
}

static fmi2Status get3(Comp c, Refs refs, size_t n, double *values, int *whole)
{
    fmi2Status worst = fmi2OK;
    const Array3 *held = NULL;
    for (size_t i = 0; i < n; i++) {
        const Array3 *a = array3_of(refs[i]);
        if (a != held || !a) {
            const fmi2Status status = a ? get_array3(of3(c), a) : refused3(of3(c), refs[i]);
            if (status > fmi2Warning)
                return status;
            worst = status > worst ? status : worst;
            held = a;
        }
        const double value = elements3[a ? refs[i] - a->first : 0];
        if (values)
            values[i] = value;
        else
            whole[i] = (int)value;
    }
    return worst;
}

/* elements of one array that stand together are set together; the others of it keep their values */
static fmi2Status set3(Comp c, Refs refs, size_t n, const double *values, const int *whole)
{
    fmi2Status worst = fmi2OK;
    for (size_t i = 0; i < n;) {
        const Array3 *a = array3_of(refs[i]);
        size_t end = i;
        while (a && end < n && array3_of(refs[end]) == a)
            end++;
        fmi2Status status = a ? fmi2OK : refused3(of3(c), refs[i++]);
        if (a && end - i < a->size)
            status = get_array3(of3(c), a);
        for (; i < end; i++)
            elements3[refs[i] - a->first] = values ? values[i] : (double)whole[i];
        if (a && status <= fmi2Warning)
            status = set_array3(of3(c), a);
        if (status > fmi2Warning)
            return status;
        worst = status > worst ? status : worst;
    }
    return worst;
}

static fmi2Status get_reals3(Comp c, Refs refs, size_t n, fmi2Real *x) { return get3(c, refs, n, x, NULL); }
static fmi2Status get_whole3(Comp c, Refs refs, size_t n, int *x) { return get3(c, refs, n, NULL, x); }
static fmi2Status set_reals3(Comp c, Refs refs, size_t n, const fmi2Real *x) { return set3(c, refs, n, x, NULL); }
static fmi2Status set_whole3(Comp c, Refs refs, size_t n, const int *x) { return set3(c, refs, n, NULL, x); }

/* arrays that hold the elements: where each of them begins among the numbers of all; 0, or 1 where one is unknown */
static int spread3(Refs refs, size_t n, fmi3ValueReference *out, size_t *count, size_t *total, size_t *place)
{
    *count = *total = 0;
    for (size_t i = 0; i < n; i++) {
        const Array3 *a = array3_of(refs[i]);
        size_t begin = 0, k = 0;
        if (!a)
            return 1;
        for (; k < *count && out[k] != a->reference; k++) {
            const Array3 *other = arrays3;
            while (other->reference != out[k])
                other++;
            begin += other->size;
        }
        if (k == *count) {
            if (*total + a->size > WIDE3)
                return 1;
            out[(*count)++] = a->reference;
            *total += a->size;
        }
        place[i] = begin + (refs[i] - a->first);
    }
    return 0;
}

static fmi2Status slope3(Comp c, Refs unknown, size_t n, Refs known, size_t m, const fmi2Real *direction, fmi2Real *out)
{
    static fmi3ValueReference u[WIDE3], k[WIDE3];
    static size_t u_place[WIDE3], k_place[WIDE3];
    static double seed[WIDE3], found[WIDE3];
    size_t nu, nk, u_total, k_total;
    if (spread3(unknown, n, u, &nu, &u_total, u_place) || spread3(known, m, k, &nk, &k_total, k_place))
        return fmi2Error;
    memset(seed, 0, sizeof seed);
    for (size_t i = 0; i < m; i++)
        seed[k_place[i]] = direction[i];
    const fmi3Status status = f3.fmi3GetDirectionalDerivative(of3(c), u, nu, k, nk, seed, k_total, found, u_total);
    for (size_t i = 0; status <= fmi3Warning && i < n; i++)
        out[i] = found[u_place[i]];
    return (fmi2Status)status;
}

static Comp make3(fmi2String name, fmi2Type type, fmi2String token, fmi2String resources,
                  const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging)
{
    Instance3 *made = calloc(1, sizeof *made);
    (void)callbacks;
    if (!made)
        return NULL;
    made->c = type == fmi2CoSimulation
                  ? f3.fmi3InstantiateCoSimulation(name, token, resources, visible, logging, false, false, NULL, 0, NULL,
                                                   hear3, NULL)
                  : f3.fmi3InstantiateModelExchange(name, token, resources, visible, logging, NULL, hear3);
    if (made->c)
        return made;
    free(made);
    return NULL;
}

static void free3(Comp c)
{
    if (c)
        f3.fmi3FreeInstance(of3(c));
    free(c);
}

static fmi2Status setup3(Comp c, fmi2Boolean tolerant, fmi2Real tolerance, fmi2Real start, fmi2Boolean ends,
                         fmi2Real end)
{
    (void)tolerant;
    (void)tolerance;
    (void)ends;
    (void)end;
    ((Instance3 *)c)->start = start;
    return fmi2OK;
}

static fmi2Status enter3(Comp c)
{
    return (fmi2Status)f3.fmi3EnterInitializationMode(of3(c), false, 0.0, ((Instance3 *)c)->start, false, 0.0);
}

static fmi2Status step3(Comp c, fmi2Real time, fmi2Real h, fmi2Boolean no_set_prior)
{
    fmi3Boolean event = false, end = false, early = false;
    fmi3Float64 last = 0.0;
    return (fmi2Status)f3.fmi3DoStep(of3(c), time, h, no_set_prior != fmi2False, &event, &end, &early, &last);
}

static fmi2Status update3(Comp c, fmi2EventInfo *info)
{
    fmi3Boolean flags[5] = {false};
    const fmi3Status status = f3.fmi3UpdateDiscreteStates(of3(c), flags, flags + 1, flags + 2, flags + 3, flags + 4,
                                                          &info->nextEventTime);
    info->newDiscreteStatesNeeded = flags[0];
    info->terminateSimulation = flags[1];
    info->nominalsOfContinuousStatesChanged = flags[2];
    info->valuesOfContinuousStatesChanged = flags[3];
    info->nextEventTimeDefined = flags[4];
    return (fmi2Status)status;
}

/* functions with the same arguments in both: HANDED(name here, function of 3.0, arguments, their names) */
#define HANDED(name, function, arguments, ...)                                                                         \
    static fmi2Status name arguments { return (fmi2Status)f3.function(__VA_ARGS__); }
HANDED(exit3, fmi3ExitInitializationMode, (Comp c), of3(c))
HANDED(terminate3, fmi3Terminate, (Comp c), of3(c))
HANDED(reset3, fmi3Reset, (Comp c), of3(c))
HANDED(event3, fmi3EnterEventMode, (Comp c), of3(c))
HANDED(continuous3, fmi3EnterContinuousTimeMode, (Comp c), of3(c))
HANDED(keep3, fmi3GetFMUState, (Comp c, fmi2FMUstate *s), of3(c), s)
HANDED(restore3, fmi3SetFMUState, (Comp c, fmi2FMUstate s), of3(c), s)
HANDED(drop3, fmi3FreeFMUState, (Comp c, fmi2FMUstate *s), of3(c), s)
HANDED(bytes3, fmi3SerializedFMUStateSize, (Comp c, fmi2FMUstate s, size_t *n), of3(c), s, n)
HANDED(write3, fmi3SerializeFMUState, (Comp c, fmi2FMUstate s, fmi2Byte *b, size_t n), of3(c), s, (fmi3Byte *)b, n)
HANDED(read3, fmi3DeserializeFMUState, (Comp c, const fmi2Byte *b, size_t n, fmi2FMUstate *s), of3(c),
       (const fmi3Byte *)b, n, s)
HANDED(time3, fmi3SetTime, (Comp c, fmi2Real t), of3(c), t)
HANDED(place3, fmi3SetContinuousStates, (Comp c, const fmi2Real *x, size_t n), of3(c), x, n)
HANDED(states3, fmi3GetContinuousStates, (Comp c, fmi2Real *x, size_t n), of3(c), x, n)
HANDED(rates3, fmi3GetContinuousStateDerivatives, (Comp c, fmi2Real *x, size_t n), of3(c), x, n)
#undef HANDED

/* whether it is a library of FMI 3.0: then f calls it; names what is absent on stdout if `tell` */
static int open_fmi3(Library *f, void *handle, int tell)
{
    if (!looked_up(handle, "fmi3GetVersion"))
        return 0;
#define LOOK(name, result, arguments)                                                                                  \
    {                                                                                                                  \
        void *found = looked_up(handle, #name);                                                                        \
        memcpy(&f3.name, &found, sizeof found);                                                                        \
        if (!found && tell)                                                                                            \
            printf("- %s\n", #name);                                                                                   \
        f->absent += !found;                                                                                           \
    }
    FUNCTIONS3(LOOK)
#undef LOOK
#define OFFER(two, three, ours)                                                                                        \
    if (f3.three)                                                                                                      \
        f->two = ours;
    OFFER(fmi2GetVersion, fmi3GetVersion, f3.fmi3GetVersion)
    OFFER(fmi2Instantiate, fmi3InstantiateCoSimulation, make3)
    OFFER(fmi2FreeInstance, fmi3FreeInstance, free3)
    OFFER(fmi2SetupExperiment, fmi3EnterInitializationMode, setup3)
    OFFER(fmi2EnterInitializationMode, fmi3EnterInitializationMode, enter3)
    OFFER(fmi2ExitInitializationMode, fmi3ExitInitializationMode, exit3)
    OFFER(fmi2Terminate, fmi3Terminate, terminate3)
    OFFER(fmi2Reset, fmi3Reset, reset3)
    OFFER(fmi2GetReal, fmi3GetFloat64, get_reals3)
    OFFER(fmi2GetInteger, fmi3GetInt32, get_whole3)
    OFFER(fmi2GetBoolean, fmi3GetBoolean, get_whole3)
    OFFER(fmi2SetReal, fmi3SetFloat64, set_reals3)
    OFFER(fmi2SetInteger, fmi3SetInt32, set_whole3)
    OFFER(fmi2SetBoolean, fmi3SetBoolean, set_whole3)
    OFFER(fmi2GetFMUstate, fmi3GetFMUState, keep3)
    OFFER(fmi2SetFMUstate, fmi3SetFMUState, restore3)
    OFFER(fmi2FreeFMUstate, fmi3FreeFMUState, drop3)
    OFFER(fmi2SerializedFMUstateSize, fmi3SerializedFMUStateSize, bytes3)
    OFFER(fmi2SerializeFMUstate, fmi3SerializeFMUState, write3)
    OFFER(fmi2DeSerializeFMUstate, fmi3DeserializeFMUState, read3)
    OFFER(fmi2GetDirectionalDerivative, fmi3GetDirectionalDerivative, slope3)
    OFFER(fmi2EnterEventMode, fmi3EnterEventMode, event3)
    OFFER(fmi2NewDiscreteStates, fmi3UpdateDiscreteStates, update3)
    OFFER(fmi2EnterContinuousTimeMode, fmi3EnterContinuousTimeMode, continuous3)
    OFFER(fmi2SetTime, fmi3SetTime, time3)
    OFFER(fmi2SetContinuousStates, fmi3SetContinuousStates, place3)
    OFFER(fmi2GetContinuousStates, fmi3GetContinuousStates, states3)
    OFFER(fmi2GetDerivatives, fmi3GetContinuousStateDerivatives, rates3)
    OFFER(fmi2DoStep, fmi3DoStep, step3)
#undef OFFER
    return 1;
}

#endif
