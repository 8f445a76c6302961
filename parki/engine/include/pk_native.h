// Instructions that GCC vector extensions have no operator for, by compiler builtins, each with a portable fallback;
// and the reciprocal square root, which begins with an instruction for an estimate.
#ifndef PK_NATIVE_H
#define PK_NATIVE_H

#include "pk_vec.h"

typedef pk_vec<double, 2> pk_d2;
typedef pk_vec<double, 4> pk_d4;
typedef pk_vec<double, 8> pk_d8;
typedef pk_vec<float, 2> pk_f2;
typedef pk_vec<float, 4> pk_f4;
typedef pk_vec<float, 8> pk_f8;
typedef pk_vec<float, 16> pk_f16;
#ifdef __clang__  // pointee type of the masked 256-bit builtins: a vector here, an element for g++
typedef __attribute__((vector_size(32))) int pk_si256;
#else
typedef int pk_si256;
#endif

// Bits of v as unsigned integers of its lane size.
template <class V>
using pk_uints = pk_vec<typename pk_int_of<sizeof(pk_elem<V>)>::bits, pk_lanes<V>>;
template <class V>
PK_INLINE pk_uints<V> pk_as_bits(V v) {
  return pk_bits<pk_uints<V>>(v);
}

template <class V>
PK_INLINE V pk_fabs(V x) {
  return pk_bits<V>(pk_as_bits(x) & ~pk_as_bits(pk_splat<V>(-0.0)));
}

// Square root, minimum, maximum, rounding -----------------------------------------------------------------------------
// pk_lesser(a, b) is a < b ? a : b, so b if a or b is NaN; pk_greater likewise.
#if defined(__SSE2__) && !defined(__clang__)
#define PK_BASIC(V, NAME)                                                              \
  PK_INLINE V pk_native_sqrt(V a) { return __builtin_ia32_sqrt##NAME(a); }             \
  PK_INLINE V pk_lesser(V a, V b) { return __builtin_ia32_min##NAME(a, b); }           \
  PK_INLINE V pk_greater(V a, V b) { return __builtin_ia32_max##NAME(a, b); }
#define PK_ROUND(V, NAME)                                                              \
  PK_INLINE V pk_native_floor(V a) { return __builtin_ia32_round##NAME(a, 9); }        \
  PK_INLINE V pk_native_ceil(V a) { return __builtin_ia32_round##NAME(a, 10); }
#define PK_WIDE(V, NAME)                                                                             \
  PK_INLINE V pk_native_sqrt(V a) { return __builtin_ia32_sqrt##NAME##512_mask(a, a, -1, 4); }       \
  PK_INLINE V pk_lesser(V a, V b) { return __builtin_ia32_min##NAME##512_mask(a, b, a, -1, 4); }     \
  PK_INLINE V pk_greater(V a, V b) { return __builtin_ia32_max##NAME##512_mask(a, b, a, -1, 4); }    \
  PK_INLINE V pk_native_floor(V a) { return __builtin_ia32_rndscale##NAME##_mask(a, 9, a, -1, 4); }  \
  PK_INLINE V pk_native_ceil(V a) { return __builtin_ia32_rndscale##NAME##_mask(a, 10, a, -1, 4); }
PK_BASIC(pk_d2, pd)
PK_BASIC(pk_f4, ps)
#if defined(__SSE4_1__)
PK_ROUND(pk_d2, pd)
PK_ROUND(pk_f4, ps)
#endif
#if defined(__AVX__)
PK_BASIC(pk_d4, pd256)
PK_BASIC(pk_f8, ps256)
PK_ROUND(pk_d4, pd256)
PK_ROUND(pk_f8, ps256)
#endif
#if defined(__AVX512F__)
PK_WIDE(pk_d8, pd)
PK_WIDE(pk_f16, ps)
#endif
#endif

// Define NAME as a libm function, or a scalar instruction, lane by lane.  Without an overload above, g++ vectors are
// halved down to 16 bytes before the loop; clang makes vector instructions of the loops over sqrt, floor and ceil.
#if defined(__clang__)
#define PK_LOOP_BYTES PK_BYTES
#else
#define PK_LOOP_BYTES 16
#endif
#define PK_BY_LANES(NAME, BUILTIN)                                         \
  template <class V>                                                       \
  PK_INLINE V NAME(V x) {                                                  \
    if constexpr (pk_same<V, double>)                                      \
      return __builtin_##BUILTIN(x);                                       \
    else if constexpr (pk_same<V, float>)                                  \
      return __builtin_##BUILTIN##f(x);                                    \
    else if constexpr (sizeof(V) > PK_LOOP_BYTES)                          \
      return pk_join<V>(NAME(pk_low(x)), NAME(pk_high(x)));                \
    else                                                                   \
      for (int i = 0; i < pk_lanes<V>; i++) x[i] = NAME((pk_elem<V>)x[i]); \
    return x;                                                              \
  }
PK_BY_LANES(pk_native_sqrt, sqrt)
PK_BY_LANES(pk_native_floor, floor)
PK_BY_LANES(pk_native_ceil, ceil)

template <class V>
PK_INLINE V pk_lesser(V a, V b) {
  return pk_select(a < b, a, b);
}
template <class V>
PK_INLINE V pk_greater(V a, V b) {
  return pk_select(a > b, a, b);
}

// Estimates of 1 / sqrt(x) --------------------------------------------------------------------------------------------
// pk_guess(x) is right to pk_guess_bits<V> bits: the 14-bit instructions take any x, the 12-bit ones any x that a float
// can hold; 0 bits: there is no instruction for V.
template <class V>
constexpr int pk_guess_bits = 0;
#define PK_GUESS(BITS, V, VALUE)         \
  template <>                            \
  constexpr int pk_guess_bits<V> = BITS; \
  PK_INLINE V pk_guess(V x) { return VALUE; }
#if defined(__SSE2__)
#define PK_HAS_GUESS 1
// Return a vector with x in its first lanes, of a length that has instructions.
PK_INLINE pk_f4 pk_pad(float x) { return pk_f4{x, 0, 0, 0}; }
PK_INLINE pk_f4 pk_pad(pk_f2 x) { return pk_f4{x[0], x[1], 0, 0}; }
PK_INLINE pk_d2 pk_pad(double x) { return pk_d2{x, 0}; }
#if defined(__AVX512F__)
PK_GUESS(14, pk_d8, __builtin_ia32_rsqrt14pd512_mask(x, x, -1))
PK_GUESS(14, pk_f16, __builtin_ia32_rsqrt14ps512_mask(x, x, -1))
PK_GUESS(14, double, __builtin_ia32_rsqrt14sd_mask(pk_pad(x), pk_pad(x), pk_pad(x), -1)[0])
PK_GUESS(14, float, __builtin_ia32_rsqrt14ss_mask(pk_pad(x), pk_pad(x), pk_pad(x), -1)[0])
#else
PK_GUESS(12, float, __builtin_ia32_rsqrtss(pk_pad(x))[0])
PK_GUESS(12, double, pk_guess((float)x))
#endif
#if defined(__AVX512VL__)
PK_GUESS(14, pk_d4, __builtin_ia32_rsqrt14pd256_mask(x, x, -1))
PK_GUESS(14, pk_f8, __builtin_ia32_rsqrt14ps256_mask(x, x, -1))
PK_GUESS(14, pk_d2, __builtin_ia32_rsqrt14pd128_mask(x, x, -1))
PK_GUESS(14, pk_f4, __builtin_ia32_rsqrt14ps128_mask(x, x, -1))
#else
PK_GUESS(12, pk_f4, __builtin_ia32_rsqrtps(x))
PK_GUESS(12, pk_d2, pk_convert<double>(pk_low(pk_guess(pk_pad(pk_convert<float>(x))))))
#if defined(__AVX__)
PK_GUESS(12, pk_f8, __builtin_ia32_rsqrtps256(x))
PK_GUESS(12, pk_d4, pk_convert<double>(pk_guess(pk_convert<float>(x))))
#endif
#endif
#endif

// rsqrt: y + y e (1/2 + 3/8 e + ...) with e = 1 - x y^2 for the guess y -----------------------------------------------
#if defined(PK_RSQRT_FINITE)  // see pk_math.h
#define PK_FINITE true
#else
#define PK_FINITE false
#endif
#if defined(PK_RSQRT_ORDINARY)
#define PK_ORDINARY true
#else
#define PK_ORDINARY false
#endif
#if defined(PK_RSQRT_BOUNDED)
#define PK_BOUNDED true
#else
#define PK_BOUNDED false
#endif
// Terms of the series in double precision that a guess of 12 bits needs; one of 14 bits needs 3, 2, 2, 1 and 1.
#if defined(PK_RSQRT_SHORTEST)
#define PK_RSQRT_TERMS 1
#elif defined(PK_RSQRT_SHORTER) || defined(PK_RSQRT_BRIEF)
#define PK_RSQRT_TERMS 2
#elif defined(PK_RSQRT_SHORT)
#define PK_RSQRT_TERMS 4
#else
#define PK_RSQRT_TERMS 5
#endif

#if defined(PK_RSQRT_BRIEF)
#define PK_ROOT_IS_BRIEF true
#else
#define PK_ROOT_IS_BRIEF false
#endif

// Return y / 2 of a normal number: integers subtract where nothing waits for the units of products.
template <class V>
PK_INLINE V pk_halved(V y) {
  return pk_bits<V>(pk_as_bits(y) - (pk_as_bits(pk_splat<V>(1.0)) - pk_as_bits(pk_splat<V>(0.5))));
}

// Return 1/2 + 3/8 e + 5/16 e^2 + ..., that many terms.
template <int TERMS, class V>
PK_INLINE V pk_root_series(V e) {
  typedef pk_elem<V> T;
  constexpr T c[] = {T(0.5), T(0.375), T(0.3125), T(0.2734375), T(0.24609375)};
  V series = pk_splat<V>(c[TERMS - 1]);
  for (int n = TERMS - 2; n >= 0; n--) series = c[n] + e * series;
  return series;
}

#if defined(PK_HAS_GUESS)
// Return the root that follows from a guess of 12 bits y and its e.
template <class V>
PK_INLINE V pk_from_guess(V y, V e) {
  constexpr int TERMS = pk_same<pk_elem<V>, double> || PK_RSQRT_TERMS < 2 ? PK_RSQRT_TERMS : 2;
  if constexpr (TERMS == 1)
    return y + pk_halved(y) * e;
  else
    return y + (y * e) * pk_root_series<TERMS>(e);
}
#endif

template <class V>
PK_INLINE V pk_rsqrt(V x) {
  typedef pk_elem<V> T;
#if defined(PK_HAS_GUESS)
  if constexpr (pk_guess_bits<V> != 0) {
    const V y = pk_guess(x);
    const V e = T(1) - (x * y) * y;
    if constexpr (pk_guess_bits<V> == 14) {
      constexpr int TERMS = !pk_same<T, double> || PK_ROOT_IS_BRIEF ? 1 : PK_RSQRT_TERMS;
      V r;
      if constexpr (TERMS == 1)
        r = y + pk_halved(y) * e;
      else  // 3/8, or 1/2, is raised to make up for most of the first omitted term, for |e| <= 2^-13
        r = y + (y * e) * (TERMS < 5 ? T(0.5000000035) + e * T(0.375)
                                     : T(0.5) + e * (T(0.375000003375) + e * T(0.3125)));
      // e is NaN at 0 and infinity, where the guess is exact: one compare, and the last multiply-add is masked.
      return PK_FINITE ? r : pk_select(e == e, r, y);
    } else {
      const V r = pk_from_guess(y, e);
      if (PK_ORDINARY) return r;
      const auto good = pk_fabs(e) < T(0.5);
      if (__builtin_expect(pk_all(good), 1)) return r;
      return pk_select(good, r, T(1) / pk_native_sqrt(x));
    }
  } else if constexpr (pk_same<V, pk_f2>)
    return pk_low(pk_rsqrt(pk_pad(x)));
  else
    return pk_join<V>(pk_rsqrt(pk_low(x)), pk_rsqrt(pk_high(x)));
#else
  return T(1) / pk_native_sqrt(x);
#endif
}

// Return pk_rsqrt(x), 0 where x <= least.  Of bounded x one comparison finds small numbers and these.
template <class V>
PK_INLINE V pk_rsqrt_above(V x, V least) {
#if defined(PK_HAS_GUESS)
  if constexpr (pk_guess_bits<V> == 12 && PK_BOUNDED && !PK_ORDINARY) {
    typedef pk_elem<V> T;
    const auto good = x > pk_greater(least, pk_splat<V>(T(1e-36)));
    const V y = pk_guess(x);
    const V r = pk_from_guess(y, T(1) - (x * y) * y);
    if (__builtin_expect(pk_all(good), 1)) return r;
    return pk_select(good, r, pk_select(x <= least, pk_splat<V>(T(0)), T(1) / pk_native_sqrt(x)));
  }
#endif
  return pk_select(x <= least, pk_splat<V>(pk_elem<V>(0)), pk_rsqrt(x));
}

// Powers of two -------------------------------------------------------------------------------------------------------
// pk_scalef(p, n) is p * 2^floor(n), rounded once, for any p and n; pk_scalef_from(least, p, n) is 0 for lanes with
// n < least, which take a hundred times as long where their results are subnormal or vanish.
template <class V>
constexpr bool pk_has_scalef = false;
#define PK_SCALEF(V, SCALED, IS_LARGE)                    \
  template <>                                             \
  constexpr bool pk_has_scalef<V> = true;                 \
  PK_INLINE V pk_scalef(V p, V n) {                       \
    const V none = p;                                     \
    constexpr int mask = -1;                              \
    return SCALED;                                        \
  }                                                       \
  PK_INLINE V pk_scalef_from(V least, V p, V n) {         \
    const V none = {};                                    \
    const auto mask = IS_LARGE;                           \
    return SCALED;                                        \
  }
#define PK_NOT_LESS 5  // nor is NaN
#if defined(__AVX512F__)
PK_SCALEF(pk_d8, __builtin_ia32_scalefpd512_mask(p, n, none, mask, 4),
          __builtin_ia32_cmppd512_mask(n, least, PK_NOT_LESS, -1, 4))
PK_SCALEF(pk_f16, __builtin_ia32_scalefps512_mask(p, n, none, mask, 4),
          __builtin_ia32_cmpps512_mask(n, least, PK_NOT_LESS, -1, 4))
#if defined(__AVX512VL__)
PK_SCALEF(pk_d4, __builtin_ia32_scalefpd256_mask(p, n, none, mask),
          __builtin_ia32_cmppd256_mask(n, least, PK_NOT_LESS, -1))
PK_SCALEF(pk_f8, __builtin_ia32_scalefps256_mask(p, n, none, mask),
          __builtin_ia32_cmpps256_mask(n, least, PK_NOT_LESS, -1))
PK_SCALEF(pk_d2, __builtin_ia32_scalefpd128_mask(p, n, none, mask),
          __builtin_ia32_cmppd128_mask(n, least, PK_NOT_LESS, -1))
PK_SCALEF(pk_f4, __builtin_ia32_scalefps128_mask(p, n, none, mask),
          __builtin_ia32_cmpps128_mask(n, least, PK_NOT_LESS, -1))
#endif
#endif

// pk_sixteenth(u) is 2^(j/16), j = the low four bits of each lane of u: a permute of one 64-byte register or two, which
// shortens exp.  Builds with such vectors use this for every V, so that all lengths agree.
#if defined(__AVX512F__) && PK_BYTES == 64
#define PK_SIXTEENTHS true
template <class T>
struct pk_sixteenths {
  static constexpr T c[] = {T(0x1p+0),
                            T(0x1.0b5586cf9890fp+0),
                            T(0x1.172b83c7d517bp+0),
                            T(0x1.2387a6e756238p+0),
                            T(0x1.306fe0a31b715p+0),
                            T(0x1.3dea64c123422p+0),
                            T(0x1.4bfdad5362a27p+0),
                            T(0x1.5ab07dd485429p+0),
                            T(0x1.6a09e667f3bcdp+0),
                            T(0x1.7a11473eb0187p+0),
                            T(0x1.8ace5422aa0dbp+0),
                            T(0x1.9c49182a3f09p+0),
                            T(0x1.ae89f995ad3adp+0),
                            T(0x1.c199bdd85529cp+0),
                            T(0x1.d5818dcfba487p+0),
                            T(0x1.ea4afa2a490dap+0)};
};
template <class V, int FROM, int... I>
PK_INLINE V pk_sixteenths_from(pk_index<I...>) {
  return V{pk_sixteenths<pk_elem<V>>::c[FROM + I]...};
}
template <class V>
PK_INLINE V pk_sixteenth(V u) {
  typedef typename pk_count<pk_lanes<V>>::type ALL;
  if constexpr (pk_lanes<V> == 1)
    return pk_sixteenths<V>::c[pk_as_bits(u) & 15];
  else if constexpr (sizeof(V) < 64)
    return pk_low(pk_sixteenth(pk_join<pk_vec<pk_elem<V>, 2 * pk_lanes<V>>>(u, V{})));
#if defined(__clang__)
  else if constexpr (pk_lanes<V> == 8)
    return __builtin_ia32_vpermi2varpd512(pk_sixteenths_from<V, 0>(ALL{}), pk_bits<pk_vec<long long, 8>>(u),
                                          pk_sixteenths_from<V, 8>(ALL{}));
  else
    return __builtin_ia32_permvarsf512(pk_sixteenths_from<V, 0>(ALL{}), pk_bits<pk_vec<int32_t, 16>>(u));
#else
  else if constexpr (pk_lanes<V> == 8)
    return __builtin_shuffle(pk_sixteenths_from<V, 0>(ALL{}), pk_sixteenths_from<V, 8>(ALL{}),
                             pk_bits<pk_vec<int64_t, 8>>(u));
  else
    return __builtin_shuffle(pk_sixteenths_from<V, 0>(ALL{}), pk_bits<pk_vec<int32_t, 16>>(u));
#endif
}
#else
#define PK_SIXTEENTHS false
template <class V>
V pk_sixteenth(V);
#endif

#endif
