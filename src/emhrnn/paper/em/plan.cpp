// The integer plan of an E-step (plan.py says what it is). Equal things are found by hashing while they are made, in one
// pass over the blocks.
//
// Keys are 64-bit names for sets of positions: every word position of a batch has a fixed random-looking key, and a set
// of positions is named by the exclusive or of its keys (Zobrist hashing). Two different sets get the same name with
// probability 2^-64. A plan compares at most some 10^5 names, so a wrong merge is to be expected once in 10^9 plans, and
// would change one configuration of one document.
//
// Rows of (block, flips) go in ascending order of flips, so that every subset of flips comes before its supersets.

#include <cstdint>
#include <utility>
#include <vector>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)  // what Python calls; other systems export it all
#else
#define EXPORT
#endif

namespace {

using isize = int64_t;
using Ints = std::vector<isize>;

uint64_t position_key(uint64_t position) {  // SplitMix64
  uint64_t key = (position + 1) * 0x9E3779B97F4A7C15u;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

// Numbers keys in the order in which they are first seen. Open addressing; it grows when half full.
class Numbering {
 public:
  explicit Numbering(isize expected) { grow(expected); }

  std::pair<isize, bool> number(uint64_t key) {  // and whether it is new
    if (2 * count_ > isize(entries_.size())) grow(count_);
    Entry& entry = find(key);
    const bool is_new = entry.id < 0;
    if (is_new) entry = {key, count_++};
    return {entry.id, is_new};
  }

 private:
  struct Entry {
    uint64_t key;
    isize id = -1;
  };

  Entry& find(uint64_t key) {  // its entry, or the empty one where it belongs
    const uint64_t mask = entries_.size() - 1;
    uint64_t place = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
    while (entries_[place].id >= 0 && entries_[place].key != key) place = (place + 1) & mask;
    return entries_[place];
  }
  void grow(isize expected) {
    uint64_t size = 64;
    while (isize(size) < 3 * expected) size *= 2;
    std::vector<Entry> old(size);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.id >= 0) find(entry.key) = entry;
  }

  std::vector<Entry> entries_;
  isize count_ = 0;
};

struct Forest {
  Ints inputs, parents, levels, level_sizes;

  isize add(isize input, isize parent, isize level) {
    inputs.push_back(input);
    parents.push_back(parent);
    levels.push_back(level);
    if (level == isize(level_sizes.size())) level_sizes.push_back(0);
    ++level_sizes[level];
    return inputs.size() - 1;
  }

  // Brings nodes into order by level and, within a level, by parent: siblings become neighbours. Returns new numbers.
  Ints sort() {
    const isize n = inputs.size();
    Ints level_start(level_sizes.size() + 1), by_level(n), rank(n), children(n + 1);
    for (isize i = 0; i < isize(level_sizes.size()); ++i) level_start[i + 1] = level_start[i] + level_sizes[i];
    Ints next = level_start;
    for (isize i = 0; i < n; ++i) by_level[next[levels[i]]++] = i;
    for (isize r = 0; r < (n ? level_sizes[0] : 0); ++r) rank[by_level[r]] = r;
    for (isize level = 1; level < isize(level_sizes.size()); ++level) {
      const isize before = level_start[level - 1], begin = level_start[level], end = level_start[level + 1];
      for (isize i = begin; i < end; ++i) ++children[rank[parents[by_level[i]]]];
      isize place = begin;
      for (isize p = before; p < begin; ++p) {
        const isize count = children[p];
        children[p] = place;
        place += count;
      }
      for (isize i = begin; i < end; ++i) rank[by_level[i]] = children[rank[parents[by_level[i]]]]++;
    }
    Ints sorted_inputs(n), sorted_parents(n);
    for (isize i = 0; i < n; ++i) {
      sorted_inputs[rank[i]] = inputs[i];
      sorted_parents[rank[i]] = parents[i] < 0 ? -1 : rank[parents[i]];
    }
    inputs.swap(sorted_inputs);
    parents.swap(sorted_parents);
    return rank;
  }
};

// What the caller gives; arrays as in Batch, Blocks and Parts.
struct Task {
  isize words, sentences;
  const isize *sentence_offsets, *document_offsets;
  const uint8_t* z;
  isize blocks, length;
  const isize *positions, *documents;
  isize parts;
  const isize *part_block, *part_sentence, *part_first_slot, *part_width, *part_offsets;

  isize slot(isize block, isize j) const { return positions[block * length + j]; }
  isize free(isize block) const {
    isize n = 0;
    while (n < length && slot(block, n) >= 0) ++n;
    return n;
  }
};

// keys[flips] of `width` slots from `first` on: with one slot more = without it, xor its key.
void subset_keys(const Task& task, isize block, isize first, isize width, std::vector<uint64_t>& keys) {
  keys.resize(isize(1) << width);
  keys[0] = 0;
  for (isize j = 0; j < width; ++j) {
    const uint64_t key = position_key(task.slot(block, first + j));
    for (isize flips = 0; flips < isize(1) << j; ++flips) keys[(isize(1) << j) + flips] = keys[flips] ^ key;
  }
}

struct Sentences {
  Ints of, variants, segment_begin, segment_end, path_offsets, path_nodes;
  Forest phrases;
};

// Lays the paths of sentence variants through the trie.
class Walker {
 public:
  Walker(const Task& task, Sentences& plan)
      : task_(task), plan_(plan), word_keys_(task.words), nodes_(2 * task.part_offsets[task.parts]),
        segments_(task.words) {
    for (isize t = 0; t < task.words; ++t) word_keys_[t] = position_key(t);
    plan.path_offsets.push_back(0);
    for (isize sentence = 0; sentence < task.sentences; ++sentence) {  // the sentences as z has them
      start(sentence);
      for (isize t = task.sentence_offsets[sentence]; t < task.sentence_offsets[sentence + 1]; ++t)
        if (task.z[t]) end_phrase(t), last_words_.push_back(t);
      finish(sentence);
    }
  }

  void variant(isize part, isize flips) {
    const isize sentence = task_.part_sentence[part], block = task_.part_block[part];
    isize slot = task_.part_first_slot[part];
    for (; !(flips & 1); flips >>= 1) ++slot;
    isize i = plan_.path_offsets[sentence];  // along the path of z
    const isize end = plan_.path_offsets[sentence + 1], first_flip = task_.slot(block, slot);
    start(sentence);
    for (; last_words_[i] < first_flip; ++i) follow(i);
    isize t = first_flip;
    for (; flips; ++t) {
      bool ends = task_.z[t];
      if (t == task_.slot(block, slot)) ends ^= flips & 1, flips >>= 1, ++slot;
      if (ends) end_phrase(t);
    }
    while (i < end && last_words_[i] < t) ++i;
    for (; i < end; ++i) end_phrase(last_words_[i]);
    finish(sentence);
  }

 private:
  void start(isize sentence) {
    path_ = 0;
    node_ = -1;
    level_ = 0;
    begin_ = task_.sentence_offsets[sentence];
  }
  void finish(isize sentence) {
    plan_.of.push_back(sentence);
    plan_.path_offsets.push_back(plan_.path_nodes.size());
  }
  void end_phrase(isize t) {
    const auto [id, is_new] = nodes_.number(path_ ^ word_keys_[t]);
    if (is_new) {
      const auto [segment, new_segment] = segments_.number(uint64_t(begin_) << 32 | uint64_t(t));
      if (new_segment) plan_.segment_begin.push_back(begin_), plan_.segment_end.push_back(t + 1);
      plan_.phrases.add(segment, node_, level_);
    }
    move(id, t);
  }
  void follow(isize i) { move(plan_.path_nodes[i], last_words_[i]); }
  void move(isize node, isize t) {
    path_ ^= word_keys_[t];
    node_ = node;
    begin_ = t + 1;
    ++level_;
    plan_.path_nodes.push_back(node);
  }

  const Task& task_;
  Sentences& plan_;
  std::vector<uint64_t> word_keys_;
  Numbering nodes_, segments_;
  Ints last_words_;  // of the phrases that z makes
  uint64_t path_ = 0;
  isize node_ = -1, level_ = 0, begin_ = 0;
};

void plan_sentences(const Task& task, Sentences& plan) {
  Numbering sentences(task.part_offsets[task.parts]);
  std::vector<uint64_t> keys;
  Walker walker(task, plan);
  for (isize part = 0; part < task.parts; ++part) {
    subset_keys(task, task.part_block[part], task.part_first_slot[part], task.part_width[part], keys);
    plan.variants.push_back(task.part_sentence[part]);
    for (isize flips = 1; flips < isize(keys.size()); ++flips) {
      const auto [id, is_new] = sentences.number(keys[flips]);
      if (is_new) walker.variant(part, flips);
      plan.variants.push_back(task.sentences + id);
    }
  }
  const Ints rank = plan.phrases.sort();
  for (isize& node : plan.path_nodes) node = rank[node];
}

// The chains of one direction. A variant's own nodes run from its outermost changed sentence (see plan.py).
struct Chains {
  Forest forest;
  Ints start, first_node, parent;  // of each document variant

  template <class SentenceAt>
  void add(isize length, isize depth, isize sentence_variant, isize parent_variant, SentenceAt sentence_at) {
    isize node = depth ? at(parent_variant, depth - 1) : -1;
    start.push_back(depth);
    first_node.push_back(forest.inputs.size());
    parent.push_back(parent_variant);
    for (isize d = depth; d < length; ++d) node = forest.add(d == depth ? sentence_variant : sentence_at(d), node, d);
  }
  isize at(isize variant, isize depth) const {
    while (start[variant] > depth) variant = parent[variant];
    return first_node[variant] + depth - start[variant];
  }
};

struct Documents {
  Ints of, offsets, forward_nodes, backward_nodes, configurations;
  Chains forward, backward;
};

void plan_documents(const Task& task, const Sentences& sentences, Documents& plan) {
  const isize configurations = isize(1) << task.length;
  plan.configurations.assign(task.blocks * configurations, -1);
  plan.offsets.push_back(0);
  Numbering documents(task.blocks * 8);
  std::vector<uint64_t> keys;
  Ints row_variant;
  isize part_begin = 0;
  for (isize block = 0; block < task.blocks; ++block) {
    isize part_end = part_begin;
    while (part_end < task.parts && task.part_block[part_end] == block) ++part_end;
    const isize document = task.documents[block], free = task.free(block);
    const isize first = task.document_offsets[document], last = task.document_offsets[document + 1] - 1;
    const uint64_t document_key = position_key(task.words + document);
    isize current = 0;
    for (isize j = 0; j < free; ++j) current |= isize(task.z[task.slot(block, j)]) << j;

    subset_keys(task, block, 0, free, keys);
    row_variant.resize(keys.size());
    for (isize flips = 0; flips < isize(keys.size()); ++flips) {
      const auto [variant, is_new] = documents.number(keys[flips] ^ document_key);
      row_variant[flips] = variant;
      plan.configurations[block * configurations + (flips ^ current)] = variant;
      if (!is_new) continue;

      // An unchanged document "changes" where each chain begins, and is its own parent.
      isize in_first = last, in_last = first, first_variant = last, last_variant = first, first_flips = 0, last_flips = 0;
      for (isize part = part_begin; part < part_end; ++part) {
        const isize slot = task.part_first_slot[part];
        const isize part_flips = flips >> slot & ((isize(1) << task.part_width[part]) - 1);
        if (!part_flips) continue;
        in_last = task.part_sentence[part];
        last_variant = sentences.variants[task.part_offsets[part] + part_flips];
        last_flips = part_flips << slot;
        if (!first_flips) in_first = in_last, first_variant = last_variant, first_flips = last_flips;
      }
      const isize length = last - first + 1;
      plan.of.push_back(document);
      plan.offsets.push_back(plan.offsets.back() + length);
      plan.forward.add(length, in_last - first, last_variant, row_variant[flips ^ last_flips],
                       [=](isize depth) { return first + depth; });
      plan.backward.add(length, last - in_first, first_variant, row_variant[flips ^ first_flips],
                        [=](isize depth) { return last - depth; });
    }
    part_begin = part_end;
  }
  const Ints forward_rank = plan.forward.forest.sort(), backward_rank = plan.backward.forest.sort();
  plan.forward_nodes.resize(plan.offsets.back());
  plan.backward_nodes.resize(plan.offsets.back());
  for (isize variant = 0; variant < isize(plan.of.size()); ++variant) {
    const isize begin = plan.offsets[variant], length = plan.offsets[variant + 1] - begin;
    for (isize i = 0; i < length; ++i) {
      plan.forward_nodes[begin + i] = forward_rank[plan.forward.at(variant, i)];
      plan.backward_nodes[begin + i] = backward_rank[plan.backward.at(variant, length - 1 - i)];
    }
  }
}

struct Plan {
  Sentences sentences;
  Documents documents;
};

}  // namespace

extern "C" {

// To be freed with plan_free.
EXPORT void* plan_make(int64_t words, int64_t sentences, const int64_t* sentence_offsets,
                       const int64_t* document_offsets, const uint8_t* z, int64_t blocks, int64_t length,
                       const int64_t* positions, const int64_t* documents, int64_t parts, const int64_t* part_block,
                       const int64_t* part_sentence, const int64_t* part_first_slot, const int64_t* part_width,
                       const int64_t* part_offsets) {
  const Task task{words,     sentences, sentence_offsets, document_offsets, z,          blocks,
                  length,    positions, documents,        parts,            part_block, part_sentence,
                  part_first_slot, part_width, part_offsets};
  Plan* plan = new Plan;
  plan_sentences(task, plan->sentences);
  plan_documents(task, plan->sentences, plan->documents);
  return plan;
}

EXPORT void plan_free(void* plan) { delete static_cast<Plan*>(plan); }

// The array of that number, in the order in which plan.py lists them, and its size.
EXPORT const int64_t* plan_array(const void* made, int64_t number, int64_t* size) {
  const Plan& plan = *static_cast<const Plan*>(made);
  const Sentences& s = plan.sentences;
  const Documents& d = plan.documents;
  const Ints* arrays[] = {
      &s.segment_begin, &s.segment_end, &s.path_offsets, &s.path_nodes,
      &s.phrases.inputs, &s.phrases.parents, &s.phrases.level_sizes,
      &d.of, &d.offsets, &d.forward_nodes, &d.backward_nodes, &d.configurations,
      &d.forward.forest.inputs, &d.forward.forest.parents, &d.forward.forest.level_sizes,
      &d.backward.forest.inputs, &d.backward.forest.parents, &d.backward.forest.level_sizes};
  *size = arrays[number]->size();
  return arrays[number]->data();
}

}  // extern "C"
