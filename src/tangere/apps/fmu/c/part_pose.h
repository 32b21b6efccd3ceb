/* The pose of the tool in its four forms, and what they do under a small turn. */

#define GIMBAL_LOCK 1e-9 /* cos(pitch) below which yaw and roll are one angle */

static inline double dot(const double *a, const double *b, int n)
{
    double s = 0.0;
    for (int i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* unit quaternion w, x, y, z of R (9), first nonzero component positive: the row of 4 q q^T with the largest diagonal */
static inline void quaternion_of(const double *R, double *quaternion)
{
    const double rows[4][4] = {
        {1 + R[0] + R[4] + R[8], R[7] - R[5], R[2] - R[6], R[3] - R[1]},
        {R[7] - R[5], 1 + R[0] - R[4] - R[8], R[1] + R[3], R[2] + R[6]},
        {R[2] - R[6], R[1] + R[3], 1 - R[0] + R[4] - R[8], R[5] + R[7]},
        {R[3] - R[1], R[2] + R[6], R[5] + R[7], 1 - R[0] - R[4] + R[8]}};
    int best = 0;
    for (int i = 1; i < 4; i++)
        if (rows[i][i] > rows[best][best])
            best = i;
    const double length = sqrt(dot(rows[best], rows[best], 4));
    double sign = 0.0;
    for (int i = 0; i < 4; i++) {
        if (sign == 0.0)
            sign = rows[best][i] > 0.0 ? 1.0 : rows[best][i] < 0.0 ? -1.0 : 0.0;
        quaternion[i] = rows[best][i] / length * sign + 0.0;
    }
}

static inline void ypr_of(const double *R, double *ypr)
{
    const double c = sqrt(R[7] * R[7] + R[8] * R[8]);
    const int locked = c < GIMBAL_LOCK;
    ypr[0] = locked ? tg_atan2(-R[1], R[4]) : tg_atan2(R[3], R[0]);
    ypr[1] = tg_atan2(-R[6], c);
    ypr[2] = locked ? 0.0 : tg_atan2(R[7], R[8]);
}

/* T (16) -> position (3), R (9), quaternion (4), ypr (3); before: the quaternion of the step before, or zeros */
static inline void pose_forms(const double *T, const double *before, int sign, double *position, double *R,
                       double *quaternion, double *ypr)
{
    for (int i = 0; i < 3; i++) {
        position[i] = T[4 * i + 3];
        for (int j = 0; j < 3; j++)
            R[3 * i + j] = T[4 * i + j];
    }
    quaternion_of(R, quaternion);
    if (sign == 1 && dot(quaternion, before, 4) < 0.0)
        for (int i = 0; i < 4; i++)
            quaternion[i] = -quaternion[i];
    ypr_of(R, ypr);
}

/* rates of the forms for a twist (velocity, angular velocity), base axes; nan where yaw and roll have none */
static inline void pose_rates(const double *twist, const double *R, const double *quaternion, const double *ypr,
                      double *d_position, double *d_R, double *d_quaternion, double *d_ypr)
{
    const double *w = twist + 3, *q = quaternion;
    for (int i = 0; i < 3; i++)
        d_position[i] = twist[i];
    for (int j = 0; j < 3; j++) {
        d_R[j] = w[1] * R[6 + j] - w[2] * R[3 + j];
        d_R[3 + j] = w[2] * R[j] - w[0] * R[6 + j];
        d_R[6 + j] = w[0] * R[3 + j] - w[1] * R[j];
    }
    d_quaternion[0] = 0.5 * (-w[0] * q[1] - w[1] * q[2] - w[2] * q[3]);
    d_quaternion[1] = 0.5 * (w[0] * q[0] + w[1] * q[3] - w[2] * q[2]);
    d_quaternion[2] = 0.5 * (w[1] * q[0] + w[2] * q[1] - w[0] * q[3]);
    d_quaternion[3] = 0.5 * (w[2] * q[0] + w[0] * q[2] - w[1] * q[1]);
    double s, c, sp, cp;
    tg_sincos(ypr[0], &s, &c);
    tg_sincos(ypr[1], &sp, &cp);
    d_ypr[1] = c * w[1] - s * w[0];
    d_ypr[2] = cp < GIMBAL_LOCK ? NAN : (c * w[0] + s * w[1]) / cp;
    d_ypr[0] = w[2] + sp * d_ypr[2];
}

#ifdef HAS_FK
#ifdef TG_UR
/* parameters for the pose: those of the arm, or without base height, flange and tool */
static const double *fk_parameters(const Values *v, double *bare)
{
    static const double identity[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    if (v->boolean[OFFSETS])
        return v->P;
    memcpy(bare, v->P, sizeof v->P);
    bare[0] = bare[5] = 0.0;
    memcpy(bare + 6, identity, sizeof identity);
    return bare;
}
#else
static const double *fk_parameters(const Values *v, double *bare)
{
    (void)bare;
    return v->P;
}
#endif

static void fk_outputs(Values *v)
{
    double T[16], bare[TG_PARAMETERS], *r = v->real;
    const double *P = fk_parameters(v, bare);
    tg_pose(r + FK_q, P, T);
    tg_jacobian(r + FK_q, P, r + FK_J);
    pose_forms(T, v->memory + FK_before, v->integer[SIGN], r + FK_position, r + FK_R, r + FK_quaternion, r + FK_ypr);
}

static void fk_rates(const Values *v, const double *d, double *out)
{
    double x[2 * DOF], twist[6], bare[TG_PARAMETERS];
    const double *r = v->real, *P = fk_parameters(v, bare);
    for (int i = 0; i < 6; i++)
        twist[i] = dot(r + FK_J + DOF * i, d + FK_q, DOF);
    memcpy(x, r + FK_q, DOF * sizeof(double));
    memcpy(x + DOF, d + FK_q, DOF * sizeof(double));
    tg_jacobian_rate(x, P, out + FK_J);
    pose_rates(twist, r + FK_R, r + FK_quaternion, r + FK_ypr, out + FK_position, out + FK_R,
               out + FK_quaternion, out + FK_ypr);
}
#endif
