// Rows: values with one lane per iteration of a short vector range of fixed length, in parts that are native vectors.
// A loop in the body of such a range then runs once for all parts, which share addresses and uniform values; g++ would
// split a vector of another length lane by lane.  Only arithmetic, loads and stores are defined.
#ifndef PK_ROW_H
#define PK_ROW_H

constexpr int pk_head_lanes(int n, int native) {
  int l = 1;
  while (l < native && 2 * l <= n) l *= 2;
  return l;
}
template <class T, int N, int HEAD>
struct pk_parts;
template <class T, int N, int HEAD>
struct pk_row_of {
  typedef pk_parts<T, N, HEAD> type;
};
template <class T, int N>
struct pk_row_of<T, N, N> {
  typedef pk_vec<T, N> type;
};
// N lanes of T: a native vector where N allows.
template <class T, int N>
using pk_row = typename pk_row_of<T, N, pk_head_lanes(N, PK_BYTES / (int)sizeof(T))>::type;

template <class T, int N, int HEAD>
struct pk_parts {
  typedef pk_vec<T, HEAD> A;
  typedef pk_row<T, N - HEAD> B;
  A a;
  B b;
};
template <class V>
constexpr bool pk_is_parts = false;
template <class T, int N, int HEAD>
constexpr bool pk_is_parts<pk_parts<T, N, HEAD>> = true;

#define PK_ROW_OP(op)                                                                                        \
  template <class T, int N, int HEAD>                                                                        \
  PK_INLINE pk_parts<T, N, HEAD> operator op(pk_parts<T, N, HEAD> x, pk_parts<T, N, HEAD> y) {               \
    return {x.a op y.a, x.b op y.b};                                                                         \
  }
PK_ROW_OP(+)
PK_ROW_OP(-)
PK_ROW_OP(*)
PK_ROW_OP(/)
#undef PK_ROW_OP
template <class T, int N, int HEAD>
PK_INLINE pk_parts<T, N, HEAD> operator-(pk_parts<T, N, HEAD> x) {
  return {-x.a, -x.b};
}

// Return a row with one number in all lanes.
template <class V, class S>
PK_INLINE V pk_row_splat(S s) {
  if constexpr (pk_is_parts<V>)
    return {pk_splat<typename V::A>(s), pk_row_splat<typename V::B>(s)};
  else
    return pk_splat<V>(s);
}

template <class V, class T>
PK_INLINE V pk_row_load(const T* p) {
  if constexpr (pk_is_parts<V>)
    return {pk_load<typename V::A>(p, pk_true{}), pk_row_load<typename V::B>(p + pk_lanes<typename V::A>)};
  else
    return pk_load<V>(p, pk_true{});
}
template <class T, class V>
PK_INLINE void pk_row_store(T* p, V v) {
  if constexpr (pk_is_parts<V>) {
    pk_store(p, v.a, pk_true{});
    pk_row_store(p + pk_lanes<typename V::A>, v.b);
  } else {
    pk_store(p, v, pk_true{});
  }
}

// Run a range of N iterations: as one row, if its parts leave registers for other values.
template <int N, class F>
PK_INLINE void pk_for_row(int32_t i, F body) {
  if constexpr (N <= 3 * PK_W)
    body(pk_int<N>{}, i, pk_true{});
  else
    pk_for_n<N, PK_W>(i, body);
}
#endif
