/* The closed loop of TG_WIDTH robots at a time, one copy per width and precision.
 *
 * In every period k, as tangere/loop/run.py goes through it: sample with noise, reference, controller and observer
 * (sense), constant thresholds, then torque limits, pushes and the integration of the true arm (accelerate).
 * Nothing depends on which robots share a block, nor on how many there are: noise is a function of seed, robot, step
 * and purpose alone (Philox 4x32-10), and every operation is one IEEE operation per lane.
 */

#ifndef TG_ROLLOUT_TYPES
#define TG_ROLLOUT_TYPES
#define N 6
#define TG_NOISY 18 /* normals per sample: speeds, torques, positions */
#define TG_PUSH 16  /* numbers of a push: first and last step + 1, turned, link, point 3, force 3, joint torque 6 */
#define TG_START (TG_CONSTANTS_accelerate + TG_CONSTANTS_pushed + TG_CONSTANTS_turned)
#define TG_PUSHES (TG_START + 2 * N)
#define TG_LOGGED (8 * N)          /* numbers of a row of the log */
#define TG_RESULT (5 * N + 6)      /* numbers of a result, before 3 per push: its force in base axes */
#define TG_LOOK 64                 /* periods between two looks at `stop`: 2 ms or so */
#ifdef __CUDACC__
#define TG_ONCE _Pragma("unroll 1") /* four copies of an arm are more than a multiprocessor keeps at hand */
#else
#define TG_ONCE
#endif
/* in float64 the loop's instructions are, too: robots that go through it together wait for them once, a fifth faster */
#if defined(__CUDACC__) && !defined(TG_SINGLE)
#define TG_TOGETHER __syncthreads();
#else
#define TG_TOGETHER
#endif
#define TG_BELIEVED (TG_CONSTANTS_sense + TG_CONSTANTS_watch)

typedef struct {
    const double *belief, *reference, *common, *robots;
    double *results, *log;
    const volatile unsigned char *stop;
    long long first, count, steps, every, rows; /* robots, periods; every n-th sample is logged, `rows` of them */
    long long references; /* motions that robots follow: number i the i-th of them, over and over */
    int pushes, runge_kutta, noisy, begins; /* noisy: bits 0 speeds, 1 torques, 2 positions; begins: r starts with y */
    int watched; /* by the detector's law instead of constant thresholds */
    unsigned long long seed;
} tg_job;

/* what `common` holds, in this order */
enum { TG_PERIOD = 0, TG_LIMIT = 1, TG_SIGMA = 7, TG_WEIGHT = 25, TG_RESIDUAL = 31, TG_ON = 37, TG_OFF = 43,
       TG_INVERSE = 49, TG_RAISE = 55, TG_RELEASE = 56, TG_MEMORY = 57, TG_COMMON = TG_MEMORY + TG_WATCH_STATE };
#endif

/* ---- noise ---------------------------------------------------------------------------------------------------- */

#undef TG_WORDS
#undef TG_WORD
#undef TG_UNIT
#if TG_WIDTH == 1
#define TG_WORDS 1
#define TG_WORD unsigned long long
#define TG_UNIT double
#else
#ifdef TG_SINGLE
#define TG_WORDS (TG_WIDTH / 2) /* whole numbers of 64 bits: half as many fit */
#else
#define TG_WORDS TG_WIDTH
#endif
typedef unsigned long long TG_FN(word) __attribute__((vector_size(8 * TG_WORDS)));
typedef double TG_FN(unit) __attribute__((vector_size(8 * TG_WORDS)));
#define TG_WORD TG_FN(word)
#define TG_UNIT TG_FN(unit)
#endif

/* product of two numbers below 2^32 in each lane */
TG_INLINE TG_WORD TG_FN(product)(TG_WORD a, unsigned long long b)
{
#if defined(TG_X86) && TG_WIDTH > 1 && defined(TG_BYTES) && TG_BYTES == 64
    return (TG_WORD)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64((long long)b));
#elif defined(TG_X86) && TG_WIDTH > 1 && defined(TG_BYTES) && TG_BYTES == 32
    return (TG_WORD)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x((long long)b));
#elif defined(TG_X86) && TG_WIDTH > 1 && defined(TG_BYTES) && TG_BYTES == 16
    return (TG_WORD)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x((long long)b));
#else
    return a * b;
#endif
}

/* four numbers of 32 bits from a counter and a key (Salmon et al. 2011) */
TG_INLINE void TG_FN(philox)(TG_WORD *c, unsigned long long key)
{
    unsigned int k0 = (unsigned int)key, k1 = (unsigned int)(key >> 32);
    for (int i = 0; i < 10; i++) {
        const TG_WORD a = TG_FN(product)(c[0], 0xD2511F53u), b = TG_FN(product)(c[2], 0xCD9E8D57u);
        c[0] = (b >> 32) ^ c[1] ^ k0;
        c[2] = (a >> 32) ^ c[3] ^ k1;
        c[1] = b & 0xffffffffu;
        c[3] = a & 0xffffffffu;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

/* a number of 32 bits as the middle of its interval of (0, 1) */
TG_INLINE TG_UNIT TG_FN(interval)(TG_WORD x)
{
    TG_UNIT y;
    x |= 0x4330000000000000ULL; /* 2^52 + x */
    memcpy(&y, &x, sizeof y);
    return ((y - 4503599627370496.0) + 0.5) * 0x1p-32;
}

/* four normal numbers of each robot: those of `purpose` at `step` (Box and Muller) */
TG_KERNEL void TG_FN(normals)(const unsigned long long *robot, unsigned long long step, unsigned long long purpose,
                              unsigned long long seed, V *z)
{
    V u[4];
    for (int half = 0; half < TG_WIDTH / TG_WORDS; half++) {
        TG_WORD number, c[4];
        memcpy(&number, robot + half * TG_WORDS, sizeof number);
        c[0] = number & 0xffffffffu;
        c[1] = step + (number ^ number);
        c[2] = purpose + (number ^ number);
        c[3] = number >> 32;
        TG_FN(philox)(c, seed);
        for (int i = 0; i < 4; i++) {
            const TG_UNIT y = TG_FN(interval)(c[i]);
#if TG_WIDTH == 1
            u[i] = (V)y;
#elif defined(TG_SINGLE)
            typedef float few __attribute__((vector_size(4 * TG_WORDS)));
            const few made = __builtin_convertvector(y, few);
            memcpy((float *)&u[i] + half * TG_WORDS, &made, sizeof made);
#else
            memcpy(&u[i], &y, sizeof y);
#endif
        }
    }
    for (int i = 0; i < 4; i += 2) {
        V s, c;
        const V size = TG_SQRT(TG_SPREAD(-2.0) * TG_FN(log)(u[i]));
        TG_FN(sincos)(TG_SPREAD(6.283185307179586) * u[i + 1], &s, &c);
        z[i] = size * c;
        z[i + 1] = size * s;
    }
}

/* ---- the true arm --------------------------------------------------------------------------------------------- */

TG_INLINE int TG_FN(any)(TG_MASK m)
{
#if TG_WIDTH == 1
    return m != 0;
#else
    TG_BITS all = 0;
    for (int l = 0; l < TG_WIDTH; l++)
        all |= m[l];
    return all != 0;
#endif
}

/* torque of the pushes at work at posture q */
TG_INLINE void TG_FN(pushing)(const V *constants, const V *push, int pushes, const TG_MASK *at_work, const int *acts, const V *q, V *out)
{
    for (int j = 0; j < N; j++)
        out[j] = TG_SPREAD(0.0);
    for (int i = 0; i < pushes; i++, push += TG_PUSH) {
        if (!acts[i])
            continue;
        V torque[N], x[N + 7];
        for (int j = 0; j < N; j++)
            torque[j] = TG_SPREAD(0.0);
        if (acts[i] > 1) { /* a force on a link of some robot */
            memcpy(x, q, N * sizeof(V));
            memcpy(x + N, push + 4, 6 * sizeof(V));
            x[N + 6] = push[3];
            TG_FN(pushed)(x, constants, 0, torque);
        }
        for (int j = 0; j < N; j++)
            out[j] = out[j] + TG_SELECT(at_work[i], torque[j] + push[10 + j], TG_SPREAD(0.0));
    }
}

/* one period under the torque tau: q and qd move on */
TG_INLINE void TG_FN(moved)(const tg_job *job, const V *plant, const V *push, const TG_MASK *at_work, const int *acts,
                            TG_REAL h, const V *tau, V *q, V *qd)
{
    const V *const pull = plant + TG_CONSTANTS_accelerate;
    int any = 0;
    for (int i = 0; i < job->pushes; i++)
        any |= acts[i];
    /* of the four stages the first, the sum of the second and third, and the newest are kept */
    V x[3 * N], torque[N], a[N], v[N], first[N], middle_a[N], middle_v[N];
    const int stages = job->runge_kutta ? 4 : 1;
    for (int j = 0; j < N; j++) {
        x[j] = q[j];
        x[N + j] = v[j] = qd[j];
        a[j] = first[j] = middle_a[j] = middle_v[j] = TG_SPREAD(0.0);
    }
    TG_ONCE
    for (int s = 0; s < stages; s++) {
        TG_TOGETHER
        if (s) {
            const V step = TG_SPREAD(s == 3 ? h : (TG_REAL)0.5 * h);
            for (int j = 0; j < N; j++) {
                x[j] = q[j] + step * v[j];
                x[N + j] = v[j] = qd[j] + step * a[j];
            }
        }
        for (int j = 0; j < N; j++)
            x[2 * N + j] = tau[j];
        if (any) {
            TG_FN(pushing)(pull, push, job->pushes, at_work, acts, x, torque);
            for (int j = 0; j < N; j++)
                x[2 * N + j] = x[2 * N + j] + torque[j];
        }
        TG_FN(accelerate)(x, plant, 0, a);
        for (int j = 0; j < N; j++) {
            first[j] = s == 0 ? a[j] : first[j];
            middle_a[j] = s == 1 ? a[j] : s == 2 ? middle_a[j] + a[j] : middle_a[j];
            middle_v[j] = s == 1 ? v[j] : s == 2 ? middle_v[j] + v[j] : middle_v[j];
        }
    }
    for (int j = 0; j < N; j++)
        if (job->runge_kutta) {
            const V sixth = TG_SPREAD(h / (TG_REAL)6.0), two = TG_SPREAD(2.0);
            q[j] = q[j] + sixth * (qd[j] + two * middle_v[j] + v[j]);
            qd[j] = qd[j] + sixth * (first[j] + two * middle_a[j] + a[j]);
        } else {
            qd[j] = qd[j] + TG_SPREAD(h) * a[j];
            q[j] = q[j] + TG_SPREAD(h) * qd[j];
        }
}

/* ---- the loop ------------------------------------------------------------------------------------------------- */

TG_INLINE V TG_FN(larger)(V a, V b) { return TG_SELECT(TG_LT(a, b), b, a); }
TG_INLINE V TG_FN(smaller)(V a, V b) { return TG_SELECT(TG_LT(b, a), b, a); }

/* one block of robots from number `start` of the call on
 * constants: room for the numbers of a robot and its pushes; plant: those of the arm, where all robots have the same
 */
TG_INLINE void TG_FN(rollout_block)(const tg_job *job, const TG_REAL *believed, const TG_REAL *c, V *constants,
                                    const V *plant, long long start)
{
    const int size = TG_PUSHES + job->pushes * TG_PUSH;
    const TG_REAL h = c[TG_PERIOD];
    const int lanes = job->count - start < TG_WIDTH ? (int)(job->count - start) : TG_WIDTH;
    unsigned long long robot[TG_WIDTH];
    for (int l = 0; l < TG_WIDTH; l++) { /* the last robot fills lanes that are left over */
        const long long row = start + (l < lanes ? l : lanes - 1);
        robot[l] = (unsigned long long)(job->first + row);
        for (int i = plant ? TG_START : 0; i < size; i++)
            ((TG_REAL *)&constants[i])[l] = (TG_REAL)job->robots[TG_PLACE(row, i, size, job->count)];
    }
    if (!plant)
        plant = constants;
    V *const push = constants + TG_PUSHES;
    V q[N], qd[N], tau[N], held[N], r[N], p0[N], beta0[N], peak[N], miss[N];
    V x[5 * N], y[3 * N], z[20], seen[1 + 2 * N + TG_WATCH_STATE], told[TG_WATCH_STATE + 2];
    TG_MASK touching = TG_SPREAD_MASK(0), at_work[TG_PUSHES_MAX];
    int acts[TG_PUSHES_MAX];
    V crossed = TG_SPREAD(0.0), top = TG_SPREAD(0.0), events = TG_SPREAD(0.0), alarm = TG_SPREAD(-1.0);
    V found = TG_SPREAD(-1.0), early = TG_SPREAD(0.0), felt[N];
    for (int j = 0; j < N; j++) {
        q[j] = constants[TG_START + j];
        qd[j] = constants[TG_START + N + j];
        r[j] = TG_SPREAD(c[TG_RESIDUAL + j]);
        held[j] = peak[j] = miss[j] = felt[j] = TG_SPREAD(0.0);
    }
    for (int i = 0; i < 20; i++)
        z[i] = TG_SPREAD(0.0);
    for (int i = 0; i < TG_WATCH_STATE; i++)
        told[i] = TG_SPREAD(c[TG_MEMORY + i]);
    for (long long k = 0; k < job->steps; k++) {
#ifndef __CUDACC__
        if (k % TG_LOOK == 0 && *job->stop)
            return;
#endif
        /* the sample */
        for (int group = 0; group < 5; group++) {
            const int wanted = group == 0 ? 1 : group == 1 ? 1 | 2 : group == 2 ? 2 : 4;
            if (wanted & job->noisy)
                TG_FN(normals)(robot, (unsigned long long)k, (unsigned long long)group, job->seed, z + 4 * group);
        }
        for (int j = 0; j < N; j++) {
            x[j] = job->noisy & 4 ? q[j] + TG_SPREAD(c[TG_SIGMA + 12 + j]) * z[12 + j] : q[j];
            x[N + j] = job->noisy & 1 ? qd[j] + TG_SPREAD(c[TG_SIGMA + j]) * z[j] : qd[j];
            tau[j] = job->noisy & 2 ? held[j] + TG_SPREAD(c[TG_SIGMA + 6 + j]) * z[6 + j] : held[j];
        }
        if (job->references == 1) {
            const double *const wanted = job->reference + 3 * N * k;
            for (int j = 0; j < 3 * N; j++)
                x[2 * N + j] = TG_SPREAD((TG_REAL)wanted[j]);
        } else
            for (int l = 0; l < TG_WIDTH; l++) {
                const long long which = (long long)(robot[l] % (unsigned long long)job->references);
                const double *const wanted = job->reference + 3 * N * (which * job->steps + k);
                for (int j = 0; j < 3 * N; j++)
                    ((TG_REAL *)&x[2 * N + j])[l] = (TG_REAL)wanted[j];
            }
        TG_FN(sense)(x, believed, y);
        /* the observer */
        for (int j = 0; j < N; j++) {
            if (k > 0) {
                const V raw = TG_SHARE(y[N + j] - p0[j], TG_SPREAD(h)) - tau[j] -
                              TG_SPREAD(0.5) * (beta0[j] + y[2 * N + j]);
                r[j] = job->begins && k == 1 ? raw : r[j] + TG_SPREAD(c[TG_WEIGHT + j]) * (raw - r[j]);
            }
            p0[j] = y[N + j];
            beta0[j] = y[2 * N + j];
        }
        /* the detector's law, or constant thresholds with hysteresis */
        V score = TG_SPREAD(0.0);
        TG_MASK above = TG_SPREAD_MASK(0);
        for (int j = 0; j < N; j++) {
            const V absolute = TG_ABS(r[j]), error = TG_ABS(x[2 * N + j] - q[j]);
            above = above | TG_LT(TG_SELECT(touching, TG_SPREAD(c[TG_OFF + j]), TG_SPREAD(c[TG_ON + j])), absolute);
            score = TG_FN(larger)(score, absolute * TG_SPREAD(c[TG_INVERSE + j]));
            peak[j] = TG_FN(larger)(peak[j], absolute);
            miss[j] = TG_FN(larger)(miss[j], error);
        }
        if (job->watched) {
            seen[0] = TG_SPREAD(k ? h : (TG_REAL)-1.0);
            memcpy(seen + 1, r, sizeof r);
            memcpy(seen + 1 + N, x + N, sizeof r);
            memcpy(seen + 1 + 2 * N, told, TG_WATCH_STATE * sizeof(V));
            TG_FN(watch)(seen, believed + TG_CONSTANTS_sense, told);
            score = told[TG_WATCH_STATE];
            above = TG_LT(TG_SPREAD(0.5), told[TG_WATCH_STATE + 1]);
        }
        top = TG_FN(larger)(top, score);
        const TG_MASK other = above ^ touching;
        crossed = TG_SELECT(other, crossed + TG_SPREAD(1.0), TG_SPREAD(0.0));
        const V need = TG_SELECT(touching, TG_SPREAD(c[TG_RELEASE]), TG_SPREAD(c[TG_RAISE]));
        const TG_MASK flips = other & TG_LT(need, crossed);
        if (TG_FN(any)(flips)) {
            const TG_MASK begins = flips & ~touching & above;
            const V now = TG_SPREAD((TG_REAL)k);
            events = TG_SELECT(begins, events + TG_SPREAD(1.0), events);
            alarm = TG_SELECT(begins & TG_LT(alarm, TG_SPREAD(0.0)), now, alarm);
            if (job->pushes) {
                const TG_MASK after = TG_LT(push[0], now);
                found = TG_SELECT(begins & after & TG_LT(found, TG_SPREAD(0.0)), now, found);
                early = TG_SELECT(begins & ~after, early + TG_SPREAD(1.0), early);
            }
            touching = touching ^ flips;
            crossed = TG_SELECT(flips, TG_SPREAD(0.0), crossed);
        }
        if (job->log && k % job->every == 0) {
            const V *const parts[8] = {q, qd, x, x + N, tau, r, y, felt};
            for (int l = 0; l < lanes; l++) {
                double *row = job->log + ((start + l) * job->rows + k / job->every) * TG_LOGGED;
                for (int part = 0; part < 8; part++)
                    for (int j = 0; j < N; j++)
                        *row++ = (double)((const TG_REAL *)&parts[part][j])[l];
            }
        }
        /* the plant */
        const V now = TG_SPREAD((TG_REAL)k);
        for (int i = 0; i < job->pushes; i++) {
            V *const one = push + i * TG_PUSH;
            at_work[i] = TG_LE(one[0], now) & TG_LT(now, one[1]);
            acts[i] = TG_FN(any)(at_work[i]) ? 1 + TG_FN(any)(at_work[i] & TG_LE(TG_SPREAD(0.0), one[3])) : 0;
            const TG_MASK turns = at_work[i] & TG_LT(TG_SPREAD(0.5), one[2]) & TG_LE(now, one[0]);
            if (TG_FN(any)(turns)) { /* its force is given in the link's axes: fixed in base axes from now on */
                V in[N + 4], force[3];
                memcpy(in, q, sizeof q);
                memcpy(in + N, one + 7, 3 * sizeof(V));
                in[N + 3] = one[3];
                TG_FN(turned)(in, plant + TG_CONSTANTS_accelerate + TG_CONSTANTS_pushed, 0, force);
                for (int a = 0; a < 3; a++)
                    one[7 + a] = TG_SELECT(turns, force[a], one[7 + a]);
            }
        }
        for (int j = 0; j < N; j++) {
            const V limit = TG_SPREAD(c[TG_LIMIT + j]);
            held[j] = TG_FN(smaller)(TG_FN(larger)(y[j], -limit), limit);
        }
        if (job->log)
            TG_FN(pushing)(plant + TG_CONSTANTS_accelerate, push, job->pushes, at_work, acts, q, felt);
        TG_FN(moved)(job, plant, push, at_work, acts, h, held, q, qd);
    }
    const V *const parts[5] = {q, qd, r, peak, miss};
    const V last[6] = {top, events, alarm, found, early, TG_SELECT(touching, TG_SPREAD(1.0), TG_SPREAD(0.0))};
    for (int l = 0; l < lanes; l++) {
        double *out = job->results + (start + l) * (TG_RESULT + 3 * job->pushes);
        for (int part = 0; part < 5; part++)
            for (int j = 0; j < N; j++)
                *out++ = (double)((const TG_REAL *)&parts[part][j])[l];
        for (int i = 0; i < 6; i++)
            *out++ = (double)((const TG_REAL *)&last[i])[l];
        for (int i = 0; i < 3 * job->pushes; i++)
            *out++ = (double)((const TG_REAL *)&push[(i / 3) * TG_PUSH + 7 + i % 3])[l];
    }
}

#ifndef __CUDACC__
static TG_MAYBE_UNUSED void TG_FN(rollout)(const tg_job *job, TG_REAL *believed, void *room)
{
    TG_REAL c[TG_COMMON];
    for (int i = 0; i < TG_COMMON; i++)
        c[i] = (TG_REAL)job->common[i];
    for (int i = 0; i < TG_BELIEVED; i++)
        believed[i] = (TG_REAL)job->belief[i];
    for (long long start = 0; start < job->count && !*job->stop; start += TG_WIDTH)
        TG_FN(rollout_block)(job, believed, c, (V *)room, 0, start);
}
#endif
