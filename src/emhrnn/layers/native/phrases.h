// Candidate phrases of ragged sentences: their keys, their rows in a table of seen phrases, and what the rows say.
//
// The candidate (t, k) is the phrase of k + 1 words that ends at word t; arrays of candidates are (words, K) or
// (words, K, classes). A candidate that would begin before its sentence, or that holds an unknown word, has no key.

#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "activations.h"
#include "threads.h"

namespace {

constexpr isize NONE = -1;        // no key, no row
constexpr isize UNKNOWN_WORD = 0;
constexpr isize SENTENCES = 256;  // that a thread takes at a time
constexpr isize DOCUMENTS = 16;
constexpr isize AT_ONCE = 64;     // words whose keys are looked for together

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
  // For at most so many values.
  void clear(isize most) {
    isize size = 16;
    while (size < 2 * most) size *= 2;
    mask = size - 1;
    slots.assign(size, NO_NUMBER);
    values.clear();
  }
  // The number of the value; the next free one if it is new.
  isize operator()(isize value) {
    isize place = isize((uint64_t(value) * 0x9E3779B97F4A7C15ull) >> 20) & mask;
    while (slots[place] != NO_NUMBER && values[slots[place]] != value) place = (place + 1) & mask;
    if (slots[place] == NO_NUMBER) {
      slots[place] = int32_t(values.size());
      values.push_back(value);
    }
    return slots[place];
  }
  std::vector<isize> values;  // by number

 private:
  static constexpr int32_t NO_NUMBER = -1;
  std::vector<int32_t> slots;  // of a quarter of the size that slots with values would have
  isize mask = 0;
};

// How often the value of each candidate (words, K) is in its document; those of NONE are 0 times there. A phrase is there
// at most as often as the shorter one that ends with it: of one that is there once, longer ones need no counting.
class Repeats {
 public:
  // `first`, where there is room: whether no earlier value is the same.
  void count(const isize* values, isize words, isize K, bool* first) {
    times.resize(words * K);
    for (isize i = 0; i < words * K; ++i) times[i] = values[i] != NONE;
    if (first) std::copy(times.begin(), times.end(), first);
    ends.resize(words);
    std::iota(ends.begin(), ends.end(), isize{0});
    for (isize k = 0; k < K && !ends.empty(); ++k) {
      isize open = 0;
      for (isize t : ends)
        if (times[t * K + k]) ends[open++] = t;
      ends.resize(open);
      numbers.clear(open);
      counts.assign(open, 0);
      places.resize(open);
      for (isize j = 0; j < open; ++j) {
        places[j] = int32_t(numbers(values[ends[j] * K + k]));
        if (first) first[ends[j] * K + k] = counts[places[j]] == 0;
        ++counts[places[j]];
      }
      isize repeated = 0;
      for (isize j = 0; j < open; ++j) {
        const isize t = ends[j], n = counts[places[j]];
        times[t * K + k] = int32_t(n);
        ends[repeated] = t;
        repeated += n > 1;
      }
      ends.resize(repeated);
    }
  }
  int32_t operator[](isize i) const { return times[i]; }

 private:
  Numbers numbers;
  std::vector<isize> ends;  // words at which a phrase of k words ends that is there more than once
  std::vector<int32_t> times, counts, places;
};

// The numbers 0 .. n - 1 in the order of their values, which are not negative: by 11 bits at a time, the lowest first.
inline std::vector<isize> sorted(const isize* values, isize n) {
  constexpr int BITS = 11;
  std::vector<isize> order(n), other(n);
  isize highest = 0;
  for (isize i = 0; i < n; ++i) order[i] = i, highest = std::max(highest, values[i]);
  for (int shift = 0; shift < 63 && highest >> shift; shift += BITS) {
    const auto digit = [=](isize i) { return values[i] >> shift & ((1 << BITS) - 1); };
    std::vector<isize> places((1 << BITS) + 1, 0);
    for (isize i = 0; i < n; ++i) ++places[digit(i) + 1];
    for (isize d = 0; d < 1 << BITS; ++d) places[d + 1] += places[d];
    for (isize i : order) other[places[digit(i)]++] = i;
    order.swap(other);
  }
  return order;
}

// The power of two below a count, at most buckets - 1; 0 for less than 2.
inline isize bucket_of(float count, isize buckets) {
  int32_t bits;
  std::memcpy(&bits, &count, sizeof bits);
  return std::clamp<isize>((bits >> 23) - 127, 0, buckets - 1);  // a negative count has a negative exponent here
}

}  // namespace

extern "C" {

EXPORT void phrase_keys(isize sentences, const isize* offsets, const isize* words, isize K, isize* keys,
                        isize threads) {
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

// Where each candidate's key is among `table_keys`, of which there are `size` and which are sorted; the first one whose
// first bits are b, or more, is at starts[b]. Of an n-gram that is not there, no longer one that ends with it is looked
// for. Keys are far apart in memory: for many words at once, first their starts are asked for, then their keys.
EXPORT void phrase_rows(isize sentences, const isize* offsets, const isize* words, isize K, isize size,
                        const isize* table_keys, const int32_t* starts, isize bits, isize* rows, isize threads) {
  std::fill(rows, rows + offsets[sentences] * K, NONE);
  if (!size) return;
  parallel_chunks(sentences, SENTENCES, threads, [=](isize begin, isize end) {
    std::vector<isize> ends, keys;  // words at which a seen phrase of k words ends that may be longer; the longer one's
    std::vector<isize> room;  // words before that one in its sentence
    std::vector<uint64_t> states;
    for (isize s = begin, next; s < end; s = next) {
      for (next = s + 1; next < end && offsets[next] - offsets[s] < AT_ONCE;) ++next;
      const isize first = offsets[s], n = offsets[next] - first;
      if (isize(ends.size()) < n) ends.resize(n), keys.resize(n), states.resize(n), room.resize(n);
      for (isize i = s, j = 0; i < next; ++i)
        for (isize t = offsets[i]; t < offsets[i + 1]; ++t, ++j) ends[j] = t, room[j] = t - offsets[i], states[j] = 0;
      for (isize k = 0, left = n; k < K && left; ++k) {
        isize longer = 0;
        for (isize j = 0; j < left; ++j) {  // without branches that no CPU could foresee
          const isize t = ends[j], word = words[t - std::min(k, room[j])];
          states[longer] = extended(states[j], word);
          ends[longer] = t;
          room[longer] = room[j];
          keys[longer] = key_of(states[longer], k);
          PREFETCH(starts + (keys[longer] >> (63 - bits)));
          longer += k <= room[j] && word != UNKNOWN_WORD;
        }
        left = longer;
        const auto start = [&](isize j) { return starts[keys[j] >> (63 - bits)]; };
        for (isize j = 0; j < left; ++j) PREFETCH(table_keys + start(j));
        isize found = 0;
        for (isize j = 0; j < left; ++j) {
          const isize t = ends[j], key = keys[j];
          isize row = start(j);
          for (int tries = 0; tries < 2; ++tries) row = std::min(row, size - 1), row += table_keys[row] < key;
          while (row < size && table_keys[row] < key) ++row;
          row = std::min(row, size - 1);
          const bool here = table_keys[row] == key;
          rows[t * K + k] = here ? row : NONE;
          ends[found] = t;
          room[found] = room[j];
          states[found] = states[j];
          found += here;
        }
        left = found;
      }
    }
  });
}

// How often each candidate's value (key or row) is in its document, 0 where it has none; and, where there is room,
// whether it is the first of its document.
EXPORT void phrase_repeats(isize documents, const isize* word_offsets, isize K, const isize* values, int32_t* repeats,
                           bool* first, isize threads) {
  parallel_chunks(documents, DOCUMENTS, threads, [=](isize begin, isize end) {
    Repeats counted;
    for (isize d = begin; d < end; ++d) {
      const isize low = word_offsets[d] * K, high = word_offsets[d + 1] * K;
      counted.count(values + low, (high - low) / K, K, first ? first + low : nullptr);
      for (isize i = low; i < high; ++i) repeats[i] = counted[i - low];
    }
  });
}

// repeats^-presence of every candidate that has a value, else 0.
EXPORT void phrase_weights(isize documents, const isize* word_offsets, isize K, const isize* values,
                           const float* presence, float* weights, isize threads) {
  constexpr isize USUAL = 64;
  float powers[USUAL] = {};
  for (isize n = 1; n < USUAL; ++n) powers[n] = std::pow(float(n), -*presence);
  parallel_chunks(documents, DOCUMENTS, threads, [=](isize begin, isize end) {
    Repeats counted;
    for (isize d = begin; d < end; ++d) {
      const isize low = word_offsets[d] * K, high = word_offsets[d + 1] * K;
      counted.count(values + low, (high - low) / K, K, nullptr);
      for (isize i = low; i < high; ++i) {
        const isize n = counted[i - low];
        weights[i] = n < USUAL ? powers[n] : std::pow(float(n), -*presence);
      }
    }
  });
}

// The distinct rows among n, sorted, and for each the sum of weight * values; rows of NONE are left out. `count` is how
// many there are.
EXPORT void sum_rows(isize n, isize C, const isize* rows, const float* weights, const float* values, isize* distinct,
                     float* sums, isize* count) {
  Numbers numbers;
  numbers.clear(n);
  std::vector<int32_t> number(n);
  for (isize i = 0; i < n; ++i)
    if (rows[i] != NONE) number[i] = int32_t(numbers(rows[i]));
  const std::vector<isize>& found = numbers.values;
  *count = found.size();
  const std::vector<isize> order = sorted(found.data(), *count);
  std::vector<isize> place(*count);
  for (isize j = 0; j < *count; ++j) place[order[j]] = j, distinct[j] = found[order[j]];
  std::fill(sums, sums + *count * C, 0.f);
  with_constant(C, [&](auto C) {
    for (isize i = 0; i < n; ++i) {
      if (rows[i] == NONE) continue;
      float* sum = sums + place[number[i]] * C;
      const float* value = values + i * C;
      for (isize c = 0; c < C; ++c) sum[c] += weights[i] * value[c];
    }
  });
}

// The distinct words in the order in which they come, and the place of each word among them.
EXPORT void distinct_words(isize n, const isize* words, isize* distinct, isize* places, isize* count) {
  Numbers numbers;
  numbers.clear(n);
  for (isize i = 0; i < n; ++i) places[i] = numbers(words[i]);
  *count = numbers.values.size();
  std::copy(numbers.values.begin(), numbers.values.end(), distinct);
}

}  // extern "C"
