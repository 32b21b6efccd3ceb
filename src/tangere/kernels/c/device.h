/* Operations at width 1 as a GPU does them best, the same bits as everywhere; included after lanes.h. */

/* sine and cosine of what is left of x (polynomials.reduced), by the number of quarters in it, swapped and negated: that
 * stands in the last bits of the sum, and whole numbers are worked out beside the others */
TG_INLINE void TG_FN(quarters)(V x, V *out)
{
    const V two_over_pi = (V)0x1.45f306dc9c883p-1;
    const int n = (int)TG_FN(bits_of)(x * two_over_pi + TG_SPREAD(TG_MAGIC)), top = 8 * (int)sizeof(V) - 2;
    const V s = n & 1 ? out[1] : out[0], c = n & 1 ? out[0] : out[1];
    out[0] = TG_FN(value_of)(TG_FN(bits_of)(s) ^ (TG_BITS)(n & 2) << top);
    out[1] = TG_FN(value_of)(TG_FN(bits_of)(c) ^ (TG_BITS)((n + 1) & 2) << top);
}

/* Quotients and roots without the branches for numbers that do not occur, which keep apart what may go side by side.
 *
 * TG_OVER(a, b): a / b, by the steps that the compiler takes before its branch; beyond some
 * 1e+-290 (float32: 1e+-30) the last bit may be off, and of 0 the sign. The root of a subnormal number comes out as that number.
 * TG_SHARE(a, b): the same of b that does not change in a loop, out of which its inverse is taken. TG_QUICK: float32 whose last bits nobody asks for.
 */
#if defined(__CUDACC__) && !defined(TG_QUICK)
#undef TG_SQRT
#undef TG_SHARE
#define TG_SQRT(x) TG_FN(root)(x)
#define TG_OVER(a, b) TG_FN(over)(a, b)
#define TG_SHARE(a, b) TG_FN(share)(a, b)

/* the remainder is exact, so with a rounded inverse the sum is the rounded quotient (Markstein), of all b but those next
 * below a power of two */
TG_INLINE V TG_FN(share)(V a, V b)
{
    const V inverse = (V)1.0 / b, q = a * inverse, y = fma(fma(-b, q, a), inverse, q);
    return y == y ? y : q; /* infinite ones */
}

TG_INLINE V TG_FN(over)(V a, V b)
{
    V y;
#ifdef TG_SINGLE
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(b));
    const V first = y;
    y = fma(y, fma(-b, y, 1.0f), y);
    V q = a * y;
    q = fma(fma(-b, q, a), y, q);
#else
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(b));
    const V first = y;
    y = TG_FN(value_of)(TG_FN(bits_of)(y) | 1); /* above 1 of the largest b below 1, else the steps end at 1 */
    const V e = fma(-b, y, 1.0);
    y = fma(y, fma(e, e, e), y);
    y = fma(y, fma(-b, y, 1.0), y);
    V q = a * y;
#endif
    q = fma(fma(-b, q, a), y, q);
    return q == q ? q : a * first; /* one of them is 0 or infinite */
}

TG_INLINE V TG_FN(root)(V x)
{
    V y;
#ifdef TG_SINGLE
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    y = fma(0.5f * y, fma(-(x * y), y, 1.0f), y);
#else
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const V e = fma(-(y * y), x, 1.0);
    y = fma(fma(e, 0.375, 0.5), e * y, y);
#endif
    V s = x * y;
    s = fma(fma(-s, s, x), (V)0.5 * y, s);
    return s == s || x < (V)0 ? s : x; /* 0, infinite */
}
#else
#define TG_OVER(a, b) ((a) / (b))
#endif
