/* The arithmetic of a period of hybrid force-motion control. The rules are those of tangere/control/force_tip.py. */

typedef struct {
    PyObject_HEAD
    PyObject *arm, *made; /* made: the arguments, for a copy */
    double bandwidth[TG_DOF], axes[9], origin[3], kp, kv, ki, limit[6], wild;
    const double *normal;                        /* the last of the axes */
    double time, h, fast[TG_DOF], slow[TG_DOF];  /* of the filter: the last stamp, the period that its weights are for */
    double q[TG_DOF], qd[TG_DOF], d[TG_DOF];     /* the last motion, and what the model lacks [rad/s2] */
    double at[TG_DOF], T[16], J[6 * TG_DOF], v[6], external[TG_DOF], pull[6]; /* of this period */
    double b[6];
    int pushed, full;
} TipLaw;

/* rows x columns finite numbers (rows 1: a vector) from a float64 array of any strides, or what can be made one */
static int tg_matrix(PyObject *object, const char *name, int rows, int columns, double *out)
{
    const int tail[2] = {rows, columns}, vector = rows == 1;
    PyArrayObject *v = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(v) != NPY_DOUBLE || !PyArray_ISBEHAVED_RO(v))
        v = (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    else
        Py_INCREF(v);
    int fits = v && PyArray_NDIM(v) == 2 - vector && PyArray_DIM(v, 1 - vector) == columns &&
               (vector || PyArray_DIM(v, 0) == rows);
    if (fits) {
        const char *from = PyArray_BYTES(v);
        const npy_intp down = vector ? 0 : PyArray_STRIDE(v, 0), right = PyArray_STRIDE(v, 1 - vector);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                out[i * columns + j] = *(const double *)(from + i * down + j * right);
        fits = tg_finite(out, rows * columns, TG_NUMBER_MAX);
    }
    Py_XDECREF(v);
    if (!fits)
        tg_refused(object, name, 2 - vector, tail + vector);
    return fits ? 0 : -1;
}

static int tg_field(PyObject *object, PyObject *field, const char *name, int rows, int columns, double *out)
{
    PyObject *value = PyObject_GetAttr(object, field);
    const int failed = !value || tg_matrix(value, name, rows, columns, out) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

/* x = A^-1 x by elimination with the largest pivot of each column; 0 where A is exactly singular. A is used up. */
static int tg_solved(double A[6][6], double *x)
{
    for (int k = 0; k < 6; k++) {
        int best = k;
        for (int i = k + 1; i < 6; i++)
            if (fabs(A[i][k]) > fabs(A[best][k]))
                best = i;
        if (!(fabs(A[best][k]) > 0.0))
            return 0;
        if (best != k) {
            for (int j = k; j < 6; j++) {
                const double kept = A[k][j];
                A[k][j] = A[best][j];
                A[best][j] = kept;
            }
            const double kept = x[k];
            x[k] = x[best];
            x[best] = kept;
        }
        for (int i = k + 1; i < 6; i++) {
            const double share = A[i][k] / A[k][k];
            for (int j = k + 1; j < 6; j++)
                A[i][j] -= share * A[k][j];
            x[i] -= share * x[k];
        }
    }
    for (int k = 5; k >= 0; k--) {
        for (int j = k + 1; j < 6; j++)
            x[k] -= A[k][j] * x[j];
        x[k] /= A[k][k];
    }
    return 1;
}

/* (r_d - r; log(R_d R^T)) of two poses, as control.task_space.pose_error */
static void tg_pose_error(const double *D, const double *T, double *error)
{
    double R[9], x, y, z;
    for (int i = 0; i < 3; i++) {
        error[i] = D[4 * i + 3] - T[4 * i + 3];
        for (int j = 0; j < 3; j++)
            R[3 * i + j] = D[4 * i] * T[4 * j] + D[4 * i + 1] * T[4 * j + 1] + D[4 * i + 2] * T[4 * j + 2];
    }
    const double a = R[0], e = R[4], i = R[8];
    double w = 1.0 + a + e + i;
    if (w > 1.0)
        x = R[7] - R[5], y = R[2] - R[6], z = R[3] - R[1];
    else if (a >= e && a >= i)
        w = R[7] - R[5], x = 1.0 + a - e - i, y = R[1] + R[3], z = R[2] + R[6];
    else if (e >= i)
        w = R[2] - R[6], x = R[1] + R[3], y = 1.0 - a + e - i, z = R[5] + R[7];
    else
        w = R[3] - R[1], x = R[2] + R[6], y = R[5] + R[7], z = 1.0 - a - e + i;
    double s = sqrt(x * x + y * y + z * z);
    if (w < 0.0)
        w = -w, s = -s;
    const double factor = s != 0.0 ? 2.0 * atan2(fabs(s), w) / s : 0.0;
    error[3] = factor * x, error[4] = factor * y, error[5] = factor * z;
}

static inline double tg_dot3(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* ---- a period ------------------------------------------------------------------------------------------------- */

static int tip_ready(const TipLaw *t)
{
    if (!t->arm)
        PyErr_SetString(PyExc_TypeError, "TipLaw was never initialised");
    return t->arm != NULL;
}

/* time, period, q, qd, tau of a State, all finite */
static int tg_sample(PyObject *state, double *time, double *period, double *q, double *qd, double *tau)
{
    static const int size = TG_DOF;
    if (tg_number(state, TG_TIME, time) < 0 || tg_number(state, TG_PERIOD, period) < 0)
        return -1;
    double *const to[] = {q, qd, tau};
    static const char *const names[] = {"q", "qd", "tau"};
    for (int i = 0; i < 3; i++) {
        if (tg_joints(state, TG_Q + i, to[i]) < 0)
            return -1;
        if (!tg_finite(to[i], TG_DOF, i ? TG_NUMBER_MAX : TG_ANGLE_MAX)) {
            PyObject *value = PyObject_GetAttr(state, tg_names[TG_Q + i]);
            if (value)
                tg_refused(value, names[i], 1, &size);
            Py_XDECREF(value);
            return -1;
        }
    }
    return 0;
}

static PyObject *tip_start(PyObject *object, PyObject *state)
{
    TipLaw *t = (TipLaw *)object;
    double period, tau[TG_DOF];
    if (!tip_ready(t) || tg_sample(state, &t->time, &period, t->q, t->qd, tau) < 0)
        return NULL;
    memset(t->d, 0, sizeof t->d);
    memset(t->b, 0, sizeof t->b);
    t->h = NAN;
    t->full = t->pushed = 0;
    Py_RETURN_NONE;
}

/* v = v- + 2 L h (qd - v-), d = d + L^2 h (qd - v-), v- = v + h (qdd_model + d); see control.force_velocity */
static void tip_filter(TipLaw *t, double h, const double *q, const double *qd, const double *tau)
{
    double x[3 * TG_DOF], qdd[TG_DOF];
    memcpy(x, t->q, sizeof t->q);
    memcpy(x + TG_DOF, t->qd, sizeof t->qd);
    for (int j = 0; j < TG_DOF; j++)
        x[2 * TG_DOF + j] = t->pushed ? tau[j] + t->external[j] : tau[j];
    tg_isa->single[TG_K_forward_dynamics](x, ((Arm *)t->arm)->P, qdd);
    if (h != t->h) {
        t->h = h;
        for (int j = 0; j < TG_DOF; j++) {
            const double fast = 2.0 * t->bandwidth[j] * h;
            t->fast[j] = fast < 1.0 ? fast : 1.0;
            t->slow[j] = t->bandwidth[j] * t->bandwidth[j] * h;
        }
    }
    for (int j = 0; j < TG_DOF; j++) {
        const double predicted = (qdd[j] + t->d[j]) * h + t->qd[j], innovation = qd[j] - predicted;
        t->d[j] += t->slow[j] * innovation;
        t->qd[j] = predicted + innovation * t->fast[j];
        t->q[j] = q[j];
    }
}

static PyObject *tip_sense(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    TipLaw *t = (TipLaw *)object;
    double time, h, *q = t->at, qd[TG_DOF], tau[TG_DOF], F[6] = {0.0}, from[3];
    if (nargs != 2)
        return PyErr_Format(PyExc_TypeError, "sense() takes a state and a wrench or None; %zd were given", nargs);
    if (!tip_ready(t) || tg_sample(args[0], &time, &h, q, qd, tau) < 0)
        return NULL;
    t->pushed = args[1] != Py_None;
    if (t->pushed && tg_matrix(args[1], "wrench", 1, 6, F) < 0)
        return NULL;
    const double *P = ((Arm *)t->arm)->P;
    tg_isa->single[TG_K_pose](q, P, t->T);
    tg_isa->single[TG_K_jacobian](q, P, t->J);
    for (int j = 0; j < TG_DOF; j++) {
        t->external[j] = 0.0;
        for (int i = 0; i < 6; i++)
            t->external[j] += F[i] * t->J[i * TG_DOF + j];
    }
    if (time != t->time && h > 0.0) {
        t->time = time;
        tip_filter(t, h, q, qd, tau);
    }
    for (int i = 0; i < 6; i++) {
        t->v[i] = 0.0;
        for (int j = 0; j < TG_DOF; j++)
            t->v[i] += t->J[i * TG_DOF + j] * t->qd[j];
    }
    for (int i = 0; i < 3; i++)
        from[i] = t->T[4 * i + 3] - t->origin[i];
    const double values[] = {tg_dot3(t->normal, F),       sqrt(tg_dot3(F, F)),
                             tg_dot3(t->axes, from),      tg_dot3(t->axes + 3, from),
                             tg_dot3(t->axes + 6, from),  tg_dot3(t->normal, t->v)};
    PyObject *tuple = PyTuple_New(6);
    for (int i = 0; tuple && i < 6; i++) {
        PyObject *item = PyFloat_FromDouble(values[i]);
        if (!item)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *tg_tip_names[3]; /* T, v, a: interned */

static PyObject *tip_torque(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    TipLaw *t = (TipLaw *)object;
    double number[3], D[16], v[6], error[6], rate[6], x[3 * TG_DOF], A[6][6], size = 0.0;
    double *const qdd = x + 2 * TG_DOF, *const pull = t->pull;
    const double *const n = t->normal;
    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError,
                            "torque() takes reference, h, pressing, along, integral; %zd were given", nargs);
    for (int i = 0; i < 3; i++) {
        number[i] = PyFloat_AsDouble(args[i ? i + 2 : 1]);
        if (number[i] == -1.0 && PyErr_Occurred())
            return NULL;
    }
    const double h = number[0], along = number[1], integral = number[2];
    const int pressing = PyObject_IsTrue(args[2]);
    if (pressing < 0 || !tip_ready(t) || tg_field(args[0], tg_tip_names[0], "T", 4, 4, D) < 0 ||
        tg_field(args[0], tg_tip_names[1], "v", 1, 6, v) < 0 || tg_field(args[0], tg_tip_names[2], "a", 1, 6, pull) < 0)
        return NULL;
    const double *P = ((Arm *)t->arm)->P;
    tg_pose_error(D, t->T, error);
    for (int i = 0; i < 6; i++)
        pull[i] += t->kp * error[i] + t->kv * (v[i] - t->v[i]);
    const double away = pressing ? tg_dot3(n, error) : 0.0, up = pressing ? along - tg_dot3(n, pull) : along;
    for (int i = 0; i < 3; i++) {
        pull[i] += up * n[i];
        t->b[i] += t->ki * h * (error[i] - away * n[i]) + integral * n[i];
        t->b[3 + i] += t->ki * h * error[3 + i];
    }
    t->full = 0;
    for (int i = 0; i < 6; i++) {
        const double limit = t->limit[i];
        t->full |= !(fabs(t->b[i]) < limit);
        t->b[i] = t->b[i] > limit ? limit : t->b[i] < -limit ? -limit : t->b[i];
        pull[i] += t->b[i];
    }
    memcpy(x, t->at, sizeof t->at);
    memcpy(x + TG_DOF, t->qd, sizeof t->qd);
    tg_isa->single[TG_K_jacobian_rate_times_velocity](x, P, rate);
    for (int i = 0; i < 6; i++)
        qdd[i] = pull[i] -= rate[i];
    memcpy(A, t->J, sizeof A);
    const int regular = tg_solved(A, qdd);
    for (int j = 0; j < TG_DOF; j++)
        size += qdd[j] * qdd[j];
    if (!regular || !(size < t->wild))
        Py_RETURN_NONE; /* singular, or nearly: how to go on is the caller's affair */
    PyObject *result = tg_fresh(tg_vector_shape);
    if (!result)
        return NULL;
    double *tau = (double *)PyArray_DATA((PyArrayObject *)result);
    tg_isa->single[TG_K_inverse_dynamics](x, P, tau);
    for (int j = 0; j < TG_DOF; j++)
        tau[j] -= t->external[j];
    return result;
}

/* ---- the type ------------------------------------------------------------------------------------------------- */

static int tip_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    TipLaw *t = (TipLaw *)object;
    PyObject *arm, *bandwidth, *axes, *origin, *limit;
    if (keywords && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "TipLaw() takes its arguments by position");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!OOO(ddd)Od", &ArmType, &arm, &bandwidth, &axes, &origin, &t->kp, &t->kv, &t->ki,
                          &limit, &t->wild))
        return -1;
    if (((Arm *)arm)->traced) {
        PyErr_SetString(PyExc_TypeError, "TipLaw needs an arm with compiled kernels");
        return -1;
    }
    if (tg_matrix(bandwidth, "bandwidth", 1, TG_DOF, t->bandwidth) < 0 || tg_matrix(axes, "axes", 3, 3, t->axes) < 0 ||
        tg_matrix(origin, "origin", 1, 3, t->origin) < 0 || tg_matrix(limit, "limit", 1, 6, t->limit) < 0)
        return -1;
    t->normal = t->axes + 6;
    t->h = t->time = NAN;
    Py_INCREF(arm);
    Py_XSETREF(t->arm, arm);
    Py_INCREF(args);
    Py_XSETREF(t->made, args);
    return 0;
}

static void tip_dealloc(PyObject *object)
{
    Py_XDECREF(((TipLaw *)object)->arm);
    Py_XDECREF(((TipLaw *)object)->made);
    Py_TYPE(object)->tp_free(object);
}

static PyObject *tip_reduce(PyObject *object, PyObject *none)
{
    (void)none;
    return Py_BuildValue("OO", Py_TYPE(object), ((TipLaw *)object)->made); /* a copy begins anew */
}

/* a copy of six of the object's numbers; closure: where they lie in it */
static PyObject *tip_vector(PyObject *object, void *closure)
{
    PyObject *array = tg_fresh(tg_vector_shape);
    if (array)
        memcpy(PyArray_DATA((PyArrayObject *)array), (const char *)object + (size_t)closure, 6 * sizeof(double));
    return array;
}

static PyObject *tip_full(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((TipLaw *)object)->full);
}

static PyGetSetDef tip_getset[] = {
    {"qd", tip_vector, NULL, "filtered joint speeds (6,) [rad/s]", (void *)offsetof(TipLaw, qd)},
    {"pull", tip_vector, NULL, "what J qdd was to be in the last period (6,) [m/s2, rad/s2]",
     (void *)offsetof(TipLaw, pull)},
    {"external", tip_vector, NULL, "joint torque of the wrench that was compensated (6,) [Nm]",
     (void *)offsetof(TipLaw, external)},
    {"b", tip_vector, NULL, "the integral (6,) [m/s2, rad/s2]", (void *)offsetof(TipLaw, b)},
    {"full", tip_full, NULL, "whether the integral is at its limit", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef tip_methods[] = {
    {"start", tip_start, METH_O, "start(state): begin with the measured speed, no integral"},
    {"sense", (PyCFunction)(void (*)(void))tip_sense, METH_FASTCALL,
     "sense(state, wrench or None): force along the normal, size of the force, x, y, height, speed along the normal"},
    {"torque", (PyCFunction)(void (*)(void))tip_torque, METH_FASTCALL,
     "torque(reference, h, pressing, along, integral): tau (6,), or None where the pose is singular"},
    {"__reduce__", tip_reduce, METH_NOARGS, "for pickle and copy: a copy begins anew"},
    {NULL, NULL, 0, NULL}};

static PyTypeObject TipLawType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.TipLaw",
    .tp_basicsize = sizeof(TipLaw),
    .tp_dealloc = tip_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "TipLaw(arm, bandwidth, axes, origin, (kp, kv, ki), limit, wild): one arm's pen under hybrid control.",
    .tp_methods = tip_methods,
    .tp_getset = tip_getset,
    .tp_init = tip_init,
    .tp_new = PyType_GenericNew,
};
