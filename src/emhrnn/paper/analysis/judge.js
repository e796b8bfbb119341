// One case at a time; votes live in the radio buttons and are kept in this browser after each.
"use strict";
const form = document.getElementById("cases"), id = form.dataset.id, place = `emhrnn-votes-${id}`;
const cases = [...form.querySelectorAll(".case")], progress = document.getElementById("progress");
let now = 0;
const votes = () => Object.fromEntries(new FormData(form));
const store = (work) => { try { return work(localStorage); } catch { return null; } };  // a browser may forbid it
function show(number) {
  now = Math.max(0, Math.min(cases.length - 1, number));
  cases.forEach((one, index) => one.classList.toggle("now", index === now));
  const done = Object.keys(votes()).length;
  progress.textContent = `${done} of ${cases.length} judged` + (done === cases.length ? ": save the votes now" : "");
}
function vote(value) {
  const choice = form.querySelector(`input[name="${now}"][value="${value}"]`);
  if (choice) { choice.checked = true; kept(); }
}
function kept() {
  store((local) => local.setItem(place, JSON.stringify(votes())));
  show(now + 1);
}
for (const [name, value] of Object.entries(JSON.parse(store((local) => local.getItem(place)) || "{}"))) {
  const choice = [...form.querySelectorAll("input")].find((one) => one.name === name && one.value === value);
  if (choice) choice.checked = true;
}
form.addEventListener("change", kept);
form.addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  const value = { ArrowLeft: "left", ArrowRight: "right", ArrowDown: "same" }[event.key];
  if (event.altKey || event.ctrlKey || event.metaKey || !(value || event.key === "ArrowUp")) return;
  event.preventDefault();
  if (value) vote(value); else show(now - 1);
});
document.getElementById("save").addEventListener("click", () => {
  const text = JSON.stringify({ format: "emhrnn.votes/1", id, votes: votes() }, null, 2);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = "votes.json";
  link.click();
});
document.body.classList.add("one");
const open = cases.findIndex((_, index) => !(index in votes()));
show(open < 0 ? 0 : open);
