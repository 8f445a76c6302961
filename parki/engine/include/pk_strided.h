// Loads and stores of vectors with stride 2, and loads in reverse order.  Included by pk_host.h.
#ifndef PK_STRIDED_H
#define PK_STRIDED_H

// Load p[0], p[2], p[4], … by two loads and a shuffle; the second load begins one early, not to read past the last.
template <class V, class T>
PK_INLINE V pk_load2(const T* p, pk_true) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1) {
    return (V)*p;
  } else {
    typedef pk_vec<T, L> R;
    const R a = *(const pk_uvec<T, L>*)p, b = *(const pk_uvec<T, L>*)(p + L - 1);
    if constexpr (L == 2) return pk_convert<V>((R)__builtin_shufflevector(a, b, 0, 3));
    if constexpr (L == 4) return pk_convert<V>((R)__builtin_shufflevector(a, b, 0, 2, 5, 7));
    if constexpr (L == 8) return pk_convert<V>((R)__builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15));
    if constexpr (L == 16)
      return pk_convert<V>(
          (R)__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31));
  }
}

template <class V, class T, class M>
PK_INLINE V pk_load2(const T* p, M m) {
  constexpr int L = pk_lanes<V>;
#if defined(PK_HAS_MASKED) && defined(__BMI2__)
  if constexpr (sizeof(M) == 64 && L == 8 && sizeof(T) == 8) {
    typedef __attribute__((vector_size(64))) long long I;
    const unsigned on = __builtin_ia32_pdep_si(pk_bits(m), 0x5555);
    const I z = {}, a = (I)__builtin_ia32_loaddqudi512_mask((const long long*)p, z, (uint8_t)on),
            b = (I)__builtin_ia32_loaddqudi512_mask((const long long*)(p + 8), z, (uint8_t)(on >> 8));
    return pk_convert<V>((pk_vec<T, L>)__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14));
  }
#endif
  V r = {};
  for (int l = 0; l < L; l++)
    if (pk_lane_on(m, l)) pk_set(r, l, p[2 * l]);
  return r;
}

template <class T, class V, class M>
PK_INLINE void pk_store2(T* p, V v, M m) {
  constexpr int L = pk_lanes<V>;
#if defined(PK_HAS_MASKED) && defined(__BMI2__)
  if constexpr (L == 8 && sizeof(T) == 8 && sizeof(V) == 64 && (__is_same(M, pk_true) || sizeof(M) == 64)) {
    typedef __attribute__((vector_size(64))) long long I;
    const I a = (I)v;
    const I lo = __builtin_shufflevector(a, a, 0, 0, 1, 1, 2, 2, 3, 3), hi = __builtin_shufflevector(a, a, 4, 4, 5, 5, 6, 6, 7, 7);
    unsigned on = 0x5555;
    if constexpr (!__is_same(M, pk_true)) on = __builtin_ia32_pdep_si(pk_bits(m), on);
    __builtin_ia32_storedqudi512_mask((long long*)p, lo, (uint8_t)on);
    __builtin_ia32_storedqudi512_mask((long long*)(p + 8), hi, (uint8_t)(on >> 8));
    return;
  }
#endif
  for (int l = 0; l < L; l++)
    if (pk_lane_on(m, l)) p[2 * l] = (T)pk_get(v, l);
}

// Store v and w alternately into p[0], p[1], p[2], p[3], …
template <class T, class V>
PK_INLINE void pk_store_pair(T* p, V v, V w, pk_true) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1) {
    p[0] = (T)v, p[1] = (T)w;
  } else {
    typedef pk_vec<T, L> R;
    const R a = pk_convert<R>(v), b = pk_convert<R>(w);
    R lo, hi;
    if constexpr (L == 2) lo = __builtin_shufflevector(a, b, 0, 2), hi = __builtin_shufflevector(a, b, 1, 3);
    if constexpr (L == 4) lo = __builtin_shufflevector(a, b, 0, 4, 1, 5), hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    if constexpr (L == 8)
      lo = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11), hi = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    if constexpr (L == 16)
      lo = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
      hi = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    *(pk_uvec<T, L>*)p = lo;
    *(pk_uvec<T, L>*)(p + L) = hi;
  }
}

template <class T, class V, class M>
PK_INLINE void pk_store_pair(T* p, V v, V w, M m) {
  constexpr int L = pk_lanes<V>;
#if defined(PK_HAS_MASKED) && defined(__BMI2__)
  if constexpr (sizeof(M) == 64 && L == 8 && sizeof(T) == 8 && sizeof(V) == 64) {
    typedef __attribute__((vector_size(64))) long long I;
    const I a = (I)v, b = (I)w;
    const unsigned on = 3 * __builtin_ia32_pdep_si(pk_bits(m), 0x5555);
    __builtin_ia32_storedqudi512_mask((long long*)p, __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11), (uint8_t)on);
    __builtin_ia32_storedqudi512_mask(
        (long long*)(p + 8), __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15), (uint8_t)(on >> 8));
    return;
  }
#endif
  for (int l = 0; l < L; l++)
    if (pk_lane_on(m, l)) p[2 * l] = (T)pk_get(v, l), p[2 * l + 1] = (T)pk_get(w, l);
}

// Return the lanes in reverse order.
template <class V>
PK_INLINE V pk_turned(V v) {
  if constexpr (pk_lanes<V> == 1) return v;
  if constexpr (pk_lanes<V> == 2) return (V)__builtin_shufflevector(v, v, 1, 0);
  if constexpr (pk_lanes<V> == 4) return (V)__builtin_shufflevector(v, v, 3, 2, 1, 0);
  if constexpr (pk_lanes<V> == 8) return (V)__builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
  if constexpr (pk_lanes<V> == 16)
    return (V)__builtin_shufflevector(v, v, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
}
PK_INLINE pk_true pk_turned(pk_true m) { return m; }

// Load p[0], p[-1], p[-2], …
template <class V, class T, class M>
PK_INLINE V pk_load_back(const T* p, M m) {
  return pk_turned(pk_load<V>(p - (pk_lanes<V> - 1), pk_turned(m)));
}
#endif
