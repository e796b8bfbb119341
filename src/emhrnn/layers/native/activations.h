// exp, log, sigmoid and tanh of vectors.

#pragma once

#include "vectors.h"

namespace {

// e^x = (1 + fraction) scale, for |x| <= 87: x = (n + f) ln 2 with |f| <= 1/2, scale = 2^n, and 2^f - 1 is f times a
// polynomial fitted to a relative error of 1e-8.
struct Power {
  vec fraction, scale;
};
INLINE Power power(vec x) {
  constexpr float log2_e = 1.44269504f, to_integer = 12582912.f;  // 1.5 * 2^23: adding it rounds to an integer
  const vec shifted = x * log2_e + to_integer, f = x * log2_e - (shifted - to_integer);
  vec p = f * 0.000154035122f + 0.00133907353f;
  p = p * f + 0.00961823761f;
  p = p * f + 0.0555035733f;
  p = p * f + 0.240226492f;
  p = p * f + 0.693147182f;
  const ivec exponent = (bits_of(shifted) << 23) + (127 << 23);  // the lowest bits of `shifted` are n
  return {p * f, with_bits(exponent)};
}
INLINE vec exp(vec x) {
  const Power e = power(clamp(x, 87.f));
  return e.fraction * e.scale + e.scale;
}
inline float exp(float x) { return exp(vec{} + x)[0]; }
// log x for normal x > 0; a NaN stays one. x = 2^n (1 + f) with f from sqrt(1/2) - 1 to sqrt(2) - 1, and log(1 + f) is a
// polynomial (Cephes) with a relative error of 1e-7.
INLINE vec log(vec x) {
  constexpr int32_t half_root = 0x3f3504f3, mantissa = 0x7fffff;  // half_root: the bits of sqrt(1/2)
  const ivec bits = bits_of(x) - half_root;
  const vec n = as_floats(bits >> 23), f = with_bits((bits & mantissa) + half_root) - 1.f;
  vec p = f * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  const vec square = f * f;
  return (p * f * square - 0.5f * square + n * -2.12194440e-4f + f) + n * 0.693359375f + (x - x);
}
INLINE vec sigmoid(vec x) { return 1.f / (1.f + exp(-x)); }
INLINE vec exp_less_one(vec x) {  // e^2x - 1, without cancellation near 0; tanh x = it / (it + 2)
  const Power e = power(clamp(x, 10.f) * 2.f);
  return e.fraction * e.scale + (e.scale - 1.f);
}
INLINE vec tanh(vec x) {
  const vec less_one = exp_less_one(x);
  return less_one / (less_one + 2.f);
}
// tanh of n numbers, in place. Four vectors share one division, which takes longer than the rest. A NaN may spread to the
// other three.
INLINE void tanh_all(isize n, float* x) {
  isize j = 0;
  for (; j + 4 * WIDTH <= n; j += 4 * WIDTH) {
    vec top[4], below[4];
    for (int i = 0; i < 4; ++i) top[i] = exp_less_one(load(x + j + i * WIDTH)), below[i] = top[i] + 2.f;
    const vec first = below[0] * below[1], second = below[2] * below[3], inverse = 1.f / (first * second);
    const vec of_first = inverse * second, of_second = inverse * first;
    store(x + j, top[0] * below[1] * of_first);
    store(x + j + WIDTH, top[1] * below[0] * of_first);
    store(x + j + 2 * WIDTH, top[2] * below[3] * of_second);
    store(x + j + 3 * WIDTH, top[3] * below[2] * of_second);
  }
  for (; j + WIDTH <= n; j += WIDTH) store(x + j, tanh(load(x + j)));
  if (j < n) {
    const Short rest{n - j};
    rest.out(x + j, tanh(rest.in(x + j)));
  }
}
INLINE vec one_plus_exp(vec x) {  // 1 / sigmoid(-x), so bounded that three such factors stay finite
  const Power e = power(clamp(x, 30.f));
  return e.fraction * e.scale + (e.scale + 1.f);
}

}  // namespace
