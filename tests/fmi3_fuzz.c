/* Random calls of FMI 3.0 with random arguments: none may crash, every refusal must have its status and a message.
 *
 *   fmi3_fuzz LIBRARY RESOURCES TOKEN SEED CALLS {TYPE REFERENCE SIZE}...
 *
 * TYPE: f Float64, i Int32, b Boolean. Prints how many calls had which status, and what was wrong; see main.
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_dice.h"
#include "driver_calls3.h"

#define HANDS 3    /* instances at once */
#define KEPT 4     /* states */
#define FEW 6      /* references of one call */
#define ROOM 4096  /* numbers of one call: more than any list of references means */
#define MOST 1024  /* variables */

static struct {
#define MEMBER(name, result, arguments) result(*name) arguments;
    FUNCTIONS3(MEMBER)
#undef MEMBER
} f;

typedef struct {
    char type;
    fmi3ValueReference reference;
    size_t size;
} Variable;

typedef struct {
    In c;
    double time;
    int loud; /* whether it was told to log */
} Hand;

static Variable variables[MOST];
static long count, messages, statuses[5], silent, wrong, not_finite;
static size_t states_count;
static const char *token, *resources;

static void hear(fmi3InstanceEnvironment environment, fmi3Status status, fmi3String category, fmi3String text)
{
    (void)environment;
    (void)status;
    messages += category != NULL && text != NULL;
}

static void complain(const char *name, const char *what)
{
    wrong++;
    printf("# %s %s\n", name, what);
}

/* the rules that hold for every call: a known status; no refusal without a word, no word where logging is off */
static void judge(const char *name, In c, int loud, fmi3Status status, long before)
{
    if ((int)status < 0 || status > fmi3Error) { /* never fatal */
        complain(name, "gave a status that it must not have");
        return;
    }
    statuses[status]++;
    if (!c) {
        if (status != fmi3Error)
            complain(name, "answered without an instance");
        return; /* nobody to tell */
    }
    if (!loud && messages != before)
        complain(name, "spoke where logging is off");
    if (loud && status > fmi3Warning && messages == before) {
        silent++;
        printf("# %s refused (%d) without a word\n", name, (int)status);
    }
}

#define CALL(function, ...)                                                                                            \
    do {                                                                                                               \
        const long told = messages;                                                                                    \
        status = f.function(__VA_ARGS__);                                                                              \
        judge(#function, c, hand->loud, status, told);                                                                 \
    } while (0)

/* references of a call, mostly of one type; their numbers, -1 where one of them is of no variable of that type */
static long chosen(Dice *d, char type, fmi3ValueReference *refs, size_t n)
{
    long size = 0;
    for (size_t i = 0; i < n; i++) {
        const Variable *v = variables + below(d, count);
        for (int k = 0; k < 50 && v->type != type; k++)
            v = variables + below(d, count);
        const int odd = once_in(d, 25);
        refs[i] = odd ? (once_in(d, 2) ? (fmi3ValueReference)roll(d) : (fmi3ValueReference)below(d, 4000)) : v->reference;
        int known = 0;
        for (long k = 0; k < count; k++)
            if (variables[k].reference == refs[i] && variables[k].type == type) {
                size = size < 0 ? size : size + (long)variables[k].size;
                known = 1;
            }
        size = known ? size : -1;
    }
    return size;
}

/* a call that took references which are none, or values without room for them */
static void judge_taken(const char *name, fmi3Status status, long size, size_t room)
{
    if (status <= fmi3Warning && (size < 0 || (size_t)size != room))
        complain(name, "took references or a number of values that are none");
}

static void values_call(Dice *d, Hand *hand, In c, char type, int set)
{
    static double x[ROOM];
    static fmi3Int32 whole[ROOM];
    static fmi3Boolean truth[ROOM];
    fmi3ValueReference refs[FEW];
    fmi3Status status;
    const size_t n = once_in(d, 2) ? 1 : (size_t)below(d, FEW);
    const long size = chosen(d, type, refs, n);
    const size_t room = once_in(d, 8) || size < 0 ? (size_t)below(d, 40) : (size_t)size;
    const int lost = once_in(d, 50);
    int finite = 1;
    for (size_t i = 0; i < room; i++) {
        x[i] = once_in(d, 6) ? any_number(d) : 0.5 * ((double)below(d, 2001) / 1000.0 - 1.0);
        finite &= isfinite(x[i]) != 0;
        whole[i] = once_in(d, 6) ? (fmi3Int32)roll(d) : (fmi3Int32)below(d, 10);
        truth[i] = once_in(d, 2);
    }
    const fmi3ValueReference *r = once_in(d, 50) ? NULL : refs;
    if (type == 'f' && set) {
        CALL(fmi3SetFloat64, c, r, n, lost ? NULL : x, room);
        if (status <= fmi3Warning && !finite)
            complain("fmi3SetFloat64", "took a value that is none");
    } else if (type == 'f') {
        CALL(fmi3GetFloat64, c, r, n, lost ? NULL : x, room);
        for (size_t i = 0; status <= fmi3Warning && i < room; i++)
            not_finite += !isfinite(x[i]);
    } else if (type == 'i' && set)
        CALL(fmi3SetInt32, c, r, n, lost ? NULL : whole, room);
    else if (type == 'i')
        CALL(fmi3GetInt32, c, r, n, lost ? NULL : whole, room);
    else if (set)
        CALL(fmi3SetBoolean, c, r, n, lost ? NULL : truth, room);
    else
        CALL(fmi3GetBoolean, c, r, n, lost ? NULL : truth, room);
    judge_taken("a call of values", status, size, room);
}

static void derivative_call(Dice *d, Hand *hand, In c, int adjoint)
{
    static double x[ROOM], y[ROOM];
    fmi3ValueReference u[FEW], k[FEW];
    fmi3Status status;
    const size_t nu = 1 + (size_t)below(d, 2), nk = 1 + (size_t)below(d, 2);
    const long su = chosen(d, 'f', u, nu), sk = chosen(d, 'f', k, nk);
    const size_t ru = su < 0 || once_in(d, 9) ? (size_t)below(d, 40) : (size_t)su;
    const size_t rk = sk < 0 || once_in(d, 9) ? (size_t)below(d, 40) : (size_t)sk;
    for (size_t i = 0; i < ROOM; i++)
        x[i] = once_in(d, 40) ? any_number(d) : 1.0;
    double *out = once_in(d, 40) ? NULL : y;
    if (adjoint)
        CALL(fmi3GetAdjointDerivative, c, u, nu, k, nk, x, ru, out, rk);
    else
        CALL(fmi3GetDirectionalDerivative, c, u, nu, k, nk, x, rk, out, ru);
    judge_taken("a derivative", status, su < 0 ? su : sk < 0 ? sk : su, su < 0 || sk < 0 ? 0 : ru);
}

static void one_call(Dice *d, Hand *hand, fmi3FMUState *states, fmi3Byte *bytes, size_t *size)
{
    fmi3ValueReference refs[FEW] = {0};
    double x[64], when = 0.0;
    fmi3Boolean flag[5] = {0};
    fmi3Status status;
    In c = once_in(d, 60) ? NULL : hand->c;
    const int state = (int)below(d, KEPT), lost = once_in(d, 40);
    const size_t n = once_in(d, 3) ? (size_t)below(d, 20) : states_count;
    for (int i = 0; i < 64; i++)
        x[i] = once_in(d, 20) ? any_number(d) : 0.1;
    const long kind = below(d, 60);
    switch (kind) {
    case 0: CALL(fmi3EnterInitializationMode, c, once_in(d, 2), any_number(d),
                 hand->time = once_in(d, 3) ? any_number(d) : 0.0, once_in(d, 9), any_number(d)); break;
    case 1: case 2: CALL(fmi3ExitInitializationMode, c); break;
    case 3: CALL(fmi3EnterEventMode, c); break;
    case 4: CALL(fmi3EnterContinuousTimeMode, c); break;
    case 5: CALL(fmi3EnterStepMode, c); break;
    case 6: CALL(fmi3EnterConfigurationMode, c); break;
    case 7: if (once_in(d, 8)) CALL(fmi3Terminate, c); break;
    case 8: if (once_in(d, 3)) { CALL(fmi3Reset, c); if (status == fmi3OK) hand->time = 0.0; } break;
    case 9: CALL(fmi3GetFMUState, c, lost ? NULL : &states[state]); break;
    case 10: CALL(fmi3SetFMUState, c, states[state]); break;
    case 11: if (once_in(d, 4)) CALL(fmi3FreeFMUState, c, lost ? NULL : &states[state]); break;
    case 12: CALL(fmi3SerializedFMUStateSize, c, states[state], lost ? NULL : size); break;
    case 13: CALL(fmi3SerializeFMUState, c, states[state], lost ? NULL : bytes, once_in(d, 5) ? 7 : *size); break;
    case 14:
        if (once_in(d, 3) && *size)
            bytes[below(d, (long)*size)] ^= (fmi3Byte)(1 + below(d, 255));
        CALL(fmi3DeserializeFMUState, c, lost ? NULL : bytes, once_in(d, 9) ? 3 : *size, once_in(d, 30) ? NULL : &states[state]);
        break;
    case 15: case 16: derivative_call(d, hand, c, 0); break;
    case 17: derivative_call(d, hand, c, 1); break;
    case 18: CALL(fmi3EvaluateDiscreteStates, c); break;
    case 19: CALL(fmi3UpdateDiscreteStates, c, flag, flag + 1, flag + 2, lost ? NULL : flag + 3, flag + 4, &when); break;
    case 20: CALL(fmi3CompletedIntegratorStep, c, true, lost ? NULL : flag, flag + 1); break;
    case 21: CALL(fmi3SetTime, c, once_in(d, 3) ? any_number(d) : (hand->time += 1e-3)); break;
    case 22: CALL(fmi3SetContinuousStates, c, lost ? NULL : x, n); break;
    case 23: CALL(fmi3GetContinuousStates, c, lost ? NULL : x, n); break;
    case 24: CALL(fmi3GetContinuousStateDerivatives, c, lost ? NULL : x, n); break;
    case 25: CALL(fmi3GetNominalsOfContinuousStates, c, lost ? NULL : x, n); break;
    case 26: CALL(fmi3GetEventIndicators, c, x, once_in(d, 2) ? 0 : n); break;
    case 27: CALL(fmi3GetNumberOfContinuousStates, c, lost ? NULL : &states_count); break;
    case 28: { size_t none; CALL(fmi3GetNumberOfEventIndicators, c, lost ? NULL : &none); break; }
    case 29: { fmi3Int32 orders[FEW] = {1}; CALL(fmi3GetOutputDerivatives, c, refs, 1, orders, x, 1); break; }
    case 30: { float small[FEW] = {0}; CALL(fmi3GetFloat32, c, refs, 1, small, 1); break; }
    case 31: { fmi3UInt64 large[FEW] = {0}; CALL(fmi3SetUInt64, c, refs, 1, large, 1); break; }
    case 32: { fmi3String text[FEW] = {NULL}; CALL(fmi3GetString, c, refs, 1, text, 1); break; }
    case 33: CALL(fmi3GetClock, c, refs, 1, flag); break;
    case 34: CALL(fmi3SetClock, c, refs, 1, flag); break;
    case 35: { fmi3IntervalQualifier known[FEW]; CALL(fmi3GetIntervalDecimal, c, refs, 1, x, known); break; }
    case 36: {
        const fmi3String names[] = {"logAll", NULL, "nonsense"};
        const int on = !once_in(d, 3);
        CALL(fmi3SetDebugLogging, c, on, (size_t)below(d, 4), lost ? NULL : names);
        if (status == fmi3OK)
            hand->loud = on;
        break;
    }
    case 37: case 38: case 39: case 40: case 41: case 42: case 43: case 44: values_call(d, hand, c, 'f', 1); break;
    case 45: case 46: case 47: case 48: values_call(d, hand, c, 'f', 0); break;
    case 49: values_call(d, hand, c, 'i', 1); break;
    case 50: values_call(d, hand, c, 'i', 0); break;
    case 51: values_call(d, hand, c, 'b', 1); break;
    case 52: values_call(d, hand, c, 'b', 0); break;
    default: {
        const double h = any_step(d), from = once_in(d, 20) ? any_number(d) : hand->time;
        CALL(fmi3DoStep, c, from, h, true, flag, flag + 1, flag + 2, lost ? NULL : &when);
        if (status <= fmi3Warning && !(fabs(when - (from + h)) <= 1e-9 * (1.0 + fabs(from))))
            complain("fmi3DoStep", "says another time than that of the step's end");
        if (status <= fmi3Warning && !(h > 0.0 && isfinite(h)))
            complain("fmi3DoStep", "took a step that is none");
        if (status <= fmi3Warning)
            hand->time = when;
    }
    }
}

/* an instance, often a right one; what is refused must be refused with a message */
static In any_instance(Dice *d, int loud)
{
    const long told = messages;
    const int odd = once_in(d, 4) ? 1 + (int)below(d, 5) : 0;
    const char *name = odd == 1 ? NULL : odd == 2 ? "" : "block", *key = odd == 3 ? "{wrong}" : token;
    const char *path = odd == 4 ? "/nowhere/" : resources;
    In c = odd != 5 && once_in(d, 2)
               ? f.fmi3InstantiateModelExchange(name, key, path, false, loud, NULL, hear)
               : f.fmi3InstantiateCoSimulation(name, key, path, false, loud, odd == 5, false, NULL, 0, NULL, hear, NULL);
    if (odd && c)
        complain("fmi3Instantiate", "took a wrong argument");
    if (!c && messages == told)
        silent++;
    return c;
}

static In started(int exchange)
{
    In c = exchange ? f.fmi3InstantiateModelExchange("last", token, resources, false, true, NULL, hear)
                    : f.fmi3InstantiateCoSimulation("last", token, resources, false, true, false, false, NULL, 0, NULL, hear,
                                                    NULL);
    if (c && (f.fmi3EnterInitializationMode(c, false, 0.0, 0.0, false, 0.0) > fmi3Warning ||
              f.fmi3ExitInitializationMode(c) > fmi3Warning))
        return NULL;
    return c;
}

/* prints: calls, how many were ok, warning, discard, error; wrong, silent, not finite; whether a new one works */
int main(int argc, char **argv)
{
    if (argc < 9 || (argc - 6) % 3 || (argc - 6) / 3 > MOST)
        return 2;
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    resources = argv[2];
    token = argv[3];
    Dice dice = {strtoull(argv[4], NULL, 10), 0, 0, 0}, *d = &dice;
    const long calls = strtol(argv[5], NULL, 10);
    for (int i = 6; i + 2 < argc; i += 3, count++) {
        const Variable v = {argv[i][0], (fmi3ValueReference)strtoul(argv[i + 1], NULL, 10), strtoul(argv[i + 2], NULL, 10)};
        variables[count] = v;
    }
#define LOOK(name, result, arguments)                                                                                  \
    {                                                                                                                  \
        void *found = dlsym(handle, #name);                                                                            \
        memcpy(&f.name, &found, sizeof found);                                                                         \
        if (!found) {                                                                                                  \
            fprintf(stderr, "%s is absent\n", #name);                                                                  \
            return 3;                                                                                                  \
        }                                                                                                              \
    }
    FUNCTIONS3(LOOK)
#undef LOOK
    Hand hands[HANDS];
    fmi3FMUState states[KEPT] = {0};
    static fmi3Byte bytes[65536];
    size_t size = 0;
    memset(hands, 0, sizeof hands);
    for (long k = 0; k < calls; k++) {
        Hand *hand = hands + below(d, HANDS);
        if (!hand->c || once_in(d, 400)) {
            f.fmi3FreeInstance(hand->c);
            hand->time = 0.0;
            hand->loud = !once_in(d, 4);
            hand->c = any_instance(d, hand->loud);
            if (hand->c && !once_in(d, 3)) { /* most go on to where the work is done */
                f.fmi3EnterInitializationMode(hand->c, false, 0.0, 0.0, false, 0.0);
                f.fmi3ExitInitializationMode(hand->c);
            }
            continue;
        }
        one_call(d, hand, states, bytes, &size);
        if (size > sizeof bytes)
            return 1;
    }
    In last = started(0);
    fmi3Boolean flag[3];
    double when = 0.0;
    const int works = last && f.fmi3DoStep(last, 0.0, 1e-3, true, flag, flag + 1, flag + 2, &when) <= fmi3Warning;
    for (int i = 0; i < KEPT; i++)
        if (last)
            f.fmi3FreeFMUState(last, &states[i]);
    for (int i = 0; i < HANDS; i++)
        f.fmi3FreeInstance(hands[i].c);
    f.fmi3FreeInstance(last);
    printf("%ld %ld %ld %ld %ld %ld %ld %ld %d\n", calls, statuses[0], statuses[1], statuses[2], statuses[3], wrong, silent,
           not_finite, works);
    return 0;
}
