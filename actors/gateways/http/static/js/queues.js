// Queues, where the supervisor has them: how much waits, how fast it goes.

import { el } from "./dom.js";
import { number, span } from "./words.js";

export function queues() {
  const rows = el("tbody");
  const node = el("section", { class: "card", hidden: true, "aria-labelledby": "queues-title" },
    el("header", {}, el("h2", { id: "queues-title" }, "Queues")),
    el("div", { class: "scroll" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...["Queue", "Waiting", "Running", "Done", "Average", "Throughput", "Time left"].map(
        (text, index) => el("th", { scope: "col", class: index ? "number" : "" }, text)))), rows)));

  function update(answer) {
    const all = answer?.queues ?? [];
    node.hidden = all.length === 0;
    rows.replaceChildren(...all.map(row));
  }

  return { node, update };
}

function row(queue) {
  const average = queue.avg_time ?? (queue.avg_time_ms === undefined ? 0 : queue.avg_time_ms / 1000);
  const eta = queue.eta ?? (queue.eta_ms === undefined ? 0 : queue.eta_ms / 1000);
  const running = queue.running ?? 0;
  const pace = queue.throughput_per_min ?? (average > 0 ? (60 / average) * Math.max(1, running) : 0);
  return el("tr", {},
    el("th", { scope: "row" }, el("bdi", {}, queue.queue_type ?? queue.queue ?? queue.name ?? "?")),
    figure(number(queue.pending ?? 0)), figure(number(running)), figure(number(queue.completed ?? queue.done ?? 0)),
    figure(average > 0 ? `${number(average)} s` : "–"), figure(pace > 0 ? `${number(pace)}/min` : "–"),
    figure(eta > 0 ? span(eta * 1000) : "–"));
}

const figure = (text) => el("td", { class: "number" }, String(text));
