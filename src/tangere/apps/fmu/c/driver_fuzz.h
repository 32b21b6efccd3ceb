/* Random calls with random arguments: none may crash, every refusal must have its status and a message. */

#define HANDS 3  /* instances at once */
#define KEPT 4   /* states */
#define FEW 12   /* references of one call */

#include "driver_dice.h"

static fmi2ValueReference any_reference(Dice *d, long base, long count)
{
    if (once_in(d, 25))
        return (fmi2ValueReference)roll(d);
    if (once_in(d, 25) || count == 0)
        return (fmi2ValueReference)below(d, 4000);
    return (fmi2ValueReference)(base + below(d, count));
}

typedef struct {
    Comp c;
    double time;
    int loud; /* whether it was told to log */
} Hand;

static long statuses[7], silent, wrong_status, not_finite;

/* what no block may take: a reference that it does not have (ours begin at base), a value that is no number */
static void judge_taken(const char *name, fmi2Status status, const fmi2ValueReference *refs, const double *x, size_t n,
                        long base, long count)
{
    if (status > fmi2Warning)
        return;
    for (size_t i = 0; i < n; i++)
        if ((long)refs[i] < base || (long)refs[i] >= base + count || (x && !isfinite(x[i]))) {
            wrong_status++;
            printf("# %s took reference %u%s\n", name, refs[i], x && !isfinite(x[i]) ? " with a value that is none" : "");
            return;
        }
}

/* the rules that hold for every call: a known status; no refusal without a word, no word where logging is off */
static void judge(const char *name, int null_instance, int loud, fmi2Status status, long messages_before)
{
    if ((int)status < 0 || status > fmi2Error) { /* never fatal, never pending */
        wrong_status++;
        printf("# %s gave status %d\n", name, (int)status);
        return;
    }
    statuses[status]++;
    if (null_instance) {
        if (status != fmi2Error) {
            wrong_status++;
            printf("# %s without an instance gave status %d\n", name, (int)status);
        }
        return; /* nobody to tell */
    }
    if (!loud && messages != messages_before) {
        wrong_status++;
        printf("# %s spoke where logging is off\n", name);
    }
    if (loud && status > fmi2Warning && messages == messages_before) {
        silent++;
        printf("# %s refused (%d) without a word\n", name, (int)status);
    }
}

#define CALL(function, ...)                                                                                            \
    do {                                                                                                               \
        const long told = messages;                                                                                    \
        status = f->function(__VA_ARGS__);                                                                             \
        judge(#function, c == NULL, hand->loud, status, told);                                                         \
    } while (0)

static fmi2Status one_call(const Library *f, Dice *d, Hand *hand, fmi2FMUstate *states, char *bytes, size_t *size)
{
    fmi2ValueReference refs[FEW], known[FEW];
    double x[FEW], y[FEW];
    int whole[FEW], event = 0, end = 0;
    fmi2String strings[FEW];
    fmi2EventInfo info;
    fmi2Status status = fmi2OK, told_status;
    Comp c = once_in(d, 60) ? NULL : hand->c;
    const long any = below(d, 66); /* the calls that do the work come more often: set, get, step */
    const long kind = any < 42 ? any : any < 54 ? 0 : any < 58 ? 3 : 41;
    const size_t n = once_in(d, 2) ? 1 : (size_t)below(d, FEW); /* long lists are mostly refused for one of them */
    const int state = (int)below(d, KEPT);
    const long base = kind % 3 == 0 ? 0 : kind % 3 == 1 ? 1000 : 2000; /* where our references of a type begin */
    const long count = kind % 3 == 0 ? d->reals : kind % 3 == 1 ? d->integers : d->booleans;
    for (size_t i = 0; i < FEW; i++) {
        refs[i] = any_reference(d, kind >= 6 ? 0 : base, kind >= 6 ? d->reals : count);
        known[i] = any_reference(d, 0, d->reals);
        x[i] = any_number(d);
        whole[i] = once_in(d, 6) ? (int)roll(d) : (int)below(d, 10);
        strings[i] = once_in(d, 3) ? NULL : "logAll";
    }
    const fmi2ValueReference *r = once_in(d, 50) ? NULL : refs;
    const int null_values = once_in(d, 50);
    switch (kind) {
    case 0:
        CALL(fmi2SetReal, c, r, n, null_values ? NULL : x);
        judge_taken("fmi2SetReal", status, refs, x, n, base, count);
        break;
    case 1:
        CALL(fmi2SetInteger, c, r, n, null_values ? NULL : whole);
        judge_taken("fmi2SetInteger", status, refs, NULL, n, base, count);
        break;
    case 2:
        CALL(fmi2SetBoolean, c, r, n, null_values ? NULL : whole);
        judge_taken("fmi2SetBoolean", status, refs, NULL, n, base, count);
        break;
    case 3:
        CALL(fmi2GetReal, c, r, n, null_values ? NULL : y);
        judge_taken("fmi2GetReal", status, refs, NULL, n, base, count);
        if (status <= fmi2Warning)
            for (size_t i = 0; i < n; i++)
                not_finite += !isfinite(y[i]);
        break;
    case 4:
        CALL(fmi2GetInteger, c, r, n, null_values ? NULL : whole);
        judge_taken("fmi2GetInteger", status, refs, NULL, n, base, count);
        break;
    case 5:
        CALL(fmi2GetBoolean, c, r, n, null_values ? NULL : whole);
        judge_taken("fmi2GetBoolean", status, refs, NULL, n, base, count);
        break;
    case 6: CALL(fmi2GetString, c, r, n, strings); break;
    case 7: CALL(fmi2SetString, c, r, n, (const fmi2String *)strings); break;
    case 8: {
        const int on = !once_in(d, 3);
        CALL(fmi2SetDebugLogging, c, on, n, null_values ? NULL : (const fmi2String *)strings);
        if (status == fmi2OK)
            hand->loud = on;
        break;
    }
    case 9: CALL(fmi2SetupExperiment, c, once_in(d, 2), any_number(d), hand->time = once_in(d, 3) ? any_number(d) : 0.0,
                 once_in(d, 9), any_number(d)); break;
    case 10: case 11: case 12: CALL(fmi2EnterInitializationMode, c); break;
    case 13: case 14: case 15: CALL(fmi2ExitInitializationMode, c); break;
    case 16: if (once_in(d, 8)) CALL(fmi2Terminate, c); break;
    case 17: if (once_in(d, 3)) { CALL(fmi2Reset, c); if (status == fmi2OK) hand->time = 0.0; } break;
    case 18: CALL(fmi2GetFMUstate, c, once_in(d, 30) ? NULL : &states[state]); break;
    case 19: CALL(fmi2SetFMUstate, c, states[state]); break;
    case 20: if (once_in(d, 4)) CALL(fmi2FreeFMUstate, c, once_in(d, 9) ? NULL : &states[state]); break;
    case 21: CALL(fmi2SerializedFMUstateSize, c, states[state], null_values ? NULL : size); break;
    case 22: CALL(fmi2SerializeFMUstate, c, states[state], null_values ? NULL : bytes, once_in(d, 5) ? 7 : *size); break;
    case 23:
        if (once_in(d, 3) && *size)
            bytes[below(d, (long)*size)] ^= (char)(1 + below(d, 255));
        CALL(fmi2DeSerializeFMUstate, c, null_values ? NULL : bytes, once_in(d, 9) ? 3 : *size,
             once_in(d, 30) ? NULL : &states[state]);
        break;
    case 24: CALL(fmi2GetDirectionalDerivative, c, r, n, known, (size_t)below(d, FEW), x, null_values ? NULL : y); break;
    case 25: CALL(fmi2EnterEventMode, c); break;
    case 26: CALL(fmi2NewDiscreteStates, c, null_values ? NULL : &info); break;
    case 27: CALL(fmi2EnterContinuousTimeMode, c); break;
    case 28: CALL(fmi2CompletedIntegratorStep, c, 1, null_values ? NULL : &event, &end); break;
    case 29: CALL(fmi2SetTime, c, once_in(d, 3) ? any_number(d) : (hand->time += 1e-3)); break;
    case 30: CALL(fmi2SetContinuousStates, c, null_values ? NULL : x, once_in(d, 3) ? n : FEW); break;
    case 31: CALL(fmi2GetDerivatives, c, null_values ? NULL : y, once_in(d, 3) ? n : FEW); break;
    case 32: CALL(fmi2GetContinuousStates, c, null_values ? NULL : y, once_in(d, 3) ? n : FEW); break;
    case 33: CALL(fmi2GetNominalsOfContinuousStates, c, null_values ? NULL : y, once_in(d, 3) ? n : FEW); break;
    case 34: CALL(fmi2GetEventIndicators, c, y, once_in(d, 2) ? 0 : n); break;
    case 35: CALL(fmi2SetRealInputDerivatives, c, r, n, whole, x); break;
    case 36: CALL(fmi2GetRealOutputDerivatives, c, r, n, whole, y); break;
    case 37: CALL(fmi2CancelStep, c); break;
    case 38: CALL(fmi2GetStatus, c, (fmi2StatusKind)below(d, 6), null_values ? NULL : &told_status); break;
    case 39: CALL(fmi2GetRealStatus, c, (fmi2StatusKind)below(d, 6), null_values ? NULL : y); break;
    case 40: CALL(fmi2GetBooleanStatus, c, (fmi2StatusKind)below(d, 6), null_values ? NULL : whole); break;
    default: {
        const double h = any_step(d);
        CALL(fmi2DoStep, c, once_in(d, 20) ? any_number(d) : hand->time, h, 1);
        if (status <= fmi2Warning && !(h > 0.0 && isfinite(h))) {
            wrong_status++;
            printf("# fmi2DoStep took a step of %g s\n", h);
        }
        if (status <= fmi2Warning)
            hand->time += h;
    }
    }
    return status;
}

/* an instance, often a right one; what is refused must be refused with a message */
static Comp any_instance(const Library *f, Dice *d, int loud)
{
    const long told = messages;
    const int wrong = once_in(d, 4) ? 1 + (int)below(d, 5) : 0;
    const fmi2Type type = wrong == 5 ? (fmi2Type)7 : once_in(d, 2) ? fmi2ModelExchange : fmi2CoSimulation;
    Comp c = f->fmi2Instantiate(wrong == 1 ? NULL : wrong == 2 ? "" : "block", type,
                                wrong == 3 ? "{wrong}" : f->guid, wrong == 4 ? "file:///nowhere" : f->resources,
                                &host, (int)below(d, 2), loud);
    if (wrong && c) {
        wrong_status++;
        printf("# fmi2Instantiate took a wrong argument (%d)\n", wrong);
    }
    if (!c && messages == told)
        silent++;
    return c;
}

static int fuzz(const Library *f, unsigned long seed, long calls, char **counts)
{
    Dice d = {seed, strtol(counts[0], NULL, 10), strtol(counts[1], NULL, 10), strtol(counts[2], NULL, 10)};
    Hand hands[HANDS];
    fmi2FMUstate states[KEPT] = {0};
    static char bytes[65536];
    size_t size = 0;
    memset(hands, 0, sizeof hands);
    Comp never = f->fmi2Instantiate("block", fmi2CoSimulation, f->guid, f->resources, NULL, 0, 0);
    wrong_status += never != NULL; /* without callbacks there is no instance */
    for (long k = 0; k < calls; k++) {
        Hand *hand = hands + below(&d, HANDS);
        if (!hand->c || once_in(&d, 400)) {
            if (hand->c)
                f->fmi2FreeInstance(hand->c);
            hand->time = 0.0;
            hand->loud = !once_in(&d, 4);
            hand->c = any_instance(f, &d, hand->loud);
            if (hand->c && !once_in(&d, 3)) { /* most go on to where the work is done */
                f->fmi2SetupExperiment(hand->c, 0, 0.0, 0.0, 0, 0.0);
                f->fmi2EnterInitializationMode(hand->c);
                f->fmi2ExitInitializationMode(hand->c);
            }
            continue;
        }
        one_call(f, &d, hand, states, bytes, &size);
        if (size > sizeof bytes)
            return 1;
    }
    Comp last = ready(f, "last"); /* and after all this a new one works */
    const int works = last && f->fmi2DoStep(last, 0.0, 1e-3, 1) <= fmi2Warning;
    for (int i = 0; i < KEPT; i++)
        if (last)
            f->fmi2FreeFMUstate(last, &states[i]);
    for (int i = 0; i < HANDS; i++)
        f->fmi2FreeInstance(hands[i].c);
    f->fmi2FreeInstance(last);
    printf("%ld %ld %ld %ld %ld %ld %ld %ld %d %ld\n", calls, statuses[0], statuses[1], statuses[2], statuses[3],
           wrong_status, silent, not_finite, works, living);
    return 0;
}
