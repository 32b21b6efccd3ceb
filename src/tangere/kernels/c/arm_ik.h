/* The method inverse_kinematics of an arm: one pose or many, closed form or polished. */

static PyObject *tg_found_type; /* called with q, flags, lanes, correction, distance and the arm */

TG_KERNEL PyObject *tg_polished_one(const tg_twin *twin, const double *general, const double *T,
                                    const double *reference, PyObject *arm)
{
    tg_found found[TG_FOUND_MAX];
    double correction, distance;
    const char *problem;
    const int count = tg_solved_near(twin, general, T, reference, found, &correction, &distance, &problem);
    if (problem)
        return PyErr_Format(tg_invalid, "T: %s", problem);
    npy_intp dims[2] = {count, 6};
    PyObject *q = PyArray_SimpleNew(2, dims, NPY_DOUBLE), *flags = PyArray_SimpleNew(1, dims, NPY_UINT8);
    PyObject *lanes = PyArray_SimpleNew(1, dims, NPY_UINT8), *result = NULL;
    if (q && flags && lanes) {
        for (int i = 0; i < count; i++) {
            memcpy((double *)PyArray_DATA((PyArrayObject *)q) + 6 * i, found[i].q, sizeof found[i].q);
            ((npy_uint8 *)PyArray_DATA((PyArrayObject *)flags))[i] = found[i].flags;
            ((npy_uint8 *)PyArray_DATA((PyArrayObject *)lanes))[i] = found[i].lane;
        }
        result = PyObject_CallFunction(tg_found_type, "OOOddO", q, flags, lanes, correction, distance, arm);
    }
    Py_XDECREF(q);
    Py_XDECREF(flags);
    Py_XDECREF(lanes);
    return result;
}

#define TG_MORE 128 /* among the flags of a pose's first place: it has more solutions than places; MORE of solutions.py */

/* as ik_batch of ik.h: each solution at its branch, or at the next free place if two share one; eight of them stay */
static npy_intp tg_polished_batch(const tg_twin *twin, const double *general, npy_intp n, const double *T,
                                  const double *reference, npy_intp reference_step, double *q, npy_bool *valid,
                                  npy_uint8 *flags, double *correction, double *distance, const char **problem)
{
    memset(q, 0, n * TG_IK_LANES * 6 * sizeof(double));
    memset(valid, 0, n * TG_IK_LANES * sizeof(npy_bool));
    memset(flags, 0, n * TG_IK_LANES * sizeof(npy_uint8));
    for (npy_intp s = 0; s < n; s++) {
        tg_found found[TG_FOUND_MAX];
        const int count = tg_solved_near(twin, general, T + 16 * s, reference ? reference + s * reference_step : NULL,
                                         found, correction + s, distance + s, problem);
        if (*problem)
            return s;
        for (int i = 0; i < count; i++) {
            npy_intp at = TG_IK_LANES * s + found[i].lane;
            for (int k = 0; k < TG_IK_LANES && valid[at]; k++)
                at = TG_IK_LANES * s + k;
            if (valid[at])
                break;
            memcpy(q + 6 * at, found[i].q, sizeof found[i].q);
            valid[at] = 1;
            flags[at] = found[i].flags;
        }
        if (count > TG_IK_LANES)
            flags[TG_IK_LANES * s] |= TG_MORE;
    }
    return n;
}

#define TG_IK_CHUNK 64 /* poses: 20 ms of singular poses of a calibrated arm */

typedef struct {
    const Arm *arm;
    const double *T, *reference;
    npy_intp step;
    double *q;
    npy_bool *valid;
    npy_uint8 *flags;
    double *correction, *distance;
    npy_intp bad; /* the first pose that is none, and why */
    const char *problem;
} tg_ik_work;

static void tg_ik_chunk(void *object, npy_intp first, npy_intp count)
{
    tg_ik_work *w = object;
    const Arm *arm = w->arm;
    const double *T = w->T + 16 * first, *reference = w->reference ? w->reference + w->step * first : NULL;
    const npy_intp at = TG_IK_LANES * first;
    const char *problem = NULL;
    npy_intp done;
    if (arm->twin)
        done = tg_polished_batch(arm->twin, arm->general, count, T, reference, w->step, w->q + 6 * at, w->valid + at,
                                 w->flags + at, w->correction + first, w->distance + first, &problem);
    else
        done = ik_batch(count, T, reference, w->step, arm->P, w->q + 6 * at, w->valid + at, w->flags + at,
                        w->correction + first, w->distance + first, &problem);
    if (done < count)
        tg_note(&w->bad, &w->problem, first + done, problem);
}

static PyObject *tg_ik_many(Arm *self, PyArrayObject *T, PyArrayObject *reference)
{
    const int leading = PyArray_NDIM(T) - 2;
    const npy_intp *lead = PyArray_DIMS(T), n = PyArray_SIZE(T) / 16;
    npy_intp step = 0;
    if (reference && PyArray_NDIM(reference) > 1) {
        if (PyArray_NDIM(reference) - 1 != leading || !PyArray_CompareLists(PyArray_DIMS(reference), lead, leading)) {
            PyErr_SetString(tg_invalid, "reference must be one joint vector (6,) or have the leading axes of the poses");
            return NULL;
        }
        step = 6;
    }
    npy_intp dims[NPY_MAXDIMS];
    if (leading + 2 > NPY_MAXDIMS)
        return PyErr_Format(tg_invalid, "%d leading axes are more than numpy has room for", leading);
    memcpy(dims, lead, leading * sizeof(npy_intp));
    dims[leading] = TG_IK_LANES;
    dims[leading + 1] = 6;
    PyObject *q = PyArray_SimpleNew(leading + 2, dims, NPY_DOUBLE);
    PyObject *valid = PyArray_SimpleNew(leading + 1, dims, NPY_BOOL);
    PyObject *flags = PyArray_SimpleNew(leading + 1, dims, NPY_UINT8);
    PyObject *correction = PyArray_SimpleNew(leading, dims, NPY_DOUBLE);
    PyObject *distance = PyArray_SimpleNew(leading, dims, NPY_DOUBLE);
    PyObject *result = NULL;
    if (q && valid && flags && correction && distance) {
#define DATA(a) PyArray_DATA((PyArrayObject *)(a))
        tg_ik_work work = {self, DATA(T), reference ? DATA(reference) : NULL, step, DATA(q), DATA(valid), DATA(flags),
                           DATA(correction), DATA(distance), n, NULL};
#undef DATA
        const int heard = tg_in_chunks(tg_ik_chunk, &work, n, TG_IK_CHUNK);
        if (heard == 0 && work.problem)
            PyErr_Format(tg_invalid, "pose number %zd: %s", (Py_ssize_t)work.bad, work.problem);
        else if (heard == 0)
            result = PyObject_CallFunctionObjArgs(tg_batch_type, q, valid, flags, correction, distance, self, T,
                                                  reference ? (PyObject *)reference : Py_None, NULL);
    }
    Py_XDECREF(q);
    Py_XDECREF(valid);
    Py_XDECREF(flags);
    Py_XDECREF(correction);
    Py_XDECREF(distance);
    return result;
}

/* whether an object is an array whose last two axes are rows and columns */
static int tg_ends(PyObject *a, int rows, int columns)
{
    if (!PyArray_Check(a) || PyArray_NDIM((PyArrayObject *)a) < 2)
        return 0;
    const npy_intp *last = PyArray_DIMS((PyArrayObject *)a) + PyArray_NDIM((PyArrayObject *)a) - 2;
    return last[0] == rows && last[1] == columns;
}

static PyObject *arm_inverse_kinematics(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Arm *self = (Arm *)object;
    if (self->traced && !self->twin)
        return tg_delegated(self, "inverse_kinematics", args, nargs, kwnames);
    static const char *const names[] = {"T", "reference"};
    static const int four[2] = {4, 4}, six = 6;
    PyObject *a[2];
    if (tg_arguments("inverse_kinematics", args, nargs, kwnames, names, 2, 1, a) < 0)
        return NULL;
    double reference_values[6];
    const double *reference = NULL;
    PyArrayObject *reference_array = NULL;
    if (a[1] && a[1] != Py_None) {
        if (tg_state(a[1], reference_values, 6, TG_ANGLE_MAX))
            reference = reference_values;
        else {
            reference_array = tg_array(a[1], "reference", 1, &six, TG_ANGLE_MAX);
            if (!reference_array)
                return NULL;
            reference = (const double *)PyArray_DATA(reference_array);
        }
    }
    PyArrayObject *T = NULL;
    PyObject *result = NULL;
    const double *numbers;
    if (PyArray_CheckExact(a[0]) && PyArray_NDIM((PyArrayObject *)a[0]) == 2 &&
        PyArray_DIM((PyArrayObject *)a[0], 0) == 4 && PyArray_DIM((PyArrayObject *)a[0], 1) == 4 &&
        PyArray_TYPE((PyArrayObject *)a[0]) == NPY_DOUBLE && PyArray_ISCARRAY_RO((PyArrayObject *)a[0])) {
        T = (PyArrayObject *)a[0];
        Py_INCREF(T);
        if (!tg_finite((const double *)PyArray_DATA(T), 16, TG_LENGTH_MAX)) {
            tg_refused(a[0], "T", 2, four);
            goto done;
        }
    } else if (tg_transforms && !tg_ends(a[0], 4, 4)) { /* lists, or x y z rx ry rz: Python makes matrices of them */
        PyObject *made = PyObject_CallFunctionObjArgs(tg_transforms, a[0], NULL);
        T = made ? tg_array(made, "T", 2, four, TG_LENGTH_MAX) : NULL;
        Py_XDECREF(made);
    } else
        T = tg_array(a[0], "T", 2, four, TG_LENGTH_MAX);
    if (!T)
        goto done;
    if (PyArray_NDIM(T) > 2) {
        if (reference && !reference_array) { /* one vector for all poses */
            npy_intp dim = 6;
            reference_array = (PyArrayObject *)PyArray_SimpleNew(1, &dim, NPY_DOUBLE);
            if (!reference_array)
                goto done;
            memcpy(PyArray_DATA(reference_array), reference_values, sizeof reference_values);
        }
        result = tg_ik_many(self, T, reference_array);
        goto done;
    }
    if (reference_array && PyArray_NDIM(reference_array) > 1) {
        PyErr_SetString(tg_invalid, "one pose takes one reference of shape (6,)");
        goto done;
    }
    numbers = (const double *)PyArray_DATA(T);
    if (self->twin) {
        result = tg_polished_one(self->twin, self->general, numbers, reference, object);
        goto done;
    }
    double flange[TG_IK_PREPARE_OUTPUTS];
    const char *problem = ik_prepared(numbers, self->P, flange);
    if (problem) {
        PyErr_Format(tg_invalid, "T: %s", problem);
        goto done;
    }
    Answer *answer = (Answer *)tg_solutions_type->tp_alloc(tg_solutions_type, 0);
    if (!answer)
        goto done;
    Py_INCREF(object);
    answer->arm = object;
    answer->correction = flange[12];
    answer->count = ik_solved(flange, reference, self->P, answer->branches, answer->lane, &answer->distance);
    result = (PyObject *)answer;
    if (!answer->count && answer->distance < TG_RESCUE) { /* nearly reached: rounding at two singularities at once? */
        PyObject *found = PyObject_CallFunctionObjArgs(tg_rescue, result, T, a[1] ? a[1] : Py_None, NULL);
        Py_SETREF(result, found);
    }
done:
    Py_XDECREF(T);
    Py_XDECREF(reference_array);
    return result;
}
