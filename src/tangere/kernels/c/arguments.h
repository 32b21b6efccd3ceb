/* Arguments of a call as numbers, and the arrays of its answer. */

/* ---- arguments ------------------------------------------------------------------------------------------------ */

/* one state of `size` numbers from an exact float64 vector or a list of floats; 0 where the general way must look */
TG_INLINE int tg_state(PyObject *a, double *x, int size, double limit)
{
    if (PyArray_CheckExact(a)) {
        PyArrayObject *v = (PyArrayObject *)a;
        if (PyArray_NDIM(v) != 1 || PyArray_DIM(v, 0) != size || PyArray_TYPE(v) != NPY_DOUBLE ||
            !PyArray_ISBEHAVED_RO(v))
            return 0;
        const char *p = PyArray_BYTES(v);
        const npy_intp step = PyArray_STRIDE(v, 0);
        for (int i = 0; i < size; i++)
            x[i] = *(const double *)(p + i * step);
        return tg_finite(x, size, limit);
    }
    if (PyList_CheckExact(a) && PyList_GET_SIZE(a) == size) {
        for (int i = 0; i < size; i++) {
            PyObject *item = PyList_GET_ITEM(a, i);
            if (!PyFloat_CheckExact(item))
                return 0;
            x[i] = PyFloat_AS_DOUBLE(item);
        }
        return tg_finite(x, size, limit);
    }
    return 0;
}

/* any array-like with last axes `tail` and entries up to `limit`, as a contiguous float64 array; errors of our own */
static PyArrayObject *tg_array(PyObject *a, const char *name, int tail_dims, const int *tail, double limit)
{
    PyArrayObject *v = (PyArrayObject *)PyArray_FROM_OTF(a, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    int fits = v && PyArray_NDIM(v) >= tail_dims && PyArray_NDIM(v) <= TG_AXES_MAX;
    for (int i = 0; fits && i < tail_dims; i++)
        fits = PyArray_DIM(v, PyArray_NDIM(v) - tail_dims + i) == tail[i];
    if (fits && tg_finite((const double *)PyArray_DATA(v), PyArray_SIZE(v), limit))
        return v;
    Py_XDECREF(v);
    return (PyArrayObject *)tg_refused(a, name, tail_dims, tail);
}

/* positional and keyword arguments into a[], in the order of the names; `required` of them must be there */
static int tg_arguments(const char *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                        const char *const *names, int count, int required, PyObject **a)
{
    for (int i = 0; i < count; i++)
        a[i] = i < nargs ? args[i] : NULL;
    if (nargs > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments, %zd were given", function, count, nargs);
        return -1;
    }
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *key = PyTuple_GET_ITEM(kwnames, k);
        int i = 0;
        while (i < count && PyUnicode_CompareWithASCIIString(key, names[i]) != 0)
            i++;
        if (i == count || a[i]) {
            PyErr_Format(PyExc_TypeError, i == count ? "%s() has no argument %R" : "%s() was given %R twice", function,
                         key);
            return -1;
        }
        a[i] = args[nargs + k];
    }
    for (int i = 0; i < required; i++)
        if (!a[i]) {
            PyErr_Format(PyExc_TypeError, "%s() needs the argument '%s'", function, names[i]);
            return -1;
        }
    return 0;
}

/* ---- results -------------------------------------------------------------------------------------------------- */

static inline PyObject *tg_new_output(const tg_shape *s, int o, int leading, const npy_intp *lead)
{
    npy_intp dims[NPY_MAXDIMS];
    int nd = 0;
    for (; nd < leading; nd++)
        dims[nd] = lead[nd];
    for (int i = 0; i < s->dims[o][0]; i++)
        dims[nd++] = s->dims[o][1 + i];
    return PyArray_SimpleNew(nd, dims, NPY_DOUBLE);
}

/* memory that the small arrays of one answer share: cheaper than numpy's own allocator, one per call */
typedef struct {
    PyObject_VAR_HEAD
    npy_intp align; /* data on a 16-byte boundary */
    double data[1];
} Block;

static PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.Block",
    .tp_basicsize = offsetof(Block, data),
    .tp_itemsize = sizeof(double),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Memory behind the arrays of one answer.",
};

/* output o as an array over the block's memory */
static PyObject *tg_view(const tg_shape *s, int o, Block *block, int at)
{
    npy_intp dims[3];
    for (int i = 0; i < s->dims[o][0]; i++)
        dims[i] = s->dims[o][1 + i];
    Py_INCREF(tg_double);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, tg_double, s->dims[o][0], dims, NULL, block->data + at,
                                           NPY_ARRAY_CARRAY, NULL);
    if (!array)
        return NULL;
    Py_INCREF(block);
    if (PyArray_SetBaseObject((PyArrayObject *)array, (PyObject *)block) < 0)
        Py_CLEAR(array);
    return array;
}

/* arrays of one answer over fresh memory */
static PyObject *tg_fresh(const tg_shape *s)
{
    Block *block = PyObject_NewVar(Block, &BlockType, s->total);
    if (!block)
        return NULL;
    PyObject *result = NULL;
    if (s->outputs == 1)
        result = tg_view(s, 0, block, 0);
    else {
        result = PyTuple_New(s->outputs);
        for (int o = 0, at = 0; result && o < s->outputs; at += tg_output_size(s, o++)) {
            PyObject *item = tg_view(s, o, block, at);
            if (!item)
                Py_CLEAR(result);
            else
                PyTuple_SET_ITEM(result, o, item);
        }
    }
    Py_DECREF(block);
    return result;
}

/* whether output o is an array that only its holder here knows, still as it was made: its numbers where the block has
 * them (__setstate__ moves them elsewhere). A view of it would count. */
TG_INLINE int tg_untouched(PyObject *object, const tg_shape *s, int o)
{
    PyArrayObject *a = (PyArrayObject *)object;
    if (Py_REFCNT(object) != 1 || *PyObject_GET_WEAKREFS_LISTPTR(object) || PyArray_NDIM(a) != s->dims[o][0] || PyArray_TYPE(a) != NPY_DOUBLE ||
        !PyArray_ISCARRAY(a))
        return 0;
    for (int i = 0; i < s->dims[o][0]; i++)
        if (PyArray_DIM(a, i) != s->dims[o][1 + i])
            return 0;
    int at = 0;
    for (int i = 0; i < o; i++)
        at += tg_output_size(s, i);
    const PyObject *base = PyArray_BASE(a);
    return base && Py_IS_TYPE(base, &BlockType) && Py_SIZE(base) == s->total &&
           PyArray_DATA(a) == (const void *)(((const Block *)base)->data + at);
}

/* Memory for the answer of one call. Making and freeing small arrays costs more than computing them, so the last
 * results stay here, and one that nobody else holds any more is filled again: a control loop allocates nothing. */
TG_INLINE PyObject *tg_result(Arm *self, int k, const tg_shape *s)
{
#ifndef Py_GIL_DISABLED
    for (int i = 0; i < TG_RECENT; i++) {
        PyObject *kept = self->recent[k][i];
        if (!kept || Py_REFCNT(kept) != 1)
            continue;
        int free = 1;
        if (s->outputs == 1)
            free = tg_untouched(kept, s, 0);
        else
            for (int o = 0; o < s->outputs; o++)
                free &= tg_untouched(PyTuple_GET_ITEM(kept, o), s, o);
        if (free) {
            Py_INCREF(kept);
            return kept;
        }
    }
    PyObject *made = tg_fresh(s);
    if (made) {
        PyObject *oldest = self->recent[k][TG_RECENT - 1];
        for (int i = TG_RECENT - 1; i > 0; i--)
            self->recent[k][i] = self->recent[k][i - 1];
        Py_INCREF(made);
        self->recent[k][0] = made;
        Py_XDECREF(oldest); /* last: a weak reference's callback may come back here */
    }
    return made;
#else
    return tg_fresh(s);
#endif
}
