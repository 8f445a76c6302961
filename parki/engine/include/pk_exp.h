// Exponentials of devices without slow code, for workunits with PK_EXP_ROUNDED (parki.engine.workunit.HINTS).
//
// e^x = 2^n 2^f with k = x log2(e), n the integer next to k, and f = k - n, |f| <= 1/2.  2^f is a polynomial, a minimax
// fit of its relative error; n is added to the exponent.  For doubles x is at most 708, for floats 88; results below
// 2^-1021 (floats: 2^-126) are 0, chosen without a branch, and NaN gives NaN.
#ifndef PK_EXP_H
#define PK_EXP_H
#include "pk_seeds.h"

// Coefficients, the highest degree first, in constant memory: compilers would load literals before each operation.
#if defined(PK_EXP_SHORTEST)
PK_CONSTANT double pk_exp2_table[] = {  // 7.5e-8
  0.0013276472631950876, 0.009675541343121328, 0.055507132718556444, 0.2402211972371072, 0.6931469670650352,
  1.0000000716547142};
#elif defined(PK_EXP_SHORTER)
PK_CONSTANT double pk_exp2_table[] = {  // 1.9e-9
  0.00015345812161311629, 0.0013399931177239738, 0.009618488956331182, 0.05550328777105325, 0.24022646890645522,
  0.6931472057371958, 1.0000000005541647};
#elif defined(PK_EXP_SHORT)
PK_CONSTANT double pk_exp2_table[] = {  // 7.7e-13
  1.317585882142459e-06, 1.530973729473456e-05, 0.00015403851744514194, 0.0013333452062791777, 0.00961812854287041,
  0.05550410939341089, 0.2402265069888032, 0.6931471805465144, 0.9999999999997623};
#else
PK_CONSTANT double pk_exp2_table[] = {  // 3e-18
  4.435282706957277e-10, 7.074105613508143e-09, 1.0178198021671931e-07, 1.32154330896764e-06, 1.5252733488989525e-05,
  0.00015403530462514432, 0.0013333558146789923, 0.009618129107588335, 0.055504108664819925, 0.24022650695910155,
  0.6931471805599453, 1.0};
#endif
#define PK_EXP_TERMS (int32_t)(sizeof pk_exp2_table / sizeof *pk_exp2_table)
#define PK_MAGIC 0x1.8p52      // x + magic rounds x to an integer, in the low bits of the sum
#define PK_TOO_FAR 0x408ff000  // high word of 1022

PK_FUNCTION double pk_exp(double x) {
  const double u = x * 0x1.71547652b82fep+0 + PK_MAGIC, n = u - PK_MAGIC, f = x * 0x1.71547652b82fep+0 - n;
  double p = pk_exp2_table[0];
#pragma unroll
  for (int32_t k = 1; k < PK_EXP_TERMS; k++) p = p * f + pk_exp2_table[k];
  // Beyond the range the high word is 0, or that of NaN.  Devices compare floats by magnitude in one instruction.
  const int32_t high = pk_high(n), scaled = (int32_t)((uint32_t)pk_high(p) + ((uint32_t)pk_low(u) << 20));
  const float rough = pk_float(high);
  const bool inside = pk_magnitude(rough) < pk_float(PK_TOO_FAR);
  return pk_joined(inside ? scaled : pk_word(rough - rough), inside ? pk_low(p) : 0);
}
PK_FUNCTION float pk_exp(float x) { return pk_exp2_seed(x * 0x1.715476p+0f); }
#endif
