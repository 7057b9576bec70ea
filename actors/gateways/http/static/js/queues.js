// The queues, if the supervisor has any: their figures and throughput.

import { el } from "./dom.js";
import { queueButton } from "./job_actions.js";
import { mayOrder } from "./store.js";
import { number, span } from "./words.js";

const COLUMNS = ["Queue", "Waiting", "Running", "Done", "Errors", "Toxic", "Average", "Throughput", "Time left"];

// With `commands`, which is called after one, each queue can be paused; `link` leads to its jobs.
export function queues({ commands = null, link = (name) => `#/jobs?${new URLSearchParams({ queue: name })}` } = {}) {
  const rows = el("tbody");
  const last = el("th", { scope: "col" }, el("span", { class: "unseen" }, "Commands"));
  const node = el("section", { class: "card", hidden: true, "aria-labelledby": "queues-title" },
    el("header", {}, el("h2", { id: "queues-title" }, "Queues")),
    el("div", { class: "scroll" }, el("table", { class: "plain queues" },
      el("thead", {}, el("tr", {}, ...COLUMNS.map(
        (text, index) => el("th", { scope: "col", class: index ? "number" : "" }, text)), commands ? last : null)), rows)));
  let drawn = "";

  function update(all) {
    node.hidden = all.size === 0;
    const lines = [...all.values()].sort((a, b) => (a.queue_type < b.queue_type ? -1 : 1));
    const key = JSON.stringify([lines.map(cells), lines.map(({ paused }) => paused), mayOrder()]);
    if (key === drawn) return;
    drawn = key;
    const focused = rows.contains(document.activeElement) ? document.activeElement.getAttribute("data-queue") : null;
    rows.replaceChildren(...lines.map(row));
    if (focused) [...rows.querySelectorAll("[data-queue]")].find((each) => each.dataset.queue === focused)?.focus();
  }

  function row(queue) {
    const order = commands && mayOrder() ? queueButton(queue, commands) : null;
    order?.setAttribute("data-queue", `${queue.queue_type} order`);
    return el("tr", {},
      el("th", { scope: "row" }, el("a", { href: link(queue.queue_type), "data-queue": queue.queue_type }, el("bdi", {}, queue.queue_type)),
        queue.paused ? el("span", { class: "note" }, "paused") : null),
      ...cells(queue).map((text, index) => el("td", { class: "number", "data-label": COLUMNS[index + 1] }, text)), commands ? el("td", { class: "orders" }, order) : null);
  }

  return { node, update };
}

function cells(queue) {
  const average = queue.avg_time ?? 0;
  const done = pace(queue.past);
  return [number(queue.pending), number(queue.running), number(queue.completed), number(queue.errors ?? 0), number(queue.toxic ?? 0),
    average > 0 ? `${number(average)} s` : "–", done > 0 ? `${number(done)}/min` : "–",
    queue.eta > 0 ? span(queue.eta * 1000) : "–"].map(String);
}

// Recent jobs per minute, as this page measured them.
function pace(past) {
  const [first, last] = [past[0], past[past.length - 1]];
  const minutes = (last.at - first.at) / 60_000;
  return minutes < 0.05 ? 0 : Math.max(0, last.completed - first.completed) / minutes;
}
