/* An FMU's shared library in the hands of a host: functions of FMI 2.0 (3.0: driver_fmi3.h), messages and memory. */
#ifndef TG_DRIVER_H
#define TG_DRIVER_H

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fmi2.h"

typedef const fmi2ValueReference *Refs;
typedef fmi2Component Comp;

/* X(name, result, arguments): all 44 */
#define FUNCTIONS(X)                                                                                                   \
    X(fmi2GetTypesPlatform, const char *, (void))                                                                      \
    X(fmi2GetVersion, const char *, (void))                                                                            \
    X(fmi2SetDebugLogging, fmi2Status, (Comp, fmi2Boolean, size_t, const fmi2String *))                                \
    X(fmi2Instantiate, Comp, (fmi2String, fmi2Type, fmi2String, fmi2String, const fmi2CallbackFunctions *,             \
                              fmi2Boolean, fmi2Boolean))                                                               \
    X(fmi2FreeInstance, void, (Comp))                                                                                  \
    X(fmi2SetupExperiment, fmi2Status, (Comp, fmi2Boolean, fmi2Real, fmi2Real, fmi2Boolean, fmi2Real))                 \
    X(fmi2EnterInitializationMode, fmi2Status, (Comp))                                                                 \
    X(fmi2ExitInitializationMode, fmi2Status, (Comp))                                                                  \
    X(fmi2Terminate, fmi2Status, (Comp))                                                                               \
    X(fmi2Reset, fmi2Status, (Comp))                                                                                   \
    X(fmi2GetReal, fmi2Status, (Comp, Refs, size_t, fmi2Real *))                                                       \
    X(fmi2GetInteger, fmi2Status, (Comp, Refs, size_t, fmi2Integer *))                                                 \
    X(fmi2GetBoolean, fmi2Status, (Comp, Refs, size_t, fmi2Boolean *))                                                 \
    X(fmi2GetString, fmi2Status, (Comp, Refs, size_t, fmi2String *))                                                   \
    X(fmi2SetReal, fmi2Status, (Comp, Refs, size_t, const fmi2Real *))                                                 \
    X(fmi2SetInteger, fmi2Status, (Comp, Refs, size_t, const fmi2Integer *))                                           \
    X(fmi2SetBoolean, fmi2Status, (Comp, Refs, size_t, const fmi2Boolean *))                                           \
    X(fmi2SetString, fmi2Status, (Comp, Refs, size_t, const fmi2String *))                                             \
    X(fmi2GetFMUstate, fmi2Status, (Comp, fmi2FMUstate *))                                                             \
    X(fmi2SetFMUstate, fmi2Status, (Comp, fmi2FMUstate))                                                               \
    X(fmi2FreeFMUstate, fmi2Status, (Comp, fmi2FMUstate *))                                                            \
    X(fmi2SerializedFMUstateSize, fmi2Status, (Comp, fmi2FMUstate, size_t *))                                          \
    X(fmi2SerializeFMUstate, fmi2Status, (Comp, fmi2FMUstate, fmi2Byte *, size_t))                                     \
    X(fmi2DeSerializeFMUstate, fmi2Status, (Comp, const fmi2Byte *, size_t, fmi2FMUstate *))                           \
    X(fmi2GetDirectionalDerivative, fmi2Status, (Comp, Refs, size_t, Refs, size_t, const fmi2Real *, fmi2Real *))      \
    X(fmi2EnterEventMode, fmi2Status, (Comp))                                                                          \
    X(fmi2NewDiscreteStates, fmi2Status, (Comp, fmi2EventInfo *))                                                      \
    X(fmi2EnterContinuousTimeMode, fmi2Status, (Comp))                                                                 \
    X(fmi2CompletedIntegratorStep, fmi2Status, (Comp, fmi2Boolean, fmi2Boolean *, fmi2Boolean *))                      \
    X(fmi2SetTime, fmi2Status, (Comp, fmi2Real))                                                                       \
    X(fmi2SetContinuousStates, fmi2Status, (Comp, const fmi2Real *, size_t))                                           \
    X(fmi2GetDerivatives, fmi2Status, (Comp, fmi2Real *, size_t))                                                      \
    X(fmi2GetEventIndicators, fmi2Status, (Comp, fmi2Real *, size_t))                                                  \
    X(fmi2GetContinuousStates, fmi2Status, (Comp, fmi2Real *, size_t))                                                 \
    X(fmi2GetNominalsOfContinuousStates, fmi2Status, (Comp, fmi2Real *, size_t))                                       \
    X(fmi2SetRealInputDerivatives, fmi2Status, (Comp, Refs, size_t, const fmi2Integer *, const fmi2Real *))            \
    X(fmi2GetRealOutputDerivatives, fmi2Status, (Comp, Refs, size_t, const fmi2Integer *, fmi2Real *))                 \
    X(fmi2DoStep, fmi2Status, (Comp, fmi2Real, fmi2Real, fmi2Boolean))                                                 \
    X(fmi2CancelStep, fmi2Status, (Comp))                                                                              \
    X(fmi2GetStatus, fmi2Status, (Comp, const fmi2StatusKind, fmi2Status *))                                           \
    X(fmi2GetRealStatus, fmi2Status, (Comp, const fmi2StatusKind, fmi2Real *))                                         \
    X(fmi2GetIntegerStatus, fmi2Status, (Comp, const fmi2StatusKind, fmi2Integer *))                                   \
    X(fmi2GetBooleanStatus, fmi2Status, (Comp, const fmi2StatusKind, fmi2Boolean *))                                   \
    X(fmi2GetStringStatus, fmi2Status, (Comp, const fmi2StatusKind, fmi2String *))

typedef struct {
#define MEMBER(name, result, arguments) result(*name) arguments;
    FUNCTIONS(MEMBER)
#undef MEMBER
    int absent; /* functions that the library does not offer */
    const char *guid, *resources;
} Library;

/* what the FMU said and took; one process drives one thing at a time */
static long messages, worst_message, allocations, living;
static int aloud; /* whether messages are printed */
static char last_message[1200];

static void hear(fmi2ComponentEnvironment environment, fmi2String name, fmi2Status status, fmi2String category,
                 fmi2String text, ...)
{
    va_list arguments;
    (void)environment;
    (void)name;
    va_start(arguments, text);
    vsnprintf(last_message, sizeof last_message, text ? text : "", arguments);
    va_end(arguments);
    messages++;
    if ((long)status > worst_message)
        worst_message = (long)status;
    for (char *c = last_message; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    if (aloud)
        printf("! %d %s %s\n", (int)status, category && *category ? category : "-", last_message);
}

static void *take(size_t count, size_t size)
{
    allocations++;
    living++;
    return calloc(count, size);
}

static void give(void *memory)
{
    if (memory)
        living--;
    free(memory);
}

static const fmi2CallbackFunctions host = {hear, take, give, NULL, NULL};

#if defined(_WIN32)
static void *opened(const char *path)
{
    void *handle = (void *)LoadLibraryA(path);
    if (!handle)
        fprintf(stderr, "%s: error %lu of Windows\n", path, GetLastError());
    return handle;
}

static void *looked_up(void *handle, const char *name)
{
    const FARPROC found = GetProcAddress((HMODULE)handle, name);
    void *out;
    memcpy(&out, &found, sizeof out);
    return out;
}
#else
static void *opened(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    return handle;
}

static void *looked_up(void *handle, const char *name) { return dlsym(handle, name); }
#endif

static int open_fmi3(Library *f, void *handle, int tell); /* driver_fmi3.h */

/* 0, or 1 with a sentence on stderr; names what is absent on stdout if `tell` */
static int open_library(Library *f, const char *path, const char *resources, const char *guid, int tell)
{
    memset(f, 0, sizeof *f);
    void *handle = opened(path);
    if (!handle)
        return 1;
    f->guid = guid;
    f->resources = resources;
    if (open_fmi3(f, handle, tell))
        return 0;
#define LOOK(name, result, arguments)                                                                                  \
    {                                                                                                                  \
        void *found = looked_up(handle, #name);                                                                        \
        memcpy(&f->name, &found, sizeof found);                                                                        \
        if (!found) {                                                                                                  \
            f->absent++;                                                                                               \
            if (tell)                                                                                                  \
                printf("- %s\n", #name);                                                                               \
        }                                                                                                              \
    }
    FUNCTIONS(LOOK)
#undef LOOK
    return 0;
}

static Comp make(const Library *f, const char *name, fmi2Type type)
{
    return f->fmi2Instantiate(name, type, f->guid, f->resources, &host, fmi2False, fmi2True);
}

/* an instance for co-simulation, ready to step; NULL if it refuses */
static Comp ready(const Library *f, const char *name)
{
    Comp c = make(f, name, fmi2CoSimulation);
    if (!c)
        return NULL;
    if (f->fmi2SetupExperiment(c, fmi2False, 0.0, 0.0, fmi2False, 0.0) > fmi2Warning ||
        f->fmi2EnterInitializationMode(c) > fmi2Warning || f->fmi2ExitInitializationMode(c) > fmi2Warning) {
        f->fmi2FreeInstance(c);
        return NULL;
    }
    return c;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* resident memory in bytes, 0 where the system does not tell */
static double resident(void)
{
    long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file)
        return 0.0;
    if (fscanf(file, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    fclose(file);
    return 4096.0 * (double)pages;
}

#endif
