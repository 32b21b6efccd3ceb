/* Rows of numbers into records of messages that differ in their numbers only. Included by periods.c. */

enum { TG_SEQUENCE, TG_STAMP, TG_SECONDS, TG_NANOSECONDS }; /* what is counted at a place of a record */

/* an array of that type and of so many axes, without gaps */
static int tg_is(PyObject *object, int type, int axes)
{
    PyArrayObject *v = (PyArrayObject *)object;
    return PyArray_CheckExact(object) && PyArray_TYPE(v) == type && PyArray_NDIM(v) == axes && PyArray_ISCARRAY_RO(v);
}

static void tg_stamped(char *to, npy_int64 kind, npy_int64 ns, npy_uint32 sequence)
{
    npy_uint64 word = (npy_uint64)ns;
    int size = 4;
    if (kind == TG_SEQUENCE)
        word = sequence;
    else if (kind == TG_STAMP)
        size = 8;
    else
        word = (npy_uint64)(kind == TG_SECONDS ? ns / 1000000000 : ns % 1000000000);
    for (int i = 0; i < size; i++) /* little endian, whatever the machine is */
        to[i] = (char)(word >> 8 * i);
}

static PyObject *periods_messages(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    PyArrayObject *rows = nargs == 6 ? (PyArrayObject *)args[0] : NULL;
    if (nargs != 6 || !PyArray_CheckExact(args[0]) || PyArray_TYPE(rows) != NPY_DOUBLE || PyArray_NDIM(rows) != 2 ||
        !PyArray_ISBEHAVED_RO(rows) || !tg_is(args[1], NPY_INT64, 1) || !tg_is(args[3], NPY_UINT8, 1) ||
        !tg_is(args[4], NPY_INT64, 2) || !tg_is(args[5], NPY_INT64, 2))
        return PyErr_Format(PyExc_TypeError, "messages(rows, ns, sequence, template, numbers, stamps)");
    PyArrayObject *ns = (PyArrayObject *)args[1], *form = (PyArrayObject *)args[3];
    PyArrayObject *numbers = (PyArrayObject *)args[4], *stamps = (PyArrayObject *)args[5];
    const npy_uint32 first = (npy_uint32)PyLong_AsUnsignedLongMask(args[2]);
    if (PyErr_Occurred())
        return NULL;
    const npy_intp count = PyArray_DIM(rows, 0), width = PyArray_DIM(form, 0);
    const npy_intp fields = PyArray_DIM(numbers, 0), counted = PyArray_DIM(stamps, 0);
    const npy_int64 *const field = (const npy_int64 *)PyArray_DATA(numbers);
    const npy_int64 *const stamp = (const npy_int64 *)PyArray_DATA(stamps);
    int good = PyArray_DIM(ns, 0) == count && PyArray_DIM(numbers, 1) == 2 && PyArray_DIM(stamps, 1) == 2;
    for (npy_intp i = 0; good && i < fields; i++)
        good = field[2 * i] >= 0 && field[2 * i] < PyArray_DIM(rows, 1) && field[2 * i + 1] >= 0 &&
               field[2 * i + 1] <= width - (npy_intp)sizeof(double);
    for (npy_intp i = 0; good && i < counted; i++)
        good = stamp[2 * i] >= TG_SEQUENCE && stamp[2 * i] <= TG_NANOSECONDS && stamp[2 * i + 1] >= 0 &&
               stamp[2 * i + 1] <= width - (stamp[2 * i] == TG_STAMP ? 8 : 4);
    if (!good)
        return PyErr_Format(PyExc_ValueError, "messages: (column, byte) and (what, byte) of rows, a stamp for each");
    npy_intp size = count * width;
    PyObject *made = PyArray_SimpleNew(1, &size, NPY_UINT8);
    if (!made)
        return NULL;
    const npy_intp across = PyArray_STRIDE(rows, 1);
    for (npy_intp k = 0; k < count; k++) {
        char *const to = PyArray_BYTES((PyArrayObject *)made) + k * width;
        const char *const from = PyArray_BYTES(rows) + k * PyArray_STRIDE(rows, 0);
        memcpy(to, PyArray_DATA(form), (size_t)width);
        for (npy_intp i = 0; i < fields; i++) {
            npy_uint64 word;
            memcpy(&word, from + field[2 * i] * across, sizeof word);
#if NPY_BYTE_ORDER == NPY_BIG_ENDIAN
            word = __builtin_bswap64(word);
#endif
            memcpy(to + field[2 * i + 1], &word, sizeof word);
        }
        for (npy_intp i = 0; i < counted; i++)
            tg_stamped(to + stamp[2 * i + 1], stamp[2 * i], ((const npy_int64 *)PyArray_DATA(ns))[k], first + (npy_uint32)k);
    }
    return made;
}
