// The pages of notes: the editor with its preview and its drafts, parts of a page that links fetch, and the picture of
// links. Without it, the same forms and links work. It waits for events, so it serves pages that are put in place, too.

const PREVIEW_MS = 400;
const DRAFT_MS = 250;
const FRAGMENT = { Accept: "text/fragment" };
const at = (id) => document.getElementById(id);
const form = () => at("edit");
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const timers = {};
let turn = 0;
let isGivenUp = false;

function later(name, action, pause) {
  clearTimeout(timers[name]);
  timers[name] = setTimeout(action, pause);
}

// ---- the editor

document.addEventListener("input", (event) => {
  if (!form() || event.target.form !== form()) return;
  form().dataset.unsaved = "";
  isGivenUp = false;
  at("edit-state").textContent = "Not saved yet";
  later("draft", keep, DRAFT_MS);
  later("preview", preview, PREVIEW_MS);
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-give-up]")) giveUp();
});
document.addEventListener("submit", (event) => {
  if (event.target !== form()) return;
  if (event.submitter?.name === "preview") {
    event.preventDefault();
    event.stopImmediatePropagation();
    preview();
  } else keep(); // whatever becomes of it, the draft has it
}, true);
document.addEventListener("keydown", (event) => {
  if (!form() || event.key.toLowerCase() !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form().requestSubmit();
});
addEventListener("beforeunload", (event) => {
  if (form() && "unsaved" in form().dataset && !isGivenUp) event.preventDefault();
});
addEventListener("pagehide", () => form() && "unsaved" in form().dataset && !isGivenUp && keep());

async function preview() {
  const [edit, place, mine] = [form(), at("preview"), ++turn];
  if (!edit) return; // the note was saved meanwhile
  const body = new URLSearchParams(new FormData(edit));
  body.set("preview", "yes");
  try {
    const answer = await fetch(edit.getAttribute("action"), { method: "POST", body, headers: FRAGMENT });
    const made = parsed(await answer.text());
    const text = made.getElementById("preview-text");
    if (mine === turn && answer.ok && text) place.replaceChildren(text);
  } catch {
    // the connection's banner says so
  }
}

// ---- drafts: what is typed is kept in this tab until it is saved or given up, with the text that it was made from

const keyOf = (edit) => `draft ${edit.getAttribute("action")} ${edit.elements.section.value}`;

function keep() {
  clearTimeout(timers.draft);
  const edit = form();
  if (!edit) return;
  try {
    sessionStorage.setItem(keyOf(edit), JSON.stringify({ at: Date.now(), fields: [...new FormData(edit)] }));
    edit.dataset.kept = keyOf(edit);
  } catch {
    // no room for a text of this size: it is in the page alone
  }
}

function forget(path) {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(`draft /edit/${path} `)) sessionStorage.removeItem(key);
}

function giveUp() {
  isGivenUp = true;
  clearTimeout(timers.draft);
  sessionStorage.removeItem(keyOf(form()));
}

function offer() {
  const edit = form();
  const draft = JSON.parse(sessionStorage.getItem(keyOf(edit)) ?? "null");
  const fields = draft && Object.fromEntries(draft.fields);
  if (!draft || "unsaved" in edit.dataset || fields.text === edit.elements.text.value) return;
  const box = at("draft");
  box.querySelector("time").textContent = new Date(draft.at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  at("draft-late").hidden = fields.digest === edit.elements.digest.value;
  at("draft-in").onclick = () => {
    for (const [name, value] of draft.fields) if (edit.elements[name]) edit.elements[name].value = value;
    edit.elements.text.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  at("draft-away").onclick = () => {
    sessionStorage.removeItem(keyOf(edit));
    close();
  };
  const close = () => {
    box.hidden = true;
    at("text").focus();
  };
  box.hidden = false;
}

// ---- what is put into a page: a form of the editor, a note that was saved, another text on disk, the picture

let arrived = null;
let edited = "";

function arrive() {
  const edit = form();
  if (edit && edit !== arrived) {
    offer();
    preview();
  } else if (!edit && edited) {
    forget(edited); // its place was taken by what a save answers with
  }
  arrived = edit;
  edited = edit ? edit.getAttribute("action").slice("/edit/".length) : "";
  const digest = at("disk")?.firstElementChild?.dataset.digest;
  if (edit && digest) at("changed").hidden = digest === edit.elements.digest.value;
  document.querySelectorAll(".graph:not([data-moves]) > svg").forEach(move);
}

if (matchMedia("(max-width: 52rem)").matches) for (const each of document.querySelectorAll("[data-wide]")) each.open = false;
new MutationObserver(arrive).observe(at("main"), { childList: true, subtree: true });
arrive();

// ---- links that change a part of the page in place

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-swap]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  try {
    const answer = await fetch(link.href, { headers: FRAGMENT });
    const part = link.closest("[data-live]");
    const made = parsed(await answer.text()).getElementById(part.id);
    if (!answer.ok || !made) return location.assign(link.href);
    const order = [...part.querySelectorAll("a[data-swap]")].indexOf(link);
    part.replaceChildren(...made.childNodes);
    history.replaceState(null, "", link.href);
    part.querySelectorAll("a[data-swap]")[order]?.focus({ preventScroll: true });
  } catch {
    location.assign(link.href);
  }
});

// ---- the picture: it is moved by dragging and enlarged by buttons or Ctrl and the wheel

function move(picture) {
  const [x, y, width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const view = { x, y, zoom: 1 };
  picture.parentElement.dataset.moves = "";
  const show = () => picture.setAttribute("viewBox", `${view.x} ${view.y} ${width / view.zoom} ${height / view.zoom}`);
  const enlarge = (factor) => {
    const zoom = Math.min(8, Math.max(0.5, view.zoom * factor));
    view.x += (width / view.zoom - width / zoom) / 2;
    view.y += (height / view.zoom - height / zoom) / 2;
    view.zoom = zoom;
    show();
  };
  const bar = Object.assign(document.createElement("p"), { className: "row-actions" });
  for (const [name, factor] of [["Larger", 1.4], ["Smaller", 1 / 1.4]]) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet small", textContent: name });
    button.addEventListener("click", () => enlarge(factor));
    bar.append(button);
  }
  picture.before(bar);
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    enlarge(event.deltaY < 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  picture.addEventListener("dragstart", (event) => event.preventDefault());
  picture.addEventListener("pointermove", (event) => {
    if (event.buttons !== 1) return;
    const scale = width / view.zoom / picture.clientWidth;
    view.x -= event.movementX * scale;
    view.y -= event.movementY * scale;
    show();
  });
}
