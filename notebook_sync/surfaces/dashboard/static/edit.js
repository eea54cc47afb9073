// A form in which a note is written: shows what it becomes while one types, saves by Ctrl+S, and lets nobody lose what is
// not saved: where it cannot be, the page stays and says why. Without it, the form's own buttons do the same.

const PAUSE_MS = 400;
const at = (id) => document.getElementById(id);
const isOurs = (form) => form !== null && form === at("edit");
let timer = 0;
let asked = 0;
let isChanged = at("edit")?.hasAttribute("data-unsaved");
let isSending = false;

document.addEventListener("input", (event) => {
  if (!isOurs(event.target.form ?? null)) return;
  isChanged = true;
  say("Not saved yet");
  soon();
});
document.addEventListener("submit", (event) => {
  if (!isOurs(event.target)) return;
  event.preventDefault();
  if (event.submitter?.name === "preview") soon(0);
  else if (!isSending) send(event.target); // sent once, however often it is pressed
});
document.addEventListener("keydown", (event) => {
  const form = event.target.closest?.("form") ?? null;
  if (!isOurs(form) || event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
addEventListener("beforeunload", (event) => {
  if (isChanged) event.preventDefault();
});
soon(0);

async function send(form) {
  const again = `press “${form.querySelector("button:not([name])").textContent}” again`;
  const text = at("text");
  clearTimeout(timer);
  isSending = text.readOnly = true;
  say("Saving…");
  try {
    const answer = await post(form, form.getAttribute("action"));
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Our own redirects say what was done; one to the login of a proxy does not.
    if (answer.redirected && new URL(answer.url).searchParams.has("done")) {
      saved();
      location.assign(answer.url);
    } else if (answer.ok && !answer.redirected) {
      saved();
      put(made);
    } else if (answer.status === 401) {
      sayLoggedOut(`Not saved: your login ended. What you wrote stays here. Log in, then ${again}: `);
    } else if (made.querySelector("#edit, #text-typed")) {
      put(made);
    } else {
      const said = [...made.querySelectorAll("main h1, main h1 + p")].map((one) => one.textContent.trim());
      say(`Not saved: ${said.join("; ") || "something else answered than the notebook"}. What you wrote stays here.`, true);
    }
  } catch {
    say(`Not saved: the server does not answer. What you wrote stays here; when it is back, ${again}.`, true);
  } finally {
    isSending = text.readOnly = false;
  }
}

function post(form, address) {
  return fetch(address, { method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin" });
}

function saved() {
  isChanged = false;
  document.dispatchEvent(new Event("saved"));
}

function put(made) {
  at("main").replaceChildren(...made.getElementById("main").childNodes);
  document.title = made.title;
  isChanged = at("edit")?.hasAttribute("data-unsaved");
  scrollTo(0, 0);
  at("main").focus();
  soon(0);
}

function soon(pause = PAUSE_MS) {
  clearTimeout(timer);
  if (at("edit")?.dataset.preview && at("preview")) timer = setTimeout(show, pause);
}

async function show() {
  const turn = ++asked;
  const [form, preview] = [at("edit"), at("preview")];
  preview.setAttribute("aria-busy", "true");
  try {
    const answer = await post(form, form.dataset.preview);
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (turn !== asked || isSending) return; // a later text is on its way, or what is said of this one
    if (answer.ok) {
      preview.replaceChildren(...made.body.childNodes);
    } else if (answer.status === 401) {
      sayLoggedOut("Your login ended. What you wrote stays here: ");
    } else {
      say(made.querySelector("h1")?.textContent ?? "There is no preview of this", true);
    }
  } catch {
    const isTold = at("edit-state")?.classList.contains("not-saved"); // why a save failed, which says more
    if (turn === asked && !isSending && !isTold) say("Not saved yet, and the server does not answer; what you wrote stays here", true);
  } finally {
    if (turn === asked) preview.removeAttribute("aria-busy");
  }
}

function say(text, isBad = false) {
  const state = at("edit-state");
  state?.replaceChildren(text);
  state?.classList.toggle("not-saved", isBad);
}

function sayLoggedOut(text) {
  say(text, true);
  const link = document.createElement("a");
  Object.assign(link, { href: "/login", target: "_blank", rel: "noopener", textContent: "log in in another tab" });
  at("edit-state")?.append(link);
}
