/* A scan of q6 over a turn, for wrists that hardly determine it: starts for the searches of polished.h. */

/* between two searches, a part of the way from the first to the second */
static void tg_start_between(tg_work *w, const double *a, const double *b, double part)
{
    double q[6];
    for (int i = 0; i < 6; i++)
        q[i] = a[i] + part * tg_wrapped(b[i] - a[i]);
    tg_start(w, q);
}

/* error in the wrist's lost direction, and whether the search has solved all the rest */
#define TG_AT_LOST 15
static int tg_scanned(const tg_search s, double miss, const tg_twin *twin)
{
    const double lost = s[TG_AT_LOST], rest = s[12] - lost * lost;
    return miss < TG_REACH_ZONE * twin->shift && rest < 0.25 * twin->tilt * twin->tilt + 0.01 * lost * lost;
}

/* starts from a scan of q6 over a turn, for each side of shoulder and elbow; first: where it begins, in steps */
static void tg_scan(tg_work *w, const double *flange, double first)
{
    const tg_twin *twin = w->twin;
    tg_search s[4][TG_ANGLES_OF_SCAN];
    int use[4][TG_ANGLES_OF_SCAN];
    double place[13], miss[4][TG_ANGLES_OF_SCAN];
    w->scanned = 1;
    memcpy(place, flange, 12 * sizeof(double));
    place[12] = 2.0; /* as if the rotation were known no better: q6 is then as it is told, whatever the wrist */
    for (int k = 0; k < TG_ANGLES_OF_SCAN / 2; k++) {
        double q6[TG_IK_LANES], branches[TG_IK_LANES][TG_IK_BRANCH_OUTPUTS];
        for (int i = 0; i < TG_IK_LANES; i++) /* either wrist is as good: one takes the other half of the turn */
            q6[i] = (first + k + (tg_ik_signs[1][i] > 0.0 ? 0 : TG_ANGLES_OF_SCAN / 2)) * (2.0 * TG_PI / TG_ANGLES_OF_SCAN);
        tg_isa->ik_branches(2, place, q6, twin->P, branches);
        for (int i = 0; i < TG_IK_LANES; i++) {
            const int posture = (tg_ik_signs[0][i] > 0.0 ? 0 : 2) + (tg_ik_signs[2][i] > 0.0 ? 0 : 1);
            const int angle = k + (tg_ik_signs[1][i] > 0.0 ? 0 : TG_ANGLES_OF_SCAN / 2);
            if (tg_bent(twin, branches[i], tg_ik_signs[2][i]) && branches[i][7] < TG_REACH_ZONE * twin->shift)
                tg_start_twin(w, branches[i]); /* the end of the values of q6 within reach: a solution may lie near */
            for (int j = 0; j < 6; j++)
                s[posture][angle][j] = branches[i][j] - twin->offset[j] + w->general[j];
            miss[posture][angle] = branches[i][7];
        }
    }
    tg_six_form->polish(w->general, w->pose, 0.0, TG_SCAN_ROUNDS, 4 * TG_ANGLES_OF_SCAN, s[0]);
    for (int p = 0; p < 4; p++) {
        for (int i = 0; i < TG_ANGLES_OF_SCAN; i++)
            use[p][i] = tg_scanned(s[p][i], miss[p][i], twin);
        for (int i = 0; i < TG_ANGLES_OF_SCAN; i++) {
            const int next = (i + 1) % TG_ANGLES_OF_SCAN, last = (i + TG_ANGLES_OF_SCAN - 1) % TG_ANGLES_OF_SCAN;
            const double g = s[p][i][TG_AT_LOST], after = s[p][next][TG_AT_LOST], before = s[p][last][TG_AT_LOST];
            if (!use[p][i])
                continue;
            if (use[p][next] && g * after <= 0.0)
                tg_start_between(w, s[p][i], s[p][next], g == after ? 0.5 : g / (g - after));
            if ((use[p][last] && fabs(before) < fabs(g)) || (use[p][next] && fabs(after) < fabs(g)))
                continue; /* no smallest value */
            tg_start(w, s[p][i]);
            if (!use[p][last] || !use[p][next] || g * before <= 0.0 || g * after <= 0.0)
                continue;
            /* a parabola through the three: its roots, or its smallest value */
            const double bend = 0.5 * (before + after) - g, slope = 0.5 * (after - before);
            if (bend == 0.0)
                continue;
            const double middle = -slope / (2.0 * bend), square = middle * middle - g / bend;
            const double apart = square > 0.0 ? sqrt(square) : 0.0;
            for (int side = -1; side <= (apart > 0.0 ? 1 : -1); side += 2) {
                const double part = fmin(fmax(middle + side * apart, -1.0), 1.0);
                tg_start_between(w, s[p][i], part > 0.0 ? s[p][next] : s[p][last], fabs(part));
            }
        }
    }
}
