/* Values that cross rooms, made quickly: dataclasses with slots, and records out of arrays. Included by periods.c. */

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
