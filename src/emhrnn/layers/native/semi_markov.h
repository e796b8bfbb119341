// Sums and maxima over all segmentations of sentences into phrases of at most K words, for C classes at once; what they
// are, and why only differences of neighbouring alphas are kept, stands in layers/semi_markov.py.
//
// A sentence goes word by word, so the vectors go across sentences and classes. One lane is a sentence and a class; a
// stripe is LANES of them, of sentences that are about equally long:
//
//   2 classes    | s0 s0 s1 s1 s2 s2 ...     20 classes, 16 lanes    | s0: 0 .. 15 |    | s0: 4 .. 19 |
//
// Lanes never meet, so the result does not depend on how they are put together, nor on the number of threads.

#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "activations.h"
#include "threads.h"

namespace {

constexpr int VECTORS = 2;               // steps of one vector wait for each other: two are on their way at once
constexpr int LANES = VECTORS * WIDTH;
constexpr isize STEPS = 16;              // words whose scores are brought into lanes together
constexpr isize STRIPES = 8;             // that a thread takes at a time
constexpr float IMPOSSIBLE = -INFINITY;  // log of a sum over no segmentation

// Which sentences and classes stand in which lanes. `classes` may name the only class of each sentence.
class Stripes {
 public:
  struct Run {  // `run` lanes: classes from `first` on of a sentence
    isize sentence, begin, words, first;
  };

  Stripes(isize sentences, const isize* offsets, isize C, const isize* classes)
      : run(classes ? 1 : std::min<isize>(C, LANES)), per_stripe(run ? LANES / run : 1),
        per_sentence(run && !classes ? (C + run - 1) / run : 1) {
    std::vector<isize> order(sentences);
    std::iota(order.begin(), order.end(), isize{0});
    const auto words = [=](isize s) { return offsets[s + 1] - offsets[s]; };
    std::stable_sort(order.begin(), order.end(), [&](isize a, isize b) { return words(a) > words(b); });
    for (isize s : order) {
      if (!words(s)) break;
      if (classes) runs.push_back({s, offsets[s], words(s), classes[s]});
      else
        for (isize j = 0; j < C; j += run) runs.push_back({s, offsets[s], words(s), std::min(j, C - run)});
    }
  }

  // body(runs, their number), the longest sentence first. No sentence is shared by threads: its runs may overlap.
  template <class Body>
  void each(isize threads, Body body) const {
    const isize size = runs.size(), share = (STRIPES + per_sentence - 1) / per_sentence * per_sentence * per_stripe;
    parallel((size + share - 1) / share, threads, [&](isize task) {
      const isize end = std::min(size, (task + 1) * share);
      for (isize i = task * share; i < end; i += per_stripe) body(runs.data() + i, std::min(per_stripe, end - i));
    });
  }

  const isize run, per_stripe, per_sentence;  // lanes of a run; runs of a stripe; runs of a sentence

 private:
  std::vector<Run> runs;
};

// The last K alphas of every lane, less the last finite one: rows[k] = alpha(t - 1 - k) - reference, -inf where there is
// no segmentation. Before the first word that is alpha(0) = 0 alone.
class Window {
 public:
  explicit Window(isize K) : K(K), rows(K * LANES) {}

  void start() { std::fill_n(rows.begin(), LANES, 0.f); }
  const float* row(isize k) const { return rows.data() + k * LANES; }

  // To the next word, whose alpha is d above the reference, or impossible: then the reference stays, and d is 0.
  // `known` of the rows are in use. Goes vector by vector: v is its first lane.
  INLINE void shift(isize known, int v, vec d, ivec possible) {
    for (isize k = std::min(known, K - 1); k > 0; --k) {
      float* to = rows.data() + k * LANES + v;
      store(to, load(to - LANES) - d);
    }
    store(rows.data() + v, pick(possible, vec{}, vec{} + IMPOSSIBLE));
  }

 private:
  const isize K;
  std::vector<float> rows;
};

// Where a sentence is read from: the word at step t; and body(row of the scores, row of the block) for all K phrases that
// end at steps `begin` to `end`. From the right, a phrase ends at its first word; of those that reach over the start there
// is some score, which nobody reads.
struct FromLeft {
  static isize word(const Stripes::Run& r, isize t) { return r.begin + t; }
  template <class Body>
  static INLINE void rows(const Stripes::Run& r, isize begin, isize end, isize K, Body body) {
    for (isize row = 0; row < (end - begin) * K; ++row) body(word(r, begin) * K + row, row);
  }
};
struct FromRight {
  static isize word(const Stripes::Run& r, isize t) { return r.begin + r.words - 1 - t; }
  template <class Body>
  static INLINE void rows(const Stripes::Run& r, isize begin, isize end, isize K, Body body) {
    for (isize t = begin, row = 0; t < end; ++t)
      for (isize k = 0; k < K; ++k, ++row) body((word(r, t) + std::min(k, t)) * K + k, row);
  }
};

// Goes through the words of one stripe. step(word, scores) takes a word of all its sentences; scores (K, LANES) may be
// overwritten, and with `written` they go there as they came. ended(run, its first lane) follows a sentence's last word.
template <class Order = FromLeft, class Length, class Step, class Ended>
void sweep(const Stripes::Run* runs, isize size, Length run, isize K, isize C, const float* scores, float* written,
           float* block, Step step, Ended ended) {
  for (isize begin = 0, running = size; running; begin += STEPS) {
    const isize here = running;
    const auto each = [&](auto copy) {  // number of the block: copy(its place in scores, its place in the block)
      for (isize i = 0; i < here; ++i) {
        const isize first = runs[i].first, lane = i * run;
        Order::rows(runs[i], begin, std::min(runs[i].words, begin + STEPS), K, [=](isize from, isize to) {
          for (isize j = 0; j < run; ++j) copy(from * C + first + j, to * LANES + lane + j);
        });
      }
    };
    each([=](isize flat, isize lane) { block[lane] = scores[flat]; });
    for (isize t = begin; running && t < begin + STEPS; ++t) {
      step(t, block + (t - begin) * K * LANES);
      for (; running && runs[running - 1].words == t + 1; --running) ended(runs[running - 1], (running - 1) * run);
    }
    if (written) each([=](isize flat, isize lane) { written[flat] = block[lane]; });
  }
}

// log_partition (sentences, C); where they are asked for, q (words, K, C), which is of readings from the left, and
// increments (words, C), which each word adds: see layers/semi_markov.py.
template <class Order>
void log_partitions(isize sentences, const isize* offsets, isize K, isize C, const float* scores, float* q,
                    float* increments, float* log_partition, isize threads) {
  constexpr float FLOOR = -80.f;  // e^x below is 0: forbidden phrases have no share, and no share is denormal
  const Stripes stripes(sentences, offsets, C, nullptr);
  std::fill_n(log_partition, sentences * C, 0.f);  // of empty sentences
  stripes.each(threads, [&](const Stripes::Run* runs, isize size) {
    std::vector<float> block(STEPS * K * LANES);
    std::vector<double> sums(LANES);
    Window window(K);
    window.start();
    const auto step = [&](isize t, float* x) {
      const isize widths = std::min(K, t + 1);  // of phrases that do not reach over the start
      float d[LANES];
#pragma GCC unroll 2
      for (int v = 0; v < LANES; v += WIDTH) {
        vec highest = vec{} + IMPOSSIBLE;
        for (isize k = 0; k < widths; ++k) {
          const vec x_k = load(window.row(k) + v) + load(x + k * LANES + v);
          store(x + k * LANES + v, x_k);
          highest = pick(x_k > highest, x_k, highest);
        }
        highest = pick(highest > IMPOSSIBLE, highest, vec{});
        vec total = {};
        for (isize k = 0; k < widths; ++k) {
          const vec below = load(x + k * LANES + v) - highest, e = pick(below < FLOOR, vec{}, exp(below));
          store(x + k * LANES + v, e);
          total += e;
        }
        const ivec alive = total != 0.f;  // a NaN is, and stays
        const vec step_up = pick(alive, highest + log(total), vec{});
        store(d + v, step_up);
        window.shift(widths, v, step_up, alive);
        if (q) {
          const vec share = pick(alive, 1.f / total, vec{});
          for (isize k = 0; k < widths; ++k) store(x + k * LANES + v, load(x + k * LANES + v) * share);
          for (isize k = widths; k < K; ++k) store(x + k * LANES + v, vec{});
        }
      }
      for (int lane = 0; lane < LANES; ++lane) sums[lane] += d[lane];
      for (isize i = 0; increments && i < size && t < runs[i].words; ++i)
        std::copy_n(d + i * stripes.run, stripes.run, increments + Order::word(runs[i], t) * C + runs[i].first);
    };
    with_constant(stripes.run, [&](auto run) {
      const auto ended = [&](const Stripes::Run& r, isize lane) {
        float* out = log_partition + r.sentence * C + r.first;
        for (isize j = 0; j < run; ++j) out[j] = sums[lane + j] + window.row(0)[lane + j];
      };
      sweep<Order>(runs, size, run, K, C, scores, q, block.data(), step, ended);
    });
  });
}

}  // namespace

extern "C" {

// log_partition (sentences, C), and q (words, K, C) where it is asked for.
EXPORT void semi_markov_forward(int64_t sentences, const int64_t* offsets, int64_t K, int64_t C, const float* scores,
                                float* q, float* log_partition, int64_t threads) {
  log_partitions<FromLeft>(sentences, offsets, K, C, scores, q, nullptr, log_partition, threads);
}

// log_partition (sentences, C) and increments (words, C): what each word adds to it, read from the left or the right.
EXPORT void semi_markov_increments(int64_t sentences, const int64_t* offsets, int64_t K, int64_t C, int64_t from_right,
                                   const float* scores, float* increments, float* log_partition, int64_t threads) {
  const auto run = from_right ? log_partitions<FromRight> : log_partitions<FromLeft>;
  run(sentences, offsets, K, C, scores, nullptr, increments, log_partition, threads);
}

// posterior (words, K, C) = weight of the sentence and class (sentences, C) times the probability of each phrase. Doubles,
// and shares that add up to one at every word, keep what is handed on from drifting in long sentences.
EXPORT void semi_markov_backward(int64_t sentences, const int64_t* offsets, int64_t K, int64_t C, const float* q,
                                 const float* weight, float* posterior, int64_t threads) {
  parallel_rows(0, sentences, threads, [&](isize first, isize last) {
    std::vector<double> ring((K + 1) * C), factor(C);  // gamma of word t is row t % (K + 1)
    with_constant(C, [&](auto C) {
      for (isize s = first; s < last; ++s) {
        const isize begin = offsets[s], words = offsets[s + 1] - begin;
        if (!words) continue;
        std::fill(ring.begin(), ring.end(), 0.);
        for (isize c = 0; c < C; ++c) ring[(words - 1) % (K + 1) * C + c] = weight[s * C + c];
        for (isize t = words - 1, row = t % (K + 1); t >= 0; --t, row = row ? row - 1 : K) {
          const isize widths = std::min<isize>(K, t + 1), flat = (begin + t) * K * C;
          const float* __restrict q_t = q + flat;
          float* __restrict out = posterior + flat;
          double* __restrict gamma = ring.data() + row * C;
          double* __restrict f = factor.data();
          for (isize c = 0; c < C; ++c) f[c] = 0;
          for (isize k = 0; k < widths; ++k)
            for (isize c = 0; c < C; ++c) f[c] += q_t[k * C + c];
          for (isize c = 0; c < C; ++c) f[c] = f[c] == 0 ? 0 : gamma[c] / f[c], gamma[c] = 0;
          for (isize k = 0; k < widths; ++k) {
            const isize to = row - 1 - k;
            double* __restrict before = ring.data() + (to < 0 ? to + K + 1 : to) * C;
            for (isize c = 0; c < C; ++c) {
              const double p = f[c] * q_t[k * C + c];
              out[k * C + c] = p;
              before[c] += p;
            }
          }
          std::fill(out + widths * C, out + K * C, 0.f);
        }
      }
    });
  });
}

// The best segmentation: z (words, C) its ends, value (sentences, C) the sum of its scores. Where `classes` names one class
// for each sentence, z (words) and value (sentences). z must be zero before. `ends` (words), or null, is added for each
// phrase that ends at the word.
EXPORT void semi_markov_best(int64_t sentences, const int64_t* offsets, int64_t K, int64_t C, const float* scores,
                             const int64_t* classes, const float* ends, uint8_t* z, float* value, int64_t threads) {
  const Stripes stripes(sentences, offsets, C, classes);
  const isize columns = classes ? 1 : C;
  std::fill_n(value, sentences * columns, 0.f);  // of empty sentences
  stripes.each(threads, [&](const Stripes::Run* runs, isize size) {
    std::vector<float> block(STEPS * K * LANES);
    std::vector<int32_t> best(runs[0].words * LANES);  // width - 1 of the last phrase, if one ends at the word
    Window window(K);
    window.start();
    const auto step = [&](isize t, float* scores_t) {
      const isize widths = std::min(K, t + 1);
      float end[LANES] = {};
      for (isize i = 0; ends && i < size && t < runs[i].words; ++i)
        std::fill_n(end + i * stripes.run, stripes.run, ends[runs[i].begin + t]);
#pragma GCC unroll 2
      for (int v = 0; v < LANES; v += WIDTH) {
        vec highest = load(window.row(0) + v) + load(scores_t + v);
        ivec width = {};
        for (isize k = 1; k < widths; ++k) {
          const vec x = load(window.row(k) + v) + load(scores_t + k * LANES + v);
          const ivec higher = x > highest;
          highest = pick(higher, x, highest);
          width = pick(higher, ivec{} + static_cast<int32_t>(k), width);
        }
        std::memcpy(best.data() + t * LANES + v, &width, sizeof width);
        const ivec alive = highest != IMPOSSIBLE;
        window.shift(widths, v, pick(alive, highest + load(end + v), vec{}), alive);
      }
    };
    with_constant(stripes.run, [&](auto run) {
      const auto ended = [&](const Stripes::Run& r, isize lane) {
        for (isize j = 0; j < run; ++j) {
          const isize column = classes ? 0 : r.first + j;
          double total = window.row(0)[lane + j];
          z[(r.begin + r.words - 1) * columns + column] = 1;
          for (isize t = r.words - 1; t >= 0 && total != IMPOSSIBLE;) {
            const isize k = best[t * LANES + lane + j];
            z[(r.begin + t) * columns + column] = 1;
            total += scores[((r.begin + t) * K + k) * C + r.first + j];
            if (ends) total += ends[r.begin + t];
            t -= k + 1;
          }
          value[r.sentence * columns + column] = total;
        }
      };
      sweep(runs, size, run, K, C, scores, nullptr, block.data(), step, ended);
    });
  });
}

}  // extern "C"
