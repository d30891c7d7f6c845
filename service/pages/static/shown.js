// Text of an answer as nodes. All of it goes in as text: nothing a record says becomes markup.

const MARKS = /(<\/?mark>)/;
const FENCE = /^<<<([0-9a-f]+) untrusted/;

export function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** A text with what stands between <mark> and </mark> highlighted. */
export function highlighted(text) {
  const shown = document.createDocumentFragment();
  let open = false;
  for (const piece of text.split(MARKS)) {
    if (piece === "<mark>") open = true;
    else if (piece === "</mark>") open = false;
    else if (piece) shown.append(open ? element("mark", "", piece) : piece);
  }
  return shown;
}

/** A text block of content[], with the text of records set off where the server fenced it. */
export function prose(text) {
  const shown = element("pre", "channel");
  let plain = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const opening = FENCE.exec(lines[at]);
    const end = opening ? lines.indexOf(`${opening[1]}>>>`, at) : -1;
    if (end < 0) {
      plain.push(lines[at]);
      continue;
    }
    if (plain.length) shown.append(highlighted(`${plain.join("\n")}\n`));
    shown.append(element("span", "fenced", highlighted(lines.slice(at, end + 1).join("\n"))));
    plain = [];
    at = end;
  }
  if (plain.length) shown.append(highlighted(plain.join("\n")));
  return shown;
}

/** A JSON value, indented, its names set apart from its values. */
export function indented(value) {
  const shown = element("pre", "channel");
  write(value, "", shown);
  return shown;
}

function write(value, indent, into) {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    writeMany(value.map((item) => ["", item]), "[", "]", indent, into);
  } else if (value !== null && typeof value === "object") {
    writeMany(Object.entries(value).map(([name, item]) => [JSON.stringify(name), item]), "{", "}", indent, into);
  } else {
    into.append(highlighted(JSON.stringify(value)));
  }

  function writeMany(items, opening, closing) {
    if (!items.length) return into.append(opening + closing);
    into.append(opening);
    items.forEach(([name, item], index) => {
      into.append(`${index ? "," : ""}\n${inner}`);
      if (name) into.append(element("span", "name", name), ": ");
      write(item, inner, into);
    });
    return into.append(`\n${indent}${closing}`);
  }
}
