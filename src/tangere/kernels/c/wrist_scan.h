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
static int tg_scanned(const tg_search s, const tg_twin *twin)
{
    const double lost = s[TG_AT_LOST], rest = s[12] - lost * lost;
    return rest < 0.25 * twin->tilt * twin->tilt + 0.01 * lost * lost;
}

/* starts from a scan of q6 over a turn, for each side of shoulder and elbow; first: where it begins, in steps */
static void tg_scan(tg_work *w, const double *flange, double first)
{
    const tg_twin *twin = w->twin;
    tg_search searches[4 * TG_ANGLES_OF_SCAN];
    const double *s[4][TG_ANGLES_OF_SCAN] = {{NULL}}; /* of each angle its search; NULL: out of reach, or not solved */
    double place[13];
    int count = 0;
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
            if (!(branches[i][7] < TG_REACH_ZONE * twin->shift))
                continue;
            if (tg_bent(twin, branches[i], tg_ik_signs[2][i]))
                tg_start_twin(w, branches[i]); /* the end of the values of q6 within reach: a solution may lie near */
            for (int j = 0; j < 6; j++)
                searches[count][j] = branches[i][j] - twin->offset[j] + w->general[j];
            s[posture][angle] = searches[count++];
        }
    }
    tg_six_form->polish(w->general, w->pose, 0.0, TG_SCAN_ROUNDS, count, searches);
    for (int p = 0; p < 4; p++) {
        for (int i = 0; i < TG_ANGLES_OF_SCAN; i++)
            if (s[p][i] && !tg_scanned(s[p][i], twin))
                s[p][i] = NULL;
        for (int i = 0; i < TG_ANGLES_OF_SCAN; i++) {
            const double *own = s[p][i], *next = s[p][(i + 1) % TG_ANGLES_OF_SCAN];
            const double *last = s[p][(i + TG_ANGLES_OF_SCAN - 1) % TG_ANGLES_OF_SCAN];
            if (!own)
                continue;
            const double g = own[TG_AT_LOST], after = next ? next[TG_AT_LOST] : 0.0, before = last ? last[TG_AT_LOST] : 0.0;
            if (next && g * after <= 0.0)
                tg_start_between(w, own, next, g == after ? 0.5 : g / (g - after));
            if ((last && fabs(before) < fabs(g)) || (next && fabs(after) < fabs(g)))
                continue; /* no smallest value */
            tg_start(w, own);
            if (!last || !next || g * before <= 0.0 || g * after <= 0.0)
                continue;
            /* a parabola through the three: its roots, or its smallest value */
            const double bend = 0.5 * (before + after) - g, slope = 0.5 * (after - before);
            if (bend == 0.0)
                continue;
            const double middle = -slope / (2.0 * bend), square = middle * middle - g / bend;
            const double apart = square > 0.0 ? sqrt(square) : 0.0;
            for (int side = -1; side <= (apart > 0.0 ? 1 : -1); side += 2) {
                const double part = fmin(fmax(middle + side * apart, -1.0), 1.0);
                tg_start_between(w, own, part > 0.0 ? next : last, fabs(part));
            }
        }
    }
}
