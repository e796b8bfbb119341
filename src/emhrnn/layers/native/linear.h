// Linear layers.

#pragma once

#include <vector>

#include "products.h"
#include "threads.h"

extern "C" {

// y = x weight^T + bias (n, columns); bias may be null.
EXPORT void linear(int64_t n, int64_t D, int64_t columns, const float* x, const float* weight, const float* bias,
                   float* y, int64_t threads) {
  const Panels weights(D, columns, [=](isize k, isize j) { return weight[j * D + k]; });
  std::vector<float> start(weights.stride);
  if (bias) copy(columns, bias, start.data());
  const bool direct = columns == weights.stride;  // else a row of sums is longer than one of y
  parallel_rows(0, n, threads, [&](isize first, isize last) {
    std::vector<float> sums(MANY * weights.stride);
    const float* rows[MANY];
    in_groups(first, last, [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) rows[r] = x + (begin + r) * D;
      multiply(count, rows, weights, start, direct ? y + begin * columns : sums.data());
      for (isize r = 0; r < count && !direct; ++r)
        copy(columns, sums.data() + r * weights.stride, y + (begin + r) * columns);
    });
  });
}

}  // extern "C"
