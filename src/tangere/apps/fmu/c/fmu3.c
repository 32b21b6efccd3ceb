/* An FMI 3.0 block of an arm: one translation unit, nothing but the C99 library.
 *
 *   cc -std=c99 -O2 -ffp-contract=off -fPIC -shared -fvisibility=hidden fmu3.c -lm -o NAME.so
 *
 * The block is that of fmu.c, whose functions of FMI 2.0 stay inside; those of FMI 3.0 stand before them.
 */
#if defined(__GNUC__)
#define FMI2_EXPORT static __attribute__((unused))
#else
#define FMI2_EXPORT static
#endif
#include "fmu.c"

#include "fmi3.h"
#include "instance3.h"
#include "values3.h"
#include "modes3.h"
