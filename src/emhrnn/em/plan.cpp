// The integer plan of an E-step (see sentence_plan.py and document_plan.py, which say what it is and do the same with
// sorting in NumPy). Here equal things are found by hashing while they are made, in one pass over the blocks.
//
// Rows of (block, flips) go in ascending order of flips, so that every subset of flips comes before its supersets.

#include <cstdint>
#include <utility>
#include <vector>

namespace {

using isize = int64_t;
using Ints = std::vector<isize>;

uint64_t position_key(uint64_t position) {  // SplitMix64, as keys.py
  uint64_t key = (position + 1) * 0x9E3779B97F4A7C15u;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

// Numbers keys in the order in which they are first seen. Open addressing; it grows when half full.
class Numbering {
 public:
  explicit Numbering(isize expected) { resize(expected); }

  std::pair<isize, bool> number(uint64_t key) {  // and whether it is new
    if (2 * count_ > isize(mask_)) resize(2 * count_);
    uint64_t place = mix(key) & mask_;
    for (; ids_[place] >= 0; place = (place + 1) & mask_)
      if (keys_[place] == key) return {ids_[place], false};
    keys_[place] = key;
    ids_[place] = count_;
    return {count_++, true};
  }

 private:
  static uint64_t mix(uint64_t key) { return (key * 0x9E3779B97F4A7C15u) >> 20; }

  void resize(isize expected) {
    uint64_t size = 64;
    while (isize(size) < 4 * expected) size *= 2;
    std::vector<uint64_t> keys(size);
    Ints ids(size, -1);
    keys.swap(keys_);
    ids.swap(ids_);
    mask_ = size - 1;
    for (isize i = 0; i < isize(keys.size()); ++i)
      if (ids[i] >= 0) {
        uint64_t place = mix(keys[i]) & mask_;
        while (ids_[place] >= 0) place = (place + 1) & mask_;
        keys_[place] = keys[i];
        ids_[place] = ids[i];
      }
  }

  std::vector<uint64_t> keys_;
  Ints ids_;
  uint64_t mask_ = 0;
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

void plan_sentences(const Task& task, Sentences& plan) {
  std::vector<uint64_t> word_keys(task.words), keys;
  for (isize t = 0; t < task.words; ++t) word_keys[t] = position_key(t);
  Numbering sentences(task.part_offsets[task.parts]), nodes(4 * task.part_offsets[task.parts]), segments(task.words);
  std::vector<uint8_t> z;

  const auto walk = [&](isize sentence, isize part, isize flips) {  // one variant's path through the trie
    const isize start = task.sentence_offsets[sentence], end = task.sentence_offsets[sentence + 1];
    z.assign(task.z + start, task.z + end);
    for (isize j = 0; flips >> j; ++j)
      if (flips >> j & 1) z[task.slot(task.part_block[part], task.part_first_slot[part] + j) - start] ^= 1;
    uint64_t path = 0;
    isize node = -1, level = 0, begin = start;
    for (isize t = start; t < end; ++t) {
      if (!z[t - start]) continue;
      path ^= word_keys[t];
      const auto [id, is_new] = nodes.number(path);
      if (is_new) {
        const auto [segment, new_segment] = segments.number(uint64_t(begin) << 32 | uint64_t(t));
        if (new_segment) {
          plan.segment_begin.push_back(begin);
          plan.segment_end.push_back(t + 1);
        }
        plan.phrases.add(segment, node, level);
      }
      plan.path_nodes.push_back(id);
      node = id;
      begin = t + 1;
      ++level;
    }
    plan.of.push_back(sentence);
    plan.path_offsets.push_back(plan.path_nodes.size());
  };

  plan.path_offsets.push_back(0);
  for (isize sentence = 0; sentence < task.sentences; ++sentence) walk(sentence, -1, 0);
  for (isize part = 0; part < task.parts; ++part) {
    subset_keys(task, task.part_block[part], task.part_first_slot[part], task.part_width[part], keys);
    plan.variants.push_back(task.part_sentence[part]);
    for (isize flips = 1; flips < isize(keys.size()); ++flips) {
      const auto [id, is_new] = sentences.number(keys[flips]);
      if (is_new) walk(task.part_sentence[part], part, flips);
      plan.variants.push_back(task.sentences + id);
    }
  }
  const Ints rank = plan.phrases.sort();
  for (isize& node : plan.path_nodes) node = rank[node];
}

// The chains of one direction. A variant's own nodes run from its outermost changed sentence (see document_plan.py).
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

// The plan of the sentences, and with with_documents also that of the documents. To be freed with plan_free.
void* plan_make(int64_t words, int64_t sentences, const int64_t* sentence_offsets, const int64_t* document_offsets,
                const uint8_t* z, int64_t blocks, int64_t length, const int64_t* positions, const int64_t* documents,
                int64_t parts, const int64_t* part_block, const int64_t* part_sentence, const int64_t* part_first_slot,
                const int64_t* part_width, const int64_t* part_offsets, int64_t with_documents) {
  const Task task{words,     sentences, sentence_offsets, document_offsets, z,          blocks,
                  length,    positions, documents,        parts,            part_block, part_sentence,
                  part_first_slot, part_width, part_offsets};
  Plan* plan = new Plan;
  plan_sentences(task, plan->sentences);
  if (with_documents) plan_documents(task, plan->sentences, plan->documents);
  return plan;
}

void plan_free(void* plan) { delete static_cast<Plan*>(plan); }

// The array of that number, in the order in which native_plan.py lists them, and its size.
const int64_t* plan_array(const void* made, int64_t number, int64_t* size) {
  const Plan& plan = *static_cast<const Plan*>(made);
  const Sentences& s = plan.sentences;
  const Documents& d = plan.documents;
  const Ints* arrays[] = {
      &s.of, &s.variants, &s.segment_begin, &s.segment_end, &s.path_offsets, &s.path_nodes,
      &s.phrases.inputs, &s.phrases.parents, &s.phrases.level_sizes,
      &d.of, &d.offsets, &d.forward_nodes, &d.backward_nodes, &d.configurations,
      &d.forward.forest.inputs, &d.forward.forest.parents, &d.forward.forest.level_sizes,
      &d.backward.forest.inputs, &d.backward.forest.parents, &d.backward.forest.level_sizes};
  *size = arrays[number]->size();
  return arrays[number]->data();
}

}  // extern "C"
