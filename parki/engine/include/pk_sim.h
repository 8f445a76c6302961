// Names of pk_gpu.h for the host, with checks.
//
// Each element of scratch, and each element of a written view that is accessed in this phase (from one barrier to the
// next), has a record of the threads that accessed it: a missing barrier is found in any order of the threads.
#ifndef PK_SIM_H
#define PK_SIM_H
#include "pk_threads.h"

#if PK_WIDE
typedef int64_t pk_index;
#else
typedef int32_t pk_index;
#endif

// Records of accesses -------------------------------------------------------------------------------------------------
struct pk_sim_touch {
  int32_t site;  // 0: none
  uint32_t epoch;
  int32_t thread, row;
};
// Accesses of one element.  Two readers are enough, of different rows if possible: a later access that conflicts with
// any reader conflicts with one of the two.  The same holds for two updaters.
struct pk_sim_marks {
  uint32_t phase;
  pk_sim_touch writer, reader[2], updater[2];
};
struct pk_sim_marked {
  const void* at;
  pk_sim_marks marks;
};

static struct pk_sim_memory {
  char* scratch;
  int32_t* written;  // of each word of scratch: 1 + the block that wrote it
  pk_sim_marks* marks;
  pk_sim_marked* table;  // marks of elements of views, by address; never cleared, because old phases count as empty
  uint64_t size, used;
  uint32_t used_phase;
} pk_mem;

PK_SIM_CALL void pk_sim_mark(pk_sim_marks* m, pk_sim_deed deed, pk_sim_kind race, int64_t index, int32_t site) {
  const pk_sim_thread* const self = pk_sim.now;
  const pk_sim_touch me = {site, pk_sim.row[self->row].epoch, self->id, self->row};
  if (m->phase != pk_sim.phase) {
    *m = {};
    m->phase = pk_sim.phase;
  }
  const auto check = [&](const pk_sim_touch& by, pk_sim_deed done) {
    if (by.site && by.thread != me.thread && (by.row != me.row || by.epoch == me.epoch))
      pk_sim_fault(race, site, by.site, index, deed + 4 * done, me.thread, by.thread);
  };
  check(m->writer, pk_write);
  if (deed != pk_read) check(m->reader[0], pk_read), check(m->reader[1], pk_read);
  if (deed != pk_update) check(m->updater[0], pk_update), check(m->updater[1], pk_update);
  if (deed == pk_write) {
    m->writer = me;
    return;
  }
  pk_sim_touch* const last = deed == pk_read ? m->reader : m->updater;
  const bool better = last[1].site && last[1].row != me.row && last[0].row == me.row;
  if (last[0].thread != me.thread && !better) last[1] = last[0];
  last[0] = me;
}

static inline uint64_t pk_sim_hash(const void* at) { return ((uint64_t)(uintptr_t)at * 0x9e3779b97f4a7c15u) >> 20; }
static inline void pk_sim_grow() {
  const uint64_t size = pk_mem.size ? 4 * pk_mem.size : 1024;
  pk_sim_marked* const old = pk_mem.table;
  pk_sim_marked* const table = (pk_sim_marked*)__builtin_calloc(size, sizeof(pk_sim_marked));
  if (!table) pk_sim_fault(pk_no_memory, -1, -1, 0, 0, pk_sim.now->id, -1);
  for (uint64_t k = 0; k < pk_mem.size; k++) {
    if (old[k].marks.phase != pk_sim.phase) continue;
    uint64_t i = pk_sim_hash(old[k].at);
    while (table[i & (size - 1)].at) i++;
    table[i & (size - 1)] = old[k];
  }
  __builtin_free(old);
  pk_mem.table = table;
  pk_mem.size = size;
}
// Return the marks of an element of a view.
PK_SIM_CALL pk_sim_marks* pk_sim_find(const void* at) {
  if (pk_mem.used_phase != pk_sim.phase) pk_mem.used = 0;
  pk_mem.used_phase = pk_sim.phase;
  if (2 * pk_mem.used >= pk_mem.size) pk_sim_grow();
  for (uint64_t i = pk_sim_hash(at);; i++) {
    pk_sim_marked* const e = pk_mem.table + (i & (pk_mem.size - 1));
    if (e->marks.phase == pk_sim.phase && e->at == at) return &e->marks;
    if (e->marks.phase == pk_sim.phase) continue;
    pk_mem.used++;
    e->at = at;
    e->marks = {};
    e->marks.phase = pk_sim.phase;
    return &e->marks;
  }
}

static inline bool pk_sim_outside(int64_t i, int64_t n) { return (uint64_t)i >= (uint64_t)n; }

// Type that `get` returns: bytes are flags and counts, and arithmetic on them uses integers.
template <class T>
struct pk_value_of {
  typedef T type;
};
template <>
struct pk_value_of<uint8_t> {
  typedef int32_t type;
};

template <class T>
struct pk_two {
  T x, y;
};
// A view that this kernel does not write.
template <class T>
struct pk_in {
  typedef typename pk_value_of<T>::type value;
  const T* p;
  int64_t n;
  pk_in(const T* at, int64_t count) : p(at), n(count) {}
  value get(int64_t i, int32_t site) const {
    if (pk_sim_outside(i, n)) pk_sim_fault(pk_bad_view, site, -1, i, n, pk_sim.now->id, -1);
    return p[i];
  }
  pk_two<T> get_two(int64_t i, int32_t site) const {
    const pk_two<T> two = {get(i, site), get(i + 1, site)};
    if ((uint64_t)(p + i) % sizeof two != 0) pk_sim_fault(pk_odd_two, site, -1, i, n, pk_sim.now->id, -1);
    return two;
  }
};
// A view by value.
template <class T>
struct pk_fixed : pk_in<T> {
  pk_fixed(const T* at, int32_t count, int32_t) : pk_in<T>(at, count) {}
};
template <class T>
struct pk_out {
  typedef typename pk_value_of<T>::type value;
  T* p;
  int64_t n;
  pk_out(T* at, int64_t count) : p(at), n(count) {}
  PK_SIM_MEMBER T* touch(int64_t i, pk_sim_deed deed, int32_t site) const {
    if (pk_sim_outside(i, n)) pk_sim_fault(pk_bad_view, site, -1, i, n, pk_sim.now->id, -1);
    if (pk_sim.threads > 1) pk_sim_mark(pk_sim_find(p + i), deed, pk_race_on_view, i, site);
    return p + i;
  }
  value get(int64_t i, int32_t site) const { return *touch(i, pk_read, site); }
  void set(int64_t i, value v, int32_t site) const { *touch(i, pk_write, site) = (T)v; }
};
// A piece of the block's scratch; `used` is the byte at which the next piece begins.
template <class T>
struct pk_shared {
  typedef T value;
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "scratch has elements of 4 or 8 bytes");
  int64_t begin, n;
  pk_shared(int64_t& used, int64_t count, int32_t site) : begin(used), n(count) {
    used += (count * (int64_t)sizeof(T) + 15) / 16 * 16;
    const int64_t most = pk_sim.launch->shared_bytes;
    if (count < 0 || used > most)
      pk_sim_fault(pk_much_scratch, site, -1, count < 0 ? count : used, most, pk_sim.now->id, -1);
  }
  PK_SIM_MEMBER T* touch(int32_t i, pk_sim_deed deed, int32_t site) const {
    if (pk_sim_outside(i, n)) pk_sim_fault(pk_bad_scratch, site, -1, i, n, pk_sim.now->id, -1);
    const int64_t at = begin + i * (int64_t)sizeof(T);
    int32_t* const written = pk_mem.written + at / 4;
    if (deed == pk_write) *written = pk_sim.block + 1;
    if (*written != pk_sim.block + 1) pk_sim_fault(pk_unset_scratch, site, -1, i, n, pk_sim.now->id, -1);
    if (pk_sim.threads > 1) pk_sim_mark(pk_mem.marks + at / 4, deed, pk_race_on_scratch, i, site);
    return (T*)(void*)(pk_mem.scratch + at);
  }
  T get(int32_t i, int32_t site) const { return *touch(i, pk_read, site); }
  void set(int32_t i, T v, int32_t site) const { *touch(i, pk_write, site) = v; }
};
#define PK_SCRATCH_BEGIN [[maybe_unused]] int64_t pk_used = 0
#define PK_SCRATCH(T, name, count, site) [[maybe_unused]] const pk_shared<T> name(pk_used, count, site)

// The hierarchy -------------------------------------------------------------------------------------------------------
#define PK_FUNCTION [[maybe_unused]] static inline
#define PK_CONSTANT [[maybe_unused]] static
#define PK_KERNEL(name) static void name([[maybe_unused]] const pk_args& pk_a)
#define PK_ENTRY(name)                                                         \
  static void pk_sim_body() { name(*(const pk_args*)pk_sim.args); }            \
  extern "C" __attribute__((visibility("default")))                            \
  void pk_run(pk_sim_launch* launch, const void* args) {                       \
    pk_sim_run(launch, args, pk_sim_body);                                     \
  }
#define PK_BLOCK_RANK (pk_sim.block)
#define PK_THREAD (pk_sim.now->id)
#define PK_THREADS (pk_sim.threads)
#define PK_LANE (pk_sim.now->lane)
#define PK_LANES (pk_sim.lanes)
#define PK_TEAM_RANK (pk_sim.now->row)
#define PK_TEAM_SIZE (pk_sim.rows)
#define PK_BARRIER(site) pk_sim_barrier(site)
#define PK_ROW_SYNC(site) pk_sim_row_sync(site)

static inline void pk_sim_row_sync(int32_t site) {
  if (pk_sim.lanes > 1) pk_sim_meet_row(site);
}

// Sums are added in the order of a GPU, by the first thread that continues after all have stored their values.
template <class T>
static inline T pk_sim_value(const int64_t* at) {
  T v;
  __builtin_memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
static inline void pk_sim_store(int64_t* at, T v) {
  __builtin_memcpy(at, &v, sizeof v);
}
// Return an integer that wraps around on overflow, as on a device.
template <class T>
static inline T pk_sim_wrapped(uint64_t bits) {
  return (T)bits;
}
struct pk_op_add {
  template <class T>
  static T of(T a, T b) {
    if constexpr ((T)0.5 != 0) return a + b;
    else return pk_sim_wrapped<T>((uint64_t)a + (uint64_t)b);
  }
};

template <class T>
static inline T pk_row_sum(T v, int32_t site) {
  if (pk_sim.lanes == 1) return v;
  int64_t* const values = pk_sim.value + pk_sim.now->id - pk_sim.now->lane;
  pk_sim_row* const row = pk_sim.row + pk_sim.now->row;
  pk_sim_store(values + pk_sim.now->lane, v);
  pk_sim_meet_row(site);
  if (row->fresh) {
    row->fresh = false;
    for (int32_t half = pk_sim.lanes / 2; half > 0; half /= 2)
      for (int32_t l = 0; l < half; l++)
        pk_sim_store(values + l, pk_op_add::of(pk_sim_value<T>(values + l), pk_sim_value<T>(values + l + half)));
    row->sum = values[0];
  }
  return pk_sim_value<T>(&row->sum);
}

template <class T>
static inline T pk_row_scan(T v, T& total, int32_t site) {
  int64_t* const values = pk_sim.value + pk_sim.now->id - pk_sim.now->lane;
  pk_sim_row* const row = pk_sim.row + pk_sim.now->row;
  pk_sim_store(values + pk_sim.now->lane, v);
  if (pk_sim.lanes > 1) pk_sim_meet_row(site);
  if (pk_sim.lanes == 1 || row->fresh) {
    row->fresh = false;
    for (int32_t d = 1; d < pk_sim.lanes; d *= 2)
      for (int32_t l = pk_sim.lanes - 1; l >= d; l--)
        pk_sim_store(values + l, pk_op_add::of(pk_sim_value<T>(values + l), pk_sim_value<T>(values + l - d)));
    row->sum = values[pk_sim.lanes - 1];
    for (int32_t l = pk_sim.lanes - 1; l > 0; l--) values[l] = values[l - 1];
    pk_sim_store(values, (T)0);
  }
  total = pk_sim_value<T>(&row->sum);
  return pk_sim_value<T>(values + pk_sim.now->lane);
}
template <class T>
static inline T pk_row_count(T v, T& total, int32_t site) {
  return pk_row_scan(v, total, site);
}

template <class T>
static inline T pk_team_sum(T v, int32_t site) {
  pk_sim_store(pk_sim.value + pk_sim.now->id, v);
  pk_sim_barrier(site);
  if (pk_sim.fresh) {
    pk_sim.fresh = false;
    T sum = 0;
    for (int32_t begin = 0; begin < pk_sim.threads; begin += 32) {
      int64_t* const values = pk_sim.value + begin;
      const int32_t n = pk_sim.threads - begin < 32 ? pk_sim.threads - begin : 32;
      for (int32_t d = 16; d > 0; d /= 2)
        for (int32_t l = 0; l < d && l + d < n; l++)
          pk_sim_store(values + l, pk_op_add::of(pk_sim_value<T>(values + l), pk_sim_value<T>(values + l + d)));
      sum = begin ? pk_op_add::of(sum, pk_sim_value<T>(values)) : pk_sim_value<T>(values);
    }
    pk_sim_store(&pk_sim.sum, sum);
  }
  return pk_sim_value<T>(&pk_sim.sum);
}

template <class T>
static inline T pk_team_scan(T v, T& total, int32_t site) {
  int64_t* const mine = pk_sim.value + pk_sim.now->id;
  pk_sim_store(mine, v);
  pk_sim_barrier(site);
  if (pk_sim.fresh) {
    pk_sim.fresh = false;
    T sum = 0;
    for (int32_t begin = 0; begin < pk_sim.threads; begin += 32) {
      int64_t* const values = pk_sim.value + begin;
      const int32_t n = pk_sim.threads - begin < 32 ? pk_sim.threads - begin : 32;
      for (int32_t d = 1; d < 32; d *= 2)
        for (int32_t l = n - 1; l >= d; l--)
          pk_sim_store(values + l, pk_op_add::of(pk_sim_value<T>(values + l), pk_sim_value<T>(values + l - d)));
      const T group = pk_sim_value<T>(values + n - 1);
      for (int32_t l = n - 1; l > 0; l--) pk_sim_store(values + l, pk_op_add::of(sum, pk_sim_value<T>(values + l - 1)));
      pk_sim_store(values, sum);
      sum = pk_op_add::of(sum, group);
    }
    pk_sim_store(&pk_sim.sum, sum);
  }
  total = pk_sim_value<T>(&pk_sim.sum);
  return pk_sim_value<T>(mine);
}

// Atomics -------------------------------------------------------------------------------------------------------------
struct pk_op_sub {
  template <class T>
  static T of(T a, T b) {
    if constexpr ((T)0.5 != 0) return a - b;
    else return pk_sim_wrapped<T>((uint64_t)a - (uint64_t)b);
  }
};
struct pk_op_max {
  template <class T>
  static T of(T a, T b) { return a > b ? a : b; }
};
struct pk_op_min {
  template <class T>
  static T of(T a, T b) { return a < b ? a : b; }
};
template <class Op, class View, class I>
static inline typename View::value pk_atomic(const View& view, I i, typename View::value v, int32_t site) {
  auto* const p = view.touch(i, pk_update, site);
  const typename View::value old = *p;
  *p = Op::of(old, v);
  return old;
}

// Mathematics ---------------------------------------------------------------------------------------------------------
#define PK_MATH1(name)                                                                        \
  [[maybe_unused]] static inline double pk_##name(double x) { return __builtin_##name(x); }   \
  [[maybe_unused]] static inline float pk_##name(float x) { return __builtin_##name##f(x); }
#define PK_MATH2(name)                                                                                     \
  [[maybe_unused]] static inline double pk_##name(double x, double y) { return __builtin_##name(x, y); }   \
  [[maybe_unused]] static inline float pk_##name(float x, float y) { return __builtin_##name##f(x, y); }
PK_MATH1(sqrt) PK_MATH1(expm1) PK_MATH1(log)
PK_MATH1(sin) PK_MATH1(cos) PK_MATH1(tan) PK_MATH1(sinh) PK_MATH1(cosh) PK_MATH1(tanh)
PK_MATH1(erf) PK_MATH1(erfc) PK_MATH1(fabs) PK_MATH1(floor) PK_MATH1(ceil)
PK_MATH2(fmin) PK_MATH2(fmax) PK_MATH2(pow)
#ifdef PK_RSQRT_FINITE
#include "pk_roots.h"
#else
[[maybe_unused]] static inline double pk_rsqrt(double x) { return 1 / __builtin_sqrt(x); }
[[maybe_unused]] static inline float pk_rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
#endif
#ifdef PK_EXP_ROUNDED
#include "pk_exp.h"
#else
PK_MATH1(exp)
#endif

template <class T>
static inline T pk_inf() {
  return (T)__builtin_inf();
}

// A launch ------------------------------------------------------------------------------------------------------------
extern "C" int sched_yield(void);
static bool pk_sim_busy;

static inline void pk_sim_run(pk_sim_launch* launch, const void* args, void (*body)()) {
  for (int k = 0; k < 8; k++) launch->fault[k] = 0;
  if (launch->grid < 1 || launch->block_x < 1 || launch->block_y < 1) return;
  while (__atomic_exchange_n(&pk_sim_busy, true, __ATOMIC_ACQUIRE)) sched_yield();
  const size_t words = ((size_t)launch->shared_bytes + 7) / 8 * 2 + 2;
  pk_mem = {};
  pk_mem.scratch = (char*)__builtin_malloc(4 * words);
  pk_mem.written = (int32_t*)__builtin_calloc(words, sizeof(int32_t));
  pk_mem.marks = (pk_sim_marks*)__builtin_calloc(words, sizeof(pk_sim_marks));
  if (pk_threads_open(launch, args, body) && pk_mem.scratch && pk_mem.written && pk_mem.marks) {
    __builtin_memset(pk_mem.scratch, 0xff, 4 * words);
    pk_threads_run();
  } else {
    launch->fault[0] = pk_no_memory;
  }
  pk_threads_close();
  __builtin_free(pk_mem.scratch);
  __builtin_free(pk_mem.written);
  __builtin_free(pk_mem.marks);
  __builtin_free(pk_mem.table);
  __atomic_store_n(&pk_sim_busy, false, __ATOMIC_RELEASE);
}
#endif
