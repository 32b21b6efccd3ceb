/* The momentum observer: one sample at a time, or a whole log. The rules are those of tangere/observe/inputs.py (Neighbours). */

#define TG_SAMPLE (1 + 2 * TG_DOF) /* a row of the history: stamp, q, qd */
#define TG_RESIDUALS 3             /* the newest, one that the caller still holds, and one that is free */

typedef struct {
    double time, p[TG_DOF], beta[TG_DOF], r[TG_DOF];
    int anchored; /* p and beta belong to the sample before */
    int fresh;    /* nothing was filtered since */
    double *history;
    npy_intp oldest, kept, room; /* rows */
} tg_track;

typedef struct {
    PyObject_HEAD
    PyObject *arm, *made; /* made: the arguments, for a copy */
    tg_law law;
    double gain[TG_DOF], start[TG_DOF], delay, gap;
    int first; /* the first balance after a start or a break is the residual */
    int rates; /* 1: one gain for all joints */
    int fresh; /* the newest answer of balance() is the first after a start or a break */
    double h, weight[TG_DOF];
    tg_track track;
    PyObject *recent[TG_RESIDUALS]; /* the first is the newest residual */
} Momentum;

static const tg_shape *const tg_vector_shape = &tg_shapes[TG_K_gravity_torque];

/* ---- the rules ------------------------------------------------------------------------------------------------ */

/* The motion at t - delay into x (q, qd), by a line between the two samples around it; 0 where it is not known.
 * Called once per new stamp. A period that is not usable, or a motion that is not finite, ends the history. */
static int tg_delayed(const Momentum *m, tg_track *s, double t, double h, int finite, double *x)
{
    const double before = s->kept ? s->history[(s->oldest + s->kept - 1) * TG_SAMPLE] : -INFINITY;
    if (!finite || !(h > 0.0) || h > m->gap || !(t > before))
        s->kept = 0;
    if (!finite || !isfinite(t))
        return 0;
    if (s->oldest + s->kept == s->room) {
        if (s->room < 16 || 2 * s->kept > s->room) {
            const npy_intp room = s->room < 16 ? 16 : 2 * s->room;
            double *more = realloc(s->history, room * TG_SAMPLE * sizeof(double));
            if (!more)
                return 0; /* no memory: held, as for any sample that cannot be used */
            s->history = more;
            s->room = room;
        }
        memmove(s->history, s->history + s->oldest * TG_SAMPLE, s->kept * TG_SAMPLE * sizeof(double));
        s->oldest = 0;
    }
    double *row = s->history + (s->oldest + s->kept++) * TG_SAMPLE;
    row[0] = t;
    memcpy(row + 1, x, 2 * TG_DOF * sizeof(double));
    const double then = t - m->delay;
    const double *at = s->history + s->oldest * TG_SAMPLE;
    if (then < at[0] || s->kept < 2)
        return 0;
    while (s->kept > 2 && at[TG_SAMPLE] <= then) {
        at += TG_SAMPLE;
        s->oldest++;
        s->kept--;
    }
    const double share = (then - at[0]) / (at[TG_SAMPLE] - at[0]);
    for (int j = 1; j < TG_SAMPLE; j++)
        x[j - 1] = at[j] + share * (at[TG_SAMPLE + j] - at[j]);
    return 1;
}

/* y from the sample before to this one, which is kept: 1 where there is one. Called once per new stamp. */
TG_INLINE int tg_balance(const Momentum *m, tg_track *s, double h, int finite, const double *p, const double *beta,
                         const double *tau, double *y)
{
    int found = 0;
    if (s->anchored && h > 0.0 && !(h > m->gap)) {
        found = finite;
        for (int j = 0; j < TG_DOF; j++) {
            const double x[6] = {s->p[j], p[j], s->beta[j], beta[j], tau[j], h};
            tg_momentum_balance_w1(x, NULL, &y[j]);
            found &= fabs(y[j]) <= DBL_MAX;
        }
        s->anchored = found;
    } else {
        s->anchored = finite;
        s->fresh = 1;
    }
    memcpy(s->p, p, sizeof s->p);
    memcpy(s->beta, beta, sizeof s->beta);
    return found;
}

TG_INLINE void tg_filter(const Momentum *m, tg_track *s, const double *w, const double *y)
{
    const int step = m->rates > 1;
    if (m->first && s->fresh)
        memcpy(s->r, y, sizeof s->r);
    else
        for (int j = 0; j < TG_DOF; j++) {
            const double x[3] = {s->r[j], y[j], w[j * step]};
            tg_lag_w1(x, NULL, &s->r[j]);
        }
    s->fresh = 0;
}

static void tg_begin(const Momentum *m, tg_track *s)
{
    s->time = NAN;
    s->anchored = 0;
    s->fresh = 1;
    s->kept = s->oldest = 0;
    memcpy(s->r, m->start, sizeof s->r);
}

/* ---- one sample ----------------------------------------------------------------------------------------------- */

static PyObject *tg_names[5]; /* time, period, q, qd, tau: interned */
enum { TG_TIME, TG_PERIOD, TG_Q, TG_QD, TG_TAU };

static int tg_number(PyObject *state, int which, double *value)
{
    PyObject *object = PyObject_GetAttr(state, tg_names[which]);
    if (!object)
        return -1;
    *value = PyFloat_AsDouble(object); /* a numpy float is a float: as quick */
    Py_DECREF(object);
    return *value == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static int tg_joints(PyObject *state, int which, double *x)
{
    static const int size = TG_DOF;
    PyObject *object = PyObject_GetAttr(state, tg_names[which]);
    if (!object)
        return -1;
    PyArrayObject *v = (PyArrayObject *)object, *made = NULL;
    if (!PyArray_CheckExact(object) || PyArray_NDIM(v) != 1 || PyArray_DIM(v, 0) != TG_DOF ||
        PyArray_TYPE(v) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(v)) {
        v = made = (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
        if (!v || PyArray_NDIM(v) != 1 || PyArray_DIM(v, 0) != TG_DOF) {
            tg_refused(object, which == TG_Q ? "q" : which == TG_QD ? "qd" : "tau", 1, &size);
            Py_XDECREF(made);
            Py_DECREF(object);
            return -1;
        }
    }
    const char *from = PyArray_BYTES(v);
    const npy_intp step = PyArray_STRIDE(v, 0);
    for (int i = 0; i < TG_DOF; i++)
        x[i] = *(const double *)(from + i * step);
    Py_XDECREF(made);
    Py_DECREF(object);
    return 0;
}

/* take a sample: 1 with y, 0 where it gives none, -1 with an error */
static int tg_taken(Momentum *m, PyObject *state, int reset, double *y)
{
    double t, h = NAN, x[2 * TG_DOF], tau[TG_DOF], p[TG_DOF], beta[TG_DOF];
    tg_track *s = &m->track;
    if (!m->arm) {
        PyErr_SetString(PyExc_TypeError, "Momentum was never initialised");
        return -1;
    }
    if (tg_number(state, TG_TIME, &t) < 0)
        return -1;
    if (reset)
        tg_begin(m, s);
    else if (t == s->time)
        return 0; /* a lost sample: the one before was handed out again */
    else if (tg_number(state, TG_PERIOD, &h) < 0)
        return -1;
    if (tg_joints(state, TG_Q, x) < 0 || tg_joints(state, TG_QD, x + TG_DOF) < 0 || tg_joints(state, TG_TAU, tau) < 0)
        return -1;
    s->time = t;
    int finite = tg_finite(x, TG_DOF, TG_ANGLE_MAX) && tg_finite(x + TG_DOF, TG_DOF, TG_NUMBER_MAX);
    if (m->delay > 0.0)
        finite = tg_delayed(m, s, t, h, finite, x);
    if (finite)
        tg_isa->momentum_one(((Arm *)m->arm)->P, &m->law, 1, x, x + TG_DOF, p, beta);
    else
        memset(p, 0, sizeof p), memset(beta, 0, sizeof beta);
    const int found = tg_balance(m, s, h, finite, p, beta, tau, y);
    if (found && h != m->h) {
        m->h = h;
        tg_isa->weights_one(m->gain, m->rates, 1, &h, m->weight);
    }
    return found;
}

/* an array for the residual that nobody else holds, as the newest */
static double *tg_residual(Momentum *m)
{
    PyObject *made = NULL;
#ifndef Py_GIL_DISABLED
    for (int i = 1; i < TG_RESIDUALS && !made; i++)
        if (m->recent[i] && tg_untouched(m->recent[i], tg_vector_shape, 0)) {
            made = m->recent[i];
            m->recent[i] = m->recent[0];
            m->recent[0] = made;
        }
#endif
    if (!made) {
        made = tg_fresh(tg_vector_shape);
        if (!made)
            return NULL;
        PyObject *last = m->recent[TG_RESIDUALS - 1];
        for (int i = TG_RESIDUALS - 1; i > 0; i--)
            m->recent[i] = m->recent[i - 1];
        m->recent[0] = made;
        Py_XDECREF(last);
    }
    return (double *)PyArray_DATA((PyArrayObject *)made);
}

static PyObject *momentum_update(PyObject *object, PyObject *state)
{
    Momentum *m = (Momentum *)object;
    double y[TG_DOF];
    const int found = tg_taken(m, state, 0, y);
    if (found < 0)
        return NULL;
    if (found) {
        double *out = tg_residual(m);
        if (!out)
            return NULL;
        tg_filter(m, &m->track, m->weight, y);
        memcpy(out, m->track.r, sizeof m->track.r);
    }
    Py_INCREF(m->recent[0]);
    return m->recent[0];
}

static PyObject *momentum_balance(PyObject *object, PyObject *state)
{
    Momentum *m = (Momentum *)object;
    double y[TG_DOF];
    const int found = tg_taken(m, state, 0, y);
    if (found < 0)
        return NULL;
    if (!found)
        Py_RETURN_NONE;
    m->fresh = m->track.fresh;
    m->track.fresh = 0;
    PyObject *list = PyList_New(TG_DOF);
    for (int j = 0; list && j < TG_DOF; j++) {
        PyObject *item = PyFloat_FromDouble(y[j]);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, j, item);
    }
    return list;
}

static PyObject *momentum_reset(PyObject *object, PyObject *state)
{
    Momentum *m = (Momentum *)object;
    double y[TG_DOF];
    if (tg_taken(m, state, 1, y) < 0)
        return NULL;
    double *out = tg_residual(m);
    if (!out)
        return NULL;
    memcpy(out, m->start, sizeof m->start);
    Py_RETURN_NONE;
}

/* ---- a whole log ---------------------------------------------------------------------------------------------- */

#define TG_CHUNK 128 /* rows of p, beta and weights, 18 KB: they stay in the first-level cache */

static void tg_replayed(const Momentum *m, tg_track *s, npy_intp n, const double *t, const double *period,
                        const double *q, const double *qd, const double *tau, double *r, npy_bool *used)
{
    const double *P = ((const Arm *)m->arm)->P;
    double p[TG_CHUNK][TG_DOF], beta[TG_CHUNK][TG_DOF], w[TG_CHUNK * TG_DOF], h[TG_CHUNK], y[TG_DOF];
    double x[2][TG_CHUNK][TG_DOF]; /* the motion at t - delay */
    char finite[TG_CHUNK], lost[TG_CHUNK];
    for (npy_intp start = 0; start < n; start += TG_CHUNK) {
        const npy_intp rows = n - start < TG_CHUNK ? n - start : TG_CHUNK;
        const double *Q = q + start * TG_DOF, *QD = qd + start * TG_DOF;
        for (npy_intp i = 0; i < rows; i++) {
            const npy_intp k = start + i;
            h[i] = k == 0 ? NAN : period ? period[k] : t[k] - t[k - 1];
            lost[i] = k > 0 && t[k] == t[k - 1];
            finite[i] = tg_finite(Q + i * TG_DOF, TG_DOF, TG_ANGLE_MAX) && tg_finite(QD + i * TG_DOF, TG_DOF, TG_NUMBER_MAX);
        }
        if (m->delay > 0.0) {
            for (npy_intp i = 0; i < rows; i++) {
                double motion[2 * TG_DOF];
                memcpy(motion, Q + i * TG_DOF, sizeof(double) * TG_DOF);
                memcpy(motion + TG_DOF, QD + i * TG_DOF, sizeof(double) * TG_DOF);
                if (!lost[i])
                    finite[i] = (char)tg_delayed(m, s, t[start + i], h[i], finite[i], motion);
                memcpy(x[0][i], motion, sizeof(double) * TG_DOF);
                memcpy(x[1][i], motion + TG_DOF, sizeof(double) * TG_DOF);
            }
            Q = &x[0][0][0];
            QD = &x[1][0][0];
        }
        tg_isa->momentum(P, &m->law, rows, Q, QD, &p[0][0], &beta[0][0]);
        tg_isa->weights(m->gain, m->rates, rows, h, w);
        for (npy_intp i = 0; i < rows; i++) {
            const npy_intp k = start + i;
            used[k] = !lost[i] && tg_balance(m, s, h[i], finite[i], p[i], beta[i], tau + k * TG_DOF, y);
            if (used[k])
                tg_filter(m, s, w + i * m->rates, y);
            memcpy(r + k * TG_DOF, s->r, sizeof s->r);
        }
    }
}

/* a float64 array of that shape, as replay.py makes it */
static const double *tg_column(PyObject *object, npy_intp n, int wide, const char *name)
{
    PyArrayObject *a = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(a) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(a) ||
        PyArray_NDIM(a) != 1 + wide || (n >= 0 && PyArray_DIM(a, 0) != n) || (wide && PyArray_DIM(a, 1) != TG_DOF)) {
        PyErr_Format(tg_invalid, "%s: must be a contiguous float64 array with one row per sample", name);
        return NULL;
    }
    return (const double *)PyArray_DATA(a);
}

static PyObject *momentum_replay(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    const Momentum *m = (const Momentum *)object;
    if (nargs != 5 || !m->arm)
        return PyErr_Format(PyExc_TypeError, "replay() takes time, period, q, qd, tau; %zd were given", nargs);
    const double *t = tg_column(args[0], -1, 0, "time"), *period = NULL;
    if (!t)
        return NULL;
    npy_intp dims[2] = {PyArray_DIM((PyArrayObject *)args[0], 0), TG_DOF};
    if (args[1] != Py_None && !(period = tg_column(args[1], dims[0], 0, "period")))
        return NULL;
    const double *q, *qd, *tau;
    if (!(q = tg_column(args[2], dims[0], 1, "q")) || !(qd = tg_column(args[3], dims[0], 1, "qd")) ||
        !(tau = tg_column(args[4], dims[0], 1, "tau")))
        return NULL;
    PyObject *r = PyArray_SimpleNew(2, dims, NPY_DOUBLE), *used = PyArray_SimpleNew(1, dims, NPY_BOOL);
    if (!r || !used) {
        Py_XDECREF(r);
        Py_XDECREF(used);
        return NULL;
    }
    double *residuals = (double *)PyArray_DATA((PyArrayObject *)r);
    npy_bool *which = (npy_bool *)PyArray_DATA((PyArrayObject *)used);
    /* others may run meanwhile: arm, observer and arrays stay */
    PyObject *const stay[] = {object, m->arm, args[0], args[1], args[2], args[3], args[4]};
    for (int i = 0; i < 7; i++)
        Py_INCREF(stay[i]);
    Py_BEGIN_ALLOW_THREADS
    tg_track track = {0};
    tg_begin(m, &track);
    tg_replayed(m, &track, dims[0], t, period, q, qd, tau, residuals, which);
    free(track.history);
    Py_END_ALLOW_THREADS
    for (int i = 0; i < 7; i++)
        Py_DECREF(stay[i]);
    return Py_BuildValue("NN", r, used);
}
