/* tangere._rollouts: whole closed loops of many UR arms in one call, in the widest lanes of the processor.
 *
 * kernels/closed_loop.py has the parts, rollout.h the loop, kernels/rollouts.py packs the numbers. All forms give the
 * same bits within one precision.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <math.h>
#include <numpy/arrayobject.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define TG_X86 1
#include <immintrin.h>
#endif
#define TG_PLACE(row, column, columns, rows) ((row) * (columns) + (column)) /* of an array of rows */
#define TG_PUSHES_MAX 8 /* per robot: more than any study asks for */

#define TG_WIDTH 1
#define TG_SUFFIX d1
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#include "env.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#define TG_SINGLE 1
#define TG_WIDTH 1
#define TG_SUFFIX s1
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#undef TG_SINGLE

#if defined(__GNUC__)
#define TG_BYTES 16
#define TG_WIDTH 2
#define TG_SUFFIX d2
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#include "env.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#define TG_SINGLE 1
#define TG_WIDTH 4
#define TG_SUFFIX s4
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#undef TG_SINGLE
#undef TG_BYTES
#endif

#ifdef TG_X86
#pragma GCC push_options
#pragma GCC target("avx2")
#define TG_BYTES 32
#define TG_WIDTH 4
#define TG_SUFFIX d4
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#include "env.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#define TG_SINGLE 1
#define TG_WIDTH 8
#define TG_SUFFIX s8
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#undef TG_SINGLE
#undef TG_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#define TG_BYTES 64
#define TG_WIDTH 8
#define TG_SUFFIX d8
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#include "env.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#define TG_SINGLE 1
#define TG_WIDTH 16
#define TG_SUFFIX s16
#include "lanes.h"
#include "tg_rollouts.h"
#include "rollout.h"
#undef TG_WIDTH
#undef TG_SUFFIX
#undef TG_SINGLE
#undef TG_BYTES
#pragma GCC pop_options
#endif

typedef void tg_rollout_double(const tg_job *, double *, void *);
typedef void tg_rollout_single(const tg_job *, float *, void *);
typedef void tg_env_steps(const tg_envs *, double *);

static const struct {
    const char *name;
    void *rollout[2]; /* float64, float32 */
    tg_env_steps *envs;
} tg_forms[] = {
#ifdef TG_X86
    {"avx512", {tg_rollout_d8, tg_rollout_s16}, tg_envs_d8},
    {"avx2", {tg_rollout_d4, tg_rollout_s8}, tg_envs_d4},
#endif
#if defined(__GNUC__)
    {"baseline", {tg_rollout_d2, tg_rollout_s4}, tg_envs_d2},
#endif
    {"scalar", {tg_rollout_d1, tg_rollout_s1}, tg_envs_d1},
};
#define TG_FORMS ((int)(sizeof tg_forms / sizeof tg_forms[0]))

/* a contiguous float64 array of at least `size` numbers */
static double *tg_numbers(PyObject *object, long long size, const char *name)
{
    PyArrayObject *a = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(a) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(a) || PyArray_SIZE(a) < size) {
        PyErr_Format(PyExc_ValueError, "%s: must be a contiguous float64 array of %lld numbers", name, size);
        return NULL;
    }
    return (double *)PyArray_DATA(a);
}

static PyObject *module_run(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    int single;
    PyObject *belief, *reference, *common, *robots, *results, *log;
    Py_buffer stop;
    tg_job job;
    if (!PyArg_ParseTuple(args, "spOOOOOOy*LLLLLiiiiiK", &name, &single, &belief, &reference, &common, &robots, &results,
                          &log, &stop, &job.first, &job.count, &job.steps, &job.every, &job.references, &job.pushes,
                          &job.runge_kutta, &job.noisy, &job.begins, &job.watched, &job.seed))
        return NULL;
    PyObject *done = NULL;
    void *room = NULL, *believed = NULL;
    int form = 0;
    while (form < TG_FORMS && strcmp(tg_forms[form].name, name) != 0)
        form++;
    if (form == TG_FORMS || job.count < 0 || job.steps < 1 || job.every < 1 || job.references < 1 ||
        job.pushes < 0 || job.pushes > TG_PUSHES_MAX || stop.len < 1) {
        PyErr_SetString(PyExc_ValueError, "run: an instruction set, counts or pushes that do not exist");
        goto end;
    }
    const long long size = TG_PUSHES + job.pushes * TG_PUSH;
    job.rows = (job.steps + job.every - 1) / job.every;
    job.stop = (const volatile unsigned char *)stop.buf;
    job.log = NULL;
    if (!(job.belief = tg_numbers(belief, TG_BELIEVED, "belief")) ||
        !(job.reference = tg_numbers(reference, job.references * job.steps * 3 * N, "reference")) ||
        !(job.common = tg_numbers(common, TG_COMMON, "common")) ||
        !(job.robots = tg_numbers(robots, job.count * size, "robots")) ||
        !(job.results = tg_numbers(results, job.count * (TG_RESULT + 3 * job.pushes), "results")) ||
        (log != Py_None && !(job.log = tg_numbers(log, job.count * job.rows * TG_LOGGED, "log"))))
        goto end;
    room = malloc((size_t)(size + 1) * 64 + 64); /* lanes of 64 bytes at most */
    believed = malloc(TG_BELIEVED * sizeof(double));
    if (!room || !believed) {
        PyErr_NoMemory();
        goto end;
    }
    void *const aligned = (void *)(((size_t)room + 63) & ~(size_t)63);
    Py_BEGIN_ALLOW_THREADS
    if (single)
        ((tg_rollout_single *)tg_forms[form].rollout[1])(&job, believed, aligned);
    else
        ((tg_rollout_double *)tg_forms[form].rollout[0])(&job, believed, aligned);
    Py_END_ALLOW_THREADS
    done = Py_NewRef(Py_None);
end:
    free(room);
    free(believed);
    PyBuffer_Release(&stop);
    return done;
}

static PyObject *module_envs(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *belief, *common, *robots, *action, *state, *out;
    tg_envs job;
    if (!PyArg_ParseTuple(args, "sOOOOOOLLLLiK", &name, &belief, &common, &robots, &action, &state, &out, &job.first,
                          &job.count, &job.periods, &job.sample, &job.noisy, &job.seed))
        return NULL;
    int form = 0;
    while (form < TG_FORMS && strcmp(tg_forms[form].name, name) != 0)
        form++;
    if (form == TG_FORMS || job.count < 0 || job.periods < 0) {
        PyErr_SetString(PyExc_ValueError, "envs: an instruction set or counts that do not exist");
        return NULL;
    }
    if (!(job.belief = tg_numbers(belief, TG_CONSTANTS_feel, "belief")) ||
        !(job.common = tg_numbers(common, TG_RESIDUAL, "common")) ||
        !(job.robots = tg_numbers(robots, job.count * TG_ENV_ROBOT, "robots")) ||
        !(job.action = tg_numbers(action, job.count * N, "action")) ||
        !(job.state = tg_numbers(state, job.count * TG_ENV_STATE, "state")) ||
        !(job.out = tg_numbers(out, job.count * TG_ENV_OUT, "out")))
        return NULL;
    double believed[TG_CONSTANTS_feel];
    Py_BEGIN_ALLOW_THREADS
    tg_forms[form].envs(&job, believed);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"envs", module_envs, METH_VARARGS, "envs(set, belief, common, robots, action, state, out, first, count, periods, sample, noisy, seed)"},
    {"run", module_run, METH_VARARGS, "run(set, single, belief, reference, common, robots, results, log, stop, first, count, steps, every, references, pushes, runge_kutta, noisy, begins, watched, seed)"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, "tangere._rollouts", "Closed loops of many UR arms.", -1, module_methods, 0, 0, 0, 0};

PyMODINIT_FUNC PyInit__rollouts(void)
{
    import_array();
    PyObject *module = PyModule_Create(&module_definition);
    if (!module)
        return NULL;
    static const struct { const char *name; int value; } sizes[] = {
        {"ROBOT", TG_PUSHES}, {"PUSH", TG_PUSH}, {"RESULT", TG_RESULT}, {"LOGGED", TG_LOGGED}, {"COMMON", TG_COMMON},
        {"PUSHES_MAX", TG_PUSHES_MAX}, {"ENV_ROBOT", TG_ENV_ROBOT}, {"ENV_STATE", TG_ENV_STATE}, {"ENV_OUT", TG_ENV_OUT}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (PyModule_AddIntConstant(module, sizes[i].name, sizes[i].value) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    return module;
}
