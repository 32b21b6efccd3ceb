/* Variables of FMI 3.0: arrays, each with one value reference, as elements of the block's lists. */

typedef struct {
    int first, count; /* elements in the list of the type */
} tg_array;

#include "arrays.h"

#define TG_TIME 3000u /* value reference of the independent variable */

/* where a value reference is in a list of arrays, which are in order; NULL: there is none */
static const tg_array *array_of(const tg_array *arrays, int count, fmi3ValueReference vr, unsigned base)
{
    int low = 0, high = count - 1;
    const unsigned wanted = vr - base;
    while (low <= high) {
        const int middle = (low + high) / 2;
        if ((unsigned)arrays[middle].first == wanted)
            return arrays + middle;
        if ((unsigned)arrays[middle].first < wanted)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return NULL;
}

/* the elements of all arrays that are named, in order: their number, or -1 and a sentence */
static long expanded(const Instance *I, const char *function, const tg_array *arrays, int count, unsigned base,
                     const fmi3ValueReference vr[], size_t n, size_t n_values, fmi2ValueReference *out, size_t room)
{
    size_t used = 0;
    if (missing(I, function, "valueReferences", n, vr))
        return -1;
    for (size_t k = 0; k < n; k++) {
        const tg_array *a = array_of(arrays, count, vr[k], base);
        if (!a) {
            unknown_reference(I, function, vr[k]);
            return -1;
        }
        if (used + (size_t)a->count > room) {
            say(I, fmi2Error, "%s: a variable is named again and again", function);
            return -1;
        }
        for (int i = 0; i < a->count; i++)
            out[used++] = base + (unsigned)(a->first + i);
    }
    if (used != n_values) {
        say(I, fmi2Error, "%s: %lu values were given room, the variables have %lu", function, (unsigned long)n_values,
            (unsigned long)used);
        return -1;
    }
    return (long)used;
}

#define ROOM_REAL (4 * (N_REAL) + 4) /* references of one call: every variable may be named, some of them again */
#define ROOM_OTHER (4 * ((N_INTEGER) + (N_BOOLEAN)) + 4)

/* runs of arrays between the time, which is no variable of the block */
FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                                 fmi3Float64 values[], size_t n_values)
{
    static const char function[] = "fmi3GetFloat64";
    Instance *I = inside(c);
    if (!allowed(I, function, ANY_MODE) || missing(I, function, "valueReferences", n, vr) ||
        missing(I, function, "values", n_values, values))
        return fmi3Error;
    fmi3Status worst = fmi3OK;
    size_t at = 0;
    for (size_t k = 0; k < n;) {
        if (vr[k] == TG_TIME) {
            if (at >= n_values)
                return said(c, fmi3Error, function, "there is no room for all values");
            values[at++] = I->now.time;
            k++;
            continue;
        }
        size_t run = k;
        size_t wanted = 0;
        for (; run < n && vr[run] != TG_TIME; run++) {
            const tg_array *a = array_of(tg_float64s, N_FLOAT64S, vr[run], 0u);
            wanted += a ? (size_t)a->count : 0u;
        }
        fmi2ValueReference element[ROOM_REAL];
        const long count =
            expanded(I, function, tg_float64s, N_FLOAT64S, 0u, vr + k, run - k, wanted, element, ROOM_REAL);
        if (count < 0)
            return fmi3Error;
        if (at + (size_t)count > n_values)
            return said(c, fmi3Error, function, "there is no room for all values");
        const fmi2Status status = FMI2_NAME(fmi2GetReal)(I, element, (size_t)count, values + at);
        if (status > fmi2Warning)
            return (fmi3Status)status;
        worst = status > (fmi2Status)worst ? (fmi3Status)status : worst;
        at += (size_t)count;
        k = run;
    }
    return at == n_values ? worst : said(c, fmi3Error, function, "there is room for more values than there are");
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                                 const fmi3Float64 values[], size_t n_values)
{
    Instance *I = inside(c);
    fmi2ValueReference element[ROOM_REAL];
    if (!allowed(I, "fmi3SetFloat64", SETTABLE))
        return fmi3Error;
    const long count =
        expanded(I, "fmi3SetFloat64", tg_float64s, N_FLOAT64S, 0u, vr, n, n_values, element, ROOM_REAL);
    return count < 0 ? fmi3Error : (fmi3Status)FMI2_NAME(fmi2SetReal)(I, element, (size_t)count, values);
}

/* Int32 and Boolean: the block's own numbers are ints */
#define OTHER(Type, type, base, arrays, total, fmi2)                                                                   \
    FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Get##Type)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,           \
                                                    type values[], size_t n_values)                                    \
    {                                                                                                                  \
        Instance *I = inside(c);                                                                                       \
        fmi2ValueReference element[ROOM_OTHER];                                                                        \
        int found[ROOM_OTHER] = {0};                                                                                   \
        if (!allowed(I, "fmi3Get" #Type, GETTABLE) || missing(I, "fmi3Get" #Type, "values", n_values, values))         \
            return fmi3Error;                                                                                          \
        const long count = expanded(I, "fmi3Get" #Type, arrays, total, base, vr, n, n_values, element, ROOM_OTHER);    \
        if (count < 0)                                                                                                 \
            return fmi3Error;                                                                                          \
        const fmi2Status status = FMI2_NAME(fmi2Get##fmi2)(I, element, (size_t)count, found);                          \
        for (long k = 0; status <= fmi2Warning && k < count; k++)                                                      \
            values[k] = (type)found[k];                                                                                \
        return (fmi3Status)status;                                                                                     \
    }                                                                                                                  \
    FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Set##Type)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,           \
                                                    const type values[], size_t n_values)                              \
    {                                                                                                                  \
        Instance *I = inside(c);                                                                                       \
        fmi2ValueReference element[ROOM_OTHER];                                                                        \
        int given[ROOM_OTHER];                                                                                         \
        if (!allowed(I, "fmi3Set" #Type, SETTABLE) || missing(I, "fmi3Set" #Type, "values", n_values, values))         \
            return fmi3Error;                                                                                          \
        const long count = expanded(I, "fmi3Set" #Type, arrays, total, base, vr, n, n_values, element, ROOM_OTHER);    \
        for (long k = 0; k < count; k++)                                                                               \
            given[k] = (int)values[k];                                                                                 \
        return count < 0 ? fmi3Error : (fmi3Status)FMI2_NAME(fmi2Set##fmi2)(I, element, (size_t)count, given);         \
    }

OTHER(Int32, fmi3Int32, INTEGER_BASE, tg_int32s, N_INT32S, Integer)
OTHER(Boolean, fmi3Boolean, BOOLEAN_BASE, tg_booleans3, N_BOOLEANS3, Boolean)

/* types that no variable has */
#define NONE(Type, type)                                                                                               \
    FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Get##Type)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,           \
                                                    type values[], size_t n_values)                                    \
    {                                                                                                                  \
        (void)vr;                                                                                                      \
        (void)values;                                                                                                  \
        return n || n_values ? said(c, fmi3Error, "fmi3Get" #Type, "no variable has this type") : fmi3OK;              \
    }                                                                                                                  \
    FMI3_EXPORT fmi3Status FMI3_NAME(fmi3Set##Type)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,           \
                                                    const type values[], size_t n_values)                              \
    {                                                                                                                  \
        (void)vr;                                                                                                      \
        (void)values;                                                                                                  \
        return n || n_values ? said(c, fmi3Error, "fmi3Set" #Type, "no variable has this type") : fmi3OK;              \
    }

NONE(Float32, fmi3Float32)
NONE(Int8, fmi3Int8)
NONE(UInt8, fmi3UInt8)
NONE(Int16, fmi3Int16)
NONE(UInt16, fmi3UInt16)
NONE(UInt32, fmi3UInt32)
NONE(Int64, fmi3Int64)
NONE(UInt64, fmi3UInt64)
NONE(String, fmi3String)

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetBinary)(fmi3Instance c, const fmi3ValueReference vr[], size_t n, size_t sizes[],
                                                fmi3Binary values[], size_t n_values)
{
    (void)vr;
    (void)sizes;
    (void)values;
    return n || n_values ? said(c, fmi3Error, "fmi3GetBinary", "no variable has this type") : fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetBinary)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                                const size_t sizes[], const fmi3Binary values[], size_t n_values)
{
    (void)vr;
    (void)sizes;
    (void)values;
    return n || n_values ? said(c, fmi3Error, "fmi3SetBinary", "no variable has this type") : fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3GetClock)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                               fmi3Clock values[])
{
    (void)vr;
    (void)values;
    return n ? said(c, fmi3Error, "fmi3GetClock", "no variable has this type") : fmi3OK;
}

FMI3_EXPORT fmi3Status FMI3_NAME(fmi3SetClock)(fmi3Instance c, const fmi3ValueReference vr[], size_t n,
                                               const fmi3Clock values[])
{
    (void)vr;
    (void)values;
    return n ? said(c, fmi3Error, "fmi3SetClock", "no variable has this type") : fmi3OK;
}
