// First approximations of functions, which a device computes in one instruction, and the words of numbers, for
// pk_roots.h and pk_exp.h.  Seeds of the simulator have the largest errors that devices document.
#ifndef PK_SEEDS_H
#define PK_SEEDS_H
#define PK_LARGEST_SEED 0x5fe00000  // high word of 2^511

#ifdef PK_SIM
template <class T, class S>
PK_FUNCTION T pk_with_bits(S x) {
  static_assert(sizeof(T) == sizeof(S), "types differ in size");
  T y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
PK_FUNCTION int32_t pk_high(double x) { return (int32_t)(pk_with_bits<uint64_t>(x) >> 32); }
PK_FUNCTION int32_t pk_low(double x) { return (int32_t)pk_with_bits<uint64_t>(x); }
PK_FUNCTION double pk_joined(int32_t high, int32_t low) {
  return pk_with_bits<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}
PK_FUNCTION float pk_float(int32_t word) { return pk_with_bits<float>(word); }
PK_FUNCTION int32_t pk_word(float x) { return pk_with_bits<int32_t>(x); }
#define pk_magnitude __builtin_fabsf

// Return the word of a result, its last bit flipped for half of the words of arguments.
PK_FUNCTION int32_t pk_inexact(int32_t result, int32_t argument) {
  return result ^ (int32_t)(((uint64_t)(uint32_t)argument << 32) * 0x9e3779b97f4a7c15 >> 63);
}
// The root of the first 20 bits of x, rounded down to 20 bits.
PK_FUNCTION double pk_seed(double x) {
  const double y = x < 0x1p-1022 ? 0x1p511 : 1 / __builtin_sqrt(pk_joined(pk_high(x), 0));
  return pk_joined(pk_inexact(pk_high(y), pk_high(x)), 0);
}
PK_FUNCTION float pk_seed(float x) { return 1 / __builtin_sqrtf(x); }
PK_FUNCTION float pk_exp2_seed(float x) {
  const float y = __builtin_exp2f(x);
  return y < 0x1p-126f ? 0.0f : y < __builtin_inff() ? pk_float(pk_inexact(pk_word(y), pk_word(x))) : y;
}

#else
PK_FUNCTION int32_t pk_high(double x) { return __double2hiint(x); }
PK_FUNCTION int32_t pk_low(double x) { return __double2loint(x); }
PK_FUNCTION double pk_joined(int32_t high, int32_t low) { return __hiloint2double(high, low); }
PK_FUNCTION float pk_float(int32_t word) { return __int_as_float(word); }
PK_FUNCTION int32_t pk_word(float x) { return __float_as_int(x); }

#ifdef PK_HIP
#define pk_magnitude __builtin_fabsf
PK_FUNCTION double pk_device_seed(double x) { return __builtin_amdgcn_rsq(x); }
PK_FUNCTION float pk_seed(float x) { return __builtin_amdgcn_rsqf(x); }
#if __has_builtin(__builtin_amdgcn_exp2f)
PK_FUNCTION float pk_exp2_seed(float x) { return __builtin_amdgcn_exp2f(x); }
#else  // LLVM 16 and before have the instruction for this
PK_FUNCTION float pk_exp2_seed(float x) { return __builtin_exp2f(x); }
#endif
#else
#define pk_magnitude fabsf
#define PK_ONE_INSTRUCTION(name, T, instruction, letter)          \
  PK_FUNCTION T name(T x) {                                       \
    T y;                                                          \
    asm(instruction " %0, %1;" : "=" letter(y) : letter(x));      \
    return y;                                                     \
  }
PK_ONE_INSTRUCTION(pk_device_seed, double, "rsqrt.approx.ftz.f64", "d")
PK_ONE_INSTRUCTION(pk_seed, float, "rsqrt.approx.ftz.f32", "f")
PK_ONE_INSTRUCTION(pk_exp2_seed, float, "ex2.approx.ftz.f32", "f")
#endif

PK_FUNCTION double pk_seed(double x) {
  const double y = pk_device_seed(x);
  const int32_t high = pk_high(y);
  return pk_joined(high < PK_LARGEST_SEED ? high : PK_LARGEST_SEED, pk_low(y));
}
#endif
#endif
