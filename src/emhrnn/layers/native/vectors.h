// Vectors of floats, and rows of any length gone through vector by vector. It is written in GCC's vector extensions (GCC
// and Clang, any CPU); the build chooses the width by its -m flags. Other compilers, and -DEMHRNN_PLAIN, get plain loops.

#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)  // what Python calls; other systems export it all
#else
#define EXPORT
#endif

#if defined(__GNUC__) && !defined(EMHRNN_PLAIN)
#if defined(__AVX512F__)
#define VECTOR_BITS 512
#elif defined(__AVX__)
#define VECTOR_BITS 256
#else
#define VECTOR_BITS 128
#endif
#if VECTOR_BITS > 128
#include <immintrin.h>
#endif
#define INLINE inline __attribute__((always_inline))  // what must not cost a call per vector
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define VECTOR_BITS 0
#define INLINE inline
#define PREFETCH(place) static_cast<void>(place)
#include "plain_vectors.h"
#endif

namespace {

using isize = int64_t;

#if VECTOR_BITS
constexpr int WIDTH = VECTOR_BITS / 32;

typedef float vec __attribute__((vector_size(WIDTH * 4)));
typedef int32_t ivec __attribute__((vector_size(WIDTH * 4)));
typedef float unaligned_vec __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));

INLINE vec load(const float* p) { return *reinterpret_cast<const unaligned_vec*>(p); }
INLINE void store(float* p, vec v) { *reinterpret_cast<unaligned_vec*>(p) = v; }

// Lane by lane: one of two; the bits as a number; a number as bits; a number as a float.
INLINE vec pick(ivec where, vec yes, vec no) { return where ? yes : no; }
INLINE ivec pick(ivec where, ivec yes, ivec no) { return where ? yes : no; }
INLINE ivec bits_of(vec v) { return (ivec)v; }
INLINE vec with_bits(ivec bits) { return (vec)bits; }
INLINE vec as_floats(ivec numbers) { return __builtin_convertvector(numbers, vec); }
#endif

// To [-bound, bound]; a NaN stays one.
INLINE vec clamp(vec x, float bound) {
  const vec high = vec{} + bound, low = -high;
#if VECTOR_BITS == 512
  return _mm512_min_ps(high, _mm512_max_ps(low, x));
#elif VECTOR_BITS == 256
  return _mm256_min_ps(high, _mm256_max_ps(low, x));
#else
  x = pick(low > x, low, x);
  return pick(high < x, high, x);
#endif
}
inline float sum(vec v) {
  float total = 0;
  for (int i = 0; i < WIDTH; ++i) total += v[i];
  return total;
}

// The same by halves: quicker, in another order.
INLINE float folded(vec v) {
#if VECTOR_BITS == 512
  return _mm512_reduce_add_ps(v);
#else
  for (int half = WIDTH / 2; half; half /= 2)
    for (int i = 0; i < half; ++i) v[i] += v[i + half];
  return v[0];
#endif
}

// Asks for a row that will be read soon: groups jump between sequences, which the CPU does not foresee.
inline void prefetch(isize size, const float* row) {
  constexpr isize LINE = 16;
  for (isize j = 0; j < size; j += LINE) PREFETCH(row + j);
}

// How for_vectors reads and writes one vector of a row. In a reduction, once(v) counts every entry once.
struct Whole {
  static vec in(const float* p) { return load(p); }
  static void out(float* p, vec v) { store(p, v); }
  static vec once(vec v) { return v; }
};
struct Last : Whole {  // moved back to end with the row: its first entries have been seen before
  isize fresh;
  vec once(vec v) const {
    static constexpr float ZEROS_AND_ONES[2 * WIDTH] = {
#define ZEROS 0, 0, 0, 0
#define ONES 1, 1, 1, 1
#if VECTOR_BITS == 512
        ZEROS, ZEROS, ZEROS, ZEROS, ONES, ONES, ONES, ONES
#elif VECTOR_BITS == 256
        ZEROS, ZEROS, ONES, ONES
#else
        ZEROS, ONES
#endif
    };
    return v * load(ZEROS_AND_ONES + fresh);
  }
};
struct Short {  // a row shorter than a vector; the lanes beyond are zeros
  isize size;
#if VECTOR_BITS == 512
  __mmask16 lanes() const { return __mmask16((1u << size) - 1); }
  vec in(const float* p) const { return _mm512_maskz_loadu_ps(lanes(), p); }
  void out(float* p, vec v) const { _mm512_mask_storeu_ps(p, lanes(), v); }
#else
  vec in(const float* p) const {
    vec v = {};
    std::memcpy(&v, p, size * sizeof(float));
    return v;
  }
  void out(float* p, vec v) const { std::memcpy(p, &v, size * sizeof(float)); }
#endif
  static vec once(vec v) { return v; }
};

// body(j, row) for vectors that begin at entry j and together cover a row. Because the last one overlaps the one
// before, the body must not write what it reads.
template <class Body>
INLINE void for_vectors(isize size, Body body) {
  if (size < WIDTH) return body(isize{0}, Short{size});
  for (isize j = 0; j + WIDTH <= size; j += WIDTH) body(j, Whole{});
  if (size % WIDTH) body(size - WIDTH, Last{{}, size % WIDTH});
}

// body(n) with n as a constant where it is small: loops over n floats are then a few instructions.
template <class Body>
void with_constant(isize n, Body body) {
  switch (n) {
    case 1: return body(std::integral_constant<isize, 1>{});
    case 2: return body(std::integral_constant<isize, 2>{});
    case 3: return body(std::integral_constant<isize, 3>{});
    case 4: return body(std::integral_constant<isize, 4>{});
    case 5: return body(std::integral_constant<isize, 5>{});
    case 2 * WIDTH: return body(std::integral_constant<isize, 2 * WIDTH>{});
    default: return body(n);
  }
}

inline void copy(isize size, const float* from, float* to) {
  for_vectors(size, [=](isize j, auto row) { row.out(to + j, row.in(from + j)); });
}

inline float dot(isize size, const float* a, const float* b) {
  vec total = {};
  for_vectors(size, [&](isize j, auto row) { total += row.once(row.in(a + j) * row.in(b + j)); });
  return sum(total);
}

}  // namespace
