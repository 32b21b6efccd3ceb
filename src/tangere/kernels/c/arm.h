/* The type that carries an arm's parameters and one method per kernel. */

#include "ik.h"
#include "polished.h"

#define TG_RECENT 2 /* one that the caller still holds from the last call, and one that is free */

typedef struct {
    PyObject_HEAD
    double P[TG_PARAMETERS]; /* of a UR */
    PyObject *traced; /* NULL: a UR; else the object that computes in Python what `general` leaves over */
    double *general; /* parameters of the kernels of arms in general; NULL: none, a UR or Python alone */
    tg_twin *twin; /* the nearest UR of such an arm, for its inverse kinematics; NULL: none is near */
    int structure, dof;
    PyObject *recent[TG_KERNELS_MAX][TG_RECENT]; /* last results of single calls, to be used again once nobody else has them */
} Arm;

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
    int fits = v && PyArray_NDIM(v) >= tail_dims;
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

/* whether output o is an array that only its holder here knows, still as it was made; a view of it would count */
TG_INLINE int tg_untouched(PyObject *object, const tg_shape *s, int o)
{
    PyArrayObject *a = (PyArrayObject *)object;
    if (Py_REFCNT(object) != 1 || *PyObject_GET_WEAKREFS_LISTPTR(object) || PyArray_NDIM(a) != s->dims[o][0] || PyArray_TYPE(a) != NPY_DOUBLE ||
        !PyArray_ISCARRAY(a))
        return 0;
    for (int i = 0; i < s->dims[o][0]; i++)
        if (PyArray_DIM(a, i) != s->dims[o][1 + i])
            return 0;
    return 1;
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

TG_INLINE void tg_evaluate(const Arm *self, int k, double *x, double *y)
{
    if (self->general && self->structure == TG_SIX && self->dof == TG_DOF) {
        for (int i = 0; i < TG_DOF; i++)
            x[i] += self->general[i];
        tg_six_form->one[k](x, self->general, y);
    } else if (self->general)
        tg_general_one(self->structure, k, self->dof, x, self->general, y);
    else
        tg_isa->single[k](x, self->P, y);
}

/* one state: the scalar kernel */
TG_INLINE PyObject *tg_single(Arm *self, int k, const tg_shape *s, double *x)
{
    if (s->dims[0][0] == 0) { /* numbers, not arrays */
        double y[TG_GENERAL_OUTPUT];
        tg_evaluate(self, k, x, y);
        PyObject *tuple = PyTuple_New(s->outputs);
        for (int o = 0; tuple && o < s->outputs; o++) {
            PyObject *item = PyFloat_FromDouble(y[o]);
            if (!item)
                Py_CLEAR(tuple);
            else
                PyTuple_SET_ITEM(tuple, o, item);
        }
        return tuple;
    }
    PyObject *result = tg_result(self, k, s);
    if (result) {
        PyObject *first = s->outputs == 1 ? result : PyTuple_GET_ITEM(result, 0);
        tg_evaluate(self, k, x, (double *)PyArray_DATA((PyArrayObject *)first));
    }
    return result;
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
    Py_BEGIN_ALLOW_THREADS
    if (self->general)
        tg_general_many(tg_six_form, self->structure, k, self->dof, n, from, self->general, to);
    else
        tg_isa->batch(k, n, from, self->P, to);
    Py_END_ALLOW_THREADS
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

static PyObject *tg_delegated(const Arm *self, const char *name, PyObject *const *args, Py_ssize_t nargs,
                              PyObject *kwnames)
{
    PyObject *method = PyObject_GetAttrString(self->traced, name);
    if (!method)
        return NULL;
    PyObject *result = PyObject_Vectorcall(method, args, nargs, kwnames);
    Py_DECREF(method);
    return result;
}

TG_INLINE PyObject *tg_call_as(Arm *self, int k, const tg_shape *s, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames)
{
    if (!kwnames && nargs == s->inputs) {
        double x[TG_GENERAL_INPUT];
        int g = 0, at = 0;
        for (; g < s->inputs && tg_state(args[g], x + at, s->sizes[g], s->limits[g]); at += s->sizes[g++])
            ;
        if (g == s->inputs)
            return tg_single(self, k, s, x);
    }
    PyObject *a[3];
    if (tg_arguments(s->name, args, nargs, kwnames, s->names, s->inputs, s->inputs, a) < 0)
        return NULL;
    return tg_general(self, k, s, a);
}

/* an arm that is no UR: by the kernels of arms in general, or in Python */
TG_INLINE PyObject *tg_call_other(Arm *self, int k, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (!self->general)
        return tg_delegated(self, tg_shapes_of[TG_JOINTS_MAX][k].name, args, nargs, kwnames);
    if (self->dof == TG_DOF)
        return tg_call_as(self, k, &tg_shapes_of[TG_DOF][k], args, nargs, kwnames);
    return tg_call_as(self, k, &tg_shapes_of[self->dof][k], args, nargs, kwnames);
}

TG_INLINE PyObject *tg_call(Arm *self, int k, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (self->traced)
        return tg_call_other(self, k, args, nargs, kwnames);
    return tg_call_as(self, k, &tg_shapes[k], args, nargs, kwnames);
}

#define X(name)                                                                                                        \
    static PyObject *arm_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)            \
    {                                                                                                                  \
        return tg_call((Arm *)self, TG_K_##name, args, nargs, kwnames);                                                \
    }
X(link_poses) X(link_jacobians) X(jacobian_rate_times_velocity) X(mass_matrix) X(coriolis_matrix)
X(gravity_torque) X(bias_torque) X(inverse_dynamics) X(forward_dynamics) X(momentum_terms)
X(inverse_dynamics_derivatives) X(energy) X(regressor)
#undef X

/* One state of angles within two turns goes straight to the kernel, as in tg_call. Larger angles are mostly degrees:
 * Python judges and warns. Another form than a matrix is made in Python, from the matrix. */
static PyObject *arm_pose(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Arm *self = (Arm *)object;
    double x[TG_JOINTS_MAX];
    if (!self->traced && !kwnames && nargs == 1 && tg_state(args[0], x, TG_DOF, TG_FAR))
        return tg_single(self, TG_K_pose, &tg_shapes[TG_K_pose], x);
    if (self->traced && !self->general)
        return tg_delegated(self, "pose", args, nargs, kwnames);
    const int dof = self->dof;
    const tg_shape *s = &tg_shapes_of[dof][TG_K_pose];
    if (self->general && !kwnames && nargs == 1 && tg_state(args[0], x, dof, TG_FAR))
        return tg_single(self, TG_K_pose, s, x);
    static const char *const names[] = {"q", "form"};
    PyObject *a[2];
    if (tg_arguments("pose", args, nargs, kwnames, names, 2, 1, a) < 0)
        return NULL;
    PyObject *result = NULL;
    PyArrayObject *q = (PyArrayObject *)PyArray_FROM_OTF(a[0], NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
    const int near = q && PyArray_NDIM(q) > 0 && PyArray_DIM(q, PyArray_NDIM(q) - 1) == dof &&
                     tg_finite((const double *)PyArray_DATA(q), PyArray_SIZE(q), TG_FAR);
    if (!near) {
        Py_XDECREF(q);
        PyErr_Clear();
        q = tg_array(a[0], "q", 1, &dof, TG_ANGLE_MAX);
        if (!q)
            return NULL;
        PyObject *said = tg_far ? PyObject_CallFunctionObjArgs(tg_far, object, q, NULL) : Py_NewRef(Py_None);
        if (!said) /* a warning that is an error */
            goto done;
        Py_DECREF(said);
    }
    result = tg_computed(self, TG_K_pose, s, &q);
    if (result && a[1]) {
        PyObject *formed = PyObject_CallFunctionObjArgs(tg_formed, result, a[1], NULL);
        Py_SETREF(result, formed);
    }
done:
    Py_DECREF(q);
    return result;
}

static PyObject *arm_jacobian(PyObject *object, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Arm *self = (Arm *)object;
    if (nargs == 1 && !kwnames)
        return tg_call(self, TG_K_jacobian, args, nargs, kwnames);
    if (self->traced && !self->general)
        return tg_delegated(self, "jacobian", args, nargs, kwnames);
    static const char *const names[] = {"q", "link", "point"};
    PyObject *a[3];
    if (tg_arguments("jacobian", args, nargs, kwnames, names, 3, 1, a) < 0)
        return NULL;
    if ((!a[1] || a[1] == Py_None) && (!a[2] || a[2] == Py_None))
        return tg_call(self, TG_K_jacobian, a, 1, NULL);
    if (!a[1] || a[1] == Py_None) {
        return PyErr_Format(tg_invalid, "point: given without a link; a point is in the frame of link 1 ... %d",
                            self->dof);
    }
    const long link = PyLong_AsLong(a[1]); /* -1 with an error for what is no whole number */
    PyErr_Clear();
    if (link < 1 || link > self->dof)
        return PyErr_Format(tg_invalid, "link: got %R, valid are 1 to %d, or None for the tcp", a[1], self->dof);
    PyObject *origin = NULL;
    if (!a[2] || a[2] == Py_None) {
        npy_intp three = 3;
        origin = PyArray_ZEROS(1, &three, NPY_DOUBLE, 0);
        if (!origin)
            return NULL;
    }
    PyObject *inputs[2] = {a[0], origin ? origin : a[2]};
    PyObject *result = tg_call(self, TG_K_jacobian_link1 + (int)link - 1, inputs, 2, NULL);
    Py_XDECREF(origin);
    return result;
}

/* ---- inverse kinematics --------------------------------------------------------------------------------------- */

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
        const char *problem = NULL;
        npy_intp done;
#define DATA(a) PyArray_DATA((PyArrayObject *)(a))
        Py_BEGIN_ALLOW_THREADS
        if (self->twin)
            done = tg_polished_batch(self->twin, self->general, n, DATA(T), reference ? DATA(reference) : NULL, step,
                                     DATA(q), DATA(valid), DATA(flags), DATA(correction), DATA(distance), &problem);
        else
            done = ik_batch(n, DATA(T), reference ? DATA(reference) : NULL, step, self->P, DATA(q), DATA(valid),
                            DATA(flags), DATA(correction), DATA(distance), &problem);
        Py_END_ALLOW_THREADS
#undef DATA
        if (done < n)
            PyErr_Format(tg_invalid, "pose number %zd: %s", (Py_ssize_t)done, problem);
        else
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

/* ---- the type ------------------------------------------------------------------------------------------------- */

/* a vector of parameters; -1 with an error where it is none */
static int tg_vector(PyObject *parameters, int size, double *to)
{
    PyArrayObject *array = tg_array(parameters, "parameters", 1, &size, DBL_MAX);
    if (!array)
        return -1;
    const int fits = PyArray_NDIM(array) == 1;
    if (fits)
        memcpy(to, PyArray_DATA(array), size * sizeof(double));
    else
        PyErr_SetString(tg_invalid, "parameters must be one vector");
    Py_DECREF(array);
    return fits ? 0 : -1;
}

static int arm_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"parameters", "traced", "structure", "dof", "twin", NULL};
    Arm *self = (Arm *)object;
    PyObject *parameters, *traced = Py_None, *twin = Py_None;
    int structure = -1, dof = TG_DOF;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OiiO", names, &parameters, &traced, &structure, &dof, &twin))
        return -1;
    self->dof = dof;
    if (traced != Py_None) {
        Py_INCREF(traced);
        Py_XSETREF(self->traced, traced);
        if (structure < 0)
            return 0;
        if ((twin != Py_None && (structure != TG_SIX || dof != TG_DOF)) || structure >= TG_STRUCTURES || dof < 1 || dof > tg_structures[structure].joints) {
            PyErr_Format(tg_invalid, "no structure %d for %d joints", structure, dof);
            return -1;
        }
        double *general = PyMem_Calloc(tg_structures[structure].parameters, sizeof(double));
        if (!general || tg_vector(parameters, tg_structures[structure].parameters, general) < 0) {
            PyMem_Free(general);
            return -1;
        }
        PyMem_Free(self->general);
        self->general = general;
        self->structure = structure;
        if (twin == Py_None)
            return 0;
        if (!self->twin && !(self->twin = PyMem_Calloc(1, sizeof *self->twin)))
            return -1;
        return tg_vector(twin, sizeof(tg_twin) / sizeof(double), (double *)self->twin);
    }
    return tg_vector(parameters, TG_PARAMETERS, self->P);
}

static void arm_dealloc(PyObject *object)
{
    Arm *self = (Arm *)object;
    Py_XDECREF(self->traced);
    PyMem_Free(self->general);
    PyMem_Free(self->twin);
    for (int k = 0; k < TG_KERNELS_MAX; k++)
        for (int i = 0; i < TG_RECENT; i++)
            Py_XDECREF(self->recent[k][i]);
    Py_TYPE(object)->tp_free(object); /* a subclass releases its own type */
}

#define METHOD(name, signature, text)                                                                                  \
    {#name, (PyCFunction)(void (*)(void))arm_##name, METH_FASTCALL | METH_KEYWORDS, #name "($self, " signature          \
     ")\n--\n\n" text}
static PyMethodDef arm_methods[] = {
    METHOD(pose, "q, form='matrix'", "Pose of the tcp in the base frame, T_base_tcp (..., 4, 4), for q (..., n) [rad]."),
    METHOD(link_poses, "q", "Frames of all links in the base frame (..., n, 4, 4); DH frames 1 ... n for a UR."),
    METHOD(jacobian, "q, link=None, point=None",
           "Geometric Jacobian (..., 6, n), linear rows first, base axes.\n\nAt the tcp, or at `point` (..., 3), given "
           "in the frame of link number `link` (1 ... n).\n(v, omega) = J qd;  tau = J^T (force, moment)."),
    METHOD(link_jacobians, "q", "Jv (..., n, 3, n) and Jw (..., n, 3, n) at every link's centre of mass, base axes."),
    METHOD(jacobian_rate_times_velocity, "q, qd", "Jdot qd (..., 6): acceleration of the tcp while qdd = 0."),
    METHOD(mass_matrix, "q", "M(q) (..., n, n) [kg m2]; with rotor inertia on the diagonal if the robot was made so."),
    METHOD(coriolis_matrix, "q, qd", "C(q, qd) (..., n, n) with the Christoffel symbols: Mdot = C + C^T."),
    METHOD(gravity_torque, "q", "g(q) (..., n) [Nm]: the torque that holds the arm still."),
    METHOD(bias_torque, "q, qd", "C qd + g (..., n) [Nm]: the torque that keeps qdd = 0."),
    METHOD(inverse_dynamics, "q, qd, qdd", "tau = M qdd + C qd + g (..., n) [Nm]; without friction."),
    METHOD(forward_dynamics, "q, qd, tau", "qdd = M^-1 (tau - C qd - g) (..., n) [rad/s2]; without friction."),
    METHOD(momentum_terms, "q, qd", "p = M qd, C^T qd and g (..., n) each: what a momentum observer needs."),
    METHOD(inverse_dynamics_derivatives, "q, qd, qdd",
           "d tau/dq, d tau/dqd, d tau/dqdd (..., n, n) each; element [i, k] is d tau_i / d x_k."),
    METHOD(energy, "q, qd", "Kinetic and potential energy [J]; potential energy is zero at the base's origin."),
    METHOD(regressor, "q, qd, qdd",
           "Y (..., n, 10 n) with tau = Y pi.\n\npi = (m, m cx, m cy, m cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz) per link, "
           "about the origin of the link's frame."),
    METHOD(inverse_kinematics, "T, reference=None",
           "All solutions of the pose T_base_tcp as an IKSolutions value (leading axes: IKBatch).\n\n`reference` (6,) "
           "settles what a singular pose leaves open (q6 at a wrist singularity)."),
    {NULL, NULL, 0, NULL}};
#undef METHOD

static PyObject *arm_compiled(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(!((Arm *)object)->traced || ((Arm *)object)->general);
}

static PyObject *arm_ur_kernels(PyObject *object, void *closure)
{
    (void)closure;
    return PyBool_FromLong(!((Arm *)object)->traced);
}

static PyGetSetDef arm_getset[] = {
    {"compiled", arm_compiled, NULL, "Whether compiled kernels compute, or the Python form.", NULL},
    {"ur_kernels", arm_ur_kernels, NULL, "Whether the kernels made for a UR's geometry compute, its closed form among them.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject ArmType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.Kernels",
    .tp_basicsize = sizeof(Arm),
    .tp_dealloc = arm_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Kernels(parameters, traced=None): the kernels of one arm.",
    .tp_methods = arm_methods,
    .tp_getset = arm_getset,
    .tp_init = arm_init,
    .tp_new = PyType_GenericNew,
};
