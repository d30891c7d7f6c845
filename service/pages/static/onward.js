// What an answer says to call next. Only what the server says is read, never what a record holds.

const SPELLED = /^([a-z_]+) (\{.*\})$/s;
const HANDLE = /^[^/]+\/[^:]+:.+$/s;
const SHOWN_CHARS = 44;
const PREVIEWS = ["evidence_preview", "snippet_markdown", "excerpt_markdown", "preview_text"];
const TITLES = ["title", "heading", "value", "field_path"];

/**
 * The calls of an answer in groups: [{id, title, preview, steps: [{tool, args, why}]}].
 * The first group, without an id, is about the answer as a whole. `tools` are those known here.
 * `about` is the record or paper that all of the answer is about, where it is about one.
 */
export function onward(structured, tools) {
  const found = new Map([["", { id: "", title: "", preview: "", steps: [], ids: [] }]]);
  walk(structured, found.get(""), { found, tools, path: "" });
  const about = structured?.paper_id ?? structured?.record?.id ?? structured?.id;
  for (const group of found.values()) {
    group.about = about;
    for (const step of group.ids) add(group, step);
  }
  return [...found.values()].filter((group) => group.steps.length);
}

function walk(value, group, at) {
  if (Array.isArray(value)) {
    value.forEach((item, index) => walk(item, grouped(item, index, group, at), { ...at, path: `${at.path}/${index}` }));
  } else if (value !== null && typeof value === "object") {
    if (isCall(value, at.tools)) add(group, value);
    else members(value, group, at);
  }
}

function members(value, group, at) {
  if (group.id || group.title) describe(group, value);
  for (const [name, member] of Object.entries(value)) {
    if (value.object === "record" && name === "data") continue;
    if (at.path === "/metadata" && /^(next|more)_/.test(name)) spelled(member, name, group, at);
    else walk(member, group, { ...at, path: `${at.path}/${name}` });
  }
  if (at.path && value.object !== "record") identified(value, group, at);
}

/** The group of an item of a list: its own where the list is one of the answer, else the same. */
function grouped(item, index, group, at) {
  if (group !== at.found.get("") || item === null || typeof item !== "object" || isCall(item, at.tools)) {
    return group;
  }
  const id = item.id ?? item.paper_id;
  const key = typeof id === "string" ? id : `${at.path}/${index}`;
  if (!at.found.has(key)) {
    at.found.set(key, { id: typeof id === "string" ? id : "", title: titled(item), preview: "", steps: [], ids: [] });
  }
  return at.found.get(key);
}

function titled(item) {
  const name = TITLES.find((each) => typeof item[each] === "string" && item[each]);
  return name ? item[name] : "";
}

function describe(group, value) {
  const name = PREVIEWS.find((each) => typeof value[each] === "string");
  if (name && !group.preview) group.preview = value[name];
  group.title ||= titled(value);
}

/** An id that a record or a paper is fetched by: offered after what the server offers. */
function identified(value, group, at) {
  if (typeof value.id === "string" && HANDLE.test(value.id) && at.tools.has("fetch")) {
    group.ids.push({ tool: "fetch", args: { id: value.id }, why: "fetch" });
  }
  if (typeof value.paper_id === "string" && at.tools.has("get_paper_metadata")) {
    group.ids.push({ tool: "get_paper_metadata", args: { paper_id: value.paper_id }, why: "metadata" });
  }
}

function spelled(text, name, group, at) {
  const parts = SPELLED.exec(text);
  if (!parts || !at.tools.has(parts[1])) return;
  try {
    add(group, { tool: parts[1], args: JSON.parse(parts[2]), why: name });
  } catch {
    // Not a call after all: the text stands in the answer as it is.
  }
}

function isCall(value, tools) {
  return tools.has(value.tool) && value.args !== null && typeof value.args === "object";
}

function add(group, { tool, args, why }) {
  const key = `${tool} ${JSON.stringify(args)}`;
  if (group.steps.every((step) => step.key !== key)) group.steps.push({ key, tool, args, why: why ?? "call" });
}

/** What a step does, in a word or two: `next_match` is "Next match". */
export function purpose(why) {
  const words = why.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** What is particular about a step: its tool where that is another, and arguments that differ. */
export function particular(step, group, asked) {
  const same = step.tool === asked.tool;
  const parts = Object.entries(step.args)
    .filter(([name, value]) => value !== group.id && value !== group.about && !(same && equal(value, asked.args[name])))
    .map(([name, value]) => `${name}=${short(value)}`);
  return (same || step.tool === step.why ? parts : [step.tool, ...parts]).join(" ");
}

function equal(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const characters = [...text];
  return characters.length > SHOWN_CHARS ? `${characters.slice(0, SHOWN_CHARS - 1).join("")}…` : text;
}
