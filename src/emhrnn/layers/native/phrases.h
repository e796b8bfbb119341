// Candidate phrases of ragged sentences: their keys, their rows in a table of seen phrases, and what the rows say.
//
// The candidate (t, k) is the phrase of k + 1 words that ends at word t; arrays of candidates are (words, K) or
// (words, K, classes). A candidate that would begin before its sentence, or that holds an unknown word, has no key.

#pragma once

#include <algorithm>
#include <vector>

#include "activations.h"
#include "threads.h"

namespace {

constexpr isize NONE = -1;        // no key, no row
constexpr isize UNKNOWN_WORD = 0;
constexpr isize SENTENCES = 256;  // that a thread takes at a time
constexpr isize DOCUMENTS = 16;

// The key of a phrase from that of the phrase without its first word; layers/phrases.py has the same in NumPy.
inline uint64_t extended(uint64_t state, isize word) {
  uint64_t h = (state ^ uint64_t(word)) * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
  return h ^ (h >> 32);
}
// Not negative, so that signed order is key order; the last bits are the number of words, less one.
inline isize key_of(uint64_t state, isize k) { return isize(state >> 1 & ~uint64_t(7)) | k; }

// found(t, k, state) for the candidates of sentences begin .. end - 1 that have a key, as long as it returns true;
// missing(t, k) for the other candidates.
template <class Found, class Missing>
void for_candidates(isize begin, isize end, const isize* offsets, const isize* words, isize K, Found found,
                    Missing missing) {
  for (isize s = begin; s < end; ++s) {
    for (isize t = offsets[s]; t < offsets[s + 1]; ++t) {
      uint64_t state = 0;
      isize k = 0;
      for (; k < K && t - k >= offsets[s] && words[t - k] != UNKNOWN_WORD; ++k) {
        state = extended(state, words[t - k]);
        if (!found(t, k, state)) break;
      }
      for (; k < K; ++k) missing(t, k);
    }
  }
}

template <class Body>
void parallel_chunks(isize count, isize chunk, isize threads, Body body) {
  parallel((count + chunk - 1) / chunk, threads,
           [&](isize task) { body(task * chunk, std::min(count, (task + 1) * chunk)); });
}

// Distinct values of one document, or of a batch, and a number for each: an open-addressing table.
class Numbers {
 public:
  void clear(isize most) {
    isize size = 16;
    while (size < 2 * most) size *= 2;
    mask = size - 1;
    slots.assign(size, {NONE, 0});
    count = 0;
  }
  // The number of the value; the next free one if it is new.
  isize operator()(isize value) {
    isize place = isize((uint64_t(value) * 0x9E3779B97F4A7C15ull) >> 20) & mask;
    while (slots[place].value != NONE && slots[place].value != value) place = (place + 1) & mask;
    if (slots[place].value == NONE) slots[place] = {value, count++};
    return slots[place].number;
  }
  isize count = 0;

 private:
  struct Slot {
    isize value, number;
  };
  std::vector<Slot> slots;
  isize mask = 0;
};

inline isize bucket_of(float count, isize buckets) {
  isize bucket = 0;
  for (float bound = 2; bucket + 1 < buckets && count >= bound; bound *= 2) ++bucket;
  return bucket;
}

}  // namespace

extern "C" {

void phrase_keys(isize sentences, const isize* offsets, const isize* words, isize K, isize* keys, isize threads) {
  parallel_chunks(sentences, SENTENCES, threads, [=](isize begin, isize end) {
    for_candidates(
        begin, end, offsets, words, K,
        [=](isize t, isize k, uint64_t state) {
          keys[t * K + k] = key_of(state, k);
          return true;
        },
        [=](isize t, isize k) { keys[t * K + k] = NONE; });
  });
}

// Where each candidate's key is among `table_keys`, which are sorted; keys whose first bits are b are at
// starts[b] .. starts[b + 1] - 1. Of an n-gram that is not there, no longer one that ends with it is looked for.
void phrase_rows(isize sentences, const isize* offsets, const isize* words, isize K, const isize* table_keys,
                 const isize* starts, isize bits, isize* rows, isize threads) {
  parallel_chunks(sentences, SENTENCES, threads, [=](isize begin, isize end) {
    for_candidates(
        begin, end, offsets, words, K,
        [=](isize t, isize k, uint64_t state) {
          const isize key = key_of(state, k), bucket = key >> (63 - bits);
          for (isize row = starts[bucket]; row < starts[bucket + 1]; ++row) {
            if (table_keys[row] == key) {
              rows[t * K + k] = row;
              return true;
            }
          }
          return false;
        },
        [=](isize t, isize k) { rows[t * K + k] = NONE; });
  });
}

// How often each candidate's value (key or row) is in its document, 0 where it has none; and, where there is room,
// whether it is the first of its document.
void phrase_repeats(isize documents, const isize* word_offsets, isize K, const isize* values, int32_t* repeats,
                    bool* first, isize threads) {
  parallel_chunks(documents, DOCUMENTS, threads, [=](isize begin, isize end) {
    Numbers numbers;
    std::vector<int32_t> counts;
    for (isize d = begin; d < end; ++d) {
      const isize low = word_offsets[d] * K, high = word_offsets[d + 1] * K;
      numbers.clear(high - low);
      counts.assign(high - low, 0);
      for (isize i = low; i < high; ++i) {
        if (values[i] == NONE) {
          repeats[i] = 0;
          if (first) first[i] = false;
          continue;
        }
        const isize number = numbers(values[i]);
        if (first) first[i] = counts[number] == 0;
        ++counts[number];
        repeats[i] = int32_t(number);  // for now
      }
      for (isize i = low; i < high; ++i)
        if (values[i] != NONE) repeats[i] = counts[repeats[i]];
    }
  });
}

// The distinct rows among n, in the order in which they come, and for each the sum of weight * values; rows of NONE are
// left out. `count` is how many there are.
void sum_rows(isize n, isize C, const isize* rows, const float* weights, const float* values, isize* distinct,
              float* sums, isize* count) {
  Numbers numbers;
  numbers.clear(n);
  for (isize i = 0; i < n; ++i) {
    if (rows[i] == NONE) continue;
    const isize before = numbers.count, number = numbers(rows[i]);
    float* sum = sums + number * C;
    if (numbers.count > before) {
      distinct[number] = rows[i];
      std::fill(sum, sum + C, 0.f);
    }
    const float* value = values + i * C;
    for (isize c = 0; c < C; ++c) sum[c] += weights[i] * value[c];
  }
  *count = numbers.count;
}

}  // extern "C"
