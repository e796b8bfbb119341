/* Predicts and explains a text with an exported evidence model. No server, no request, no library.

     emhrnn.load(BASE64)                  called by model.js; checks every size and throws an Error that says what is wrong
     emhrnn.read("The soup was good.")    label, probabilities, and what each sentence, phrase and word adds; null
                                          for a text without words. Sentences may be given: emhrnn.read(["One.", "Two."])

   The steps and letters are those of evidence_reader.py and docs/evidence.md of the emhrnn package. */
"use strict";
const emhrnn = (() => {
  const FORMAT = 1, NONE = -1, UNKNOWN = 0, SIZES = { u8: 1, f16: 2, f32: 4, u64: 8 };
  let model = null, failure = null;

  // ---- the model file: length of a JSON header, the header, then arrays that begin at multiples of 8 bytes

  function load(base64) {
    try {
      model = unpacked(base64);
    } catch (error) {
      failure = error.message;
      throw error;
    }
  }

  function unpacked(base64) {
    const characters = atob(base64), bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    const broken = (why) => new Error(`model.js is damaged (${why}); export the model again`);
    if (bytes.length < 8) throw broken("it is empty");
    const length = new DataView(bytes.buffer).getUint32(0, true);
    if (length > bytes.length - 8) throw broken("its header is cut short");
    let header;
    try {
      header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    } catch { throw broken("its header cannot be read"); }
    if (header.format !== FORMAT) throw new Error(`model.js has format ${header.format}, this page reads ${FORMAT}; export both together`);
    const arrays = {};
    let end = 8 + length;
    for (const { name, type, shape } of header.arrays) {
      const begin = Math.ceil(end / 8) * 8, count = shape.reduce((product, size) => product * size, 1);
      end = begin + count * SIZES[type];
      if (!(end <= bytes.length)) throw broken(`${name} is cut short`);
      arrays[name] = numbers(type, bytes.buffer, begin, count);
    }
    if (end !== bytes.length) throw broken(`${bytes.length} bytes where ${end} are expected`);
    const { K, C, H, D, G } = header, n = arrays.keys.length, words = new TextDecoder().decode(arrays.vocabulary).split("\n");
    const V = words.length, wide = [[G, D], [G, G], [G, 1]].map(([rows, columns]) => 2 * 3 * rows * columns);
    const expected = {
      table: n * C, bias: C, length_prior: K, vectors: D * V, odds: header.pauses ? 2 * V : 0, projection: D * K * H,
      encoder_bias: K * H, output: H * C, input_weight: wide[0], state_weight: wide[1], gru_bias: wide[2], score: 2 * G,
    };
    for (const [name, count] of Object.entries(expected)) {
      if (arrays[name]?.length !== count) throw broken(`${name} has ${arrays[name]?.length} numbers, not ${count}`);
    }
    if (header.classes.length !== C) throw broken("the number of classes differs");
    const text = header.text;
    return {
      ...header, ...arrays, ids: new Map(words.map((word, id) => [word, id])), projected: new Map(),
      token: new RegExp(text.pattern, "gu"),
      never: new Set(text.abbreviations), seldom: new Set(text.markers), starters: new Set(text.starters),
    };
  }

  function numbers(type, buffer, begin, count) {
    if (type === "u8") return new Uint8Array(buffer, begin, count);
    if (type === "u64") return new BigUint64Array(buffer, begin, count);
    if (type === "f32") return new Float32Array(buffer, begin, count);
    const halves = new Uint16Array(buffer, begin, count), singles = new Float32Array(count);
    for (let i = 0; i < count; i++) singles[i] = HALVES[halves[i]];
    return singles;
  }

  /** All 16-bit floats; the model has none that is infinite or NaN. */
  const HALVES = Float32Array.from({ length: 65536 }, (_, bits) => {
    const exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return bits & 32768 ? -size : size;
  });

  // ---- text -> sentences -> words

  /** Where sentences begin, in characters of the text. A simplification of the sentencex library, for English. */
  function sentenceStarts(text) {
    const starts = [0];
    for (const paragraph of text.matchAll(/(?:(?!\n\r*\n)[^])+/g)) {
      const part = paragraph[0], spans = closedSpans(part);
      starts.push(paragraph.index);
      let last = 0;
      for (const mark of part.matchAll(/[.!?։؟۔।॥။።‼‽⁇⁈⁉。．！？｡]+(?: +[.!?]+)*/g)) {
        const end = mark.index + mark[0].length, after = part.slice(end), next = after.trimStart();
        if (/^(?:[0-9a-z]|\s*[,;](?!\)))/.test(after) || (mark[0].length > 1 && /^\s+(?:[0-9a-z]|I\b)/.test(after))) continue;
        if (mark[0] === "." && abbreviated(part.slice(Math.max(mark.index - 40, 0), mark.index), next)) continue;
        let stop = end + after.length - next.length;
        const span = spans.find(([from, to]) => from < stop && stop < to);
        if (span) { // inside quotes or brackets; a mark just before the closing quote ends the sentence behind it
          const beyond = part.slice(span[1]), rest = beyond.trimStart();
          if (!span[2] || end !== span[1] - 1 || /^\(?[0-9a-z,;:.!?]/.test(rest)) continue;
          stop = span[1] + beyond.length - rest.length;
        }
        if (stop > last) starts.push(paragraph.index + (last = stop));
      }
    }
    return starts.filter((start, i) => i === 0 || start > starts[i - 1]);
  }

  /** [start, end, whether they are quotes] of quoted text and of text in brackets. */
  function closedSpans(text) {
    const quotes = /"[^"]*"|“[^”]*”|‘[^’]*’|«[^»]*»|`[^`']*'|(?<![\p{L}\p{N}_])'(?=[\p{L}\p{N}_])[^]{0,2000}?'(?![\p{L}\p{N}_])/gu;
    const spans = (pattern, quoted) => [...text.matchAll(pattern)].map((found) => [found.index, found.index + found[0].length, quoted]);
    return [...spans(quotes, true), ...spans(/[([{<（][^)\]}>）]{0,2000}[)\]}>）]/g, false)].sort((a, b) => a[0] - b[0]);
  }

  /** Whether the full stop after `head` belongs to an abbreviation. */
  function abbreviated(head, next) {
    const word = head.slice(Math.max(head.search(/[^\s./]*$/), 0));
    if (model.never.has(word)) return true;
    return model.seldom.has(word) && !model.starters.has(/^[\p{L}\p{N}_']*/u.exec(next)[0]);
  }

  /** Words of all sentences: ids, where they stand, and the offsets of the sentences. */
  function split(given) {
    const limits = model.text, document = { ids: [], starts: [], ends: [], offsets: [0] };
    const clean = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd").replaceAll("\0", " ");
    const text = typeof given === "string" ? clean(given) : given.map(clean).join(" ");
    const shown = text.replace(/(?:<br\s?\/?>\s*)+/gi, (tags) => "\n".repeat(Math.min(tags.split(/[<\n]/).length - 1, 2)).padEnd(tags.length))
      .replace(/[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/g, " ");
    let at = 0;
    const starts = typeof given === "string" ? sentenceStarts(shown) : given.map((part) => (at += part.length + 1) - part.length - 1);
    starts.forEach((start, i) => {
      if (document.offsets.length > (limits.max_sentences ?? Infinity)) return;
      for (const token of shown.slice(start, starts[i + 1]).matchAll(model.token)) {
        if (document.ids.length - document.offsets.at(-1) >= (limits.max_words_per_sentence ?? Infinity)) break;
        document.ids.push(idOf(normalised(token[0])));
        document.starts.push(start + token.index);
        document.ends.push(start + token.index + token[0].length);
      }
      if (document.ids.length > document.offsets.at(-1)) document.offsets.push(document.ids.length);
    });
    return { text, ...document };
  }

  /** The id of a word; in a language with compounds, an unknown one has that of a relative (text/vocabulary.py). */
  function idOf(word) {
    const { relatives } = model.text, ids = model.ids;
    if (ids.has(word)) return ids.get(word);
    if (!relatives || !/^\p{L}+$/u.test(word)) return UNKNOWN;
    for (const ending of relatives.endings) {
      const stem = word.slice(0, -ending.length), found = ids.get(stem) ?? ids.get(stem + "e");
      if (word.endsWith(ending) && stem.length >= relatives.stem && found !== undefined) return found;
    }
    if (relatives.negations.some((start) => word.toLowerCase().startsWith(start))) return UNKNOWN;
    for (let start = relatives.rest; start <= word.length - relatives.head; start++) {
      const head = word.slice(start), found = ids.get(head) ?? ids.get(head[0].toUpperCase() + head.slice(1).toLowerCase());
      if (found !== undefined) return found;
    }
    return UNKNOWN;
  }

  /** The word that a token stands for: lower case, NFC, straight apostrophes, short runs of marks. */
  function normalised(token) {
    let word = (model.text.lowercase ? token.toLowerCase() : token).normalize("NFC");
    if ([...word].length === 1) return word;
    word = word.replaceAll("’", "'");
    if (/[\p{L}\p{N}]$/u.test(word)) return word;
    if (/^[!?]+$/.test(word)) return new Set(word).size === 1 ? word.slice(0, 3) : "?!";
    return /^-+$/.test(word) ? "--" : word.replace(/([.*=_~#+'`()-])\1{2,}/g, "$1$1$1");
  }

  // ---- candidate phrase (t, k): the k + 1 words that end at word t

  /** The row of every candidate in the table of seen phrases, and n^-presence where it occurs n times. */
  function candidates({ ids, offsets }) {
    const { K, presence } = model, rows = new Int32Array(ids.length * K).fill(NONE), times = new Map();
    for (let i = 0; i + 1 < offsets.length; i++) {
      for (let t = offsets[i]; t < offsets[i + 1]; t++) {
        let state = 0n;
        for (let k = 0; k < K && t - k >= offsets[i] && ids[t - k] !== UNKNOWN; k++) {
          state = BigInt.asUintN(64, (state ^ BigInt(ids[t - k])) * 0x9E3779B97F4A7C15n);
          state = BigInt.asUintN(64, (state ^ (state >> 32n)) * 0xD6E8FEB86659FD93n);
          state ^= state >> 32n;
          const row = find(((state >> 1n) & ~7n) | BigInt(k));
          if (row === NONE) break; // a phrase is seen only if every phrase that it ends with is
          rows[t * K + k] = row;
          times.set(row, (times.get(row) ?? 0) + 1);
        }
      }
    }
    return { rows, weights: Float64Array.from(rows, (row) => (row === NONE ? 0 : times.get(row) ** -presence)) };
  }

  function find(key) {
    const keys = model.keys;
    let low = 0, high = keys.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (keys[middle] < key) low = middle + 1; else high = middle;
    }
    return keys[low] === key ? low : NONE;
  }

  /** P x of a word: (K, H). */
  function projected(id) {
    const { K, H, D, vectors, projection } = model;
    let sums = model.projected.get(id);
    if (!sums) {
      sums = new Float64Array(K * H);
      for (let d = 0; d < D; d++) {
        const x = vectors[id * D + d];
        for (let j = 0; j < K * H; j++) sums[j] += x * projection[d * K * H + j];
      }
      model.projected.set(id, sums);
    }
    return sums;
  }

  /** Log-odds that a reader pauses after word t. */
  const pause = ({ ids }, t) => model.odds[ids[t]] + model.odds[model.ids.size + ids[t + 1]];

  /** Potentials of the candidates of sentence i: (words, K, columns). Columns are all classes, or `only` one with the
      preference for phrases that read well, or with `only` = NONE one column of cohesion without evidence. */
  function potentials(document, i, only) {
    const { K, C, H, output, table, reading } = model, { ids, rows, weights } = document;
    const begin = document.offsets[i], T = document.offsets[i + 1] - begin;
    const columns = only === undefined ? Array.from({ length: C }, (_, y) => y) : only === NONE ? [] : [only];
    const width = columns.length || 1, scores = new Float64Array(T * K * width), total = new Float64Array(H), hidden = new Float64Array(H);
    for (let t = 0; t < T; t++) {
      const word = begin + t, last = t === T - 1;
      let cohesion = model.pauses && !last ? model.pause_strength * pause(document, word) : 0;
      if (only >= 0 && model.pauses) {
        const strange = last ? 0 : (ids[word] === UNKNOWN) + (ids[word + 1] === UNKNOWN);
        cohesion += (last ? 0 : reading.pauses * (pause(document, word) - reading.unknown * strange)) - reading.length;
      }
      total.fill(0);
      for (let k = 0; k < K && k <= t; k++) {
        const at = (t * K + k) * width, row = rows[word * K + k], weight = weights[word * K + k];
        scores.fill(cohesion + model.length_prior[k], at, at + width);
        if (!columns.length) continue;
        if (H) {
          const own = projected(ids[word - k]);
          for (let h = 0; h < H; h++) hidden[h] = Math.tanh((total[h] += own[k * H + h]) + model.encoder_bias[k * H + h]);
        }
        columns.forEach((y, c) => {
          if (row !== NONE) scores[at + c] += weight * table[row * C + y];
          for (let h = 0; h < H; h++) scores[at + c] += hidden[h] * output[h * C + y];
        });
      }
    }
    return { T, width, scores };
  }

  // ---- sums and the maximum over all segmentations

  function logSum(values, count = values.length) {
    let highest = -Infinity, sum = 0;
    for (let i = 0; i < count; i++) highest = Math.max(highest, values[i]);
    for (let i = 0; i < count; i++) sum += Math.exp(values[i] - highest);
    return highest + Math.log(sum);
  }

  /** What each word adds to the log-sum of its sentence: the mean of reading from the left and from the right. */
  function increments({ T, width, scores }) {
    const K = model.K, added = new Float64Array(T * width), terms = new Float64Array(K);
    const alpha = new Float64Array(T + 1), beta = new Float64Array(T + 1); // of t words; 0 at the start, and at the end
    for (let c = 0; c < width; c++) {
      for (let t = 0; t < T; t++) {
        for (let k = 0; k < K && k <= t; k++) terms[k] = alpha[t - k] + scores[(t * K + k) * width + c];
        alpha[t + 1] = logSum(terms, Math.min(K, t + 1));
      }
      for (let t = T - 1; t >= 0; t--) {
        for (let k = 0; k < K && t + k < T; k++) terms[k] = beta[t + k + 1] + scores[((t + k) * K + k) * width + c];
        beta[t] = logSum(terms, Math.min(K, T - t));
      }
      for (let t = 0; t < T; t++) added[t * width + c] = (alpha[t + 1] - alpha[t] + beta[t] - beta[t + 1]) / 2;
    }
    return added;
  }

  /** The lengths of the phrases of the best segmentation. */
  function best({ T, scores }) {
    const K = model.K, value = [0], length = [0];
    for (let t = 0; t < T; t++) {
      value.push(-Infinity);
      for (let k = 0; k < K && k <= t; k++) {
        const sum = value[t - k] + scores[t * K + k];
        if (sum > value[t + 1]) [value[t + 1], length[t + 1]] = [sum, k + 1];
      }
    }
    const lengths = [];
    for (let t = T; t > 0; t -= length[t]) lengths.unshift(length[t]);
    return lengths;
  }

  // ---- sentence weights: a bidirectional GRU over mean word vectors

  function sentenceWeights({ ids, offsets }) {
    const { D, G, vectors, score } = model, n = offsets.length - 1, sums = new Float64Array(n);
    if (!G) return sums.fill(1);
    const sigmoid = (x) => 1 / (1 + Math.exp(-x));
    const means = Array.from({ length: n }, (_, i) => {
      const mean = new Float64Array(D), words = offsets[i + 1] - offsets[i];
      for (let t = offsets[i]; t < offsets[i + 1]; t++) for (let d = 0; d < D; d++) mean[d] += vectors[ids[t] * D + d] / words;
      return mean;
    });
    const product = (matrix, way, row, x) => x.reduce((sum, value, d) => sum + value * matrix[(way * 3 * G + row) * x.length + d], 0);
    for (const way of [0, 1]) {
      let h = new Float64Array(G);
      for (let step = 0; step < n; step++) {
        const i = way ? n - 1 - step : step, before = h;
        const input = (row) => product(model.input_weight, way, row, means[i]) + model.gru_bias[way * 3 * G + row];
        const state = (row) => product(model.state_weight, way, row, before);
        h = before.map((old, j) => {
          const r = sigmoid(input(j) + state(j)), u = sigmoid(input(G + j) + state(G + j));
          return old + u * (Math.tanh(input(2 * G + j) + r * state(2 * G + j)) - old);
        });
        sums[i] += h.reduce((sum, value, j) => sum + value * score[way * G + j], 0);
      }
    }
    const raw = sums.map((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))); // softplus
    const total = raw.reduce((sum, value) => sum + value, 0);
    return raw.map((value) => (value * n) / total);
  }

  // ---- a text -> its prediction and why

  const sum = (nodes) => nodes.reduce((total, node) => total + node.effect, 0);
  const isSpelled = ({ text }) => /[\p{L}\p{N}]/u.test(text);
  /** The spelled one with the largest effect, or any, above what rounding leaves of words that say nothing. */
  const strongest = (nodes) => {
    const order = nodes.filter(({ effect }) => effect > 1e-9).sort((a, b) => b.effect - a.effect);
    return order.find(isSpelled) ?? order[0];
  };

  function read(given) {
    if (!model) throw new Error("no model is loaded; load model.js first");
    const document = split(given), { ids, offsets, text } = document, { C, several, temperature } = model;
    if (!ids.length) return null;
    Object.assign(document, candidates(document));
    const known = ids.some((id) => id !== UNKNOWN);
    const lambda = known ? Math.exp(model.strength - model.power * Math.log(ids.length / model.usual_words)) : 0;
    const lambdas = sentenceWeights(document).map((gamma) => gamma * lambda);
    const said = new Float64Array(ids.length * C); // what each word adds to each logit
    const logits = Float64Array.from(model.bias);
    for (let i = 0; i + 1 < offsets.length; i++) {
      const added = increments(potentials(document, i)), free = several ? increments(potentials(document, i, NONE)) : null;
      for (let t = 0; t < added.length / C; t++) {
        const row = added.subarray(t * C, (t + 1) * C), level = free ? free[t] : row.reduce((a, b) => a + b, 0) / C;
        row.forEach((value, y) => { logits[y] += said[(offsets[i] + t) * C + y] = lambdas[i] * (value - level); });
      }
    }
    const chosen = logits.indexOf(Math.max(...logits)), against = !several && C > 1;
    const mean = against ? model.bias.reduce((a, b) => a + b, 0) / C : 0;
    const support = (own) => (own * (against ? C / (C - 1) : 1)) / temperature; // less the mean of the other classes
    const scaled = logits.map((x) => x / temperature), norm = several ? 0 : logSum([...scaled]);
    const probabilities = Array.from(scaled, (x) => (several ? 1 / (1 + Math.exp(-x)) : Math.exp(x - norm)));
    const node = (first, end, parts) => ({
      text: text.slice(document.starts[first], document.ends[end - 1]), start: document.starts[first], end: document.ends[end - 1], ...parts,
    });
    const sentences = [];
    for (let i = 0; i + 1 < offsets.length; i++) {
      let first = offsets[i];
      const phrases = best(potentials(document, i, chosen)).map((length) => {
        const words = Array.from({ length }, (_, k) => node(first + k, first + k + 1, { effect: support(said[(first + k) * C + chosen]), known: ids[first + k] !== UNKNOWN }));
        const evidence = model.classes.map((_, y) => words.reduce((total, _, k) => total + said[(first + k) * C + y] / temperature, 0));
        return node(first, (first += length), { effect: sum(words), evidence, words });
      });
      sentences.push(node(offsets[i], offsets[i + 1], { index: i, effect: sum(phrases), phrases }));
    }
    const phrase = strongest(sentences.flatMap((sentence) => sentence.phrases));
    return {
      text, classes: model.classes, probabilities, chosen, several, sentences, phrase,
      labels: several ? model.classes.filter((_, y) => probabilities[y] > 0.5) : [model.classes[chosen]],
      prior: support(model.bias[chosen] - mean), word: phrase && strongest(phrase.words),
      sentence: phrase && sentences.find((one) => one.phrases.includes(phrase)),
      ...cautions(sentences.flatMap((one) => one.phrases.flatMap(({ words }) => words))),
    };
  }

  /** Whether any word is known, and warnings: the text is unlike those of training. */
  function cautions(words) {
    const { unknown_share, far, lengths } = model.warn, spelled = words.filter(isSpelled), warnings = [];
    const n = words.length, known = spelled.filter((word) => word.known).length, share = 1 - known / Math.max(spelled.length, 1);
    if (spelled.length && share >= unknown_share) {
      warnings.push(`${(100 * share).toFixed(0)}% of the words are unknown to this model; do not trust the label.`);
    }
    const [fewest, most] = lengths ?? [0, Infinity], [kind, bound] = far * n < fewest ? ["shortest", fewest] : ["longest", most];
    if (far * n < fewest || n > far * most) {
      const told = [n, bound].map((count) => count.toLocaleString("en"));
      warnings.push(`This text has ${told[0]} word${n > 1 ? "s" : ""}, the ${kind} training document ${told[1]}; the label is less reliable.`);
    }
    return { known: known > 0, warnings };
  }

  return { load, read, starts: sentenceStarts, get model() { return model; }, get failure() { return failure; } };
})();
