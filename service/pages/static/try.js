// The /try page: forms call, answers are shown, and what an answer says to call next is a button.

import { bearer, mayBeToken, message, send } from "./calls.js";
import { copied } from "./copying.js";
import { fill, fragment, fromFragment, read, say } from "./forms.js";
import { Answers } from "./answers.js";

const COPIED_MILLISECONDS = 2000;

const trial = document.getElementById("trial");
const revision = trial.dataset.revision;
const forms = new Map([...trial.querySelectorAll("form[data-tool]")].map((form) => [form.dataset.tool, form]));
const surfaces = new Map([...trial.querySelectorAll("[data-surface][data-endpoint]")].map((one) => [one.dataset.surface, one]));
const status = document.getElementById("status");
const answers = new Answers(new Set(forms.keys()), { follow, reopen });

let chosen = trial.dataset.chosen;
let pending = null;

/** Shows the form of a tool, and the token field of its surface. */
function choose(tool) {
  chosen = tool;
  const form = forms.get(tool);
  for (const [name, other] of forms) other.hidden = name !== tool;
  for (const [name, surface] of surfaces) surface.hidden = name !== form.dataset.surface;
  for (const link of trial.querySelectorAll("[data-tool][href]")) {
    if (link.dataset.tool === tool) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  return form;
}

/** The surface of a tool, and the token typed for it: null where there has to be one and is none. */
function access(tool) {
  const surface = surfaces.get(forms.get(tool).dataset.surface);
  const input = surface.querySelector(".token");
  if (!input) return { endpoint: surface.dataset.endpoint, token: "" };
  const token = bearer(input.value);
  const fault = token ? "This is not a token: it has invalid characters." : "A token is required.";
  const good = mayBeToken(token);
  say(surface, input, good ? "" : fault);
  if (!good) input.focus();
  return { endpoint: surface.dataset.endpoint, token: good ? token : null };
}

/** Calls the tool of the form on show with what is typed into it. */
async function callForm() {
  const form = forms.get(chosen);
  const { args, fault } = read(form);
  say(form, form.elements.arguments, fault);
  if (fault) {
    form.elements.arguments.focus();
    tell(`Not sent: ${fault}`);
    return;
  }
  await call(chosen, args);
}

async function call(tool, args) {
  const { endpoint, token } = access(tool);
  if (token === null) {
    tell("Not sent: a token is required.");
    return;
  }
  pending?.abort();
  const mine = (pending = new AbortController());
  tell(`Calling ${tool} …`);
  try {
    const answer = await send({ endpoint, revision, token, signal: mine.signal }, tool, args);
    const number = answers.add({ ...answer, tool, args });
    remember(tool, answer.refusal ? "" : token);
    history.pushState({ call: number }, "", location.pathname + fragment(tool, args));
    show(number);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

/** Keeps the token of a surface in this tab, or forgets it. */
function remember(tool, token) {
  const key = tokenKey(forms.get(tool).dataset.surface);
  if (token) sessionStorage.setItem(key, token);
  else sessionStorage.removeItem(key);
}

function tokenKey(surface) {
  return `rung-token-${surface}`;
}

/** Presses a continuation: its call goes into the form of its tool and out. */
function follow({ tool, args }) {
  fill(choose(tool), args);
  call(tool, args);
}

/** Goes back to an earlier answer, with its call in the form. */
function reopen(number) {
  const { tool, args } = answers.all[number];
  fill(choose(tool), args);
  show(number);
}

/** Shows an answer. What was said before goes first: it takes room, and the answer is scrolled to. */
function show(number) {
  tell("", true);
  tell(answers.show(number), true);
}

/** The form as the address says. A link brings arguments, never a token, and calls nothing. */
function fromAddress() {
  const [tool, args] = fromFragment(location.hash);
  const named = new URLSearchParams(location.search).get("tool");
  if (forms.has(tool)) {
    fill(choose(tool), args);
    tell("The form contains the call from the link. Press Call to run it.");
  } else if (forms.has(named)) {
    choose(named);
  }
}

/** Says what happened; only to those who listen where the page shows it anyway. */
function tell(sentence, shown = false) {
  status.textContent = sentence;
  status.classList.toggle("unseen", shown);
}

async function copy(button) {
  const { tool, args, result } = answers.current;
  const texts = {
    call: () => JSON.stringify(message(revision, tool, args), null, 2),
    link: () => new URL(location.pathname + fragment(tool, args), location.href).href,
    content: () => (result?.content ?? []).map((block) => block.text ?? JSON.stringify(block)).join("\n"),
    structured: () => JSON.stringify(result?.structuredContent ?? null, null, 2),
  };
  const done = await copied(texts[button.dataset.copies]());
  const label = (button.dataset.label ??= button.textContent);
  button.textContent = done ? "Copied" : "The browser blocked copying";
  tell(`${button.textContent}.`, true);
  setTimeout(() => (button.textContent = label), COPIED_MILLISECONDS);
}

for (const form of forms.values()) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    callForm();
  });
  form.elements.arguments.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) callForm();
  });
  form.querySelector("[type=submit]").disabled = false;
}
for (const [name, surface] of surfaces) {
  const input = surface.querySelector(".token");
  if (!input) continue;
  input.value = sessionStorage.getItem(tokenKey(name)) ?? "";
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") callForm();
  });
}
trial.addEventListener("click", (event) => {
  const pressed = event.target.closest("a[data-tool], button");
  if (!pressed) return;
  if (pressed.matches("a[data-tool]")) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    choose(pressed.dataset.tool);
    history.pushState(null, "", pressed.getAttribute("href"));
  } else if (pressed.dataset.example) {
    fill(forms.get(chosen), JSON.parse(pressed.dataset.example));
  } else if (pressed.dataset.copies) {
    copy(pressed);
  } else if (pressed.dataset.shows) {
    const input = document.getElementById(pressed.dataset.shows);
    input.type = input.type === "password" ? "text" : "password";
    pressed.setAttribute("aria-pressed", String(input.type === "text"));
  }
});
addEventListener("popstate", (event) => {
  const number = event.state?.call;
  if (answers.all[number]) reopen(number);
  else fromAddress();
});
choose(chosen);
fromAddress();
