// Mathematics of the generated host code: templates over V = double, float or a pk_vec of them of any length.
//
// Largest errors in ulp of the result, for any -march and -ffp-contract, without -ffast-math:
//
//   function                                   double  float  range
//   pk_rsqrt                                   1.5     1.5    all (1.1 with AVX-512 and -ffp-contract=fast)
//   pk_exp                                     1.25    1.1    all; underflow is gradual
//   pk_erfc                                    7       6      all; underflow is gradual
//   pk_erf                                     4       3.5    all
//   pk_sin, pk_cos                             1.75    1.75   |x| < 1e5; lane by lane through libm beyond
//   pk_log                                     1.75    1.75   positive normal x; lane by lane through libm beyond
//   pk_sqrt, pk_fabs, pk_floor, pk_ceil        0.5     0.5    all
//   pk_expm1, pk_tan, pk_sinh, pk_cosh         3       3      libm, lane by lane: not for inner loops
//   pk_tanh, pk_pow                            3       3      libm, lane by lane
//
// NaN gives NaN (but fmin and fmax return the other argument), zeros and infinities are right, and lanes that hold
// garbage spoil nothing but their own result: no traps, no loops that depend on the data.  The polynomials are minimax
// fits (Remez, weighted for the relative error of the function).
//
// A text may ask for less, where its loops cannot meet the rest (parki.engine.workunit.HINTS):
//
//   PK_RSQRT_FINITE  pk_rsqrt of 0 and of infinity may be NaN
//   PK_RSQRT_SHORT   pk_rsqrt of doubles is right to 1.5e-13
//   PK_EXP_ROUNDED   pk_exp(x) errs by |x|/2 ulp more, as if x had been rounded; x is finite, above -1e60 (float: -1e20)
//   PK_EXP_SHORT     pk_exp of doubles is right to 2.6e-12, where it may be rounded
#ifndef PK_MATH_H
#define PK_MATH_H

#include "pk_native.h"

// Constants -----------------------------------------------------------------------------------------------------------
template <class T>
struct pk_k;

template <>
struct pk_k<double> {
  static constexpr int digits = 52;
  static constexpr double bias = 1023, least = 0x1p-1022, most = 0x1.fffffffffffffp+1023;  // normal numbers
  // x + magic rounds x to an integer and leaves it in the low bits; magic16 to sixteenths.
  static constexpr double magic = 0x1.8p52, magic16 = 0x1.8p48;
  static constexpr double log2e = 0x1.71547652b82fep+0, ln2 = 0x1.62e42fefa39efp-1, root_half = 0x1.6a09e667f3bcdp-1;
  // ln 2 in two parts: n * ln2_high is exact for |n| < 2^15.
  static constexpr double ln2_high = 0x1.62e42fefap-1, ln2_low = 0x1.cf79abc9e3b3ap-40;
  static constexpr double exp_min = -746.0, exp_max = 710.0;
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
  static constexpr float exp_min = -104.0f, exp_max = 89.0f;
  static constexpr float erfc_s = 3.0f, erfc_t = 0x1.555556p-1f, erfc_max = 10.4f;
  static constexpr __UINT32_TYPE__ upper_half = ~0xfffu;
};

// Coefficients in ascending order; the relative error of the function beside them.
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
struct pk_exp16_short {  // (e^r - 1) / r there; 2.5e-12
  static constexpr double c[] = {0.99999999941832896, 0.49999999951519169, 0.16667158969244338, 0.041669128458951985};
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

// Coefficients FROM ... FROM + N - 1 of C, by Estrin's scheme: kernels are bound by latency, and its path is short.
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
// The same from FROM on by Horner's, with the fewest operations: for loops that have others to do meanwhile.
template <class C, int FROM = 0, class V>
PK_INLINE V pk_horner(V x) {
  if constexpr (FROM + 1 == sizeof(C::c) / sizeof(C::c[0]))
    return pk_splat<V>(C::c[FROM]);
  else
    return C::c[FROM] + x * pk_horner<C, FROM + 1>(x);
}
template <class C, class V>
PK_INLINE V pk_poly(V x) {
  const V x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  return pk_estrin<C, 0, sizeof(C::c) / sizeof(C::c[0])>(x, x2, x4, x8, x8 * x8);
}

// Simple functions ----------------------------------------------------------------------------------------------------
// Arguments larger than native go by halves.
#define PK_SPLIT(NAME)                                                              \
  if constexpr (sizeof(V) > PK_BYTES && pk_lanes<V> > 1)                            \
    return pk_join<V>(NAME(pk_low(x)), NAME(pk_high(x)));                           \
  else
#define PK_SPLIT2(NAME)                                                             \
  if constexpr (sizeof(V) > PK_BYTES && pk_lanes<V> > 1)                            \
    return pk_join<V>(NAME(pk_low(x), pk_low(y)), NAME(pk_high(x), pk_high(y)));    \
  else

PK_BY_LANES(pk_expm1, expm1)
PK_BY_LANES(pk_tan, tan)
PK_BY_LANES(pk_sinh, sinh)
PK_BY_LANES(pk_cosh, cosh)
PK_BY_LANES(pk_tanh, tanh)
PK_BY_LANES(pk_libm_log, log)
PK_BY_LANES(pk_libm_sin, sin)
PK_BY_LANES(pk_libm_cos, cos)

template <class V>
PK_INLINE V pk_sqrt(V x) {
  PK_SPLIT(pk_sqrt) return pk_native_sqrt(x);
}
template <class V>
PK_INLINE V pk_floor(V x) {
  PK_SPLIT(pk_floor) return pk_native_floor(x);
}
template <class V>
PK_INLINE V pk_ceil(V x) {
  PK_SPLIT(pk_ceil) return pk_native_ceil(x);
}
template <class V>
PK_INLINE V pk_fmin(V x, V y) {
  PK_SPLIT2(pk_fmin) return pk_select(y != y, x, pk_lesser(x, y));
}
template <class V>
PK_INLINE V pk_fmax(V x, V y) {
  PK_SPLIT2(pk_fmax) return pk_select(y != y, x, pk_greater(x, y));
}
template <class V>
PK_INLINE V pk_pow(V x, V y) {
  if constexpr (pk_same<V, double>)
    return __builtin_pow(x, y);
  else if constexpr (pk_same<V, float>)
    return __builtin_powf(x, y);
  else
    for (int i = 0; i < pk_lanes<V>; i++) x[i] = pk_pow((pk_elem<V>)x[i], (pk_elem<V>)y[i]);
  return x;
}

// exp, erfc, erf ------------------------------------------------------------------------------------------------------
// p * 2^n for p in [1/100, 2], where the low bits of u are n and, below it, FRACTION more bits.  Two factors, 2^a and
// 2^(n - a) with a = floor(n / 2): one alone could not hold the smallest numbers.  Wrapping and lost bits are meant.
template <int FRACTION, class V>
PK_INLINE V pk_scale(V p, V u) {
  constexpr int DIGITS = pk_k<pk_elem<V>>::digits;
  const auto n = pk_as_bits(u) >> FRACTION, a = n >> 1;
  const V most = pk_bits<V>(pk_as_bits(p) + ((n - a) << DIGITS));
  return most * pk_bits<V>(pk_as_bits(pk_splat<V>(1.0)) + (a << DIGITS));
}

// w * e^(x + low) for |low| << 1 and x in [exp_min, 0], or up to exp_max if w is 1.
template <class V, class... Low>
PK_INLINE V pk_exp_times(V x, V w, Low... low) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  constexpr T MAGIC = PK_SIXTEENTHS ? K::magic16 : K::magic;
  V near = x;  // the low part of a float counts beside ln(2) / 32
  if constexpr (pk_same<T, float> && sizeof...(Low) > 0) near += (low + ...);
  const V u = near * K::log2e + MAGIC, n = u - MAGIC;
  V r = (x - n * K::ln2_high) - n * K::ln2_low;
  if constexpr (sizeof...(Low) > 0) r += (low + ...);
  V s, p = w;
  if constexpr (PK_SIXTEENTHS) {
    s = r + (r * r) * pk_poly<pk_exp16_poly<T>>(r);
    p *= pk_sixteenth(u);
  } else
    s = r + (r * r) * pk_poly<pk_exp_poly<T>>(r);
  p += p * s;
  if constexpr (pk_has_scalef<V>)
    return pk_scalef(p, n);
  else
    return pk_scale<PK_SIXTEENTHS ? 4 : 0>(p, u);
}

template <class V>
PK_INLINE V pk_exp(V x) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  PK_SPLIT(pk_exp) {
#if defined(PK_EXP_ROUNDED)
    // ln 2 in one part and no bounds: powers of two saturate, and what is left of any such x has a finite polynomial.
    if constexpr (PK_SIXTEENTHS && pk_has_scalef<V>) {
      const V u = x * K::log2e + K::magic16, n = u - K::magic16, r = x - n * K::ln2, p = pk_sixteenth(u);
#if defined(PK_EXP_SHORT)
      if constexpr (pk_same<T, double>) return pk_scalef(p + (p * r) * pk_horner<pk_exp16_short>(r), n);
#endif
      return pk_scalef(p + (p * r) * (T(1) + r * pk_horner<pk_exp16_poly<T>>(r)), n);
    }
#endif
    const V inside = pk_greater(pk_splat<V>(K::exp_min), pk_lesser(pk_splat<V>(K::exp_max), x));  // NaN stays
    return pk_exp_times(inside, pk_splat<V>(1));
  }
}

// log: x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f); log(1 + f) = f - (h - s (h + z P)), h = f^2/2 and
// z = s^2.
template <class V>
__attribute__((noinline, cold)) static V pk_log_beyond(V x, V y) {
  typedef pk_k<pk_elem<V>> K;
  return pk_select(pk_and(x >= K::least, x <= K::most), y, pk_libm_log(x));
}
template <class V>
PK_INLINE V pk_log(V x) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  PK_SPLIT(pk_log) {
    const auto one = pk_as_bits(pk_splat<V>(1)), bits = pk_as_bits(x);
    const auto biased = (bits + (one - pk_as_bits(pk_splat<V>(K::root_half)))) >> K::digits;
    const V n = pk_bits<V>(pk_as_bits(pk_splat<V>(K::magic)) + biased) - (K::magic + K::bias);
    const V f = pk_bits<V>(bits - (biased << K::digits) + one) - 1;
    const V s = f / (2 + f), z = s * s, h = (f * T(0.5)) * f;
    const V y = n * K::ln2_high - ((h - (s * (h + z * pk_poly<pk_log_poly<T>>(z)) + n * K::ln2_low)) - f);
    if (__builtin_expect(pk_all(pk_and(x >= K::least, x <= K::most)), 1)) return y;
    return pk_log_beyond(x, y);
  }
}

// erfc(x) for x >= 0.  In the exponent a^2 = h^2 + (a - h)(a + h): h is the upper half of the digits and h^2 exact.
template <class V>
PK_INLINE V pk_erfc_positive(V x) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  const V a = pk_lesser(pk_splat<V>(K::erfc_max), x);
  const V inverse = K::erfc_s / (a + K::erfc_s), t = (a * inverse) * K::erfc_t - 1;
  const V h = pk_bits<V>(pk_as_bits(a) & K::upper_half);
  return pk_exp_times(-(h * h), pk_poly<pk_erfc_poly<T>>(t) * inverse, (h - a) * (a + h));
}
template <class V>
PK_INLINE V pk_erfc(V x) {
  PK_SPLIT(pk_erfc) {
    const V c = pk_erfc_positive(pk_fabs(x));
    return pk_select(x < 0, 2 - c, c);
  }
}
template <class V>
PK_INLINE V pk_erf(V x) {
  typedef pk_elem<V> T;
  PK_SPLIT(pk_erf) {
    const V a = pk_fabs(x), small = x + x * pk_poly<pk_erf_poly<T>>(x * x), large = 1 - pk_erfc_positive(a);
    const V sign = pk_bits<V>(pk_as_bits(x) & pk_as_bits(pk_splat<V>(-0.0)));
    return pk_select(a <= T(0.5), small, pk_bits<V>(pk_as_bits(large) | pk_as_bits(sign)));
  }
}

// sin, cos ------------------------------------------------------------------------------------------------------------
// r = x - q pi/2 in [-pi/4, pi/4] and the low bits of q, for 0 <= x < 1e5.  pi/2 is in parts of 36 bits, whose products
// with q are exact; floats are reduced as doubles.
template <class V>
PK_INLINE void pk_reduce(V x, V& r, pk_uints<V>& q) {
  constexpr double MAGIC = pk_k<double>::magic, TWO_OVER_PI = 0x1.45f306dc9c883p-1;
  constexpr double HIGH = 0x1.921fb54440000p+0, MIDDLE = 0x1.68c234c4c0000p-39, LOW = 0x1.98a2e03707345p-77;
  if constexpr (pk_lanes<V> > 1 && pk_lanes<V> * sizeof(double) > PK_BYTES) {
    typedef pk_half<V> H;
    H r0, r1;
    pk_uints<H> q0, q1;
    pk_reduce(pk_low(x), r0, q0);
    pk_reduce(pk_high(x), r1, q1);
    r = pk_join<V>(r0, r1);
    q = pk_join<pk_uints<V>>(q0, q1);
  } else {
    const auto d = pk_convert<double>(x);
    const auto u = d * TWO_OVER_PI + MAGIC, n = u - MAGIC, first = d - n * HIGH, step = n * MIDDLE;
    const auto second = first - step, lost = (first - second) - step;
    r = pk_convert<pk_elem<V>>(second - (n * LOW - lost));
    q = pk_convert<pk_elem<pk_uints<V>>>(pk_as_bits(u));
  }
}
template <bool COS, class V>
PK_INLINE V pk_sin_cos(V x) {
  typedef pk_elem<V> T;
  const V a = pk_fabs(x);
  V r;
  pk_uints<V> q;
  pk_reduce(a, r, q);
  if constexpr (COS) q += 1;
  const V z = r * r;
  const V s = r + r * (z * pk_poly<pk_sin_poly<T>>(z)), c = 1 + z * (z * pk_poly<pk_cos_poly<T>>(z) - T(0.5));
  pk_uints<V> sign = (q & 2) << (8 * sizeof(T) - 2);
  if constexpr (!COS) sign ^= pk_as_bits(x) & pk_as_bits(pk_splat<V>(-0.0));
  const V y = pk_bits<V>(pk_as_bits(pk_select((q & 1) != 0, c, s)) ^ sign);
  const auto far = a >= T(1e5);
  if (__builtin_expect(!pk_any(far), 1)) return y;
  return pk_select(far, COS ? pk_libm_cos(x) : pk_libm_sin(x), y);
}
template <class V>
PK_INLINE V pk_sin(V x) {
  PK_SPLIT(pk_sin) return pk_sin_cos<false>(x);
}
template <class V>
PK_INLINE V pk_cos(V x) {
  PK_SPLIT(pk_cos) return pk_sin_cos<true>(x);
}

#endif
