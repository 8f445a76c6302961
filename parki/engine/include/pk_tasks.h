// Execution of task graphs: each task calls kernels, one after another, when all tasks that it waits for have ended.
//
// A job is plain data of the caller.  The caller's thread is worker 0; the other workers are threads of one pool, which
// all jobs share.  No worker waits for a phase.  Idle pool threads sleep, and end after PK_IDLE if there are no jobs.
// Devices have threads of the caller, which take tasks by `pk_tasks_take` and give them back by `pk_tasks_gave`.
#ifndef PK_TASKS_H
#define PK_TASKS_H
#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#endif

#include "pk_ready.h"

namespace {

int64_t pk_clock() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

inline void pk_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spin lock, because it is held for a hundred nanoseconds: sleeping would take longer.
struct pk_spin {
  std::atomic<bool> held{false};
  void lock() {
    for (int tries = 1; held.exchange(true, std::memory_order_acquire); tries++) {
      for (int i = 0; i < 64 && held.load(std::memory_order_relaxed); i++) pk_pause();
      if (tries % 16 == 0) std::this_thread::yield();
    }
  }
  void unlock() { held.store(false, std::memory_order_release); }
};

struct pk_pool {
  pk_spin lock;                // guards `jobs`, `threads`, `asleep` and the states of jobs
  std::vector<pk_state*> jobs;
  int32_t threads = 0, asleep = 0;
  std::mutex bed;              // taken before `lock`, never after
  std::condition_variable bell;
};

// Never freed: threads of the pool may outlive static objects.  The child of a fork has no threads of the pool.
pk_pool* pk_the_pool = new pk_pool;
#ifndef _WIN32
[[maybe_unused]] const int pk_forks = pthread_atfork(nullptr, nullptr, [] { pk_the_pool = new pk_pool; });
#endif

constexpr auto PK_IDLE = std::chrono::seconds(1);  // time until a thread without work ends
constexpr int PK_LOOKS = 200;                      // searches for work before a thread sleeps: tens of microseconds

// Run a task, without the lock; return false if a call has failed.
bool pk_do(pk_job& job, int32_t task, int32_t worker) {
  bool good = true;
  job.worker[task] = worker;
  job.began[task] = pk_clock();
  char* const room = job.rooms + job.room_bytes * worker;
  for (int32_t c = job.call_begin[task]; good && c < job.call_begin[task + 1]; c++) {
    for (int32_t p = job.patch_begin[c]; p < job.patch_begin[c + 1]; p++)
      *(char**)(job.args[c] + job.patches[p].field) = room + job.patches[p].at;
    job.run[c](job.args[c]);
    if (job.may_fault && job.fault[c][0]) {
      int32_t none = -1;
      __atomic_compare_exchange_n(&job.failed, &none, c, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
      good = false;
    }
  }
  job.ended[task] = pk_clock();
  return good;
}

// Mark a task as done, with the lock held; return the number of tasks that have become ready.
int32_t pk_finish(pk_state& state, int32_t task, bool good) {
  pk_job& job = *state.job;
  state.running--;
  job.done++;
  if (!good) state.stopped = true;
  int32_t more = 0;
  for (int32_t s = job.after_begin[task]; s < job.after_begin[task + 1]; s++)
    if (--job.waits[job.after[s]] == 0) {
      state.push(job.after[s]);
      more++;
    }
  return more;
}

// Wake pool threads for `more` tasks, and the caller and devices if asked; no lock is held.
void pk_wake(pk_pool& pool, pk_state& state, int32_t more, bool caller, bool devices = false) {
  if (caller || devices) {
    std::lock_guard<std::mutex> awake(pool.bed);
    if (caller) state.news.notify_one();
    if (devices) state.call.notify_all();
  }
  if (more > 0) {
    std::lock_guard<std::mutex> awake(pool.bed);
    for (int32_t i = 0; i < more; i++) pool.bell.notify_one();
  }
}

// Run tasks as one worker until none is ready or the time is over; the lock is held on entry and on return.
void pk_work(pk_pool& pool, pk_state& state, int32_t worker, int64_t until) {
  for (int32_t task = state.pop(worker); task >= 0;) {
    pool.lock.unlock();
    const bool good = pk_do(*state.job, task, worker);
    pool.lock.lock();
    const int32_t ready = pk_finish(state, task, good);
    const bool late = until && pk_clock() >= until;
    task = late ? -1 : state.pop(worker);
    const int32_t spare = std::min<int32_t>(std::min<int32_t>(ready, state.all), pool.asleep);
    const bool caller = worker && state.waiting && (state.over() || state.find(0) >= 0);
    const bool devices = state.listening && (ready > 0 || state.over() || state.stopped);
    if (spare > 0 || caller || devices) {
      if (caller) state.waiting = false;
      pool.lock.unlock();
      pk_wake(pool, state, spare, caller, devices);
      pool.lock.lock();
    }
  }
}

// Return a job with a ready task for a free worker number, moved to the end of `slots`, or null; the lock is held.
pk_state* pk_find(pk_pool& pool) {
  for (pk_state* state : pool.jobs) {
    if (state->stopped || !state->all) continue;
    std::vector<int32_t>& slots = state->slots;
    const bool mapped = state->job->sharing && state->job->sharing->mapped;
    for (size_t i = slots.size(); i > 0; i--) {
      if (state->find(slots[i - 1]) >= 0) {
        std::swap(slots[i - 1], slots.back());
        return state;
      }
      if (!mapped) break;  // other numbers find the same tasks
    }
  }
  return nullptr;
}

void pk_member(pk_pool* const at) {
  pk_pool& pool = *at;
  pool.lock.lock();
  for (;;) {
    pk_state* state = pk_find(pool);
    for (int look = 0; !state && look < PK_LOOKS; look++) {
      pool.lock.unlock();
      for (int i = 0; i < 8; i++) pk_pause();
      pool.lock.lock();
      state = pk_find(pool);
    }
    if (state) {
      const int32_t worker = state->slots.back();
      state->slots.pop_back();
      state->entered++;
      pk_work(pool, *state, worker, 0);
      if (state->waiting && state->over()) {
        state->waiting = false;
        pool.lock.unlock();
        pk_wake(pool, *state, 0, true);
        pool.lock.lock();
      }
      state->slots.push_back(worker);
      state->entered--;
      continue;
    }
    pool.lock.unlock();
    bool last = false;
    {
      std::unique_lock<std::mutex> bed(pool.bed);
      pool.lock.lock();
      if (!pk_find(pool)) {
        pool.asleep++;
        pool.lock.unlock();
        const bool rung = pool.bell.wait_for(bed, PK_IDLE) == std::cv_status::no_timeout;
        pool.lock.lock();
        pool.asleep--;
        last = !rung && pool.jobs.empty();  // a job may map tasks to a worker that waits long for them
        if (last) pool.threads--;
      }
      if (last) pool.lock.unlock();
    }
    if (last) return;
  }
}

// Start threads until there are `wanted`; fewer are enough if the system gives no more.
void pk_hire(pk_pool& pool, int32_t wanted) {
#ifndef _WIN32
  sigset_t all, before;  // signals are for the caller's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  for (;;) {
    pool.lock.lock();
    const bool enough = pool.threads >= wanted;
    if (!enough) pool.threads++;
    pool.lock.unlock();
    if (enough) break;
    try {
      std::thread(pk_member, &pool).detach();
    } catch (...) {
      pool.lock.lock();
      pool.threads--;
      pool.lock.unlock();
      break;
    }
  }
#ifndef _WIN32
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
}

}  // namespace

// Make tasks that wait for no other task ready, and let the pool begin.
extern "C" void pk_tasks_begin(pk_job* const job) {
  pk_pool& pool = *pk_the_pool;
  pk_state* const state = new pk_state;
  const pk_sharing* const sharing = job->sharing;
  state->job = job;
  state->heaps.resize(sharing ? sharing->buckets * sharing->owners : 1);
  state->ready.assign(sharing ? sharing->buckets : 1, 0);
  if (!sharing) state->heaps[0].reserve(job->tasks);
  for (int32_t task = 0; sharing && task < job->tasks; task++)
    if (sharing->shared[sharing->bucket[task]]) state->left += sharing->device[task];
  job->failed = -1;
  job->done = 0;
  job->state = state;
  job->now = pk_clock();
  for (int32_t worker = job->threads - 1; worker > 0; worker--) state->slots.push_back(worker);
  for (int32_t task = 0; task < job->tasks; task++)
    if (job->waits[task] == 0) state->push(task);
  if (job->threads == 1 && !(sharing && sharing->devices)) return;
  pool.lock.lock();
  pool.jobs.push_back(state);
  const int32_t awake = std::min(pool.asleep, job->threads - 1);
  pool.lock.unlock();
  pk_wake(pool, *state, awake, false);
  pk_hire(pool, job->threads - 1);
}

// Work on a job as worker 0 for `milliseconds`, or wait for others; return 1 if the job is over, else 0.
extern "C" int32_t pk_tasks_help(pk_job* const job, int32_t milliseconds) {
  pk_pool& pool = *pk_the_pool;
  pk_state& state = *(pk_state*)job->state;
  const int64_t until = pk_clock() + (int64_t)milliseconds * 1000000;
  int looks = 0;
  pool.lock.lock();
  for (;;) {
    pk_work(pool, state, 0, until);
    if (state.over()) {
      pool.lock.unlock();
      return 1;
    }
    if (pk_clock() >= until) {
      pool.lock.unlock();
      return 0;
    }
    pool.lock.unlock();
    if (++looks < PK_LOOKS) {
      for (int i = 0; i < 8; i++) pk_pause();
      pool.lock.lock();
      continue;
    }
    looks = 0;
    std::unique_lock<std::mutex> bed(pool.bed);
    pool.lock.lock();
    if (state.find(0) < 0 && !state.over()) {
      state.waiting = true;
      pool.lock.unlock();
      state.news.wait_for(bed, std::chrono::nanoseconds(std::max<int64_t>(until - pk_clock(), 1)));
      pool.lock.lock();
      state.waiting = false;
    }
    bed.unlock();
  }
}

// Take tasks for a device, within `milliseconds`; return their number, 0 if none is ready yet, -1 after the last.
extern "C" int32_t pk_tasks_take(pk_job* const job, int32_t device, int32_t* out, int32_t most, int32_t milliseconds) {
  pk_pool& pool = *pk_the_pool;
  pk_state& state = *(pk_state*)job->state;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    std::unique_lock<std::mutex> bed(pool.bed);
    pool.lock.lock();
    const int32_t n = state.pop_many(job->threads + device, out, most);
    const bool last = state.stopped || job->done == job->tasks;
    const bool late = std::chrono::steady_clock::now() >= until;
    const bool listens = n == 0 && !last && !late;
    state.listening += listens;
    pool.lock.unlock();
    if (!listens) {
      const int64_t now = pk_clock();
      for (int32_t i = 0; i < n; i++) {
        job->worker[out[i]] = job->threads + device;
        job->began[out[i]] = now;
      }
      return n > 0 ? n : last ? -1 : 0;
    }
    state.call.wait_until(bed, until);
    pool.lock.lock();
    state.listening--;
    pool.lock.unlock();
  }
}

// Mark tasks that a device has taken as done.
extern "C" void pk_tasks_gave(pk_job* const job, const int32_t* tasks, int32_t n, int32_t good) {
  pk_pool& pool = *pk_the_pool;
  pk_state& state = *(pk_state*)job->state;
  const int64_t now = pk_clock();
  int32_t ready = 0;
  for (int32_t i = 0; i < n; i++) job->ended[tasks[i]] = now;
  pool.lock.lock();
  for (int32_t i = 0; i < n; i++) ready += pk_finish(state, tasks[i], good);
  const int32_t spare = std::min(ready, pool.asleep);
  const bool caller = state.waiting;
  state.waiting = false;
  pool.lock.unlock();
  pk_wake(pool, state, spare, caller, true);
}

// Let no further task begin.
extern "C" void pk_tasks_stop(pk_job* const job) {
  pk_pool& pool = *pk_the_pool;
  pk_state& state = *(pk_state*)job->state;
  pool.lock.lock();
  state.stopped = true;
  pool.lock.unlock();
  pk_wake(pool, state, 0, false, true);
}

// Wait until no thread is in a job that is over, and delete its state.
extern "C" void pk_tasks_end(pk_job* const job) {
  pk_pool& pool = *pk_the_pool;
  pk_state* const state = (pk_state*)job->state;
  pool.lock.lock();
  while (state->entered || state->running) {
    pool.lock.unlock();
    std::this_thread::yield();
    pool.lock.lock();
  }
  pool.jobs.erase(std::remove(pool.jobs.begin(), pool.jobs.end(), state), pool.jobs.end());
  pool.lock.unlock();
  delete state;
  job->state = nullptr;
}

// Return the number of threads of the pool.
extern "C" int32_t pk_tasks_threads() { return pk_the_pool->threads; }
#endif
