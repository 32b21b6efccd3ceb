/* States with leading axes: checked, spread over the vector form and the threads, gathered. */

#define TG_SAMPLES 2048 /* samples: some 10 ms of the slowest kernel, one of the fastest */

typedef struct {
    const Arm *arm;
    int k;
    const tg_shape *shape;
    const double *const *from;
    double *const *to;
} tg_batch_work;

static void tg_batch_chunk(void *object, npy_intp first, npy_intp count)
{
    const tg_batch_work *w = object;
    const tg_shape *s = w->shape;
    const double *from[3];
    double *to[3];
    for (int g = 0; g < s->inputs; g++)
        from[g] = w->from[g] + first * s->sizes[g];
    for (int o = 0; o < s->outputs; o++)
        to[o] = w->to[o] + first * tg_output_size(s, o);
    if (w->arm->general)
        tg_general_many(tg_six_form, w->arm->structure, w->k, w->arm->dof, count, from, w->arm->general, to);
    else
        tg_isa->batch(w->k, count, from, w->arm->P, to);
}

/* states with leading axes, as contiguous arrays that were checked: one of them, or as many as the kernel has inputs */
static PyObject *tg_computed(Arm *self, int k, const tg_shape *s, PyArrayObject **in)
{
    PyObject *result = NULL, *out[3] = {NULL, NULL, NULL};
    int same = 1;
    for (int g = 0; g < s->inputs; g++)
        same &= PyArray_NDIM(in[g]) == PyArray_NDIM(in[0]) &&
                PyArray_CompareLists(PyArray_DIMS(in[g]), PyArray_DIMS(in[0]), PyArray_NDIM(in[0]) - 1);
    if (!same) { /* leading axes differ: numpy's rules make them equal, or say why not */
        PyObject *list = s->inputs == 2 ? PyObject_CallFunctionObjArgs(tg_broadcast, in[0], in[1], NULL)
                                        : PyObject_CallFunctionObjArgs(tg_broadcast, in[0], in[1], in[2], NULL);
        if (!list)
            goto done;
        for (int g = 0; g < s->inputs; g++) {
            PyObject *item = PySequence_GetItem(list, g);
            Py_DECREF(in[g]);
            in[g] = (PyArrayObject *)item;
        }
        Py_DECREF(list);
    }
    const int leading = PyArray_NDIM(in[0]) - 1;
    const npy_intp n = PyArray_SIZE(in[0]) / s->sizes[0];
    const double *from[3];
    for (int g = 0; g < s->inputs; g++)
        from[g] = (const double *)PyArray_DATA(in[g]);
    if (leading == 0) {
        double x[TG_GENERAL_INPUT];
        for (int g = 0, at = 0; g < s->inputs; at += s->sizes[g++])
            memcpy(x + at, from[g], s->sizes[g] * sizeof(double));
        result = tg_single(self, k, s, x);
        goto done;
    }
    double *to[3];
    for (int o = 0; o < s->outputs; o++) {
        if (leading + s->dims[o][0] > NPY_MAXDIMS) {
            PyErr_Format(tg_invalid, "%d leading axes are more than numpy has room for", leading);
            goto done;
        }
        out[o] = tg_new_output(s, o, leading, PyArray_DIMS(in[0]));
        if (!out[o])
            goto done;
        to[o] = (double *)PyArray_DATA((PyArrayObject *)out[o]);
    }
    tg_batch_work work = {self, k, s, from, to};
    if (tg_in_chunks(tg_batch_chunk, &work, n, TG_SAMPLES) < 0)
        goto done;
    if (s->outputs == 1) {
        result = out[0];
        out[0] = NULL;
    } else {
        result = PyTuple_New(s->outputs);
        for (int o = 0; result && o < s->outputs; o++) {
            PyTuple_SET_ITEM(result, o, out[o]);
            out[o] = NULL;
        }
    }
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(out[i]);
    return result;
}

/* states with leading axes, or anything that must be converted first */
static PyObject *tg_general(Arm *self, int k, const tg_shape *s, PyObject *const *a)
{
    PyArrayObject *in[3] = {NULL, NULL, NULL};
    int g = 0;
    while (g < s->inputs && (in[g] = tg_array(a[g], s->names[g], 1, &s->sizes[g], s->limits[g])))
        g++;
    PyObject *result = g == s->inputs ? tg_computed(self, k, s, in) : NULL;
    for (int i = 0; i < 3; i++)
        Py_XDECREF(in[i]);
    return result;
}
