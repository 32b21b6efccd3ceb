/* An FMI 2.0 block of an arm: one translation unit, nothing but the C99 library.
 *
 *   cc -std=c99 -O2 -ffp-contract=off -fPIC -shared -fvisibility=hidden fmu.c -lm -o NAME.so
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2.h"
#include "model.h"
#include "scalar.h"

#include "kernels.h"

#include "instance.h"
#include "resources.h"

#include "linear.h"
#include "part_pose.h"
#ifdef HAS_MASS
#include "part_mass.h"
#endif
#ifdef HAS_IK
#include "part_ik.h"
#endif
#ifdef HAS_PLANT
#include "part_plant.h"
#endif
#if defined(HAS_INVERSE) || defined(HAS_CONTROL)
#include "part_control.h"
#endif
#ifdef HAS_OBSERVER
#include "part_observer.h"
#endif
#include "block.h"

#include "values.h"
#include "lifecycle.h"
#include "states.h"
#include "exchange.h"
#include "cosimulation.h"
