/* The newest samples of a motion, oldest first, for who looks back some tenths of a second. Included by periods.c. */

typedef struct {
    PyObject_HEAD
    double gap, span;         /* [s] between two samples that belong together; that are kept */
    npy_intp n, first, count, room; /* numbers of one sample; where the oldest lies; how many; for how many (a power of two) */
    double *rows;             /* room x (n + 2): stamp, v . v, v */
} Track;

static inline double *track_row(const Track *t, npy_intp k)
{
    return t->rows + ((t->first + k) & (t->room - 1)) * (t->n + 2);
}

/* twice the room, the oldest sample first; 0: there is none */
static int track_grow(Track *t)
{
    const npy_intp room = t->room ? 2 * t->room : 64, size = t->n + 2;
    double *rows = PyMem_New(double, (size_t)(room * size));
    if (!rows)
        return PyErr_NoMemory() != NULL;
    for (npy_intp k = 0; k < t->count; k++)
        memcpy(rows + k * size, track_row(t, k), (size_t)size * sizeof(double));
    PyMem_Free(t->rows);
    t->rows = rows;
    t->room = room;
    t->first = 0;
    return 1;
}

static PyObject *track_add(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    Track *t = (Track *)object;
    const double time = nargs == 3 ? PyFloat_AsDouble(args[0]) : -1.0, share = nargs == 3 ? PyFloat_AsDouble(args[2]) : -1.0;
    if (nargs != 3 || PyErr_Occurred())
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "add(time, v, share)");
    PyArrayObject *v = tg_numbers(args[1]);
    if (!v || PyArray_NDIM(v) != 1) {
        Py_XDECREF(v);
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "add: v is a vector");
    }
    const npy_intp n = PyArray_DIM(v, 0), pace = tg_pace(v);
    double before = 0.0;
    const double since = t->count ? time - track_row(t, t->count - 1)[0] : -1.0;
    if (n != t->n) {
        PyMem_Free(t->rows);
        t->rows = NULL;
        t->count = t->room = 0;
        t->n = n;
    } else if (0.0 <= since && since <= t->gap)
        before = track_row(t, t->count - 1)[1];
    else
        t->count = 0;
    if (t->count == t->room && !track_grow(t)) {
        Py_DECREF(v);
        return NULL;
    }
    double *const row = track_row(t, t->count++);
    double speed = 0.0;
    for (npy_intp i = 0; i < n; i++) {
        const double x = row[i + 2] = *(const double *)(PyArray_BYTES(v) + i * pace);
        speed += x * x;
    }
    Py_DECREF(v);
    row[0] = time;
    row[1] = speed;
    while (time - track_row(t, 0)[0] > t->span) {
        t->first++;
        t->count--;
    }
    const double most = speed / share;
    return PyBool_FromLong(before > most || track_row(t, 0)[1] > most || track_row(t, t->count / 2)[1] > most);
}

static PyObject *track_clear(PyObject *object, PyObject *none)
{
    (void)none;
    ((Track *)object)->count = 0;
    Py_RETURN_NONE;
}

static Py_ssize_t track_length(PyObject *object) { return ((Track *)object)->count; }

static PyObject *track_item(PyObject *object, Py_ssize_t k)
{
    const Track *t = (const Track *)object;
    if (k < 0 || k >= t->count) {
        PyErr_SetString(PyExc_IndexError, "no such sample");
        return NULL;
    }
    const double *row = track_row(t, k);
    npy_intp n = t->n;
    PyObject *v = PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    if (!v)
        return NULL;
    memcpy(PyArray_DATA((PyArrayObject *)v), row + 2, (size_t)n * sizeof(double));
    return Py_BuildValue("dNd", row[0], v, row[1]);
}

static int track_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    Track *t = (Track *)object;
    if (keywords || !PyArg_ParseTuple(args, "dd", &t->gap, &t->span)) {
        PyErr_SetString(PyExc_TypeError, "Track(gap, span) [s]");
        return -1;
    }
    return 0;
}

static void track_dealloc(PyObject *object)
{
    PyMem_Free(((Track *)object)->rows);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *track_reduce(PyObject *object, PyObject *none)
{
    const Track *t = (const Track *)object;
    (void)none;
    return Py_BuildValue("O(dd)", Py_TYPE(object), t->gap, t->span);
}

static PyMethodDef track_methods[] = {
    {"add", (PyCFunction)(void (*)(void))track_add, METH_FASTCALL,
     "add(time, v, share): one more sample; whether v . v is below that share of what it was one sample ago, of the "
     "oldest or of the one half way"},
    {"clear", track_clear, METH_NOARGS, "clear(): nothing before belongs to what follows"},
    {"__reduce__", track_reduce, METH_NOARGS, "for pickle and copy: a copy begins anew"},
    {NULL, NULL, 0, NULL}};

static PySequenceMethods track_sequence = {.sq_length = track_length, .sq_item = track_item};

static PyTypeObject TrackType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._periods.Track",
    .tp_basicsize = sizeof(Track),
    .tp_dealloc = track_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Track(gap, span): samples (time, v, v . v) of the last `span` seconds, oldest first.",
    .tp_methods = track_methods,
    .tp_as_sequence = &track_sequence,
    .tp_init = track_init,
    .tp_new = PyType_GenericNew,
};
