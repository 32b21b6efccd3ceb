/* Chance for fuzzing: the same seed throws the same numbers everywhere, odd ones among them. */
#ifndef TG_DRIVER_DICE_H
#define TG_DRIVER_DICE_H

#include <math.h>

typedef struct {
    unsigned long long seed;
    long reals, integers, booleans; /* how many there are of each */
} Dice;

/* splitmix64 of Steele, Lea and Flood: every seed gives its own sequence, the same everywhere */
static unsigned long long roll(Dice *d)
{
    unsigned long long z = (d->seed += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static long below(Dice *d, long n) { return n > 0 ? (long)(roll(d) % (unsigned long long)n) : 0; }
static int once_in(Dice *d, long n) { return below(d, n) == 0; }

static double any_number(Dice *d)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e308, -1e308, 1e-320, 0.0, -0.0, 1e7, -1e7, 1e100};
    if (once_in(d, 12))
        return odd[below(d, (long)(sizeof odd / sizeof *odd))];
    const double unit = (double)(roll(d) >> 11) / 9007199254740992.0;
    return (once_in(d, 4) ? 100.0 : 2.0) * (2.0 * unit - 1.0);
}

/* steps that are none, and steps short enough that a fuzz ends */
static double any_step(Dice *d)
{
    static const double odd[] = {0.0, -1e-3, NAN, INFINITY, 1e-320, 1e300};
    return once_in(d, 5) ? odd[below(d, 6)] : 1e-3 * (double)(1 + below(d, 3));
}

#endif
