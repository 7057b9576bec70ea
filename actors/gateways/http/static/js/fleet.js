// All workers at a glance.

import { button, ordersFor } from "./actions.js";
import { alerts } from "./alerts.js";
import { breakers } from "./breakers.js";
import { byId, el, mark, say } from "./dom.js";
import { feed } from "./feed.js";
import { gauge } from "./gauge.js";
import { queues } from "./queues.js";
import { rollouts } from "./rollouts.js";
import { mayOrder, nextAttempt, shown, state, tightest, uptime } from "./store.js";
import { timeline } from "./timeline.js";
import { count, elapsed, until } from "./words.js";

const STATUSES = ["failed", "crashed", "stopping", "starting", "paused", "stopped", "done", "scheduled", "healthy"];

export function fleet() {
  const parts = { alerts: alerts(), breakers: breakers(), rollouts: rollouts(), queues: queues(), timeline: timeline(), feed: feed() };
  const rows = new Map();
  const body = el("tbody");
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Show only" });
  const search = el("input", { type: "search", placeholder: "Find a worker", "aria-label": "Find a worker", oninput: () => update() });
  const none = el("p", { class: "empty", hidden: true });
  const trouble = el("p", { class: "trouble", role: "status", hidden: true });
  let only = null;
  const node = el("div", { class: "page" },
    parts.alerts.node,
    parts.breakers.node,
    parts.rollouts.node,
    trouble,
    el("section", { class: "card", "aria-labelledby": "workers-title" },
      el("header", {}, el("h1", { id: "workers-title" }, "Workers"), chips, search),
      el("table", { class: "workers" },
        el("thead", {}, el("tr", {}, ...["Worker", "Status", "Uptime", "Pid", "Job", "Restarts", ""].map(
          (text) => el("th", { scope: "col" }, text || el("span", { class: "unseen" }, "Commands"))))),
        body),
      none),
    el("section", { class: "card", "aria-labelledby": "timeline-title" },
      el("header", {}, el("h2", { id: "timeline-title" }, "Deaths and restarts"), parts.timeline.ranges),
      parts.timeline.node),
    parts.queues.node,
    el("section", { class: "card", "aria-labelledby": "feed-title" },
      el("header", {}, el("h2", { id: "feed-title" }, "Events")), parts.feed.node));

  function update() {
    const workers = [...state.workers.values()];
    showChips(workers);
    const wanted = workers.filter((worker) => (only === null || shown(worker) === only)
      && worker.component_id.toLowerCase().includes(search.value.trim().toLowerCase()));
    place(wanted);
    none.hidden = wanted.length > 0;
    say(none, workers.length === 0 ? (state.info === null ? "Loading …" : "There are no workers.") : "No worker matches.");
    showTrouble();
    parts.alerts.update(state.alerts);
    parts.breakers.update(state.breakers);
    parts.rollouts.update(state.rollouts);
    parts.queues.update(state.queues);
    parts.feed.update(state.feed);
    parts.timeline.update();
  }

  function place(workers) {
    const ids = new Set(workers.map((worker) => worker.component_id));
    for (const [id, each] of rows) if (!ids.has(id)) (each.node.remove(), rows.delete(id));
    workers.forEach((worker, index) => {
      const id = worker.component_id;
      if (!rows.has(id)) rows.set(id, row(id));
      const each = rows.get(id);
      if (body.children[index] !== each.node) body.insertBefore(each.node, body.children[index] ?? null);
      each.update(worker);
    });
  }

  function showChips(workers) {
    const counts = new Map(STATUSES.map((status) => [status, 0]));
    for (const worker of workers) counts.set(shown(worker), (counts.get(shown(worker)) ?? 0) + 1);
    if (only !== null && !counts.get(only)) only = null;
    const wanted = [...counts].filter(([, number]) => number > 0);
    const key = JSON.stringify([wanted, only]);
    if (chips.dataset.key === key) return;
    const focused = chips.contains(document.activeElement) ? document.activeElement.dataset.status : null;
    chips.dataset.key = key;
    chips.replaceChildren(...wanted.map(([status, number]) => el("button",
      { type: "button", "data-status": status, "aria-pressed": String(only === status), onclick: () => choose(status) },
      el("i", { class: "dot", "aria-hidden": "true" }), `${number} ${status}`)));
    if (focused) chips.querySelector(`[data-status="${focused}"]`)?.focus();
  }

  function choose(status) {
    only = only === status ? null : status;
    update();
  }

  function showTrouble() {
    const { degraded, unsaved, paused } = state.system;
    const texts = [];
    if (paused) texts.push("The whole system is paused.");
    if (degraded) texts.push(`The store is unavailable (${degraded}); ${count(unsaved, "record")} not persisted yet. Supervision continues from memory.`);
    trouble.hidden = texts.length === 0;
    say(trouble, texts.join(" "));
  }

  function tick() {
    for (const worker of state.workers.values()) rows.get(worker.component_id)?.tick(worker);
    parts.breakers.update(state.breakers);
    parts.timeline.tick();
  }

  return { node, update, tick, title: "Workers", close: () => parts.timeline.close(), focus: () => byId("content").focus() };
}

function row(id) {
  const status = el("span", { class: "status" });
  const note = el("span", { class: "note" });
  const uptimeCell = el("td", { class: "number", "data-label": "Uptime" });
  const pid = el("td", { class: "number", "data-label": "Pid" });
  const job = el("td", { "data-label": "Job", class: "job" });
  const budget = gauge();
  const orders = el("td", { class: "orders" });
  const node = el("tr", { "data-worker": id },
    el("th", { scope: "row" }, el("a", { href: `#/worker/${encodeURIComponent(id)}` }, el("bdi", {}, id))),
    el("td", { class: "state" }, el("i", { class: "dot", "aria-hidden": "true" }), status, note),
    uptimeCell, pid, job,
    el("td", { "data-label": "Restarts" }, budget.node), orders);
  let shownOrders = "";

  function update(worker) {
    const word = shown(worker);
    mark(node, "data-status", word);
    say(status, flagged(worker, word));
    say(pid, worker.pid === null ? "–" : String(worker.pid));
    say(job, worker.current_job === null ? "–" : String(worker.current_job));
    budget.update(tightest(worker.budget));
    const wanted = mayOrder() ? ordersFor(worker).slice(0, 2) : [];
    if (wanted.join() !== shownOrders) {
      shownOrders = wanted.join();
      orders.replaceChildren(...wanted.map((order) => button(order, id)));
    }
    tick(worker);
  }

  function tick(worker) {
    const lived = uptime(worker);
    say(uptimeCell, lived === null ? "–" : elapsed(lived));
    const text = noteOf(worker);
    say(note, text);
    mark(note, "title", text);
  }

  return { node, update, tick };
}

// Unhealthy and recovering are shown as healthy with a flag: the process is up.
export function flagged(worker, word = shown(worker)) {
  return word === "healthy" && worker.status && worker.status !== "healthy" ? `${word} (${worker.status})` : word;
}

// What happens next, or why nothing does.
export function noteOf(worker) {
  const next = nextAttempt(worker);
  if (next !== null) return `next attempt ${until(next)}` + (worker.last_error ? `: ${worker.last_error}` : "");
  if (worker.paused) return worker.pause_reason || (worker.pid === null ? "" : "paused");
  if (worker.pid !== null && worker.shown !== "stopping") return "";
  return ["stopped", "stopping"].includes(worker.why_code) ? "" : worker.why;
}
