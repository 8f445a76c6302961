// Execution of task graphs by StarPU, whose workers take the ready tasks of jobs (pk_tasks.h) by one of its policies.
//
// A process has one StarPU, with one policy, so that one job runs at a time: callers take turns.  The caller's thread
// waits.  Between jobs the workers sleep.
#ifndef PK_STARPU_H
#define PK_STARPU_H
#include <starpu.h>
#include <stdlib.h>
#include <string.h>

#include "pk_tasks.h"

// Filled by the caller, except `state`; `parki.tasks.starpu` declares the same fields.
struct pk_starpu_job {
  pk_job* job;
  const int32_t *before_begin, *before;  // tasks that each task waits for
  const int32_t* bucket;                 // of each task: buckets are polled from 0 on; null for policies without them
  const double* seconds;                 // of each task: expected duration
  void* state;                           // of `pk_starpu_begin`
};

namespace {

struct pk_starpu_state;
struct pk_starpu_task {
  pk_starpu_state* state;
  int32_t number;
};

struct pk_starpu_state {
  pk_starpu_job* job;
  std::vector<pk_starpu_task> tasks;
  int32_t submitted = 0, passed = 0;  // number of tasks given to StarPU, and of tasks run or skipped
  std::atomic<bool> stopped{false};
  std::mutex lock;  // guards `submitted` and `passed`
  std::condition_variable news;
};

// Run a task on a worker of StarPU; skip the task if the job has stopped.
void pk_starpu_do(void**, void* const argument) {
  const pk_starpu_task& task = *(pk_starpu_task*)argument;
  pk_starpu_state& state = *task.state;
  pk_job& job = *state.job->job;
  if (!state.stopped) {
    if (!pk_do(job, task.number, starpu_worker_get_id())) state.stopped = true;
    __atomic_fetch_add(&job.done, 1, __ATOMIC_RELAXED);
  }
  std::lock_guard<std::mutex> held(state.lock);
  if (++state.passed == state.submitted) state.news.notify_one();
}

double pk_starpu_expected(starpu_task* const task, starpu_perfmodel_arch*, unsigned) {
  const pk_starpu_task& mine = *(pk_starpu_task*)task->cl_arg;
  return 1e6 * mine.state->job->seconds[mine.number];
}

// Return the only codelet, which StarPU refers to as long as the process lives.  The caller gives the durations: StarPU
// would keep a model of its own in files, and end the process if a file is damaged or cannot be written.
starpu_codelet* pk_starpu_codelet() {
  static starpu_perfmodel durations;
  static starpu_codelet codelet;
  if (!codelet.model) {
    memset(&durations, 0, sizeof durations);
    durations.type = STARPU_PER_ARCH;
    durations.arch_cost_function = pk_starpu_expected;
    durations.symbol = "parki";
    starpu_codelet_init(&codelet);
    codelet.where = STARPU_CPU;
    codelet.cpu_funcs[0] = pk_starpu_do;
    codelet.nbuffers = 0;
    codelet.model = &durations;
    codelet.name = "parki";
  }
  return &codelet;
}

// Priorities of tasks within the limits of the policy: the least turn has the highest priority.
struct pk_starpu_priorities {
  const pk_starpu_job& job;
  int64_t least, most, span, last;
  explicit pk_starpu_priorities(const pk_starpu_job& one)
      : job(one), least(starpu_sched_get_min_priority()), most(starpu_sched_get_max_priority()) {
    last = std::max(job.job->tasks - 1, 1);
    span = std::min(last, most - least);
    if (least <= -span && most >= 0) least = -span;
  }
  int of(int32_t task) const {
    if (job.bucket) return (int)std::min<int64_t>(job.bucket[task], most);
    if (job.job->in_order) return (int)std::min<int64_t>(std::max<int64_t>(0, least), most);
    return (int)(least + (last - job.job->turn[task]) * span / last);
  }
};

// Environment variables that StarPU reads while it starts; variables that the user has set are kept.
class pk_starpu_settings {
  std::vector<const char*> names;
  void set(const char* name, const char* value) {
    if (getenv(name)) return;
    setenv(name, value, 1);
    names.push_back(name);
  }

 public:
  explicit pk_starpu_settings(const char* home) {
    set("STARPU_SILENT", "1");
    set("STARPU_WORKERS_NOBIND", "1");                    // cores may have other work
    set("STARPU_HETEROPRIO_USE_AUTO_CALIBRATION", "0");  // buckets are given
    if (!getenv("STARPU_PERF_MODEL_DIR")) set("STARPU_HOME", home);
  }
  ~pk_starpu_settings() {
    for (const char* name : names) unsetenv(name);
  }
};

bool pk_starpu_here = false;  // true while a StarPU that this library has started runs

}  // namespace

// Return the name of a predefined policy of StarPU, null after the last one.
extern "C" const char* pk_starpu_policy(int32_t i) {
  const starpu_sched_policy* const policy = starpu_sched_get_predefined_policies()[i];
  return policy ? policy->policy_name : nullptr;
}

extern "C" int32_t pk_starpu_most_workers() { return STARPU_MAXCPUS; }

// End StarPU and its threads, if this library has started StarPU.
extern "C" void pk_starpu_shut() {
  if (!pk_starpu_here) return;
  pk_starpu_here = false;
  starpu_resume();
  starpu_shutdown();
}

// Start or restart StarPU, with workers that sleep; return their number, -1 if another library has started StarPU,
// -2 if the start fails.
// StarPU writes its data on buses between devices to the folder `home`; they are not read again.
extern "C" int32_t pk_starpu_start(const char* policy, int32_t threads, const char* home, int32_t buckets) {
  pk_starpu_shut();
  if (starpu_is_initialized()) return -1;
  starpu_conf conf;
  const pk_starpu_settings settings(home);
  if (starpu_conf_init(&conf)) return -2;
  conf.precedence_over_environment_variables = 1;
  conf.sched_policy_name = policy;
  conf.ncpus = threads;
  conf.ncuda = conf.nopencl = 0;
  conf.catch_signals = 0;  // signals belong to the interpreter
  if (buckets) {           // each priority is the number of a bucket, from which all workers take
    conf.global_sched_ctx_min_priority = 0;
    conf.global_sched_ctx_max_priority = buckets - 1;
  }
  sigset_t all, before;  // signals are for the caller's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = starpu_init(&conf);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed) return -2;
  pk_starpu_here = true;
  starpu_pause();
  return (int32_t)starpu_cpu_worker_get_count();
}

// Give StarPU all tasks of a job, and let workers begin; return 0 if StarPU has taken all tasks, else 1.
extern "C" int32_t pk_starpu_begin(pk_starpu_job* const one) {
  pk_job& job = *one->job;
  pk_starpu_state* const state = new pk_starpu_state;
  state->job = one;
  one->state = state;
  job.failed = -1;
  job.done = 0;
  job.now = pk_clock();
  const int32_t n = job.tasks;
  const pk_starpu_priorities priorities(*one);
  starpu_codelet* const codelet = pk_starpu_codelet();
  std::vector<starpu_task*> tasks(n);
  std::vector<starpu_task*> awaited;
  state->tasks.resize(n);
  for (int32_t t = 0; t < n; t++) {
    state->tasks[t] = {state, t};
    tasks[t] = starpu_task_create();
    tasks[t]->cl = codelet;
    tasks[t]->cl_arg = &state->tasks[t];
    tasks[t]->priority = priorities.of(t);
    awaited.clear();
    for (int32_t b = one->before_begin[t]; b < one->before_begin[t + 1]; b++) awaited.push_back(tasks[one->before[b]]);
    if (!awaited.empty()) starpu_task_declare_deps_array(tasks[t], (unsigned)awaited.size(), awaited.data());
  }
  state->submitted = n;
  starpu_resume();
  for (int32_t t = 0; t < n; t++)
    if (starpu_task_submit(tasks[t])) {
      // no earlier task waits for this one or for a later one
      state->stopped = true;
      for (int32_t rest = n - 1; rest >= t; rest--) starpu_task_destroy(tasks[rest]);
      std::lock_guard<std::mutex> held(state->lock);
      state->submitted = t;
      return 1;
    }
  starpu_do_schedule();
  return 0;
}

// Wait for up to `milliseconds`; return 1 if all tasks have been run or skipped, else 0.
extern "C" int32_t pk_starpu_wait(pk_starpu_job* const one, int32_t milliseconds) {
  pk_starpu_state& state = *(pk_starpu_state*)one->state;
  std::unique_lock<std::mutex> held(state.lock);
  return state.news.wait_for(held, std::chrono::milliseconds(milliseconds),
                             [&] { return state.passed >= state.submitted; });
}

// Let no further task begin, wait for running tasks, and put the workers to sleep.
extern "C" void pk_starpu_end(pk_starpu_job* const one) {
  pk_starpu_state* const state = (pk_starpu_state*)one->state;
  if (!state) return;
  state->stopped = true;
  starpu_task_wait_for_all();
  starpu_pause();
  one->state = nullptr;
  delete state;
}
#endif
