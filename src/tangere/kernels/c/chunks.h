/* Long batches in chunks: in as many threads as were asked for, while Ctrl-C is heard. */

#include <time.h>

#define TG_THREADS_MAX 64
#define TG_LISTEN 0.05 /* s between two looks at the signals: Ctrl-C is to be heard within 0.2 s, a chunk takes less */

static int tg_threads = 1;

typedef void tg_chunk_fn(void *work, npy_intp first, npy_intp count);

typedef struct {
    tg_chunk_fn *function;
    void *work;
    npy_intp n, chunk, next; /* next: the first sample that nobody has taken yet */
    int stop;
    PyThread_type_lock turn; /* guards next and stop */
    PyThread_type_lock done[TG_THREADS_MAX];
} tg_chunks;

static double tg_now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* work off one more chunk; 0 where none is left */
static int tg_chunk(tg_chunks *c)
{
    PyThread_acquire_lock(c->turn, WAIT_LOCK);
    const npy_intp first = c->stop ? c->n : c->next;
    c->next = first + c->chunk;
    PyThread_release_lock(c->turn);
    if (first >= c->n)
        return 0;
    c->function(c->work, first, c->n - first < c->chunk ? c->n - first : c->chunk);
    return 1;
}

typedef struct {
    tg_chunks *chunks;
    int number;
} tg_helper;

static void tg_help(void *object)
{
    tg_helper helper = *(tg_helper *)object;
    while (tg_chunk(helper.chunks))
        ;
    PyThread_release_lock(helper.chunks->done[helper.number]);
}

/* The function over n samples, chunk by chunk; called with the GIL, which it lets go. -1 with an error after Ctrl-C: some
 * samples are then missing. A sample's answer depends on nobody else's, so neither chunks nor threads change a bit. */
static int tg_in_chunks(tg_chunk_fn *function, void *work, npy_intp n, npy_intp chunk)
{
    if (n <= chunk) {
        Py_BEGIN_ALLOW_THREADS
        function(work, 0, n);
        Py_END_ALLOW_THREADS
        return 0;
    }
    tg_chunks c = {.function = function, .work = work, .n = n, .chunk = chunk};
    tg_helper helpers[TG_THREADS_MAX];
    int started = 0, interrupted = 0;
    if (!(c.turn = PyThread_allocate_lock())) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < tg_threads - 1 && (npy_intp)(i + 1) * chunk < n; i++) { /* fewer than asked for will do as well */
        if (!(c.done[i] = PyThread_allocate_lock()))
            break;
        PyThread_acquire_lock(c.done[i], WAIT_LOCK);
        helpers[i] = (tg_helper){&c, i};
        if (PyThread_start_new_thread(tg_help, &helpers[i]) == PYTHREAD_INVALID_THREAD_ID) {
            PyThread_free_lock(c.done[i]);
            break;
        }
        started++;
    }
    PyThreadState *state = PyEval_SaveThread();
    for (double heard = tg_now(); tg_chunk(&c);) {
        const double now = tg_now();
        if (now - heard < TG_LISTEN)
            continue;
        heard = now;
        PyEval_RestoreThread(state);
        interrupted = PyErr_CheckSignals() < 0;
        state = PyEval_SaveThread();
        if (interrupted) {
            PyThread_acquire_lock(c.turn, WAIT_LOCK);
            c.stop = 1;
            PyThread_release_lock(c.turn);
        }
    }
    for (int i = 0; i < started; i++) {
        PyThread_acquire_lock(c.done[i], WAIT_LOCK);
        PyThread_release_lock(c.done[i]);
        PyThread_free_lock(c.done[i]);
    }
    PyEval_RestoreThread(state);
    PyThread_free_lock(c.turn);
    return interrupted ? -1 : 0;
}

/* the first sample with a problem: threads come in any order, the answer does not depend on it */
static PyThread_type_lock tg_note_turn; /* made with the module */

static void tg_note(npy_intp *first, const char **why, npy_intp sample, const char *problem)
{
    PyThread_acquire_lock(tg_note_turn, WAIT_LOCK);
    if (sample < *first || !*why) {
        *first = sample;
        *why = problem;
    }
    PyThread_release_lock(tg_note_turn);
}

static PyObject *module_threads(PyObject *module, PyObject *count)
{
    (void)module;
    const long asked = PyLong_AsLong(count);
    if (asked == -1 && PyErr_Occurred())
        return NULL;
    tg_threads = asked < 1 ? 1 : asked > TG_THREADS_MAX ? TG_THREADS_MAX : (int)asked;
    return PyLong_FromLong(tg_threads);
}
