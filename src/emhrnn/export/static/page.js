/* The page around emhrnn.js. All text goes in as text nodes, never as markup. */
"use strict";
(() => {
  const DELAY = 120, CLASSES_SHOWN = 6, WORDS_SHOWN = 20000, TINTS = 5, LEAST = 0.05; // of the largest effect
  const at = (id) => document.getElementById(id), area = at("text");
  let picked = null, undo = null;

  /** An element with text and other elements in it. */
  function element(tag, className, ...content) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    made.append(...content);
    return made;
  }
  const signed = (effect) => (Math.abs(effect) < 0.005 ? "0" : (effect < 0 ? "\u2212" : "+") + Math.abs(effect).toFixed(2));
  const percent = (p) => (p > 0 && p < 0.005 ? "<1%" : p >= 0.995 && p < 1 ? ">99%" : `${Math.round(100 * p)}%`);
  const number = (effect) => element("span", "number", signed(effect));
  const isSpelled = ({ text }) => /[\p{L}\p{N}]/u.test(text);
  const replace = (id, ...content) => at(id).replaceChildren(...content);
  const wide = (made, share) => (made.style.setProperty("--wide", `${(100 * share).toFixed(2)}%`), made);

  function update() {
    let result = null, failure = "";
    try {
      result = emhrnn.read(area.value);
    } catch (error) {
      failure = error.message;
    }
    at("problem").hidden = !failure;
    replace("problem", failure);
    at("result").hidden = !result;
    at("chips").hidden = Boolean(result);
    if (result) show(result);
  }

  function show(result) {
    const phrases = result.sentences.flatMap((sentence) => sentence.phrases);
    const largest = Math.max(...phrases.map(({ effect }) => Math.abs(effect)), 1e-9);
    picked = null;
    at("detail").hidden = true;
    replace("label", result.labels.join(", ") || "no label over 50%");
    replace("classes", ...classRows(result));
    replace("warnings", ...result.warnings.map((warning) => element("p", "warning", warning)));
    replace("headline", ...headline(result, phrases));
    replace("scale", ...scale(result, phrases));
    replace("balance", ...balance(result, phrases));
    replace("prose", ...prose(result, phrases, largest));
  }

  function classRows({ classes, probabilities, labels }) {
    let order = classes.map((_, y) => y);
    if (classes.length > CLASSES_SHOWN) order = order.sort((a, b) => probabilities[b] - probabilities[a]).slice(0, CLASSES_SHOWN);
    const rows = order.map((y) => {
      const row = element("div", labels.includes(classes[y]) ? "chosen" : "", element("span", "", classes[y]),
        wide(element("span", "meter"), probabilities[y]), element("span", "number", percent(probabilities[y])));
      row.dataset.probability = probabilities[y];
      return row;
    });
    const more = classes.length - order.length;
    return more ? [...rows, element("p", "muted", `and ${more} more, each less likely`)] : rows;
  }

  /** What decided most, by its evidence; the same sentence as `explain([text])` has. */
  function headline({ classes, chosen, labels, known, phrase, word, sentence, sentences, prior }, phrases) {
    const it = labels.length === 1 ? "it" : classes[chosen];
    const quoted = (node) => [element("q", "", node.text), " (", number(node.effect), ")"];
    if (!phrase) {
      const some = phrases.some(({ effect }) => effect !== 0);
      const first = known ? `No phrase of this text supports ${some ? "" : "or opposes "}${it}` : "No word of this text is known to the model";
      return [`${first}; the label follows from the prior of `, ...quoted({ text: classes[chosen], effect: prior }), "."];
    }
    const where = sentences.length > 1 ? ` in sentence ${sentence.index + 1}` : "";
    const inside = phrase.words.filter(isSpelled).length > 1 && word && isSpelled(word);
    return [
      it === "it" ? "Decided most by " : `Most for ${it}: `,
      ...quoted(phrase), where, ...(inside ? [", in it ", ...quoted(word)] : []), ".",
    ];
  }

  /** All phrases as one beam: what opposes the label to the left of the middle, what supports it to the right. */
  function scale({ prior }, phrases) {
    const parts = [...phrases.map((phrase) => [phrase.effect, phrase.text]), [prior, "prior"]];
    const side = (sign) => parts.filter(([effect]) => sign * effect > 0).sort((a, b) => sign * (b[0] - a[0]));
    const total = (some) => some.reduce((sum, [effect]) => sum + Math.abs(effect), 0);
    const sides = [side(-1), side(1)], most = Math.max(...sides.map(total), 1e-9);
    return sides.map((some, i) => {
      const half = element("div", i ? "for" : "against");
      for (const [effect, text] of some.slice(0, 60)) {
        const part = wide(element("span", ""), Math.abs(effect) / most);
        part.title = `${text} ${signed(effect)}`;
        half.append(part);
      }
      return half;
    });
  }

  function balance({ prior, several, classes }, phrases) {
    const all = phrases.reduce((sum, { effect }) => sum + effect, 0);
    const against = !several && classes.length > 2 ? " against the mean of the other labels" : "";
    return ["Prior ", number(prior), " and phrases ", number(all), " add up to ", number(prior + all), `, the log-odds of the label${against}.`];
  }

  /** The text as written, each phrase in its tint. */
  function prose({ text }, phrases, largest) {
    const nodes = [];
    let end = 0, words = 0;
    for (const phrase of phrases) {
      if ((words += phrase.words.length) > WORDS_SHOWN) return [...nodes, element("p", "muted", `Words after the first ${WORDS_SHOWN} are read, but not shown.`)];
      const share = Math.abs(phrase.effect) / largest, tint = Math.min(Math.ceil(share * TINTS), TINTS);
      const span = element("span", share < LEAST ? "phrase" : `phrase ${phrase.effect > 0 ? "f" : "a"}${tint}`);
      let inner = phrase.start;
      for (const word of phrase.words) {
        span.append(text.slice(inner, word.start), word.known ? word.text : element("i", "", word.text));
        inner = word.end;
      }
      span.tabIndex = 0;
      span.setAttribute("role", "button");
      span.title = signed(phrase.effect);
      span.onclick = () => pick(phrase, span);
      span.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(phrase, span); } };
      nodes.push(text.slice(end, phrase.start), span);
      end = phrase.end;
    }
    return [...nodes, text.slice(end)];
  }

  /** Show the words of a phrase, and offer to read the text without it. */
  function pick(phrase, span) {
    picked?.classList.remove("picked");
    at("detail").hidden = picked === span;
    if (picked === span) return void (picked = null);
    picked = span;
    span.classList.add("picked");
    const largest = Math.max(...phrase.words.map(({ effect }) => Math.abs(effect)), 1e-9);
    const rows = phrase.words.map((word) => element("div", word.effect < 0 ? "against" : "for", element("span", "", word.text),
      wide(element("span", "meter"), Math.abs(word.effect) / largest), number(word.effect)));
    const without = element("button", "", "Leave this phrase out");
    without.onclick = () => {
      undo = area.value;
      area.value = area.value.slice(0, phrase.start) + area.value.slice(phrase.end).replace(/^ /, "");
      update();
      const back = element("button", "", "Put it back");
      back.onclick = () => { area.value = undo; update(); };
      replace("detail", back);
      at("detail").hidden = false;
    };
    replace("detail", element("p", "", element("q", "", phrase.text), " ", number(phrase.effect)), ...rows, without);
  }

  /** Words to begin with: those that say most for each class. */
  function chips({ suggestions }) {
    return Object.entries(suggestions).filter(([, words]) => words.length).map(([label, words]) => {
      const buttons = words.map((word) => {
        const chip = element("button", "", word);
        chip.onclick = () => { area.value = `${area.value} ${word}`.trim(); update(); area.focus(); };
        return chip;
      });
      return element("p", "", element("span", "muted", label), ...buttons);
    });
  }

  function about({ keys, ids, classes, text, reads_ids }) {
    const language = text.language === "en" ? "" : " The rule is made for English.";
    return `An evidence model of the emhrnn package: ${keys.length.toLocaleString("en")} phrases, ${ids.size.toLocaleString("en")} words, `
      + `${classes.length} labels. Probabilities agree with Python to 0.001 given the same sentences. Sentences are split by a simpler rule than in Python, `
      + `so a text with unusual punctuation can differ more.${language}${reads_ids ? " Users and products are read as unknown." : ""}`;
  }

  if (!emhrnn.model) {
    at("problem").hidden = false;
    replace("problem", emhrnn.failure ?? "model.js is missing; export the model again, and keep its files together");
    area.disabled = true;
    return;
  }
  let timer = 0;
  area.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(update, DELAY + area.value.length / 200); });
  replace("chips", ...chips(emhrnn.model));
  replace("about", about(emhrnn.model));
  update(); // a browser may have kept the text
})();
