// exp, sigmoid and tanh of vectors.

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
  const ivec exponent = ((ivec)shifted << 23) + (127 << 23);  // casts keep the bits: the lowest of `shifted` are n
  return {p * f, (vec)exponent};
}
INLINE vec exp(vec x) {
  const Power e = power(clamp(x, 87.f));
  return e.fraction * e.scale + e.scale;
}
inline float exp(float x) { return exp(vec{} + x)[0]; }
INLINE vec sigmoid(vec x) { return 1.f / (1.f + exp(-x)); }
INLINE vec exp_less_one(vec x) {  // e^2x - 1, without cancellation near 0; tanh x = it / (it + 2)
  const Power e = power(clamp(x, 10.f) * 2.f);
  return e.fraction * e.scale + (e.scale - 1.f);
}
INLINE vec tanh(vec x) {
  const vec less_one = exp_less_one(x);
  return less_one / (less_one + 2.f);
}
INLINE vec one_plus_exp(vec x) {  // 1 / sigmoid(-x), so bounded that three such factors stay finite
  const Power e = power(clamp(x, 30.f));
  return e.fraction * e.scale + (e.scale + 1.f);
}

}  // namespace
