// LSTM and GRU over ragged sequences, forward and backward.

#pragma once

#include <algorithm>
#include <vector>

#include "cells.h"
#include "gradients.h"
#include "products.h"
#include "threads.h"

namespace {

// Sequences, longest first, in groups of GROUP.
struct Sequences {
  isize count;
  const isize *offsets, *longest_first;
  bool reverse;

  isize groups() const { return (count + GROUP - 1) / GROUP; }
  isize members(isize group) const { return std::min<isize>(GROUP, count - group * GROUP); }
  isize length(isize group, isize r) const {
    const isize s = longest_first[group * GROUP + r];
    return offsets[s + 1] - offsets[s];
  }
  // The flat row that member r of a group reads at step t.
  isize row(isize group, isize r, isize t) const {
    const isize s = longest_first[group * GROUP + r];
    return reverse ? offsets[s + 1] - 1 - t : offsets[s] + t;
  }
};

struct Sizes {
  isize H, D;  // hidden, input
};

template <class Cell>
Panels gate_weights(Sizes size, const float* input_weight, const float* state_weight) {  // (D + H, 4H)
  return Panels(size.D + size.H, 4 * size.H, [=](isize k, isize n) {
    const isize gate = n / size.H, unit = n % size.H;
    const int block = k < size.D ? Cell::INPUT[gate] : Cell::STATE[gate];
    if (block < 0) return 0.f;
    const isize weight_row = block * size.H + unit;
    return k < size.D ? input_weight[weight_row * size.D + k] : state_weight[weight_row * size.H + k - size.D];
  });
}

template <class Cell>
Panels gradient_weights(Sizes size, const float* input_weight, const float* state_weight) {  // (4H, H + D)
  return Panels(4 * size.H, size.H + size.D, [=](isize k, isize n) {
    const isize gate = k / size.H, unit = k % size.H;
    const int block = n < size.H ? Cell::STATE[gate] : Cell::INPUT[gate];
    if (block < 0) return 0.f;
    const isize weight_row = block * size.H + unit;
    return n < size.H ? state_weight[weight_row * size.H + n] : input_weight[weight_row * size.D + n - size.H];
  });
}

// A row of gates before the state's share: zeros where the input has none, or else a copy of `start`.
template <class Cell>
INLINE void begin_gates(isize H, const float* projection, const float* start, float* gates) {
  if (!projection) return copy(4 * H, start, gates);
  copy(Cell::BLOCKS * H, projection, gates + (4 - Cell::BLOCKS) * H);
  if (Cell::BLOCKS < 4) std::fill_n(gates, H, 0.f);
}

// States h of all rows. Row i reads input row `rows[i]` (or i): of x, when there is one, on top of the bias; else of
// `projection`, which is the input's share of the gates. Training keeps gates and c; null pointers keep nothing.
template <class Cell>
void forward(const Sequences& sequences, Sizes size, const float* x, const float* projection, const isize* rows,
             const float* input_weight, const float* state_weight, const float* bias, float* gates, float* c, float* h,
             isize threads) {
  const isize H = size.H;
  if (!x) size.D = 0;
  const Panels weights = gate_weights<Cell>(size, input_weight, state_weight);
  std::vector<float> start(weights.stride);
  for (int gate = 0; gate < 4 && x; ++gate)
    if (Cell::INPUT[gate] >= 0) std::copy_n(bias + Cell::INPUT[gate] * H, H, start.data() + gate * H);

  parallel(sequences.groups(), threads, [&](isize group) {
    std::vector<float> sums(GROUP * weights.stride), memory(2 * GROUP * H), scratch(4 * H);
    const float *input[GROUP] = {}, *h_prev[GROUP] = {}, *c_prev[GROUP] = {};
    isize active = sequences.members(group);
    for (isize t = 0;; ++t) {
      while (active && sequences.length(group, active - 1) <= t) --active;
      if (!active) break;
      for (isize r = 0; r < active; ++r) {
        const isize row = sequences.row(group, r, t), read = rows ? rows[row] : row;
        input[r] = x ? x + read * size.D : nullptr;
        begin_gates<Cell>(H, x ? nullptr : projection + read * Cell::BLOCKS * H, start.data(),
                          sums.data() + r * weights.stride);
      }
      for (isize r = 0; r < active; ++r)
        if (t + 1 < sequences.length(group, r)) {
          const isize row = sequences.row(group, r, t + 1), read = rows ? rows[row] : row;
          x ? prefetch(size.D, x + read * size.D) : prefetch(Cell::BLOCKS * H, projection + read * Cell::BLOCKS * H);
        }
      multiply(active, input, size.D, h_prev, t ? H : 0, weights, sums.data());
      for (isize r = 0; r < active; ++r) {
        const isize row = sequences.row(group, r, t);
        float* c_now = c ? c + row * H : memory.data() + (t % 2 * GROUP + r) * H;
        const float* sum = sums.data() + r * weights.stride;
        if (gates)
          Cell::template forward<true>(H, sum, h_prev[r], c_prev[r], gates + row * 4 * H, c_now, h + row * H);
        else
          Cell::template forward<false>(H, sum, h_prev[r], c_prev[r], scratch.data(), c_now, h + row * H);
        h_prev[r] = h + row * H, c_prev[r] = c_now;
      }
    }
  });
}

// Gradients, where they are asked for: d_weights (4H, D + H + 1 in whole vectors), of the weights of x, of those of h and
// of the bias; d_projection (k, 4H), of the gates before their activation, for the rows that have a place >= 0
// in it, and dx (rows, D). Without x, D must be 0; a tensor without rows may be a null pointer, too.
template <class Cell>
void backward(const Sequences& sequences, Sizes size, const float* x, const float* input_weight,
              const float* state_weight, const float* gates, const float* c, const float* h, const float* dh,
              float* d_weights, float* d_projection, const isize* places, float* dx, isize threads) {
  const isize H = size.H, D = size.D;
  const Panels weights = gradient_weights<Cell>({H, dx ? D : 0}, input_weight, state_weight);
  const std::vector<float> zeros(weights.stride);

  const auto work = [&](WeightGradient& gradient, isize part, isize parts) {
    std::vector<float> sums(GROUP * weights.stride), carry(2 * GROUP * H), d_gates(GROUP * 4 * H);
    const float* from[GROUP];
    for (isize r = 0; r < GROUP; ++r) from[r] = d_gates.data() + r * 4 * H;
    for (isize group = part; group < sequences.groups(); group += parts) {
      std::fill(sums.begin(), sums.end(), 0.f);
      std::fill(carry.begin(), carry.end(), 0.f);
      const isize members = sequences.members(group);
      isize active = 0;
      for (isize t = sequences.length(group, 0) - 1; t >= 0; --t) {
        while (active < members && sequences.length(group, active) > t) ++active;
        for (isize r = 0; r < active; ++r) {
          const isize row = sequences.row(group, r, t);
          const isize before = t ? sequences.row(group, r, t - 1) * H : 0;
          float* d = d_gates.data() + r * 4 * H;
          Cell::backward(H, gates + row * 4 * H, t ? h + before : nullptr, t && c ? c + before : nullptr,
                         c ? c + row * H : nullptr, dh + row * H, sums.data() + r * weights.stride,
                         carry.data() + ((t + 1) % 2 * GROUP + r) * H, carry.data() + (t % 2 * GROUP + r) * H, d);
          if (t) {
            const isize next = sequences.row(group, r, t - 1);
            prefetch(4 * H, gates + next * 4 * H);
            prefetch(H, dh + next * H);
            if (x) prefetch(D, x + next * D);
          }
          if (d_weights) gradient.add(d, x ? x + row * D : nullptr, t ? h + before : nullptr);
          if (places && places[row] >= 0) copy(4 * H, d, d_projection + places[row] * 4 * H);
        }
        if (!t && !dx) break;
        multiply(active, from, weights, zeros, sums.data());
        for (isize r = 0; r < active && dx; ++r)
          copy(D, sums.data() + r * weights.stride + H, dx + sequences.row(group, r, t) * D);
      }
    }
  };
  sum_weight_gradients(sequences.groups(), 4 * H, D, H, d_weights, threads, work);
}

}  // namespace

extern "C" {

// kind: 0 LSTM, 1 GRU. Null pointers: see `forward` and `backward`.
EXPORT void recurrent_forward(int64_t kind, int64_t sequences, const int64_t* offsets, const int64_t* longest_first,
                              int64_t reverse, int64_t H, int64_t D, const float* x, const float* projection,
                              const int64_t* rows, const float* input_weight, const float* state_weight,
                              const float* bias, float* gates, float* c, float* h, int64_t threads) {
  (kind ? forward<GRU> : forward<LSTM>)({sequences, offsets, longest_first, reverse != 0}, {H, D}, x, projection, rows,
                                        input_weight, state_weight, bias, gates, c, h, threads);
}

EXPORT void recurrent_backward(int64_t kind, int64_t sequences, const int64_t* offsets, const int64_t* longest_first,
                               int64_t reverse, int64_t H, int64_t D, const float* x, const float* input_weight,
                               const float* state_weight, const float* gates, const float* c, const float* h,
                               const float* dh, float* d_weights, float* d_projection, const int64_t* places, float* dx,
                               int64_t threads) {
  (kind ? backward<GRU> : backward<LSTM>)({sequences, offsets, longest_first, reverse != 0}, {H, D}, x, input_weight,
                                          state_weight, gates, c, h, dh, d_weights, d_projection, places, dx,
                                          threads);
}

}  // extern "C"
