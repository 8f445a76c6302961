// Loads and stores of some lanes of a vector, and stores of these side by side: instructions of AVX-512 and AVX2, each
// with a portable fallback, lane by lane.  Included by pk_host.h.
#ifndef PK_MASKED_H
#define PK_MASKED_H

// AVX-512: a bit for each lane ----------------------------------------------------------------------------------------
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define PK_HAS_MASKED 1
typedef __attribute__((vector_size(64))) long long pk_q8;
typedef pk_vec<int32_t, 8> pk_i8;
typedef pk_vec<int32_t, 16> pk_i16;
PK_INLINE uint8_t pk_bits(pk_vec<int64_t, 8> m) { return __builtin_ia32_cvtq2mask512((pk_q8)m); }
PK_INLINE uint16_t pk_bits(pk_i16 m) { return __builtin_ia32_cvtd2mask512(m); }
// Return the lanes of v whose bits are set, from lane 0 on; lanes after them are unspecified.
template <class R>
constexpr bool pk_compresses = sizeof(R) == 64 || (sizeof(R) == 32 && sizeof(pk_elem<R>) == 4);
template <class R>
PK_INLINE R pk_native_compress(R v, unsigned m) {
  if constexpr (pk_lanes<R> == 16)
    return (R)__builtin_ia32_compresssi512_mask((pk_i16)v, (pk_i16)v, (uint16_t)m);
  else if constexpr (sizeof(R) == 64)
    return (R)__builtin_ia32_compressdi512_mask((pk_q8)v, (pk_q8)v, (uint8_t)m);
  else
    return (R)__builtin_ia32_compresssi256_mask((pk_i8)v, (pk_i8)v, (uint8_t)m);
}
#endif

// AVX2: a mask of the sign of each lane, for vectors of 4 or 8 lanes in 16 or 32 bytes --------------------------------
#if defined(__AVX2__)
typedef __attribute__((vector_size(16))) int pk_x4;
typedef __attribute__((vector_size(32))) int pk_x8;
typedef __attribute__((vector_size(32))) long long pk_q4;
template <class R>
constexpr bool pk_signs = pk_lanes<R> >= 4 && sizeof(pk_elem<R>) >= 4 && (sizeof(R) == 32 || sizeof(R) == 16);
template <class R, class T>
PK_INLINE R pk_signs_load(const T* p, pk_mask<sizeof(T), pk_lanes<R>> m) {
  if constexpr (sizeof(R) == 16)
    return (R)__builtin_ia32_maskloadd((const pk_x4*)p, (pk_x4)m);
  else if constexpr (sizeof(T) == 4)
    return (R)__builtin_ia32_maskloadd256((const pk_x8*)p, (pk_x8)m);
  else
    return (R)__builtin_ia32_maskloadq256((const pk_q4*)p, (pk_q4)m);
}
template <class R, class T>
PK_INLINE void pk_signs_store(T* p, R r, pk_mask<sizeof(T), pk_lanes<R>> m) {
  if constexpr (sizeof(R) == 16)
    __builtin_ia32_maskstored((pk_x4*)p, (pk_x4)m, (pk_x4)r);
  else if constexpr (sizeof(T) == 4)
    __builtin_ia32_maskstored256((pk_x8*)p, (pk_x8)m, (pk_x8)r);
  else
    __builtin_ia32_maskstoreq256((pk_q4*)p, (pk_q4)m, (pk_q4)r);
}

// Places of the set bits of each number of LANES bits, in words of a vector of LANES lanes of WORDS words each.
template <int LANES, int WORDS>
struct pk_set_bits {
  uint8_t of[1 << LANES][LANES * WORDS];
  constexpr pk_set_bits() : of() {
    for (int m = 0; m < 1 << LANES; m++)
      for (int l = 0, n = 0; l < LANES; l++)
        if (m >> l & 1)
          for (int w = 0; w < WORDS; w++) of[m][n++] = WORDS * l + w;
  }
};
template <int LANES, int WORDS>
static constexpr pk_set_bits<LANES, WORDS> pk_places{};
// Return 4 or 8 bytes as words, by one instruction: g++ 12 takes several for __builtin_convertvector.
#ifdef __clang__
PK_INLINE pk_x4 pk_words4(const uint8_t* p) { return __builtin_convertvector(*(const pk_uvec<uint8_t, 4>*)p, pk_x4); }
PK_INLINE pk_x8 pk_words8(const uint8_t* p) { return __builtin_convertvector(*(const pk_uvec<uint8_t, 8>*)p, pk_x8); }
#else
typedef __attribute__((vector_size(16))) char pk_c16;
PK_INLINE pk_x4 pk_words4(const uint8_t* p) {
  return __builtin_ia32_pmovzxbd128((pk_c16)pk_x4{*(const pk_uvec<int32_t, 1>*)p, 0, 0, 0});
}
PK_INLINE pk_x8 pk_words8(const uint8_t* p) {
  return __builtin_ia32_pmovzxbd256((pk_c16)pk_vec<int64_t, 2>{*(const pk_uvec<int64_t, 1>*)p, 0});
}
#endif
// Return the lanes of r whose bits are set, from lane 0 on; lanes after them are copies of lane 0.
template <class R>
PK_INLINE R pk_signs_compress(R r, unsigned on) {
  constexpr int L = pk_lanes<R>, WORDS = sizeof(R) / 4 / L;
  const uint8_t* const places = pk_places<L, WORDS>.of[on];
  if constexpr (sizeof(R) == 16)
    return (R)__builtin_ia32_vpermilvarps((pk_f4)r, pk_words4(places));
  else
    return (R)__builtin_ia32_permvarsi256((pk_x8)r, pk_words8(places));
}
#else
template <class R>
constexpr bool pk_signs = false;
#endif

// Loads and stores ----------------------------------------------------------------------------------------------------
// Load the lanes of a mask; others are 0.
template <class V, class T, class M>
PK_INLINE V pk_load(const T* p, M m) {
  constexpr int L = pk_lanes<V>;
  typedef pk_vec<T, L> R;
  if constexpr (L == 1) return m ? (V)*p : (V)0;
#ifdef PK_HAS_MASKED
  else if constexpr (sizeof(M) == 64 && sizeof(T) == 8 && L == 8)
    return pk_convert<V>((R)__builtin_ia32_loaddqudi512_mask((const long long*)p, pk_q8{}, pk_bits(m)));
  else if constexpr (sizeof(M) == 64 && sizeof(T) == 4 && L == 16)
    return pk_convert<V>((R)__builtin_ia32_loaddqusi512_mask((const int*)p, pk_i16{}, pk_bits(m)));
  else if constexpr (sizeof(M) == 64 && sizeof(T) == 4)
    return pk_convert<V>((R)__builtin_ia32_loaddqusi256_mask((const pk_si256*)p, pk_i8{}, pk_bits(m)));
#endif
#ifdef __AVX2__
  else if constexpr (pk_signs<R>)
    return pk_convert<V>(pk_signs_load<R>(p, pk_to_mask<pk_mask<sizeof(T), L>>(m)));
#endif
  else {
    R r = {};
    for (int l = 0; l < L; l++)
      if (pk_lane_on(m, l)) r[l] = p[l];
    return pk_convert<V>(r);
  }
}

// Store the lanes of a mask.
template <class T, class V, class M>
PK_INLINE void pk_store(T* p, V v, M m) {
  constexpr int L = pk_lanes<V>;
  if constexpr (L == 1) {
    if (m) *p = (T)v;
  } else {
    const pk_vec<T, L> r = pk_convert<pk_vec<T, L>>(v);
#ifdef PK_HAS_MASKED
    if constexpr (sizeof(M) == 64 && sizeof(T) == 8 && L == 8)
      return __builtin_ia32_storedqudi512_mask((long long*)p, (pk_q8)r, pk_bits(m));
    else if constexpr (sizeof(M) == 64 && sizeof(T) == 4 && L == 16)
      return __builtin_ia32_storedqusi512_mask((int*)p, (pk_i16)r, pk_bits(m));
    else if constexpr (sizeof(M) == 64 && sizeof(T) == 4)
      return __builtin_ia32_storedqusi256_mask((pk_si256*)p, (pk_i8)r, pk_bits(m));
#endif
#ifdef __AVX2__
    if constexpr (pk_signs<decltype(r)>) return pk_signs_store(p, r, pk_to_mask<pk_mask<sizeof(T), L>>(m));
#endif
    for (int l = 0; l < L; l++)
      if (pk_lane_on(m, l)) p[l] = r[l];
  }
}

// Return the number of active lanes of a mask; pk_compress stores their values contiguously.
template <class M>
PK_INLINE int32_t pk_kept(M m) {
  if constexpr (pk_has_lane_bits<M>) {
    return __builtin_popcount(pk_lane_bits(m));
  } else {
    int32_t n = 0;
    for (int l = 0; l < pk_lanes<M>; l++) n += pk_lane_on(m, l);
    return n;
  }
}
template <class T, class V, class M>
PK_INLINE void pk_compress(T* p, V v, M m) {
  constexpr int L = pk_lanes<V>;
  typedef pk_vec<T, L> R;
#ifdef PK_HAS_MASKED
  if constexpr (sizeof(M) == 64 && pk_compresses<R>)
    return pk_store(p, pk_native_compress(pk_convert<R>(v), pk_bits(m)), pk_first<M>(pk_kept(m)));
#endif
#ifdef __AVX2__
  if constexpr (pk_signs<R> && pk_has_lane_bits<M>)
    return pk_store(p, pk_signs_compress(pk_convert<R>(v), pk_lane_bits(m)), pk_first<M>(pk_kept(m)));
#endif
  int32_t n = 0;
  for (int l = 0; l < L; l++)
    if (pk_lane_on(m, l)) p[n++] = (T)pk_get(v, l);
}
// Compress into scratch.  With PK_OPEN_LISTS values after the last may be overwritten: AMD's masked stores take six times
// as long as whole ones, and scratch has a line of room after its end.
template <class T, class V, class M>
PK_INLINE void pk_compress_in_scratch(T* p, V v, M m) {
#if defined(PK_OPEN_LISTS) && defined(__AVX2__)
  typedef pk_vec<T, pk_lanes<V>> R;
#ifdef PK_HAS_MASKED
  if constexpr (sizeof(M) == 64 && pk_compresses<R>)
    return pk_store(p, pk_native_compress(pk_convert<R>(v), pk_lane_bits(m)), pk_true{});
#endif
  if constexpr (pk_signs<R> && pk_has_lane_bits<M>)
    return pk_store(p, pk_signs_compress(pk_convert<R>(v), pk_lane_bits(m)), pk_true{});
#endif
  pk_compress(p, v, m);
}

#endif
