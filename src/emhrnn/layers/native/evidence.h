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
constexpr isize USUAL_UNITS = 32;

INLINE vec not_negative(vec x) { return pick(x > vec{}, x, vec{}); }

// Logarithms of many numbers at once. There is room for a whole vector behind the last.
inline void log_all(std::vector<float>& x, isize n) {
  std::fill_n(x.begin() + n, WIDTH, 1.f);  // the last vector reaches beyond n
  for (isize j = 0; j < n; j += WIDTH) store(x.data() + j, log(load(x.data() + j)));
}

// Log-count ratios of the phrases of a document. `counts` are documents with a phrase, of each class, and `all` is their
// number. `own` is what this document has added to counts, `own_weight` to `all`: they are left out. Phrases are taken
// together, because vectors are longer than most rows of classes.
struct Ratios {
  const float *counts, *all;
  const float *prior, *shift;  // pseudo-counts of each class, and what is added to its logarithm
  const float* complement;     // pseudo-counts of all but a class; null: each class against the mean, not against these
  std::vector<float> logs, rest;

  template <class Size>
  void operator()(Size C, const isize* rows, isize size, const float* own, float own_weight) {
    const isize n = size * C;
    if (isize(logs.size()) < n + WIDTH) logs.resize(n + WIDTH, 1.f), rest.resize(n + WIDTH, 1.f);
    for (isize i = 0; i < size; ++i) {
      const float *count = counts + rows[i] * C, documents = all[rows[i]] - own_weight;
      for (isize c = 0; c < C; ++c) {
        const float with = own ? count[c] - own[c] : count[c];
        logs[i * C + c] = std::max(with, 0.f) + prior[c];
        if (complement) rest[i * C + c] = std::max(documents - with, 0.f) + complement[c];
      }
    }
    log_all(logs, n);
    if (complement) log_all(rest, n);
    for (isize i = 0; i < n; i += C) {
      float mean = 0;
      for (isize c = 0; c < C; ++c) {
        logs[i + c] += shift[c];
        if (complement) logs[i + c] -= rest[i + c];
        else mean += logs[i + c];
      }
      mean /= float(C);
      for (isize c = 0; c < C; ++c) logs[i + c] -= mean;
    }
  }
};

// mixed = r (1 + mixing), mixing (C, C).
template <class Size>
INLINE void mix(Size C, const float* r, const float* mixing, float* mixed) {
  for_vectors(C, [&](isize j, auto row) {
    vec sum = row.in(r + j);
    for (isize c = 0; c < C; ++c) sum += r[c] * row.in(mixing + c * C + j);
    row.out(mixed + j, sum);
  });
}

// scores += output^T h, with output (H, C). Few classes are dot products, which leave no lane idle; more are tiles.
class Speaker {
 public:
  Speaker(isize H, isize C, const float* output)
      : columns(C <= MOST_DOTS ? C * H : 0),
        panels(H, C, [=](isize j, isize c) { return output[j * C + c]; }), zeros(panels.stride, 0.f) {
    for (isize c = 0; c < C && !columns.empty(); ++c)
      for (isize j = 0; j < H; ++j) columns[c * H + j] = output[j * C + c];
  }
  // `rows` rows of h (rows, H) to as many of scores (rows, C); `said` has `room()`.
  template <class Hidden, class Classes>
  INLINE void say(Hidden H, Classes C, isize rows, const float* h, float* said, float* scores) const {
    if (C <= MOST_DOTS) {
      for (isize k = 0; k < rows; ++k)
        for (isize c = 0; c < C; ++c) {
          vec total = {};
          for_vectors(H, [&](isize j, auto row) {
            total += row.once(row.in(h + k * H + j) * row.in(columns.data() + c * H + j));
          });
          scores[k * C + c] += folded(total);
        }
      return;
    }
    for (isize first = 0; first < rows; first += TILE) {
      const isize count = std::min<isize>(TILE, rows - first);
      const float* of_rows[TILE];
      for (isize k = 0; k < count; ++k) of_rows[k] = h + (first + k) * H;
      multiply(count, of_rows, panels, zeros, said);
      for (isize k = 0; k < count; ++k)
        for (isize c = 0; c < C; ++c) scores[(first + k) * C + c] += said[k * panels.stride + c];
    }
  }
  isize room() const { return TILE * panels.stride; }

 private:
  static constexpr isize MOST_DOTS = 5;
  std::vector<float> columns;
  const Panels panels;
  const std::vector<float> zeros;
};

// body(H, C) with constants for few classes and the usual number of units.
template <class Body>
void with_sizes(isize H, isize C, Body body) {
  with_constant(C, [&](auto C) {
    if (H == USUAL_UNITS) body(std::integral_constant<isize, USUAL_UNITS>{}, C);
    else body(H, C);
  });
}

// Adds to rows in place, which for_vectors cannot: whole vectors, and then single entries.
struct VectorStep {
  static vec in(const float* p) { return load(p); }
  static void add(float* p, vec v) { store(p, load(p) + v); }
};
struct EntryStep {
  static float in(const float* p) { return *p; }
  static void add(float* p, float v) { *p += v; }
};
template <class Body>
INLINE void in_steps(isize size, Body body) {
  isize j = 0;
  for (; j + WIDTH <= size; j += WIDTH) body(j, VectorStep{});
  for (; j < size; ++j) body(j, EntryStep{});
}

}  // namespace

extern "C" {

// scores = weights * (scale[k, bucket] * ratios (1 + mixing) + table[row]) of every candidate that has a row, else 0.
// Ratios, buckets and the rows that at least `least` documents have are kept for the backward pass where there is room.
// `prior`, `shift` and `complement` are (C), or with `each` (documents, C). `complement`, `own` (documents, C),
// `own_weight` (documents) and `mixing` (C, C) may be null.
EXPORT void seen_forward(isize documents, const isize* word_offsets, isize K, isize C, isize B, const isize* rows,
                         const float* weights, const float* counts, const float* all, const float* table,
                         const float* prior, const float* shift, const float* complement, isize each, const float* own,
                         const float* own_weight, const float* scale, const float* mixing, const float* least,
                         float* ratios, int32_t* buckets, isize* learned, float* scores, isize threads) {
  parallel_chunks(documents, DOCUMENTS, threads, [=](isize begin, isize end) {
    Ratios ratio{counts, all, prior, shift, complement, {}, {}};
    std::vector<isize> places(AT_ONCE * K), found(AT_ONCE * K);  // candidates that have rows, and the rows
    std::vector<float> mixed(mixing ? C : 0);
    with_constant(C, [&](auto C) {
      for (isize d = begin; d < end; ++d) {
        const float weight = own_weight ? own_weight[d] : 0.f;
        const isize priors = each ? d * C : 0;
        ratio.prior = prior + priors, ratio.shift = shift + priors;
        if (complement) ratio.complement = complement + priors;
        for (isize from = word_offsets[d]; from < word_offsets[d + 1]; from += AT_ONCE) {
          const isize to = std::min(from + AT_ONCE, word_offsets[d + 1]);
          isize n = 0;
          for (isize i = from * K; i < to * K; ++i) {
            places[n] = i;
            found[n] = rows[i];
            n += rows[i] != NONE;
          }
          for (isize j = 0; j < n; ++j) {  // rows are far apart in memory: ask for them early
            prefetch(C, counts + found[j] * C);
            prefetch(C, table + found[j] * C);
            prefetch(1, all + found[j]);
          }
          std::fill(scores + from * K * C, scores + to * K * C, 0.f);
          if (ratios) std::fill(ratios + from * K * C, ratios + to * K * C, 0.f);
          if (buckets) std::fill(buckets + from * K, buckets + to * K, 0);
          if (learned) std::fill(learned + from * K, learned + to * K, NONE);
          ratio(C, found.data(), n, own ? own + d * C : nullptr, weight);
          for (isize j = 0; j < n; ++j) {
            const isize i = places[j];
            const isize bucket = bucket_of(all[found[j]] - weight, B);
            if (buckets) buckets[i] = int32_t(bucket);
            if (learned && all[found[j]] >= *least) learned[i] = found[j];
            const float s = scale[(i % K) * B + bucket], *t = table + found[j] * C, *r = ratio.logs.data() + j * C;
            for (isize c = 0; ratios && c < C; ++c) ratios[i * C + c] = r[c];
            if (mixing) mix(C, r, mixing, mixed.data()), r = mixed.data();
            for (isize c = 0; c < C; ++c) scores[i * C + c] = weights[i] * (s * r[c] + t[c]);
          }
        }
      }
    });
  });
}

// The gradient of scale (K, B), from that of the scores.
EXPORT void seen_backward(isize n, isize K, isize C, isize B, const float* weights, const float* ratios,
                          const int32_t* buckets, const float* d_scores, float* d_scale) {
  std::vector<double> sums(K * B, 0.);
  with_constant(C, [&](auto C) {
    for (isize i = 0, k = 0; i < n; ++i, k = k + 1 < K ? k + 1 : 0) {
      if (weights[i] == 0) continue;
      float product = 0;
      for (isize c = 0; c < C; ++c) product += d_scores[i * C + c] * ratios[i * C + c];
      sums[k * B + buckets[i]] += weights[i] * product;
    }
  });
  for (isize i = 0; i < K * B; ++i) d_scale[i] = float(sums[i]);
}

// The gradients of scale (K, B) and of mixing (C, C), from that of the scores.
EXPORT void mixed_backward(isize n, isize K, isize C, isize B, const float* weights, const float* ratios,
                           const int32_t* buckets, const float* scale, const float* mixing, const float* d_scores,
                           float* d_scale, float* d_mixing) {
  std::vector<float> products(K * B * C * C, 0.f);  // of each width and bucket: sums of weight * ratios^T d_scores
  with_constant(C, [&](auto C) {
    for (isize i = 0, k = 0; i < n; ++i, k = k + 1 < K ? k + 1 : 0) {
      if (weights[i] == 0) continue;
      float* product = products.data() + (k * B + buckets[i]) * C * C;
      for (isize c = 0; c < C; ++c, product += C) {
        const float factor = weights[i] * ratios[i * C + c];
        in_steps(C, [&](isize j, auto step) { step.add(product + j, factor * step.in(d_scores + i * C + j)); });
      }
    }
  });
  std::fill(d_mixing, d_mixing + C * C, 0.f);
  const float* product = products.data();
  for (isize i = 0; i < K * B; ++i, product += C * C) {
    double sum = 0;
    for (isize j = 0; j < C * C; ++j) {
      sum += (mixing[j] + (j % (C + 1) == 0 ? 1.f : 0.f)) * product[j];
      d_mixing[j] += scale[i] * product[j];
    }
    d_scale[i] = float(sum);
  }
}

// scores += weights * table[row] of every candidate that has a row.
EXPORT void gather_rows(isize n, isize C, const isize* rows, const float* weights, const float* table, float* scores,
                        isize threads) {
  parallel_chunks(n, 1 << 14, threads, [=](isize begin, isize end) {
    constexpr isize AHEAD = 16;
    with_constant(C, [=](auto C) {
      for (isize i = begin; i < end; ++i) {
        if (i + AHEAD < end && rows[i + AHEAD] != NONE) prefetch(C, table + rows[i + AHEAD] * C);
        if (rows[i] == NONE) continue;
        const float* row = table + rows[i] * C;
        for (isize c = 0; c < C; ++c) scores[i * C + c] += weights[i] * row[c];
      }
    });
  });
}

// rows (n, C) += one number for each row.
EXPORT void add_to_rows(isize n, isize C, const float* numbers, float* rows) {
  with_constant(C, [=](auto C) {
    for (isize i = 0; i < n; ++i)
      for (isize c = 0; c < C; ++c) rows[i * C + c] += numbers[i];
  });
}

EXPORT void sums_of_rows(isize n, isize C, const float* rows, float* sums) {
  with_constant(C, [=](auto C) {
    for (isize i = 0; i < n; ++i) {
      float sum = 0;
      for (isize c = 0; c < C; ++c) sum += rows[i * C + c];
      sums[i] = sum;
    }
  });
}

// h[t, k] = tanh(bias[k] + sum over j <= k of projection[place[t - j], j]); scores[t, k] += output h[t, k].
// projection (P, K, H), bias (K, H), output (H, C); h (words, K, H) is kept where there is room for it. Candidates that
// would begin before their sentence are left out.
EXPORT void encoder_forward(isize sentences, const isize* offsets, isize K, isize H, isize C, const isize* places,
                            const float* projection, const float* bias, const float* output, float* h, float* scores,
                            isize threads) {
  const Speaker speaker(H, C, output);
  parallel_chunks(sentences, FEW, threads, [=, &speaker](isize begin, isize end) {
    std::vector<float> room(2 * H), states(K * H), said(speaker.room());
    with_sizes(H, C, [&](auto H, auto C) {
      float *sum = room.data(), *next = sum + H;
      for (isize s = begin; s < end; ++s) {
        for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
          constexpr isize AHEAD = 8;  // words are far apart in a projection of the whole vocabulary
          if (t + AHEAD < offsets[end]) prefetch(K * H, projection + places[t + AHEAD] * K * H);
          const isize widths = std::min(K, t - offsets[s] + 1);
          float* kept = h ? h + t * K * H : states.data();
          std::fill(sum, sum + H, 0.f);
          for (isize k = 0; k < widths; ++k) {
            const float *p = projection + (places[t - k] * K + k) * H, *b = bias + k * H;
            for_vectors(H, [&](isize j, auto row) {
              const vec x = row.in(sum + j) + row.in(p + j);
              row.out(next + j, x);
              row.out(kept + k * H + j, x + row.in(b + j));
            });
            std::swap(sum, next);
          }
          tanh_all(widths * H, kept);
          speaker.say(H, C, widths, kept, said.data(), scores + t * K * C);
        }
      }
    });
  });
}

// Gradients of projection (P, K, H), bias and output, from those of the scores. `output` is (C, H) here.
EXPORT void encoder_backward(isize sentences, const isize* offsets, isize K, isize H, isize C, const isize* places,
                             isize P, const float* output, const float* h, const float* d_scores, float* d_projection,
                             float* d_bias, float* d_output, isize threads) {
  const isize words = offsets[sentences], chunks = (sentences + FEW - 1) / FEW, shared = (K + C) * H;
  // Several threads give each word its own row; one thread adds them up right away, in the same order.
  const bool alone = threads < 2;
  std::vector<float> d_words(alone ? 0 : words * K * H, 0.f), parts(chunks * shared, 0.f);
  std::fill(d_projection, d_projection + P * K * H, 0.f);
  parallel_chunks(sentences, FEW, threads, [&](isize begin, isize end) {
    float *of_bias = parts.data() + begin / FEW * shared, *of_output = of_bias + K * H;
    for (isize s = begin; s < end; ++s) {
      for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
        const isize widths = std::min(K, t - offsets[s] + 1);
        const auto row_of = [&](isize k) {
          return (alone ? d_projection + places[t - k] * K * H : d_words.data() + (t - k) * K * H) + k * H;
        };
        const float *states = h + t * K * H, *d = d_scores + t * K * C;
        in_steps(H, [&](isize j, auto vector) {
          decltype(vector.in(output)) sum = {};
          for (isize c = 0; c < C; ++c) {
            decltype(sum) total = {};
            for (isize k = 0; k < widths; ++k) total += d[k * C + c] * vector.in(states + k * H + j);
            vector.add(of_output + c * H + j, total);
          }
          for (isize k = widths - 1; k >= 0; --k) {
            decltype(sum) d_h = {};
            for (isize c = 0; c < C; ++c) d_h += d[k * C + c] * vector.in(output + c * H + j);
            const auto state = vector.in(states + k * H + j);
            const auto of_sum = d_h * (1.f - state * state);
            sum += of_sum;
            vector.add(of_bias + k * H + j, of_sum);
            vector.add(row_of(k) + j, sum);
          }
        });
      }
    }
  });
  if (!alone)
    for (isize t = 0; t < words; ++t)
      for (isize j = 0; j < K * H; ++j) d_projection[places[t] * K * H + j] += d_words[t * K * H + j];
  std::fill(d_bias, d_bias + K * H, 0.f);
  std::fill(d_output, d_output + C * H, 0.f);
  for (isize chunk = 0; chunk < chunks; ++chunk) {
    const float* part = parts.data() + chunk * shared;
    for (isize j = 0; j < K * H; ++j) d_bias[j] += part[j];
    for (isize j = 0; j < C * H; ++j) d_output[j] += part[K * H + j];
  }
}

}  // extern "C"
