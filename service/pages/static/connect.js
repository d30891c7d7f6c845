// Copy buttons, and the token field that fills the lines of this page. Nothing is sent or kept.

import { copied } from "./copying.js";

const TOKEN = /^[A-Za-z0-9._+/-][A-Za-z0-9._~+/-]*=*$/;
const said = document.getElementById("copied");

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

async function copy(button) {
  const code = button.closest("figure").querySelector("code");
  const done = await copied(code.textContent);
  if (!done) getSelection().selectAllChildren(code);
  button.textContent = done ? "Copied" : "Selected";
  say(done ? "Copied." : "Selected. Press Ctrl+C or ⌘C to copy.");
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// An equal text would not be announced again.
function say(text) {
  said.textContent = "";
  requestAnimationFrame(() => { said.textContent = text; });
}

const field = document.getElementById("token");
if (field) {
  const form = field.form;
  const state = document.getElementById("token-state");
  const spans = document.querySelectorAll(".gap");
  const placeholder = spans.length ? spans[0].textContent : "";
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  field.value = "";
  field.addEventListener("input", () => {
    const typed = field.value.trim();
    const good = TOKEN.test(typed);
    for (const span of spans) {
      span.textContent = good ? typed : placeholder;
      span.classList.toggle("filled", good);
    }
    state.textContent = !typed ? "" : good ? `Inserted in ${spans.length} places.`
      : "This is not a bearer token. Use only letters, digits and - . _ ~ + / =";
  });
}
