// The vectors of vectors.h for compilers without GCC's vector extensions: four lanes, in plain loops.

#pragma once

#include <cstdint>
#include <cstring>

namespace {

constexpr int WIDTH = 4;

template <class T>
struct Lanes {
  T lane[WIDTH];

  Lanes() : lane{} {}
  Lanes(T value) {
    for (T& entry : lane) entry = value;
  }
  T& operator[](int i) { return lane[i]; }
  const T& operator[](int i) const { return lane[i]; }

#define LANE_BY_LANE(op, Result, value)                                \
  friend Lanes<Result> operator op(const Lanes& a, const Lanes& b) {   \
    Lanes<Result> result;                                              \
    for (int i = 0; i < WIDTH; ++i) result[i] = value(a[i] op b[i]);   \
    return result;                                                     \
  }
  LANE_BY_LANE(+, T, )
  LANE_BY_LANE(-, T, )
  LANE_BY_LANE(*, T, )
  LANE_BY_LANE(/, T, )
  LANE_BY_LANE(&, T, )
  LANE_BY_LANE(<<, T, )
  LANE_BY_LANE(>>, T, )
  LANE_BY_LANE(<, int32_t, -)  // as the extensions have it: all bits set where it holds
  LANE_BY_LANE(>, int32_t, -)
  LANE_BY_LANE(!=, int32_t, -)
#undef LANE_BY_LANE
  friend Lanes operator-(const Lanes& a) { return a * Lanes(-1); }
  Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
};
using vec = Lanes<float>;
using ivec = Lanes<int32_t>;

inline vec load(const float* p) {
  vec v;
  std::memcpy(v.lane, p, sizeof v.lane);
  return v;
}
inline void store(float* p, const vec& v) { std::memcpy(p, v.lane, sizeof v.lane); }

template <class T>
Lanes<T> pick(const ivec& where, const Lanes<T>& yes, const Lanes<T>& no) {
  Lanes<T> result;
  for (int i = 0; i < WIDTH; ++i) result[i] = where[i] ? yes[i] : no[i];
  return result;
}
inline ivec bits_of(const vec& v) {
  ivec bits;
  std::memcpy(bits.lane, v.lane, sizeof bits.lane);
  return bits;
}
inline vec with_bits(const ivec& bits) {
  vec v;
  std::memcpy(v.lane, bits.lane, sizeof v.lane);
  return v;
}
inline vec as_floats(const ivec& numbers) {
  vec v;
  for (int i = 0; i < WIDTH; ++i) v[i] = static_cast<float>(numbers[i]);
  return v;
}

}  // namespace
