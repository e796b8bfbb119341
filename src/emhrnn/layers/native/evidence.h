// What candidate phrases say for each class: seen phrases by counts and by a table, all phrases by a small network on
// the vectors of their words. Candidates are as in phrases.h; layers/evidence.py has the formulas.

#pragma once

#include <algorithm>
#include <vector>

#include "activations.h"
#include "phrases.h"
#include "threads.h"

namespace {

constexpr isize FEW = 64;  // sentences that a thread takes at a time

INLINE vec not_negative(vec x) { return x > vec{} ? x : vec{}; }

// Log-count ratios of a phrase. `counts` are documents with the phrase, of each class, and `all` is their number.
// `own` is what this document has added to counts: it is left out, and so is its weight.
struct Ratios {
  isize C;
  const float *prior, *shift;  // pseudo-counts of each class, and what is added to its logarithm
  const float* complement;     // pseudo-counts of all but a class; null: each class against the mean, not against these

  void operator()(const float* counts, const float* own, float all, float* ratios) const {
    for_vectors(C, [&](isize c, auto row) {
      const vec with = own ? row.in(counts + c) - row.in(own + c) : row.in(counts + c);
      vec x = log(not_negative(with) + row.in(prior + c)) + row.in(shift + c);
      if (complement) x -= log(not_negative(all - with) + row.in(complement + c));
      row.out(ratios + c, x);
    });
    if (complement) return;
    float mean = 0;
    for (isize c = 0; c < C; ++c) mean += ratios[c];
    mean /= float(C);
    for (isize c = 0; c < C; ++c) ratios[c] -= mean;
  }
};

// A matrix whose rows are padded with zeros to whole vectors.
struct Padded {
  Padded(isize n, isize size, const float* rows) : n(n), stride((size + WIDTH - 1) / WIDTH * WIDTH), values(n * stride) {
    for (isize i = 0; i < n; ++i) std::copy(rows + i * size, rows + (i + 1) * size, values.data() + i * stride);
  }
  // sums = a . matrix, (stride)
  INLINE void times(const float* a, float* sums) const {
    for (isize j = 0; j < stride; j += WIDTH) {
      vec even = {}, odd = {};  // two chains, so that one product does not wait for the other
      isize i = 0;
      for (; i + 1 < n; i += 2) {
        even += a[i] * load(values.data() + i * stride + j);
        odd += a[i + 1] * load(values.data() + (i + 1) * stride + j);
      }
      if (i < n) even += a[i] * load(values.data() + i * stride + j);
      store(sums + j, even + odd);
    }
  }
  const isize n, stride;
  std::vector<float> values;
};

}  // namespace

extern "C" {

// scores = weights * (scale[k, bucket] * ratios + table[row]) of every candidate that has a row, else 0. Ratios and
// buckets are kept for the backward pass. `complement` (C), `own` (documents, C) and `own_weight` (documents) may be null.
void seen_forward(isize documents, const isize* word_offsets, isize K, isize C, isize B, const isize* rows,
                  const float* weights, const float* counts, const float* all, const float* table, const float* prior,
                  const float* shift, const float* complement, const float* own, const float* own_weight, const float* scale,
                  float* ratios, int32_t* buckets, float* scores, isize threads) {
  const Ratios ratio{C, prior, shift, complement};
  parallel_chunks(documents, DOCUMENTS, threads, [=](isize begin, isize end) {
    constexpr isize AHEAD = 16;  // rows are far apart in memory: ask for them early
    const isize last = word_offsets[end] * K;
    for (isize d = begin; d < end; ++d) {
      for (isize i = word_offsets[d] * K; i < word_offsets[d + 1] * K; ++i) {
        if (i + AHEAD < last && rows[i + AHEAD] != NONE) {
          prefetch(C, counts + rows[i + AHEAD] * C);
          prefetch(C, table + rows[i + AHEAD] * C);
          prefetch(1, all + rows[i + AHEAD]);
        }
        float *score = scores + i * C, *r = ratios + i * C;
        const isize row = rows[i];
        if (row == NONE) {
          std::fill(score, score + C, 0.f);
          std::fill(r, r + C, 0.f);
          buckets[i] = 0;
          continue;
        }
        const float documents_with = all[row] - (own_weight ? own_weight[d] : 0.f);
        ratio(counts + row * C, own ? own + d * C : nullptr, documents_with, r);
        buckets[i] = int32_t(bucket_of(documents_with, B));
        const float s = scale[(i % K) * B + buckets[i]], *t = table + row * C;
        for (isize c = 0; c < C; ++c) score[c] = weights[i] * (s * r[c] + t[c]);
      }
    }
  });
}

// The gradient of scale (K, B), from that of the scores.
void seen_backward(isize n, isize K, isize C, isize B, const float* weights, const float* ratios,
                   const int32_t* buckets, const float* d_scores, float* d_scale) {
  std::vector<double> sums(K * B, 0.);
  for (isize i = 0; i < n; ++i) {
    if (weights[i] == 0) continue;
    float product = 0;
    for (isize c = 0; c < C; ++c) product += d_scores[i * C + c] * ratios[i * C + c];
    sums[(i % K) * B + buckets[i]] += weights[i] * product;
  }
  for (isize i = 0; i < K * B; ++i) d_scale[i] = float(sums[i]);
}

// scores += weights * table[row] of every candidate that has a row.
void gather_rows(isize n, isize C, const isize* rows, const float* weights, const float* table, float* scores,
                 isize threads) {
  parallel_chunks(n, 1 << 14, threads, [=](isize begin, isize end) {
    constexpr isize AHEAD = 16;
    for (isize i = begin; i < end; ++i) {
      if (i + AHEAD < end && rows[i + AHEAD] != NONE) prefetch(C, table + rows[i + AHEAD] * C);
      if (rows[i] == NONE) continue;
      const float* row = table + rows[i] * C;
      for (isize c = 0; c < C; ++c) scores[i * C + c] += weights[i] * row[c];
    }
  });
}

// h[t, k] = tanh(bias[k] + sum over j <= k of projection[place[t - j], j]); scores[t, k] += output h[t, k].
// projection (P, K, H), bias (K, H), output (H, C); h (words, K, H) is kept where there is room for it. Candidates that
// would begin before their sentence are left out.
void encoder_forward(isize sentences, const isize* offsets, isize K, isize H, isize C, const isize* places,
                     const float* projection, const float* bias, const float* output, float* h, float* scores,
                     isize threads) {
  const Padded weights(H, C, output);
  parallel_chunks(sentences, FEW, threads, [=, &weights](isize begin, isize end) {
    std::vector<float> sum(H), state(H), said(weights.stride);
    for (isize s = begin; s < end; ++s) {
      for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
        std::fill(sum.begin(), sum.end(), 0.f);
        for (isize k = 0; k < std::min(K, t - offsets[s] + 1); ++k) {
          const float *p = projection + (places[t - k] * K + k) * H, *b = bias + k * H;
          float* kept = h ? h + (t * K + k) * H : state.data();
          for (isize j = 0; j < H; ++j) sum[j] += p[j];
          for_vectors(H, [&](isize j, auto row) { row.out(kept + j, tanh(row.in(sum.data() + j) + row.in(b + j))); });
          weights.times(kept, said.data());
          for (isize c = 0; c < C; ++c) scores[(t * K + k) * C + c] += said[c];
        }
      }
    }
  });
}

// Gradients of projection (P, K, H), bias and output, from those of the scores. `output` is (C, H) here.
void encoder_backward(isize sentences, const isize* offsets, isize K, isize H, isize C, const isize* places, isize P,
                      const float* output, const float* h, const float* d_scores, float* d_projection, float* d_bias,
                      float* d_output, isize threads) {
  const isize words = offsets[sentences], chunks = (sentences + FEW - 1) / FEW, shared = (K + C) * H;
  std::vector<float> d_places(words * K * H, 0.f), parts(chunks * shared, 0.f);
  const Padded weights(C, H, output);
  parallel_chunks(sentences, FEW, threads, [&](isize begin, isize end) {
    float *of_bias = parts.data() + begin / FEW * shared, *of_output = of_bias + K * H;
    std::vector<float> sum(H), d_h(weights.stride);
    for (isize s = begin; s < end; ++s) {
      for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
        std::fill(sum.begin(), sum.end(), 0.f);
        for (isize k = std::min(K, t - offsets[s] + 1) - 1; k >= 0; --k) {
          const float *state = h + (t * K + k) * H, *d = d_scores + (t * K + k) * C;
          weights.times(d, d_h.data());
          for (isize c = 0; c < C; ++c)
            for (isize j = 0; j < H; ++j) of_output[c * H + j] += d[c] * state[j];
          float *to = d_places.data() + ((t - k) * K + k) * H, *b = of_bias + k * H;
          for (isize j = 0; j < H; ++j) {
            const float of_sum = d_h[j] * (1.f - state[j] * state[j]);
            b[j] += of_sum;
            sum[j] += of_sum;
            to[j] += sum[j];
          }
        }
      }
    }
  });
  std::fill(d_projection, d_projection + P * K * H, 0.f);
  for (isize t = 0; t < words; ++t)
    for (isize j = 0; j < K * H; ++j) d_projection[places[t] * K * H + j] += d_places[t * K * H + j];
  std::fill(d_bias, d_bias + K * H, 0.f);
  std::fill(d_output, d_output + C * H, 0.f);
  for (isize chunk = 0; chunk < chunks; ++chunk) {
    const float* part = parts.data() + chunk * shared;
    for (isize j = 0; j < K * H; ++j) d_bias[j] += part[j];
    for (isize j = 0; j < C * H; ++j) d_output[j] += part[K * H + j];
  }
}

}  // extern "C"
