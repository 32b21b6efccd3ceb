/* tangere._periods: what a control loop does in every period beside the kernels, without a dozen small numpy calls.
 *
 *   fill(block, k, *things)     numbers and arrays side by side into row k of a table
 *   squared(x, scale, y)        sum of ((x - y) scale)^2: is anything too large, or no number
 *   finite(*arrays)             whether all of their numbers are
 *   clipped(x, most)            x within +-most
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
    for (Py_ssize_t i = 2; i < nargs; i++) {
        if (PyFloat_CheckExact(args[i])) {
            if (out >= end)
                goto wide;
            *out++ = PyFloat_AS_DOUBLE(args[i]);
            continue;
        }
        PyArrayObject *v = tg_numbers(args[i]);
        if (!v)
            return NULL;
        const npy_intp size = PyArray_SIZE(v), pace = tg_pace(v);
        if (size > end - out) {
            Py_DECREF(v);
            goto wide;
        }
        const char *from = PyArray_BYTES(v);
        if (pace == (npy_intp)sizeof(double))
            memcpy(out, from, (size_t)size * sizeof(double));
        else
            for (npy_intp j = 0; j < size; j++)
                out[j] = *(const double *)(from + j * pace);
        out += size;
        Py_DECREF(v);
    }
    if (out == end)
        Py_RETURN_NONE;
wide:
    return PyErr_Format(PyExc_ValueError, "fill: a row has %zd numbers", (Py_ssize_t)PyArray_DIM(block, 1));
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

/* ---- values that cross rooms ------------------------------------------------------------------------------------ */

#define TG_QUICK 8   /* types that can be made quickly */
#define TG_FIELDS 12 /* fields of one */
typedef struct {
    PyTypeObject *type;
    int fields, needed; /* how many, and how many have no default */
    Py_ssize_t at[TG_FIELDS];
    PyObject *name[TG_FIELDS], *standard[TG_FIELDS];
} tg_made;
static tg_made tg_types[TG_QUICK];
static int tg_types_known;

static PyObject *tg_slowly(PyObject *type, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *tuple = PyTuple_New(nargs), *keywords = kwnames ? PyDict_New() : NULL, *answer = NULL;
    if (tuple && (keywords || !kwnames)) {
        for (Py_ssize_t i = 0; i < nargs; i++)
            PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
        int good = 1;
        for (Py_ssize_t i = 0; good && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
            good = PyDict_SetItem(keywords, PyTuple_GET_ITEM(kwnames, i), args[nargs + i]) == 0;
        if (good)
            answer = PyType_Type.tp_call(type, tuple, keywords);
    }
    Py_XDECREF(tuple);
    Py_XDECREF(keywords);
    return answer;
}

static PyObject *tg_make(PyObject *type, PyObject *const *args, size_t flagged, PyObject *kwnames)
{
    const Py_ssize_t nargs = PyVectorcall_NARGS(flagged);
    const tg_made *made = tg_types;
    while (made->type != (PyTypeObject *)type) /* it is there: nobody else gets this function */
        if (++made == tg_types + tg_types_known)
            return tg_slowly(type, args, nargs, kwnames);
    PyObject *values[TG_FIELDS];
    if (nargs > made->fields)
        return tg_slowly(type, args, nargs, kwnames);
    for (int i = 0; i < made->fields; i++)
        values[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++) {
        int i = (int)nargs;
        while (i < made->fields && made->name[i] != PyTuple_GET_ITEM(kwnames, k))
            i++;
        if (i == made->fields) /* no such field, given twice, or a name that is not interned */
            return tg_slowly(type, args, nargs, kwnames);
        values[i] = args[nargs + k];
    }
    for (int i = 0; i < made->fields; i++)
        if (!values[i] && !(values[i] = made->standard[i]))
            return tg_slowly(type, args, nargs, kwnames);
    PyObject *self = made->type->tp_alloc(made->type, 0);
    if (self)
        for (int i = 0; i < made->fields; i++)
            *(PyObject **)((char *)self + made->at[i]) = Py_NewRef(values[i]);
    return self;
}

/* 0: made quickly from now on; -1: an error is set */
static int tg_learn(PyTypeObject *type, PyObject *fields)
{
    tg_made made = {.type = type};
    PyObject *name, *field;
    Py_ssize_t at = 0;
    while (PyDict_Next(fields, &at, &name, &field)) { /* in the order in which they were declared */
        PyObject *slot = PyDict_GetItemWithError(type->tp_dict, name);
        if (made.fields == TG_FIELDS || !slot || !Py_IS_TYPE(slot, &PyMemberDescr_Type))
            return PyErr_Occurred() ? -1 : (PyErr_SetString(PyExc_TypeError, "quick: every field needs a slot"), -1);
        made.at[made.fields] = ((PyMemberDescrObject *)slot)->d_member->offset;
        PyObject *value = PyObject_GetAttrString(field, "default"), *missing = NULL, *own = Py_NewRef(name);
        PyUnicode_InternInPlace(&own);
        made.name[made.fields] = own; /* kept as long as the process, as the type is */
        PyObject *module = value ? PyImport_ImportModule("dataclasses") : NULL;
        if (module)
            missing = PyObject_GetAttrString(module, "MISSING");
        Py_XDECREF(module);
        if (!missing)
            return -1;
        if (value == missing)
            Py_CLEAR(value);
        Py_DECREF(missing);
        made.standard[made.fields++] = value;
    }
    Py_INCREF(type);
    tg_types[tg_types_known++] = made;
    type->tp_vectorcall = tg_make;
    return 0;
}

static PyObject *periods_quick(PyObject *module, PyObject *arg)
{
    (void)module;
    PyObject *fields = PyType_Check(arg) ? PyObject_GetAttrString(arg, "__dataclass_fields__") : NULL;
    if (!fields || !PyDict_Check(fields) || PyObject_HasAttrString(arg, "__post_init__") || tg_types_known == TG_QUICK) {
        Py_XDECREF(fields);
        PyErr_SetString(PyExc_TypeError, "quick: one of at most eight dataclasses with slots and without __post_init__");
        return NULL;
    }
    const int bad = ((PyTypeObject *)arg)->tp_vectorcall != tg_make && tg_learn((PyTypeObject *)arg, fields) < 0;
    Py_DECREF(fields);
    return bad ? NULL : Py_NewRef(arg);
}

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *type, *arrays; /* a tuple of arrays of float64 with at least two axes, as long as each other */
} Records;

static PyObject *records_at(PyObject *object, PyObject *const *args, size_t flagged, PyObject *kwnames)
{
    Records *r = (Records *)object;
    const Py_ssize_t k = PyVectorcall_NARGS(flagged) == 1 && !kwnames ? PyLong_AsSsize_t(args[0]) : -1;
    if (k < 0 || k >= PyArray_DIM((PyArrayObject *)PyTuple_GET_ITEM(r->arrays, 0), 0)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_IndexError, "no such record");
        return NULL;
    }
    PyObject *values[TG_FIELDS];
    const Py_ssize_t count = PyTuple_GET_SIZE(r->arrays);
    Py_ssize_t made = 0;
    for (; made < count; made++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(r->arrays, made);
        PyArray_Descr *number = PyArray_DESCR(a);
        Py_INCREF(number);
        PyObject *view = PyArray_NewFromDescr(
            &PyArray_Type, number, PyArray_NDIM(a) - 1, PyArray_DIMS(a) + 1, PyArray_STRIDES(a) + 1,
            PyArray_BYTES(a) + k * PyArray_STRIDE(a, 0), PyArray_FLAGS(a) & NPY_ARRAY_WRITEABLE, NULL);
        if (!view)
            break;
        values[made] = view;
        if (PyArray_SetBaseObject((PyArrayObject *)view, Py_NewRef((PyObject *)a)) < 0) {
            made++;
            break;
        }
    }
    PyObject *answer = made < count || PyErr_Occurred() ? NULL : PyObject_Vectorcall(r->type, values, (size_t)count, NULL);
    while (made-- > 0)
        Py_DECREF(values[made]);
    return answer;
}

static int records_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    Records *r = (Records *)object;
    const Py_ssize_t count = PyTuple_GET_SIZE(args) - 1;
    int good = count > 0 && count <= TG_FIELDS && !keywords;
    for (Py_ssize_t i = 1; good && i <= count; i++) {
        PyArrayObject *a = (PyArrayObject *)PyTuple_GET_ITEM(args, i);
        good = PyArray_CheckExact(a) && PyArray_TYPE(a) == NPY_DOUBLE && PyArray_NDIM(a) >= 2 &&
               PyArray_DIM(a, 0) == PyArray_DIM((PyArrayObject *)PyTuple_GET_ITEM(args, 1), 0);
    }
    if (!good) {
        PyErr_SetString(PyExc_TypeError, "Records(cls, *arrays): up to 12 arrays (N, ...) of float64");
        return -1;
    }
    PyObject *arrays = PyTuple_GetSlice(args, 1, count + 1);
    if (!arrays)
        return -1;
    Py_XSETREF(r->arrays, arrays);
    Py_XSETREF(r->type, Py_NewRef(PyTuple_GET_ITEM(args, 0)));
    r->call = records_at;
    return 0;
}

static void records_dealloc(PyObject *object)
{
    Records *r = (Records *)object;
    Py_XDECREF(r->type);
    Py_XDECREF(r->arrays);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *records_reduce(PyObject *object, PyObject *none)
{
    Records *r = (Records *)object;
    (void)none;
    PyObject *first = Py_BuildValue("(O)", r->type), *all = first ? PySequence_Concat(first, r->arrays) : NULL;
    Py_XDECREF(first);
    return all ? Py_BuildValue("ON", Py_TYPE(object), all) : NULL;
}

static PyMethodDef records_methods[] = {
    {"__reduce__", records_reduce, METH_NOARGS, "for pickle and copy"}, {NULL, NULL, 0, NULL}};

static PyTypeObject RecordsType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._periods.Records",
    .tp_basicsize = sizeof(Records),
    .tp_dealloc = records_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Records, call),
    .tp_call = PyVectorcall_Call,
    .tp_doc = "Records(cls, *arrays): called with i it is cls(array[i], ...).",
    .tp_methods = records_methods,
    .tp_init = records_init,
    .tp_new = PyType_GenericNew,
};

/* ---- the module ------------------------------------------------------------------------------------------------- */

#define TG_FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL
static PyMethodDef periods_methods[] = {
    {"fill", TG_FAST(periods_fill), "fill(block, k, *things): numbers and arrays side by side into row k"},
    {"squared", TG_FAST(periods_squared), "squared(x, scale=None, y=None): sum of ((x - y) scale)^2"},
    {"finite", TG_FAST(periods_finite), "finite(*arrays): whether all of their numbers are"},
    {"clipped", TG_FAST(periods_clipped), "clipped(x, most): x (n,) within +-most (n,), a new array"},
    {"quick", periods_quick, METH_O, "quick(cls): this frozen dataclass with slots is made in one call from now on"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef periods_module = {
    PyModuleDef_HEAD_INIT, "tangere._periods", "What a loop does in every period.", -1, periods_methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__periods(void)
{
    import_array();
    if (PyType_Ready(&RecordsType) < 0)
        return NULL;
    PyObject *module = PyModule_Create(&periods_module);
    if (module && PyModule_AddObjectRef(module, "Records", (PyObject *)&RecordsType) < 0)
        Py_CLEAR(module);
    return module;
}
