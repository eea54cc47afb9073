// Follows the notebook: what is marked `data-live` in a page is fetched anew when something happened, and put in place
// by its id. Where the server does not answer, the page says so and tries again. Nothing here takes a text for markup
// but what this server made as a page.

const AWAY = "The server does not answer. What you see may be old; it is tried again.";
const LOGGED_OUT = "You are not logged in any more. What you wrote is still here: ";
const LOG_IN = "log in in another tab, then go on";
const TOLD = ".notice[tabindex]"; // what was just done
const PAUSE_MS = 150;
const AGAIN_MS = 3000;
const banner = document.getElementById("connection");
let events = null;
let waiting = 0;
let looking = 0;
let isAway = false;
let isFetching = false;
let isLate = false; // something happened that the page does not show yet
let tookMs = 0;

follow();
look();
arrive();

// A page that nobody sees follows nothing: a browser has few connections to one server.
document.addEventListener("visibilitychange", () => {
  follow();
  soon();
});
for (const kind of ["focusout", "selectionchange"]) document.addEventListener(kind, () => isLate && soon());

export function soon() {
  // A page that takes long to make is asked for less often.
  waiting ||= setTimeout(refresh, Math.max(PAUSE_MS, 4 * tookMs));
}

function follow() {
  events?.close();
  if (document.hidden) return;
  events = new EventSource("/live");
  events.onmessage = soon;
  events.onopen = () => isAway && soon();
  events.onerror = () => {
    const isNew = !isAway;
    isAway = true;
    if (isNew) refresh(); // which tells whether it is the server, or the login
    if (events.readyState === EventSource.CLOSED) setTimeout(again, AGAIN_MS);
  };
}

function again() {
  soon();
  follow();
}

// What was just done is told to whoever reads by ear or goes by keys, unless the page begins with something to fill in.
function arrive() {
  const done = document.querySelector(TOLD);
  if (done && document.activeElement === document.body && !location.hash) done.focus();
  if (!matchMedia("(max-width: 48rem)").matches) return;
  for (const each of document.querySelectorAll("details[data-for-wide]")) each.open = false;
}

// Databases go and come back without an event. A part that tells of them says after how many seconds to look again, or
// after how many times as long as that takes.
function look() {
  clearTimeout(looking);
  const seconds = document.querySelector("[data-look]")?.dataset.look;
  if (seconds) looking = setTimeout(soon, seconds * Math.max(1000, tookMs));
}

async function refresh() {
  waiting = 0;
  const parts = [...document.querySelectorAll("[data-live][id]")];
  if (document.hidden || (parts.length === 0 && !isAway)) return;
  isLate = true;
  if (isFetching) return;
  isFetching = true;
  isLate = false;
  const begun = performance.now();
  try {
    const address = parts.length > 0 ? location.href : "/";
    const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.status === 405) return say(""); // the answer to a form, which stays as it is
    isAway = answer.status === 401;
    if (isAway) return say(LOGGED_OUT, LOG_IN);
    say(answer.ok ? "" : `This page cannot be made anew: ${fresh.querySelector("h1")?.textContent ?? answer.status}`);
    for (const part of parts) put(part, fresh.getElementById(part.id));
  } catch {
    isAway = true;
    say(AWAY);
  } finally {
    tookMs = performance.now() - begun;
    isFetching = false;
    if (isLate && !parts.some(isInUse)) soon();
    look();
  }
}

function put(part, made) {
  if (!made) return;
  const unfolded = [...part.querySelectorAll("details")].map((each) => each.open);
  [...made.querySelectorAll("details")].forEach((each, at) => (each.open = unfolded[at] ?? each.open));
  if (made.innerHTML === part.innerHTML) return;
  if (isInUse(part)) return void (isLate = true);
  const wasThere = part.contains(document.activeElement);
  part.replaceChildren(...made.childNodes);
  if (wasThere) part.querySelector(TOLD)?.focus({ preventScroll: true });
}

function isInUse(part) {
  const chosen = getSelection();
  const held = document.activeElement;
  return (part.contains(held) && !held.matches(TOLD)) || (!chosen.isCollapsed && part.contains(chosen.anchorNode));
}

// A form is sent once, however often its button is pressed; edit.js sends its own.
let sent = new WeakSet();
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (sent.has(event.target)) event.preventDefault();
  sent.add(event.target);
});
addEventListener("pageshow", () => (sent = new WeakSet()));

function say(text, toLogin = "") {
  if (!banner || banner.textContent === text + toLogin) return;
  banner.textContent = text;
  if (toLogin) banner.append(Object.assign(document.createElement("a"), { href: "/login", target: "_blank", textContent: toLogin }));
  banner.hidden = text === "";
}

// Keys: / searches, g with the first letter of a part goes there, e edits, n writes a new note, ? tells all of them.
const keys = document.getElementById("keys");
let isGoing = false;
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (isTyping || keys?.open || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("find").focus();
  } else if (isGoing) {
    const links = [...document.querySelectorAll("header nav a")];
    links.find((link) => link.textContent.trim().toLowerCase().startsWith(event.key))?.click();
  } else if (event.key === "e") {
    document.querySelector("a[rel~=edit]")?.click();
  } else if (event.key === "n") {
    location.assign("/new");
  } else if (event.key === "?") {
    keys?.showModal();
  }
  isGoing = event.key === "g";
});
