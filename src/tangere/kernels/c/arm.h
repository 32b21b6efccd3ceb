/* The type that carries an arm's parameters and one method per kernel. */

#include "chunks.h"
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

#include "arguments.h"

/* ---- calls ----------------------------------------------------------------------------------------------------- */

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

#include "batches.h"

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
    const int near = q && PyArray_NDIM(q) > 0 && PyArray_NDIM(q) <= TG_AXES_MAX && PyArray_DIM(q, PyArray_NDIM(q) - 1) == dof &&
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

#include "arm_ik.h"
#include "nearest.h"
#include "runge_kutta.h"

/* ---- the type ------------------------------------------------------------------------------------------------- */

/* a vector of parameters; -1 with an error where it is none */
static int tg_vector(PyObject *parameters, int size, double *to)
{
    PyArrayObject *array = tg_array(parameters, "parameters", 1, &size, TG_NUMBER_MAX);
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
    {"_nearest", (PyCFunction)(void (*)(void))arm_nearest, METH_FASTCALL | METH_STATIC,
     "_nearest(q, q_ref, q_min, q_max, revolute): the nearest of the rows of q, or None where Python must look"},
    {"_runge_kutta", (PyCFunction)(void (*)(void))arm_runge_kutta, METH_FASTCALL,
     "_runge_kutta(q, qd, tau, friction, h): q and qd one step later, or None where Python must look"},
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
