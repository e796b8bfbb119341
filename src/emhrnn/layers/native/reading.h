// A trained evidence model: what every candidate phrase says, and the sums over all segmentations, in one pass. A few
// documents go through all steps before the next ones begin, so that rows, weights and scores stay in the nearest caches.
// Candidates are as in phrases.h; models/evidence_reader.py has the same step by step.

#pragma once

#include <algorithm>
#include <vector>

#include "evidence.h"
#include "phrases.h"
#include "semi_markov.h"

namespace {

constexpr isize PASS_WORDS = 4096;       // of documents that a thread takes at a time, at least
constexpr isize PASS_SCORES = 1 << 16;  // numbers of sentences that go through the steps together, at least

// body(begin, end) for neighbours of offsets begin .. end - 1 that have `least` rows or more together.
template <class Body>
void in_portions(isize begin, isize end, const isize* offsets, isize least, Body body) {
  for (isize from = begin, to; from < end; from = to) {
    for (to = from + 1; to < end && offsets[to] - offsets[from] < least;) ++to;
    body(from, to);
  }
}

inline std::vector<isize> from_zero(const isize* offsets, isize count) {
  std::vector<isize> own(offsets, offsets + count + 1);
  for (isize& offset : own) offset -= offsets[0];
  return own;
}

// body(t, log-odds of a pause after word t, unknown words beside that place) for all words of sentences; the odds, where
// there are any, are 0 at the ends of sentences.
template <class Body>
INLINE void for_pauses(isize sentences, const isize* offsets, const isize* words, const float* odds, isize vocabulary,
                       Body body) {
  for (isize s = 0; s < sentences; ++s)
    for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
      const bool inside = odds && t + 1 < offsets[s + 1];
      body(t, inside ? odds[words[t]] + odds[vocabulary + words[t + 1]] : 0.f,
           inside ? isize(words[t] == UNKNOWN_WORD) + isize(words[t + 1] == UNKNOWN_WORD) : 0);
    }
}

}  // namespace

extern "C" {

// Of a batch of documents, as far as there is room for it:
//
//   scores (words, K, C)         potentials of candidates: what they say, and their cohesion
//   alpha (sentences, C)         their sums over all segmentations
//   free (sentences)             the same sums of the cohesion alone
//   told (words, C)              what each word adds to alpha times lambda (sentences), compared with what it adds to
//                                `free` if there is room for that, else with the mean of the classes
//   ends (words)                 for the segmentation to show: reading[0] times the odds of a pause less reading[1] for
//                                each unknown word beside it, less reading[2]
//
// Seen phrases have the sorted keys `keys` with `starts` (see phrase_rows) and a row of `table`. The phrase encoder (see
// encoder_forward) may be missing: H = 0. `cohesion` (words, K), or null: length_prior (K) and, where there are odds
// (2, vocabulary) of pauses after and before words, pause_strength times theirs inside a sentence.
EXPORT void evidence_pass(isize documents, const isize* document_offsets, const isize* sentence_offsets,
                          const isize* words, isize K, isize C, isize size, const isize* keys, const int32_t* starts,
                          isize bits, const float* presence, const float* table, isize H, const isize* places,
                          const float* projection, const float* bias, const float* output, const float* cohesion,
                          const float* length_prior, const float* pause_strength, const float* odds, isize vocabulary,
                          const float* lambda, const float* reading, float* scores, float* alpha, float* free,
                          double* told, float* ends, isize threads) {
  std::vector<isize> word_offsets(documents + 1), cuts{0};
  for (isize d = 0; d <= documents; ++d) word_offsets[d] = sentence_offsets[document_offsets[d]];
  in_portions(0, documents, word_offsets.data(), PASS_WORDS, [&](isize, isize end) { cuts.push_back(end); });
  parallel(isize(cuts.size()) - 1, threads, [&](isize task) {
    const isize first = cuts[task], last = cuts[task + 1], origin = word_offsets[first];
    const isize sentence = document_offsets[first], sentences = document_offsets[last] - sentence;
    const std::vector<isize> by_sentence = from_zero(sentence_offsets + sentence, sentences);
    const std::vector<isize> by_document = from_zero(word_offsets.data() + first, last - first);
    std::vector<isize> rows(by_sentence.back() * K);
    std::vector<float> weights(rows.size()), g, own, of_words;
    phrase_rows(sentences, by_sentence.data(), words + origin, K, size, keys, starts, bits, rows.data(), 1);
    phrase_weights(last - first, by_document.data(), K, rows.data(), presence, weights.data(), 1);
    in_portions(0, sentences, by_sentence.data(), PASS_SCORES / (K * C) + 1, [&](isize begin, isize end) {
      const std::vector<isize> offsets = from_zero(by_sentence.data() + begin, end - begin);
      const isize from = by_sentence[begin], n = offsets.back(), at = origin + from, s = sentence + begin;
      g.resize(n * K);
      for_pauses(end - begin, offsets.data(), words + at, odds, vocabulary, [&](isize t, float pause, isize unknown) {
        if (ends) ends[at + t] = reading[0] * (pause - reading[1] * float(unknown)) - reading[2];
        for (isize k = 0; k < K; ++k)
          g[t * K + k] = cohesion ? cohesion[(at + t) * K + k] : length_prior[k] + *pause_strength * pause;
      });
      if (!scores) own.resize(n * K * C);
      float* said = scores ? scores + at * K * C : own.data();
      with_constant(C, [&](auto C) {
        for (isize i = 0; i < n * K; ++i)
          for (isize c = 0; c < C; ++c) said[i * C + c] = g[i];
      });
      gather_rows(n * K, C, rows.data() + from * K, weights.data() + from * K, table, said, 1);
      if (H)
        encoder_forward(end - begin, offsets.data(), K, H, C, places + at, projection, bias, output, nullptr, said, 1);
      if (!told) {
        if (alpha) semi_markov_forward(end - begin, offsets.data(), K, C, said, nullptr, alpha + s * C, 1);
        if (free) semi_markov_forward(end - begin, offsets.data(), K, 1, g.data(), nullptr, free + s, 1);
        return;
      }
      of_words.resize(2 * n * (C + 1));
      float *left = of_words.data(), *right = left + n * C, *free_left = right + n * C, *free_right = free_left + n;
      std::vector<float> sums((end - begin) * C);
      const auto both = [&](isize C, const float* x, float* left, float* right, float* alpha) {
        semi_markov_increments(end - begin, offsets.data(), K, C, 1, x, right, sums.data(), 1);
        semi_markov_increments(end - begin, offsets.data(), K, C, 0, x, left, alpha, 1);
      };
      both(C, said, left, right, alpha + s * C);
      if (free) both(1, g.data(), free_left, free_right, free + s);
      with_constant(C, [&](auto C) {
        for (isize i = 0; i < end - begin; ++i)
          for (isize t = offsets[i]; t < offsets[i + 1]; ++t) {
            double* out = told + (at + t) * C;
            double level = free ? double(free_left[t]) + free_right[t] : 0.;
            for (isize c = 0; c < C; ++c) out[c] = double(left[t * C + c]) + right[t * C + c];
            for (isize c = 0; !free && c < C; ++c) level += out[c] / double(C);
            for (isize c = 0; c < C; ++c) out[c] = (out[c] - level) * 0.5 * lambda[s + i];
          }
      });
    });
  });
}

// The mean of the rows of a table (rows, D) that each segment names, which has at least one.
EXPORT void segment_means(isize segments, const isize* offsets, const isize* rows, isize D, const float* table,
                          float* means, isize threads) {
  parallel_chunks(segments, FEW, threads, [=](isize begin, isize end) {
    std::vector<float> room(2 * D);
    for (isize s = begin; s < end; ++s) {
      float *sum = room.data(), *next = sum + D;
      std::fill(sum, sum + D, 0.f);
      for (isize i = offsets[s]; i < offsets[s + 1]; ++i) {
        constexpr isize AHEAD = 8;
        if (i + AHEAD < offsets[end]) prefetch(D, table + rows[i + AHEAD] * D);
        const float* row = table + rows[i] * D;
        for_vectors(D, [&](isize j, auto part) { part.out(next + j, part.in(sum + j) + part.in(row + j)); });
        std::swap(sum, next);
      }
      const float count = float(offsets[s + 1] - offsets[s]);
      for_vectors(D, [&](isize j, auto part) { part.out(means + s * D + j, part.in(sum + j) / count); });
    }
  });
}

// Sums of the rows (rows, C) of segments.
EXPORT void segment_sums(isize segments, const isize* offsets, isize C, const double* rows, double* sums) {
  std::fill_n(sums, segments * C, 0.);
  with_constant(C, [=](auto C) {
    for (isize s = 0; s < segments; ++s)
      for (isize i = offsets[s]; i < offsets[s + 1]; ++i)
        for (isize c = 0; c < C; ++c) sums[s * C + c] += rows[i * C + c];
  });
}

}  // extern "C"
