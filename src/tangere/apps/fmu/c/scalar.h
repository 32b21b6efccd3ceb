/* The number type of the generated kernels: plain doubles, one state at a time. */
#ifndef TG_SCALAR_H
#define TG_SCALAR_H

#include <math.h>
#include <string.h>

#if defined(__GNUC__)
#define TG_INLINE static inline __attribute__((unused))
#define TG_KERNEL static __attribute__((noinline))
#else
#define TG_INLINE static inline
#define TG_KERNEL static
#if defined(_MSC_VER)
#define restrict __restrict
#endif
#endif

#define V double
#define TG_MASK int
#define TG_FN(name) tg_##name
#define TG_SPREAD(x) (x)
#define TG_SPREAD_MASK(m) (m)
#define TG_SELECT(m, a, b) ((m) ? (a) : (b))
#define TG_LT(a, b) ((a) < (b))
#define TG_LE(a, b) ((a) <= (b))
#define TG_SQRT(x) sqrt(x)
#define TG_ABS(x) fabs(x)
/* nearest whole number, halves to even: adding 1.5 * 2^52 leaves no room for a fraction (|x| < 2^51) */
#define TG_MAGIC 6755399441055744.0
#define TG_ROUND(x) (((x) + TG_MAGIC) - TG_MAGIC)
/* 2^n of a whole number: it stands in the last bits of n + TG_MAGIC, from where it is moved up into the exponent */
#define TG_POWER_OF_TWO(n) tg_power_of_two(n)
TG_INLINE double tg_power_of_two(double n)
{
    const double shifted = n + TG_MAGIC;
    unsigned long long bits;
    double out;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + (1023ULL << 52);
    memcpy(&out, &bits, sizeof out);
    return out;
}
#define TG_U_SELECT TG_SELECT
#define TG_U_LT TG_LT
#define TG_U_LE TG_LE
#define TG_U_SQRT TG_SQRT
#define TG_U_ABS TG_ABS
#define TG_U_ROUND TG_ROUND
#define TG_ANGLES(x)
#define TG_SINCOS(joint, angle, s, c) double s, c; tg_sincos(angle, &s, &c);

#endif
