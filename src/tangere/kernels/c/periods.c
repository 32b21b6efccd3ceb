/* tangere._periods: what a control loop does in every period beside the kernels, without a dozen small numpy calls.
 *
 *   fill(block, k, *things)     numbers, arrays and lists of them side by side into row k of a table
 *   squared(x, scale, y)        sum of ((x - y) scale)^2: is anything too large, or no number
 *   finite(*arrays)             whether all of their numbers are
 *   clipped(x, most)            x within +-most
 *   held(*arrays)               copies that may not be written to
 *   put(out, x, y)              out[:] = x + y; y may be None
 *   plus(x, row, at)            x + row[at : at + len(x)], a new vector
 *   below(*triples)             of each x, scale, y: whether the sum of ((x - y) scale)^2 is 1 at most
 *   messages(rows, ns, ...)     rows of numbers into records of a log
 *   Track(gap, span)            the newest samples of a motion
 *   quick(cls)                  a frozen dataclass with slots is made in one call, without a setattr for each field
 *   Records(cls, *arrays)       records[i] is cls(array[i], ...)
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <float.h>
#include <math.h>
#include <numpy/arrayobject.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "records.h"

/* ---- numbers of arrays ----------------------------------------------------------------------------------------- */

/* the object as an array of float64 whose numbers can be read as they lie; a new reference */
static PyArrayObject *tg_numbers(PyObject *object)
{
    PyArrayObject *v = (PyArrayObject *)object;
    if (PyArray_CheckExact(object) && PyArray_TYPE(v) == NPY_DOUBLE && PyArray_ISBEHAVED_RO(v) &&
        (PyArray_IS_C_CONTIGUOUS(v) || PyArray_NDIM(v) == 1))
        return (PyArrayObject *)Py_NewRef(object);
    return (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
}

/* from one number of it to the next [bytes] */
static inline npy_intp tg_pace(PyArrayObject *v)
{
    return PyArray_IS_C_CONTIGUOUS(v) ? (npy_intp)sizeof(double) : PyArray_STRIDE(v, 0);
}

/* numbers, arrays, and lists or tuples of both, side by side from *out on; 0: there was room; a pose is its upper three rows */
static int tg_filled(PyObject *const *things, Py_ssize_t count, double **out, const double *end)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyFloat_CheckExact(things[i])) {
            if (*out >= end)
                return 1;
            *(*out)++ = PyFloat_AS_DOUBLE(things[i]);
            continue;
        }
        if (PyList_CheckExact(things[i]) || PyTuple_CheckExact(things[i])) {
            PyObject *const *within = PySequence_Fast_ITEMS(things[i]);
            const int bad = tg_filled(within, PySequence_Fast_GET_SIZE(things[i]), out, end);
            if (bad)
                return bad;
            continue;
        }
        PyArrayObject *v = tg_numbers(things[i]);
        if (!v)
            return -1;
        const npy_intp pace = tg_pace(v);
        const int pose = PyArray_NDIM(v) == 2 && PyArray_DIM(v, 0) == 4 && PyArray_DIM(v, 1) == 4;
        const npy_intp size = pose ? 12 : PyArray_SIZE(v);
        const char *from = PyArray_BYTES(v);
        const int fits = size <= end - *out;
        if (fits && pace == (npy_intp)sizeof(double))
            memcpy(*out, from, (size_t)size * sizeof(double));
        else if (fits)
            for (npy_intp j = 0; j < size; j++)
                (*out)[j] = *(const double *)(from + j * pace);
        *out += fits ? size : 0;
        Py_DECREF(v);
        if (!fits)
            return 1;
    }
    return 0;
}

static PyObject *periods_fill(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs < 2 || !PyArray_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "fill(block, k, *things)");
    PyArrayObject *block = (PyArrayObject *)args[0];
    const Py_ssize_t k = PyLong_AsSsize_t(args[1]);
    if (k == -1 && PyErr_Occurred())
        return NULL;
    if (PyArray_NDIM(block) != 2 || PyArray_TYPE(block) != NPY_DOUBLE || !PyArray_ISBEHAVED(block) ||
        PyArray_STRIDE(block, 1) != (npy_intp)sizeof(double) || k < 0 || k >= PyArray_DIM(block, 0))
        return PyErr_Format(PyExc_ValueError, "fill: rows of float64 that lie side by side, and one of them");
    double *out = (double *)(PyArray_BYTES(block) + k * PyArray_STRIDE(block, 0));
    double *const end = out + PyArray_DIM(block, 1);
    const int bad = tg_filled(args + 2, nargs - 2, &out, end);
    if (bad < 0)
        return NULL;
    if (bad || out != end)
        return PyErr_Format(PyExc_ValueError, "fill: a row has %zd numbers", (Py_ssize_t)PyArray_DIM(block, 1));
    Py_RETURN_NONE;
}

static PyObject *periods_squared(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    PyArrayObject *v[3] = {NULL, NULL, NULL};
    PyObject *answer = NULL;
    if (nargs < 1 || nargs > 3)
        return PyErr_Format(PyExc_TypeError, "squared(x, scale=None, y=None)");
    for (Py_ssize_t i = 0; i < nargs; i++)
        if ((i == 0 || args[i] != Py_None) && !(v[i] = tg_numbers(args[i])))
            goto done;
    const npy_intp size = PyArray_SIZE(v[0]);
    const char *at[3] = {PyArray_BYTES(v[0]), NULL, NULL};
    npy_intp pace[3] = {tg_pace(v[0]), 0, 0};
    for (int i = 1; i < 3; i++)
        if (v[i]) {
            if (PyArray_SIZE(v[i]) != size) {
                PyErr_Format(PyExc_ValueError, "squared: %zd and %zd numbers", (Py_ssize_t)size,
                             (Py_ssize_t)PyArray_SIZE(v[i]));
                goto done;
            }
            at[i] = PyArray_BYTES(v[i]);
            pace[i] = tg_pace(v[i]);
        }
    double sum = 0.0;
    for (npy_intp i = 0; i < size; i++) {
        double x = *(const double *)(at[0] + i * pace[0]);
        if (at[2])
            x -= *(const double *)(at[2] + i * pace[2]);
        if (at[1])
            x *= *(const double *)(at[1] + i * pace[1]);
        sum += x * x;
    }
    answer = PyFloat_FromDouble(sum);
done:
    for (int i = 0; i < 3; i++)
        Py_XDECREF(v[i]);
    return answer;
}

static PyObject *periods_below(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    int good = 1;
    for (Py_ssize_t k = 0; good && k + 2 < nargs; k += 3) {
        const PyObject *const given = args[k];
        if (!PyArray_CheckExact(given) || PyArray_NDIM((PyArrayObject *)given) != 1)
            Py_RETURN_FALSE;
        PyObject *sum = periods_squared(module, args + k, args[k + 2] == Py_None ? 2 : 3);
        if (!sum)
            return NULL;
        good = PyFloat_AS_DOUBLE(sum) <= 1.0;
        Py_DECREF(sum);
    }
    return PyBool_FromLong(good);
}

static PyObject *periods_finite(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    int good = 1;
    for (Py_ssize_t k = 0; good && k < nargs; k++) {
        PyArrayObject *v = tg_numbers(args[k]);
        if (!v)
            return NULL;
        const char *at = PyArray_BYTES(v);
        const npy_intp size = PyArray_SIZE(v), pace = tg_pace(v);
        for (npy_intp i = 0; i < size; i++)
            good &= fabs(*(const double *)(at + i * pace)) <= DBL_MAX;
        Py_DECREF(v);
    }
    return PyBool_FromLong(good);
}

static PyObject *periods_clipped(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "clipped(x, most)");
    PyArrayObject *x = tg_numbers(args[0]), *most = x ? tg_numbers(args[1]) : NULL;
    PyObject *out = NULL;
    if (most && PyArray_NDIM(x) == 1 && PyArray_NDIM(most) == 1 && PyArray_DIM(x, 0) == PyArray_DIM(most, 0))
        out = PyArray_SimpleNew(1, PyArray_DIMS(x), NPY_DOUBLE);
    else if (most)
        PyErr_SetString(PyExc_ValueError, "clipped: two vectors of the same length");
    if (out) {
        double *to = (double *)PyArray_DATA((PyArrayObject *)out);
        const npy_intp step = tg_pace(x), other = tg_pace(most);
        for (npy_intp i = 0; i < PyArray_DIM(x, 0); i++) {
            const double value = *(const double *)(PyArray_BYTES(x) + i * step);
            const double limit = *(const double *)(PyArray_BYTES(most) + i * other);
            to[i] = value > limit ? limit : value < -limit ? -limit : value;
        }
    }
    Py_XDECREF(x);
    Py_XDECREF(most);
    return out;
}

static PyObject *periods_held(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    PyObject *out = PyTuple_New(nargs);
    for (Py_ssize_t k = 0; out && k < nargs; k++) {
        PyArrayObject *v = tg_numbers(args[k]), *copy = NULL;
        if (v && PyArray_NDIM(v) == 1)
            copy = (PyArrayObject *)PyArray_SimpleNew(1, PyArray_DIMS(v), NPY_DOUBLE);
        else if (v)
            PyErr_SetString(PyExc_ValueError, "held: vectors");
        if (copy) {
            double *to = (double *)PyArray_DATA(copy);
            for (npy_intp i = 0; i < PyArray_DIM(v, 0); i++)
                to[i] = *(const double *)(PyArray_BYTES(v) + i * tg_pace(v));
            PyArray_CLEARFLAGS(copy, NPY_ARRAY_WRITEABLE);
            PyTuple_SET_ITEM(out, k, (PyObject *)copy);
        } else
            Py_CLEAR(out);
        Py_XDECREF(v);
    }
    return out;
}

static PyObject *periods_put(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    PyArrayObject *out = nargs == 3 ? (PyArrayObject *)args[0] : NULL, *v[2] = {NULL, NULL};
    PyObject *answer = NULL;
    if (!out || !PyArray_CheckExact(out) || PyArray_TYPE(out) != NPY_DOUBLE || !PyArray_ISBEHAVED(out) ||
        PyArray_NDIM(out) != 1)
        return PyErr_Format(PyExc_TypeError, "put(out, x, y): out is a vector that may be written to");
    const npy_intp size = PyArray_DIM(out, 0);
    const int summands = args[2] == Py_None ? 1 : 2;
    int good = 1;
    for (int i = 0; good && i < summands; i++)
        if ((good = (v[i] = tg_numbers(args[i + 1])) != NULL) && PyArray_SIZE(v[i]) != size) {
            PyErr_Format(PyExc_ValueError, "put: %zd numbers into %zd", (Py_ssize_t)PyArray_SIZE(v[i]), (Py_ssize_t)size);
            good = 0;
        }
    for (npy_intp j = 0; good && j < size; j++) {
        double sum = *(const double *)(PyArray_BYTES(v[0]) + j * tg_pace(v[0]));
        if (v[1])
            sum += *(const double *)(PyArray_BYTES(v[1]) + j * tg_pace(v[1]));
        *(double *)(PyArray_BYTES(out) + j * PyArray_STRIDE(out, 0)) = sum;
    }
    if (good)
        answer = Py_NewRef(Py_None);
    Py_XDECREF(v[0]);
    Py_XDECREF(v[1]);
    return answer;
}

static PyObject *periods_plus(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    const Py_ssize_t at = nargs == 3 ? PyLong_AsSsize_t(args[2]) : nargs == 2 ? 0 : -1;
    PyArrayObject *x = at < 0 ? NULL : tg_numbers(args[0]), *row = x ? tg_numbers(args[1]) : NULL;
    PyObject *out = NULL;
    if (row && PyArray_NDIM(x) == 1 && PyArray_NDIM(row) == 1 && PyArray_DIM(x, 0) <= PyArray_DIM(row, 0) - at)
        out = PyArray_SimpleNew(1, PyArray_DIMS(x), NPY_DOUBLE);
    else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "plus(x, row, at): vectors, the second no shorter than `at` and the first");
    if (out) {
        double *to = (double *)PyArray_DATA((PyArrayObject *)out);
        const npy_intp step = tg_pace(x), other = tg_pace(row);
        const char *from = PyArray_BYTES(row) + at * other;
        for (npy_intp i = 0; i < PyArray_DIM(x, 0); i++)
            to[i] = *(const double *)(PyArray_BYTES(x) + i * step) + *(const double *)(from + i * other);
    }
    Py_XDECREF(x);
    Py_XDECREF(row);
    return out;
}

#include "messages.h"
#include "track.h"

/* ---- the module ------------------------------------------------------------------------------------------------- */

#define TG_FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL
static PyMethodDef periods_methods[] = {
    {"fill", TG_FAST(periods_fill), "fill(block, k, *things): numbers, arrays, lists of them side by side into row k; a pose (4, 4): its upper three rows"},
    {"squared", TG_FAST(periods_squared), "squared(x, scale=None, y=None): sum of ((x - y) scale)^2"},
    {"below", TG_FAST(periods_below), "below(*triples): of each x, scale, y (or None) whether x is a vector and the sum of ((x - y) scale)^2 is 1 at most"},
    {"finite", TG_FAST(periods_finite), "finite(*arrays): whether all of their numbers are"},
    {"clipped", TG_FAST(periods_clipped), "clipped(x, most): x (n,) within +-most (n,), a new array"},
    {"held", TG_FAST(periods_held), "held(*arrays): of each vector a copy that may not be written to"},
    {"put", TG_FAST(periods_put), "put(out, x, y): out[:] = x + y, of vectors; y None: x"},
    {"plus", TG_FAST(periods_plus), "plus(x, row, at=0): x + row[at : at + len(x)], of vectors, a new one"},
    {"messages", TG_FAST(periods_messages), "messages(rows, ns, sequence, template, numbers, stamps): the template once for each row, with the numbers of (column, byte) and what is counted of (what, byte): 0 sequence, 1 ns, 2 its seconds, 3 its nanoseconds"},
    {"quick", periods_quick, METH_O, "quick(cls): this frozen dataclass with slots is made in one call from now on"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef periods_module = {
    PyModuleDef_HEAD_INIT, "tangere._periods", "What a loop does in every period.", -1, periods_methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__periods(void)
{
    import_array();
    if (PyType_Ready(&RecordsType) < 0 || PyType_Ready(&TrackType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&periods_module);
    if (module && (PyModule_AddObjectRef(module, "Records", (PyObject *)&RecordsType) < 0 ||
                   PyModule_AddObjectRef(module, "Track", (PyObject *)&TrackType) < 0))
        Py_CLEAR(module);
    return module;
}
