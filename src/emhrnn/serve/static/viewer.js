// The viewer's script: it asks the server for the part of the page that changed and puts it in place. Every page is whole
// without it.
"use strict";

document.body.classList.add("scripted");

const reading = document.getElementById("reading");
const written = document.querySelector("form.write");
const writing = document.querySelector(".writing");
const live = document.querySelector(".live");
const EMPTY = { text: "", run: "", user: "", product: "", dropped: "", threshold: "", label: "" };
const VERDICT = 1, PARTS = 2, ALL = 3; // how much of the page a question changes
const LINKED = 6000; // letters of an address that holds the text; a longer text is kept by the browser alone
const place = { ...EMPTY }; // what the page explains; the form may have moved on
let draft = ""; // the text with a phrase that is being edited
let marks = new Map(); // spans of phrases that should have decided
let past = []; // phrases that were left out, before each change
let wanted = 0; // what has to be asked again
let busy = false; // one question at a time: the newest state is asked when the answer is there

const verdict = () => reading.querySelector(".verdict-card");
const phrases = () => [...reading.querySelectorAll(".phrase[data-k]")];
const phraseOf = (k) => reading.querySelector(`.phrase[data-k="${k}"]`);

// ---------------------------------------------------------------------- questions and answers

async function ask(changes, what) {
  Object.assign(place, changes);
  remember(what === ALL);
  wanted = Math.max(wanted, what);
  if (busy) return;
  busy = true;
  reading.setAttribute("aria-busy", "true");
  while (wanted) {
    const level = wanted;
    wanted = 0;
    await put(level);
  }
  busy = false;
  reading.setAttribute("aria-busy", "false");
}

// The address holds the text behind "#", which never leaves the browser: refresh, Back and a bookmark find it again.
function remember(fresh) {
  const held = Object.entries(place).filter(([, value]) => value);
  const link = `#${new URLSearchParams(held)}`;
  const address = link.length < LINKED ? `/${link}` : "/";
  history[fresh ? "pushState" : "replaceState"]({ ...place }, "", address);
}

function parsed(html) {
  const part = document.createElement("template");
  part.innerHTML = html;
  return part.content;
}

const send = (fields) => fetch("/part/read", { method: "POST", body: new URLSearchParams(fields) });

async function put(level) {
  try {
    const key = level === VERDICT && verdict()?.dataset.key;
    const change = { dropped: place.dropped, edited: draft, label: place.label, part: "verdict" };
    let answer = key ? await send({ ...change, key }) : await send(place);
    if (key && answer.status === 404) answer = await send({ ...place, ...change }); // the server keeps a few readings
    if (answer.redirected) return location.assign(answer.url); // the session has ended
    const page = await answer.text();
    if (!answer.headers.get("content-type").startsWith("text/html")) return complain(JSON.parse(page).error);
    const part = parsed(page);
    const card = part.querySelector(key ? ".verdict-card" : ".reading");
    if (!card) return complain(part.querySelector(".trouble")?.textContent ?? "There is no answer.");
    show(card, key ? VERDICT : level);
  } catch {
    complain("The server does not answer; is it still running?");
  }
}

// All of it for another text; else only what changed: a control that is held must not be replaced.
function show(card, level) {
  const old = reading.querySelector(".reading");
  complain("");
  if (level === VERDICT) verdict().replaceWith(card);
  else if (level === ALL || !old?.querySelector(".tools")) {
    reading.replaceChildren(card);
    fold();
  } else {
    for (const part of [".verdict-card", "ol.sentences", ".slider output"])
      old.querySelector(part)?.replaceWith(card.querySelector(part));
    const reset = old.querySelector("[data-reset]");
    if (reset) reset.hidden = !place.threshold;
  }
  if (level !== VERDICT) prepare(reading);
  if (level === ALL) tools();
  if (level !== VERDICT) marks = new Map();
  const dropped = new Set(place.dropped.split(","));
  for (const phrase of phrases()) leave(phrase, dropped.has(phrase.dataset.k));
  const undo = verdict()?.querySelector("[data-undo]");
  if (undo) undo.hidden = !past.length;
  live.textContent = [...reading.querySelectorAll(".said")].map((said) => said.innerText.replace(/\s+/g, " ")).join("; ");
}

function complain(reason) {
  reading.querySelector(":scope > .trouble")?.remove();
  if (!reason) return;
  const line = document.createElement("p");
  line.className = "trouble";
  line.setAttribute("role", "alert");
  line.textContent = reason;
  reading.prepend(line); // what was there stays
}

function fold() {
  document.querySelector(".samples")?.setAttribute("hidden", "");
  document.getElementById("trouble")?.remove();
  document.querySelector(".rows-nav")?.remove(); // another text than that row
  writing.querySelector(".excerpt").textContent = place.text.slice(0, 160);
  writing.open = false;
  reading.classList.remove("stale");
  scrollTo({ top: 0 });
}

// ---------------------------------------------------------------------- phrases

// Phrases as buttons: one stop for the Tab key, arrows from one to the next.
function prepare(part) {
  const stop = reading.querySelector(".phrase[tabindex='0']");
  part.querySelectorAll(".phrase[data-k]").forEach((phrase, i) => {
    phrase.setAttribute("role", "button");
    phrase.setAttribute("aria-haspopup", "dialog");
    phrase.tabIndex = i === 0 && !stop ? 0 : -1;
    leave(phrase, phrase.classList.contains("dropped"));
  });
  const far = part === reading && reading.querySelector(".sentence.far");
  if (far) reading.querySelectorAll(".sentence").forEach((sentence) => watcher.observe(sentence));
}

function leave(phrase, out) {
  phrase.classList.toggle("dropped", out);
  if (out) phrase.setAttribute("aria-description", "removed");
  else phrase.removeAttribute("aria-description");
}

function stop(phrase) {
  reading.querySelectorAll(".phrase[tabindex='0']").forEach((other) => (other.tabIndex = -1));
  phrase.tabIndex = 0;
}

function focus(phrase) {
  stop(phrase);
  phrase.focus();
}

function drop(k) {
  const dropped = new Set(place.dropped.split(",").filter(Boolean));
  if (!dropped.delete(k)) dropped.add(k);
  leaveOut([...dropped].join(","));
}

function leaveOut(dropped) {
  past.push(place.dropped);
  ask({ dropped }, VERDICT);
}

function undo() {
  if (past.length) ask({ dropped: past.pop() }, VERDICT);
}

function onKey(event) {
  const phrase = event.target.closest?.(".phrase[data-k]");
  if (event.key === "Escape") return close(true);
  if (!phrase || phrase.isContentEditable) return;
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const all = phrases();
  if (step) focus(all[(all.indexOf(phrase) + step + all.length) % all.length]);
  else if (event.key === "Enter" || event.key === " ") open(phrase, true);
  else if (event.key === "d" || event.key === "D" || event.key === "Delete") drop(phrase.dataset.k);
  else if (event.key === "z" && (event.ctrlKey || event.metaKey)) undo();
  else return;
  event.preventDefault();
}

// The box that opens at a phrase: what it counts, its words, and what can be done with it.
function open(phrase, byKey) {
  close();
  stop(phrase);
  phrase.classList.add("chosen");
  const box = document.getElementById("box").content.firstElementChild.cloneNode(true);
  const out = phrase.classList.contains("dropped");
  box.querySelector(".quoted").textContent = phrase.textContent;
  box.querySelector("[data-toggle]").textContent = out ? "Restore" : "Remove";
  box.dataset.k = phrase.dataset.k;
  const card = phrase.closest(".document");
  card.append(box);
  const [spot, frame] = [phrase.getClientRects()[0], card.getBoundingClientRect()];
  const left = Math.min(spot.left - frame.left, frame.width - box.offsetWidth - 8);
  box.style.insetInlineStart = `${Math.max(left, 8)}px`;
  box.style.top = `${phrase.getBoundingClientRect().bottom - frame.top + 6}px`;
  if (byKey) box.querySelector("button").focus();
  fetch(`/part/${verdict().dataset.key}/phrase?k=${phrase.dataset.k}`)
    .then((answer) => (answer.ok ? answer.text() : ""))
    .then((words) => (box.querySelector(".inside").innerHTML = words))
    .catch(() => {});
}

function close(back) {
  const box = reading.querySelector(".box");
  if (!box) return;
  const phrase = phraseOf(box.dataset.k);
  box.remove();
  phrase?.classList.remove("chosen");
  if (back && phrase) focus(phrase);
}

// What a person corrects: the label, and the phrases that should have decided.
function mark(phrase) {
  const k = phrase.dataset.k;
  if (!marks.delete(k)) marks.set(k, phrase.dataset.span.replace(" ", "-"));
  phrase.classList.toggle("marked", marks.has(k));
  const told = `${marks.size} phrase${marks.size === 1 ? "" : "s"} marked. Save to keep it.`;
  verdict().querySelector(".correct [role=status]").textContent = told;
}

async function correct(form) {
  const chosen = [...form.elements.label.selectedOptions].map((option) => option.value);
  const { text, run, user, product } = place;
  const predicted = reading.querySelector(".said .prediction").firstChild.textContent.trim();
  const body = new URLSearchParams({ text, run, user, product, predicted, label: chosen.join("\n"), spans: [...marks.values()].join(",") });
  const told = form.querySelector("[role=status]");
  try {
    const answer = await fetch("/feedback", { method: "POST", body });
    const said = await answer.json();
    told.innerHTML = answer.ok ? 'Saved. <a href="/feedback">All corrections</a>' : "";
    if (!answer.ok) told.textContent = said.error;
  } catch {
    told.textContent = "Not saved: the server does not answer.";
  }
}

// Edit a phrase in place: the label moves while one types.
function edit(phrase) {
  const before = phrase.textContent;
  const [start, end] = phrase.dataset.span.split(" ").map(Number);
  const letters = [...place.text]; // the server counts characters, not halves of them
  let timer = 0;
  const changed = () => [...letters.slice(0, start), phrase.textContent, ...letters.slice(end)].join("");
  const listening = new AbortController();
  const finish = (keep) => {
    clearTimeout(timer);
    listening.abort();
    phrase.contentEditable = "false";
    draft = "";
    if (keep && phrase.textContent !== before) {
      const text = changed();
      written.elements.text.value = text;
      past = [];
      ask({ text, dropped: "" }, ALL);
    } else if (phrase.textContent !== before) {
      phrase.textContent = before;
      ask({}, PARTS);
    }
  };
  const on = (event, act) => phrase.addEventListener(event, act, { signal: listening.signal });
  phrase.contentEditable = "plaintext-only";
  on("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      draft = changed();
      ask({}, VERDICT);
    }, 250);
  });
  on("blur", () => finish(true));
  on("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    finish(event.key === "Enter");
  });
  phrase.focus();
  getSelection().selectAllChildren(phrase);
}

// ---------------------------------------------------------------------- long documents

// Sentences far away are plain text; they are drawn when they come near, and plain again when they are gone.
const queue = new Set();
const number = (sentence) => Number(sentence.id.slice(1));
const watcher = new IntersectionObserver(
  (seen) => {
    for (const { target, isIntersecting } of seen) {
      const far = target.classList.contains("far");
      if (isIntersecting && far) queue.add(target);
      else if (!isIntersecting) {
        queue.delete(target);
        if (far || target.querySelector(".chosen, [tabindex='0'], :focus")) continue;
        const prose = target.querySelector(".prose");
        prose.textContent = prose.textContent;
        target.classList.add("far");
      }
    }
    if (queue.size) setTimeout(drawQueue, 30);
  },
  { rootMargin: "1000px" },
);

function drawQueue() {
  const numbers = [...queue].map(number).sort((a, b) => a - b);
  queue.clear();
  while (numbers.length) {
    let last = 1;
    while (last < numbers.length && last < 50 && numbers[last] === numbers[0] + last) last += 1;
    const some = numbers.splice(0, last);
    draw(some[0], some.at(-1) + 1);
  }
}

async function draw(first, last) {
  const query = new URLSearchParams({ first, last, dropped: place.dropped });
  const answer = await fetch(`/part/${verdict().dataset.key}/sentences?${query}`).catch(() => null);
  if (!answer?.ok) return;
  const part = parsed(await answer.text());
  prepare(part);
  for (const sentence of [...part.children]) {
    const old = document.getElementById(sentence.id);
    if (!old?.classList.contains("far")) continue;
    watcher.unobserve(old);
    old.replaceWith(sentence);
    watcher.observe(sentence);
  }
}

async function find(link) {
  const sentence = document.querySelector(link.getAttribute("href"));
  if (sentence.classList.contains("far")) await draw(number(sentence), number(sentence) + 1);
  const phrase = phraseOf(link.dataset.k);
  phrase?.scrollIntoView({ block: "center" });
  if (phrase) focus(phrase);
}

// ---------------------------------------------------------------------- the page

// Forms that the script sends in its own way.
function onSubmit(selector, act) {
  for (const form of document.querySelectorAll(selector))
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      act(form, event);
    });
}

function tools() {
  const slider = document.getElementById("threshold");
  slider?.addEventListener("input", () => {
    const value = slider.dataset.values.split(" ")[slider.value];
    ask({ threshold: Number(value) === Number(slider.dataset.own) ? "" : value, dropped: "" }, PARTS);
  });
  reading.querySelector("[data-reset]")?.addEventListener("click", () => {
    const steps = slider.dataset.values.split(" ").map(Number);
    slider.value = steps.indexOf(Number(slider.dataset.own));
    ask({ threshold: "", dropped: "" }, PARTS);
  });
}

function onClick(event) {
  const pressed = (selector) => event.target.closest(selector);
  const phrase = pressed(".phrase[data-k]");
  const box = pressed(".box");
  if (pressed("[data-undo]")) undo();
  else if (pressed("[data-restore]")) leaveOut("");
  else if (pressed("[data-turn]")) leaveOut(pressed("[data-turn]").dataset.turn);
  else if (pressed(".weights a")) {
    event.preventDefault();
    find(pressed(".weights a"));
  } else if (phrase && !phrase.isContentEditable) {
    const chosen = phrase.classList.contains("chosen");
    close();
    if (!chosen) open(phrase);
  } else if (box && pressed("button")) {
    const target = phraseOf(box.dataset.k);
    close(true);
    if (pressed("[data-toggle]")) drop(target.dataset.k);
    else if (pressed("[data-edit]")) edit(target);
    else if (pressed("[data-mark]")) mark(target);
  } else if (!box) close();
}

function read(form) {
  past = [];
  ask({ ...EMPTY, ...Object.fromEntries(new FormData(form)) }, ALL);
}

// Back and Forward, and a page that was loaded again.
function goto(state) {
  for (const name of ["text", "run", "user", "product"])
    if (written.elements[name] && (state[name] || name !== "run")) written.elements[name].value = state[name] ?? "";
  Object.assign(place, EMPTY, state);
  past = [];
  if (place.text) {
    wanted = ALL;
    ask({}, PARTS);
    return;
  }
  reading.replaceChildren();
  document.querySelector(".samples")?.removeAttribute("hidden");
  writing.open = true;
}

if (reading) {
  const card = reading.querySelector(".reading");
  Object.assign(place, Object.fromEntries(new FormData(written)), { label: card?.dataset.label ?? "" });
  onSubmit("form.write", read);
  onSubmit(".samples form", (_, event) => {
    written.elements.text.value = event.submitter.value;
    read(written);
  });
  written.elements.text.addEventListener("input", () => {
    const stale = Boolean(reading.querySelector(".reading")) && written.elements.text.value !== place.text;
    reading.classList.toggle("stale", stale);
  });
  document.querySelector("nav a[href='/compare']")?.addEventListener("click", (event) => {
    if (!place.text) return;
    event.preventDefault(); // the text comes along
    written.action = "/compare";
    written.submit();
  });
  document.addEventListener("click", onClick);
  reading.addEventListener("submit", (event) => {
    event.preventDefault();
    correct(event.target);
  });
  document.addEventListener("keydown", onKey);
  window.addEventListener("popstate", (event) => goto(event.state ?? {}));
  if (card) {
    prepare(reading);
    tools();
  }
  const held = history.state?.text ? history.state : Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (held.text && (!card || held.dropped || held.threshold)) goto(held);
}

document.querySelectorAll("[data-drop]").forEach((form) => {
  const box = form.querySelector("textarea");
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("dragover", (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    form.classList.remove("over");
    const file = event.dataTransfer.files[0];
    box.value = file ? await file.text() : event.dataTransfer.getData("text");
    form.requestSubmit();
  });
});

onSubmit("[data-upload]", async (form) => {
  const file = form.querySelector("input[type=file]").files[0];
  const trouble = form.querySelector(".trouble");
  const tell = (reason) => {
    trouble.textContent = reason;
    trouble.hidden = false;
  };
  if (!file) return tell("Pick a file first.");
  try {
    const query = new URLSearchParams({ name: file.name, run: form.elements.run?.value ?? "" });
    const answer = await fetch(`/corpus/upload?${query}`, { method: "POST", body: file });
    const told = await answer.json();
    if (answer.ok) location.href = told.job;
    else tell(told.error);
  } catch {
    tell("The file could not be sent; it may be too large, or the server is gone.");
  }
});

onSubmit("[data-try]", async (form) => {
  const shown = form.querySelector("pre");
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ text: form.elements.text.value });
  shown.hidden = false;
  try {
    const answer = await fetch(form.dataset.try, { method: "POST", headers, body });
    shown.textContent = `${answer.status}\n${JSON.stringify(await answer.json(), null, 2)}`;
  } catch {
    shown.textContent = "The server does not answer.";
  }
});

document.querySelectorAll("[data-watch]").forEach((card) => {
  const look = async () => {
    try {
      const told = await (await fetch(card.dataset.watch)).json();
      if (told.state !== "running") return location.reload();
      card.querySelector("progress").value = told.share;
      card.querySelector(".doing").textContent = told.doing;
      card.querySelector(".count").textContent = told.rows.toLocaleString("en");
    } catch {
      /* the server may be busy; look again */
    }
    setTimeout(look, 500);
  };
  setTimeout(look, 300);
});
