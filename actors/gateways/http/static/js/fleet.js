// All workers at a glance.

import { button, ordersFor } from "./actions.js";
import { alerts } from "./alerts.js";
import { breakers, canaryOf } from "./breakers.js";
import { byId, el, mark, say } from "./dom.js";
import { feed } from "./feed.js";
import { figures } from "./figures.js";
import { budgetOf, gauge } from "./gauge.js";
import { CALM, grouped, groupRow, MOST_OPEN } from "./groups.js";
import { nodes } from "./nodes.js";
import { queues } from "./queues.js";
import { rollouts } from "./rollouts.js";
import { mayOrder, nextAttempt, shown, state, supervisorsNow, uptime } from "./store.js";
import { timeline } from "./timeline.js";
import { usages } from "./usages.js";
import { count, elapsed, number, until } from "./words.js";

const STATUSES = ["failed", "crashed", "stopping", "starting", "paused", "stopped", "done", "scheduled", "healthy"];
const COLUMNS = [
  { text: "Worker", key: "name" }, { text: "Status", key: "trouble" }, { text: "Uptime", key: "uptime" },
  { text: "CPU", key: "cpu" }, { text: "Memory", key: "memory" }, { text: "Pid" }, { text: "Job" },
  { text: "Restarts", key: "restarts" }, { text: "" }];

export function fleet(query = new URLSearchParams()) {
  const parts = { figures: figures(), alerts: alerts(), breakers: breakers(), rollouts: rollouts(), nodes: nodes(() => update()), queues: queues(), timeline: timeline(), feed: feed() };
  const rows = new Map();
  let order = "trouble";
  const inSight = new Set(); // the rows that the user sees: only their clocks continue
  const sight = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
    if (!isIntersecting) return inSight.delete(target);
    inSight.add(target);
    tickRow(target.dataset.worker);
  }), { rootMargin: "200px" });
  const heads = new Map(); // the row above the workers of a group
  const opened = new Map(); // which groups the user opened or closed
  const usage = usages(() => update(), () => rows.size > 0 || ["cpu", "memory"].includes(order));
  const body = el("tbody");
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Show only" });
  const search = el("input", { type: "search", placeholder: "Find a worker", "aria-label": "Find a worker", value: query.get("find") ?? "", oninput: () => update() });
  const none = el("p", { class: "empty", hidden: true });
  const trouble = el("p", { class: "trouble", role: "status", hidden: true });
  const headings = COLUMNS.map(heading);
  const table = el("table", { class: "workers" }, el("thead", {}, el("tr", {}, ...headings)), body);
  let only = null;
  let isReversed = false;
  const node = el("div", { class: "page" },
    parts.alerts.node,
    parts.breakers.node,
    parts.rollouts.node,
    trouble,
    parts.nodes.node,
    parts.figures.node,
    el("section", { class: "card", "aria-labelledby": "workers-title" },
      el("header", {}, el("h1", { id: "workers-title" }, "Workers"), chips, search),
      table,
      none),
    el("section", { class: "card", "aria-labelledby": "timeline-title" },
      el("header", {}, el("h2", { id: "timeline-title" }, "Deaths and restarts"), parts.timeline.ranges),
      parts.timeline.node),
    parts.queues.node,
    el("section", { class: "card", "aria-labelledby": "feed-title" },
      el("header", {}, el("h2", { id: "feed-title" }, "Events")), parts.feed.node));

  function heading({ text, key }) {
    if (!text) return el("th", { scope: "col" }, el("span", { class: "unseen" }, "Commands"));
    if (!key) return el("th", { scope: "col" }, text);
    return el("th", { scope: "col", "data-key": key },
      el("button", { type: "button", class: "sort", onclick: () => sortBy(key) }, text));
  }

  function sortBy(key) {
    isReversed = order === key && !isReversed;
    order = key;
    update();
  }

  function update() {
    const workers = [...state.workers.values()];
    showChips(workers);
    const word = search.value.trim().toLowerCase();
    const filtered = only !== null || word !== "";
    parts.nodes.update(state.nodes);
    const wanted = workers.filter((worker) => parts.nodes.has(worker) && (only === null || shown(worker) === only)
      && worker.component_id.toLowerCase().includes(word));
    headings.forEach((each) => mark(each, "aria-sort", each.dataset.key === order ? directionOf(order, isReversed) : null));
    place(grouped(wanted, order, usage.of, isReversed), filtered, workers.length);
    usage.look();
    table.classList.toggle("read-only", !mayOrder());
    none.hidden = wanted.length > 0;
    say(none, workers.length === 0 ? (state.info === null ? "Loading …" : "There are no workers.") : "No worker matches.");
    showTrouble();
    parts.figures.update(workers);
    parts.alerts.update(state.alerts);
    parts.breakers.update(state.breakers);
    parts.rollouts.update(state.rollouts);
    parts.queues.update(state.queues);
    parts.feed.update(state.feed);
    parts.timeline.update();
  }

  // Rows are updated and moved, not rebuilt; those of closed groups are not there at all.
  function place(groups, filtered, total) {
    const wanted = [];
    for (const group of groups) {
      const single = group.workers.length === 1 && !heads.has(group.name);
      const open = single || filtered || (opened.get(group.name) ?? (total <= MOST_OPEN || group.worst < CALM));
      if (!single) {
        if (!heads.has(group.name)) heads.set(group.name, groupRow(group.name, (now) => (opened.set(group.name, now), update())));
        heads.get(group.name).update(group, open);
        wanted.push(heads.get(group.name).node);
      }
      for (const worker of open ? group.workers : []) wanted.push(rowOf(worker, !single));
    }
    const kept = new Set(wanted);
    for (const [id, each] of rows) if (!kept.has(each.node)) (sight.unobserve(each.node), inSight.delete(each.node), each.node.remove(), rows.delete(id));
    for (const [name, each] of heads) if (!kept.has(each.node)) (each.node.remove(), heads.delete(name));
    let next = body.firstChild;
    for (const each of wanted) {
      if (each === next) next = next.nextSibling;
      else body.insertBefore(each, next);
    }
  }

  function rowOf(worker, isMember) {
    const id = worker.component_id;
    if (!rows.has(id)) {
      rows.set(id, row(id));
      sight.observe(rows.get(id).node);
    }
    rows.get(id).update(worker, usage.of(id), isMember);
    return rows.get(id).node;
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

  function tickRow(id) {
    const worker = state.workers.get(id);
    if (worker !== undefined) rows.get(id)?.tick(worker);
  }

  function tick() {
    for (const node of inSight) tickRow(node.dataset.worker);
    parts.breakers.update(state.breakers);
    parts.nodes.tick();
    parts.figures.update([...state.workers.values()]);
    parts.timeline.tick();
  }

  return { node, update, tick, title: "Workers", close: () => (usage.stop(), sight.disconnect(), parts.timeline.close()), focus: () => byId("content").focus() };
}

// Numbers begin with the largest, names with A, and trouble with the worst.
function directionOf(order, isReversed) {
  return ["restarts", "cpu", "memory"].includes(order) !== isReversed ? "descending" : "ascending";
}

// `worker:` stands before nearly every name: what differs stands out.
function nameOf(id) {
  const prefix = id.startsWith("worker:") ? "worker:" : "";
  return el("bdi", {}, prefix ? el("span", { class: "prefix" }, prefix) : null, id.slice(prefix.length));
}

function row(id) {
  const status = el("span", { class: "status" });
  const note = el("span", { class: "note" });
  const uptimeCell = el("td", { class: "number", "data-label": "Uptime" });
  const cpu = el("td", { class: "number", "data-label": "CPU" });
  const memory = el("td", { class: "number", "data-label": "Memory" });
  const place = el("bdi", { class: "place" });
  const pid = el("td", { class: "number", "data-label": "Pid" });
  const job = el("td", { "data-label": "Job", class: "job" });
  const budget = gauge();
  const orders = el("td", { class: "orders" });
  const node = el("tr", { "data-worker": id },
    el("th", { scope: "row" }, el("a", { href: `#/worker/${encodeURIComponent(id)}` }, nameOf(id)), place),
    el("td", { class: "state" }, el("i", { class: "dot", "aria-hidden": "true" }), status, note),
    uptimeCell, cpu, memory, pid, job,
    el("td", { "data-label": "Restarts" }, budget.node), orders);
  let shownOrders = "";
  let drawn = [];

  // Of a thousand workers few have changed: the others cost a comparison.
  function update(worker, used, isMember) {
    const now = [worker, worker.paused, worker.shown, worker.current_job, used, isMember, mayOrder()];
    if (now.every((each, index) => each === drawn[index])) return;
    drawn = now;
    draw(worker, used, isMember);
  }

  function draw(worker, used, isMember) {
    const word = shown(worker);
    mark(node, "data-status", word);
    mark(node, "data-member", isMember);
    say(cpu, typeof used?.cpu_percent === "number" ? `${number(used.cpu_percent)} %` : "–");
    say(memory, used ? `${number(used.memory_mb)} MB` : "–");
    say(status, flagged(worker, word));
    say(place, worker.node ?? "");
    say(pid, worker.pid === null ? "–" : String(worker.pid));
    say(job, worker.current_job === null ? "–" : String(worker.current_job));
    budget.update(budgetOf(worker));
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
  if (worker.shown === "scheduled" && worker.schedule) return nextRun(worker.schedule);
  const breaker = worker.pid === null && state.breakers.find(({ held }) => held.includes(worker.component_id));
  if (breaker) return `held back by breaker ${breaker.name}: ${breaker.why}; ${canaryOf(breaker)}`;
  if (worker.shown === "starting" && worker.not_ready?.length) return `not ready: ${worker.not_ready.join("; ")}`;
  if (worker.pid !== null && worker.shown !== "stopping") return "";
  return ["stopped", "stopping"].includes(worker.why_code) ? "" : worker.why;
}

// When it runs next, and how its latest run ended if that needs attention; its clock goes on.
function nextRun({ next_due_wall_ms: due, last, overdue }) {
  const next = `next run ${until(due - supervisorsNow())}`;
  if (overdue) return `${next}; overdue: ${last?.detail || "it has not succeeded for two periods"}`;
  return last?.state === "failed" ? `${next}; the latest one failed: ${last.detail}` : next;
}
