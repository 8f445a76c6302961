// Accesses of checked builds; the first access out of bounds is reported.
#ifndef PK_CHECKED_H
#define PK_CHECKED_H

struct pk_fault {
  int64_t site, dim, index, extent;  // site 0: no fault; the first fault is kept
};

PK_INLINE bool pk_ok(pk_fault* f, int64_t site, int64_t dim, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return true;
  int64_t none = 0;
  if (__atomic_compare_exchange_n(&f->site, &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    f->dim = dim;
    f->index = i;
    f->extent = n;
  }
  return false;
}

// One access of a view of rank R: its place in the kernel file, its indices, the extents and the strides.
template <int R>
struct pk_at {
  pk_fault* fault;
  int64_t site;
  int64_t i[R], n[R], s[R];
  int64_t offset() const {
    int64_t o = 0;
    for (int d = 0; d < R; d++) {
      if (!pk_ok(fault, site, d, i[d], n[d])) return -1;
      o += i[d] * s[d];
    }
    return o;
  }
};
template <class V, class T, int R, class M>
PK_INLINE V pk_checked_load(const T* p, pk_at<R> at, M m) {
  const int64_t o = pk_lane_on(m, 0) ? at.offset() : -1;
  return o < 0 ? (V)0 : (V)p[o];
}
template <class V, class T, int R, class M>
PK_INLINE void pk_checked_store(T* p, pk_at<R> at, M m, V v) {
  const int64_t o = pk_lane_on(m, 0) ? at.offset() : -1;
  if (o >= 0) p[o] = (T)v;
}
template <class V, class Op, class T, int R, class M>
PK_INLINE V pk_checked_atomic(T* p, pk_at<R> at, M m, V v, int32_t shared) {
  const int64_t o = pk_lane_on(m, 0) ? at.offset() : -1;
  return o < 0 ? (V)0 : (V)pk_atomic<Op>(p + o, (T)v, shared);
}
#endif
