// Threads of a block on the host: each thread is a fibre, and blocks run one after another.
//
// A thread runs until it waits for others or ends; a thread that never waits costs a call.  The order of the threads is
// drawn from a seed, again whenever all have waited.  The first fault ends the launch.
#ifndef PK_THREADS_H
#define PK_THREADS_H
#include "pk_fibre.h"

// For functions that are called from many places of a text: inlining would double the compile time.
#define PK_SIM_MEMBER __attribute__((noinline))
#define PK_SIM_CALL __attribute__((noinline, unused)) static

// Shared with the caller.  order: 0 as drawn from the seed, 1 ascending, 2 descending.
// fault: kind (0: none), site, other site or -1, index, limit, block, thread, other thread or -1.
struct pk_sim_launch {
  int64_t grid, block_x, block_y, warp, shared_bytes, seed, order;
  int64_t fault[8];
};
enum pk_sim_kind {
  pk_bad_view = 1,     // index outside of a view
  pk_bad_scratch,      // index outside of a piece of scratch
  pk_much_scratch,     // index: bytes requested so far
  pk_bad_barrier,      // other site -1: the other thread has ended
  pk_race_on_scratch,  // limit: deed of this access plus four times the deed of the earlier one (pk_sim_deed)
  pk_race_on_view,
  pk_unset_scratch,  // read before written
  pk_short_row,      // index: the row
  pk_no_memory,
  pk_odd_two  // two elements are read at once at an odd place of memory
};
enum pk_sim_deed { pk_read, pk_write, pk_update };
enum pk_sim_wait { pk_ready, pk_chosen, pk_at_barrier, pk_at_row, pk_ended };

struct pk_sim_thread {
  int32_t id, lane, row, wait, site;
  pk_fibre* fibre;  // null before the first turn
};
struct pk_sim_row {
  int32_t waiting;
  uint32_t epoch;  // accesses in different epochs of a phase are ordered within the row
  bool fresh;      // the lanes have met, and none has continued yet
  int64_t sum;     // bits of the sum
};

static struct pk_sim_state {
  pk_sim_launch* launch;
  const void* args;
  void (*body)();
  pk_sim_thread *now, *thread;
  pk_sim_thread **turn, **soon;  // threads to run next: the last of `soon`, then `turn` from `turned` on
  int32_t turns, turned, soons;
  int32_t block, threads, lanes, rows, warp, live;
  pk_sim_row* row;
  int64_t *value, sum;  // bits of the threads' values in sums and scans, and of a sum over all threads
  bool fresh;
  uint32_t phase;
  uint64_t random;
  pk_fibres fibres;
  pk_fibre home;
} pk_sim;

// Report a fault and end the launch.
[[noreturn]] PK_SIM_CALL void pk_sim_fault(pk_sim_kind kind, int64_t site, int64_t other_site, int64_t index,
                                           int64_t limit, int64_t thread, int64_t other) {
  const int64_t fault[8] = {kind, site, other_site, index, limit, pk_sim.block, thread, other};
  __builtin_memcpy(pk_sim.launch->fault, fault, sizeof fault);
  pk_fibre left;
  pk_fibre_switch(&left, &pk_sim.home);
  __builtin_unreachable();
}

// Order of threads ----------------------------------------------------------------------------------------------------
static inline int32_t pk_sim_draw(int32_t n) {  // splitmix64
  uint64_t z = pk_sim.random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (int32_t)(((z >> 32) * (uint64_t)n) >> 32);
}
static inline void pk_sim_shuffle(pk_sim_thread** list, int32_t n) {
  for (; n > 1; n--) {
    const int32_t k = pk_sim_draw(n);
    pk_sim_thread* const t = list[k];
    list[k] = list[n - 1];
    list[n - 1] = t;
  }
}
// Put all threads that can continue in a new order: one by one, or half of the time warp after warp.
static inline bool pk_sim_gather() {
  const int64_t order = pk_sim.launch->order;
  const bool mixed = order == 0 && pk_sim_draw(2);
  const int32_t warp = order == 0 && !mixed ? pk_sim.warp : pk_sim.threads;
  const int32_t warps = (pk_sim.threads + warp - 1) / warp, first = warps > 1 ? pk_sim_draw(warps) : 0;
  pk_sim.turns = pk_sim.turned = 0;
  for (int32_t w = 0; w < warps; w++) {
    const int32_t begin = (first + w) % warps * warp;
    const int32_t count = pk_sim.threads - begin < warp ? pk_sim.threads - begin : warp;
    for (int32_t i = 0; i < count; i++) {
      pk_sim_thread* const t = pk_sim.thread + begin + (order == 2 ? count - 1 - i : i);
      if (t->wait != pk_ready) continue;
      t->wait = pk_chosen;
      pk_sim.turn[pk_sim.turns++] = t;
    }
  }
  if (mixed) pk_sim_shuffle(pk_sim.turn, pk_sim.turns);
  return pk_sim.turns > 0;
}
// Report a fault if a lane of this thread's row waits elsewhere, or has ended.
static inline void pk_sim_check_row(const pk_sim_thread* t) {
  for (const pk_sim_thread *o = t - t->lane, *end = o + pk_sim.lanes; o < end; o++)
    if (o->wait != pk_at_row || o->site != t->site)
      pk_sim_fault(pk_short_row, t->site, o->wait == pk_ended ? -1 : o->site, t->row, pk_sim.lanes, t->id, o->id);
}
// Release all threads from a barrier when none can continue; report a fault if they do not all wait at the same one.
static inline void pk_sim_release() {
  const pk_sim_thread* first = nullptr;
  for (int32_t i = pk_sim.threads - 1; i >= 0; i--) {
    if (pk_sim.thread[i].wait == pk_at_row) pk_sim_check_row(pk_sim.thread + i);
    if (pk_sim.thread[i].wait == pk_at_barrier) first = pk_sim.thread + i;
  }
  for (int32_t i = 0; i < pk_sim.threads; i++) {
    pk_sim_thread* const t = pk_sim.thread + i;
    const bool ended = t->wait == pk_ended;
    if (ended || t->site != first->site)
      pk_sim_fault(pk_bad_barrier, first->site, ended ? -1 : t->site, 0, 0, first->id, t->id);
  }
  for (int32_t i = 0; i < pk_sim.threads; i++) pk_sim.thread[i].wait = pk_ready;
  pk_sim.phase++;
  pk_sim.fresh = true;
}
// Return the next thread to run, null after the last block.
static inline pk_sim_thread* pk_sim_pick() {
  for (;;) {
    if (pk_sim.soons) return pk_sim.soon[--pk_sim.soons];
    if (pk_sim.turned < pk_sim.turns) return pk_sim.turn[pk_sim.turned++];
    if (pk_sim.live == 0) {
      if (++pk_sim.block >= pk_sim.launch->grid) return nullptr;
      for (int32_t i = 0; i < pk_sim.threads; i++) pk_sim.thread[i].wait = pk_ready;
      pk_sim.live = pk_sim.threads;
      pk_sim.phase++;
    }
    if (!pk_sim_gather()) pk_sim_release();
  }
}
// Run one thread after another on a fibre; switch to the fibre of a thread that has already begun.
[[noreturn]] static inline void pk_sim_work() {
  for (;;) {
    pk_sim.body();
    pk_fibre* const mine = pk_sim.now->fibre;
    pk_sim.now->fibre = nullptr;
    pk_sim.now->wait = pk_ended;
    pk_sim.live--;
    pk_sim_thread* const next = pk_sim_pick();
    if (!next) pk_fibre_switch(mine, &pk_sim.home);
    pk_sim.now = next;
    if (next->fibre) {
      pk_fibres_put(&pk_sim.fibres, mine);
      pk_fibre_switch(mine, next->fibre);
    } else {
      next->fibre = mine;
    }
  }
}
static inline void pk_sim_enter(pk_fibre* from, pk_sim_thread* next) {
  if (!next->fibre) next->fibre = pk_fibres_take(&pk_sim.fibres, pk_sim_work);
  if (!next->fibre) pk_sim_fault(pk_no_memory, -1, -1, 0, 0, next->id, -1);
  pk_sim.now = next;
  pk_fibre_switch(from, next->fibre);
}
// Let others run until this thread, whose `wait` is set, is chosen again.
PK_SIM_CALL void pk_sim_leave() {
  pk_sim_thread* const self = pk_sim.now;
  pk_sim_thread* const next = pk_sim_pick();
  if (next != self) pk_sim_enter(self->fibre, next);
}
static inline void pk_sim_barrier(int32_t site) {
  pk_sim.now->wait = pk_at_barrier;
  pk_sim.now->site = site;
  pk_sim_leave();
}
PK_SIM_CALL void pk_sim_meet_row(int32_t site) {
  pk_sim_thread *const self = pk_sim.now, *const first = self - self->lane;
  pk_sim_row* const row = pk_sim.row + self->row;
  const int32_t lanes = pk_sim.lanes;
  if (lanes > 32 || (lanes & (lanes - 1))) pk_sim_fault(pk_short_row, site, -1, self->row, lanes, self->id, -1);
  self->wait = pk_at_row;
  self->site = site;
  if (++row->waiting == lanes) {
    pk_sim_check_row(self);
    row->waiting = 0;
    row->epoch++;
    row->fresh = true;
    const bool soon = pk_sim.launch->order == 0 && pk_sim_draw(2);  // before other rows, or after them
    for (int32_t l = 0; l < lanes; l++) {
      first[l].wait = soon ? pk_chosen : pk_ready;
      if (soon) pk_sim.soon[pk_sim.soons++] = first + l;
    }
    if (soon) pk_sim_shuffle(pk_sim.soon + pk_sim.soons - lanes, lanes);
  }
  pk_sim_leave();
}

// A launch ------------------------------------------------------------------------------------------------------------
static inline bool pk_threads_open(pk_sim_launch* launch, const void* args, void (*body)()) {
  pk_sim = {};
  pk_sim.launch = launch;
  pk_sim.args = args;
  pk_sim.body = body;
  pk_sim.lanes = (int32_t)launch->block_x;
  pk_sim.rows = (int32_t)launch->block_y;
  pk_sim.threads = pk_sim.lanes * pk_sim.rows;
  pk_sim.warp = launch->warp > 0 ? (int32_t)launch->warp : 32;
  pk_sim.block = -1;
  pk_sim.random = (uint64_t)launch->seed;
  const size_t n = (size_t)pk_sim.threads;
  pk_sim.thread = (pk_sim_thread*)__builtin_calloc(n, sizeof(pk_sim_thread));
  pk_sim.turn = (pk_sim_thread**)__builtin_calloc(2 * n, sizeof(pk_sim_thread*));
  pk_sim.row = (pk_sim_row*)__builtin_calloc((size_t)pk_sim.rows, sizeof(pk_sim_row));
  pk_sim.value = (int64_t*)__builtin_calloc(n, sizeof(int64_t));
  const bool open = pk_fibres_open(&pk_sim.fibres, pk_sim.threads);
  if (!open || !pk_sim.thread || !pk_sim.turn || !pk_sim.row || !pk_sim.value) return false;
  pk_sim.soon = pk_sim.turn + n;
  for (int32_t i = 0; i < pk_sim.threads; i++) {
    pk_sim.thread[i].id = i;
    pk_sim.thread[i].lane = i % pk_sim.lanes;
    pk_sim.thread[i].row = i / pk_sim.lanes;
  }
  pk_fibre* const one = pk_fibres_take(&pk_sim.fibres, pk_sim_work);
  if (one) pk_fibres_put(&pk_sim.fibres, one);
  return one;
}
// Run all blocks; return after the last one, or after a fault.
static inline void pk_threads_run() {
  pk_sim_thread* const first = pk_sim_pick();
  if (first) pk_sim_enter(&pk_sim.home, first);
}
static inline void pk_threads_close() {
  pk_fibres_close(&pk_sim.fibres);
  __builtin_free(pk_sim.thread);
  __builtin_free(pk_sim.turn);
  __builtin_free(pk_sim.row);
  __builtin_free(pk_sim.value);
  pk_sim = {};
}
#endif
