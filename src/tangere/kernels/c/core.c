/* tangere._kernels: the generated kernels behind plain C-API types.
 *
 * Kernels carries the parameters of an arm and one method per kernel; a call with arrays (or lists) of one state goes
 * straight to the scalar kernel, leading axes go to the widest vector form of the processor. The kernels are those of a
 * UR, or those of arms in general (general.c). One without parameters hands every call to the object `traced`, the
 * Python form for chains of more than eight joints.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <float.h>
#include <math.h>
#include <numpy/arrayobject.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "general.h"

typedef struct {
    const char *name;
    int inputs, sizes[7]; /* arguments of a sample, and the numbers in each */
    const char *names[7]; /* of the arguments where they must be finite; NULL: they need not */
    int state, parameters, outputs, rounds;
} tg_law_shape;

#include "tg_table.h"

#define X(name) TG_K_##name,
enum { TG_EACH_KERNEL(X) TG_K_END };
#undef X

/* ---- the kernels, once per width ------------------------------------------------------------------------------ */

#if defined(__GNUC__)
#define TG_WIDTH 2
#define TG_SUFFIX w2
#include "lanes.h"
#include "tg_kernels.h"
#include "blocks.h"
#include "momentum.h"
/* sines and cosines of the six angles of one state, in lanes */
static inline void tg_angles_w1(const double *x, double *sines, double *cosines)
{
    for (int i = 0; i < TG_DOF; i += TG_WIDTH)
        TG_FN(sincos_at)(x + i, sines + i, cosines + i);
}
#undef TG_WIDTH
#undef TG_SUFFIX
#else
static void tg_sincos_w1(double x, double *s, double *c);
static inline void tg_angles_w1(const double *x, double *sines, double *cosines)
{
    for (int i = 0; i < TG_DOF; i++)
        tg_sincos_w1(x[i], &sines[i], &cosines[i]);
}
#endif

#define TG_WIDTH 1
#define TG_SUFFIX w1
#include "lanes.h"
#include "tg_kernels.h"
#include "blocks.h"
#include "momentum.h"
#undef TG_WIDTH
#undef TG_SUFFIX

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define TG_X86 1
#pragma GCC push_options
#pragma GCC target("avx2")
#define TG_WIDTH 4
#define TG_SUFFIX w4
#include "lanes.h"
#include "tg_kernels.h"
#include "blocks.h"
#include "momentum.h"
static inline void tg_angles_v1(const double *x, double *sines, double *cosines)
{
    TG_FN(sincos_at)(x, sines, cosines);
    TG_FN(sincos_at)(x + TG_DOF - TG_WIDTH, sines + TG_DOF - TG_WIDTH, cosines + TG_DOF - TG_WIDTH);
}
#undef TG_WIDTH
#undef TG_SUFFIX

#define TG_WIDTH 1 /* one state again, in the shorter instructions that come with AVX */
#define TG_SUFFIX v1
#include "lanes.h"
#include "tg_kernels.h"
#include "blocks.h"
#include "momentum.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#define TG_WIDTH 8
#define TG_SUFFIX w8
#include "lanes.h"
#include "tg_kernels.h"
#include "blocks.h"
#include "momentum.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#pragma GCC pop_options
#endif

typedef void tg_momentum_fn(const double *, const tg_law *, npy_intp, const double *, const double *, double *, double *);
typedef void tg_weights_fn(const double *, int, npy_intp, const double *, double *);
typedef struct {
    const char *name;
    void (*const *single)(const double *restrict, const double *restrict, double *restrict);
    void (*batch)(int, npy_intp, const double *const *, const double *, double *const *);
    void (*ik_branches)(int, const double *, const double *, const double *, double[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS]);
    tg_momentum_fn *momentum, *momentum_one;
    tg_weights_fn *weights, *weights_one;
    void (*const *laws)(const double *restrict, const double *restrict, double *restrict);
} tg_isa_entry;

static const tg_six_forms *tg_six_form = tg_six; /* of the same name as tg_isa, or the one that runs everywhere */

static const tg_isa_entry tg_isas[] = {
#ifdef TG_X86
    {"avx512", tg_kernels_v1, tg_batch_w8, tg_ik_branches_w8, tg_momentum_w8, tg_momentum_v1,
     tg_weights_w8, tg_weights_v1, tg_laws_v1},
    {"avx2", tg_kernels_v1, tg_batch_w4, tg_ik_branches_w4, tg_momentum_w4, tg_momentum_v1,
     tg_weights_w4, tg_weights_v1, tg_laws_v1},
#endif
#if defined(__GNUC__)
    {"baseline", tg_kernels_w1, tg_batch_w2, tg_ik_branches_w2, tg_momentum_w2, tg_momentum_w1,
     tg_weights_w2, tg_weights_w1, tg_laws_w1},
#endif
    {"scalar", tg_kernels_w1, tg_batch_w1, tg_ik_branches_w1, tg_momentum_w1, tg_momentum_w1,
     tg_weights_w1, tg_weights_w1, tg_laws_w1},
};
#define TG_ISAS ((int)(sizeof tg_isas / sizeof tg_isas[0]))

static const tg_isa_entry *tg_isa;

static int tg_isa_supported(const char *name)
{
#ifdef TG_X86
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2");
#endif
    (void)name;
    return 1;
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

static PyObject *tg_invalid;   /* tangere.errors.InvalidValue */
static PyArray_Descr *tg_double; /* float64 */
static PyObject *tg_broadcast; /* tangere.kernels.shapes.broadcast */
static PyObject *tg_refuse;    /* tangere.kernels.shapes.refuse */
static PyObject *tg_far, *tg_formed, *tg_transforms; /* tangere.kernels.shapes: the same names */
#define TG_AXES_MAX 24 /* of an array: AXES_MAX of kinematics/checks.py */
#define TG_FAR (4.0 * 3.14159265358979323846) /* rad: twice the two turns of a UR's joint; MANY_TURNS of kernels/shapes.py */

static int tg_finite(const double *x, npy_intp n, double limit)
{
    int bad = 0;
    for (npy_intp i = 0; i < n; i++)
        bad |= !(fabs(x[i]) <= limit);
    return !bad;
}

/* raise the error that says what is wrong with an argument: Python finds the words */
static PyObject *tg_refused(PyObject *value, const char *name, int tail_dims, const int *tail)
{
    PyErr_Clear();
    PyObject *none = tail_dims == 1 ? PyObject_CallFunction(tg_refuse, "Osi", value, name, tail[0])
                                    : PyObject_CallFunction(tg_refuse, "Osii", value, name, tail[0], tail[1]);
    Py_XDECREF(none);
    return NULL;
}

#include "arm.h"
#include "observer.h"
#include "observer_type.h"
#include "step.h"

/* ---- the module ----------------------------------------------------------------------------------------------- */

static PyObject *module_register(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *solutions, *batch, *rescue, *broadcast, *refuse, *far, *formed, *transforms, *found;
    if (!PyArg_ParseTuple(args, "O!OOOOOOOO", &PyType_Type, &solutions, &batch, &rescue, &broadcast, &refuse, &far,
                          &formed, &transforms, &found))
        return NULL;
    if (!PyType_IsSubtype((PyTypeObject *)solutions, &AnswerType)) {
        PyErr_SetString(PyExc_TypeError, "the solutions type must be a subclass of Answer");
        return NULL;
    }
    Py_INCREF(solutions);
    Py_XSETREF(tg_solutions_type, (PyTypeObject *)solutions);
    PyObject *const given[] = {batch, rescue, broadcast, refuse, far, formed, transforms, found};
    PyObject **const kept[] = {&tg_batch_type, &tg_rescue, &tg_broadcast, &tg_refuse, &tg_far,
                               &tg_formed, &tg_transforms, &tg_found_type};
    for (int i = 0; i < 8; i++) {
        Py_XINCREF(given[i]);
        Py_XSETREF(*kept[i], given[i]);
    }
    Py_RETURN_NONE;
}

static PyObject *module_instruction_sets(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < TG_ISAS; i++)
        if (tg_isa_supported(tg_isas[i].name)) {
            PyObject *name = PyUnicode_FromString(tg_isas[i].name);
            if (!name || PyList_Append(list, name) < 0)
                Py_CLEAR(list);
            Py_XDECREF(name);
        }
    return list;
}

static void tg_choose(const tg_isa_entry *isa)
{
    tg_isa = isa;
    for (tg_six_form = tg_six; tg_six_form->name[0] && strcmp(tg_six_form->name, isa->name) != 0; tg_six_form++)
        ;
}

static PyObject *module_use(PyObject *module, PyObject *arg)
{
    (void)module;
    const char *name = PyUnicode_AsUTF8(arg);
    if (!name)
        return NULL;
    for (int i = 0; i < TG_ISAS; i++)
        if (strcmp(tg_isas[i].name, name) == 0 && tg_isa_supported(name)) {
            tg_choose(&tg_isas[i]);
            Py_RETURN_NONE;
        }
    return PyErr_Format(tg_invalid, "instruction set %R is not available here", arg);
}

static PyMethodDef module_methods[] = {
    {"register", module_register, METH_VARARGS, "register(solutions, batch, rescue, broadcast, refuse, far, formed, transforms, found): types of the answers, and helpers in Python"},
    {"instruction_sets", module_instruction_sets, METH_NOARGS, "names of the vector forms that this processor runs"},
    {"threads", module_threads, METH_O, "threads(n): long batches run in so many threads from now on; returns how many"},
    {"use", module_use, METH_O, "use(name): take this vector form for batches from now on (all give the same bits)"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "tangere._kernels", "Generated kernels of the UR arm.", -1, module_methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__kernels(void)
{
    import_array();
    for (int i = TG_ISAS - 1; i >= 0; i--)
        if (tg_isa_supported(tg_isas[i].name))
            tg_choose(&tg_isas[i]); /* the first supported one in the table wins */
    PyObject *errors = PyImport_ImportModule("tangere.errors");
    if (!errors)
        return NULL;
    tg_invalid = PyObject_GetAttrString(errors, "InvalidValue");
    Py_DECREF(errors);
    tg_double = PyArray_DescrFromType(NPY_DOUBLE);
    if (!(tg_note_turn = PyThread_allocate_lock()))
        return PyErr_NoMemory();
    if (!tg_invalid || PyType_Ready(&BlockType) < 0 || PyType_Ready(&ArmType) < 0 || PyType_Ready(&AnswerType) < 0 ||
        PyType_Ready(&MomentumType) < 0 || PyType_Ready(&StepType) < 0)
        return NULL;
    static const char *const fields[] = {"time", "period", "q", "qd", "tau"};
    for (int i = 0; i < 5; i++)
        if (!(tg_names[i] = PyUnicode_InternFromString(fields[i])))
            return NULL;
    PyObject *module = PyModule_Create(&module_definition);
    if (!module)
        return NULL;
    if (PyModule_AddObjectRef(module, "Kernels", (PyObject *)&ArmType) < 0 ||
        PyModule_AddObjectRef(module, "Momentum", (PyObject *)&MomentumType) < 0 ||
        PyModule_AddObjectRef(module, "Step", (PyObject *)&StepType) < 0 ||
        PyModule_AddObjectRef(module, "Answer", (PyObject *)&AnswerType) < 0 ||
        PyModule_AddIntConstant(module, "parameter_count", TG_PARAMETERS) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
