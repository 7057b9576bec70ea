// The cause of a death: the finding at once, the evidence when the user opens it.

import { get, Problem, worker as workerPath } from "./api.js";
import { el } from "./dom.js";

const FACTS = ["finding", "confidence", "detail", "pid", "job", "progress", "sent", "left", "oom_kills", "memory_limit_kb", "crash"];

// `newer` is the death in the row above: what was the same crash is not said again.
export function bundle(death, findings, newer) {
  const of = (one) => findings.find((each) => each.generation === one?.generation);
  const found = of(death);
  if (found === undefined) return null;
  const sentence = of(newer)?.crash === found.crash ? `The same crash as generation ${newer.generation}` : `${found.sentence} (${found.confidence})`;
  const evidence = el("div");
  const details = el("details", {}, el("summary", {}, el("bdi", {}, sentence)), evidence);
  details.addEventListener("toggle", () => details.open && evidence.childElementCount === 0 && show(death, evidence));
  return el("tr", { class: "bundle" }, el("td", { colspan: 7 }, details));
}

async function show(death, evidence) {
  try {
    const kept = await get(workerPath(death.component_id, "bundles", String(death.generation)));
    const facts = FACTS.filter((name) => kept[name] !== null && kept[name] !== undefined && String(kept[name]) !== "");
    evidence.replaceChildren(
      el("dl", { class: "facts" }, ...facts.map((name) => el("div", {}, el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, String(kept[name]))))),
      ...text("Last message", kept.last_words),
      ...text("Last output", (kept.output ?? []).map(([stream, line]) => `${stream} | ${line}`).join("\n")));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    evidence.replaceChildren(el("p", { class: "empty" }, problem.message));
  }
}

function text(title, content) {
  return content ? [el("h3", {}, title), el("pre", { class: "output" }, content)] : [];
}
