// Constants and polynomials of pk_math.h, and the evaluation of the polynomials.
#ifndef PK_POLY_H
#define PK_POLY_H

#include "pk_native.h"

// Constants -----------------------------------------------------------------------------------------------------------
template <class T>
struct pk_k;

template <>
struct pk_k<double> {
  static constexpr int digits = 52;
  static constexpr double bias = 1023, least = 0x1p-1022, most = 0x1.fffffffffffffp+1023;  // normal numbers
  // x + magic rounds x to an integer, in the low bits of the sum; magic16 rounds to sixteenths.
  static constexpr double magic = 0x1.8p52, magic16 = 0x1.8p48;
  static constexpr double log2e = 0x1.71547652b82fep+0, ln2 = 0x1.62e42fefa39efp-1, root_half = 0x1.6a09e667f3bcdp-1;
  // ln 2 in two parts: n * ln2_high is exact for |n| < 2^15.
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
  static constexpr double exp_min = -746.0, exp_normal = -708.0, exp_max = 710.0;
  static constexpr double erfc_s = 3.5, erfc_t = 0x1.2492492492492p-1, erfc_max = 27.5;
  static constexpr uint64_t upper_half = ~0x7ffffffull;  // clears 27 bits: the square of the rest is exact
};
template <>
struct pk_k<float> {
  static constexpr int digits = 23;
  static constexpr float bias = 127, least = 0x1p-126f, most = 0x1.fffffep+127f;
  static constexpr float magic = 0x1.8p23f, magic16 = 0x1.8p19f;
  static constexpr float log2e = 0x1.715476p+0f, ln2 = 0x1.62e43p-1f, root_half = 0x1.6a09e6p-1f;
  static constexpr float ln2_high = 0x1.62ep-1f, ln2_low = 0x1.0bfbe8p-15f;
  static constexpr float exp_min = -104.0f, exp_normal = -87.0f, exp_max = 89.0f;
  static constexpr float erfc_s = 3.0f, erfc_t = 0x1.555556p-1f, erfc_max = 10.4f;
  static constexpr __UINT32_TYPE__ upper_half = ~0xfffu;
};

// Coefficients in ascending order; the comment of each struct is the relative error of the function.
template <class T>
struct pk_exp_poly;  // (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2
template <>
struct pk_exp_poly<double> {  // 4e-18
  static constexpr double c[] = {
    0.5000000000000011, 0.1666666666666641, 0.04166666666652919, 0.008333333333495627, 0.0013888888943921454,
    0.00019841269504751636, 2.4801492763973955e-05, 2.7557587357531655e-06, 2.7630378228186743e-07,
    2.4999960208336418e-08};
};
template <>
struct pk_exp_poly<float> {  // 3e-9
  static constexpr float c[] = {
    0.4999999403953552f, 0.1666651964187622f, 0.04166839271783829f, 0.0083687799051404f, 0.001381447073072195f};
};
template <class T>
struct pk_exp16_poly;  // the same for |r| <= ln(2) / 32
template <>
struct pk_exp16_poly<double> {  // 1e-17
  static constexpr double c[] = {
    0.499999999999996, 0.16666666664409005, 0.041666666693331286, 0.008333472197613314, 0.0013888593981220133};
};
template <>
struct pk_exp16_poly<float> {  // 2e-9
  static constexpr float c[] = {
    0.5000162124633789f, 0.16666719317436218f};
};
template <int DEGREE>
struct pk_exp2_short;  // 2^t for |t| <= 1/32; exactly 1 at 0
template <>
struct pk_exp2_short<4> {  // 2.5e-12
  static constexpr double c[] = {1, 0.6931471801650265, 0.24022650716551486, 0.05550573333038339,
                                 0.009618011391937386};
};
template <>
struct pk_exp2_short<3> {  // 1.6e-9
  static constexpr double c[] = {1, 0.6931471826668073, 0.24023428801648808, 0.05550213632376167};
};
template <>
struct pk_exp2_short<2> {  // 4.3e-7
  static constexpr double c[] = {1, 0.6931877207645474, 0.2402264299214505};
};
template <class T>
struct pk_erfc_poly;  // e^(x^2) erfc(x) (x + s) / s in t = 2 x / (x + s) - 1, s = erfc_s, for 0 <= x <= erfc_max
template <>
struct pk_erfc_poly<double> {  // 4e-17; chosen among its neighbours to be exactly 1 at x = 0
  static constexpr double c[] = {
    0.3105873112177886, -0.2679427784477463, 0.19831818475275578, -0.12435886477625704, 0.06449674904210469,
    -0.026376773325192455, 0.00757674853788041, -0.0009077286704964627, -0.0003729584861674426, 0.0002041519184212279,
    -1.2017743932182716e-05, -2.1364916324039884e-05, 5.327701300629746e-06, 2.0698383667044944e-06,
    -9.68987298029889e-07, -2.2762659683169185e-07, 1.5705359888464298e-07, 3.320567129753643e-08,
    -2.3664019222482202e-08, -6.172348344924992e-09, 2.515394141759158e-09, 9.119084761930004e-10};
};
template <>
struct pk_erfc_poly<float> {  // 2e-9
  static constexpr float c[] = {
    0.35800230503082275f, -0.2944648265838623f, 0.19674275815486908f, -0.10348863899707794f, 0.03984308987855911f,
    -0.008946762420237064f, -0.000409221975132823f, 0.0010269379708915949f, -0.00016027457604650408f,
    -0.00010803635086631402f};
};
template <class T>
struct pk_erf_poly;  // erf(x) / x - 1 in x^2 for |x| <= 1/2
template <>
struct pk_erf_poly<double> {  // 4e-18
  static constexpr double c[] = {
    0.12837916709551256, -0.37612638903183465, 0.11283791670924731, -0.026866170632686922, 0.005223977369830637,
    -0.0008548297478535936, 0.00012053321978880397, -1.4845522183924684e-05, 1.4722559172738813e-06};
};
template <>
struct pk_erf_poly<float> {  // 1e-9
  static constexpr float c[] = {
    0.12837916612625122f, -0.37612608075141907f, 0.11282821744680405f, -0.026757100597023964f, 0.004717798437923193f};
};
template <class T>
struct pk_log_poly;  // (log((1 + s) / (1 - s)) / s - 2) / s^2 in s^2 for |s| <= (sqrt(2) - 1)^2
template <>
struct pk_log_poly<double> {  // 1e-18
  static constexpr double c[] = {
    0.6666666666666734, 0.39999999999414676, 0.28571428742388205, 0.22222198573132546, 0.18183564328532595,
    0.15314050495786896, 0.1479595022294881};
};
template <>
struct pk_log_poly<float> {  // 8e-10
  static constexpr float c[] = {
    0.6666677594184875f, 0.3997754156589508f, 0.29871729016304016f};
};
template <class T>
struct pk_sin_poly;  // (sin(x) / x - 1) / x^2 in x^2 for |x| <= pi / 4
template <>
struct pk_sin_poly<double> {  // 4e-18
  static constexpr double c[] = {
    -0.1666666666666663, 0.008333333333322063, -0.00019841269829542774, 2.755731360456136e-06, -2.505074504122845e-08,
    1.5896067633966043e-10};
};
template <>
struct pk_sin_poly<float> {  // 4e-9
  static constexpr float c[] = {
    -0.16666655242443085f, 0.00833215843886137f, -0.00019514949235599488f};
};
template <class T>
struct pk_cos_poly;  // (cos(x) - 1 + x^2 / 2) / x^4 in x^2 for |x| <= pi / 4
template <>
struct pk_cos_poly<double> {  // 6e-20
  static constexpr double c[] = {
    0.041666666666666595, -0.0013888888888872975, 2.4801587288799933e-05, -2.755731416395999e-07,
    2.0875698707236103e-09, -1.1358423485032887e-11};
};
template <>
struct pk_cos_poly<float> {  // 1e-10
  static constexpr float c[] = {
    0.04166664555668831f, -0.0013887312961742282f, 2.443279117869679e-05f};
};

// Sum coefficients FROM ... FROM + N - 1 of C by Estrin's scheme, for its short path: kernels are bound by latency.
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
// Sum coefficients FROM ... of C by Horner's scheme, with the fewest operations: for loops with other independent work.
template <class C, int FROM = 0, class V>
PK_INLINE V pk_horner(V x) {
  if constexpr (FROM + 1 == sizeof(C::c) / sizeof(C::c[0]))
    return pk_splat<V>(C::c[FROM]);
  else
    return pk_elem<V>(C::c[FROM]) + x * pk_horner<C, FROM + 1>(x);
}
template <class C, class V>
PK_INLINE V pk_poly(V x) {
  const V x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  return pk_estrin<C, 0, sizeof(C::c) / sizeof(C::c[0])>(x, x2, x4, x8, x8 * x8);
}

#endif
