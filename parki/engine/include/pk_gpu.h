// Functions and types of generated GPU code, for CUDA (NVRTC) and, with PK_HIP, for HIP (hipRTC).  With PK_SIM the same
// names come from pk_sim.h, for the host.  No system header is included: neither compiler has headers at run time.
//
// PK_BLOCK is the number of threads of a block; PK_WIDE is 1 if indices need 64 bits.  A block is X * Y threads:
// x is the lane, y the rank in the team; the X lanes of one y are a row, X a power of two up to 32, so that no row lies
// in two warps.  `site` is a place in the kernel file; it is ignored here.
#ifndef PK_GPU_H
#define PK_GPU_H
#ifdef PK_SIM
#include "pk_sim.h"
#else

// hipRTC defined these types until ROCm 6; macros work with and without them.
typedef long long pk_long;
typedef unsigned char pk_byte;
#define int32_t int
#define uint32_t unsigned
#define int64_t pk_long
#define uint8_t pk_byte

#if PK_WIDE
typedef int64_t pk_index;
#else
typedef int32_t pk_index;
#endif

#ifdef PK_HIP
#define PK_MEMBER __device__ inline __attribute__((always_inline))
#else
#define PK_MEMBER __device__ __forceinline__
#endif
#define PK_INLINE static PK_MEMBER
#define PK_FUNCTION PK_INLINE
#define PK_CONSTANT static __constant__
#if defined(PK_RESIDENT) && defined(PK_HIP)  // least number of threads that a multiprocessor must hold
#define PK_BOUNDS __launch_bounds__(PK_BLOCK, PK_RESIDENT / 256)  // HIP counts waves of 64 on each of four SIMDs
#elif defined(PK_RESIDENT)
#define PK_BOUNDS __launch_bounds__(PK_BLOCK, PK_BLOCK < PK_RESIDENT ? PK_RESIDENT / PK_BLOCK : 1)
#else
#define PK_BOUNDS __launch_bounds__(PK_BLOCK)
#endif
#define PK_KERNEL(name) extern "C" __global__ void PK_BOUNDS name(const pk_args pk_a)
#define PK_ENTRY(name)

// The hierarchy -------------------------------------------------------------------------------------------------------
#define PK_BLOCK_RANK ((int32_t)blockIdx.x)
#ifdef PK_ROW  // lanes of a row, known before the launch: compilers see that a lane is one of them
#define PK_LANE ((int32_t)(threadIdx.x & (PK_ROW - 1)))
#define PK_LANES ((int32_t)PK_ROW)
#else
#define PK_LANE ((int32_t)threadIdx.x)
#define PK_LANES ((int32_t)blockDim.x)
#endif
#define PK_TEAM_RANK ((int32_t)threadIdx.y)
#define PK_TEAM_SIZE ((int32_t)blockDim.y)
#define PK_THREAD (PK_LANE + PK_TEAM_RANK * PK_LANES)
#define PK_THREADS (PK_LANES * PK_TEAM_SIZE)

// Shuffles among `width` lanes.  CUDA needs the mask of the participating lanes; a HIP wave of 32 or 64 lanes runs in
// lockstep, and is used in groups of 32, so that sums do not depend on its size.
#ifdef PK_HIP
#define PK_SHFL_XOR(mask, v, lane, width) __shfl_xor(v, lane, width)
#define PK_SHFL_DOWN(mask, v, lanes, width) __shfl_down(v, lanes, width)
#define PK_SHFL_UP(mask, v, lanes, width) __shfl_up(v, lanes, width)
#define PK_SHFL(mask, v, lane, width) __shfl(v, lane, width)
#define PK_BALLOT(mask, v) ((unsigned)(__ballot(v) >> (PK_THREAD & (warpSize - 1) & 32)))
#define PK_WARP_SYNC(mask)                                  \
  do {                                                      \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");  \
    __builtin_amdgcn_wave_barrier();                        \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");  \
  } while (0)
#else
#define PK_SHFL_XOR(mask, v, lane, width) __shfl_xor_sync(mask, v, lane, width)
#define PK_SHFL_DOWN(mask, v, lanes, width) __shfl_down_sync(mask, v, lanes, width)
#define PK_SHFL_UP(mask, v, lanes, width) __shfl_up_sync(mask, v, lanes, width)
#define PK_SHFL(mask, v, lane, width) __shfl_sync(mask, v, lane, width)
#define PK_BALLOT(mask, v) __ballot_sync(mask, v)
#define PK_WARP_SYNC(mask) __syncwarp(mask)
#endif

#define PK_BARRIER(site) __syncthreads()
#define PK_ROW_SYNC(site) PK_WARP_SYNC(pk_row_mask())

// Return the mask of this row's lanes in their warp.  A larger mask would be wrong, because rows of a warp may diverge.
PK_INLINE unsigned pk_row_mask() {
  return (0xffffffffu >> (32 - PK_LANES)) << (PK_THREAD & 31 & -PK_LANES);
}

// Return the sum over the lanes of a row, with the same bits in each.  Order memory accesses like PK_ROW_SYNC, because
// shuffles alone do not.
template <class T>
PK_INLINE T pk_row_sum(T v, int32_t) {
  [[maybe_unused]] const unsigned mask = pk_row_mask();
  for (int32_t lane = PK_LANES >> 1; lane > 0; lane >>= 1) v += PK_SHFL_XOR(mask, v, lane, PK_LANES);
  PK_WARP_SYNC(mask);
  return v;
}

// Return the sum over the lanes before this one; store the sum over all lanes of the row in `total`.
template <class T>
PK_INLINE T pk_row_scan(T v, T& total, int32_t) {
  [[maybe_unused]] const unsigned mask = pk_row_mask();
  const int32_t lanes = PK_LANES, lane = PK_LANE;
  for (int32_t d = 1; d < lanes; d <<= 1) {
    const T other = PK_SHFL_UP(mask, v, d, lanes);
    if (lane >= d) v += other;
  }
  total = PK_SHFL(mask, v, lanes - 1, lanes);
  const T before = PK_SHFL_UP(mask, v, 1, lanes);
  return lane == 0 ? 0 : before;
}
// Do the same for terms that are 0 or 1.
template <class T>
PK_INLINE T pk_row_count(T v, T& total, int32_t) {
  const unsigned mask = pk_row_mask();
  const unsigned bits = (PK_BALLOT(mask, v != 0) & mask) >> (PK_THREAD & 31 & -PK_LANES);
  total = (T)__popc(bits);
  return (T)__popc(bits & ((1u << PK_LANE) - 1u));
}

// Group of 32 threads, the unit of sums and scans over a block; the last group may be smaller.
struct pk_group {
  int32_t rank, lane, lanes, count;
  unsigned mask;
};
PK_INLINE pk_group pk_this_group() {
  const int32_t thread = PK_THREAD, threads = PK_THREADS;
  const int32_t rank = thread >> 5, lanes = threads - (rank << 5) < 32 ? threads & 31 : 32;
  return {rank, thread & 31, lanes, (threads + 31) >> 5, 0xffffffffu >> (32 - lanes)};
}
// Return shared memory for one value per group; a block has at most 1024 threads.
template <class T>
PK_INLINE T* pk_group_values() {
  __shared__ T values[32];
  return values;
}

// Return the sum over the threads of the block, with the same bits in each.
template <class T>
PK_INLINE T pk_team_sum(T v, int32_t) {
  const pk_group group = pk_this_group();
  T* const values = pk_group_values<T>();
#pragma unroll
  for (int32_t d = 16; d > 0; d >>= 1) {
    const T other = PK_SHFL_DOWN(group.mask, v, d, 32);
    if (group.lane + d < group.lanes) v += other;
  }
  if (group.lane == 0) values[group.rank] = v;
  __syncthreads();
  T sum = values[0];
  for (int32_t g = 1; g < group.count; g++) sum += values[g];
  __syncthreads();
  return sum;
}

// Return the sum over the threads before this one; store the sum over all threads in `total`.
template <class T>
PK_INLINE T pk_team_scan(T v, T& total, int32_t) {
  const pk_group group = pk_this_group();
  T* const values = pk_group_values<T>();
#pragma unroll
  for (int32_t d = 1; d < 32; d <<= 1) {
    const T other = PK_SHFL_UP(group.mask, v, d, 32);
    if (group.lane >= d) v += other;
  }
  if (group.lane == group.lanes - 1) values[group.rank] = v;
  v = PK_SHFL_UP(group.mask, v, 1, 32);
  __syncthreads();
  T sum = 0, before = 0;
  for (int32_t g = 0; g < group.count; g++) {
    if (g == group.rank) before = sum;
    sum += values[g];
  }
  __syncthreads();
  total = sum;
  return group.lane == 0 ? before : before + v;
}

// Memory --------------------------------------------------------------------------------------------------------------
// Type that `get` returns: bytes are flags and counts, and arithmetic on them uses integers.
template <class T>
struct pk_value_of {
  typedef T type;
};
template <>
struct pk_value_of<uint8_t> {
  typedef int32_t type;
};

// Two reals beside each other in memory, which one instruction reads where the first one's index is even.
template <class T>
struct pk_two_of {
  typedef T type;  // of whole numbers, which are read alone
};
template <>
struct pk_two_of<double> {
  typedef double2 type;
};
template <>
struct pk_two_of<float> {
  typedef float2 type;
};
template <class T>
using pk_two = typename pk_two_of<T>::type;

// A view that this kernel does not write.
template <class T>
struct pk_in {
  typedef typename pk_value_of<T>::type value;
  const T* p;
  PK_MEMBER pk_in(const T* at, int64_t) : p(at) {}
#ifdef PK_HIP
  PK_MEMBER value get(pk_index i, int32_t) const { return p[i]; }
  PK_MEMBER pk_two<T> get_two(pk_index i, int32_t) const { return *(const pk_two<T>*)(p + i); }
#else
  PK_MEMBER value get(pk_index i, int32_t) const { return __ldg(p + i); }
  PK_MEMBER pk_two<T> get_two(pk_index i, int32_t) const { return __ldg((const pk_two<T>*)(p + i)); }
#endif
};
#ifdef PK_ARGUMENTS  // the name that CUDA gives the argument structure, of a kernel with views by value
// A view by value, `place` bytes behind the first argument.  CUDA reads elements where they are used, as constants: its
// compiler would read all before a loop.  HIP reads by vector addresses: scalar registers are too few for all elements.
#ifdef PK_HIP
template <class T>
struct pk_fixed {
  const T* p;
  PK_MEMBER pk_fixed(const T*, int32_t, int32_t byte) {
    int32_t zero = 0;
    asm("" : "+v"(zero));
    p = (const T*)((const char*)__builtin_amdgcn_kernarg_segment_ptr() + byte + zero);
  }
  PK_MEMBER T get(pk_index i, int32_t) const { return p[i]; }
};
#else
PK_INLINE unsigned long long pk_arguments() {
  unsigned long long at;
  asm("mov.b64 %0, " PK_ARGUMENTS ";" : "=l"(at));
  return at;
}
#define PK_READ(T, type, letter)                                                            \
  PK_INLINE void pk_read(T& v, pk_long byte) {                                               \
    asm("ld.param." type " %0, [%1];" : "=" letter(v) : "l"(pk_arguments() + byte));         \
  }
PK_READ(double, "f64", "d")
PK_READ(float, "f32", "f")
PK_READ(int32_t, "s32", "r")
PK_READ(int64_t, "s64", "l")
template <class T>
struct pk_fixed {
  int32_t place;
  PK_MEMBER pk_fixed(const T*, int32_t, int32_t byte) : place(byte) {}
  PK_MEMBER T get(pk_index i, int32_t) const {
    T v;
    pk_read(v, place + (pk_long)i * (pk_long)sizeof(T));
    return v;
  }
};
#endif
#endif
template <class T>
struct pk_out {
  typedef typename pk_value_of<T>::type value;
  T* p;
  PK_MEMBER pk_out(T* at, int64_t) : p(at) {}
  PK_MEMBER value get(pk_index i, int32_t) const { return p[i]; }
  PK_MEMBER void set(pk_index i, value v, int32_t) const { p[i] = (T)v; }
};
// A piece of the block's dynamic shared memory, in units of 16 bytes: one instruction may read two neighbours.  CUDA's
// compiler does not see that the first piece begins at 0: so it keeps the address, which it would compute in each loop.
template <class T>
struct pk_shared {
  typedef T value;
  T* p;
  PK_MEMBER pk_shared(void* at) : p((T*)at) {}
  PK_MEMBER T get(int32_t i, int32_t) const { return p[i]; }
  PK_MEMBER void set(int32_t i, T v, int32_t) const { p[i] = v; }
};
#ifdef PK_HIP
#define PK_HIDDEN(v)
#else
#define PK_HIDDEN(v) asm("" : "+r"(v))
#endif
#define PK_SCRATCH_BEGIN                                            \
  extern __shared__ __attribute__((aligned(16))) int64_t pk_all[]; \
  int32_t pk_used = 0;                                              \
  PK_HIDDEN(pk_used);                                               \
  pk_used *= 2
#define PK_SCRATCH(T, name, count, site)    \
  const pk_shared<T> name(pk_all + pk_used); \
  pk_used += ((count) * (int32_t)sizeof(T) + 15) / 16 * 2

// Atomics -------------------------------------------------------------------------------------------------------------
struct pk_op_add {
  template <class T>
  PK_INLINE T of(T a, T b) { return a + b; }
};
struct pk_op_sub {
  template <class T>
  PK_INLINE T of(T a, T b) { return a - b; }
};
struct pk_op_max {
  template <class T>
  PK_INLINE T of(T a, T b) { return a > b ? a : b; }
};
struct pk_op_min {
  template <class T>
  PK_INLINE T of(T a, T b) { return a < b ? a : b; }
};

// Bits of a T as an integer for compare-and-swap.
template <class T>
struct pk_bits;
template <>
struct pk_bits<float> {
  typedef int type;
  PK_INLINE type of(float v) { return __float_as_int(v); }
  PK_INLINE float from(type v) { return __int_as_float(v); }
};
template <>
struct pk_bits<double> {
  typedef unsigned long long type;
  PK_INLINE type of(double v) { return (type)__double_as_longlong(v); }
  PK_INLINE double from(type v) { return __longlong_as_double((long long)v); }
};

// Update an element by compare-and-swap: maximum and minimum of reals, for which devices have no instruction.
template <class Op, class T>
PK_INLINE T pk_atomic_at(Op, T* p, T v) {
  typedef pk_bits<T> bits;
  typename bits::type seen = *(volatile typename bits::type*)p;
  for (;;) {
    const typename bits::type made = bits::of(Op::of(bits::from(seen), v));
    if (made == seen) return bits::from(seen);
    const typename bits::type found = atomicCAS((typename bits::type*)p, seen, made);
    if (found == seen) return bits::from(seen);
    seen = found;
  }
}
PK_INLINE int32_t pk_atomic_at(pk_op_add, int32_t* p, int32_t v) { return atomicAdd(p, v); }
PK_INLINE float pk_atomic_at(pk_op_add, float* p, float v) { return atomicAdd(p, v); }
PK_INLINE double pk_atomic_at(pk_op_add, double* p, double v) { return atomicAdd(p, v); }
PK_INLINE int64_t pk_atomic_at(pk_op_add, int64_t* p, int64_t v) {
  return (int64_t)atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
PK_INLINE int32_t pk_atomic_at(pk_op_sub, int32_t* p, int32_t v) { return atomicSub(p, v); }
PK_INLINE float pk_atomic_at(pk_op_sub, float* p, float v) { return atomicAdd(p, -v); }
PK_INLINE double pk_atomic_at(pk_op_sub, double* p, double v) { return atomicAdd(p, -v); }
PK_INLINE int64_t pk_atomic_at(pk_op_sub, int64_t* p, int64_t v) {
  return (int64_t)atomicAdd((unsigned long long*)p, 0ull - (unsigned long long)v);
}
PK_INLINE int32_t pk_atomic_at(pk_op_max, int32_t* p, int32_t v) { return atomicMax(p, v); }
PK_INLINE int32_t pk_atomic_at(pk_op_min, int32_t* p, int32_t v) { return atomicMin(p, v); }
#ifdef PK_HIP
PK_INLINE int64_t pk_atomic_at(pk_op_max, int64_t* p, int64_t v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
PK_INLINE int64_t pk_atomic_at(pk_op_min, int64_t* p, int64_t v) {
  return __hip_atomic_fetch_min(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#else
PK_INLINE int64_t pk_atomic_at(pk_op_max, int64_t* p, int64_t v) { return atomicMax(p, v); }
PK_INLINE int64_t pk_atomic_at(pk_op_min, int64_t* p, int64_t v) { return atomicMin(p, v); }
#endif

// Update an element and return its old value; relaxed, with the scope of the device.
template <class Op, class View, class I>
PK_INLINE typename View::value pk_atomic(const View& view, I i, typename View::value v, int32_t) {
  return pk_atomic_at(Op(), view.p + i, v);
}

// Mathematics ---------------------------------------------------------------------------------------------------------
#define PK_MATH1(name)                                    \
  PK_INLINE double pk_##name(double x) { return name(x); } \
  PK_INLINE float pk_##name(float x) { return name##f(x); }
#define PK_MATH2(name)                                                 \
  PK_INLINE double pk_##name(double x, double y) { return name(x, y); } \
  PK_INLINE float pk_##name(float x, float y) { return name##f(x, y); }
PK_MATH1(sqrt) PK_MATH1(expm1) PK_MATH1(log)
PK_MATH1(sin) PK_MATH1(cos) PK_MATH1(tan) PK_MATH1(sinh) PK_MATH1(cosh) PK_MATH1(tanh)
PK_MATH1(erf) PK_MATH1(erfc) PK_MATH1(fabs) PK_MATH1(floor) PK_MATH1(ceil)
PK_MATH2(fmin) PK_MATH2(fmax) PK_MATH2(pow)

#ifdef PK_RSQRT_FINITE
#include "pk_roots.h"
#else
PK_MATH1(rsqrt)
#endif
#ifdef PK_EXP_ROUNDED
#include "pk_exp.h"
#else
PK_MATH1(exp)
#endif

template <class T>
PK_INLINE T pk_inf() {
  return (T)__int_as_float(0x7f800000);
}
#endif
#endif
