/* The choice among solutions: the nearest to a joint vector, whole turns included (kinematics.inverse_closed_form has
 * the law of one joint). kernels/solutions.py does the same in Python, for arms of any number of joints, and finds the
 * words where there is no choice. */

/* the nearest of count rows q, moved by whole turns within the limits; 0 where the limits allow none */
static int tg_nearest(int count, int dof, const double *q, const double *reference, const double *low,
                      const double *high, const npy_bool *turns, double *best)
{
    double least = DBL_MAX, row[TG_JOINTS_MAX];
    int found = 0;
    for (int i = 0; i < count; i++, q += dof) {
        double distance = 0.0;
        int inside = 1;
        for (int j = 0; j < dof; j++) {
            const double x[2] = {q[j], reference[j]}, P[2] = {low[j], high[j]};
            double out[2] = {q[j], q[j] >= low[j] - TG_LIMIT_SLACK && q[j] <= high[j] + TG_LIMIT_SLACK};
            if (turns[j])
                tg_turned_w1(x, P, out);
            row[j] = out[0];
            inside &= out[1] > 0.5;
            distance += (row[j] - reference[j]) * (row[j] - reference[j]);
        }
        if (inside && (!found || distance < least)) {
            found = 1;
            least = distance;
            memcpy(best, row, dof * sizeof(double));
        }
    }
    return found;
}

static int tg_is_vector(PyObject *a, int type, int size)
{
    return PyArray_CheckExact(a) && PyArray_NDIM((PyArrayObject *)a) == 1 && PyArray_TYPE((PyArrayObject *)a) == type &&
           PyArray_DIM((PyArrayObject *)a, 0) == size && PyArray_ISCARRAY_RO((PyArrayObject *)a);
}

/* _nearest(q, q_ref, q_min, q_max, revolute): a joint vector, or None where Python must look */
static PyObject *arm_nearest(PyObject *type, PyObject *const *args, Py_ssize_t nargs)
{
    (void)type;
    double reference[TG_JOINTS_MAX], best[TG_JOINTS_MAX];
    PyArrayObject *q = nargs == 5 && PyArray_CheckExact(args[0]) ? (PyArrayObject *)args[0] : NULL;
    if (!q || PyArray_NDIM(q) != 2 || PyArray_TYPE(q) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(q) ||
        PyArray_DIM(q, 1) > TG_JOINTS_MAX)
        Py_RETURN_NONE;
    npy_intp dof = PyArray_DIM(q, 1);
    if (!tg_state(args[1], reference, (int)dof, TG_ANGLE_MAX) || !tg_is_vector(args[2], NPY_DOUBLE, (int)dof) ||
        !tg_is_vector(args[3], NPY_DOUBLE, (int)dof) || !tg_is_vector(args[4], NPY_BOOL, (int)dof))
        Py_RETURN_NONE;
#define DATA(a) PyArray_DATA((PyArrayObject *)(a))
    if (!tg_nearest((int)PyArray_DIM(q, 0), (int)dof, DATA(q), reference, DATA(args[2]), DATA(args[3]), DATA(args[4]),
                    best))
        Py_RETURN_NONE;
    PyObject *result = PyArray_SimpleNew(1, &dof, NPY_DOUBLE);
    if (result)
        memcpy(DATA(result), best, dof * sizeof(double));
#undef DATA
    return result;
}
