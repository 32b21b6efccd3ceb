/* A step of learning environments whose numbers stay where they are, on a device: env.h, then what a learner is given.
 *
 * A table holds what is known of each environment, a column for each number: robot, state, goal, steps of its episode.
 * Steps below 0: the episode begins now, with a sample of the arm as it stands. Before this TG_GOAL, TG_TOLD and
 * TG_WRENCH are defined, and the function judge.
 */

#define TG_SEEN (4 * N + 6 * TG_WRENCH + TG_GOAL) /* numbers of an observation */
#define TG_TABLE (TG_ENV_ROBOT + TG_ENV_STATE + TG_GOAL + 1)

typedef struct {
    double *table;
    const TG_REAL *action;         /* (count, N) [Nm] */
    TG_REAL *seen, *reward, *told; /* observations (count, TG_SEEN), rewards, what the task tells (TG_TOLD, count) */
    unsigned char *lost, *late, *over; /* ended badly, at the horizon, either */
    int *any;                          /* set where some are over */
    long long count, periods, sample, horizon; /* sample: number of the newest after this step */
    unsigned long long seed;
} tg_lesson;

typedef struct {
    TG_REAL believed[TG_CONSTANTS_feel], common[TG_RESIDUAL];
    TG_REAL speed[N], force, crash; /* [rad/s] and [N] that end an episode, and what each second that is lost costs */
} tg_taught;

/* a number that a learner can bear: 0 for none, the largest there is for an infinite one */
TG_INLINE TG_REAL TG_FN(plain)(TG_REAL x)
{
#ifdef TG_SINGLE
    const TG_REAL most = 3.4028234663852886e38f;
#else
    const TG_REAL most = 1.7976931348623157e308;
#endif
    return x != x ? (TG_REAL)0 : x > most ? most : x < -most ? -most : x;
}

TG_INLINE void TG_FN(lesson)(const tg_lesson *job, const tg_taught *t, long long i)
{
    TG_REAL constants[TG_ENV_ROBOT], s[TG_ENV_STATE], out[TG_ENV_OUT], action[N], y[1 + TG_TOLD];
    TG_REAL x[TG_ENV_OUT + TG_GOAL + TG_SURFACE], *const goal = x + TG_ENV_OUT;
    const unsigned long long robot = (unsigned long long)i;
    double *at = job->table;
#define TG_NEXT(number) at[TG_PLACE(i, number, TG_TABLE, job->count)]
    for (int k = 0; k < TG_ENV_ROBOT; k++)
        constants[k] = (TG_REAL)TG_NEXT(k);
    for (int k = 0; k < TG_ENV_STATE; k++)
        s[k] = (TG_REAL)TG_NEXT(TG_ENV_ROBOT + k);
    for (int k = 0; k < TG_GOAL; k++)
        goal[k] = (TG_REAL)TG_NEXT(TG_ENV_ROBOT + TG_ENV_STATE + k);
    const long long before = (long long)TG_NEXT(TG_TABLE - 1), steps = before + 1;
    for (int j = 0; j < N; j++)
        action[j] = job->action ? job->action[i * N + j] : (TG_REAL)0;
    tg_envs envs = {0};
    envs.noisy = TG_NOISY_BITS;
    envs.seed = job->seed;
    const long long periods = before < 0 ? 0 : job->periods;
    TG_FN(env_periods)(&envs, t->believed, t->common, &robot, constants, action, periods, job->sample - periods, s, out);
    int lost = out[4 * N + 9] > t->force;
    for (int j = 0; j < N; j++)
        lost |= TG_ABS(s[N + j]) > t->speed[j];
    for (int k = 0; k < TG_ENV_STATE; k++) {
        lost |= !(s[k] - s[k] == (TG_REAL)0);
        TG_NEXT(TG_ENV_ROBOT + k) = (double)s[k];
    }
    TG_NEXT(TG_TABLE - 1) = (double)steps;
    for (int k = 0; k < TG_ENV_OUT; k++)
        x[k] = out[k];
    for (int k = 0; k < TG_SURFACE; k++)
        goal[TG_GOAL + k] = constants[TG_ENV_ROBOT - TG_SURFACE + k];
    TG_FN(judge)(x, 0, y);
    const TG_REAL left = (TG_REAL)(job->horizon - steps) * t->common[TG_PERIOD] * (TG_REAL)job->periods;
    const TG_REAL pay = lost ? -t->crash * (left > (TG_REAL)0 ? left : (TG_REAL)0) - (TG_REAL)1 : TG_FN(plain)(y[0]);
    lost &= before >= 0;
    const int late = before >= 0 && !lost && steps >= job->horizon;
    job->reward[i] = before < 0 ? (TG_REAL)0 : pay;
    job->lost[i] = (unsigned char)lost;
    job->late[i] = (unsigned char)late;
    job->over[i] = (unsigned char)(lost | late);
    if (lost | late)
        *job->any = 1;
    for (int k = 0; k < TG_TOLD; k++)
        job->told[k * job->count + i] = y[1 + k];
    TG_REAL *seen = job->seen + i * TG_SEEN;
    for (int k = 0; k < 4 * N + 3 * TG_WRENCH; k++)
        *seen++ = TG_FN(plain)(out[k]);
    for (int k = 0; k < 3 * TG_WRENCH; k++)
        *seen++ = (TG_REAL)0;
    for (int k = 0; k < TG_GOAL; k++)
        *seen++ = TG_FN(plain)(goal[k]);
}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(64) tg_lesson_steps(const __grid_constant__ tg_lesson job,
                                                                 const __grid_constant__ tg_taught taught)
{
    const long long i = blockIdx.x * 64ll + threadIdx.x;
    if (i < job.count)
        TG_FN(lesson)(&job, &taught, i);
}
/* rows (m, width) into the last columns of the table, for the environments `which` */
extern "C" __global__ void __launch_bounds__(64) tg_lesson_begin(double *table, const double *rows, const int *which,
                                                                 long long m, long long count, long long width)
{
    const long long e = blockIdx.x * 64ll + threadIdx.x;
    if (e < m * width)
        table[(TG_TABLE - width + e % width) * count + which[e / width]] = rows[e];
}
#else
extern "C" void tg_lesson_steps(const tg_lesson *job, const tg_taught *taught)
{
    for (long long i = 0; i < job->count; i++)
        TG_FN(lesson)(job, taught, i);
}
#endif
