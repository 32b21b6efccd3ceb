/* All solutions of a pose, and the choice among them. */

#define TURN 6.283185307179586
#define POLISH_STEPS 20
#define POLISHED 1e-12 /* m and rad: what counts as the pose */

static inline double wrapped(double x)
{
    const double y = x - TURN * TG_ROUND(x / TURN);
    return y <= -0.5 * TURN ? y + TURN : y;
}

/* the orientation that the inputs give, as R (9); NULL, or what is wrong with it */
static const char *ik_rotation(const Values *v, double *R)
{
    const double *r = v->real;
    if (v->integer[ORIENTATION] == 1) {
        memcpy(R, r + IK_R, 9 * sizeof(double));
        return NULL;
    }
    if (v->integer[ORIENTATION] == 2) {
        const double *q = r + IK_quaternion;
        const double n = sqrt(dot(q, q, 4));
        if (!(n > 1e-150) || !(n < 1e150))
            return "the quaternion has no length that a rotation could have";
        const double w = q[0] / n, x = q[1] / n, y = q[2] / n, z = q[3] / n;
        const double M[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
                             2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                             2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)};
        memcpy(R, M, sizeof M);
        return NULL;
    }
    const double *a = r + IK_ypr;
    double cy, sy, cp, sp, cr, sr;
    tg_sincos(a[0], &sy, &cy);
    tg_sincos(a[1], &sp, &cp);
    tg_sincos(a[2], &sr, &cr);
    const double M[9] = {cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr,
                         sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr,
                         -sp, cp * sr, cp * cr};
    memcpy(R, M, sizeof M);
    return NULL;
}

/* the eight branches of a flange pose; reference NULL: the short form, exact away from singularities */
static void ik_branches(const double *flange, const double *reference, const double *P,
                        double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS])
{
    double x[TG_IK_BRANCH_INPUTS];
    memcpy(x, flange, 12 * sizeof(double));
    for (int i = 0; i < 4; i++)
        x[12 + i] = 0.0;
    if (reference) {
        x[12] = reference[0];
        x[13] = reference[2];
        x[14] = reference[5];
        x[15] = 1.0;
    }
    x[16] = flange[12];
    for (int lane = 0; lane < TG_IK_LANES; lane++) {
        for (int k = 0; k < 3; k++)
            x[17 + k] = tg_ik_signs[k][lane];
        if (reference)
            tg_ik_branch(x, P, branches[lane]);
        else
            tg_ik_regular(x, P, branches[lane]);
    }
}

/* e (6) from the pose of q to T: position, and the turn between, base axes (to first order at its end) */
static double ik_error(const double *T, const double *P, const double *q, double *e)
{
    double A[16], turn[3];
    tg_pose(q, P, A);
    for (int i = 0; i < 3; i++)
        e[i] = T[4 * i + 3] - A[4 * i + 3];
    /* half the skew part of T A^T: sin of the angle times the axis */
    for (int k = 0; k < 3; k++) {
        const int i = (k + 2) % 3, j = (k + 1) % 3;
        turn[k] = 0.5 * (dot(T + 4 * i, A + 4 * j, 3) - dot(T + 4 * j, A + 4 * i, 3));
    }
    memcpy(e + 3, turn, sizeof turn);
    return dot(e, e, 6);
}

/* q made exact by damped Gauss-Newton steps, for a solution that rounding hides where shoulder and elbow are singular at
 * once; whether it came to the pose */
static int ik_polish(const double *T, const double *P, double *q)
{
    double e[6], J[36], A[36], g[6], next[6], f[6];
    double error = ik_error(T, P, q, e), damping = 1e-10;
    for (int step = 0; step < POLISH_STEPS && error > 1e-4 * POLISHED * POLISHED && damping < 1.0; step++) {
        tg_jacobian(q, P, J);
        for (int i = 0; i < 6; i++) {
            g[i] = 0.0;
            for (int k = 0; k < 6; k++)
                g[i] += J[6 * k + i] * e[k];
            for (int j = 0; j < 6; j++) {
                A[6 * i + j] = i == j ? damping : 0.0;
                for (int k = 0; k < 6; k++)
                    A[6 * i + j] += J[6 * k + i] * J[6 * k + j];
            }
        }
        if (cholesky(A)) {
            cholesky_solve(A, g);
            for (int i = 0; i < 6; i++)
                next[i] = q[i] + g[i];
            const double reached = ik_error(T, P, next, f);
            if (reached < error) {
                memcpy(q, next, sizeof next);
                memcpy(e, f, sizeof f);
                error = reached;
                continue;
            }
        }
        damping *= 10.0;
    }
    return dot(e, e, 3) < POLISHED * POLISHED && dot(e + 3, e + 3, 3) < POLISHED * POLISHED;
}

static int ik_same(const double *a, const double *b)
{
    for (int i = 0; i < 6; i++)
        if (!(fabs(wrapped(a[i] - b[i])) <= TG_MERGE))
            return 0;
    return 1;
}

/* branches and which of them are solutions; 0, or the distance [m] by which all of them miss */
static double ik_solve(const double *T, const double *flange, const double *reference, const double *P,
                       double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS], int *valid)
{
    int careful = 0, count = 0;
    ik_branches(flange, NULL, P, branches);
    for (int i = 0; i < TG_IK_LANES; i++) {
        valid[i] = branches[i][6] > 0.5;
        count += valid[i];
        careful |= branches[i][7] > 0.5;
    }
    if (count && !careful)
        return 0.0;
    ik_branches(flange, reference, P, branches);
    double keep[TG_IK_LANES], near = HUGE_VAL, x[TG_IK_MERGE_INPUTS];
    for (int i = 0; i < TG_IK_LANES; i++) {
        memcpy(x + 6 * i, branches[i], 6 * sizeof(double));
        x[48 + i] = branches[i][6];
        near = branches[i][7] < near ? branches[i][7] : near;
    }
    memcpy(x + 56, reference, 6 * sizeof(double));
    x[62] = 1.0;
    tg_ik_merge(x, P, keep);
    count = 0;
    for (int i = 0; i < TG_IK_LANES; i++) {
        valid[i] = keep[i] > 0.5;
        count += valid[i];
    }
    if (count || !(near < TG_RESCUE))
        return count ? 0.0 : near;
    for (int i = 0; i < TG_IK_LANES; i++) { /* it misses by less than rounding can explain: iterate */
        double q[6];
        memcpy(q, branches[i], sizeof q);
        if (!(branches[i][7] < TG_RESCUE) || !ik_polish(T, P, q))
            continue;
        for (int j = 0; j < 6; j++)
            q[j] = wrapped(q[j]);
        int known = 0;
        for (int j = 0; j < i; j++)
            known |= valid[j] && ik_same(q, branches[j]);
        if (known)
            continue;
        memcpy(branches[i], q, sizeof q);
        valid[i] = 1;
        count++;
    }
    return count ? 0.0 : near;
}

/* q plus the whole turns that bring it nearest to the reference within the limits; its squared distance, or -1 */
static double ik_turned(const Values *v, const double *q, const double *reference, double *moved)
{
    double distance = 0.0;
    for (int i = 0; i < 6; i++) {
        const double x[2] = {q[i], reference[i]}, endless[2] = {-HUGE_VAL, HUGE_VAL};
        const double limits[2] = {v->real[Q_MIN + i], v->real[Q_MAX + i]};
        double out[2];
        tg_turned(x, v->boolean[LIMITED] ? limits : endless, out);
        if (out[1] < 0.5)
            return -1.0;
        moved[i] = out[0];
        distance += (moved[i] - reference[i]) * (moved[i] - reference[i]);
    }
    return distance;
}

/* NULL, or why there is no solution; then q is held and `found` is false */
static const char *ik_outputs(Values *v)
{
    double T[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, flange[15], R[9], *r = v->real;
    double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS];
    int valid[TG_IK_LANES];
    const double *before = v->memory + IK_before;
    memcpy(r + IK_q, before, 6 * sizeof(double));
    memset(r + IK_solutions, 0, 48 * sizeof(double));
    memset(v->boolean + IK_valid, 0, 8 * sizeof(int));
    memset(v->boolean + IK_singular, 0, 8 * sizeof(int));
    memset(v->integer + IK_flags, 0, 8 * sizeof(int));
    v->integer[IK_count] = v->integer[IK_branch] = 0;
    v->boolean[IK_found] = 0;
    r[IK_distance] = 0.0;
    const char *problem = ik_rotation(v, R);
    if (problem)
        return problem;
    for (int i = 0; i < 3; i++) {
        memcpy(T + 4 * i, R + 3 * i, 3 * sizeof(double));
        T[4 * i + 3] = r[IK_position + i];
    }
    if (!(fabs(dot(R, R, 9) - 3.0) < 0.01)) /* of a rotation 3; entries off by 1e-5 move it by 6e-5 at most */
        return "R is not a rotation (the squares of its entries do not add up to 3)";
    tg_ik_prepare(T, v->P, flange);
    if (!(flange[12] <= TG_EXACT_ROTATION))
        tg_ik_project(T, v->P, flange);
    if (!(flange[12] <= TG_ROTATION_TOLERANCE))
        return "R is not a rotation (entries off by more than 1e-5)";
    if (!(flange[13] > 0.0))
        return "R is a reflection (determinant -1), not a rotation";
    r[IK_distance] = ik_solve(T, flange, before, v->P, branches, valid);
    double best = HUGE_VAL;
    for (int i = 0; i < TG_IK_LANES; i++) {
        double moved[6];
        memcpy(r + IK_solutions + 6 * i, branches[i], 6 * sizeof(double));
        v->boolean[IK_valid + i] = valid[i];
        for (int k = 0; k < 4; k++)
            v->integer[IK_flags + i] |= (branches[i][8 + k] > 0.5) << k;
        v->boolean[IK_singular + i] = (v->integer[IK_flags + i] & 7) != 0;
        v->integer[IK_count] += valid[i];
        if (!valid[i] || (v->integer[SELECTION] == 2 && i + 1 != v->integer[BRANCH]))
            continue;
        const double distance = ik_turned(v, branches[i], before, moved);
        if (distance < 0.0 || !(distance < best))
            continue;
        best = distance;
        memcpy(r + IK_q, moved, sizeof moved);
        v->integer[IK_branch] = i + 1;
        v->boolean[IK_found] = 1;
    }
    if (v->boolean[IK_found])
        return NULL;
    if (!v->integer[IK_count])
        return "the pose is out of reach";
    return v->integer[SELECTION] == 2 ? "the wanted branch has no solution within the limits"
                                      : "all solutions of the pose lie outside the joint limits";
}

/* the twist that rates of the inputs mean */
static void ik_twist(const Values *v, const double *d, double *twist)
{
    const double *r = v->real;
    double *w = twist + 3;
    memcpy(twist, d + IK_position, 3 * sizeof(double));
    if (v->integer[ORIENTATION] == 1) { /* the skew part of dR R^T: what remains after projection to a rotation */
        for (int k = 0; k < 3; k++) {
            const int i = (k + 2) % 3, j = (k + 1) % 3;
            w[k] = 0.5 * (dot(d + IK_R + 3 * i, r + IK_R + 3 * j, 3) - dot(d + IK_R + 3 * j, r + IK_R + 3 * i, 3));
        }
    } else if (v->integer[ORIENTATION] == 2) { /* w = 2 dq q* */
        const double *q = r + IK_quaternion, *e = d + IK_quaternion, n = 2.0 / dot(q, q, 4);
        w[0] = n * (-e[0] * q[1] + e[1] * q[0] - e[2] * q[3] + e[3] * q[2]);
        w[1] = n * (-e[0] * q[2] + e[2] * q[0] - e[3] * q[1] + e[1] * q[3]);
        w[2] = n * (-e[0] * q[3] + e[3] * q[0] - e[1] * q[2] + e[2] * q[1]);
    } else {
        const double *a = r + IK_ypr, *e = d + IK_ypr;
        double s, c, sp, cp;
        tg_sincos(a[0], &s, &c);
        tg_sincos(a[1], &sp, &cp);
        w[0] = -s * e[1] + cp * c * e[2];
        w[1] = c * e[1] + cp * s * e[2];
        w[2] = e[0] - sp * e[2];
    }
}

/* dq = J^-1 twist for every solution; nan where there is none, or where J has no inverse */
static void ik_rates(const Values *v, const double *d, double *out)
{
    double twist[6];
    const double *r = v->real;
    ik_twist(v, d, twist);
    for (int i = 0; i < 6; i++)
        out[IK_q + i] = NAN;
    for (int lane = 0; lane < TG_IK_LANES; lane++) {
        double J[36], dq[6], *to = out + IK_solutions + 6 * lane;
        memcpy(dq, twist, sizeof twist);
        tg_jacobian(r + IK_solutions + 6 * lane, v->P, J);
        const int good = v->boolean[IK_valid + lane] && !v->boolean[IK_singular + lane] && gauss_solve(J, dq);
        for (int i = 0; i < 6; i++)
            to[i] = good ? dq[i] : NAN;
        if (v->integer[IK_branch] == lane + 1)
            memcpy(out + IK_q, to, 6 * sizeof(double));
    }
    out[IK_distance] = v->integer[IK_count] ? 0.0 : NAN;
}
