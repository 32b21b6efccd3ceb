/* The momentum observer as a type of Python; its rules are in observer.h. */

static int tg_numbers(PyObject *object, const char *name, npy_intp rows, double *out)
{
    PyArrayObject *a = (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    if (!a)
        return -1;
    const int fits = PyArray_SIZE(a) == rows * TG_DOF && tg_finite((const double *)PyArray_DATA(a), rows * TG_DOF, TG_NUMBER_MAX);
    if (fits)
        memcpy(out, PyArray_DATA(a), rows * TG_DOF * sizeof(double));
    else
        PyErr_Format(tg_invalid, "%s: %zd finite numbers", name, (Py_ssize_t)(rows * TG_DOF));
    Py_DECREF(a);
    return fits ? 0 : -1;
}

static int tg_law_of(tg_law *law, PyObject *terms, PyObject *orders, PyObject *ripple)
{
    law->none = terms == Py_None;
    if (law->none)
        return 0;
    double rows[6][TG_DOF], flat[TG_DOF * 6 * TG_ORDERS];
    if (tg_numbers(terms, "friction", 6, &rows[0][0]) < 0)
        return -1;
    law->plain = 1;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < TG_DOF; j++) {
            law->terms[j][i] = rows[i][j];
            law->plain &= i < 3 || rows[i][j] == 0.0;
        }
    const Py_ssize_t count = PySequence_Size(orders);
    if (count < 0)
        return -1;
    if (count > TG_ORDERS) {
        PyErr_Format(tg_invalid, "orders: at most %d of the ripple, got %zd", TG_ORDERS, count);
        return -1;
    }
    if (count && tg_numbers(ripple, "ripple", 6 * count, flat) < 0)
        return -1;
    memset(law->orders, 0, sizeof law->orders);
    law->plain &= count == 0;
    for (int k = 0; k < count; k++) {
        PyObject *item = PySequence_GetItem(orders, k);
        const double order = item ? PyFloat_AsDouble(item) : -1.0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
        for (int j = 0; j < TG_DOF; j++) {
            double *const to = law->ripple[j][law->orders[j]];
            int some = 0;
            to[0] = order;
            for (int i = 0; i < 6; i++) { /* sines and cosines: plain, of the load, of the direction */
                to[1 + i] = flat[j * 6 * count + i / 2 * 2 * count + 2 * k + i % 2];
                some |= to[1 + i] != 0.0;
            }
            law->orders[j] += some;
        }
    }
    return 0;
}

static int momentum_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    Momentum *m = (Momentum *)object;
    PyObject *arm, *gain, *start, *terms, *orders, *ripple;
    if (m->arm) { /* a replay in another thread may be reading what would be set */
        PyErr_SetString(PyExc_TypeError, "Momentum: it was made already, make another one");
        return -1;
    }
    if (keywords && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Momentum() takes its arguments by position");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!OOOOOddp", &ArmType, &arm, &gain, &start, &terms, &orders, &ripple, &m->delay,
                          &m->gap, &m->first))
        return -1;
    if (((Arm *)arm)->traced) {
        PyErr_SetString(PyExc_TypeError, "Momentum needs an arm with compiled kernels");
        return -1;
    }
    if (tg_numbers(gain, "gain", 1, m->gain) < 0 || tg_numbers(start, "residual", 1, m->start) < 0 ||
        tg_law_of(&m->law, terms, orders, ripple) < 0)
        return -1;
    Py_INCREF(arm);
    Py_XSETREF(m->arm, arm);
    Py_INCREF(args);
    Py_XSETREF(m->made, args);
    m->rates = 1;
    for (int j = 1; j < TG_DOF; j++)
        if (m->gain[j] != m->gain[0])
            m->rates = TG_DOF;
    m->h = NAN;
    tg_begin(m, &m->track);
    double *out = tg_residual(m);
    if (!out)
        return -1;
    memcpy(out, m->start, sizeof m->start);
    return 0;
}

static void momentum_dealloc(PyObject *object)
{
    Momentum *m = (Momentum *)object;
    Py_XDECREF(m->arm);
    Py_XDECREF(m->made);
    for (int i = 0; i < TG_RESIDUALS; i++)
        Py_XDECREF(m->recent[i]);
    free(m->track.history);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *momentum_residual(PyObject *object, void *closure)
{
    (void)closure;
    Momentum *m = (Momentum *)object;
    if (!m->recent[0]) {
        PyErr_SetString(PyExc_AttributeError, "not initialised");
        return NULL;
    }
    Py_INCREF(m->recent[0]);
    return m->recent[0];
}

static PyObject *momentum_fresh(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((Momentum *)object)->fresh);
}

static PyObject *momentum_reduce(PyObject *object, PyObject *none)
{
    (void)none;
    if (!((Momentum *)object)->made) {
        PyErr_SetString(PyExc_TypeError, "not initialised: there is nothing to copy");
        return NULL;
    }
    return Py_BuildValue("OO", Py_TYPE(object), ((Momentum *)object)->made); /* a copy begins anew */
}

static PyGetSetDef momentum_getset[] = {{"residual", momentum_residual, NULL, "the newest residual (6,) [Nm]", NULL},
                                        {"fresh", momentum_fresh, NULL, "whether the newest balance is the first after a break", NULL},
                                        {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef momentum_methods[] = {
    {"reset", momentum_reset, METH_O, "reset(state): start again from this sample"},
    {"update", momentum_update, METH_O, "update(state): the residual (6,) after a new sample"},
    {"balance", momentum_balance, METH_O, "balance(state): y as a list, or None; does not filter"},
    {"replay", (PyCFunction)(void (*)(void))momentum_replay, METH_FASTCALL,
     "replay(time, period, q, qd, tau): residuals (N, 6) and which samples gave one (N,); the object is left as it is"},
    {"__reduce__", momentum_reduce, METH_NOARGS, "for pickle and copy: a copy begins anew"},
    {NULL, NULL, 0, NULL}};

static PyTypeObject MomentumType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.Momentum",
    .tp_basicsize = sizeof(Momentum),
    .tp_dealloc = momentum_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Momentum(arm, gain, start, terms, orders, ripple, delay, gap, first): the momentum observer of one arm.",
    .tp_methods = momentum_methods,
    .tp_getset = momentum_getset,
    .tp_init = momentum_init,
    .tp_new = PyType_GenericNew,
};
