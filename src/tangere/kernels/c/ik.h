/* The answer of the closed-form inverse kinematics for one pose: a small value whose arrays are built on access. */

#define TG_INFO (TG_IK_BRANCH_OUTPUTS - 6) /* valid, miss, singular shoulder, elbow, wrist, elbow up */

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

static void answer_dealloc(Answer *self)
{
    Py_XDECREF(self->arm);
    Py_TYPE(self)->tp_free((PyObject *)self); /* a subclass releases its own type */
}

static PyObject *answer_columns(Answer *self, int first, int width)
{
    npy_intp dims[2] = {self->count, width};
    PyObject *array = PyArray_SimpleNew(2, dims, NPY_DOUBLE);
    if (!array)
        return NULL;
    double *to = (double *)PyArray_DATA((PyArrayObject *)array);
    for (int i = 0; i < self->count; i++)
        memcpy(to + i * width, &self->branches[self->lane[i]][first], width * sizeof(double));
    return array;
}

static PyObject *answer_q(Answer *self, void *closure) { (void)closure; return answer_columns(self, 0, 6); }
static PyObject *answer_info(Answer *self, void *closure) { (void)closure; return answer_columns(self, 6, TG_INFO); }

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
    {"info", (getter)answer_info, NULL, "valid, miss, singular shoulder, elbow, wrist, elbow up (k, 6)", NULL},
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
    for (int i = 0; i < 16; i++)
        if (!(fabs(T[i]) <= DBL_MAX))
            return "the pose contains NaN or infinity";
    tg_ik_prepare_w1(T, P, flange);
    if (!(flange[14] <= TG_ROTATION_TOLERANCE))
        return "the last row of the pose is not (0, 0, 0, 1)";
    if (!(flange[12] <= TG_ROTATION_TOLERANCE))
        return "the upper left 3x3 block is not a rotation (entries off by more than 1e-5)";
    if (!(flange[13] > 0.0))
        return "the upper left 3x3 block is a reflection (determinant -1), not a rotation";
    return NULL;
}

/* branches of a prepared pose; fills the list of lanes that hold a solution, returns their number */
static int ik_solved(const double *flange, const double *reference, const double *P,
                     double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS], unsigned char *lane, double *distance)
{
    tg_isa->ik_branches(flange, reference ? reference[5] : 0.0, flange[12], P, branches);
    double keep[TG_IK_LANES], near = DBL_MAX;
    int doubtful = 0, count = 0;
    for (int i = 0; i < TG_IK_LANES; i++) {
        const double *info = branches[i] + 6;
        keep[i] = info[0];
        near = info[1] < near ? info[1] : near;
        doubtful |= info[0] > 0.5 && (info[2] > 0.5 || info[3] > 0.5 || info[4] > 0.5);
    }
    if (doubtful) { /* only next to a singularity can two branches be one solution */
        double x[TG_IK_MERGE_INPUTS];
        for (int i = 0; i < TG_IK_LANES; i++) {
            memcpy(x + 6 * i, branches[i], 6 * sizeof(double));
            x[48 + i] = keep[i];
        }
        for (int j = 0; j < 6; j++)
            x[56 + j] = reference ? reference[j] : 0.0;
        x[62] = reference ? 1.0 : 0.0;
        tg_ik_merge_w1(x, P, keep);
    }
    for (int i = 0; i < TG_IK_LANES; i++)
        if (keep[i] > 0.5)
            lane[count++] = (unsigned char)i;
    *distance = count ? 0.0 : near;
    return count;
}

/* the same for n poses: q (n, 8, 6), valid (n, 8), info (n, 8, 6), correction (n), distance (n) */
static npy_intp ik_batch(npy_intp n, const double *T, const double *reference, npy_intp reference_step,
                         const double *P, double *q, npy_bool *valid, double *info, double *correction,
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
            memcpy(info + (TG_IK_LANES * s + i) * TG_INFO, branches[i] + 6, TG_INFO * sizeof(double));
        }
    }
    return n;
}
