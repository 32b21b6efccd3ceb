/* A small master of FMI 2.0 (talk: and 3.0) that needs nothing but libc: loads the shared library of an FMU and drives it.
 *
 *   driver talk  LIBRARY RESOURCES GUID                    commands on stdin, one per line; answers on stdout
 *   driver long  LIBRARY RESOURCES GUID STEPS              steps, and what they do to memory
 *   driver many  LIBRARY RESOURCES GUID COUNT              instances at once, each with a history of its own
 *   driver fuzz  LIBRARY RESOURCES GUID SEED CALLS REALS INTEGERS BOOLEANS      random calls
 *   driver speed ROUNDS STEPS {LIBRARY RESOURCES GUID INPUTS refs... OUTPUTS refs...}...
 *
 * LIBRARY: the shared library. RESOURCES: the folder as a URI, for FMI 3.0 as a path that ends with a slash. An answer of
 * talk is the status and the values, doubles as hexadecimal numbers of C99: no digit is lost. Lines that begin with "!"
 * are messages of the FMU.
 */
#define _POSIX_C_SOURCE 200809L
#include "driver.h"
#include "driver_fmi3.h"
#include "driver_fuzz.h"
#include "driver_talk.h"

#define STEP 1e-3 /* s */
#define LAP 1000  /* steps; then back to the start, so that an arm that falls does not fall for ever */
#define MOST 512 /* references that speed takes for an FMU */

typedef struct {
    Library library;
    Comp c;
    fmi2ValueReference in[MOST], out[MOST];
    size_t inputs, outputs;
    double base[MOST];              /* the inputs' start values */
    fmi2FMUstate start;             /* NULL where it cannot be kept */
    double instantiate, time, best; /* s, s of simulation, s per step of the best round */
} Racer;

static int refs_of(char ***word, char **end, fmi2ValueReference *refs, size_t *count)
{
    *count = *word < end ? (size_t)strtoul(*(*word)++, NULL, 10) : 0;
    if (*count > MOST || *word + *count > end)
        return 1;
    for (size_t i = 0; i < *count; i++)
        refs[i] = (fmi2ValueReference)strtoul(*(*word)++, NULL, 10);
    return 0;
}

static int race(Racer *r, long steps, unsigned *seed)
{
    double in[MOST], out[MOST] = {0};
    const Library *f = &r->library;
    const double begin = now();
    for (long k = 0; k < steps; k++) {
        if (k % LAP == 0 && r->start) {
            if (f->fmi2SetFMUstate(r->c, r->start) != fmi2OK)
                return 1;
            r->time = 0.0;
        }
        for (size_t i = 0; i < r->inputs; i++) { /* another value every time: nothing can be remembered */
            *seed = *seed * 1664525u + 1013904223u;
            in[i] = r->base[i] + 1e-3 * ((double)(*seed >> 8) / 8388608.0 - 1.0);
        }
        if (f->fmi2SetReal(r->c, r->in, r->inputs, in) > fmi2Warning ||
            f->fmi2DoStep(r->c, r->time, STEP, fmi2True) > fmi2Warning ||
            f->fmi2GetReal(r->c, r->out, r->outputs, out) > fmi2Warning)
            return 1;
        r->time += STEP;
    }
    const double each = (now() - begin) / (double)steps;
    r->best = r->best == 0.0 || each < r->best ? each : r->best;
    return 0;
}

static int speed(char **word, char **end)
{
    Racer racers[4];
    int count = 0;
    const long rounds = strtol(word[0], NULL, 10), steps = strtol(word[1], NULL, 10);
    for (word += 2; word + 3 < end && count < 4; count++) {
        Racer *r = racers + count;
        memset(r, 0, sizeof *r);
        if (open_library(&r->library, word[0], word[1], word[2], 0))
            return 1;
        word += 3;
        if (refs_of(&word, end, r->in, &r->inputs) || refs_of(&word, end, r->out, &r->outputs))
            return 1;
        for (int k = 0; k < 20; k++) { /* the first one pays for pages and files */
            const double begin = now();
            Comp c = make(&r->library, "one", fmi2CoSimulation);
            const double took = now() - begin;
            if (!c)
                return 1;
            r->instantiate = k == 0 || took < r->instantiate ? took : r->instantiate;
            /* not freed: a slave of PythonFMU 0.7 damages the heap there */
        }
        if (!(r->c = ready(&r->library, "racer")) ||
            r->library.fmi2GetReal(r->c, r->in, r->inputs, r->base) > fmi2Warning)
            return 1;
        if (r->library.fmi2GetFMUstate(r->c, &r->start) != fmi2OK)
            r->start = NULL;
    }
    unsigned seed = 1;
    for (long k = 0; k < rounds; k++)
        for (int i = 0; i < count; i++)
            if (race(racers + i, steps, &seed))
                return 1;
    for (int i = 0; i < count; i++)
        printf("%.9g %.9g\n", racers[i].instantiate, racers[i].best);
    fflush(stdout);
    _Exit(0); /* without the farewell of an interpreter that another FMU brought along */
}

static int steady(const Library *f, long steps)
{
    Comp c = ready(f, "long");
    if (!c)
        return 1;
    double first = 0.0, highest = 0.0;
    long before = 0;
    fmi2FMUstate start = NULL;
    if (f->fmi2GetFMUstate(c, &start) != fmi2OK)
        return 1;
    const long tenth = steps / 10 > 0 ? steps / 10 : 1;
    const double begin = now();
    for (long k = 0; k < steps; k++) {
        if (k % LAP == 0 && f->fmi2SetFMUstate(c, start) != fmi2OK)
            return 1;
        if (f->fmi2DoStep(c, (double)(k % LAP) * STEP, STEP, fmi2True) > fmi2Warning)
            return 1;
        if ((k + 1) % tenth == 0) {
            const double size = resident();
            if (first == 0.0) {
                first = size;
                before = allocations;
            }
            highest = size > highest ? size : highest;
        }
    }
    const double took = now() - begin;
    f->fmi2FreeFMUstate(c, &start);
    f->fmi2FreeInstance(c);
    printf("%ld %.9g %.0f %.0f %ld %ld\n", steps, took / (double)steps, first, highest, allocations - before, living);
    return 0;
}

static int many(const Library *f, long count)
{
    Comp *c = calloc((size_t)count, sizeof *c);
    fmi2FMUstate *state = calloc((size_t)count, sizeof *state);
    size_t size = 0;
    char name[40];
    if (!c || !state)
        return 1;
    const double begin = now();
    for (long k = 0; k < count; k++) {
        snprintf(name, sizeof name, "block %ld", k);
        if (!(c[k] = make(f, name, fmi2CoSimulation)))
            return 1;
    }
    const double made = now() - begin;
    /* instance k begins at time k: all states differ, and none must follow another */
    for (long k = 0; k < count; k++)
        if (f->fmi2SetupExperiment(c[k], fmi2False, 0.0, (double)k, fmi2False, 0.0) > fmi2Warning ||
            f->fmi2EnterInitializationMode(c[k]) > fmi2Warning || f->fmi2ExitInitializationMode(c[k]) > fmi2Warning)
            return 1;
    for (int step = 0; step < 3; step++)
        for (long k = count - 1; k >= 0; k--)
            if (f->fmi2DoStep(c[k], (double)k + step * STEP, STEP, fmi2True) > fmi2Warning)
                return 1;
    long wrong = 0;
    for (long k = 0; k < count; k++) {
        double time = -1.0;
        if (f->fmi2GetRealStatus(c[k], fmi2LastSuccessfulTime, &time) != fmi2OK ||
            !(fabs(time - ((double)k + 3 * STEP)) < 1e-9))
            wrong++;
        if (f->fmi2GetFMUstate(c[k], &state[k]) != fmi2OK ||
            f->fmi2SerializedFMUstateSize(c[k], state[k], &size) != fmi2OK)
            return 1;
    }
    const double memory = resident();
    for (long k = 0; k < count; k++) {
        f->fmi2FreeFMUstate(c[k], &state[k]);
        f->fmi2FreeInstance(c[k]);
    }
    free(c);
    free(state);
    printf("%ld %ld %.9g %.0f %ld\n", count, wrong, made / (double)count, memory, living);
    return 0;
}

/* what the FMU said last is why the driver stopped */
static int ended(int code)
{
    if (code && *last_message)
        fprintf(stderr, "%s\n", last_message);
    return code;
}

int main(int argc, char **argv)
{
    Library f;
    const char *what = argc > 1 ? argv[1] : "";
#if defined(_WIN32)
    _setmode(_fileno(stdout), _O_BINARY); /* lines end here as they do elsewhere */
#endif
    if (strcmp(what, "speed") == 0 && argc > 6)
        return ended(speed(argv + 2, argv + argc));
    if (argc < 5) {
        fprintf(stderr, "driver talk|long|many|fuzz LIBRARY RESOURCES GUID ..., driver speed ...\n");
        return 2;
    }
    if (open_library(&f, argv[2], argv[3], argv[4], strcmp(what, "talk") == 0))
        return 3;
    if (strcmp(what, "talk") == 0)
        return talk(&f);
    if (f.absent || !f.fmi2GetTypesPlatform) {
        fprintf(stderr, "%d functions of FMI 2.0 are absent\n", f.absent);
        return 3;
    }
    if (strcmp(what, "long") == 0 && argc == 6)
        return ended(steady(&f, strtol(argv[5], NULL, 10)));
    if (strcmp(what, "many") == 0 && argc == 6)
        return ended(many(&f, strtol(argv[5], NULL, 10)));
    if (strcmp(what, "fuzz") == 0 && argc == 10)
        return fuzz(&f, strtoul(argv[5], NULL, 10), strtol(argv[6], NULL, 10), argv + 7);
    return 2;
}
