// The answers of this visit: the one on show, and the trail of calls that led there.

import { cost } from "./calls.js";
import { onward, particular, purpose } from "./onward.js";
import { element, highlighted, indented, prose } from "./shown.js";

/** Of a long answer the rest is folded, so that the text stays near. */
const RUNGS_SHOWN = 4;

/** Where the answer stands below the form. The same width as in the stylesheet. */
const NARROW = matchMedia("(max-width: 50rem)");

const place = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");

export class Answers {
  /** `tools` are the names of those known here; `follow` and `reopen` are what buttons do. */
  constructor(tools, { follow, reopen }) {
    this.all = [];
    this.shown = -1;
    this.tools = tools;
    this.follow = follow;
    this.reopen = reopen;
  }

  get current() {
    return this.all[this.shown];
  }

  /** Keeps an answer and gives back its number. */
  add(answer) {
    const { result } = answer;
    const text = (result?.content ?? []).map((block) => block.text ?? JSON.stringify(block)).join("");
    const structured = result?.structuredContent === undefined ? "" : JSON.stringify(result.structuredContent);
    this.all.push({ ...answer, costs: { content: cost(text), structured: cost(structured) } });
    return this.all.length - 1;
  }

  /** Shows an answer and moves the focus to its heading; returns a sentence about it. */
  show(index) {
    this.shown = index;
    const answer = this.current;
    const outcome = answer.refusal ? "was refused" : answer.result.isError ? "answered with an error" : "answered";
    place("answer-heading").replaceChildren(element("code", "", answer.tool), ` ${outcome}`);
    place("answer-heading").classList.toggle("bad", outcome !== "answered");
    place("asked").replaceChildren(element("code", "", `${answer.tool} ${JSON.stringify(answer.args)}`));
    place("facts").replaceChildren(...facts(answer).map((fact) => element("li", "", ...fact)));
    this.showSteps(answer);
    this.showChannels(answer);
    this.showTrail();
    place("beginning").hidden = true;
    place("answer").hidden = false;
    place("answer-heading").focus({ preventScroll: true });
    place("answer-heading").scrollIntoView({ block: NARROW.matches ? "start" : "nearest" });
    return `${answer.tool} ${outcome} in ${duration(answer)}, ${bytes(answer.costs.content)} of text.`;
  }

  showSteps(answer) {
    const groups = onward(answer.result?.structuredContent ?? null, this.tools).map((group) => ({
      ...group,
      steps: group.steps.filter((step) => !isSame(step, answer)),
    }));
    const kept = groups.filter((group) => group.steps.length);
    const rungs = kept.map((group, index) => this.rung(group, index, answer));
    place("rungs").replaceChildren(...rungs.slice(0, RUNGS_SHOWN));
    place("more-rungs").replaceChildren(...rungs.slice(RUNGS_SHOWN));
    place("more").hidden = rungs.length <= RUNGS_SHOWN;
    place("more").open = false;
    place("more-count").textContent = `${rungs.length - RUNGS_SHOWN} more`;
    place("onward").hidden = !kept.length;
  }

  rung(group, index, answer) {
    const item = element("li", group.title || group.preview ? "" : "bare");
    const name = element("p", "rung-name");
    name.id = `rung-${index}`;
    if (group.title) name.append(element("strong", "", highlighted(group.title)), " ");
    if (group.id && group.id !== group.title) name.append(element("code", "quiet", group.id));
    if (name.childNodes.length) item.append(name);
    if (group.preview && group.preview !== group.title) {
      item.append(element("p", "preview", highlighted(group.preview)));
    }
    const steps = group.steps.map((step) => {
      const button = element("button", "step", element("b", "", purpose(step.why)));
      const more = particular(step, group, answer);
      if (more) button.append(" ", element("code", "", more));
      button.type = "button";
      button.dataset.why = step.why;
      button.dataset.calls = step.tool;
      if (name.childNodes.length) button.setAttribute("aria-describedby", name.id);
      button.addEventListener("click", () => this.follow(step));
      return button;
    });
    item.append(element("div", "steps", ...steps));
    return item;
  }

  showChannels(answer) {
    const { result, refusal, costs } = answer;
    place("refusal").hidden = !refusal;
    place("result").hidden = Boolean(refusal);
    if (refusal) {
      const raw = answer.raw ? [element("pre", "channel", answer.raw)] : [];
      place("refusal").replaceChildren(refused(refusal), ...raw);
      return;
    }
    place("content-cost").textContent = told(costs.content);
    place("structured-cost").textContent = told(costs.structured);
    const blocks = (result.content ?? []).map((block) => (block.type === "text" ? prose(block.text) : indented(block)));
    place("content").replaceChildren(...blocks);
    place("structured").replaceChildren(indented(result.structuredContent ?? null));
  }

  showTrail() {
    const items = this.all.map((answer, index) => {
      const button = element("button", "link", element("code", "", line(answer)));
      button.type = "button";
      button.addEventListener("click", () => this.reopen(index));
      const said = answer.refusal || answer.result.isError ? "error" : bytes(answer.costs.content);
      const item = element("li", index === this.shown ? "current" : "", button, element("div", "quiet small", said));
      if (index === this.shown) button.setAttribute("aria-current", "true");
      return item;
    });
    place("calls").replaceChildren(...items);
    place("trail").hidden = false;
  }
}

function facts(answer) {
  const { content, structured } = answer.costs;
  const failed = answer.result?.isError === true;
  return [
    ["HTTP ", element("b", answer.status === 200 ? "" : "bad", answer.status ? String(answer.status) : "none")],
    ["isError ", element("b", failed ? "bad" : "", answer.refusal ? "no result" : String(failed))],
    ["took ", element("b", "", duration(answer))],
    ...(answer.refusal ? [] : [["both channels ", element("b", "", bytes({ bytes: content.bytes + structured.bytes }))]]),
  ];
}

function refused({ message, hint, code }) {
  const note = element("div", "note wrong", element("p", "", message));
  if (hint) note.append(element("p", "", hint));
  if (code?.startsWith("origin_not_allowed")) {
    note.append(element("p", "", "The origin of this page is ", element("code", "", location.origin), "."));
  }
  if (code) note.append(element("p", "quiet small", element("code", "", code)));
  return note;
}

function told(costs) {
  return `${bytes(costs)}, about ${number.format(costs.tokens)} tokens`;
}

function bytes(costs) {
  return `${number.format(costs.bytes)} bytes`;
}

function duration({ milliseconds }) {
  return milliseconds < 10 ? `${milliseconds.toFixed(1)} ms` : `${number.format(Math.round(milliseconds))} ms`;
}

function line({ tool, args }) {
  const text = `${tool} ${JSON.stringify(args)}`;
  return text.length > 140 ? `${text.slice(0, 139)}…` : text;
}

function isSame(step, answer) {
  return step.tool === answer.tool && JSON.stringify(step.args) === JSON.stringify(answer.args);
}
