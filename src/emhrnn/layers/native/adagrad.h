// Steps of tables of which a batch touches few rows; training/optimizer.py has the formula.

#pragma once

#include <cmath>

#include "vectors.h"

extern "C" {

// sums += g^2, table -= rate * (g / (sqrt(sums) + tiny) + decay * table), at the n rows that g (n, C) has.
// `settings`: rate, tiny, decay.
EXPORT void adagrad_rows(int64_t n, int64_t C, const int64_t* rows, const float* g, const float* settings, float* table,
                         float* sums) {
  constexpr isize AHEAD = 16;  // rows are far apart in memory: ask for them early
  const float rate = settings[0], tiny = settings[1], keep = 1 - rate * settings[2];
  with_constant(C, [=](auto C) {
    for (isize i = 0; i < n; ++i) {
      if (i + AHEAD < n) {
        prefetch(C, table + rows[i + AHEAD] * C);
        prefetch(C, sums + rows[i + AHEAD] * C);
      }
      float *entry = table + rows[i] * C, *sum = sums + rows[i] * C;
      for (isize c = 0; c < C; ++c) {
        const float slope = g[i * C + c];
        sum[c] += slope * slope;
        entry[c] = keep * entry[c] - rate * slope / (std::sqrt(sum[c]) + tiny);
      }
    }
  });
}

}  // extern "C"
