// LSTM layers that tell each other when to run, forward and backward: see models/multiscale_lstm.py, which has the
// equations and does the same in torch. Row i of gates, c and h holds all layers one after the other.

#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "recurrent.h"

namespace {

constexpr float LIMIT = 1;  // of a gradient of a gate: paper/models/multiscale_lstm.py

// How the layers hang together, as class Wiring says.
struct Wiring {
  isize layers, H;
  bool flush_own;

  bool detector(isize l) const { return l < layers - 1; }
  isize gates(isize l) const { return 4 * H + detector(l); }
  isize columns(isize l) const { return (1 + detector(l) + (l > 0)) * H; }  // own, above, below
  isize row() const { return layers * (4 * H + 1); }                        // gates of all layers
  isize weights_before(isize l) const {
    isize size = 0;
    for (isize k = 0; k < l; ++k) size += gates(k) * columns(k);
    return size;
  }
};

// All that is known of the rows.
struct Rows {
  Wiring wiring;
  const uint8_t* forced;
  float *gates, *c, *h;

  float* gates_of(isize row, isize l) const { return gates + row * wiring.row() + l * (4 * wiring.H + 1); }
  float* c_of(isize row, isize l) const { return c + (row * wiring.layers + l) * wiring.H; }
  float* h_of(isize row, isize l) const { return h + (row * wiring.layers + l) * wiring.H; }
  bool must(isize row, isize l) const { return !l && forced && forced[row]; }
  bool ends(isize row, isize l) const { return gates_of(row, l)[4 * wiring.H] > 0 || must(row, l); }
  // a and b of a layer at a row, whose sequence is at `before` one step earlier (-1: nowhere)
  float own_end(isize before, isize l) const { return before >= 0 && wiring.detector(l) && ends(before, l); }
  float end_below(isize row, isize l) const { return !l || ends(row, l - 1); }

  // What the gates of a layer read: its own state, the one above, the one below.
  void inputs(isize row, isize before, isize l, float a, float b, float* to) const {
    const isize H = wiring.H;
    const auto put = [&](float factor, const float* from) {
      if (factor)
        copy(H, from, to);
      else
        std::fill_n(to, H, 0.f);
      to += H;
    };
    put(before >= 0 && !(wiring.flush_own && a), h_of(before, l));
    if (wiring.detector(l)) put(before >= 0 ? a : 0.f, h_of(before, l + 1));
    if (l) put(b, h_of(row, l - 1));
  }
};

struct Operation {  // shares of UPDATE, COPY and of both UPDATE and FLUSH
  float update, copy, active;
  Operation(float a, float b) : update((1 - a) * b), copy((1 - a) * (1 - b)), active(1 - copy) {}
};

// Activates the gates in `sums`, which `gates` keeps; c_prev and h_prev are null at the first step.
void multiscale_cell(isize H, Operation op, const float* sums, const float* c_prev, const float* h_prev, float* gates,
                     float* c, float* h) {
  for_vectors(H, [=](isize j, auto row) {
    const vec i = sigmoid(row.in(sums + j)), f = sigmoid(row.in(sums + H + j));
    const vec g = tanh(row.in(sums + 2 * H + j)), o = sigmoid(row.in(sums + 3 * H + j));
    vec memory = op.active * i * g;
    if (c_prev) memory += (f * op.update + op.copy) * row.in(c_prev + j);
    row.out(c + j, memory);
    row.out(gates + j, i), row.out(gates + H + j, f), row.out(gates + 2 * H + j, g), row.out(gates + 3 * H + j, o);
  });
  for_vectors(H, [=](isize j, auto row) {
    vec state = op.active * row.in(gates + 3 * H + j) * tanh(row.in(c + j));
    if (h_prev) state += op.copy * row.in(h_prev + j);
    row.out(h + j, state);
  });
}

// Gradients that flow to a row of one layer (h and c, in vectors of H; the end z), from later steps and higher layers.
struct Flow {
  float *h, *c;
  float z;
};

// From the flow into a row to gradients of its gates before activation, to the flow out, to the step before, as far as
// it does not pass the weights, and to those of a and b.
struct EndGradients {
  float a, b;
};
EndGradients multiscale_cell_backward(isize H, float a, float b, const float* gates, const float* c,
                                      const float* c_prev, const float* h_prev, const float* dh_out, Flow in, Flow out,
                                      float* d_gates) {
  const Operation op(a, b);
  vec to_a = {}, to_b = {};
  for_vectors(H, [&](isize j, auto row) {
    const vec i = row.in(gates + j), f = row.in(gates + H + j);
    const vec g = row.in(gates + 2 * H + j), o = row.in(gates + 3 * H + j), tanh_c = tanh(row.in(c + j));
    const vec c_before = c_prev ? row.in(c_prev + j) : vec{}, h_before = h_prev ? row.in(h_prev + j) : vec{};
    const vec dh = row.in(in.h + j) + row.in(dh_out + j);
    const vec dc = row.in(in.c + j) + dh * o * (1.f - tanh_c * tanh_c) * op.active;
    row.out(d_gates + j, dc * g * i * (1.f - i) * op.active);
    row.out(d_gates + H + j, dc * c_before * f * (1.f - f) * op.update);
    row.out(d_gates + 2 * H + j, dc * i * (1.f - g * g) * op.active);
    row.out(d_gates + 3 * H + j, dh * tanh_c * o * (1.f - o) * op.active);
    row.out(out.c + j, dc * (f * op.update + op.copy));
    row.out(out.h + j, dh * op.copy);
    const vec fresh = i * g - c_before, kept = f * c_before, output = dh * (o * tanh_c - h_before);
    to_a += row.once(dc * (fresh - b * (fresh + kept)) + output * (1.f - b));
    to_b += row.once(dc * (fresh + kept) + output);
  });
  return {sum(to_a), (1 - a) * sum(to_b)};
}

inline void add_scaled(isize H, float factor, const float* from, float* to) {
  for (isize j = 0; j < H; ++j) to[j] += factor * from[j];
}

// The steps of one group of sequences, last to first.
class MultiscaleBackward {
 public:
  MultiscaleBackward(const Rows& rows, const std::vector<Panels>& weights, float slope, const float* dh,
                     float* d_projection, std::deque<WeightGradient>& gradients)
      : rows(rows), wiring(rows.wiring), weights(weights), slope(slope), dh(dh), d_projection(d_projection),
        gradients(gradients), flows(4 * GROUP * wiring.layers * wiring.H), ends(2 * GROUP * wiring.layers),
        d_gates(GROUP * (4 * wiring.H + 1)), input(3 * wiring.H) {
    for (const Panels& panels : weights) zeros.resize(std::max<isize>(zeros.size(), panels.stride));
    sums.resize(GROUP * zeros.size());
  }

  void run(const Sequences& sequences, isize group) {
    std::fill(flows.begin(), flows.end(), 0.f);
    std::fill(ends.begin(), ends.end(), 0.f);
    const isize members = sequences.members(group);
    isize active = 0;
    for (isize t = sequences.length(group, 0) - 1; t >= 0; --t) {
      while (active < members && sequences.length(group, active) > t) ++active;
      for (isize r = 0; r < active; ++r) now[r] = sequences.row(group, r, t), before[r] = t ? now[r] - 1 : -1;
      for (isize l = wiring.layers - 1; l >= 0; --l) layer(active, t % 2, l);
    }
  }

 private:
  Flow flow(isize turn, isize r, isize l) {
    float* h = flows.data() + ((turn * GROUP + r) * wiring.layers + l) * 2 * wiring.H;
    return {h, h + wiring.H, 0};
  }
  float& end(isize turn, isize r, isize l) { return ends[(turn * GROUP + r) * wiring.layers + l]; }

  void layer(isize active, isize turn, isize l) {
    const isize H = wiring.H, gates = wiring.gates(l);
    const Panels& panels = weights[l];
    EndGradients to_ends[GROUP];
    float a[GROUP], b[GROUP];
    const float* from[GROUP];
    for (isize r = 0; r < active; ++r) {
      const isize row = now[r], prev = before[r];
      a[r] = rows.own_end(prev, l), b[r] = rows.end_below(row, l);
      float* d = d_gates.data() + r * gates;
      from[r] = d;
      to_ends[r] = multiscale_cell_backward(
          H, a[r], b[r], rows.gates_of(row, l), rows.c_of(row, l), prev < 0 ? nullptr : rows.c_of(prev, l),
          prev < 0 ? nullptr : rows.h_of(prev, l), dh + (row * wiring.layers + l) * H, flow(turn, r, l),
          flow(!turn, r, l), d);
      if (wiring.detector(l)) {  // straight through: the slope of the hard sigmoid
        const float x = slope * rows.gates_of(row, l)[4 * H];
        d[4 * H] = x > -1 && x < 1 && !rows.must(row, l) ? end(turn, r, l) * slope / 2 : 0.f;
      }
      for (isize k = 0; k < gates; ++k) d[k] = std::min(std::max(d[k], -LIMIT), LIMIT);
      rows.inputs(row, prev, l, a[r], b[r], input.data());
      gradients[l].add(d, input.data(), nullptr);
      if (!l) copy(gates, d, d_projection + row * gates);
    }
    multiply(active, from, panels, zeros, sums.data());
    for (isize r = 0; r < active; ++r) hand_on(turn, r, l, a[r], b[r], to_ends[r], sums.data() + r * panels.stride);
  }

  // d: gradients of the inputs of the gates.
  void hand_on(isize turn, isize r, isize l, float a, float b, EndGradients to_ends, const float* d) {
    const isize H = wiring.H, row = now[r], prev = before[r];
    const float* d_below = d + wiring.columns(l) - H;
    if (l) {
      add_scaled(H, b, d_below, flow(turn, r, l - 1).h);
      end(turn, r, l - 1) += to_ends.b + dot(H, d_below, rows.h_of(row, l - 1));
    }
    if (prev < 0) return;
    add_scaled(H, wiring.flush_own ? 1 - a : 1.f, d, flow(!turn, r, l).h);
    if (!wiring.detector(l)) return;
    add_scaled(H, a, d + H, flow(!turn, r, l + 1).h);
    end(!turn, r, l) = to_ends.a + dot(H, d + H, rows.h_of(prev, l + 1));
    if (wiring.flush_own) end(!turn, r, l) -= dot(H, d, rows.h_of(prev, l));
  }

  const Rows& rows;
  const Wiring wiring;
  const std::vector<Panels>& weights;
  const float slope;
  const float* const dh;
  float* const d_projection;
  std::deque<WeightGradient>& gradients;
  std::vector<float> flows, ends, d_gates, input, sums, zeros;  // flows and ends: of this step and of the one before, in turn
  isize now[GROUP], before[GROUP];
};

}  // namespace

extern "C" {

// projection (rows, 4H + 1): the bottom layer's input term. weights: those of all layers one after the other, as
// biases, which begin with the second layer.
EXPORT void multiscale_forward(int64_t sequences, const int64_t* offsets, const int64_t* longest_first, int64_t layers,
                               int64_t H, int64_t flush_own, const float* projection, const float* weights,
                               const float* biases, const uint8_t* forced, float* gates, float* c, float* h,
                               int64_t threads) {
  const Wiring wiring{layers, H, flush_own != 0};
  const Rows rows{wiring, forced, gates, c, h};
  const Sequences all{sequences, offsets, longest_first, false};
  std::vector<Panels> panels;
  for (isize l = 0; l < layers; ++l) {
    const float* weight = weights + wiring.weights_before(l);
    panels.emplace_back(wiring.columns(l), wiring.gates(l),
                        [=](isize k, isize j) { return weight[j * wiring.columns(l) + k]; });
  }
  parallel(all.groups(), threads, [&](isize group) {
    std::vector<float> sums(GROUP * panels[0].stride), input(GROUP * 3 * H);
    const float* from[GROUP];
    for (isize r = 0; r < GROUP; ++r) from[r] = input.data() + r * 3 * H;
    isize active = all.members(group);
    for (isize t = 0;; ++t) {
      while (active && all.length(group, active - 1) <= t) --active;
      if (!active) break;
      const float* bias = biases;
      for (isize l = 0; l < layers; ++l) {
        const isize stride = panels[l].stride, width = wiring.gates(l);
        for (isize r = 0; r < active; ++r) {
          const isize row = all.row(group, r, t), prev = t ? row - 1 : -1;
          copy(width, l ? bias : projection + row * width, sums.data() + r * stride);
          rows.inputs(row, prev, l, rows.own_end(prev, l), rows.end_below(row, l), input.data() + r * 3 * H);
        }
        multiply(active, from, wiring.columns(l), from, 0, panels[l], sums.data());
        for (isize r = 0; r < active; ++r) {
          const isize row = all.row(group, r, t), prev = t ? row - 1 : -1;
          const float* sum = sums.data() + r * stride;
          multiscale_cell(H, {rows.own_end(prev, l), rows.end_below(row, l)}, sum, t ? rows.c_of(prev, l) : nullptr,
                          t ? rows.h_of(prev, l) : nullptr, rows.gates_of(row, l), rows.c_of(row, l), rows.h_of(row, l));
          if (wiring.detector(l)) rows.gates_of(row, l)[4 * H] = sum[4 * H];
        }
        if (l) bias += width;
      }
    }
  });
}

// From dh (rows, layers, H): d_projection, and d_weights, of each layer (gates, columns + 1 in whole vectors), of the
// weights and in the last column of the bias.
EXPORT void multiscale_backward(int64_t sequences, const int64_t* offsets, const int64_t* longest_first, int64_t layers,
                                int64_t H, int64_t flush_own, const float* weights, const uint8_t* forced, float* gates,
                                float* c, float* h, const float* slope, const float* dh, float* d_projection,
                                float* d_weights, int64_t threads) {
  const Wiring wiring{layers, H, flush_own != 0};
  const Rows rows{wiring, forced, gates, c, h};
  const Sequences all{sequences, offsets, longest_first, false};
  std::vector<Panels> panels;
  std::vector<isize> starts{0};
  for (isize l = 0; l < layers; ++l) {
    const float* weight = weights + wiring.weights_before(l);
    panels.emplace_back(wiring.gates(l), wiring.columns(l),
                        [=](isize k, isize j) { return weight[k * wiring.columns(l) + j]; });
    starts.push_back(starts[l] + wiring.gates(l) * WeightGradient::padded(wiring.columns(l), 0));
  }
  const isize size = starts[layers], parts = std::clamp<isize>(all.groups() / 2, 1, 8);
  std::vector<float> totals(parts * size);
  parallel(parts, threads, [&](isize part) {
    std::deque<WeightGradient> gradients;  // which write their sums when they go
    for (isize l = 0; l < layers; ++l)
      gradients.emplace_back(wiring.gates(l), wiring.columns(l), 0, totals.data() + part * size + starts[l]);
    MultiscaleBackward backward(rows, panels, *slope, dh, d_projection, gradients);
    for (isize group = part; group < all.groups(); group += parts) backward.run(all, group);
  });
  std::fill_n(d_weights, size, 0.f);
  for (isize part = 0; part < parts; ++part)
    for (isize i = 0; i < size; ++i) d_weights[i] += totals[part * size + i];
}

}  // extern "C"
