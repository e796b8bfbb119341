// Recurrent layers over trees of shared prefixes (see paper/em/likelihood.py).

#pragma once

#include <vector>

#include "recurrent.h"

namespace {

// Node i reads projection row inputs[i] in the state of its parent, which is of the level before.
struct Forest {
  isize levels, H;
  const isize *level_sizes, *inputs, *parents;
  const float* projection;
};

// Nodes begin .. end - 1, and where their states are.
struct Level {
  isize begin, end, H;
  float *h, *c;  // c is null if the cell has no memory

  float* h_of(isize node) const { return h + (node - begin) * H; }
  float* c_of(isize node) const { return c ? c + (node - begin) * H : nullptr; }
};

// The states of nodes first .. last - 1 of a level, and their activated gates unless that is null. The parent's share
// of the gates is computed once for siblings that are neighbours.
template <class Cell>
void node_states(const Forest& forest, const Panels& weights, const std::vector<float>& zeros, const Level* before,
                 const Level& now, isize first, isize last, float* gates) {
  const isize H = forest.H, width = Cell::BLOCKS * H;
  const isize *inputs = forest.inputs, *parents = forest.parents;
  std::vector<float> sums(MANY * weights.stride), total(4 * H);
  const float* h_prev[MANY];
  for (isize node = first; node < last;) {
    isize after = node, families = 0;
    for (; after < last; ++after) {
      if (after == node || parents[after] != parents[after - 1]) {
        if (families == MANY) break;
        h_prev[families++] = before ? before->h_of(parents[after]) : nullptr;
      }
    }
    for (isize i = node; i < after; ++i) {  // they arrive during the product
      prefetch(width, forest.projection + inputs[i] * width);
      if (Cell::MEMORY && before) prefetch(H, before->c_of(parents[i]));
    }
    if (before) multiply(families, h_prev, weights, zeros, sums.data());
    const float* from_parent = sums.data();
    for (isize i = node; i < after; ++i) {
      if (i > node && parents[i] != parents[i - 1]) from_parent += weights.stride;
      const float *input = forest.projection + inputs[i] * width, *more = before ? from_parent : nullptr;
      const float *h_before = before ? before->h_of(parents[i]) : nullptr, *c_before = nullptr;
      if (Cell::MEMORY && before) c_before = before->c_of(parents[i]);
      if (!gates) {
        Cell::states(H, input, more, h_before, c_before, total.data(), now.c_of(i), now.h_of(i));
        continue;
      }
      for (int gate = 0; gate < 4; ++gate) {
        const int of_input = Cell::INPUT[gate], of_state = Cell::STATE[gate];
        for (isize j = 0; j < H; ++j)
          total[gate * H + j] = (of_input < 0 ? 0.f : input[of_input * H + j]) +
                                (of_state < 0 || !more ? 0.f : more[of_state * H + j]);
      }
      Cell::template forward<true>(H, total.data(), h_before, c_before, gates + i * 4 * H, now.c_of(i), now.h_of(i));
    }
    node = after;
  }
}

// Level by level.
template <class Cell>
void run_forest(const Forest& forest, const float* state_weight, float* gates, float* c, float* h, isize threads) {
  const isize H = forest.H;
  const Panels weights(H, Cell::BLOCKS * H, [=](isize k, isize n) { return state_weight[n * H + k]; });
  const std::vector<float> zeros(weights.stride);
  Level before{}, now{};
  for (isize level = 0; level < forest.levels; ++level) {
    const isize begin = before.end;
    now = {begin, begin + forest.level_sizes[level], H, h + begin * H, c ? c + begin * H : nullptr};
    parallel_rows(now.begin, now.end, threads, [&](isize first, isize last) {
      node_states<Cell>(forest, weights, zeros, level ? &before : nullptr, now, first, last, gates);
    });
    before = now;
  }
}

}  // namespace

extern "C" {

// kind: 0 LSTM, 1 GRU. h of all nodes, c of an LSTM, and their gates if there is room for them.
EXPORT void forest_forward(int64_t kind, int64_t levels, const int64_t* level_sizes, int64_t H, const int64_t* inputs,
                           const int64_t* parents, const float* projection, const float* state_weight, float* gates,
                           float* c, float* h, int64_t threads) {
  const Forest forest{levels, H, level_sizes, inputs, parents, projection};
  kind ? run_forest<GRU>(forest, state_weight, gates, c, h, threads)
       : run_forest<LSTM>(forest, state_weight, gates, c, h, threads);
}

}  // extern "C"
