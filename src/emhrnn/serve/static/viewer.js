// The viewer's script: it asks the server for the part of the page that changed and puts it in place. Every page is whole
// without it.
"use strict";

document.documentElement.classList.add("scripted");

const reading = document.getElementById("reading");
const written = document.querySelector("form.write");
let shown = written && Object.fromEntries(new FormData(written)); // what the page explains; the form may have moved on
let asked = 0; // the newest question; answers to older ones are late and thrown away

async function ask(changes) {
  const card = reading.querySelector(".reading");
  const form = new URLSearchParams({ ...shown, ...state(card), ...changes });
  const kept = keep(card);
  const mine = ++asked;
  reading.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch("/part/read", { method: "POST", body: form });
    const page = await answer.text();
    if (mine !== asked) return;
    reading.innerHTML = answer.headers.get("content-type").startsWith("text/html") ? page : "";
    if (!reading.innerHTML) complain(JSON.parse(page).error);
    prepare();
    restore(kept);
  } catch {
    if (mine === asked) complain("The server does not answer; is it still running?");
  } finally {
    if (mine === asked) reading.setAttribute("aria-busy", "false");
  }
}

function state(card) {
  if (!card) return {};
  const slider = card.querySelector("#threshold");
  const moved = slider && Number(card.dataset.threshold) !== Number(slider.dataset.own);
  const { dropped, label } = card.dataset;
  return { dropped, label, ...(moved ? { threshold: card.dataset.threshold } : {}) };
}

// What a person has set on the page and would miss.
function keep(card) {
  if (!card) return {};
  return {
    mode: card.querySelector("input[name=mode]:checked")?.value,
    numbers: card.querySelector(".numbers")?.checked,
    plain: card.querySelector(".plain")?.checked,
    open: [...card.querySelectorAll("ol.sentences > li > details")].map((details) => details.open),
    focus: document.activeElement?.dataset?.phrase ?? document.activeElement?.id,
  };
}

function restore(kept) {
  const card = reading.querySelector(".reading");
  if (!card || !kept.mode) return;
  card.querySelector(`input[name=mode][value=${kept.mode}]`).checked = true;
  card.querySelector(".numbers").checked = kept.numbers;
  card.querySelector(".plain").checked = kept.plain;
  card.querySelectorAll("ol.sentences > li > details").forEach((details, i) => (details.open = kept.open[i] ?? false));
  const phrase = card.querySelector(`[data-phrase="${CSS.escape(kept.focus ?? "")}"]`);
  if (phrase) stop(phrase);
  (phrase ?? document.getElementById(kept.focus))?.focus();
}

function complain(reason) {
  const line = document.createElement("p");
  line.className = "trouble";
  line.setAttribute("role", "alert");
  line.textContent = reason;
  reading.replaceChildren(line);
}

// Phrases as buttons: one stop for the Tab key, arrows from one to the next.
function prepare() {
  const phrases = [...reading.querySelectorAll(".phrase[data-phrase]")];
  phrases.forEach((phrase, i) => {
    phrase.setAttribute("role", "button");
    phrase.tabIndex = i === 0 ? 0 : -1;
    phrase.setAttribute("aria-pressed", phrase.classList.contains("dropped"));
    phrase.addEventListener("click", () => act(phrase, mode()));
    phrase.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) move(phrases, i, step);
      else if (event.key === "Enter" || event.key === " ") act(phrase, mode());
      else if (event.key === "d" || event.key === "D" || event.key === "Delete") act(phrase, "drop");
      else return;
      event.preventDefault();
    });
  });
  reading.querySelectorAll(".sentence > .row > .gauge").forEach((gauge) => {
    const details = gauge.closest(".sentence").querySelector("details");
    gauge.addEventListener("click", () => (details.open = !details.open));
  });
  const slider = document.getElementById("threshold");
  slider?.addEventListener("input", () => ask({ threshold: slider.dataset.values.split(" ")[slider.value], dropped: "" }));
  reading.querySelector("[data-reset]")?.addEventListener("click", () => ask({ threshold: "", dropped: "" }));
}

function mode() {
  return reading.querySelector("input[name=mode]:checked").value;
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

function act(phrase, what) {
  const number = phrase.dataset.phrase;
  if (what === "drop") {
    const dropped = new Set(reading.querySelector(".reading").dataset.dropped.split(",").filter(Boolean));
    if (!dropped.delete(number)) dropped.add(number);
    ask({ dropped: [...dropped].join(",") });
    return;
  }
  const row = document.getElementById(`phrase-${number}`);
  const sentence = row.parentElement.closest("details");
  const opened = sentence.open && row.querySelector("details").open;
  sentence.open = true;
  row.querySelector("details").open = !opened;
  if (opened) sentence.open = false;
  else row.scrollIntoView({ block: "nearest" });
}

if (reading) {
  written.addEventListener("submit", (event) => {
    event.preventDefault();
    shown = Object.fromEntries(new FormData(written));
    document.querySelector(".samples")?.remove();
    document.getElementById("trouble")?.remove();
    ask({ dropped: "", threshold: "", label: "" });
  });
  prepare();
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
