// LSTM over trees of shared prefixes (see layers/forest.py).

#pragma once

#include <algorithm>
#include <vector>

#include "recurrent.h"

extern "C" {

// LSTM over trees: node i reads projection row inputs[i] in the state of its parent, which is of the level before. The
// parent's share of the gates is computed once for siblings that are neighbours.
void forest_forward(int64_t levels, const int64_t* level_sizes, int64_t H, const int64_t* inputs,
                    const int64_t* parents, const float* projection, const float* state_weight, float* gates, float* c,
                    float* h, int64_t threads) {
  const Panels weights = gate_weights<LSTM>({H, 0}, nullptr, state_weight);
  const std::vector<float> zeros(weights.stride);
  isize end = 0;
  for (isize level = 0; level < levels; ++level) {
    const isize begin = end;
    end += level_sizes[level];
    parallel_rows(begin, end, threads, [&](isize first, isize last) {
      std::vector<float> sums(MANY * weights.stride), total(4 * H);
      const float* h_prev[MANY];
      for (isize node = first; node < last;) {
        isize after = node, families = 0;
        for (; after < last; ++after) {
          if (after == node || parents[after] != parents[after - 1]) {
            if (families == MANY) break;
            h_prev[families++] = h + parents[after] * H;
          }
        }
        for (isize next = after; next < std::min<isize>(after + MANY, last); ++next) {
          prefetch(4 * H, projection + inputs[next] * 4 * H);
          if (level) prefetch(H, h + parents[next] * H), prefetch(H, c + parents[next] * H);
        }
        if (level) multiply(families, h_prev, weights, zeros, sums.data());
        const float* from_parent = sums.data();
        for (isize i = node; i < after; ++i) {
          if (i > node && parents[i] != parents[i - 1]) from_parent += weights.stride;
          const float *input = projection + inputs[i] * 4 * H, *c_prev = level ? c + parents[i] * H : nullptr;
          if (!gates) {
            LSTM::states(H, input, level ? from_parent : nullptr, c_prev, total.data(), c + i * H, h + i * H);
            continue;
          }
          copy(4 * H, input, total.data());
          for (isize j = 0; j < 4 * H && level; ++j) total[j] += from_parent[j];
          LSTM::forward<true>(H, total.data(), nullptr, c_prev, gates + i * 4 * H, c + i * H, h + i * H);
        }
        node = after;
      }
    });
  }
}

}  // extern "C"
