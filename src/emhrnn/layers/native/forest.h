// Recurrent layers over trees of shared prefixes (see layers/forest.py and layers/path_sums.py).

#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "attention.h"
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

// Level by level: place(begin, end) says where its states shall be, then(level, first, last) sees some that are done.
template <class Cell, class Place, class Then>
void run_forest(const Forest& forest, const float* state_weight, float* gates, isize threads, Place place, Then then) {
  const isize H = forest.H;
  const Panels weights(H, Cell::BLOCKS * H, [=](isize k, isize n) { return state_weight[n * H + k]; });
  const std::vector<float> zeros(weights.stride);
  Level before{}, now{};
  for (isize level = 0; level < forest.levels; ++level) {
    now = place(before.end, before.end + forest.level_sizes[level]);
    parallel_rows(now.begin, now.end, threads, [&](isize first, isize last) {
      node_states<Cell>(forest, weights, zeros, level ? &before : nullptr, now, first, last, gates);
      then(now, first, last);
    });
    before = now;
  }
}

}  // namespace

extern "C" {

// kind: 0 LSTM, 1 GRU. h of all nodes, c of an LSTM, and their gates if there is room for them.
void forest_forward(int64_t kind, int64_t levels, const int64_t* level_sizes, int64_t H, const int64_t* inputs,
                    const int64_t* parents, const float* projection, const float* state_weight, float* gates, float* c,
                    float* h, int64_t threads) {
  const Forest forest{levels, H, level_sizes, inputs, parents, projection};
  const auto place = [=](isize begin, isize end) {
    return Level{begin, end, H, h + begin * H, c ? c + begin * H : nullptr};
  };
  const auto then = [](const Level&, isize, isize) {};
  kind ? run_forest<GRU>(forest, state_weight, gates, threads, place, then)
       : run_forest<LSTM>(forest, state_weight, gates, threads, place, then);
}

// Of every node, sums over its path from the root: of w = exp(attention score - shift), and of w < direction, h >, where
// shift and direction are those of the node's tree; in double precision, which no sum of weights leaves. And of each
// node with ends >= 0: < slope_h, h > + < slope_c, c > with that row of the slopes; slope_c is null for a GRU. No state
// outlives the next level.
// With D > 0 a node is [h; x] of its input x: directions are H + D long, and `beside` is x's part of the scores (m, A).
void forest_path_sums(int64_t kind, int64_t levels, const int64_t* level_sizes, int64_t H, const int64_t* inputs,
                      const int64_t* parents, const float* projection, const float* state_weight, int64_t D,
                      const float* x, const float* beside, int64_t A, const float* weight, const float* bias,
                      const float* context, const int64_t* trees,
                      const float* directions, const double* shifts, const int64_t* ends, const float* slope_h,
                      const float* slope_c, double* weight_sums, double* value_sums, float* along, int64_t threads) {
  const Scorer scorer(H, A, weight, bias, context);
  const isize widest = levels ? *std::max_element(level_sizes, level_sizes + levels) : 0;
  const std::unique_ptr<float[]> room(new float[4 * widest * H]);  // h and c of two levels in turn
  isize turn = 0;
  const auto place = [&](isize begin, isize end) {
    float* h = room.get() + 2 * (turn++ % 2) * widest * H;
    return Level{begin, end, H, h, kind ? nullptr : h + widest * H};
  };
  const auto then = [&](const Level& level, isize first, isize last) {
    float scores[TASK];
    scorer(last - first, level.h_of(first), nullptr, scores,
           [&](isize i) { return D ? beside + inputs[first + i] * A : nullptr; });
    for (isize i = first; i < last; ++i) {
      const isize tree = trees[i], parent = level.begin ? parents[i] : -1;
      const double w = std::exp(scores[i - first] - shifts[tree]);
      weight_sums[i] = w + (parent < 0 ? 0 : weight_sums[parent]);
      const float* direction = directions + tree * (H + D);
      const float value = dot(H, direction, level.h_of(i)) + (D ? dot(D, direction + H, x + inputs[i] * D) : 0);
      value_sums[i] = w * value + (parent < 0 ? 0 : value_sums[parent]);
      if (ends[i] < 0) continue;
      along[i] = dot(H, slope_h + ends[i] * H, level.h_of(i));
      if (slope_c) along[i] += dot(H, slope_c + ends[i] * H, level.c_of(i));
    }
  };
  const Forest forest{levels, H, level_sizes, inputs, parents, projection};
  kind ? run_forest<GRU>(forest, state_weight, nullptr, threads, place, then)
       : run_forest<LSTM>(forest, state_weight, nullptr, threads, place, then);
}

}  // extern "C"
