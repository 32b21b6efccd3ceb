/* Commands on stdin, one per line: what a host may do with an FMU, in words. */

#define LINE 262144 /* bytes of a line; a state in hexadecimal digits is some 20 kB */
#define WIDE 4096   /* values of one command */
#define SLOTS 16    /* instances, and kept states */

static char *next_word(char **cursor)
{
    char *word = *cursor + strspn(*cursor, " \t\r\n");
    *cursor = word + strcspn(word, " \t\r\n");
    if (**cursor)
        *(*cursor)++ = 0;
    return word;
}

static long integer_of(char **cursor) { return strtol(next_word(cursor), NULL, 10); }
static double real_of(char **cursor) { return strtod(next_word(cursor), NULL); }

static size_t count_of(char **cursor)
{
    const long n = integer_of(cursor);
    return n < 0 || n > WIDE ? 0 : (size_t)n;
}

static size_t references(char **cursor, fmi2ValueReference *refs)
{
    const size_t n = count_of(cursor);
    for (size_t i = 0; i < n; i++)
        refs[i] = (fmi2ValueReference)strtoul(next_word(cursor), NULL, 10);
    return n;
}

static void answer(fmi2Status status, const double *values, size_t n)
{
    printf("%d", (int)status);
    for (size_t i = 0; i < n; i++)
        printf(" %a", values[i]);
    putchar('\n');
    fflush(stdout);
}

static void answer_integers(fmi2Status status, const int *values, size_t n)
{
    printf("%d", (int)status);
    for (size_t i = 0; i < n; i++)
        printf(" %d", values[i]);
    putchar('\n');
    fflush(stdout);
}

#define OFFERED(function)                                                                                              \
    if (!f->function) {                                                                                                \
        puts("9 " #function " is absent");                                                                             \
        fflush(stdout);                                                                                                \
        continue;                                                                                                      \
    }
#define IS(name) (strcmp(command, name) == 0)
#define PLAIN(word, function)                                                                                          \
    else if (IS(word))                                                                                                 \
    {                                                                                                                  \
        OFFERED(function)                                                                                              \
        answer(f->function(c), NULL, 0);                                                                               \
    }

static int talk(const Library *f)
{
    static char line[LINE];
    static fmi2ValueReference refs[WIDE], known[WIDE];
    static double x[WIDE], y[WIDE];
    static int whole[WIDE];
    static char bytes[LINE];
    Comp instances[SLOTS] = {0}, c = NULL;
    fmi2FMUstate states[SLOTS] = {0};
    int at = 0;
    aloud = 1;
    printf("%d %s %s\n", f->absent, f->fmi2GetVersion ? f->fmi2GetVersion() : "-",
           f->fmi2GetTypesPlatform ? f->fmi2GetTypesPlatform() : "-");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        char *cursor = line;
        const char *command = next_word(&cursor);
        if (IS("new")) { /* new SLOT TYPE NAME */
            OFFERED(fmi2Instantiate)
            at = (int)integer_of(&cursor) & (SLOTS - 1);
            const int type = (int)integer_of(&cursor);
            c = instances[at] = make(f, next_word(&cursor), (fmi2Type)type);
            answer(c ? fmi2OK : fmi2Error, NULL, 0);
        } else if (IS("use")) {
            at = (int)integer_of(&cursor) & (SLOTS - 1);
            c = instances[at];
            answer(c ? fmi2OK : fmi2Error, NULL, 0);
        } else if (IS("free")) {
            OFFERED(fmi2FreeInstance)
            f->fmi2FreeInstance(c);
            c = instances[at] = NULL;
            answer(fmi2OK, NULL, 0);
        } else if (IS("array")) { /* array TYPE FIRST REFERENCE SIZE: an array of FMI 3.0, see driver_fmi3.h */
            const char type = *next_word(&cursor);
            const long first = integer_of(&cursor), reference = integer_of(&cursor), size = integer_of(&cursor);
            answer(add_array3(type, (unsigned)first, (unsigned)reference, (size_t)size) ? fmi2Error : fmi2OK, NULL, 0);
        } else if (!c) {
            puts("8 there is no instance");
            fflush(stdout);
        } else if (IS("setup")) {
            OFFERED(fmi2SetupExperiment)
            answer(f->fmi2SetupExperiment(c, fmi2False, 0.0, real_of(&cursor), fmi2False, 0.0), NULL, 0);
        }
        PLAIN("enter", fmi2EnterInitializationMode)
        PLAIN("exit", fmi2ExitInitializationMode)
        PLAIN("terminate", fmi2Terminate)
        PLAIN("reset", fmi2Reset)
        PLAIN("event", fmi2EnterEventMode)
        PLAIN("continuous", fmi2EnterContinuousTimeMode)
        else if (IS("getr")) {
            OFFERED(fmi2GetReal)
            const size_t n = references(&cursor, refs);
            memset(x, 0, sizeof x);
            const fmi2Status status = f->fmi2GetReal(c, refs, n, x);
            answer(status, x, n);
        } else if (IS("geti") || IS("getb")) {
            OFFERED(fmi2GetInteger)
            OFFERED(fmi2GetBoolean)
            const size_t n = references(&cursor, refs);
            memset(whole, 0, sizeof whole);
            const fmi2Status status =
                IS("geti") ? f->fmi2GetInteger(c, refs, n, whole) : f->fmi2GetBoolean(c, refs, n, whole);
            answer_integers(status, whole, n);
        } else if (IS("setr")) {
            OFFERED(fmi2SetReal)
            const size_t n = references(&cursor, refs);
            for (size_t i = 0; i < n; i++)
                x[i] = real_of(&cursor);
            answer(f->fmi2SetReal(c, refs, n, x), NULL, 0);
        } else if (IS("seti") || IS("setb")) {
            OFFERED(fmi2SetInteger)
            OFFERED(fmi2SetBoolean)
            const size_t n = references(&cursor, refs);
            for (size_t i = 0; i < n; i++)
                whole[i] = (int)integer_of(&cursor);
            answer(IS("seti") ? f->fmi2SetInteger(c, refs, n, whole) : f->fmi2SetBoolean(c, refs, n, whole), NULL, 0);
        } else if (IS("step")) {
            OFFERED(fmi2DoStep)
            const double time = real_of(&cursor);
            answer(f->fmi2DoStep(c, time, real_of(&cursor), fmi2True), NULL, 0);
        } else if (IS("slope")) { /* unknowns, knowns, directions */
            OFFERED(fmi2GetDirectionalDerivative)
            const size_t n = references(&cursor, refs), m = references(&cursor, known);
            for (size_t i = 0; i < m; i++)
                x[i] = real_of(&cursor);
            memset(y, 0, sizeof y);
            const fmi2Status status = f->fmi2GetDirectionalDerivative(c, refs, n, known, m, x, y);
            answer(status, y, n);
        } else if (IS("keep")) {
            OFFERED(fmi2GetFMUstate)
            answer(f->fmi2GetFMUstate(c, &states[integer_of(&cursor) & (SLOTS - 1)]), NULL, 0);
        } else if (IS("restore")) {
            OFFERED(fmi2SetFMUstate)
            answer(f->fmi2SetFMUstate(c, states[integer_of(&cursor) & (SLOTS - 1)]), NULL, 0);
        } else if (IS("drop")) {
            OFFERED(fmi2FreeFMUstate)
            answer(f->fmi2FreeFMUstate(c, &states[integer_of(&cursor) & (SLOTS - 1)]), NULL, 0);
        } else if (IS("bytes")) { /* of a kept state, through bytes into another slot */
            OFFERED(fmi2SerializedFMUstateSize)
            OFFERED(fmi2SerializeFMUstate)
            OFFERED(fmi2DeSerializeFMUstate)
            const int from = (int)integer_of(&cursor) & (SLOTS - 1), to = (int)integer_of(&cursor) & (SLOTS - 1);
            size_t size = 0;
            fmi2Status status = f->fmi2SerializedFMUstateSize(c, states[from], &size);
            if (status <= fmi2Warning && size <= sizeof bytes)
                status = f->fmi2SerializeFMUstate(c, states[from], bytes, size);
            if (status <= fmi2Warning && size <= sizeof bytes)
                status = f->fmi2DeSerializeFMUstate(c, bytes, size, &states[to]);
            const double length = (double)size;
            answer(status, &length, 1);
        } else if (IS("discrete")) {
            OFFERED(fmi2NewDiscreteStates)
            fmi2EventInfo info;
            memset(&info, 0, sizeof info);
            const fmi2Status status = f->fmi2NewDiscreteStates(c, &info);
            const double told[] = {info.newDiscreteStatesNeeded, info.terminateSimulation, info.nextEventTimeDefined,
                                   info.nextEventTime};
            answer(status, told, 4);
        } else if (IS("time")) {
            OFFERED(fmi2SetTime)
            answer(f->fmi2SetTime(c, real_of(&cursor)), NULL, 0);
        } else if (IS("states") || IS("rates")) {
            OFFERED(fmi2GetContinuousStates)
            OFFERED(fmi2GetDerivatives)
            const size_t n = count_of(&cursor);
            memset(x, 0, sizeof x);
            const fmi2Status status =
                IS("states") ? f->fmi2GetContinuousStates(c, x, n) : f->fmi2GetDerivatives(c, x, n);
            answer(status, x, n);
        } else if (IS("place")) {
            OFFERED(fmi2SetContinuousStates)
            const size_t n = count_of(&cursor);
            for (size_t i = 0; i < n; i++)
                x[i] = real_of(&cursor);
            answer(f->fmi2SetContinuousStates(c, x, n), NULL, 0);
        } else {
            puts("7 no such command");
            fflush(stdout);
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (states[i] && c && f->fmi2FreeFMUstate)
            f->fmi2FreeFMUstate(c, &states[i]);
    for (int i = 0; i < SLOTS; i++)
        if (instances[i] && f->fmi2FreeInstance)
            f->fmi2FreeInstance(instances[i]);
    return 0;
}
