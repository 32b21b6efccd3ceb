/* Inverse kinematics of an arm that is nearly a UR: a calibrated one, or one whose file rounds its angles.
 *
 * The closed form of its twin, the nearest exact UR, gives starts, and Newton's method on the arm itself makes them exact
 * (kinematics/inverse_polish.py). Away from singularities that is all. Next to one the twin's branches merge, split or
 * lie out of reach where those of the arm do not, so there are more starts:
 *
 *   shoulder: the same pose moved into the reach by as much as the calibration may have moved the arm;
 *   elbow: bent by as much;
 *   wrist: q6 is hardly determined by the twin. It is scanned over a turn; at each value the other joints follow, and what
 *          is left of the error changes its sign at a solution, or has a smallest value at two that nearly coincide.
 *
 * Where a search comes to a stand next to a singularity, or the number of solutions is odd, q6 is scanned as well, at
 * other angles: solutions come in pairs.
 *
 * Nothing is random: the same pose has the same answer, alone or in a batch. */

#define TG_FOUND_MAX 16  /* solutions that are kept; ten have been seen, next to two singularities at once */
#define TG_STARTS_MAX 512
#define TG_ANGLES_OF_SCAN 24
#define TG_ROUNDS 40     /* of a search: next to a singularity some twenty, elsewhere four or five */
#define TG_SCAN_ROUNDS 6 /* with q6 held: as far as needed to see a sign */
#define TG_WRIST_ZONE 4.0 /* times the tilt of the calibration [rad]: |sin q5| below which the wrist is scanned */
#define TG_WRIST_EDGE 3.0 /* times as far where the elbow is at the edge of its reach: q6 decides whether it is within */
#define TG_REACH_ZONE 2.0 /* times the shift of the calibration [m]: distance from the edge of the reach */
#define TG_EXACT 1e-9 /* rad, m: a file that rounds its numbers. Axes that are exact so far have a UR's singular wrist */
#define TG_GOOD 1e-24    /* squared error [m, rad] of a solution: 1e-12 */
#define TG_FAIR 1e-18    /* the same next to a singularity, 1e-9 ... */
#define TG_NEAR_FIRM 1e-6 /* ... which is where the smallest singular value of J is below 1e-3 */
#define TG_FOLD_FIRM 1e-4 /* below 1e-2 a second solution may lie near, across the singularity: it is looked for */
#define TG_ODD_FIRM 1e-2 /* and below 0.1 where their number is odd: they come in pairs, so one is missing */
#define TG_STUCK_FIRM 1e-3 /* below 0.03 a search may have come to a stand beside two solutions that nearly coincide */
#define TG_FREE_FIRM 1e-12 /* below 1e-6 a joint is free, if axes are parallel as in a UR: one stands for a family */
#define TG_MERGE 1e-6    /* rad: closer solutions are one; MERGE of kinematics/inverse_closed_form.py */
#define TG_SINGULAR 1e-6 /* SINGULAR of the same file */
#define TG_PI 3.14159265358979323846

/* the nearest exact UR: its parameters with tool, its base in the arm's base frame, its joint angles less the arm's */
typedef struct {
    double P[TG_PARAMETERS];
    double base[12]; /* R row by row, p */
    double offset[6];
    double tilt, shift; /* how far [rad, m] the tool may be turned and moved against it */
} tg_twin;

typedef struct {
    double q[6], cost, firm; unsigned char lane, flags;
} tg_found;

static double tg_wrapped(double x)
{
    const double y = x - 2.0 * TG_PI * nearbyint(x * (0.5 / TG_PI));
    return y <= -TG_PI ? y + 2.0 * TG_PI : y;
}

typedef struct {
    const tg_twin *twin;
    const double *general; /* parameters of the arm; the first six turn q into turned angles */
    double pose[12];
    int count, scanned; /* scanned: whether q6 was */
    tg_search starts[TG_STARTS_MAX];
} tg_work;

static void tg_start(tg_work *w, const double *q)
{
    if (w->count < TG_STARTS_MAX)
        memcpy(w->starts[w->count++], q, 6 * sizeof(double));
}

/* a start from the twin's joint angles */
static void tg_start_twin(tg_work *w, const double *q)
{
    double turned[6];
    for (int i = 0; i < 6; i++)
        turned[i] = q[i] - w->twin->offset[i] + w->general[i];
    tg_start(w, turned);
}

/* An elbow that is straight (or folded) within what the calibration may shift is bent so far, to the side of `sign`; the
 * wrist stays in its direction, the hand keeps its own. Whether that was so. */
static int tg_bent(const tg_twin *twin, double *q, double sign)
{
    const double a2 = twin->P[1], a3 = twin->P[2], both = fabs(a2 * a3), folded = cos(q[2]) < 0.0;
    const double radius = folded ? fabs(fabs(a2) - fabs(a3)) : fabs(a2) + fabs(a3);
    const double bend = fmin(sqrt(2.0 * twin->shift * radius / both), 1.0);
    if (fabs(sin(q[2])) > sin(bend))
        return 0;
    const double hand = q[1] + q[2] + q[3], direction = q[1] + atan2(a3 * sin(q[2]), a2 + a3 * cos(q[2]));
    q[2] = sign * (folded ? TG_PI - bend : bend);
    q[1] = direction - atan2(a3 * sin(q[2]), a2 + a3 * cos(q[2]));
    q[3] = hand - q[1] - q[2];
    return 1;
}

/* starts from branch i of the twin; whether its elbow is straight or folded, or it is out of reach */
static int tg_start_branch(tg_work *w, const double *branch, int i)
{
    /* q6 may be off by the tilt over sin q5, and with it the place of the wrist */
    const double q6_off = fmin(w->twin->tilt / fmax(fabs(sin(branch[4])), 1e-3), 1.0);
    double q[6];
    if (branch[7] >= TG_REACH_ZONE * (w->twin->shift + w->twin->P[4] * q6_off))
        return 1;
    tg_start_twin(w, branch);
    memcpy(q, branch, sizeof q);
    if (!tg_bent(w->twin, q, tg_ik_signs[2][i]))
        return branch[7] > 0.0;
    tg_start_twin(w, q);
    if (cos(q[2]) > 0.0)
        return 1;
    for (int side = -1; side <= 1; side += 2) { /* a folded arm is short: a small shift turns its direction by much */
        double turned[6];
        memcpy(turned, q, sizeof q);
        turned[1] += 0.4 * side;
        turned[3] -= 0.4 * side;
        tg_start_twin(w, turned);
    }
    return 1;
}

#include "wrist_scan.h"

/* all starts of a pose; flange: of the twin, as ik_prepared gives it. Returns the distance by which the twin misses. */
static double tg_starts(tg_work *w, const double *flange, const double *reference)
{
    const tg_twin *twin = w->twin;
    const double d4 = twin->P[3], d6 = twin->P[5];
    const double room = TG_REACH_ZONE * twin->shift;
    double branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS], q_twin[6], near = DBL_MAX;
    if (reference) {
        double turned[6];
        for (int i = 0; i < 6; i++) {
            turned[i] = reference[i] + w->general[i];
            q_twin[i] = reference[i] + twin->offset[i];
        }
        tg_start(w, turned);
    }
    tg_isa->ik_branches(1, flange, reference ? q_twin : NULL, twin->P, branches);
    const double x = flange[9] - d6 * flange[2], y = flange[10] - d6 * flange[5], rho = sqrt(x * x + y * y);
    const int shoulder = fabs(rho - d4) < room && twin->shift > TG_EXACT;
    const double zone = TG_WRIST_ZONE * twin->tilt + (shoulder ? sqrt(2.0 * room / d4) : 0.0);
    int wrist = 0;
    for (int i = 0; i < TG_IK_LANES; i++) {
        near = fmin(near, branches[i][7]);
        wrist |= fabs(sin(branches[i][4])) < zone * (tg_start_branch(w, branches[i], i) ? TG_WRIST_EDGE : 1.0);
    }
    if (near > room + 2.0 * twin->P[4])
        return near;
    wrist &= twin->tilt > TG_EXACT;
    if (wrist)
        tg_scan(w, flange, 0.0);
    if (!shoulder)
        return near;
    double moved[13]; /* away from the shoulder's cylinder */
    memcpy(moved, flange, sizeof moved);
    moved[9] += twin->shift * (rho > 0.0 ? x / rho : 1.0);
    moved[10] += twin->shift * (rho > 0.0 ? y / rho : 0.0);
    tg_isa->ik_branches(1, moved, NULL, twin->P, branches);
    for (int i = 0; i < TG_IK_LANES; i++)
        tg_start_branch(w, branches[i], i);
    if (wrist)
        tg_scan(w, moved, 0.0);
    return near;
}

/* branch and flags of a solution, from the twin's lengths */
static void tg_labelled(const tg_twin *twin, tg_found *f)
{
    double t[6];
    for (int i = 0; i < 6; i++)
        t[i] = f->q[i] + twin->offset[i];
    const double X = twin->P[1] * cos(t[1]) + twin->P[2] * cos(t[1] + t[2]);
    const double reach = X + twin->P[4] * sin(t[1] + t[2] + t[3]), s3 = sin(t[2]), s5 = sin(t[4]);
    f->lane = (unsigned char)(4 * (reach < 0.0) + 2 * (s5 < 0.0) + (s3 < 0.0)); /* the order of tg_ik_signs */
    f->flags = (unsigned char)((fabs(reach) <= TG_SINGULAR) + 2 * (fabs(s3) <= TG_SINGULAR) +
                               4 * (fabs(s5) <= TG_SINGULAR) + 8 * (s3 * X <= 0.0));
}

/* whether two solutions are one: 1 the same joints, 2 of one family with a free wrist, 0 neither */
static int tg_same(const tg_twin *twin, const tg_found *a, const tg_found *b)
{
    double gap[6], all = 0.0;
    for (int i = 0; i < 6; i++) {
        gap[i] = fabs(tg_wrapped(a->q[i] - b->q[i]));
        all = fmax(all, gap[i]);
    }
    const int family = twin->tilt <= TG_EXACT && a->firm < TG_FREE_FIRM && b->firm < TG_FREE_FIRM &&
                       gap[0] < 1e-3 && gap[4] < 1e-3;
    return all < TG_MERGE ? 1 : family && (a->lane & 5) == (b->lane & 5) ? 2 : 0;
}

/* The direction in which the joints move the tool least at turned angles q: two rounds of inverse iteration. */
static void tg_weakest(const double *general, const double *q, double *v)
{
    double x[TG_GENERAL_INPUT], J[36], A[6][6];
    memcpy(x, q, 6 * sizeof(double));
    tg_six_form->one[TG_K_jacobian](x, general, J);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j <= i; j++) {
            A[i][j] = i == j ? 1e-14 : 0.0;
            for (int k = 0; k < 6; k++)
                A[i][j] += J[6 * k + i] * J[6 * k + j];
        }
    for (int k = 0; k < 6; k++) { /* A = L L^T in place; a pivot that rounding made negative counts as small */
        for (int j = 0; j < k; j++)
            A[k][k] -= A[k][j] * A[k][j];
        A[k][k] = sqrt(fmax(A[k][k], 1e-14));
        for (int i = k + 1; i < 6; i++) {
            for (int j = 0; j < k; j++)
                A[i][k] -= A[i][j] * A[k][j];
            A[i][k] /= A[k][k];
        }
    }
    for (int i = 0; i < 6; i++)
        v[i] = 1.0;
    for (int round = 0; round < 3; round++) {
        double largest = 0.0;
        for (int i = 0; i < 6; i++) {
            for (int j = 0; j < i; j++)
                v[i] -= A[i][j] * v[j];
            v[i] /= A[i][i];
        }
        for (int i = 5; i >= 0; i--) {
            for (int j = i + 1; j < 6; j++)
                v[i] -= A[j][i] * v[j];
            v[i] /= A[i][i];
            largest = fmax(largest, fabs(v[i]));
        }
        for (int i = 0; i < 6; i++)
            v[i] /= largest;
    }
}

/* whether a search came to a stand next to a singularity, without a solution: there may be two that nearly coincide */
static int tg_stuck(const tg_work *w)
{
    const double zone = TG_REACH_ZONE * w->twin->shift;
    int stuck = 0;
    for (int s = 0; s < w->count; s++)
        stuck |= w->starts[s][12] >= TG_FAIR && w->starts[s][12] < zone * zone && w->starts[s][14] < TG_STUCK_FIRM;
    return stuck;
}

/* solutions among the searches, added to those that were found; returns how many there are now */
static int tg_gathered(const tg_work *w, int reference, tg_found *found, int count)
{
    for (int s = 0; s < w->count; s++) {
        const double *state = w->starts[s];
        tg_found f = {.cost = state[12], .firm = state[14]};
        if (!(f.cost < TG_GOOD || (f.cost < TG_FAIR && f.firm < TG_NEAR_FIRM)))
            continue;
        for (int i = 0; i < 6; i++)
            f.q[i] = tg_wrapped(state[i] - w->general[i]);
        tg_labelled(w->twin, &f);
        int other = 0, same = 0;
        while (other < count && !(same = tg_same(w->twin, &f, &found[other])))
            other++;
        if (other == count && count < TG_FOUND_MAX)
            found[count++] = f;
        /* of the same the more exact; of a family the first, which has the reference's q6, or the smallest q6 */
        if (same == 1 ? f.cost < found[other].cost : same && !reference && fabs(f.q[5]) < fabs(found[other].q[5]))
            found[other] = f;
    }
    return count;
}

/* the solutions with those of one more scan */
static int tg_rescanned(tg_work *w, const double *flange, double first, int reference, tg_found *found, int count)
{
    w->count = 0;
    tg_scan(w, flange, first);
    tg_six_form->polish(w->general, w->pose, 1.0, TG_ROUNDS, w->count, w->starts);
    return tg_gathered(w, reference, found, count);
}

/* Next to a singularity solutions come in pairs along the weakest direction; from steps along it either way a search finds
 * the one that is missing. steps: of the joint that moves most [rad]; firm: below which solutions are looked at. */
static int tg_across(tg_work *w, int reference, tg_found *found, int count, const double *steps, int many, double firm)
{
    const int exact_wrist = w->twin->tilt <= TG_EXACT;
    for (int from = 0, to = count; from < to; from = to, to = count) {
        w->count = 0;
        for (int i = from; i < to; i++) {
            double v[6], q[6], start[6];
            if (found[i].firm > firm || (exact_wrist && found[i].firm < TG_FREE_FIRM))
                continue;
            for (int j = 0; j < 6; j++)
                q[j] = found[i].q[j] + w->general[j];
            tg_weakest(w->general, q, v);
            for (int k = 0; k < 2 * many; k++) {
                for (int j = 0; j < 6; j++)
                    start[j] = q[j] + (k % 2 ? steps[k / 2] : -steps[k / 2]) * v[j];
                tg_start(w, start);
            }
        }
        tg_six_form->polish(w->general, w->pose, 1.0, TG_ROUNDS, w->count, w->starts);
        count = tg_gathered(w, reference, found, count);
    }
    return count;
}

static int tg_solved_near(const tg_twin *twin, const double *general, const double *T, const double *reference,
                          tg_found *found, double *correction, double *distance, const char **problem)
{
    tg_work w; /* not cleared: tg_start fills what is counted */
    double near_base[16], flange[TG_IK_PREPARE_OUTPUTS];
    w.twin = twin;
    w.general = general;
    w.count = w.scanned = 0;
    const double *B = twin->base;
    for (int i = 0; i < 3; i++) /* T in the twin's base frame */
        for (int j = 0; j < 4; j++) {
            double sum = 0.0;
            for (int k = 0; k < 3; k++)
                sum += B[3 * k + i] * (T[4 * k + j] - (j == 3 ? B[9 + k] : 0.0));
            near_base[4 * i + j] = sum;
        }
    memcpy(near_base + 12, T + 12, 4 * sizeof(double));
    *problem = ik_prepared(near_base, twin->P, flange);
    *correction = flange[12];
    if (*problem)
        return 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++)
            w.pose[3 * i + j] = T[4 * i + j];
        w.pose[9 + i] = T[4 * i + 3];
    }
    if (flange[12] > TG_EXACT_ROTATION) { /* the corrected rotation, back from the flange */
        double R[9];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                const double *tool = twin->P + 6 + j;
                R[3 * i + j] = flange[3 * i] * tool[0] + flange[3 * i + 1] * tool[3] + flange[3 * i + 2] * tool[6];
            }
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                w.pose[3 * i + j] = B[3 * i] * R[j] + B[3 * i + 1] * R[3 + j] + B[3 * i + 2] * R[6 + j];
    }
    const double near = tg_starts(&w, flange, reference);
    tg_six_form->polish(general, w.pose, 1.0, TG_ROUNDS, w.count, w.starts);
    int count = tg_gathered(&w, reference != NULL, found, 0);
    if (!w.scanned && twin->tilt > TG_EXACT && tg_stuck(&w))
        count = tg_rescanned(&w, flange, 0.0, reference != NULL, found, count);
    if (twin->tilt > TG_EXACT || twin->shift > TG_EXACT) {
        static const double coarse[] = {1.0, 0.6, 0.3, 0.06, 0.015}, fine[] = {1.5, 0.6, 0.2, 0.12, 0.03, 0.006, 0.002, 6e-4};
        count = tg_across(&w, reference != NULL, found, count, coarse, 5, TG_FOLD_FIRM);
        if (count % 2 && twin->tilt > TG_EXACT) /* where the wrist is exact, one solution may stand for a family */
            count = tg_across(&w, reference != NULL, found, count, fine, 8, TG_ODD_FIRM);
        for (int k = 1; k < 4 && count % 2 && w.scanned && twin->tilt > TG_EXACT; k++)
            count = tg_rescanned(&w, flange, 0.25 * k, reference != NULL, found, count);
    }
    for (int i = 1; i < count; i++) /* in the order of the branches */
        for (int j = i; j > 0 && found[j].lane < found[j - 1].lane; j--) {
            const tg_found other = found[j];
            found[j] = found[j - 1];
            found[j - 1] = other;
        }
    *distance = count ? 0.0 : fmax(near, DBL_MIN); /* an empty answer never says "reached" */
    return count;
}
