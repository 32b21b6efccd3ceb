/* A law of the table with its memory: one call per sample, or one for all rows of a log. */

typedef struct {
    PyObject_HEAD
    int law;                   /* of tg_law_shapes; the arrays below are float64, contiguous and never resized */
    PyArrayObject *P, *x, *y;  /* parameters; inputs and state; next state and outputs */
} Step;

static inline double *tg_data(PyArrayObject *array) { return (double *)PyArray_DATA(array); }

static inline int tg_law_inputs(const tg_law_shape *s)
{
    int total = 0;
    for (int i = 0; i < s->inputs; i++)
        total += s->sizes[i];
    return total;
}

/* size numbers from a float64 vector of any stride, a matrix row by row, a tuple of floats, or what can be made
 * one of them; they need not be finite */
static int step_numbers(PyObject *object, int size, double *out)
{
    if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == size) {
        int i = 0;
        while (i < size && PyFloat_CheckExact(PyTuple_GET_ITEM(object, i))) {
            out[i] = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(object, i));
            i++;
        }
        if (i == size)
            return 0;
    }
    PyArrayObject *v = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(v) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(v) ||
        (PyArray_NDIM(v) != 1 && !PyArray_ISCARRAY_RO(v)))
        v = (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    else
        Py_INCREF(v);
    if (!v)
        return -1;
    const int flat = PyArray_NDIM(v) == 2 && PyArray_SIZE(v) == size;
    const int fits = flat || (PyArray_NDIM(v) == 1 && PyArray_DIM(v, 0) == size);
    if (flat)
        memcpy(out, PyArray_DATA(v), (size_t)size * sizeof(double));
    else if (fits) {
        const char *from = PyArray_BYTES(v);
        const npy_intp stride = PyArray_STRIDE(v, 0);
        for (int i = 0; i < size; i++)
            out[i] = *(const double *)(from + i * stride);
    } else
        PyErr_Format(tg_invalid, "a vector of %d numbers, got one of %zd dimensions and %zd numbers", size,
                     (Py_ssize_t)PyArray_NDIM(v), (Py_ssize_t)PyArray_SIZE(v));
    Py_DECREF(v);
    return fits ? 0 : -1;
}

/* argument i of a sample; a law that names its arguments refuses by that name what is not finite, or no vector. Joint
 * angles must lie within what sines are made for. */
static int step_argument(const tg_law_shape *shape, int i, PyObject *object, double *x)
{
    static const int pose[2] = {4, 4};
    const char *name = shape->names[i];
    const int size = shape->sizes[i], made = step_numbers(object, size, x);
    if (!name || (made == 0 && tg_finite(x, size, strcmp(name, "q") ? TG_NUMBER_MAX : TG_ANGLE_MAX)))
        return made;
    tg_refused(object, name, size == 16 ? 2 : 1, size == 16 ? pose : &size);
    return -1;
}

static int step_ready(const Step *s)
{
    if (!s->x)
        PyErr_SetString(PyExc_TypeError, "Step was never initialised");
    return s->x != NULL;
}

static inline void step_once(Step *s, const tg_law_shape *shape, int inputs)
{
    for (int round = 0; round < shape->rounds; round++) {
        tg_isa->laws[s->law](tg_data(s->x), tg_data(s->P), tg_data(s->y));
        memcpy(tg_data(s->x) + inputs, tg_data(s->y), (size_t)shape->state * sizeof(double));
    }
}

static PyObject *step_update(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    Step *s = (Step *)object;
    if (!step_ready(s))
        return NULL;
    const tg_law_shape *shape = &tg_law_shapes[s->law];
    if (nargs != shape->inputs)
        return PyErr_Format(PyExc_TypeError, "%s takes %d inputs; %zd were given", shape->name, shape->inputs, nargs);
    int at = 0;
    for (int i = 0; i < shape->inputs; at += shape->sizes[i++])
        if (step_argument(shape, i, args[i], tg_data(s->x) + at) < 0)
            return NULL;
    step_once(s, shape, at);
    return PyFloat_FromDouble(shape->outputs ? tg_data(s->y)[shape->state] : 0.0);
}

static PyObject *step_rows(PyObject *object, PyObject *given)
{
    Step *s = (Step *)object;
    if (!step_ready(s))
        return NULL;
    const tg_law_shape *shape = &tg_law_shapes[s->law];
    const int inputs = tg_law_inputs(shape);
    /* rows of any stride, backwards as well, are taken as they lie */
    PyArrayObject *rows = (PyArrayObject *)given;
    if (PyArray_CheckExact(given) && PyArray_TYPE(rows) == NPY_DOUBLE && PyArray_ISBEHAVED_RO(rows) &&
        PyArray_NDIM(rows) == 2 && PyArray_STRIDE(rows, 1) == (npy_intp)sizeof(double))
        Py_INCREF(rows);
    else if (!(rows = (PyArrayObject *)PyArray_FROM_OTF(given, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY)))
        return NULL;
    if (PyArray_NDIM(rows) != 2 || PyArray_DIM(rows, 1) != inputs) {
        Py_DECREF(rows);
        return PyErr_Format(tg_invalid, "%s: rows of %d numbers are needed", shape->name, inputs);
    }
    npy_intp dims[2] = {PyArray_DIM(rows, 0), shape->outputs};
    PyObject *out = PyArray_SimpleNew(2, dims, NPY_DOUBLE);
    if (out) {
        const char *from = PyArray_BYTES(rows);
        const npy_intp stride = PyArray_STRIDE(rows, 0);
        double *to = tg_data((PyArrayObject *)out);
        for (npy_intp k = 0; k < dims[0]; k++) {
            memcpy(tg_data(s->x), from + k * stride, (size_t)inputs * sizeof(double));
            step_once(s, shape, inputs);
            memcpy(to + k * shape->outputs, tg_data(s->y) + shape->state, (size_t)shape->outputs * sizeof(double));
        }
    }
    Py_DECREF(rows);
    return out;
}

static void step_dealloc(PyObject *object)
{
    Step *s = (Step *)object;
    Py_XDECREF(s->P);
    Py_XDECREF(s->x);
    Py_XDECREF(s->y);
    Py_TYPE(object)->tp_free(object);
}

static int step_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"name", "parameters", "state", NULL};
    Step *s = (Step *)object;
    const char *name;
    PyObject *parameters, *state;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sOO", names, &name, &parameters, &state))
        return -1;
    for (s->law = 0; s->law < TG_LAWS && strcmp(tg_law_shapes[s->law].name, name) != 0;)
        s->law++;
    if (s->law == TG_LAWS) {
        PyErr_Format(tg_invalid, "no law %s was compiled", name);
        return -1;
    }
    const tg_law_shape *shape = &tg_law_shapes[s->law];
    const int inputs = tg_law_inputs(shape);
    npy_intp sizes[3] = {shape->parameters, inputs + shape->state, shape->state + shape->outputs};
    PyArrayObject **const kept[3] = {&s->P, &s->x, &s->y};
    for (int i = 0; i < 3; i++) {
        PyArrayObject *array = (PyArrayObject *)PyArray_ZEROS(1, &sizes[i], NPY_DOUBLE, 0);
        if (!array)
            return -1;
        Py_XSETREF(*kept[i], array);
    }
    return step_numbers(parameters, shape->parameters, tg_data(s->P)) < 0 ||
                   step_numbers(state, shape->state, tg_data(s->x) + inputs) < 0
               ? -1
               : 0;
}

static PyObject *step_array(PyObject *object, void *closure)
{
    PyObject *array = *(PyObject **)((char *)object + (size_t)closure);
    if (!step_ready((Step *)object))
        return NULL;
    return Py_NewRef(array);
}

static PyObject *step_reduce(PyObject *object, PyObject *none)
{
    Step *s = (Step *)object;
    (void)none;
    if (!step_ready(s))
        return NULL;
    const tg_law_shape *shape = &tg_law_shapes[s->law];
    npy_intp size = shape->state;
    PyObject *state = PyArray_SimpleNew(1, &size, NPY_DOUBLE);
    if (!state)
        return NULL;
    memcpy(tg_data((PyArrayObject *)state), tg_data(s->x) + tg_law_inputs(shape), (size_t)size * sizeof(double));
    return Py_BuildValue("O(sON)", Py_TYPE(object), shape->name, s->P, state);
}

static PyGetSetDef step_getset[] = {
    {"parameters", step_array, NULL, "what the law is told once; may be written to", (void *)offsetof(Step, P)},
    {"before", step_array, NULL, "inputs of the newest sample, then the state; may be written to",
     (void *)offsetof(Step, x)},
    {"after", step_array, NULL, "the state after it, then the outputs", (void *)offsetof(Step, y)},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef step_methods[] = {
    {"update", (PyCFunction)(void (*)(void))step_update, METH_FASTCALL, "update(*inputs): the first output"},
    {"rows", step_rows, METH_O, "rows(inputs (N, i)): the outputs (N, o) of one sample after the other"},
    {"__reduce__", step_reduce, METH_NOARGS, "for pickle and copy: with what is remembered"},
    {NULL, NULL, 0, NULL}};

static PyTypeObject StepType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.Step",
    .tp_basicsize = sizeof(Step),
    .tp_dealloc = step_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Step(name, parameters, state): a law of the table with its memory.",
    .tp_methods = step_methods,
    .tp_getset = step_getset,
    .tp_init = step_init,
    .tp_new = PyType_GenericNew,
};
