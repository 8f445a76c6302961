// Mathematics of the generated host code: templates over V = double, float or a pk_vec of them with any number of lanes.
//
// Largest errors in ulp of the result, for the flags the engine uses (-ffp-contract=fast, no -ffast-math):
//
//   function                    double   float   range
//   pk_rsqrt                    @        @       all; subnormal arguments too
//   pk_exp                      @        @       all; results underflow gradually
//   pk_erfc                     @        @       all; below the smallest normal number: ulp of that one
//   pk_erf                      @        @       all
//   pk_sin, pk_cos              @        @       |x| < 1e5; beyond: libm
//   pk_sqrt                     0.5      0.5     all (correctly rounded, like fabs, fmin, fmax, floor, ceil)
//   pk_log pk_expm1 pk_tan pk_sinh pk_cosh pk_tanh pk_pow: libm lane by lane; none is meant for an inner loop
//
// NaN gives NaN (but fmin and fmax return the other argument), zeros and infinities are right, and lanes that hold garbage
// cost nothing but their own result: no traps, no loops that depend on the data.  The polynomials are minimax fits
// (Remez, weighted for the relative error of the function), their relative errors are given beside them.
#ifndef PK_MATH_H
#define PK_MATH_H

#include "pk_vec.h"

// Constants -----------------------------------------------------------------------------------------------------------
template <class T>
struct pk_k;

template <>
struct pk_k<double> {
  static constexpr int digits = 52;
  static constexpr double infinity = __builtin_inf();
  // x + magic rounds x to an integer and leaves it in the low bits; magic16 to sixteenths.
  static constexpr double magic = 0x1.8p52, magic16 = 0x1.8p48;
  static constexpr double log2e = 0x1.71547652b82fep+0;
  // ln 2 in two parts: n * ln2_high is exact for |n| < 2^15.
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
  static constexpr double exp_min = -746.0, exp_max = 710.0;
  static constexpr double erfc_shift = 4.0, erfc_max = 27.5;
  static constexpr int64_t upper_half = -0x8000000;  // clears 27 bits: the square of the rest is exact
};
template <>
struct pk_k<float> {
  static constexpr int digits = 23;
  static constexpr float infinity = __builtin_inff();
  static constexpr float magic = 0x1.8p23f, magic16 = 0x1.8p19f;
  static constexpr float log2e = 0x1.715476p+0f;
  static constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;
  static constexpr float exp_min = -104.0f, exp_max = 89.0f;
  static constexpr float erfc_shift = 3.0f, erfc_max = 10.4f;
  static constexpr int32_t upper_half = -0x1000;
};

// Coefficients in ascending order.
template <class T>
struct pk_exp_poly;  // (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2
template <>
struct pk_exp_poly<double> {  // 4e-18
  static constexpr double c[] = {0.5000000000000011,     0.1666666666666641,     0.04166666666652919,
                                 0.008333333333495627,   0.0013888888943921454,  0.00019841269504751636,
                                 2.4801492763973955e-05, 2.7557587357531655e-06, 2.7630378228186743e-07,
                                 2.4999960208336418e-08};
};
template <>
struct pk_exp_poly<float> {  // 3e-9
  static constexpr float c[] = {0.4999999403953552f, 0.1666651964187622f, 0.04166839271783829f, 0.0083687799051404f,
                                0.001381447073072195f};
};
template <class T>
struct pk_exp16_poly;  // the same for |r| <= ln(2) / 32
template <>
struct pk_exp16_poly<double> {  // 1e-17
  static constexpr double c[] = {0.499999999999996, 0.16666666664409005, 0.041666666693331286, 0.008333472197613314,
                                 0.0013888593981220133};
};
template <>
struct pk_exp16_poly<float> {  // 2e-9
  static constexpr float c[] = {0.5000162124633789f, 0.16666719317436218f};
};
template <class T>
struct pk_erfc_poly;  // (x + s) e^(x^2) erfc(x) in t = (x - s) / (x + s), s = erfc_shift, for 0 <= x <= erfc_max
template <>
struct pk_erfc_poly<double> {  // 2e-17
  static constexpr double c[] = {1.095995661000491,       -0.9765487290808824,    0.7732087022652407,
                                 -0.5408538313131862,     0.33085158787779273,    -0.17401093724153294,
                                 0.0763815149141798,      -0.026370053315831865,  0.006112055602588817,
                                 -0.00028095907698580977, -0.00045505236283366335, 0.0001768139434767526,
                                 -3.636299910353651e-06,  -1.8864719827011305e-05, 4.6966735903993205e-06,
                                 1.4325844598133286e-06,  -8.48390370695569e-07,  -8.693053061629213e-08,
                                 1.242104817817606e-07,   9.604508171968083e-09,  -1.3782343076902805e-08,
                                 -2.744760183055418e-09};
};
template <>
struct pk_erfc_poly<float> {  // 2e-9
  static constexpr float c[] = {1.0740069150924683f,    -0.8833944797515869f,  0.590228259563446f,
                                -0.310465931892395f,    0.11952928707625793f,  -0.026840291917324066f,
                                -0.0012276655761525035f, 0.003080814378336072f, -0.00048082394641824067f,
                                -0.00032410913263447583f};
};
template <class T>
struct pk_erf_poly;  // erf(x) / x in x^2 for |x| <= 1/2
template <>
struct pk_erf_poly<double> {  // 2e-20
  static constexpr double c[] = {1.1283791670955126,     -0.3761263890318375,    0.11283791670954864,
                                 -0.026866170644997283,  0.005223977621966354,   -0.0008548326504821469,
                                 0.00012055285797237177, -1.4922987191422026e-05, 1.6370885767406899e-06,
                                 -1.4617782204679245e-07};
};
template <>
struct pk_erf_poly<float> {  // 1e-9
  static constexpr float c[] = {1.1283791065216064f, -0.37612608075141907f, 0.11282821744680405f, -0.026757100597023964f,
                                0.004717798437923193f};
};
template <class T>
struct pk_sin_poly;  // (sin(x) / x - 1) / x^2 in x^2 for |x| <= pi / 4
template <>
struct pk_sin_poly<double> {  // 4e-18
  static constexpr double c[] = {-0.1666666666666663,   0.008333333333322063,    -0.00019841269829542774,
                                 2.755731360456136e-06, -2.505074504122845e-08, 1.5896067633966043e-10};
};
template <>
struct pk_sin_poly<float> {  // 4e-9
  static constexpr float c[] = {-0.16666655242443085f, 0.00833215843886137f, -0.00019514949235599488f};
};
template <class T>
struct pk_cos_poly;  // (cos(x) - 1 + x^2 / 2) / x^4 in x^2 for |x| <= pi / 4
template <>
struct pk_cos_poly<double> {  // 6e-20
  static constexpr double c[] = {0.041666666666666595,   -0.0013888888888872975, 2.4801587288799933e-05,
                                 -2.755731416395999e-07, 2.0875698707236103e-09, -1.1358423485032887e-11};
};
template <>
struct pk_cos_poly<float> {  // 1e-10
  static constexpr float c[] = {0.04166664555668831f, -0.0013887312961742282f, 2.443279117869679e-05f};
};

// Coefficients FROM ... FROM + N - 1 of C, by Estrin's scheme: kernels are bound by latency, and this is the short path.
template <class C, int FROM, int N, class V>
PK_INLINE V pk_estrin(V x, V x2, V x4, V x8, V x16) {
  if constexpr (N == 1)
    return pk_splat<V>(C::c[FROM]);
  else if constexpr (N == 2)
    return C::c[FROM] + C::c[FROM + 1] * x;
  else {
    constexpr int LOW = N > 16 ? 16 : N > 8 ? 8 : N > 4 ? 4 : 2;
    const V power = LOW == 16 ? x16 : LOW == 8 ? x8 : LOW == 4 ? x4 : x2;
    return pk_estrin<C, FROM, LOW>(x, x2, x4, x8, x16) + power * pk_estrin<C, FROM + LOW, N - LOW>(x, x2, x4, x8, x16);
  }
}
template <class C, class V>
PK_INLINE V pk_poly(V x) {
  const V x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  return pk_estrin<C, 0, sizeof(C::c) / sizeof(C::c[0])>(x, x2, x4, x8, x8 * x8);
}

// Native instructions -------------------------------------------------------------------------------------------------
// Square root, rounding and the minimum have no operator.  clang has element-wise builtins and finds the minimum itself.
// pk_lesser(a, b) is a < b ? a : b, pk_greater(a, b) is a > b ? a : b: b if one is NaN.
#if defined(__SSE2__) && !defined(__clang__)
#define PK_NATIVE_ROOT(V, SQRT, LESS, GREATER)            \
  PK_INLINE V pk_native_sqrt(V x) { return SQRT; }        \
  PK_INLINE V pk_lesser(V a, V b) { return LESS; }        \
  PK_INLINE V pk_greater(V a, V b) { return GREATER; }
#define PK_NATIVE_ROUND(V, FLOOR, CEIL)                   \
  PK_INLINE V pk_native_floor(V x) { return FLOOR; }      \
  PK_INLINE V pk_native_ceil(V x) { return CEIL; }
#if defined(__AVX512F__)
