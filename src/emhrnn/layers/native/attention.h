// Attention over ragged segments, forward and backward, and over pairs of shared states.

#pragma once

#include <algorithm>
#include <vector>

#include "activations.h"
#include "gradients.h"
#include "products.h"
#include "threads.h"

namespace {

// Softmax of a segment's scores, in place.
void softmax(isize n, float* scores) {
  const float highest = *std::max_element(scores, scores + n);
  float total = 0;
  for (isize t = 0; t < n; ++t) total += scores[t] = exp(scores[t] - highest);
  for (isize t = 0; t < n; ++t) scores[t] /= total;
}

// scores = u . context with u = tanh(weight h + bias), for rows in a row; u is kept where there is room for it.
class Scorer {
 public:
  Scorer(isize H, isize A, const float* weight, const float* bias, const float* context)
      : H(H), A(A), weights(H, A, [=](isize k, isize j) { return weight[j * H + k]; }), start(weights.stride),
        context(context) {
    copy(A, bias, start.data());
  }

  void operator()(isize n, const float* h, float* u, float* scores) const {
    std::vector<float> sums(MANY * weights.stride);
    const float* rows[MANY];
    in_groups(0, n, [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) rows[r] = h + (begin + r) * H;
      multiply(count, rows, weights, start, sums.data());
      for (isize r = 0; r < count; ++r) {
        const float* sum_r = sums.data() + r * weights.stride;
        vec score = {};
        for_vectors(A, [&](isize j, auto row) {
          const vec u_j = tanh(row.in(sum_r + j));
          if (u) row.out(u + (begin + r) * A + j, u_j);
          score += row.once(u_j * row.in(context + j));
        });
        scores[begin + r] = sum(score);
      }
    });
  }

 private:
  const isize H, A;
  const Panels weights;
  std::vector<float> start;
  const float* const context;
};

}  // namespace

extern "C" {

// scores = u . context of all rows, u = tanh(h weight^T + bias) (n, A), kept where u is given.
EXPORT void attention_scores(int64_t n, int64_t H, int64_t A, const float* h, const float* weight, const float* bias,
                             const float* context, float* u, float* scores, int64_t threads) {
  const Scorer scorer(H, A, weight, bias, context);
  parallel_rows(0, n, threads, [&](isize first, isize last) {
    scorer(last - first, h + first * H, u ? u + first * A : nullptr, scores + first);
  });
}

// dh, and where it is asked for d_weights (A, H + 1 in whole vectors): gradients of the weight and, in column H, of the bias.
EXPORT void attention_scores_backward(int64_t n, int64_t H, int64_t A, const float* h, const float* u,
                                      const float* weight, const float* context, const float* d_scores,
                                      float* d_weights, float* dh, int64_t threads) {
  const Panels weights(A, H, [=](isize k, isize j) { return weight[k * H + j]; });
  const std::vector<float> zeros(weights.stride);
  sum_weight_gradients(n / TASK, A, 0, H, d_weights, threads, [&](WeightGradient& gradient, isize part, isize parts) {
    const isize share = (n + parts - 1) / parts;
    std::vector<float> sums(MANY * weights.stride), d_inner(MANY * A);  // d_inner: before tanh
    const float* from[MANY];
    for (isize r = 0; r < MANY; ++r) from[r] = d_inner.data() + r * A;
    in_groups(part * share, std::min(n, (part + 1) * share), [&](isize begin, isize count) {
      for (isize r = 0; r < count; ++r) {
        const isize i = begin + r;
        float* d = d_inner.data() + r * A;
        for_vectors(A, [&](isize j, auto row) {
          const vec u_j = row.in(u + i * A + j);
          row.out(d + j, d_scores[i] * row.in(context + j) * (1.f - u_j * u_j));
        });
        if (d_weights) gradient.add(d, nullptr, h + i * H);
      }
      multiply(count, from, weights, zeros, sums.data());
      for (isize r = 0; r < count; ++r) copy(H, sums.data() + r * weights.stride, dh + (begin + r) * H);
    });
  });
}

// pooled[i] = sum over t in offsets[i] .. offsets[i + 1] - 1 of softmax(scores)_t h_t, where t stands for row rows[t]
// when rows are given. The weights are kept where there is room for them.
EXPORT void attend(int64_t segments, const int64_t* offsets, const int64_t* rows, int64_t H, const float* h,
                   const float* scores, float* weights, float* pooled, int64_t threads) {
  parallel_rows(0, segments, threads, [&](isize first, isize last) {
    std::vector<float> scratch;
    for (isize i = first; i < last; ++i) {
      const isize begin = offsets[i], n = offsets[i + 1] - begin;
      if (!n) {
        std::fill_n(pooled + i * H, H, 0.f);
        continue;
      }
      if (!weights) scratch.resize(std::max<isize>(scratch.size(), n));
      float* w = weights ? weights + begin : scratch.data();
      for (isize t = 0; t < n; ++t) w[t] = scores[rows ? rows[begin + t] : begin + t];
      softmax(n, w);
      for_vectors(H, [&](isize j, auto row) {
        vec total = {};
        for (isize t = 0; t < n; ++t) total += w[t] * row.in(h + (rows ? rows[begin + t] : begin + t) * H + j);
        row.out(pooled + i * H + j, total);
      });
    }
  });
}

// d_weights may be null: then only the pooled rows have a gradient.
EXPORT void attend_backward(int64_t segments, const int64_t* offsets, int64_t H, const float* h, const float* weights,
                            const float* d_pooled, const float* d_weights, float* dh, float* d_scores,
                            int64_t threads) {
  parallel_rows(0, segments, threads, [&](isize first, isize last) {
    for (isize i = first; i < last; ++i) {
      const float* d = d_pooled + i * H;
      float mean = 0;
      for (isize t = offsets[i]; t < offsets[i + 1]; ++t) {
        d_scores[t] = dot(H, d, h + t * H) + (d_weights ? d_weights[t] : 0.f);
        mean += weights[t] * d_scores[t];
        for_vectors(H, [&](isize j, auto row) { row.out(dh + t * H + j, weights[t] * row.in(d + j)); });
      }
      for (isize t = offsets[i]; t < offsets[i + 1]; ++t) d_scores[t] = weights[t] * (d_scores[t] - mean);
    }
  });
}

// Sentence attention over pairs of shared states (see paper/models/attention.py); rows of left and right are A + C long.
EXPORT void pair_attention(int64_t variants, const int64_t* offsets, const int64_t* forward_nodes,
                           const int64_t* backward_nodes, int64_t A, int64_t C, const float* left, const float* right,
                           const float* context, float* logits, int64_t threads) {
  const isize length = A + C, pairs = offsets[variants];
  parallel_rows(0, variants, threads, [&](isize first, isize last) {
    std::vector<float> w;
    for (isize i = first; i < last; ++i) {
      const isize begin = offsets[i], n = offsets[i + 1] - begin;
      w.resize(std::max<isize>(w.size(), n));
      for (isize t = begin; t < begin + n; ++t) {
        if (t + 2 < pairs)  // the rows are far apart: ask for them early
          for (isize j = 0; j < length; j += 16) {
            PREFETCH(left + forward_nodes[t + 2] * length + j);
            PREFETCH(right + backward_nodes[t + 2] * length + j);
          }
        const float *f = left + forward_nodes[t] * length, *b = right + backward_nodes[t] * length;
        vec score = {};
        for_vectors(A, [&](isize j, auto row) {
          score += row.once(tanh(row.in(f + j) + row.in(b + j)) * row.in(context + j));
        });
        w[t - begin] = sum(score);
      }
      float* out = logits + i * C;
      std::fill_n(out, C, 0.f);
      if (n) softmax(n, w.data());
      for (isize t = 0; t < n; ++t) {
        const float* f = left + forward_nodes[begin + t] * length + A;
        const float* b = right + backward_nodes[begin + t] * length + A;
        for (isize j = 0; j < C; ++j) out[j] += w[t] * (f[j] + b[j]);
      }
    }
  });
}

}  // extern "C"
