
#include "pk_math.h"
template <class T, int L, class F>
PK_INLINE void run(F f, const T* x, T* y, long n) {
  for (long i = 0; i < n; i += L) *(pk_uvec<T, L>*)(y + i) = f((pk_vec<T, L>)*(const pk_uvec<T, L>*)(x + i));
}
#define UNARY(NAME, T, L) \
  extern "C" void NAME##_##T##_##L(const T* x, T* y, long n) { \
    run<T, L>([](auto v) __attribute__((always_inline)) { return pk_##NAME(v); }, x, y, n); \
  }
#define BINARY(NAME, T, L) \
  extern "C" void NAME##_##T##_##L(const T* x, const T* z, T* y, long n) { \
    for (long i = 0; i < n; i += L) \
      *(pk_uvec<T, L>*)(y + i) = pk_##NAME((pk_vec<T, L>)*(const pk_uvec<T, L>*)(x + i), \
                                           (pk_vec<T, L>)*(const pk_uvec<T, L>*)(z + i)); \
  }
#define REFERENCE(NAME) \
  extern "C" void NAME##_reference(const long double* x, long double* y, long n) { \
    for (long i = 0; i < n; i++) y[i] = __builtin_##NAME##l(x[i]); \
  }


UNARY(rsqrt, double, 1)
UNARY(exp, double, 1)
UNARY(erf, double, 1)
UNARY(erfc, double, 1)
UNARY(sin, double, 1)
UNARY(cos, double, 1)
UNARY(log, double, 1)
UNARY(expm1, double, 1)
UNARY(tan, double, 1)
UNARY(sinh, double, 1)
UNARY(cosh, double, 1)
UNARY(tanh, double, 1)
UNARY(sqrt, double, 1)
UNARY(fabs, double, 1)
UNARY(floor, double, 1)
UNARY(ceil, double, 1)
BINARY(fmin, double, 1)
BINARY(fmax, double, 1)
BINARY(pow, double, 1)
UNARY(rsqrt, double, 4)
UNARY(exp, double, 4)
UNARY(erfc, double, 4)
UNARY(sin, double, 4)
UNARY(floor, double, 4)
UNARY(rsqrt, float, 1)
UNARY(exp, float, 1)
UNARY(erf, float, 1)
UNARY(erfc, float, 1)
UNARY(sin, float, 1)
UNARY(cos, float, 1)
UNARY(log, float, 1)
UNARY(expm1, float, 1)
UNARY(tan, float, 1)
UNARY(sinh, float, 1)
UNARY(cosh, float, 1)
UNARY(tanh, float, 1)
UNARY(sqrt, float, 1)
UNARY(fabs, float, 1)
UNARY(floor, float, 1)
UNARY(ceil, float, 1)
BINARY(fmin, float, 1)
BINARY(fmax, float, 1)
BINARY(pow, float, 1)
UNARY(rsqrt, float, 4)
UNARY(exp, float, 4)
UNARY(erf, float, 4)
UNARY(erfc, float, 4)
UNARY(sin, float, 4)
UNARY(cos, float, 4)
UNARY(log, float, 4)
UNARY(expm1, float, 4)
UNARY(tan, float, 4)
UNARY(sinh, float, 4)
UNARY(cosh, float, 4)
UNARY(tanh, float, 4)
UNARY(sqrt, float, 4)
UNARY(fabs, float, 4)
UNARY(floor, float, 4)
UNARY(ceil, float, 4)
BINARY(fmin, float, 4)
BINARY(fmax, float, 4)
BINARY(pow, float, 4)
REFERENCE(exp)
REFERENCE(erf)
REFERENCE(erfc)
REFERENCE(sin)
REFERENCE(cos)
REFERENCE(log)
REFERENCE(expm1)
REFERENCE(tan)
REFERENCE(sinh)
REFERENCE(cosh)
REFERENCE(tanh)
REFERENCE(sqrt)
REFERENCE(fabs)
REFERENCE(floor)
REFERENCE(ceil)