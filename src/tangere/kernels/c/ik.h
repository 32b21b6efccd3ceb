/* The answer of the closed-form inverse kinematics for one pose: a small value whose arrays are built on access. */

/* outputs of a branch after its six angles: valid, miss (or: near a singularity), then the flags */
#define TG_FLAGS 8 /* singular shoulder, singular elbow, singular wrist, elbow up: bits 0 ... 3 */

typedef struct {
    PyObject_HEAD
    PyObject *arm;
    double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS];
    double correction, distance;
    int count;
    unsigned char lane[TG_IK_LANES]; /* the lanes that hold a solution */
} Answer;

static PyTypeObject *tg_solutions_type; /* subclass of Answer, registered by Python */
static PyObject *tg_batch_type;         /* called with the arrays of a batch */
static PyObject *tg_rescue;             /* called with an empty answer that misses by little, pose and reference */

static void answer_dealloc(Answer *self)
{
    Py_XDECREF(self->arm);
    Py_TYPE(self)->tp_free((PyObject *)self); /* a subclass releases its own type */
}

static inline unsigned char ik_flags(const double *branch)
{
    unsigned char bits = 0;
    for (int i = 0; i < TG_IK_BRANCH_OUTPUTS - TG_FLAGS; i++)
        bits |= (unsigned char)((branch[TG_FLAGS + i] > 0.5) << i);
    return bits;
}

static PyObject *answer_q(Answer *self, void *closure)
{
    (void)closure;
    npy_intp dims[2] = {self->count, 6};
    PyObject *array = PyArray_SimpleNew(2, dims, NPY_DOUBLE);
    if (!array)
        return NULL;
    double *to = (double *)PyArray_DATA((PyArrayObject *)array);
    for (int i = 0; i < self->count; i++)
        memcpy(to + i * 6, self->branches[self->lane[i]], 6 * sizeof(double));
    return array;
}

static PyObject *answer_flags(Answer *self, void *closure)
{
    (void)closure;
    npy_intp dims[1] = {self->count};
    PyObject *array = PyArray_SimpleNew(1, dims, NPY_UINT8);
    for (int i = 0; array && i < self->count; i++)
        ((npy_uint8 *)PyArray_DATA((PyArrayObject *)array))[i] = ik_flags(self->branches[self->lane[i]]);
    return array;
}

static PyObject *answer_candidates(Answer *self, void *closure)
{
    (void)closure;
    npy_intp dims[2] = {TG_IK_LANES, TG_IK_BRANCH_OUTPUTS};
    PyObject *array = PyArray_SimpleNew(2, dims, NPY_DOUBLE);
    if (array)
        memcpy(PyArray_DATA((PyArrayObject *)array), self->branches, sizeof self->branches);
    return array;
}

static PyObject *answer_lanes(Answer *self, void *closure)
{
    (void)closure;
    npy_intp dims[1] = {self->count};
    PyObject *array = PyArray_SimpleNew(1, dims, NPY_UINT8);
    if (array)
        memcpy(PyArray_DATA((PyArrayObject *)array), self->lane, self->count);
    return array;
}

static PyObject *answer_count(Answer *self, void *closure) { (void)closure; return PyLong_FromLong(self->count); }
static PyObject *answer_correction(Answer *self, void *closure) { (void)closure; return PyFloat_FromDouble(self->correction); }
static PyObject *answer_distance(Answer *self, void *closure) { (void)closure; return PyFloat_FromDouble(self->distance); }

static PyObject *answer_arm(Answer *self, void *closure)
{
    (void)closure;
    PyObject *arm = self->arm ? self->arm : Py_None;
    Py_INCREF(arm);
    return arm;
}

static PyGetSetDef answer_getset[] = {
    {"q", (getter)answer_q, NULL, "solutions (k, 6) [rad], each angle in (-pi, pi]", NULL},
    {"flags", (getter)answer_flags, NULL, "bits: singular shoulder 1, elbow 2, wrist 4; elbow up 8 (k,)", NULL},
    {"_candidates", (getter)answer_candidates, NULL, "all eight branches as computed, valid or not (8, 12)", NULL},
    {"lanes", (getter)answer_lanes, NULL, "which of the eight branches each solution is (k,)", NULL},
    {"count", (getter)answer_count, NULL, "number of solutions", NULL},
    {"correction", (getter)answer_correction, NULL, "largest change made to the given rotation's entries", NULL},
    {"distance", (getter)answer_distance, NULL, "distance [m] by which the pose is out of reach, 0 if it is not", NULL},
    {"robot", (getter)answer_arm, NULL, "the robot that was asked", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject AnswerType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "tangere._kernels.Answer",
    .tp_basicsize = sizeof(Answer),
    .tp_dealloc = (destructor)answer_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Solutions of one pose; subclassed by tangere's IKSolutions.",
    .tp_getset = answer_getset,
};

/* sixteen numbers of a pose -> flange pose; 0, or the sentence that says what is wrong */
static const char *ik_prepared(const double *T, const double *P, double *flange)
{
    tg_ik_prepare_w1(T, P, flange);
    if (!(flange[12] <= TG_EXACT_ROTATION))
        tg_ik_project_w1(T, P, flange);
    if (!(flange[14] <= TG_ROTATION_TOLERANCE))
        return "the last row of the pose is not (0, 0, 0, 1)";
    /* a matrix near zero is corrected by little as well, but has no volume; rotations have 1 */
    if (!(flange[12] <= TG_ROTATION_TOLERANCE && fabs(flange[13]) > 0.5))
        return "the upper left 3x3 block is not a rotation (entries off by more than 1e-5)";
    if (!(flange[13] > 0.0))
        return "the upper left 3x3 block is a reflection (determinant -1), not a rotation";
    return NULL;
}

/* branches of a prepared pose; fills the list of lanes that hold a solution, returns their number */
static int ik_solved(const double *flange, const double *reference, const double *P,
                     double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS], unsigned char *lane, double *distance)
{
    tg_isa->ik_branches(0, flange, NULL, P, branches);
    int careful = 0, count = 0;
    for (int i = 0; i < TG_IK_LANES; i++) {
        if (branches[i][6] > 0.5)
            lane[count++] = (unsigned char)i;
        careful |= branches[i][7] > 0.5;
    }
    *distance = 0.0;
    if (count && !careful)
        return count;
    tg_isa->ik_branches(1, flange, reference, P, branches);
    double keep[TG_IK_LANES], near = DBL_MAX, x[TG_IK_MERGE_INPUTS];
    for (int i = 0; i < TG_IK_LANES; i++) {
        memcpy(x + 6 * i, branches[i], 6 * sizeof(double));
        x[48 + i] = branches[i][6];
        near = branches[i][7] < near ? branches[i][7] : near;
    }
    for (int j = 0; j < 6; j++)
        x[56 + j] = reference ? reference[j] : 0.0;
    x[62] = reference ? 1.0 : 0.0;
    tg_ik_merge_w1(x, P, keep);
    count = 0;
    for (int i = 0; i < TG_IK_LANES; i++)
        if (keep[i] > 0.5)
            lane[count++] = (unsigned char)i;
    if (!count)
        *distance = near;
    return count;
}

/* the same for n poses: q (n, 8, 6), valid (n, 8), flags (n, 8), correction (n), distance (n) */
static npy_intp ik_batch(npy_intp n, const double *T, const double *reference, npy_intp reference_step,
                         const double *P, double *q, npy_bool *valid, npy_uint8 *flags, double *correction,
                         double *distance, const char **problem)
{
    for (npy_intp s = 0; s < n; s++) {
        double flange[TG_IK_PREPARE_OUTPUTS], branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS];
        unsigned char lane[TG_IK_LANES];
        *problem = ik_prepared(T + 16 * s, P, flange);
        if (*problem)
            return s;
        const int count = ik_solved(flange, reference ? reference + s * reference_step : NULL, P, branches, lane,
                                    distance + s);
        correction[s] = flange[12];
        memset(valid + TG_IK_LANES * s, 0, TG_IK_LANES * sizeof(npy_bool));
        for (int i = 0; i < count; i++)
            valid[TG_IK_LANES * s + lane[i]] = 1;
        for (int i = 0; i < TG_IK_LANES; i++) {
            memcpy(q + (TG_IK_LANES * s + i) * 6, branches[i], 6 * sizeof(double));
            flags[TG_IK_LANES * s + i] = ik_flags(branches[i]);
        }
    }
    return n;
}
