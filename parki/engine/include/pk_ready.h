// Jobs of `pk_tasks.h`, as plain data of the caller, and the rules by which units find ready tasks.
//
// Ready tasks lie in buckets.  A unit is a worker or a device, and polls the buckets of its list in order.
#ifndef PK_READY_H
#define PK_READY_H
#include <stdint.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <vector>

struct pk_patch {
  int64_t field, at;  // bytes: offset of a pointer in an argument structure, and of its target in a worker's room
};

// Rules by which units find tasks, as `parki.tasks.sharing` declares them; without rules all tasks are in one bucket.
struct pk_sharing {
  int32_t buckets, owners, devices, mapped;  // mapped: units of one class have different buckets
  int32_t remaining, batch;                  // rules of `parki.tasks.policy`
  const int32_t *bucket, *owner;             // of each task
  const int32_t *list_begin, *list;          // buckets of each unit: workers, then devices
  const double *few[2];                      // of each bucket: ready tasks that workers, and devices, leave alone
  const double *core, *device, *wave;        // seconds of each task
  const uint8_t* shared;                     // of each bucket: devices may run its tasks
  const uint8_t* whole;                      // of each bucket: a device takes all of its ready tasks at once
  double full, least;                        // waves of work of a full batch, and before a batch may leave tasks
};

// Filled by the caller, except `now`, `failed`, `done` and `state`; `parki.tasks.pool` declares the same fields.
struct pk_job {
  int32_t tasks, threads, in_order, may_fault;
  const int32_t* call_begin;          // first call of each task, and the end of the last
  void (*const* run)(const void*);    // of each call
  char* const* args;                  // of each call
  const int32_t* patch_begin;         // first patch of each call, and the end of the last
  const pk_patch* patches;            // pointers to the room of the worker that runs the call
  const int64_t* const* fault;        // of each call: four numbers, of which the first is 0 until a fault
  const int32_t *after_begin, *after; // tasks that wait for each task
  int32_t* waits;                     // of each task: number of tasks that it waits for
  const int32_t* turn;                // of each task: the ready task with the least turn comes first
  int32_t* worker;                    // of each task: unit that has run it
  int64_t *began, *ended;             // of each task: nanoseconds
  char* rooms;                        // of each worker, contiguous
  int64_t room_bytes;
  int64_t now;       // nanoseconds of the same clock at which the job began
  int32_t failed;    // first call that has failed, -1 for none
  int32_t done;      // tasks that have ended
  void* state;       // of `pk_tasks_begin`
  const pk_sharing* sharing;
};

namespace {

typedef std::vector<uint64_t> pk_heap;  // turn in the upper 32 bits, task in the lower ones

struct pk_state {
  pk_job* job;
  std::vector<pk_heap> heaps;  // of each bucket, one per owner
  std::vector<int32_t> ready;  // number of ready tasks of each bucket
  int32_t all = 0;             // number of all ready tasks
  double left = 0;             // seconds on a device of shared tasks that have not begun
  std::vector<int32_t> slots;  // free worker numbers
  int32_t running = 0, entered = 0, arrivals = 0;
  bool stopped = false;
  std::condition_variable news, call;  // for the caller, for devices: tasks are ready, or the job ends
  bool waiting = false;
  int32_t listening = 0;  // number of devices that wait

  bool over() const { return running == 0 && (stopped || job->done == job->tasks); }
  void push(int32_t task) {
    const pk_sharing* const s = job->sharing;
    const uint32_t turn = job->in_order ? (uint32_t)arrivals++ : (uint32_t)job->turn[task];
    const int32_t bucket = s ? s->bucket[task] : 0;
    pk_heap& heap = heaps[s ? bucket * s->owners + s->owner[task] : 0];
    heap.push_back((uint64_t)turn << 32 | (uint32_t)task);
    std::push_heap(heap.begin(), heap.end(), std::greater<uint64_t>());
    ready[bucket]++;
    all++;
  }
  // Return the heap of a unit's next task, -1 for none.
  int32_t find(int32_t unit) const {
    if (stopped || !all) return -1;
    const pk_sharing* const s = job->sharing;
    if (!s) return 0;
    const int32_t own = unit - job->threads;  // number among the devices
    const bool device = own >= 0;
    const int32_t *const begin = s->list + s->list_begin[unit], *const end = s->list + s->list_begin[unit + 1];
    if (job->in_order) {
      int32_t first = -1;
      for (const int32_t* b = begin; b < end; b++)
        for (int32_t h = *b * s->owners; h < (*b + 1) * s->owners; h++)
          if (!heaps[h].empty() && (first < 0 || heaps[h][0] < heaps[first][0])) first = h;
      return first;
    }
    if (device && s->owners > 1)
      for (const int32_t* b = begin; b < end; b++)
        if (ready[*b] > s->few[1][*b] && !heaps[*b * s->owners + own].empty()) return *b * s->owners + own;
    for (const int32_t* b = begin; b < end; b++)
      if (ready[*b] > s->few[device][*b])
        for (int32_t h = *b * s->owners; h < (*b + 1) * s->owners; h++)
          if (!heaps[h].empty() && (device || !leaves(*b, heaps[h][0]))) return h;
    return -1;
  }
  // Return whether a core leaves a task to the devices, because all work that has not begun takes them less time.
  bool leaves(int32_t bucket, uint64_t head) const {
    const pk_sharing& s = *job->sharing;
    return s.remaining && s.shared[bucket] && s.core[(uint32_t)head] > left / std::max(s.devices, 1);
  }
  int32_t take(int32_t h) {
    pk_heap& heap = heaps[h];
    std::pop_heap(heap.begin(), heap.end(), std::greater<uint64_t>());
    const int32_t task = (int32_t)(uint32_t)heap.back();
    heap.pop_back();
    const pk_sharing* const s = job->sharing;
    const int32_t bucket = s ? s->bucket[task] : 0;
    ready[bucket]--;
    all--;
    running++;
    if (s && s->shared[bucket]) left -= s->device[task];
    return task;
  }
  int32_t pop(int32_t worker) {
    const int32_t h = find(worker);
    return h < 0 ? -1 : take(h);
  }
  // Take up to `most` tasks of one bucket that a device launches together, and return their number.
  int32_t pop_many(int32_t unit, int32_t* out, int32_t most) {
    const int32_t h = find(unit);
    if (h < 0) return 0;
    const pk_sharing& s = *job->sharing;
    const int32_t bucket = h / s.owners;
    const bool whole = s.whole[bucket];
    const int32_t some = std::max(1, ready[bucket] / (2 * std::max(s.devices, 1)));
    int32_t n = 0;
    double work = 0, wave = 0;
    do {
      out[n] = take(h);
      work += s.device[out[n]];
      if (!n) wave = s.wave[out[0]];
      n++;
    } while (s.batch && n < most && !heaps[h].empty() &&
             (whole || (work < s.full * wave && (n < some || work < s.least * wave))));
    return n;
  }
};

}  // namespace
#endif
