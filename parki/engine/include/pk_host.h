// Functions that generated host code calls: masks, loads, stores, gathers, atomics, reductions, lane loops, checks.
// Built on pk_vec.h (types, select) and pk_math.h.  PK_LANE_BYTES (8 or 4) is the size of a lane's integer and mask.
#ifndef PK_HOST_H
#define PK_HOST_H
#include "pk_vec.h"
#include "pk_math.h"

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
extern "C" int omp_get_thread_num(void);

#if PK_LANE_BYTES == 8
typedef int64_t pk_lane;
#else
typedef int32_t pk_lane;
#endif
#ifdef PK_CHECKED
#define PK_W 1  // checked builds run one lane at a time, so that a fault has one index
#else
#define PK_W (PK_BYTES / PK_LANE_BYTES)
#endif
#define PK_LAMBDA __attribute__((always_inline))
#define PK_NOINLINE static __attribute__((noinline))

template <int N>
struct pk_int {
  static constexpr int value = N;
};

// Type of the mask of a group whose lanes are all active: masking with it costs nothing.
struct pk_true {};
PK_INLINE pk_true pk_and(pk_true, pk_true) { return {}; }
template <class M>
PK_INLINE M pk_and(pk_true, M m) { return m; }
template <class M>
PK_INLINE M pk_andnot(pk_true, M c) { return pk_not(c); }
template <class M>
PK_INLINE M pk_andnot(M m, M c) { return pk_and(m, pk_not(c)); }
PK_INLINE bool pk_any(pk_true) { return true; }
template <class A>
PK_INLINE A pk_select(pk_true, A a, A) { return a; }
template <class M, class A>
PK_INLINE M pk_masked(A a) {
  if constexpr (pk_same<A, pk_true>)
    return pk_not(M{});
  else
    return a;
}
// Return a comparison as a mask.
template <class M, class C>
PK_INLINE M pk_test(C c) {
  M m = pk_convert<M>(c);
#if defined(__SSE2__) && !defined(__SSE4_2__) && !defined(__clang__)
  // Without this asm g++ 12 makes ?: of the comparison, and fails (internal error) without 64-bit compare instructions.
  if constexpr (sizeof(M) == 16) asm("" : "+x"(m));
#endif
  return m;
}
template <class M>
PK_INLINE bool pk_lane_on(M m, int l) {
  if constexpr (pk_lanes<M> == 1)
    return m;
  else
    return m[l] != 0;
}
PK_INLINE bool pk_lane_on(pk_true, int) { return true; }

template <class V>
PK_INLINE auto pk_get(V v, int l) {
  if constexpr (pk_lanes<V> == 1)
    return v;
  else
    return v[l];
}
template <class V, class T>
PK_INLINE void pk_set(V& v, int l, T x) {
  if constexpr (pk_lanes<V> == 1)
    v = (V)x;
  else
    v[l] = x;
}

// Return base + c * lane.
template <class V>
PK_INLINE V pk_affine(pk_elem<V> base, pk_elem<V> c) {
  if constexpr (pk_lanes<V> == 1)
    return base;
  else
    return pk_splat<V>(base) + pk_iota<pk_elem<V>, pk_lanes<V>>() * c;
}

// Return a mask of the first n lanes.
template <class M>
PK_INLINE M pk_first(int32_t n) {
  if constexpr (pk_lanes<M> == 1)
    return n > 0;
  else
    return pk_test<M>(pk_iota<pk_lane, pk_lanes<M>>() < pk_splat<pk_vec<pk_lane, pk_lanes<M>>>(n));
}

// Memory ------------------------------------------------------------------------------------------------------------
template <class V, class T>
PK_INLINE V pk_load(const T* p, pk_true) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1)
    return (V)*p;
  else
    return pk_convert<V>((pk_vec<T, L>)*(const pk_uvec<T, L>*)p);
}

template <class T, class V>
PK_INLINE void pk_store(T* p, V v, pk_true) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1)
    *p = (T)v;
  else
    *(pk_uvec<T, L>*)p = pk_convert<pk_vec<T, L>>(v);
}

#include "pk_masked.h"

template <class V, class T, class O, class M>
PK_INLINE V pk_gather(const T* p, O offset, M m) {
  V r = {};
  for (int l = 0; l < pk_lanes<V>; l++)
    if (pk_lane_on(m, l)) pk_set(r, l, p[pk_get(offset, l)]);
  return r;
}

template <class T, class V, class O, class M>
PK_INLINE void pk_scatter(T* p, O offset, V v, M m) {
  for (int l = 0; l < pk_lanes<V>; l++)
    if (pk_lane_on(m, l)) p[pk_get(offset, l)] = (T)pk_get(v, l);
}

// Arithmetic that C++ has no vector operator for ----------------------------------------------------------------------
// Return a / b of non-negative int32 values: the truncated quotient of two doubles is exact.
template <class V>
PK_INLINE V pk_idiv(V a, V b) {
  typedef pk_vec<double, pk_lanes<V>> D;
  return pk_convert<V>(pk_convert<D>(a) / pk_convert<D>(b));
}
template <class V>
PK_INLINE V pk_imod(V a, V b) {
  if constexpr (pk_lanes<V> == 1) {
    return b > 0 ? a % b : a;
  } else if constexpr (sizeof(pk_elem<V>) == 4) {
    return a - pk_idiv(a, b) * b;
  } else {  // values may need 64 bits
    V r = {};
    for (int l = 0; l < pk_lanes<V>; l++) r[l] = b[l] > 0 ? a[l] % b[l] : a[l];
    return r;
  }
}
// Return reals that fit int32, truncated toward zero.
template <class V, class R>
PK_INLINE V pk_toint(R x) {
  return pk_convert<V>(pk_convert<pk_vec<int32_t, pk_lanes<R>>>(x));
}

// Return the sum of the lanes, by halves: a fixed order.
template <class V>
PK_INLINE pk_elem<V> pk_sum(V v) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1) {
    return v;
  } else {
    pk_vec<pk_elem<V>, L / 2> h[2];
    __builtin_memcpy(h, &v, sizeof v);
    return pk_sum(h[0] + h[1]);
  }
}

// Atomics: relaxed; plain when one thread runs ------------------------------------------------------------------------
struct pk_op_add {
  template <class T>
  static T of(T a, T b) { return a + b; }
};
struct pk_op_sub {
  template <class T>
  static T of(T a, T b) { return a - b; }
};
struct pk_op_max {
  template <class T>
  static T of(T a, T b) { return a > b ? a : b; }
};
struct pk_op_min {
  template <class T>
  static T of(T a, T b) { return a < b ? a : b; }
};

// Update an element and return its old value; `shared`: other threads may update the same element at the same time.
template <class Op, class T>
PK_INLINE T pk_atomic(T* p, T x, int32_t shared) {
  T old;
  if (!shared) {
    old = *p;
    *p = Op::of(old, x);
    return old;
  }
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  for (;;) {
    T made = Op::of(old, x);
    if (__atomic_compare_exchange(p, &old, &made, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return old;
  }
}

template <class Op, class T, class O, class V, class M>
PK_INLINE V pk_atomic_lanes(T* p, O offset, V v, M m, int32_t shared) {
  V old = {};
  for (int l = 0; l < pk_lanes<V>; l++)
    if (pk_lane_on(m, l)) pk_set(old, l, pk_atomic<Op>(p + pk_get(offset, l), (T)pk_get(v, l), shared));
  return old;
}

// Lane loops ----------------------------------------------------------------------------------------------------------
template <class F>
PK_INLINE void pk_for(int32_t i, int32_t end, F body) {
  for (; i <= end - PK_W; i += PK_W) body(pk_int<PK_W>{}, i, pk_true{});
  if (PK_W > 1 && i < end) body(pk_int<PK_W>{}, i, pk_first<pk_mask<PK_LANE_BYTES, PK_W>>(end - i));
}

// Run N iterations, N a constant: the remainder of whole vectors runs in narrower vectors, without masks.
template <int N, int L, class F>
PK_INLINE void pk_for_n(int32_t i, F body) {
  if constexpr (N >= L) {
    for (int n = 0; n < N / L; n++) body(pk_int<L>{}, i + n * L, pk_true{});
    i += N / L * L;
  }
  if constexpr (N % L != 0) pk_for_n<N % L, L / 2>(i, body);
}

template <class T, class F>
PK_INLINE T pk_reduce(int32_t i, int32_t end, F body) {
  pk_vec<T, PK_W> acc = {};
  for (; i <= end - PK_W; i += PK_W) body(pk_int<PK_W>{}, i, pk_true{}, acc);
  if (PK_W > 1 && i < end) body(pk_int<PK_W>{}, i, pk_first<pk_mask<PK_LANE_BYTES, PK_W>>(end - i), acc);
  return pk_sum(acc);
}

template <class T, int N, int L, class F>
PK_INLINE T pk_reduce_n(int32_t i, F body) {
  T total = 0;
  if constexpr (N >= L) {
    pk_vec<T, L> acc = {};
    for (int n = 0; n < N / L; n++) body(pk_int<L>{}, i + n * L, pk_true{}, acc);
    total = pk_sum(acc);
    i += N / L * L;
  }
  if constexpr (N % L != 0) total += pk_reduce_n<T, N % L, L / 2>(i, body);
  return total;
}

#include "pk_strided.h"
#include "pk_row.h"
#include "pk_checked.h"
#endif
