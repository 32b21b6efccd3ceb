/* One step of the classical Runge-Kutta method for an arm under a held torque, with the plain friction of its joints:
 * the operations of plants/rigid.py in their order. */

#define TG_RUBBED 3 /* coulomb, 1 / width, viscous: the parameters of the law plain_friction */

/* qdd at (q, qd) into a; 0 where a number is beyond what the kernels take */
static int tg_accelerated(const Arm *self, const double *q, const double *qd, const double *tau, const double *rub, double *a)
{
    const int n = self->dof;
    double x[TG_GENERAL_INPUT];
    memcpy(x, q, (size_t)n * sizeof(double));
    memcpy(x + n, qd, (size_t)n * sizeof(double));
    for (int j = 0; j < n; j++) {
        double friction = 0.0;
        if (rub)
            tg_plain_friction_w1(&qd[j], rub + TG_RUBBED * j, &friction);
        x[2 * n + j] = rub ? tau[j] - friction : tau[j];
    }
    if (!tg_finite(x, n, TG_ANGLE_MAX) || !tg_finite(x + n, 2 * n, TG_NUMBER_MAX))
        return 0;
    tg_evaluate(self, TG_K_forward_dynamics, x, a);
    return 1;
}

static PyObject *arm_runge_kutta(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    Arm *self = (Arm *)object;
    const int n = self->dof;
    double q[TG_JOINTS_MAX], v[TG_JOINTS_MAX], tau[TG_JOINTS_MAX], at[TG_JOINTS_MAX];
    double speed[3][TG_JOINTS_MAX], a[4][TG_JOINTS_MAX];
    if (nargs != 5)
        return PyErr_Format(PyExc_TypeError, "_runge_kutta(q, qd, tau, friction, h) takes 5 arguments; %zd were given", nargs);
    const double h = PyFloat_AsDouble(args[4]);
    if (h == -1.0 && PyErr_Occurred())
        return NULL;
    PyArrayObject *rows = (PyArrayObject *)args[3];
    if (args[3] != Py_None && (!PyArray_CheckExact(args[3]) || PyArray_TYPE(rows) != NPY_DOUBLE ||
                               !PyArray_ISCARRAY_RO(rows) || PyArray_SIZE(rows) != TG_RUBBED * n))
        return PyErr_Format(tg_invalid, "friction: %d rows of coulomb, 1 / width and viscous, or None", n);
    const double *rub = args[3] == Py_None ? NULL : (const double *)PyArray_DATA(rows);
    if ((self->traced && !self->general) || !tg_state(args[0], q, n, TG_ANGLE_MAX) ||
        !tg_state(args[1], v, n, TG_NUMBER_MAX) || !tg_state(args[2], tau, n, TG_NUMBER_MAX))
        Py_RETURN_NONE;
    const double *from = v; /* the speed of the stage before */
    for (int stage = 0; stage < 4; stage++) {
        const double part = stage == 3 ? h : 0.5 * h;
        if (stage == 0)
            memcpy(at, q, sizeof at);
        for (int j = 0; stage > 0 && j < n; j++) {
            at[j] = q[j] + part * from[j];
            speed[stage - 1][j] = v[j] + part * a[stage - 1][j];
        }
        from = stage == 0 ? v : speed[stage - 1];
        if (!tg_accelerated(self, at, from, tau, rub, a[stage]))
            Py_RETURN_NONE;
    }
    const npy_intp size = n;
    PyObject *pair = PyTuple_New(2);
    for (int i = 0; pair && i < 2; i++) {
        PyObject *array = PyArray_SimpleNew(1, &size, NPY_DOUBLE);
        if (!array) {
            Py_CLEAR(pair);
            break;
        }
        double *out = (double *)PyArray_DATA((PyArrayObject *)array);
        for (int j = 0; j < n; j++)
            out[j] = i == 0 ? q[j] + (h / 6.0) * (v[j] + 2.0 * (speed[0][j] + speed[1][j]) + speed[2][j])
                            : v[j] + (h / 6.0) * (a[0][j] + 2.0 * (a[1][j] + a[2][j]) + a[3][j]);
        PyTuple_SET_ITEM(pair, i, array);
    }
    return pair;
}
