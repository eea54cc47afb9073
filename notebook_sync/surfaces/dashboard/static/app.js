// Forms sent in place, live parts, messages, the palette and keys. Without it, every form and link still works. Nothing
// here takes a text for markup but what this server made as a page.

const PAUSE_MS = 200;
const AGAIN_MS = 3000;
const TOAST_MS = 12_000;
const FRAGMENT = { Accept: "text/fragment" };
const at = (id) => document.getElementById(id);
const address = () => location.pathname + location.search;
const isLoggedIn = () => at("palette") !== null;
let events = null;
let waiting = 0;
let isAway = false;
let isFetching = false;
let shown = address();
let isLate = false; // something happened that the page does not show yet

// ---- forms

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || "plain" in form.dataset) return;
  event.preventDefault();
  if (form.dataset.sending) return; // sent once, however often its button is pressed
  send(form, event.submitter);
});

async function send(form, button) {
  form.dataset.sending = "yes";
  const body = new URLSearchParams(new FormData(form, button));
  try {
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: FRAGMENT });
    const made = parse(await answer.text());
    if (answer.status === 401) return toast("You are not logged in any more. What you wrote is still here.", "/login");
    if (!answer.ok && made.querySelector("[data-error]")) return toast(textOf(made.querySelector("[data-error]")));
    show(made, answer, form, button);
  } catch {
    toast("The server does not answer. What you wrote is still here.");
  } finally {
    delete form.dataset.sending;
  }
}

function show(made, answer, form, button) {
  const done = made.querySelector("[data-toast]");
  const parts = [...document.querySelectorAll("[data-live][id]")];
  const fitting = parts.filter((part) => made.querySelector(`[id="${part.id}"][data-live]`));
  const isHere = answer.ok && new URL(answer.url).pathname === location.pathname;
  if (isHere && fitting.length > 0) {
    const label = button?.getAttribute("aria-label");
    for (const part of fitting) replace(part, made.querySelector(`[id="${part.id}"]`));
    if (form.isConnected) form.reset();
    if (!document.activeElement || document.activeElement === document.body) refocus(label, fitting[0]);
    fill();
  } else {
    done?.remove();
    at("main").replaceChildren(...made.childNodes);
    if (answer.redirected) history.pushState(null, "", withoutDone(answer.url));
    shown = address();
    mark();
    fill();
    at("main").querySelector("h1, [role=alert]")?.scrollIntoView({ block: "nearest" });
    at("main").focus();
  }
  if (done) toast(done);
}

// The button that was pressed may be gone: the next one like it, or the part that it was in, has the focus then.
function refocus(label, part) {
  const same = label && [...part.querySelectorAll("button")].find((each) => each.getAttribute("aria-label") === label);
  if (same) return same.focus();
  part.tabIndex = -1;
  part.focus({ preventScroll: true });
}

function parse(text) {
  const made = new DOMParser().parseFromString(text, "text/html");
  return made.querySelector("main") ?? made.body;
}

const textOf = (part) => [...part.querySelectorAll("h1, p")].map((each) => each.textContent.trim()).join(". ");

function withoutDone(address) {
  const url = new URL(address);
  url.searchParams.delete("done");
  return url.pathname + url.search;
}

// Also sent for a link within the page, which changes nothing else.
addEventListener("popstate", () => address() !== shown && location.reload());

// ---- messages

function toast(said, login = "") {
  const box = document.createElement("div");
  box.className = "toast";
  if (typeof said === "string") box.append(said);
  else box.append(...said.childNodes);
  if (login) box.append(" ", Object.assign(document.createElement("a"), { href: login, target: "_blank", textContent: "Log in" }));
  const close = Object.assign(document.createElement("button"), { type: "button", className: "quiet small", textContent: "Close" });
  close.addEventListener("click", () => box.remove());
  box.addEventListener("submit", () => setTimeout(() => box.remove()));
  box.append(close);
  at("toasts").replaceChildren(box);
  const end = () => (box.matches(":hover, :focus-within") ? setTimeout(end, TOAST_MS) : box.remove());
  setTimeout(end, TOAST_MS);
}

// ---- live parts: a page that nobody sees follows nothing, since a browser has few connections to one server

document.addEventListener("visibilitychange", follow);
for (const kind of ["focusout", "selectionchange"]) document.addEventListener(kind, () => isLate && soon());

function follow() {
  events?.close();
  events = null;
  if (document.hidden || !isLoggedIn()) return;
  events = new EventSource("/live");
  events.onmessage = ({ data }) => {
    if (data !== document.body.dataset.state) soon();
    document.body.dataset.state = data;
  };
  events.onopen = () => isAway && soon();
  events.onerror = () => {
    isAway = true;
    soon();
    if (events?.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS);
  };
}

function soon() {
  waiting ||= setTimeout(refresh, PAUSE_MS);
}

async function refresh() {
  waiting = 0;
  const parts = [...document.querySelectorAll("[data-live][id]")];
  if (isFetching) return soon(); // what happens meanwhile is not in its answer
  if (document.hidden || (parts.length === 0 && !isAway)) return;
  isFetching = true;
  isLate = false;
  try {
    const answer = await fetch(location.href, { headers: FRAGMENT });
    isAway = false;
    if (answer.status === 401) return say("You are not logged in any more. What you wrote is still here.");
    say("");
    if (!answer.ok) return;
    const made = parse(await answer.text());
    for (const part of parts) replace(part, made.querySelector(`[id="${part.id}"]`), true);
  } catch {
    isAway = true;
    say("The server does not answer. What you see may be old.");
    setTimeout(soon, AGAIN_MS);
  } finally {
    isFetching = false;
  }
}

function replace(part, made, isQuiet = false) {
  if (!made || made.innerHTML === part.innerHTML) return;
  if (isQuiet && isInUse(part)) return void (isLate = true);
  const open = [...part.querySelectorAll("details")].map((each) => each.open);
  part.replaceChildren(...made.childNodes);
  [...part.querySelectorAll("details")].forEach((each, index) => (each.open = open[index] ?? each.open));
}

function isInUse(part) {
  const chosen = getSelection();
  return part.contains(document.activeElement) || (!chosen.isCollapsed && part.contains(chosen.anchorNode));
}

function say(text) {
  const banner = at("connection");
  banner.textContent = text;
  banner.hidden = text === "";
}

// ---- the palette

let turn = 0;
const palette = at("palette");
const query = at("palette-query");
const list = at("palette-found");

async function find() {
  const mine = ++turn;
  try {
    const answer = await fetch(`/palette?q=${encodeURIComponent(query.value)}`);
    const { results } = await answer.json();
    if (mine === turn) list.replaceChildren(...results.map(entry));
    choose(0);
  } catch {
    if (mine === turn) list.replaceChildren();
  }
}

function entry({ kind, title, href, place }, index) {
  const link = Object.assign(document.createElement("li"), { id: `found-${index}`, role: "option" });
  link.dataset.href = href;
  const badge = Object.assign(document.createElement("span"), { className: "badge", textContent: kind });
  const where = Object.assign(document.createElement("span"), { className: "dim", textContent: place });
  link.append(badge, ` ${title} `, where);
  return link;
}

function choose(index) {
  const options = [...list.children];
  options.forEach((each, number) => each.setAttribute("aria-selected", String(number === index)));
  query.setAttribute("aria-activedescendant", options[index]?.id ?? "");
  options[index]?.scrollIntoView({ block: "nearest" });
}

function openPalette() {
  if (!palette || palette.open) return;
  query.value = "";
  palette.showModal();
  find();
}

const open = at("open-palette");
if (open) {
  open.hidden = false;
  open.addEventListener("click", openPalette);
  query.addEventListener("input", find);
  list.addEventListener("click", (event) => go(event.target.closest("li")));
  palette.addEventListener("click", (event) => event.target === palette && palette.close());
  query.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // Enter ends a word of an input method
    const options = [...list.children];
    const chosen = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) choose((chosen + step + options.length) % options.length);
    else if (event.key === "Enter") go(options[chosen]);
    else return;
    event.preventDefault();
  });
}

function go(option) {
  if (option) location.assign(option.dataset.href);
}

// ---- keys: Ctrl+K finds, / goes to the fields that search this page

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    openPalette();
    return;
  }
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.key !== "/") return;
  const field = document.querySelector("form[role=search] input");
  if (!field) return;
  event.preventDefault();
  field.focus();
});

function mark() {
  for (const link of document.querySelectorAll("nav.side a")) {
    const isHere = location.pathname === link.pathname || location.pathname.startsWith(`${link.pathname}/`);
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// ---- parts that take a while are fetched when the page is shown; without this, a link leads to each

async function fill() {
  for (const part of document.querySelectorAll("[data-later]")) {
    const answer = await fetch(part.dataset.later, { headers: FRAGMENT }).catch(() => null);
    const hadFocus = part.contains(document.activeElement);
    if (answer?.ok) part.replaceChildren(...parse(await answer.text()).childNodes);
    if (hadFocus) refocus("", part);
  }
}
fill();

// What was just done is also read aloud, and its address is kept without it.
if (new URL(location.href).searchParams.has("done")) history.replaceState(null, "", withoutDone(location.href) + location.hash);
shown = address();
follow();
