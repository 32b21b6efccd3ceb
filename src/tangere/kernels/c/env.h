/* Learning environments of TG_WIDTH robots at a time: some periods under a torque from outside, on a surface.
 *
 * In every period: torque limits, the surface and the semi-implicit step of the true arm; then the sample with noise,
 * and the momentum observer. All that is remembered is in `state`, so that any robot may be set anew between two calls.
 * Noise is a function of seed, robot and sample alone, as in rollout.h.
 */

#ifndef TG_ENV_TYPES
#define TG_ENV_TYPES
#define TG_ENV_STATE (6 * N + 1) /* q, qd, torque held, residual, p and beta of the last sample, whether there is one */
#define TG_ENV_ROBOT (TG_CONSTANTS_accelerate + TG_CONSTANTS_touch + TG_SURFACE)
#define TG_ENV_OUT (4 * N + 11) /* q, qd, tau measured, residual; force, place, speed of the tcp, peak, mean force */

typedef struct {
    const double *belief, *common, *robots, *action; /* of common what rollout.h has up to TG_RESIDUAL */
    double *state, *out;
    long long first, count, periods, sample; /* robots of this call, of how many; sample: number of the newest */
    int noisy;
    unsigned long long seed;
} tg_envs;
#endif

TG_INLINE void TG_FN(env_sample)(const tg_envs *job, const TG_REAL *believed, const TG_REAL *c,
                                 const unsigned long long *robot, long long k, V *s, V *out)
{
    V x[2 * N], y[2 * N], z[20];
    for (int i = 0; i < 20; i++)
        z[i] = TG_SPREAD(0.0);
    for (int group = 0; group < 5; group++) {
        const int wanted = group == 0 ? 1 : group == 1 ? 1 | 2 : group == 2 ? 2 : 4;
        if (wanted & job->noisy)
            TG_FN(normals)(robot, (unsigned long long)k, (unsigned long long)group, job->seed, z + 4 * group);
    }
    for (int j = 0; j < N; j++) {
        out[j] = x[j] = job->noisy & 4 ? s[j] + TG_SPREAD(c[TG_SIGMA + 12 + j]) * z[12 + j] : s[j];
        out[N + j] = x[N + j] = job->noisy & 1 ? s[N + j] + TG_SPREAD(c[TG_SIGMA + j]) * z[j] : s[N + j];
        out[2 * N + j] = job->noisy & 2 ? s[2 * N + j] + TG_SPREAD(c[TG_SIGMA + 6 + j]) * z[6 + j] : s[2 * N + j];
    }
    TG_FN(feel)(x, believed, y);
    const TG_MASK begun = TG_LT(TG_SPREAD(0.5), s[6 * N]);
    const V h = TG_SPREAD(c[TG_PERIOD]);
    for (int j = 0; j < N; j++) {
        const V raw = TG_SHARE(y[j] - s[4 * N + j], h) - out[2 * N + j] -
                      TG_SPREAD(0.5) * (s[5 * N + j] + y[N + j]);
        const V next = s[3 * N + j] + TG_SPREAD(c[TG_WEIGHT + j]) * (raw - s[3 * N + j]);
        out[3 * N + j] = s[3 * N + j] = TG_SELECT(begun, next, s[3 * N + j]);
        s[4 * N + j] = y[j];
        s[5 * N + j] = y[N + j];
    }
    s[6 * N] = TG_SPREAD(1.0);
}

/* some periods of TG_WIDTH robots under a torque, or none: a sample as it is. sample: number of the newest before */
TG_INLINE void TG_FN(env_periods)(const tg_envs *job, const TG_REAL *believed, const TG_REAL *c,
                                  const unsigned long long *robot, const V *constants, const V *action,
                                  long long periods, long long sample, V *s, V *out)
{
    V x[3 * N + TG_SURFACE], met[15], a[N];
    const V *const skin = constants + TG_CONSTANTS_accelerate, *const surface = skin + TG_CONSTANTS_touch;
    const V h = TG_SPREAD(c[TG_PERIOD]);
    V peak = TG_SPREAD(0.0), sum = TG_SPREAD(0.0);
    if (periods)
        for (int j = 0; j < N; j++) {
            const V limit = TG_SPREAD(c[TG_LIMIT + j]);
            s[2 * N + j] = TG_FN(smaller)(TG_FN(larger)(action[j], -limit), limit);
        }
    TG_ONCE
    for (long long k = 0; k <= periods; k++) {
        for (int j = 0; j < 2 * N; j++)
            x[j] = s[j];
        for (int i = 0; i < TG_SURFACE; i++)
            x[2 * N + i] = surface[i];
        TG_FN(touch)(x, skin, 0, met);
        const V size = TG_SQRT(met[N] * met[N] + met[N + 1] * met[N + 1] + met[N + 2] * met[N + 2]);
        if (k == periods) {
            peak = TG_FN(larger)(peak, size);
            sum = periods ? sum : size;
            break;
        }
        peak = TG_FN(larger)(peak, size);
        sum = sum + size;
        for (int j = 0; j < N; j++)
            x[2 * N + j] = s[2 * N + j] + met[j];
        TG_FN(accelerate)(x, constants, 0, a);
        for (int j = 0; j < N; j++) {
            s[N + j] = s[N + j] + h * a[j];
            s[j] = s[j] + h * s[N + j];
        }
        TG_FN(env_sample)(job, believed, c, robot, sample + k + 1, s, out);
    }
    if (!periods)
        TG_FN(env_sample)(job, believed, c, robot, sample, s, out);
    for (int i = 0; i < 9; i++)
        out[4 * N + i] = met[N + i];
    out[4 * N + 9] = peak;
    out[4 * N + 10] = periods ? sum / TG_SPREAD((TG_REAL)periods) : sum;
}

/* one block of robots from number `start` of the call on */
TG_INLINE void TG_FN(env_block)(const tg_envs *job, const TG_REAL *believed, const TG_REAL *c, long long start)
{
    const int lanes = job->count - start < TG_WIDTH ? (int)(job->count - start) : TG_WIDTH;
    V constants[TG_ENV_ROBOT], s[TG_ENV_STATE], out[TG_ENV_OUT], action[N];
    unsigned long long robot[TG_WIDTH];
    for (int l = 0; l < TG_WIDTH; l++) { /* the last robot fills lanes that are left over */
        const long long row = start + (l < lanes ? l : lanes - 1);
        robot[l] = (unsigned long long)(job->first + row);
        for (int i = 0; i < TG_ENV_ROBOT; i++)
            ((TG_REAL *)&constants[i])[l] = (TG_REAL)job->robots[TG_PLACE(row, i, TG_ENV_ROBOT, job->count)];
        for (int i = 0; i < TG_ENV_STATE; i++)
            ((TG_REAL *)&s[i])[l] = (TG_REAL)job->state[TG_PLACE(row, i, TG_ENV_STATE, job->count)];
        for (int j = 0; j < N; j++)
            ((TG_REAL *)&action[j])[l] = (TG_REAL)job->action[row * N + j];
    }
    TG_FN(env_periods)(job, believed, c, robot, constants, action, job->periods, job->sample, s, out);
    for (int l = 0; l < lanes; l++) {
        for (int i = 0; i < TG_ENV_STATE; i++)
            job->state[TG_PLACE(start + l, i, TG_ENV_STATE, job->count)] = (double)((const TG_REAL *)&s[i])[l];
        for (int i = 0; i < TG_ENV_OUT; i++)
            job->out[TG_PLACE(start + l, i, TG_ENV_OUT, job->count)] = (double)((const TG_REAL *)&out[i])[l];
    }
}

#ifndef __CUDACC__
static TG_MAYBE_UNUSED void TG_FN(envs)(const tg_envs *job, TG_REAL *believed)
{
    TG_REAL c[TG_RESIDUAL];
    for (int i = 0; i < TG_RESIDUAL; i++)
        c[i] = (TG_REAL)job->common[i];
    for (int i = 0; i < TG_CONSTANTS_feel; i++)
        believed[i] = (TG_REAL)job->belief[i];
    for (long long start = 0; start < job->count; start += TG_WIDTH)
        TG_FN(env_block)(job, believed, c, start);
}
#endif
