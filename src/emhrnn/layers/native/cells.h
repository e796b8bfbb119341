// The cells of recurrent layers: one step of one row, and its derivative.

#pragma once

#include "activations.h"

namespace {

// A cell turns a row of four blocks of H gates into states, and gradients of states into gradients of gates. INPUT and
// STATE say which block of the weights feeds each gate (-1: none), so that both cells share the code around them.
// `kept` (4H) takes the activated gates if KEEP, and is scratch if not. BLOCKS is how many the weights have.

struct LSTM {  // gates i f g o; the memory is c
  static constexpr int BLOCKS = 4, INPUT[4] = {0, 1, 2, 3}, STATE[4] = {0, 1, 2, 3};
  static constexpr bool MEMORY = true;

  template <bool KEEP>
  static void forward(isize H, const float* gates, const float*, const float* c_prev, float* kept, float* c, float* h) {
    if (!KEEP) return states(H, gates, nullptr, nullptr, c_prev, kept, c, h);
    for_vectors(H, [=](isize j, auto row) {
      const vec i = sigmoid(row.in(gates + j)), f = sigmoid(row.in(gates + H + j));
      const vec g = tanh(row.in(gates + 2 * H + j)), o = sigmoid(row.in(gates + 3 * H + j));
      vec memory = i * g;
      if (c_prev) memory += f * row.in(c_prev + j);
      row.out(c + j, memory);
      row.out(kept + 3 * H + j, o);
      row.out(kept + j, i), row.out(kept + H + j, f), row.out(kept + 2 * H + j, g);
    });
    // A loop of its own: tanh(c) would wait for the gates, and the CPU sees only so far ahead.
    for_vectors(H, [=](isize j, auto row) { row.out(h + j, row.in(kept + 3 * H + j) * tanh(row.in(c + j))); });
  }

  // The same states when nobody asks for the activated gates: over a common denominator there are two divisions, not
  // five. The gates are the sum of two rows, if `more` is given. scratch: H floats
  static void states(isize H, const float* gates, const float* more, const float*, const float* c_prev, float* scratch,
                     float* c, float* h) {
    for_vectors(H, [=](isize j, auto row) {
      const auto gate = [&](int k) {
        const vec sum = row.in(gates + k * H + j);
        return more ? sum + row.in(more + k * H + j) : sum;
      };
      const vec i = one_plus_exp(-gate(0)), g = exp_less_one(gate(2)), i_g = i * (g + 2.f);
      if (c_prev) {
        const vec f = one_plus_exp(-gate(1));
        row.out(c + j, (g * f + row.in(c_prev + j) * i_g) / (i_g * f));
      } else {
        row.out(c + j, g / i_g);
      }
      row.out(scratch + j, one_plus_exp(-gate(3)));
    });
    for_vectors(H, [=](isize j, auto row) {
      const vec t = exp_less_one(row.in(c + j));
      row.out(h + j, t / ((t + 2.f) * row.in(scratch + j)));
    });
  }

  // carry: the gradient of c from the step after
  static void backward(isize H, const float* gates, const float*, const float* c_prev, const float* c,
                       const float* dh_out, const float* dh_next, const float* carry_next, float* carry,
                       float* d_gates) {
    for_vectors(H, [=](isize j, auto row) {
      const vec i = row.in(gates + j), f = row.in(gates + H + j);
      const vec g = row.in(gates + 2 * H + j), o = row.in(gates + 3 * H + j);
      const vec tanh_c = tanh(row.in(c + j)), dh = row.in(dh_out + j) + row.in(dh_next + j);
      const vec dc = row.in(carry_next + j) + dh * o * (1.f - tanh_c * tanh_c);
      row.out(d_gates + j, dc * g * i * (1.f - i));
      row.out(d_gates + H + j, c_prev ? dc * row.in(c_prev + j) * f * (1.f - f) : vec{});
      row.out(d_gates + 2 * H + j, dc * i * (1.f - g * g));
      row.out(d_gates + 3 * H + j, dh * tanh_c * o * (1.f - o));
      row.out(carry + j, dc * f);
    });
  }
};

struct GRU {  // gates s r u n, with s = U_n h, which r multiplies; no memory beside h
  static constexpr int BLOCKS = 3, INPUT[4] = {-1, 0, 1, 2}, STATE[4] = {2, 0, 1, -1};
  static constexpr bool MEMORY = false;

  template <bool KEEP>
  static void forward(isize H, const float* gates, const float* h_prev, const float*, float* kept, float*, float* h) {
    for_vectors(H, [=](isize j, auto row) {
      const vec s = row.in(gates + j), r = sigmoid(row.in(gates + H + j)), n_sum = row.in(gates + 3 * H + j) + r * s;
      if (!KEEP) return blend(row, j, one_plus_exp(-row.in(gates + 2 * H + j)), n_sum, h_prev, h);
      const vec u = sigmoid(row.in(gates + 2 * H + j)), n = tanh(n_sum);
      const vec before = h_prev ? row.in(h_prev + j) : vec{};
      row.out(h + j, before + u * (n - before));
      row.out(kept + j, s), row.out(kept + H + j, r), row.out(kept + 2 * H + j, u), row.out(kept + 3 * H + j, n);
    });
  }

  // As of the LSTM; gates and `more` have three blocks, r u n.
  static void states(isize H, const float* gates, const float* more, const float* h_prev, const float*, float*, float*,
                     float* h) {
    for_vectors(H, [=](isize j, auto row) {
      const auto gate = [&](int k) {
        const vec sum = row.in(gates + k * H + j);
        return more ? sum + row.in(more + k * H + j) : sum;
      };
      const vec u = one_plus_exp(-gate(1)), n_input = row.in(gates + 2 * H + j);
      const vec n = more ? n_input + row.in(more + 2 * H + j) / one_plus_exp(-gate(0)) : n_input;
      blend(row, j, u, n, h_prev, h);
    });
  }

  // carry: the gradient of h that passes the step by
  static void backward(isize H, const float* gates, const float* h_prev, const float*, const float*,
                       const float* dh_out, const float* dh_next, const float* carry_next, float* carry,
                       float* d_gates) {
    for_vectors(H, [=](isize j, auto row) {
      const vec s = row.in(gates + j), r = row.in(gates + H + j);
      const vec u = row.in(gates + 2 * H + j), n = row.in(gates + 3 * H + j);
      const vec dh = row.in(dh_out + j) + row.in(dh_next + j) + row.in(carry_next + j);
      const vec before = h_prev ? row.in(h_prev + j) : vec{}, dn = dh * u * (1.f - n * n);
      row.out(d_gates + j, dn * r);
      row.out(d_gates + H + j, dn * s * r * (1.f - r));
      row.out(d_gates + 2 * H + j, dh * (n - before) * u * (1.f - u));
      row.out(d_gates + 3 * H + j, dn);
      row.out(carry + j, dh * (1.f - u));
    });
  }

 private:
  // h = before + (tanh n - before) / u, with one division.
  template <class Row>
  static INLINE void blend(Row row, isize j, vec u, vec n, const float* h_prev, float* h) {
    const vec before = h_prev ? row.in(h_prev + j) : vec{}, t = exp_less_one(n), t_2 = t + 2.f;
    row.out(h + j, before + (t - before * t_2) / (t_2 * u));
  }
};

}  // namespace
