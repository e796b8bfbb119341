// From sentences to word ids, behind a plain C interface (stretches.py is the caller).
//
// A text is cut at its blanks into stretches, and a stretch into parts where that is plain to see: `("Don't!` into
// ( " Do n't ! and `A.B./well-made,` into A.B./well-made and a comma. The words of a part depend on nothing but the
// part, so a hash table holds the ids of each distinct one. Parts that are new go back to Python, which alone knows how
// to tokenise. The cuts need not be complete, but right: the words of a stretch are those of its parts.
//
// Per text, in this order: find (looks up all parts, notes the new ones), new_parts, learn (their ids), write, and where
// it is asked for write_spans: where each word stands. The words of a part are all of its bytes, so sizes tell.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)  // what Python calls; other systems export it all
#else
#define EXPORT
#endif

#if !defined(_MSC_VER) && (!defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
#error "keys are compared as little-endian words"
#endif

#if defined(__GNUC__) && !defined(EMHRNN_PLAIN)
#define PREFETCH(place) __builtin_prefetch(place)
#else
#define PREFETCH(place) static_cast<void>(place)
#endif

namespace {

using Byte = unsigned char;
constexpr int64_t WORD = 8;  // bytes that are hashed and compared at once; a text must be followed by as many

// ----------------------------------------------------------------------------------------------- kinds of characters

enum Kind : Byte {
  OTHER = 0,
  LETTER = 1,
  DIGIT = 2,
  HYPHEN = 4,
  BLANK = 8,  // one byte that str.split() takes for a blank
  LEAD = 16,  // may begin a blank of several bytes
};

struct Kinds {
  Byte of[256];
  constexpr Kinds() : of() {
    for (int c = '0'; c <= '9'; ++c) of[c] = DIGIT;
    for (int c = 'a'; c <= 'z'; ++c) of[c] = of[c - 'a' + 'A'] = LETTER;
    for (int c = 9; c <= 13; ++c) of[c] = BLANK;
    for (int c = 28; c <= 32; ++c) of[c] = BLANK;
    of['-'] = HYPHEN;
    for (int c : {0xC2, 0xE1, 0xE2, 0xE3}) of[c] = LEAD;
  }
};
constexpr Kinds KINDS;

inline bool is(int kinds, Byte c) { return KINDS.of[c] & kinds; }

// How many bytes the blank at p takes; 0 if there is none. Text is UTF-8 and goes on for at least WORD bytes.
int64_t wide_blank(const Byte* p) {
  if (p[0] == 0xC2) return p[1] == 0x85 || p[1] == 0xA0 ? 2 : 0;  // U+0085, U+00A0
  const uint32_t c = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
  const bool blank = c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
                     c == 0x205F || c == 0x3000;
  return blank ? 3 : 0;
}

int64_t blank_at(const Byte* p) { return is(BLANK, *p) ? 1 : is(LEAD, *p) ? wide_blank(p) : 0; }

// ----------------------------------------------------------------------------------------------- eight bytes at once

constexpr uint64_t every(Byte c) { return c * 0x0101010101010101u; }

uint64_t load(const Byte* p) {
  uint64_t word;
  std::memcpy(&word, p, WORD);
  return word;
}

// The top bit of each byte that is from a to z. The top bits of the word must be 0.
uint64_t between(uint64_t word, Byte a, Byte z) {
  return (word + every(0x80 - a)) & ~(word + every(0x7F - z)) & every(0x80);
}

// How many bytes of a word, which is not 0, are 0 before the first that is not.
int64_t leading_zero_bytes(uint64_t word) {
#if defined(__GNUC__) && !defined(EMHRNN_PLAIN)
  return __builtin_ctzll(word) / 8;
#else
  int64_t count = 0;
  for (; !(word & 0xFF); word >>= 8) ++count;
  return count;
#endif
}

// How many characters of UTF-8 begin in these bytes: those that do not continue one (10xxxxxx).
int64_t characters_of(const Byte* p, const Byte* end) {
  int64_t count = end - p;
  for (; p < end; p += WORD) {
    uint64_t word = load(p);
    if (end - p < WORD) word &= (uint64_t{1} << 8 * (end - p)) - 1;
    const uint64_t continued = word & ~(word << 1) & every(0x80);
    count -= (continued >> 7) * every(1) >> 56;  // the sum of the bytes
  }
  return count;
}

// Where the letters and digits end that begin at p.
const Byte* end_of_run(const Byte* p, const Byte* end) {
  for (; p < end; p += WORD) {
    const uint64_t word = load(p), ascii = word & every(0x7F);
    const uint64_t run = (between(ascii | every(0x20), 'a', 'z') | between(ascii, '0', '9')) & ~word;
    if (run != every(0x80)) return std::min(end, p + leading_zero_bytes(run ^ every(0x80)));
  }
  return end;
}

// ----------------------------------------------------------------------------------------------- where a word is plain

bool are_letters(const Byte* first, const Byte* last) {
  return std::all_of(first, last, [](Byte c) { return is(LETTER, c); });
}

// Letters and digits with single hyphens inside: one token, and its word is the same in lower case.
bool is_plain(const Byte* first, const Byte* last) {
  if (first == last || *first == '-' || last[-1] == '-') return false;
  for (const Byte* p = first; p < last; ++p)
    if (!is(LETTER | DIGIT | HYPHEN, *p) || (*p == '-' && p[1] == '-')) return false;
  return true;
}

// Is the last byte a token of its own, and the rest the same tokens without it?
bool ends_with_mark(const Byte* first, const Byte* last) {
  const Byte before = last[-2];
  switch (last[-1]) {
    case ',': case ';': case ':': case '"':
      return true;
    case '!': case '?':
      return before != '!' && before != '?';
    case ')':  // not in :-)
      return before != ':' && before != ';' && before != '-' && before != '(' && before != ')';
    case '\'':
      return before != '\'';
    case '.':  // five letters are no abbreviation
      if (before >= 0x80 || before == '.') return false;
      if (!is(LETTER, before)) return true;
      return last - first > 5 && are_letters(last - 6, last - 1);
    default:
      return false;
  }
}

// Is the first byte a token of its own? Accents would go with it.
bool begins_with_mark(const Byte* first) { return (*first == '(' || *first == '"') && first[1] < 0x80; }

// The bytes of 's behind a plain word, or of n't behind letters; 0 if there is no such end.
int64_t suffix_size(const Byte* first, const Byte* last) {
  if (last - first > 2 && !std::memcmp(last - 2, "'s", 2) && is_plain(first, last - 2)) return 2;
  if (last - first > 3 && !std::memcmp(last - 3, "n't", 3) && are_letters(first, last - 3)) return 3;
  return 0;
}

// ----------------------------------------------------------------------------------------------- the table

struct Slot {
  uint64_t head;         // the first eight bytes of the key, which is all of most
  uint32_t hash, entry;  // entry counts from 1; 0 is a free slot
};

struct Entry {
  uint32_t size, tail;  // of the key: its bytes, and where in `tails` it goes on after its head
  uint32_t n_ids, ids;  // where in `ids` and `sizes` they begin; one id alone stands here itself
};

// A part as it is looked up. A plain one is looked up in lower case: one bit parts its capitals from its small letters.
struct Key {
  const Byte* part;
  int64_t size;
  uint64_t fold, head;
  uint32_t hash;

  Key(const Byte* first, const Byte* last, bool lower)
      : part(first), size(last - first), fold(lower ? every(0x20) : 0), head(word(0)) {
    uint64_t x = (size ^ head) * 0x9E3779B97F4A7C15;
    for (int64_t i = WORD; i < size; i += WORD) x = (x ^ x >> 32 ^ word(i)) * 0x9E3779B97F4A7C15;
    hash = (x ^ x >> 32) * 0xBF58476D1CE4E5B9 >> 32;
  }

  uint64_t word(int64_t i) const {  // bytes i to i + 7, zero behind the end
    const uint64_t word = load(part + i) | fold;
    const int64_t rest = size - i;
    return rest < WORD ? word & ((uint64_t{1} << 8 * rest) - 1) : word;
  }
};

class Table {
 public:
  Table(bool lowercase, int64_t max_bytes) : lowercase_(lowercase), max_bytes_(max_bytes) { clear(); }

  int64_t find(const Byte* text, int64_t n_sentences, const int64_t* sizes) {
    // Entries without ids are left when the caller failed to learn them.
    if (learned_ < entries_.size() || bytes() > max_bytes_) clear();
    fresh_.clear();
    parts_.clear();
    starts_.clear();
    ends_.clear();
    text_ = text;
    for (int64_t s = 0; s < n_sentences; ++s) {
      find_sentence(text, text + sizes[s]);
      ends_.push_back(parts_.size());
      text += sizes[s];
    }
    return entries_.size() - learned_;
  }

  const std::string& fresh() const { return fresh_; }

  int64_t learn(const int32_t* ids, const int64_t* counts, const int32_t* sizes) {
    for (; learned_ < entries_.size(); ++learned_, ++counts) {
      Entry& entry = entries_[learned_];
      entry.n_ids = *counts;
      entry.ids = *counts == 1 ? *ids : ids_.size();
      if (*counts != 1) {
        ids_.insert(ids_.end(), ids, ids + *counts);
        sizes_.insert(sizes_.end(), sizes, sizes + *counts);
        sizes += *counts;
      }
      ids += *counts;
    }
    int64_t words = 0;
    for (uint32_t part : parts_) words += entries_[part].n_ids;
    return words;
  }

  void write(int32_t* words, int64_t* lengths) const {
    size_t part = 0;
    for (size_t end : ends_) {
      const int32_t* start = words;
      for (; part < end; ++part) {
        const Entry& entry = entries_[parts_[part]];
        if (entry.n_ids == 1)
          *words++ = entry.ids;
        else
          words = std::copy_n(&ids_[entry.ids], entry.n_ids, words);
      }
      *lengths++ = words - start;
    }
  }

  void write_spans(int64_t* starts, int64_t* ends) const {
    const Byte* counted = text_;
    int64_t characters = 0;  // before `counted`
    const auto character_at = [&](const Byte* p) {
      characters += characters_of(counted, p);
      counted = p;
      return characters;
    };
    for (size_t part = 0; part < parts_.size(); ++part) {
      const Entry& entry = entries_[parts_[part]];
      const Byte* p = text_ + starts_[part];
      for (uint32_t i = 0; i < entry.n_ids; ++i) {
        *starts++ = character_at(p);
        p += entry.n_ids == 1 ? entry.size : sizes_[entry.ids + i];
        *ends++ = character_at(p);
      }
    }
  }

  int64_t bytes() const {
    return sizeof(Slot) * slots_.size() + sizeof(Entry) * entries_.size() + WORD * tails_.size() + 8 * ids_.size();
  }

 private:
  void clear() {
    slots_.assign(1024, Slot{});
    entries_.clear();
    tails_.clear();
    ids_.clear();
    sizes_.clear();
    learned_ = 0;
  }

  // Cuts the sentence first and looks up its parts then: meanwhile their slots come from memory.
  void find_sentence(const Byte* p, const Byte* end) {
    keys_.clear();
    while (p < end) {
      const Byte* first = p;
      p = end_of_run(p, end);
      const bool plain = p == end || is(BLANK, *p);
      int64_t blank = plain;
      while (p < end && !(blank = blank_at(p))) ++p;
      if (p > first) plain ? cut(first, p, true) : cut_stretch(first, p);
      p += blank;
    }
    for (const Key& key : keys_) {
      parts_.push_back(entry_of(key));
      starts_.push_back(key.part - text_);
    }
  }

  void cut_stretch(const Byte* first, const Byte* last) {
    const Byte* end = last;
    while (last - first > 1 && ends_with_mark(first, last)) --last;
    while (last - first > 1 && begins_with_mark(first)) cut(first, first + 1, false), ++first;
    const Byte* suffix = last - suffix_size(first, last);
    cut(first, suffix, is_plain(first, suffix));
    if (suffix < last) cut(suffix, last, false);
    for (; last < end; ++last) cut(last, last + 1, false);
  }

  void cut(const Byte* first, const Byte* last, bool plain) {
    keys_.emplace_back(first, last, plain && lowercase_);
    PREFETCH(&slots_[keys_.back().hash & (slots_.size() - 1)]);
  }

  uint32_t entry_of(const Key& key) {
    size_t s = key.hash & (slots_.size() - 1);
    for (; slots_[s].entry; s = (s + 1) & (slots_.size() - 1))
      if (slots_[s].head == key.head && slots_[s].hash == key.hash && is_key(entries_[slots_[s].entry - 1], key))
        return slots_[s].entry - 1;
    add(key);
    const uint32_t entry = entries_.size();
    slots_[s] = {key.head, key.hash, entry};
    if (2 * entries_.size() > slots_.size()) grow();
    return entry - 1;
  }

  bool is_key(const Entry& entry, const Key& key) const {
    if (entry.size != key.size) return false;
    const uint64_t* tail = tails_.data() + entry.tail;
    for (int64_t i = WORD; i < key.size; i += WORD)
      if (*tail++ != key.word(i)) return false;
    return true;
  }

  void add(const Key& key) {
    entries_.push_back({static_cast<uint32_t>(key.size), static_cast<uint32_t>(tails_.size()), 0, 0});
    for (int64_t i = 0; i < key.size; i += WORD) {
      const uint64_t word = key.word(i);
      if (i) tails_.push_back(word);
      fresh_.append(reinterpret_cast<const char*>(&word), std::min(key.size - i, WORD));
    }
    fresh_ += ' ';
  }

  void grow() {
    std::vector<Slot> slots(2 * slots_.size());
    for (const Slot& slot : slots_) {
      if (!slot.entry) continue;
      size_t s = slot.hash & (slots.size() - 1);
      while (slots[s].entry) s = (s + 1) & (slots.size() - 1);
      slots[s] = slot;
    }
    slots_.swap(slots);
  }

  const bool lowercase_;
  const int64_t max_bytes_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  std::vector<Entry> entries_;
  std::vector<uint64_t> tails_;  // bytes 8 and on of the longer keys
  std::vector<int32_t> ids_, sizes_;  // of the words of parts with several: their bytes
  size_t learned_ = 0;  // entries before this one have ids

  // Of the present text:
  std::vector<Key> keys_;         // the parts of the present sentence
  const Byte* text_ = nullptr;
  std::vector<uint32_t> parts_;   // the entry of each part
  std::vector<int64_t> starts_;   // where it stands in the text
  std::vector<size_t> ends_;      // of each sentence in parts_
  std::string fresh_;             // the new parts, with a space behind each: no part has one inside
};

}  // namespace

extern "C" {

EXPORT void* open_table(int64_t lowercase, int64_t max_bytes) { return new Table(lowercase, max_bytes); }
EXPORT void close_table(void* table) { delete static_cast<Table*>(table); }

// `text` is the sentences one after the other, `sizes` their bytes. Returns the number of new parts.
EXPORT int64_t find(void* table, const char* text, int64_t n_sentences, const int64_t* sizes) {
  return static_cast<Table*>(table)->find(reinterpret_cast<const Byte*>(text), n_sentences, sizes);
}

// The new parts in the order in which they came, a space behind each. Stays valid until the next `find`.
EXPORT const char* new_parts(void* table, int64_t* size) {
  const std::string& parts = static_cast<Table*>(table)->fresh();
  *size = parts.size();
  return parts.data();
}

// `ids` holds counts[i] ids for each new part i, and `sizes` the bytes of each word of those parts that have several.
// Returns the number of words in the text.
EXPORT int64_t learn(void* table, const int32_t* ids, const int64_t* counts, const int32_t* sizes) {
  return static_cast<Table*>(table)->learn(ids, counts, sizes);
}

// The ids of all words, and the number of words of each sentence.
EXPORT void write(void* table, int32_t* words, int64_t* lengths) { static_cast<Table*>(table)->write(words, lengths); }

// The characters of the text at which each word starts and ends. The text of `find` must still be there.
EXPORT void write_spans(void* table, int64_t* starts, int64_t* ends) {
  static_cast<Table*>(table)->write_spans(starts, ends);
}

EXPORT int64_t table_bytes(void* table) { return static_cast<Table*>(table)->bytes(); }

}  // extern "C"
