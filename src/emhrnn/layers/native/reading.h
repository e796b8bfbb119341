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

constexpr isize PASS_WORDS = 1024;     // of documents that a thread takes at a time, at least
constexpr isize PASS_SCORES = 1 << 16;  // numbers of sentences that go through the steps together, at least

// body(begin, end) for neighbours of offsets begin .. end - 1 that have `least` rows or more together.
template <class Body>
void in_portions(isize begin, isize end, const isize* offsets, isize least, Body body) {
  for (isize from = begin, to; from < end; from = to) {
    for (to = from + 1; to < end && offsets[to] - offsets[from] < least;) ++to;
    body(from, to);
  }
}

}  // namespace

extern "C" {

// scores (words, K, C) and alpha (sentences, C), each where there is room for it, and `free` (sentences), where there is:
// alpha of the cohesion alone. Seen phrases have the sorted keys `keys` with `starts` (see phrase_rows) and a row of `table`;
// the phrase encoder (see encoder_forward) may be missing: H = 0. `cohesion` (words, K), or null: length_prior (K) and, where
// there are odds (2, vocabulary) of pauses after and before words, pause_strength times theirs inside a sentence.
void evidence_pass(isize documents, const isize* document_offsets, const isize* sentence_offsets, const isize* words,
                   isize K, isize C, isize size, const isize* keys, const int32_t* starts, isize bits,
                   const float* presence, const float* table, isize H, const isize* places, const float* projection,
                   const float* bias, const float* output, const float* cohesion, const float* length_prior,
                   const float* pause_strength, const float* odds, isize vocabulary, float* scores, float* alpha,
                   float* free, isize threads) {
  std::vector<isize> word_offsets(documents + 1), cuts{0};
  for (isize d = 0; d <= documents; ++d) word_offsets[d] = sentence_offsets[document_offsets[d]];
  in_portions(0, documents, word_offsets.data(), PASS_WORDS, [&](isize, isize end) { cuts.push_back(end); });
  parallel(isize(cuts.size()) - 1, threads, [&](isize task) {
    const isize first = cuts[task], last = cuts[task + 1], origin = word_offsets[first];
    const isize sentence = document_offsets[first], sentences = document_offsets[last] - sentence;
    const auto from_origin = [=](const isize* offsets, isize count) {
      std::vector<isize> own(offsets, offsets + count + 1);
      for (isize& offset : own) offset -= origin;
      return own;
    };
    const std::vector<isize> by_sentence = from_origin(sentence_offsets + sentence, sentences);
    const std::vector<isize> by_document = from_origin(word_offsets.data() + first, last - first);
    const isize n = by_sentence.back(), *own_words = words + origin;
    std::vector<isize> rows(n * K);
    std::vector<float> weights(n * K), g, own;
    phrase_rows(sentences, by_sentence.data(), own_words, K, size, keys, starts, bits, rows.data(), 1);
    phrase_weights(last - first, by_document.data(), K, rows.data(), presence, weights.data(), 1);
    in_portions(0, sentences, by_sentence.data(), PASS_SCORES / (K * C) + 1, [&](isize begin, isize end) {
      const isize from = by_sentence[begin], count = by_sentence[end] - from;
      std::vector<isize> offsets(by_sentence.begin() + begin, by_sentence.begin() + end + 1);
      for (isize& offset : offsets) offset -= from;
      g.resize(count * K);
      if (cohesion) std::copy_n(cohesion + (origin + from) * K, count * K, g.data());
      for (isize s = 0; !cohesion && s < end - begin; ++s)
        for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
          const isize* word = own_words + from + t;
          const bool pauses = odds && t + 1 < offsets[s + 1];
          const float pause = pauses ? *pause_strength * (odds[word[0]] + odds[vocabulary + word[1]]) : 0.f;
          for (isize k = 0; k < K; ++k) g[t * K + k] = length_prior[k] + pause;
        }
      if (!scores) own.resize(count * K * C);
      float* said = scores ? scores + (origin + from) * K * C : own.data();
      with_constant(C, [&](auto C) {
        for (isize i = 0; i < count * K; ++i)
          for (isize c = 0; c < C; ++c) said[i * C + c] = g[i];
      });
      gather_rows(count * K, C, rows.data() + from * K, weights.data() + from * K, table, said, 1);
      if (H)
        encoder_forward(end - begin, offsets.data(), K, H, C, places + origin + from, projection, bias, output, nullptr,
                        said, 1);
      const isize at = sentence + begin;
      if (alpha) semi_markov_forward(end - begin, offsets.data(), K, C, said, nullptr, alpha + at * C, 1);
      if (free) semi_markov_forward(end - begin, offsets.data(), K, 1, g.data(), nullptr, free + at, 1);
    });
  });
}

// The mean of the rows of a table (rows, D) that each segment names, which has at least one.
void segment_means(isize segments, const isize* offsets, const isize* rows, isize D, const float* table, float* means,
                   isize threads) {
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

}  // extern "C"
