// Reciprocal square roots of devices from a seed, for workunits with PK_RSQRT_FINITE (parki.engine.workunit.HINTS).
//
// The seed of a double has an error of 2^-20 at most: its e = 1 - x y^2 leaves 5/16 e^3 < 2^-58 of the result.  Zero
// and subnormal numbers have infinite seeds, which are replaced by 2^511: the result is finite, and wrong.
#ifndef PK_ROOTS_H
#define PK_ROOTS_H
#include "pk_seeds.h"

#define PK_LARGEST_SEED_FLOAT 9.223372036854775808e18f  // 2^63

PK_FUNCTION double pk_refined(double x, double y) {
  const double e = 1.0 - (x * y) * y;
  return y + (y * e) * (0.5 + 0.375 * e);
}
PK_FUNCTION double pk_rsqrt(double x) { return pk_refined(x, pk_seed(x)); }
PK_FUNCTION float pk_rsqrt(float x) {
  const float y = pk_seed(x);
  return y < PK_LARGEST_SEED_FLOAT ? y : PK_LARGEST_SEED_FLOAT;
}
#endif
