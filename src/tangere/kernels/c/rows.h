/* Rows of numbers into lanes and back, and sines of neighbouring angles in lanes; one copy per width. */

TG_INLINE void TG_FN(sincos_at)(const double *x, double *sines, double *cosines)
{
    V angle, s, c;
    memcpy(&angle, x, sizeof angle);
    TG_FN(sincos)(angle, &s, &c);
    memcpy(sines, &s, sizeof s);
    memcpy(cosines, &c, sizeof c);
}

#undef TG_COLUMN
#if TG_WIDTH == 1
#define TG_COLUMN(p, n) (p)[0]
#elif TG_WIDTH == 2
#define TG_COLUMN(p, n) (V){(p)[0], (p)[n]}
#elif TG_WIDTH == 4
#define TG_COLUMN(p, n) (V){(p)[0], (p)[n], (p)[2 * (n)], (p)[3 * (n)]}
#else
#define TG_COLUMN(p, n)                                                                                                \
    (V){(p)[0], (p)[n], (p)[2 * (n)], (p)[3 * (n)], (p)[4 * (n)], (p)[5 * (n)], (p)[6 * (n)], (p)[7 * (n)]}
#endif

/* samples are rows of `size` numbers; x[j] holds entry j of TG_WIDTH samples (the last one repeated in the tail) */
TG_INLINE void TG_FN(gather)(V *x, const double *rows, int size, int lanes)
{
    if (lanes == TG_WIDTH) {
        for (int j = 0; j < size; j++)
            x[j] = TG_COLUMN(rows + j, size);
        return;
    }
    double *flat = (double *)x;
    for (int j = 0; j < size; j++)
        for (int i = 0; i < TG_WIDTH; i++)
            flat[j * TG_WIDTH + i] = rows[(i < lanes ? i : lanes - 1) * size + j];
}

#if TG_WIDTH > 1 && !defined(__clang__)
/* TG_WIDTH x TG_WIDTH transpose: log2(width) rounds of shuffles of row pairs */
TG_INLINE void TG_FN(transpose)(V *a)
{
#if TG_WIDTH == 2
    const TG_MASK lo = {0, 2}, hi = {1, 3};
    const V r0 = __builtin_shuffle(a[0], a[1], lo), r1 = __builtin_shuffle(a[0], a[1], hi);
    a[0] = r0; a[1] = r1;
#elif TG_WIDTH == 4
    const TG_MASK lo = {0, 4, 2, 6}, hi = {1, 5, 3, 7}, lo2 = {0, 1, 4, 5}, hi2 = {2, 3, 6, 7};
    V b[4];
    for (int i = 0; i < 4; i += 2) {
        b[i] = __builtin_shuffle(a[i], a[i + 1], lo);
        b[i + 1] = __builtin_shuffle(a[i], a[i + 1], hi);
    }
    for (int i = 0; i < 2; i++) {
        a[i] = __builtin_shuffle(b[i], b[i + 2], lo2);
        a[i + 2] = __builtin_shuffle(b[i], b[i + 2], hi2);
    }
#else
    const TG_MASK lo = {0, 8, 2, 10, 4, 12, 6, 14}, hi = {1, 9, 3, 11, 5, 13, 7, 15};
    const TG_MASK lo2 = {0, 1, 8, 9, 4, 5, 12, 13}, hi2 = {2, 3, 10, 11, 6, 7, 14, 15};
    const TG_MASK lo4 = {0, 1, 2, 3, 8, 9, 10, 11}, hi4 = {4, 5, 6, 7, 12, 13, 14, 15};
    V b[8], c[8];
    for (int i = 0; i < 8; i += 2) {
        b[i] = __builtin_shuffle(a[i], a[i + 1], lo);
        b[i + 1] = __builtin_shuffle(a[i], a[i + 1], hi);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            c[i + j] = __builtin_shuffle(b[i + j], b[i + j + 2], lo2);
            c[i + j + 2] = __builtin_shuffle(b[i + j], b[i + j + 2], hi2);
        }
    for (int i = 0; i < 4; i++) {
        a[i] = __builtin_shuffle(c[i], c[i + 4], lo4);
        a[i + 4] = __builtin_shuffle(c[i], c[i + 4], hi4);
    }
#endif
}
#define TG_HAS_TRANSPOSE 1
#else
#define TG_HAS_TRANSPOSE 0
#endif

/* entry j of the samples, y[j], back into rows of `size` numbers */
TG_INLINE void TG_FN(scatter)(double *rows, const V *y, int size, int lanes)
{
    int j = 0;
#if TG_HAS_TRANSPOSE
    if (lanes == TG_WIDTH)
        for (; j + TG_WIDTH <= size; j += TG_WIDTH) {
            V block[TG_WIDTH];
            for (int i = 0; i < TG_WIDTH; i++)
                block[i] = y[j + i];
            TG_FN(transpose)(block);
            for (int i = 0; i < TG_WIDTH; i++)
                memcpy(rows + (size_t)i * size + j, &block[i], sizeof(V));
        }
#endif
    const double *flat = (const double *)y;
    for (int i = 0; i < lanes; i++)
        for (int l = j; l < size; l++)
            rows[i * size + l] = flat[l * TG_WIDTH + i];
}
#undef TG_HAS_TRANSPOSE
