/* The number type of the kernels, in one of several widths; included again for each.
 *
 * Before including define TG_WIDTH (1, 2, 4, 8 or 16), TG_SUFFIX, and TG_SINGLE for float32 instead of float64.
 * Afterwards TG_REAL is the number, V the value of all lanes, TG_MASK the truth value, TG_FN(name) the name of a
 * function of this width, and the macros below are the operations that C has no operator for. Each is one IEEE
 * operation per lane (or bit logic), so every width gives the same bits.
 */
#undef V
#undef TG_REAL
#undef TG_BITS
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
#undef TG_POWER_OF_TWO
#undef TG_EXPONENT
#undef TG_MANTISSA
#undef TG_IS_SCALAR
#undef TG_ANGLES
#undef TG_SINCOS
#undef TG_MAGIC
#undef TG_FRACTION
#undef TG_BIAS
#undef TG_SHARE

#define TG_FN__(name, suffix) tg_##name##_##suffix
#define TG_FN_(name, suffix) TG_FN__(name, suffix)
#define TG_FN(name) TG_FN_(name, TG_SUFFIX)

#ifndef TG_COMMON_MACROS
#define TG_COMMON_MACROS
#if defined(__CUDACC__)
#define TG_INLINE static __device__ __forceinline__
#define TG_KERNEL static __device__ __forceinline__
#define TG_MAYBE_UNUSED
#define restrict __restrict__
#elif defined(__GNUC__)
#ifdef __cplusplus
#define restrict __restrict__
#endif
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
#define TG_U_ROUND(x) (((x) + 6755399441055744.0) - 6755399441055744.0)
#endif

/* TG_MAGIC: adding 1.5 * 2^52 (float32: 2^23) leaves no room for a fraction, so nearest whole number, halves to even */
#ifdef TG_SINGLE
#define TG_REAL float
#define TG_BITS int
#define TG_MAGIC 12582912.0f
#define TG_FRACTION 23
#define TG_BIAS 127
#else
#define TG_REAL double
#define TG_BITS long long
#define TG_MAGIC 6755399441055744.0
#define TG_FRACTION 52
#define TG_BIAS 1023
#endif

#if TG_WIDTH == 1

#define TG_IS_SCALAR 1
#define V TG_REAL
#define TG_MASK int
#define TG_SPREAD(x) ((TG_REAL)(x))
#define TG_SPREAD_MASK(m) (m)
#define TG_SELECT TG_U_SELECT
#define TG_LT TG_U_LT
#define TG_LE TG_U_LE
#ifdef TG_SINGLE
#define TG_SQRT(x) sqrtf(x)
#define TG_ABS(x) fabsf(x)
#else
#define TG_SQRT TG_U_SQRT
#define TG_ABS TG_U_ABS
#endif
TG_INLINE TG_BITS TG_FN(bits_of)(V x) { TG_BITS i; memcpy(&i, &x, sizeof i); return i; }
TG_INLINE V TG_FN(value_of)(TG_BITS i) { V x; memcpy(&x, &i, sizeof x); return x; }
/* one state: the six angles' sines and cosines at once, in pairs of lanes (the same bits, half the time) */
#ifdef TG_SINGLE
#define TG_ANGLES(x)
#define TG_SINCOS(joint, angle, s, c) V s, c; TG_FN(sincos)(angle, &s, &c);
#else
#define TG_ANGLES(x) double sines[6], cosines[6]; TG_FN(angles)(x, sines, cosines);
#define TG_SINCOS(joint, angle, s, c) const double s = sines[joint], c = cosines[joint]; (void)s; (void)c;
#endif

#else

typedef TG_REAL TG_FN(value) __attribute__((vector_size(sizeof(TG_REAL) * TG_WIDTH)));
typedef TG_BITS TG_FN(mask) __attribute__((vector_size(sizeof(TG_REAL) * TG_WIDTH)));
#define V TG_FN(value)
#define TG_MASK TG_FN(mask)
TG_INLINE V TG_FN(spread)(TG_REAL x) { return x - (V){0}; } /* the compiler makes one broadcast of it */
TG_INLINE TG_MASK TG_FN(spread_mask)(int m) { return (TG_BITS)(m ? -1 : 0) + (TG_MASK){0}; }
TG_INLINE V TG_FN(select)(TG_MASK m, V a, V b) { return (V)((m & (TG_MASK)a) | (~m & (TG_MASK)b)); }
TG_INLINE V TG_FN(absolute)(V x) { return (V)((TG_MASK)x & ~((TG_BITS)1 << (8 * sizeof(TG_REAL) - 1))); }
TG_INLINE V TG_FN(root)(V x)
{
    V y;
    for (int i = 0; i < TG_WIDTH; i++)
        y[i] = TG_U_SQRT(x[i]); /* of a float: rounded twice, which is the same as once */
    return y;
}
TG_INLINE TG_MASK TG_FN(bits_of)(V x) { return (TG_MASK)x; }
TG_INLINE V TG_FN(value_of)(TG_MASK i) { return (V)i; }
#define TG_SPREAD(x) TG_FN(spread)(x)
#define TG_SPREAD_MASK(m) TG_FN(spread_mask)(m)
#define TG_SELECT(m, a, b) TG_FN(select)(m, a, b)
#define TG_LT(a, b) ((TG_MASK)((a) < (b)))
#define TG_LE(a, b) ((TG_MASK)((a) <= (b)))
#define TG_SQRT(x) TG_FN(root)(x)
#define TG_ABS(x) TG_FN(absolute)(x)
#define TG_ANGLES(x)
#define TG_SINCOS(joint, angle, s, c) V s, c; TG_FN(sincos)(angle, &s, &c);

#endif

#define TG_SHARE(a, b) ((a) / (b)) /* b: the same again and again */
#define TG_ROUND(x) (((x) + TG_SPREAD(TG_MAGIC)) - TG_SPREAD(TG_MAGIC))
/* 2^n of a whole number: it stands in the last bits of n + TG_MAGIC, from where it is moved up into the exponent */
#define TG_POWER_OF_TWO(n) TG_FN(power_of_two)(n)
#define TG_EXPONENT(x) TG_FN(exponent)(x)
#define TG_MANTISSA(x) TG_FN(mantissa)(x)
TG_INLINE V TG_FN(power_of_two)(V n)
{
    return TG_FN(value_of)((TG_FN(bits_of)(n + TG_SPREAD(TG_MAGIC)) << TG_FRACTION) + ((TG_BITS)TG_BIAS << TG_FRACTION));
}
TG_INLINE V TG_FN(exponent)(V x) /* of a normal number > 0 */
{
    const TG_BITS one = (TG_BITS)(TG_BIAS + TG_FRACTION) << TG_FRACTION; /* 2^52: what is added to its bits is a number */
    return TG_FN(value_of)((TG_FN(bits_of)(x) >> TG_FRACTION) | one) -
           TG_SPREAD((TG_REAL)((TG_BITS)1 << TG_FRACTION) + (TG_REAL)TG_BIAS);
}
TG_INLINE V TG_FN(mantissa)(V x)
{
    const TG_BITS fraction = ((TG_BITS)1 << TG_FRACTION) - 1;
    return TG_FN(value_of)((TG_FN(bits_of)(x) & fraction) | ((TG_BITS)TG_BIAS << TG_FRACTION));
}
