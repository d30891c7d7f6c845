// The arguments of a call: as JSON in a form, and in the fragment of an address.

/** {args, fault}: the arguments typed in, or a sentence why they cannot be sent. */
export function read(form) {
  const typed = form.elements.arguments.value;
  try {
    const args = JSON.parse(typed.trim() || "{}");
    if (args !== null && typeof args === "object" && !Array.isArray(args)) return { args, fault: "" };
    return { fault: 'The arguments must be a JSON object, such as {"query": "quorum elm"}.' };
  } catch (error) {
    return { fault: `The arguments are not valid JSON: ${error.message}.` };
  }
}

/** Puts arguments into a form. */
export function fill(form, args) {
  const field = form.elements.arguments;
  field.value = JSON.stringify(args, null, 2);
  say(form, field, "");
}

/** Writes what is wrong under a field, or nothing. */
export function say(form, field, sentence) {
  form.querySelector(`#${CSS.escape(field.id)}-fault`).textContent = sentence;
  if (sentence) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

/** A call as the fragment of an address. */
export function fragment(tool, args) {
  return `#${tool}?${new URLSearchParams({ arguments: JSON.stringify(args) })}`;
}

/** The call in a fragment: [tool, arguments]. Links of older releases have each argument as
    text, so their numbers and lists are refused until they are corrected. */
export function fromFragment(hash) {
  const [tool, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const values = Object.fromEntries(new URLSearchParams(query));
  try {
    return [tool, JSON.parse(values.arguments)];
  } catch {
    return [tool, values];
  }
}
