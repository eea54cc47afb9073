// What is typed into the form of a note is kept in this tab until it is saved or given up, and offered when the form is
// opened again. It is put in by nobody but who wrote it, and with the text that it was made from: saved on another one, it
// overwrites nothing.

const PAUSE_MS = 250;
const at = (id) => document.getElementById(id);
const kept = new Set();
let timer = 0;
let isGivenUp = false;

document.addEventListener("input", (event) => {
  if (!event.target.form || event.target.form !== at("edit")) return;
  isGivenUp = false;
  clearTimeout(timer);
  timer = setTimeout(keep, PAUSE_MS);
});
document.addEventListener("saved", forget);
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-give-up]")) isGivenUp = true;
});
addEventListener("pagehide", () => {
  if (isGivenUp) forget();
  else if (timer) keep();
});
addEventListener("pageshow", offer);

function keyOf(form) {
  const part = form.elements.namedItem("part") ?? form.elements.namedItem("collection");
  return `draft ${form.getAttribute("action")} ${part?.value ?? ""}`;
}

function keep() {
  clearTimeout(timer);
  timer = 0;
  const form = at("edit");
  if (!form) return;
  kept.add(keyOf(form));
  try {
    sessionStorage.setItem(keyOf(form), JSON.stringify({ at: Date.now(), fields: [...new FormData(form)] }));
  } catch {
    // no room for a text of this size: it is kept in the page alone
  }
}

function forget() {
  clearTimeout(timer);
  timer = 0;
  const form = at("edit");
  if (form) kept.add(keyOf(form));
  for (const key of kept) sessionStorage.removeItem(key);
  kept.clear();
}

function offer() {
  const [form, place] = [at("edit"), at("draft")];
  const draft = form && place && JSON.parse(sessionStorage.getItem(keyOf(form)));
  if (!draft || form.hasAttribute("data-unsaved")) return place?.setAttribute("hidden", "");
  const inputs = draft.fields.map(([name, value]) => [form.elements.namedItem(name), value]).filter(([input]) => input);
  const digest = draft.fields.find(([name]) => name === "digest")?.[1];
  const isOfThis = digest === form.elements.namedItem("digest")?.value;
  if (isOfThis && inputs.every(([input, value]) => input.value === value)) {
    tell(); // the browser has put it in again
    return;
  }
  place.querySelector("time").textContent = new Date(draft.at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  at("draft-late").hidden = isOfThis;
  at("draft-in").onclick = () => {
    for (const [input, value] of inputs) input.value = value;
    place.hidden = true;
    tell();
    at("text").focus();
  };
  at("draft-away").onclick = () => {
    sessionStorage.removeItem(keyOf(form));
    place.hidden = true;
    at("text").focus();
  };
  place.hidden = false;
}

function tell() {
  at("text").dispatchEvent(new Event("input", { bubbles: true }));
}
