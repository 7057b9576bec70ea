// The queues, if the supervisor has any: their figures and throughput.

import { el } from "./dom.js";
import { number, span } from "./words.js";

export function queues() {
  const rows = el("tbody");
  const node = el("section", { class: "card", hidden: true, "aria-labelledby": "queues-title" },
    el("header", {}, el("h2", { id: "queues-title" }, "Queues")),
    el("div", { class: "scroll" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...["Queue", "Waiting", "Running", "Done", "Toxic", "Average", "Throughput", "Time left"].map(
        (text, index) => el("th", { scope: "col", class: index ? "number" : "" }, text)))), rows)));

  function update(all) {
    node.hidden = all.size === 0;
    rows.replaceChildren(...[...all.values()].map(row));
  }

  return { node, update };
}

function row(queue) {
  const average = queue.avg_time ?? 0;
  const done = pace(queue.past);
  return el("tr", {},
    el("th", { scope: "row" }, el("bdi", {}, queue.queue_type)),
    figure(number(queue.pending)), figure(number(queue.running)), figure(number(queue.completed)),
    figure(number(queue.toxic ?? 0)),
    figure(average > 0 ? `${number(average)} s` : "–"), figure(done > 0 ? `${number(done)}/min` : "–"),
    figure(queue.eta > 0 ? span(queue.eta * 1000) : "–"));
}

// Recent jobs per minute, as this page measured them.
function pace(past) {
  const [first, last] = [past[0], past[past.length - 1]];
  const minutes = (last.at - first.at) / 60_000;
  return minutes < 0.05 ? 0 : Math.max(0, last.completed - first.completed) / minutes;
}

const figure = (text) => el("td", { class: "number" }, String(text));
