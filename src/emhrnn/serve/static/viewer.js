// The viewer's script: it asks the server for the part of the page that changed and puts it in place. Every page is whole
// without it.
"use strict";

document.documentElement.classList.add("scripted");

const reading = document.getElementById("reading");
const written = document.querySelector("form.write");
const writing = document.querySelector(".writing");
const live = document.querySelector(".live");
const place = { text: "", dropped: "", threshold: "", label: "" }; // what the page explains; the form may have moved on
let wanted = false; // something changed since the last question
let busy = false; // one question at a time: the newest state is asked when the answer is there

async function ask(changes, fresh) {
  Object.assign(place, changes);
  if (fresh) history.pushState({ ...place }, "", "/"); // refresh and Back find it again
  else history.replaceState({ ...place }, "");
  wanted = fresh ? "all" : wanted || "parts";
  if (busy) return;
  busy = true;
  reading.setAttribute("aria-busy", "true");
  while (wanted) {
    const what = wanted;
    wanted = false;
    await put(new URLSearchParams(place), what);
  }
  busy = false;
  reading.setAttribute("aria-busy", "false");
}

async function put(form, what) {
  try {
    const answer = await fetch("/part/read", { method: "POST", body: form });
    if (answer.redirected) return location.assign(answer.url); // the session has ended
    const page = await answer.text();
    if (!answer.headers.get("content-type").startsWith("text/html")) return complain(JSON.parse(page).error);
    const part = document.createElement("template");
    part.innerHTML = page;
    const card = part.content.querySelector(".reading");
    if (!card) return complain(part.content.querySelector(".trouble")?.textContent ?? "There is no answer.");
    show(card, what);
  } catch {
    complain("The server does not answer; is it still running?");
  }
}

// All of it for another text; else only what changed: a control that is held must not be replaced.
function show(card, what) {
  const old = reading.querySelector(".reading");
  const kept = keep(old);
  complain("");
  if (what === "all" || !old?.querySelector(".tools")) {
    reading.replaceChildren(card);
    fold();
  } else {
    Object.assign(old.dataset, { dropped: card.dataset.dropped, threshold: card.dataset.threshold });
    for (const part of [".verdict-card", "ol.sentences", ".slider output"])
      old.querySelector(part)?.replaceWith(card.querySelector(part));
    const reset = old.querySelector("[data-reset]");
    if (reset) reset.hidden = !place.threshold;
  }
  prepare(what === "all" || !old);
  restore(kept);
  live.textContent = [...reading.querySelectorAll(".said")].map((said) => said.innerText.replace(/\s+/g, " ")).join("; ");
}

// What a person has set on the page and would miss.
function keep(card) {
  if (!card) return {};
  return {
    numbers: card.querySelector(".numbers")?.checked,
    plain: card.querySelector(".plain")?.checked,
    open: [...card.querySelectorAll("ol.sentences > li > details")].map((details) => details.open),
    more: card.querySelector(".more")?.open,
    chosen: card.querySelector(".phrase.chosen")?.dataset.phrase,
    focus: document.activeElement?.dataset?.phrase,
    button: document.activeElement?.closest("[data-toggle]") !== null,
  };
}

function restore(kept) {
  const card = reading.querySelector(".reading");
  if (!card?.querySelector(".tools") || kept.open === undefined) return;
  card.querySelector(".numbers").checked = kept.numbers;
  card.querySelector(".plain").checked = kept.plain;
  card.querySelector(".more").open = kept.more;
  card.querySelectorAll("ol.sentences > li > details").forEach((details, i) => (details.open = kept.open[i] ?? false));
  if (kept.chosen !== undefined) choose(card.querySelector(`[data-phrase="${kept.chosen}"]`));
  const phrase = card.querySelector(`[data-phrase="${CSS.escape(kept.focus ?? "")}"]`);
  if (phrase) stop(phrase);
  if (kept.button) card.querySelector("[data-toggle]").focus({ preventScroll: true });
  else phrase?.focus({ preventScroll: true });
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
  writing.querySelector(".excerpt").textContent = place.text.slice(0, 160);
  writing.open = false;
  reading.classList.remove("stale");
}

// Phrases as buttons: one stop for the Tab key, arrows from one to the next.
function prepare(tools) {
  const phrases = [...reading.querySelectorAll(".phrase[data-phrase]")];
  phrases.forEach((phrase, i) => {
    phrase.setAttribute("role", "button");
    phrase.tabIndex = i === 0 ? 0 : -1;
    phrase.setAttribute("aria-pressed", phrase.classList.contains("dropped"));
    phrase.addEventListener("click", () => choose(phrase));
    phrase.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) move(phrases, i, step);
      else if (event.key === "Enter" || event.key === " ") choose(phrase);
      else if (event.key === "d" || event.key === "D" || event.key === "Delete") drop(phrase.dataset.phrase);
      else return;
      event.preventDefault();
    });
  });
  reading.querySelectorAll(".sentence > .row > .gauge").forEach((gauge) => {
    const details = gauge.closest(".sentence").querySelector("details");
    gauge.addEventListener("click", () => (details.open = !details.open));
  });
  reading.querySelector("[data-restore]")?.addEventListener("click", () => ask({ dropped: "" }));
  if (!tools) return;
  const slider = document.getElementById("threshold");
  slider?.addEventListener("input", () => {
    const value = slider.dataset.values.split(" ")[slider.value];
    ask({ threshold: Number(value) === Number(slider.dataset.own) ? "" : value, dropped: "" });
  });
  reading.querySelector("[data-reset]")?.addEventListener("click", () => {
    const steps = slider.dataset.values.split(" ").map(Number);
    slider.value = steps.indexOf(Number(slider.dataset.own));
    ask({ threshold: "", dropped: "" });
  });
}

function move(phrases, i, step) {
  const next = phrases[(i + step + phrases.length) % phrases.length];
  stop(next);
  next.focus();
}

function stop(phrase) {
  reading.querySelectorAll(".phrase[tabindex='0']").forEach((other) => (other.tabIndex = -1));
  phrase.tabIndex = 0;
}

// A phrase with its words and its own button, in the verdict, which is in sight.
function choose(phrase) {
  const panel = reading.querySelector(".chosen-phrase");
  const before = reading.querySelector(".phrase.chosen");
  before?.classList.remove("chosen");
  panel.hidden = !phrase || phrase === before;
  if (panel.hidden) return;
  const number = phrase.dataset.phrase;
  phrase.classList.add("chosen");
  stop(phrase);
  panel.querySelector(".prose").textContent = phrase.textContent;
  const words = document.getElementById(`phrase-${number}`).querySelector("table.words").cloneNode(true);
  panel.querySelector(".chosen-words").replaceChildren(words);
  const button = panel.querySelector("[data-toggle]");
  button.textContent = phrase.classList.contains("dropped") ? "Put it back" : "Leave it out";
  button.onclick = () => drop(number);
}

function drop(number) {
  const dropped = new Set(place.dropped.split(",").filter(Boolean));
  if (!dropped.delete(number)) dropped.add(number);
  ask({ dropped: [...dropped].join(",") });
}

function read(form) {
  const fields = Object.fromEntries(new FormData(form));
  ask({ user: "", product: "", ...fields, dropped: "", threshold: "", label: "" }, true);
}

// Back and Forward, and a page that was loaded again.
function goto(state) {
  for (const name of ["text", "user", "product"]) if (written.elements[name]) written.elements[name].value = state[name] ?? "";
  Object.assign(place, { text: "", dropped: "", threshold: "", label: "" }, state);
  if (place.text) {
    wanted = "all";
    ask({});
    return;
  }
  reading.replaceChildren();
  document.querySelector(".samples")?.removeAttribute("hidden");
  writing.open = true;
}

if (reading) {
  const card = reading.querySelector(".reading");
  Object.assign(place, Object.fromEntries(new FormData(written)), { label: card?.dataset.label ?? "" });
  written.addEventListener("submit", (event) => {
    event.preventDefault();
    read(written);
  });
  document.querySelectorAll(".samples form").forEach((form) =>
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      written.elements.text.value = event.submitter.value;
      read(written);
    }),
  );
  written.elements.text.addEventListener("input", () => {
    const stale = Boolean(reading.querySelector(".reading")) && written.elements.text.value !== place.text;
    reading.classList.toggle("stale", stale);
  });
  window.addEventListener("popstate", (event) => goto(event.state ?? {}));
  prepare(true);
  if (history.state?.text && (!card || history.state.dropped || history.state.threshold)) goto(history.state);
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

document.querySelectorAll("[data-upload]").forEach((form) => {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    const trouble = form.querySelector(".trouble");
    const tell = (reason) => {
      trouble.textContent = reason;
      trouble.hidden = false;
    };
    if (!file) return tell("Pick a file first.");
    try {
      const answer = await fetch(`/corpus/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const told = await answer.json();
      if (answer.ok) location.href = told.job;
      else tell(told.error);
    } catch {
      tell("The file could not be sent; it may be too large, or the server is gone.");
    }
  });
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
