/* Small linear systems. */

/* M = L L^T in place (lower half of a row-major DOF x DOF); 0 where M is not positive definite */
static inline int cholesky(double *M)
{
    for (int j = 0; j < DOF; j++) {
        double d = M[(DOF + 1) * j];
        for (int k = 0; k < j; k++)
            d -= M[DOF * j + k] * M[DOF * j + k];
        if (!(d > 0.0))
            return 0;
        M[(DOF + 1) * j] = sqrt(d);
        for (int i = j + 1; i < DOF; i++) {
            double s = M[DOF * i + j];
            for (int k = 0; k < j; k++)
                s -= M[DOF * i + k] * M[DOF * j + k];
            M[DOF * i + j] = s / M[(DOF + 1) * j];
        }
    }
    return 1;
}

/* x := (L L^T)^-1 x */
static inline void cholesky_solve(const double *L, double *x)
{
    for (int i = 0; i < DOF; i++) {
        for (int k = 0; k < i; k++)
            x[i] -= L[DOF * i + k] * x[k];
        x[i] /= L[(DOF + 1) * i];
    }
    for (int i = DOF - 1; i >= 0; i--) {
        for (int k = i + 1; k < DOF; k++)
            x[i] -= L[DOF * k + i] * x[k];
        x[i] /= L[(DOF + 1) * i];
    }
}

#ifdef HAS_IK
/* x := A^-1 x by elimination with row exchanges, A (36) destroyed; 0 where A is singular */
static int gauss_solve(double *A, double *x)
{
    for (int c = 0; c < 6; c++) {
        int pivot = c;
        for (int i = c + 1; i < 6; i++)
            if (fabs(A[6 * i + c]) > fabs(A[6 * pivot + c]))
                pivot = i;
        if (!(fabs(A[6 * pivot + c]) > 1e-12)) /* m, or none: a thousand roundings of an arm's length */
            return 0;
        for (int j = 0; j < 6; j++) {
            const double t = A[6 * c + j];
            A[6 * c + j] = A[6 * pivot + j];
            A[6 * pivot + j] = t;
        }
        const double t = x[c];
        x[c] = x[pivot];
        x[pivot] = t;
        for (int i = c + 1; i < 6; i++) {
            const double f = A[6 * i + c] / A[7 * c];
            for (int j = c; j < 6; j++)
                A[6 * i + j] -= f * A[6 * c + j];
            x[i] -= f * x[c];
        }
    }
    for (int i = 5; i >= 0; i--) {
        for (int j = i + 1; j < 6; j++)
            x[i] -= A[6 * i + j] * x[j];
        x[i] /= A[7 * i];
    }
    return 1;
}
#endif
