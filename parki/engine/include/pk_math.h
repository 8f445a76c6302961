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
// NaN gives NaN (but fmin and fmax return the other argument), zeros and infinities are right, and lanes with
// garbage affect only their own result: no traps, no loops that depend on the data.  The polynomials are minimax
// fits (Remez, weighted for the relative error of the function).
//
// A workunit may ask for less, if its loops do not need the rest (parki.engine.workunit.HINTS):
//
//   PK_RSQRT_FINITE    pk_rsqrt of 0 and of infinity may be NaN
//   PK_RSQRT_ORDINARY  pk_rsqrt of numbers out of 1e-36 ... 1e36 may be anything
//   PK_RSQRT_BOUNDED   pk_rsqrt_above of numbers above 1e36 may be anything
//   PK_RSQRT_SHORT     pk_rsqrt of doubles is right to 1.5e-13
//   PK_RSQRT_SHORTER   to 1.5e-10
//   PK_RSQRT_BRIEF     to 5.7e-9
//   PK_RSQRT_SHORTEST  to 2.1e-7, also of floats
//   PK_EXP_ROUNDED     pk_exp(x) errs by |x|/2 ulp more, as if x were rounded; x is -1e60 ... 708 (float: -1e20 ... 88);
//                      results below 2^-1021 (float: 2^-125) may be 0, and none is subnormal: these take long
//   PK_EXP_SHORT       pk_exp of doubles is right to 2.6e-12, where it may be rounded
//   PK_EXP_SHORTER     to 1.6e-9
//   PK_EXP_SHORTEST    to 4.3e-7, of floats to 5.5e-7
#ifndef PK_MATH_H
#define PK_MATH_H

#include "pk_poly.h"

// Simple functions ----------------------------------------------------------------------------------------------------
// Split arguments larger than a native vector into halves.
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
// Return p * 2^n for p in [1/100, 2], where the low bits of u are n and, below it, FRACTION more bits.  The factors are
// 2^a and 2^(n - a) with a = floor(n / 2): a single factor could not hold the smallest numbers, unless the result is
// NORMAL.  Wraparound and lost bits are intended.
template <int FRACTION, bool NORMAL, class V>
PK_INLINE V pk_scale(V p, V u) {
  constexpr int DIGITS = pk_k<pk_elem<V>>::digits;
  const auto n = pk_as_bits(u) >> FRACTION, a = n >> 1;
  if constexpr (NORMAL) return pk_bits<V>(pk_as_bits(p) + (n << DIGITS));
  const V most = pk_bits<V>(pk_as_bits(p) + ((n - a) << DIGITS));
  return most * pk_bits<V>(pk_as_bits(pk_splat<V>(1.0)) + (a << DIGITS));
}

// Return w * e^(x + low) for |low| << 1 and x in [exp_min, 0], or up to exp_max if w is 1; NORMAL: from exp_normal on.
template <bool NORMAL = false, class V, class... Low>
PK_INLINE V pk_exp_times(V x, V w, Low... low) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  constexpr T MAGIC = PK_SIXTEENTHS ? K::magic16 : K::magic;
  V near = x;  // the low part of a float is not small beside ln(2) / 32
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
    return pk_scale<PK_SIXTEENTHS ? 4 : 0, NORMAL>(p, u);
}

#if defined(PK_EXP_ROUNDED)
#define PK_EXP_ROUNDS true
#else
#define PK_EXP_ROUNDS false
#endif
#if defined(PK_EXP_SHORTEST)
#define PK_EXP_DEGREE 2
#elif defined(PK_EXP_SHORTER)
#define PK_EXP_DEGREE 3
#elif defined(PK_EXP_SHORT)
#define PK_EXP_DEGREE 4
#else
#define PK_EXP_DEGREE 0
#endif
// True if e^x is short: powers of two with sixteenths from a table, times a polynomial of this degree.
template <class V>
constexpr bool pk_exp_is_short =
    PK_EXP_ROUNDS && PK_SIXTEENTHS && pk_has_scalef<V> && PK_EXP_DEGREE > 0 &&
    (pk_same<pk_elem<V>, double> || PK_EXP_DEGREE == 2);

// Return p * 2^floor(n), the product of 2^n and about 1, or 0 where it is not normal.
template <class V>
PK_INLINE V pk_normal_scalef(V p, V n) {
  typedef pk_elem<V> T;
  return pk_scalef_from(pk_splat<V>(T(1.125) - pk_k<T>::bias), p, n);
}

// Return 2^(k x).  Powers of two saturate, and the polynomial is finite for the remainder of any k x.
template <class V, class S>
PK_INLINE V pk_exp2_of(V x, S k) {
  constexpr auto MAGIC = pk_k<pk_elem<V>>::magic16;
  const V u = x * k + MAGIC, n = u - MAGIC;
  return pk_normal_scalef(pk_sixteenth(u) * pk_horner<pk_exp2_short<PK_EXP_DEGREE>>(x * k - n), n);
}

template <class V>
PK_INLINE V pk_exp(V x) {
  typedef pk_elem<V> T;
  typedef pk_k<T> K;
  PK_SPLIT(pk_exp) {
    if constexpr (pk_exp_is_short<V>)
      return pk_exp2_of(x, K::log2e);
    else if constexpr (PK_EXP_ROUNDS && PK_SIXTEENTHS && pk_has_scalef<V>) {  // no bounds, as above; ln 2 in one part
      const V u = x * K::log2e + K::magic16, n = u - K::magic16, r = x - n * K::ln2, p = pk_sixteenth(u);
      return pk_normal_scalef(p + (p * r) * (T(1) + r * pk_horner<pk_exp16_poly<T>>(r)), n);
    } else {
      // Comparisons keep NaN.  Results that are 0 take as long as subnormal ones.
      const V zero = {}, one = pk_splat<V>(1), least = pk_splat<V>(PK_EXP_ROUNDS ? K::exp_normal : K::exp_min);
      if constexpr (PK_EXP_ROUNDS)
        return pk_select(x < least, zero, pk_exp_times<true>(pk_greater(least, x), one));
      const V inside = pk_select(x < least, zero, pk_lesser(pk_splat<V>(K::exp_max), x));
      return pk_select(x < least, zero, pk_exp_times(inside, one));
    }
  }
}
// Return e^(s x), s the same for all lanes: s * log2(e) is computed once.
template <class V>
PK_INLINE V pk_exp_of(pk_elem<V> s, V x) {
  if constexpr (pk_exp_is_short<V> && sizeof(V) <= PK_BYTES)
    return pk_exp2_of(x, s * pk_k<pk_elem<V>>::log2e);
  else
    return pk_exp(pk_splat<V>(s) * x);
}

// log: x = 2^n (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f); log(1 + f) = f - (h - s (h + z P)), h = f^2/2
// and z = s^2.
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

// Return erfc(x) for x >= 0.  In the exponent a^2 = h^2 + (a - h)(a + h): h is the upper half of the digits of a, and
// h^2 is exact.
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
// Store r = x - q pi/2 in [-pi/4, pi/4] and the low bits of q, for 0 <= x < 1e5.  pi/2 is split into parts of 36 bits,
// whose products with q are exact; floats are reduced as doubles.
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
