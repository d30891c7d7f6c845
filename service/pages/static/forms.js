// Forms to arguments and back. What a field means stands in its data-kind.

const WHOLE = /^[+-]?\d+$/;

/** The fields of a form, in order. */
export function fields(form) {
  return [...form.querySelectorAll("[data-kind]")];
}

/** {args, faults}: the arguments typed in, and [field, sentence] for each that cannot be sent. */
export function read(form) {
  const args = {};
  const faults = [];
  for (const field of fields(form)) {
    try {
      const value = READ[field.dataset.kind](field);
      if (value !== undefined) args[field.name] = value;
      else if (field.required) throw new Error(`${field.name} is required.`);
    } catch (fault) {
      faults.push([field, fault.message]);
    }
  }
  return { args, faults };
}

const READ = {
  text: (field) => field.value || undefined,
  choice: (field) => field.value || undefined,
  flag: (field) => (field.value ? field.value === "true" : undefined),
  number: readNumber,
  list: readList,
  object: readObject,
};

function readNumber(field) {
  const typed = field.value.trim();
  if (field.validity.badInput) throw new Error(`${field.name} is a whole number.`);
  if (!typed) return undefined;
  if (!WHOLE.test(typed)) throw new Error(`${field.name} is a whole number.`);
  const number = Number(typed);
  if (field.min && number < Number(field.min)) throw new Error(`${field.name} is at least ${field.min}.`);
  if (field.max && number > Number(field.max)) throw new Error(`${field.name} is at most ${field.max}.`);
  return number;
}

function readList(field) {
  const items = field.value.split(/[\n,]/).map((item) => item.trim()).filter(Boolean);
  return items.length ? items : undefined;
}

function readObject(field) {
  if (!field.value.trim()) return undefined;
  let value;
  try {
    value = JSON.parse(field.value);
  } catch (error) {
    throw new Error(`${field.name} is no JSON: ${error.message}.`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error(`${field.name} is a JSON object, such as {"folder": "inbox"}.`);
  }
  return value;
}

/** Puts arguments into a form and empties its other fields. Folded fields that got one unfold. */
export function fill(form, args) {
  fillTyped(form, Object.fromEntries(Object.entries(args).map(([name, value]) => [name, typed(value)])));
}

/** The same with values as they are typed in. */
export function fillTyped(form, values) {
  for (const field of fields(form)) {
    field.value = Object.hasOwn(values, field.name) ? values[field.name] : "";
    say(form, field, "");
    if (field.value && field.closest("details")) field.closest("details").open = true;
  }
}

function typed(value) {
  if (Array.isArray(value)) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Writes what is wrong under a field, or nothing. */
export function say(form, field, sentence) {
  form.querySelector(`#${CSS.escape(field.id)}-fault`).textContent = sentence;
  if (sentence) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

/** A call as the fragment of an address: `#search?query=quorum+elm`. */
export function fragment(tool, args) {
  const values = Object.entries(args).map(([name, value]) => [name, typed(value)]);
  return `#${tool}?${new URLSearchParams(values)}`;
}

/** The call in a fragment: [tool, typed values]. */
export function fromFragment(hash) {
  const [tool, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  return [tool, Object.fromEntries(new URLSearchParams(query))];
}
