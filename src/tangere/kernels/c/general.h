/* What the two source files of the extension share: shapes of kernels, and the kernels of arms that are no UR. */
#ifndef TG_GENERAL_H
#define TG_GENERAL_H
#include <float.h>
#include <stddef.h>

typedef struct {
    const char *name;
    int inputs;
    const char *names[3];
    int sizes[3];
    double limits[3]; /* largest magnitude of an entry: a joint angle's range reduction ends at 1e6 rad */
    int outputs;
    int dims[3][4]; /* number of dimensions, then the dimensions */
    int total;
} tg_shape;

static inline int tg_output_size(const tg_shape *s, int o)
{
    const int *d = s->dims[o];
    return d[0] == 0 ? 1 : d[0] == 1 ? d[1] : d[0] == 2 ? d[1] * d[2] : d[1] * d[2] * d[3];
}

#include "tg_structures.h"

/* a set of kernels for as many joints (kernels/general.py); an arm with fewer uses the first of them */
typedef struct {
    int joints, parameters;
} tg_structure;

extern const tg_structure tg_structures[];
#define TG_STRUCTURES 3
#define TG_SIX 0 /* the first structure: six joints that turn */

/* kernel k of structure t for one state: inputs of an arm with `dof` joints in a row, all outputs in a row */
void tg_general_one(int t, int k, int dof, const double *x, const double *P, double *y);

typedef void tg_rows_fn(int t, int k, int dof, ptrdiff_t n, const double *const *in, const double *P,
                        double *const *out);
/* Rounds of kinematics/inverse_polish.py for as many searches of one pose (R row by row, p), at most so many each.
 * A search begins with turned angles in its first six numbers. free: 0 holds joint 6. */
typedef double tg_search[TG_SEARCH];
typedef void tg_polish_fn(const double *P, const double *pose, double free, int rounds, int count, tg_search *searches);
/* the kernels of six joints in the vector form of that name: one state of turned angles, and many */
typedef struct {
    const char *name;
    void (*const *one)(const double *restrict, const double *restrict, double *restrict);
    tg_rows_fn *many;
    tg_polish_fn *polish;
} tg_six_forms;
extern const tg_six_forms tg_six[]; /* the last one has no name and runs everywhere */

/* kernel k of structure t for n states in rows: one array per input and output */
void tg_general_many(const tg_six_forms *six, int t, int k, int dof, ptrdiff_t n, const double *const *in,
                     const double *P, double *const *out);
#endif
