/* The number type of the kernels, in one of several widths; included again for each.
 *
 * Before including define TG_WIDTH (1, 2, 4 or 8) and TG_SUFFIX. Afterwards V is the value, TG_MASK the truth value,
 * TG_FN(name) the name of a function of this width, and the macros below are the operations that C has no operator
 * for. Each is one IEEE operation per lane (or bit logic), so every width gives the same bits.
 */
#undef V
#undef TG_MASK
#undef TG_FN
#undef TG_FN_
#undef TG_FN__
#undef TG_SPREAD
#undef TG_SPREAD_MASK
#undef TG_SELECT
#undef TG_LT
#undef TG_LE
#undef TG_SQRT
#undef TG_ABS
#undef TG_ROUND
#undef TG_IS_SCALAR
#undef TG_ANGLES
#undef TG_SINCOS

#define TG_FN__(name, suffix) tg_##name##_##suffix
#define TG_FN_(name, suffix) TG_FN__(name, suffix)
#define TG_FN(name) TG_FN_(name, TG_SUFFIX)

#ifndef TG_COMMON_MACROS
#define TG_COMMON_MACROS
#if defined(__GNUC__)
#define TG_INLINE static inline __attribute__((always_inline, unused))
#define TG_KERNEL static __attribute__((noinline, unused))
#define TG_MAYBE_UNUSED __attribute__((unused))
#else
#define TG_INLINE static inline
#define TG_KERNEL static
#define TG_MAYBE_UNUSED
#define restrict __restrict
#endif
/* scalar operations, for parameters and for width 1 */
#define TG_U_SELECT(m, a, b) ((m) ? (a) : (b))
#define TG_U_LT(a, b) ((a) < (b))
#define TG_U_LE(a, b) ((a) <= (b))
#define TG_U_SQRT(x) sqrt(x)
#define TG_U_ABS(x) fabs(x)
/* nearest whole number, halves to even: adding 1.5 * 2^52 leaves no room for a fraction (|x| < 2^51) */
#define TG_MAGIC 6755399441055744.0
#define TG_U_ROUND(x) (((x) + TG_MAGIC) - TG_MAGIC)
#endif

#if TG_WIDTH == 1

#define TG_IS_SCALAR 1
#define V double
#define TG_MASK int
#define TG_SPREAD(x) (x)
#define TG_SPREAD_MASK(m) (m)
#define TG_SELECT TG_U_SELECT
#define TG_LT TG_U_LT
#define TG_LE TG_U_LE
#define TG_SQRT TG_U_SQRT
#define TG_ABS TG_U_ABS
#define TG_ROUND TG_U_ROUND
/* one state: the six angles' sines and cosines at once, in pairs of lanes (the same bits, half the time) */
#define TG_ANGLES(x) double sines[6], cosines[6]; TG_FN(angles)(x, sines, cosines);
#define TG_SINCOS(joint, angle, s, c) const double s = sines[joint], c = cosines[joint]; (void)s; (void)c;

#else

typedef double TG_FN(value) __attribute__((vector_size(8 * TG_WIDTH)));
typedef long long TG_FN(mask) __attribute__((vector_size(8 * TG_WIDTH)));
#define V TG_FN(value)
#define TG_MASK TG_FN(mask)
#if TG_WIDTH == 2
#define TG_REPEAT(x) {x, x}
#elif TG_WIDTH == 4
#define TG_REPEAT(x) {x, x, x, x}
#else
#define TG_REPEAT(x) {x, x, x, x, x, x, x, x}
#endif
TG_INLINE V TG_FN(spread)(double x) { V y = TG_REPEAT(x); return y; }
TG_INLINE TG_MASK TG_FN(spread_mask)(int m) { const long long x = m ? -1 : 0; TG_MASK y = TG_REPEAT(x); return y; }
TG_INLINE V TG_FN(select)(TG_MASK m, V a, V b) { return (V)((m & (TG_MASK)a) | (~m & (TG_MASK)b)); }
TG_INLINE V TG_FN(absolute)(V x) { const TG_MASK sign = TG_REPEAT(0x7fffffffffffffffLL); return (V)((TG_MASK)x & sign); }
TG_INLINE V TG_FN(root)(V x)
{
    V y;
    for (int i = 0; i < TG_WIDTH; i++)
        y[i] = sqrt(x[i]);
    return y;
}
#undef TG_REPEAT
#define TG_SPREAD(x) TG_FN(spread)(x)
#define TG_SPREAD_MASK(m) TG_FN(spread_mask)(m)
#define TG_SELECT(m, a, b) TG_FN(select)(m, a, b)
#define TG_LT(a, b) ((TG_MASK)((a) < (b)))
#define TG_LE(a, b) ((TG_MASK)((a) <= (b)))
#define TG_SQRT(x) TG_FN(root)(x)
#define TG_ABS(x) TG_FN(absolute)(x)
#define TG_ANGLES(x)
#define TG_SINCOS(joint, angle, s, c) V s, c; TG_FN(sincos)(angle, &s, &c);
#define TG_ROUND(x) (((x) + TG_SPREAD(TG_MAGIC)) - TG_SPREAD(TG_MAGIC))

#endif
