/* The whole state as a copy or as bytes, and directional derivatives. */

typedef struct {
    char magic[8];
    unsigned long long layout, file, check; /* of the block and its sources; of the GUID; of the bytes that follow */
    Values values;
} Saved;

static void tg_save(const Instance *I, Saved *s)
{
    memset(s, 0, sizeof *s);
    memcpy(s->magic, "TGSTATE2", 8);
    s->layout = TG_LAYOUT;
    s->file = I->file;
    memcpy(&s->values, &I->now, sizeof s->values);
    s->check = tg_hash(&s->values, sizeof s->values);
}

/* NULL, or why this is no state for the instance */
static const char *tg_foreign(const Instance *I, const Saved *s)
{
    if (memcmp(s->magic, "TGSTATE2", 8) != 0 || s->layout != TG_LAYOUT)
        return "this is no state of such a block";
    if (s->check != tg_hash(&s->values, sizeof s->values))
        return "the state was damaged";
    if (s->file != I->file)
        return "this is the state of another FMU: its GUID is not this one's";
    return s->values.type == I->now.type ? NULL : "the state is of the other kind: model exchange or co-simulation";
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2GetFMUstate", ANY_MODE) || missing(I, "fmi2GetFMUstate", "FMUstate", 1, state))
        return fmi2Error;
    if (!*state)
        *state = tg_allocate(&I->callbacks, sizeof(Saved));
    if (!*state)
        return say(I, fmi2Error, "fmi2GetFMUstate: there is no memory left");
    tg_save(I, (Saved *)*state);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SetFMUstate", ANY_MODE) || missing(I, "fmi2SetFMUstate", "FMUstate", 1, state))
        return fmi2Error;
    const Saved *s = (const Saved *)state;
    const char *problem = tg_foreign(I, s);
    if (problem)
        return say(I, fmi2Error, "fmi2SetFMUstate: %s", problem);
    memcpy(&I->now, &s->values, sizeof I->now);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2FreeFMUstate", ANY_MODE))
        return fmi2Error;
    if (state && *state) {
        tg_release(&I->callbacks, *state);
        *state = NULL;
    }
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SerializedFMUstateSize", ANY_MODE) ||
        missing(I, "fmi2SerializedFMUstateSize", "FMUstate", 1, state) ||
        missing(I, "fmi2SerializedFMUstateSize", "size", 1, size))
        return fmi2Error;
    *size = sizeof(Saved);
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2SerializeFMUstate)(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[],
                                                        size_t size)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2SerializeFMUstate", ANY_MODE) || missing(I, "fmi2SerializeFMUstate", "FMUstate", 1, state) ||
        missing(I, "fmi2SerializeFMUstate", "serializedState", 1, bytes))
        return fmi2Error;
    if (size < sizeof(Saved))
        return say(I, fmi2Error, "fmi2SerializeFMUstate: %lu bytes are too few, %lu are needed", (unsigned long)size,
                   (unsigned long)sizeof(Saved));
    memcpy(bytes, state, sizeof(Saved));
    return fmi2OK;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2DeSerializeFMUstate)(fmi2Component c, const fmi2Byte bytes[], size_t size,
                                                          fmi2FMUstate *state)
{
    Instance *I = (Instance *)c;
    if (!allowed(I, "fmi2DeSerializeFMUstate", ANY_MODE) ||
        missing(I, "fmi2DeSerializeFMUstate", "serializedState", 1, bytes) ||
        missing(I, "fmi2DeSerializeFMUstate", "FMUstate", 1, state))
        return fmi2Error;
    Saved s;
    if (size == sizeof s)
        memcpy(&s, bytes, sizeof s);
    const char *problem = size == sizeof s ? tg_foreign(I, &s) : "these bytes are no state of such a block";
    if (problem)
        return say(I, fmi2Error, "fmi2DeSerializeFMUstate: %s", problem);
    if (!*state)
        *state = tg_allocate(&I->callbacks, sizeof s);
    if (!*state)
        return say(I, fmi2Error, "fmi2DeSerializeFMUstate: there is no memory left");
    memcpy(*state, &s, sizeof s);
    return fmi2OK;
}

/* whether a directional derivative may be asked in this variable: continuous inputs, states, and their start values */
static int differentiable(const Instance *I, int i)
{
    const tg_group *g = group_of(tg_reals, N_REAL_GROUPS, i);
    if (g->access == INPUT)
        return 1;
    for (int k = 0; k < N_STATES; k++)
        if (tg_states[k] == i)
            return 1;
    return I->now.mode == INITIALISING && g->start;
}

FMI2_EXPORT fmi2Status FMI2_NAME(fmi2GetDirectionalDerivative)(fmi2Component c, const fmi2ValueReference unknown[],
                                                               size_t n_unknown, const fmi2ValueReference known[],
                                                               size_t n_known, const fmi2Real d_known[],
                                                               fmi2Real d_unknown[])
{
    static const char function[] = "fmi2GetDirectionalDerivative";
    Instance *I = (Instance *)c;
    double d[TG_STATE(N_REAL)], out[TG_STATE(N_REAL)];
    if (!allowed(I, function, GETTABLE) || missing(I, function, "vUnknown_ref", n_unknown, unknown) ||
        missing(I, function, "vKnown_ref", n_known, known) || missing(I, function, "dvKnown", n_known, d_known) ||
        missing(I, function, "dvUnknown", n_unknown, d_unknown))
        return fmi2Error;
    if (!TG_DIRECTIONAL)
        return say(I, fmi2Error, "%s: nothing in this block is continuous", function);
    memset(d, 0, sizeof d);
    memset(out, 0, sizeof out);
    for (size_t k = 0; k < n_known; k++) {
        if (known[k] >= N_REAL)
            return unknown_reference(I, function, known[k]);
        if (!differentiable(I, (int)known[k]))
            return say(I, fmi2Error, "%s: %s is no continuous input and no state", function,
                       group_of(tg_reals, N_REAL_GROUPS, (int)known[k])->name);
        if (!all_finite(d_known + k, 1))
            return say(I, fmi2Error, "%s: a direction is not a finite number", function);
        d[known[k]] += d_known[k];
    }
    for (size_t k = 0; k < n_unknown; k++) {
        if (unknown[k] >= N_REAL)
            return unknown_reference(I, function, unknown[k]);
        const tg_group *g = group_of(tg_reals, N_REAL_GROUPS, (int)unknown[k]);
        if (g->access != COMPUTED || g->discrete)
            return say(I, fmi2Error, "%s: %s is no continuous output", function, g->name);
    }
    const fmi2Status status = computed(I);
    if (status > fmi2Warning)
        return status;
    block_rates(&I->now, d, out);
    for (size_t k = 0; k < n_unknown; k++)
        if (!all_finite(out + unknown[k], 1))
            return say(I, fmi2Discard, "%s: %s has no derivative here", function,
                       group_of(tg_reals, N_REAL_GROUPS, (int)unknown[k])->name);
    for (size_t k = 0; k < n_unknown; k++)
        d_unknown[k] = out[unknown[k]];
    return fmi2OK;
}
