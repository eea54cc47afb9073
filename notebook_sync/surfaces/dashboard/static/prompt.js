// Makes the prompt's page quicker: copies the prompt as it stands there, and tells of a line without leaving the page.

const copy = document.getElementById("copy");
const copied = document.getElementById("copied");

if (navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const parts = [...document.querySelectorAll("[data-prompt]")];
    try {
      await navigator.clipboard.writeText(parts.map((part) => part.textContent).join(""));
      copied.textContent = "Copied";
    } catch {
      copied.textContent = "The browser does not let this page copy";
    }
    setTimeout(() => (copied.textContent = ""), 4000);
  });
}

const form = document.getElementById("line-form");
const found = document.getElementById("found");
let asked = 0;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const number = ++asked;
  found.setAttribute("aria-busy", "true");
  const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
  try {
    const answer = await fetch(address, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const made = page.getElementById("found") ?? page.querySelector("[role=alert]");
    if (answer.redirected || !made) return location.assign(address);
    if (number === asked) found.replaceChildren(...made.childNodes);
  } catch {
    if (number === asked) found.textContent = "The server does not answer. Ask again when it is back.";
  } finally {
    if (number === asked) found.removeAttribute("aria-busy");
  }
});
