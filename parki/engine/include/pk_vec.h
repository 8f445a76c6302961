// Vectors of the generated host code, on GCC vector extensions (g++ >= 11, clang++ >= 11).  No header is included: each
// header would cost compile time in every kernel.
//
// A working value is a `pk_vec<T, L>`: L lanes with the natural alignment of the vector, or plain T for L == 1.  Every
// function here takes both.  PK_BYTES, given on the command line, is the size of a native vector; nothing else fixes a
// width.  L may be smaller or larger than native, but g++ lowers *operators* on larger vectors (comparisons above all)
// lane by lane, so a kernel should keep L * sizeof(widest T) <= PK_BYTES.
//
// A mask is the result of a comparison: a `pk_mask<LS, L>` of integers of LS bytes, each 0 or -1; bool for L == 1.
// Bools and masks of another lane size are accepted wherever a mask is, and converted.
#ifndef PK_VEC_H
#define PK_VEC_H

#ifndef PK_BYTES
#error "PK_BYTES, the size of a native vector in bytes, must be defined: 16, 32 or 64"
#elif PK_BYTES != 16 && PK_BYTES != 32 && PK_BYTES != 64
#error "PK_BYTES must be 16, 32 or 64"
#endif

#define PK_INLINE static inline __attribute__((always_inline))

// The types of <stdint.h>; declaring the same type twice is allowed.
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;

// Types ---------------------------------------------------------------------------------------------------------------
template <class T, int L>
struct pk_vec_of {
  static_assert(L >= 2 && L <= 16 && (L & (L - 1)) == 0, "the number of lanes must be 1, 2, 4, 8 or 16");
  typedef T type __attribute__((vector_size(sizeof(T) * L)));
  typedef T memory __attribute__((vector_size(sizeof(T) * L), aligned(sizeof(T)), may_alias));
};
template <class T>
struct pk_vec_of<T, 1> {
  typedef T type;
  typedef T memory __attribute__((may_alias));
};
template <class T, int L>
using pk_vec = typename pk_vec_of<T, L>::type;
// For loads and stores only: used as a working type it makes g++ copy values through the stack.
template <class T, int L>
using pk_uvec = typename pk_vec_of<T, L>::memory;

template <int BYTES>
struct pk_int_of;
template <>
struct pk_int_of<1> {
  typedef __INT8_TYPE__ type;
};
template <>
struct pk_int_of<2> {
  typedef __INT16_TYPE__ type;
};
template <>
struct pk_int_of<4> {
  typedef int32_t type;
  typedef __UINT32_TYPE__ bits;
};
template <>
struct pk_int_of<8> {
  typedef int64_t type;
  typedef uint64_t bits;
};
template <class T>
using pk_lane_int = typename pk_int_of<sizeof(T)>::type;

template <int LS, int L>
struct pk_mask_of {
  typedef pk_vec<typename pk_int_of<LS>::type, L> type;
};
template <int LS>
struct pk_mask_of<LS, 1> {
  typedef bool type;
};
template <int LS, int L>
using pk_mask = typename pk_mask_of<LS, L>::type;

// Traits --------------------------------------------------------------------------------------------------------------
template <class T>
struct pk_bare {
  typedef T type;
};
template <class T>
struct pk_bare<T&> {
  typedef T type;
};
template <class T>
struct pk_bare<const T&> {
  typedef T type;
};
template <class V>
auto pk_elem_of(V* v, int) -> pk_bare<decltype((*v)[0])>;
template <class V>
auto pk_elem_of(V* v, long) -> pk_bare<V>;

template <class A, class B>
constexpr bool pk_same = false;
template <class A>
constexpr bool pk_same<A, A> = true;

// Element type and number of lanes; a scalar is its own element.
template <class V>
using pk_elem = typename decltype(pk_elem_of((V*)nullptr, 0))::type;
template <class V>
constexpr int pk_lanes = sizeof(V) / sizeof(pk_elem<V>);
template <class V>
using pk_half = pk_vec<pk_elem<V>, pk_lanes<V> / 2>;

// 0 ... N-1 as a parameter pack.
template <int... I>
struct pk_index {};
template <int N, int... I>
struct pk_count : pk_count<N - 1, N - 1, I...> {};
template <int... I>
struct pk_count<0, I...> {
  typedef pk_index<I...> type;
};

// Construction and parts ----------------------------------------------------------------------------------------------
// Return the same bits as another type of the same size.
template <class To, class V>
PK_INLINE To pk_bits(V v) {
  static_assert(sizeof(To) == sizeof(V), "pk_bits keeps the size");
  return __builtin_bit_cast(To, v);
}

template <class V, class S, int... I>
PK_INLINE V pk_splat_at(S s, pk_index<I...>) {
  return V{((void)I, (pk_elem<V>)s)...};
}
template <class V, class S>
PK_INLINE V pk_splat(S s) {
  if constexpr (pk_lanes<V> == 1)
    return (V)s;
  else
    return pk_splat_at<V>(s, typename pk_count<pk_lanes<V>>::type{});
}

template <class V, int... I>
PK_INLINE V pk_iota_at(pk_index<I...>) {
  return V{(pk_elem<V>)I...};
}
// Return 0, 1, ..., L-1.
template <class T, int L>
PK_INLINE pk_vec<T, L> pk_iota() {
  return pk_iota_at<pk_vec<T, L>>(typename pk_count<L>::type{});
}

// Return a part of v, from lane FROM on, as an H; pk_join_at returns two halves as a V.  g++ makes this one move.
template <class H, int FROM, class V, int... I>
PK_INLINE H pk_part_at(V v, pk_index<I...>) {
  return H{v[FROM + I]...};
}
template <class V>
PK_INLINE pk_half<V> pk_low(V v) {
  return pk_part_at<pk_half<V>, 0>(v, typename pk_count<pk_lanes<V> / 2>::type{});
}
template <class V>
PK_INLINE pk_half<V> pk_high(V v) {
  return pk_part_at<pk_half<V>, pk_lanes<V> / 2>(v, typename pk_count<pk_lanes<V> / 2>::type{});
}
template <class V, class H, int... I>
PK_INLINE V pk_join_at(H low, H high, pk_index<I...>) {
  if constexpr (pk_lanes<H> == 1)
    return V{low, high};
  else
    return V{low[I]..., high[I]...};
}
template <class V>
PK_INLINE V pk_join(pk_half<V> low, pk_half<V> high) {
  return pk_join_at<V, pk_half<V>>(low, high, typename pk_count<pk_lanes<V> / 2>::type{});
}

// Conversion ----------------------------------------------------------------------------------------------------------
// Convert by one instruction, which the overloads name: g++ 12 and older split conversions that change the lane size.
template <class R, class V>
PK_INLINE R pk_cast(V v, R*) {
  return __builtin_convertvector(v, R);
}
#if defined(__AVX512F__) && !defined(__clang__)
PK_INLINE pk_vec<double, 8> pk_cast(pk_vec<int32_t, 8> v, pk_vec<double, 8>*) {
  return __builtin_ia32_cvtdq2pd512_mask(v, pk_vec<double, 8>{}, -1);
}
PK_INLINE pk_vec<double, 8> pk_cast(pk_vec<float, 8> v, pk_vec<double, 8>*) {
  return __builtin_ia32_cvtps2pd512_mask(v, pk_vec<double, 8>{}, -1, 4);
}
PK_INLINE pk_vec<int64_t, 8> pk_cast(pk_vec<int32_t, 8> v, pk_vec<int64_t, 8>*) {
  return pk_bits<pk_vec<int64_t, 8>>(__builtin_ia32_pmovsxdq512_mask(v, pk_vec<long long, 8>{}, -1));
}
PK_INLINE pk_vec<int32_t, 8> pk_cast(pk_vec<int64_t, 8> v, pk_vec<int32_t, 8>*) {
  return __builtin_ia32_pmovqd512_mask(pk_bits<pk_vec<long long, 8>>(v), pk_vec<int32_t, 8>{}, -1);
}
#endif
#if defined(__AVX2__) && !defined(__clang__)
PK_INLINE pk_vec<double, 4> pk_cast(pk_vec<int32_t, 4> v, pk_vec<double, 4>*) { return __builtin_ia32_cvtdq2pd256(v); }
PK_INLINE pk_vec<double, 4> pk_cast(pk_vec<float, 4> v, pk_vec<double, 4>*) { return __builtin_ia32_cvtps2pd256(v); }
PK_INLINE pk_vec<int64_t, 4> pk_cast(pk_vec<int32_t, 4> v, pk_vec<int64_t, 4>*) {
  return pk_bits<pk_vec<int64_t, 4>>(__builtin_ia32_pmovsxdq256(v));
}
PK_INLINE pk_vec<int32_t, 4> pk_cast(pk_vec<int64_t, 4> v, pk_vec<int32_t, 4>*) {
  const auto w = pk_bits<pk_vec<int32_t, 8>>(v);
  return __builtin_shuffle(pk_low(w), pk_high(w), pk_vec<int32_t, 4>{0, 2, 4, 6});
}
#endif
#if defined(__SSE2__) && !defined(__AVX512DQ__)
// Return int64 lanes as doubles.  Before AVX-512 no instruction does this: both 32-bit halves become doubles by their
// exponent bits, and only the last sum rounds.
template <class V>
PK_INLINE pk_vec<double, pk_lanes<V>> pk_long_to_double(V v) {
  typedef pk_vec<uint64_t, pk_lanes<V>> U;
  typedef pk_vec<double, pk_lanes<V>> D;
  const D high = pk_bits<D>((pk_bits<U>(v) >> 32) ^ 0x4530000080000000ull);
  const D low = pk_bits<D>((pk_bits<U>(v) & 0xffffffffull) | 0x4330000000000000ull);
  return (high - 0x1.00000801p84) + low;  // 2^84 + 2^63 + 2^52
}
PK_INLINE pk_vec<double, 2> pk_cast(pk_vec<int64_t, 2> v, pk_vec<double, 2>*) { return pk_long_to_double(v); }
PK_INLINE pk_vec<double, 4> pk_cast(pk_vec<int64_t, 4> v, pk_vec<double, 4>*) { return pk_long_to_double(v); }
#endif

// Convert lane by lane, as static_cast does.  `To` is the vector type wanted, or its element type.  Before AVX-512,
// reals to int64 take scalar instructions: convert to int32 first if the values fit.
template <class To, class V>
PK_INLINE auto pk_convert(V v) {
  typedef pk_elem<To> T;
  typedef pk_vec<T, pk_lanes<V>> R;
  static_assert(pk_same<To, T> || pk_same<To, R>, "pk_convert keeps the number of lanes");
  if constexpr (pk_same<R, V>)
    return v;
  else if constexpr (pk_lanes<V> == 1)
    return (T)v;
  else if constexpr (sizeof(V) > PK_BYTES || sizeof(R) > PK_BYTES)
    return pk_join<R>(pk_convert<T>(pk_low(v)), pk_convert<T>(pk_high(v)));
  else
    return pk_cast(v, (R*)nullptr);
}

// Return a bool or a mask as the mask type M.
template <class M, class A>
PK_INLINE M pk_to_mask(A a) {
  if constexpr (pk_same<A, M>)
    return a;
  else if constexpr (pk_same<A, bool>)
    return pk_splat<M>(-(int)a);
  else
    return pk_convert<M>(a);
}

// Masks ---------------------------------------------------------------------------------------------------------------
// Return m ? a : b in each lane.
template <class M, class V>
PK_INLINE V pk_select(M m, V a, V b) {
  if constexpr (pk_same<M, bool>)
    return m ? a : b;
  else if constexpr (sizeof(V) > PK_BYTES || sizeof(M) > PK_BYTES)
    return pk_join<V>(pk_select(pk_low(m), pk_low(a), pk_low(b)), pk_select(pk_high(m), pk_high(a), pk_high(b)));
  else
    return (V)(pk_to_mask<pk_mask<sizeof(pk_elem<V>), pk_lanes<V>>>(m) ? a : b);
}

// Combine two masks; the result has the lane size of the first argument that is not a bool.
template <class A, class B>
PK_INLINE auto pk_and(A a, B b) {
  if constexpr (pk_same<A, bool> && pk_same<B, bool>)
    return (bool)(a & b);
  else if constexpr (pk_same<A, bool>)
    return (B)(pk_to_mask<B>(a) & b);
  else
    return (A)(a & pk_to_mask<A>(b));
}
template <class A, class B>
PK_INLINE auto pk_or(A a, B b) {
  if constexpr (pk_same<A, bool> && pk_same<B, bool>)
    return (bool)(a | b);
  else if constexpr (pk_same<A, bool>)
    return (B)(pk_to_mask<B>(a) | b);
  else
    return (A)(a | pk_to_mask<A>(b));
}
template <class M>
PK_INLINE M pk_not(M m) {
  if constexpr (pk_same<M, bool>)
    return !m;
  else
    return ~m;
}

// One bit per lane, lane 0 lowest, for masks with an instruction; other masks are halved first.
template <class M>
constexpr bool pk_has_lane_bits = false;
#if defined(__SSE2__)
template <>
constexpr bool pk_has_lane_bits<pk_mask<8, 2>> = true;
template <>
constexpr bool pk_has_lane_bits<pk_mask<4, 4>> = true;
PK_INLINE unsigned pk_lane_bits(pk_mask<8, 2> m) { return __builtin_ia32_movmskpd(pk_bits<pk_vec<double, 2>>(m)); }
PK_INLINE unsigned pk_lane_bits(pk_mask<4, 4> m) { return __builtin_ia32_movmskps(pk_bits<pk_vec<float, 4>>(m)); }
#endif
#if defined(__AVX__)
template <>
constexpr bool pk_has_lane_bits<pk_mask<8, 4>> = true;
template <>
constexpr bool pk_has_lane_bits<pk_mask<4, 8>> = true;
PK_INLINE unsigned pk_lane_bits(pk_mask<8, 4> m) { return __builtin_ia32_movmskpd256(pk_bits<pk_vec<double, 4>>(m)); }
PK_INLINE unsigned pk_lane_bits(pk_mask<4, 8> m) { return __builtin_ia32_movmskps256(pk_bits<pk_vec<float, 8>>(m)); }
#endif
#if defined(__AVX512F__)
template <>
constexpr bool pk_has_lane_bits<pk_mask<8, 8>> = true;
template <>
constexpr bool pk_has_lane_bits<pk_mask<4, 16>> = true;
#if defined(__clang__)
PK_INLINE unsigned pk_lane_bits(pk_mask<8, 8> m) {
  return (unsigned char)__builtin_ia32_cmpq512_mask(pk_bits<pk_vec<long long, 8>>(m), pk_vec<long long, 8>{}, 1, -1);
}
PK_INLINE unsigned pk_lane_bits(pk_mask<4, 16> m) {
  return (unsigned short)__builtin_ia32_cmpd512_mask(m, pk_mask<4, 16>{}, 1, -1);
}
#else
PK_INLINE unsigned pk_lane_bits(pk_mask<8, 8> m) {
  const auto w = pk_bits<pk_vec<long long, 8>>(m);
  return (unsigned char)__builtin_ia32_ptestmq512(w, w, -1);
}
PK_INLINE unsigned pk_lane_bits(pk_mask<4, 16> m) { return (unsigned short)__builtin_ia32_ptestmd512(m, m, -1); }
#endif
#endif

// Return whether any lane is set; pk_all returns whether all lanes are set.
template <class M>
PK_INLINE bool pk_any(M m) {
  if constexpr (pk_same<M, bool>)
    return m;
  else if constexpr (pk_has_lane_bits<M>)
    return pk_lane_bits(m) != 0;
  else if constexpr (pk_lanes<M> == 2)
    return (m[0] | m[1]) != 0;
  else
    return pk_any(pk_low(m) | pk_high(m));
}
template <class M>
PK_INLINE bool pk_all(M m) {
  if constexpr (pk_same<M, bool>)
    return m;
  else if constexpr (pk_has_lane_bits<M>)
    return pk_lane_bits(m) == (1u << pk_lanes<M>) - 1;
  else if constexpr (pk_lanes<M> == 2)
    return (m[0] & m[1]) != 0;
  else
    return pk_all(pk_low(m) & pk_high(m));
}

#endif
