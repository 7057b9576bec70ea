// The workers of one table of the file together: `api 58/60`, trouble first.

import { groupButton, ordersForAll } from "./actions.js";
import { el, mark, say } from "./dom.js";
import { mayOrder, nextAttempt, shown, state, uptime } from "./store.js";

export const MOST_OPEN = 30; // with more workers, groups without trouble are closed at first
export const CALM = 4; // the rank of a status that needs no attention

const RANKS = { failed: 0, crashed: 1, stopping: 2, starting: 3 };
const IN_ROWS = ["restart", "pause", "resume"];
const UP = new Set(["healthy", "done", "scheduled"]);

export function rank(worker) {
  return RANKS[shown(worker)] ?? CALM;
}

// `worker:api:3` belongs to `api`; any other name stands for itself.
export function groupOf(id) {
  const parts = id.split(":");
  return parts.length > 2 && parts[0] === "worker" && /^\d+$/.test(parts.at(-1)) ? parts.slice(1, -1).join(":") : id;
}

const collator = new Intl.Collator("en", { numeric: true });

// Names are compared again only if others came: a thousand of them take longer than everything else.
let places = new Map();

function placesOf(names) {
  if (places.size !== names.size || [...names].some((name) => !places.has(name))) {
    places = new Map([...names].sort(collator.compare).map((name, index) => [name, index]));
  }
  return places;
}

const KEYS = {
  name: () => 0,
  trouble: (worker) => rank(worker),
  uptime: (worker) => uptime(worker) ?? Infinity,
  restarts: (worker) => -worker.restart_count,
  cpu: (worker, used) => -(used?.cpu_percent ?? -1),
  memory: (worker, used) => -(used?.memory_mb ?? -1),
};

// The groups and their workers in the order of this column; equal ones by name.
export function grouped(workers, order, usageOf, isReversed = false) {
  const groups = new Map();
  const names = placesOf(new Set(workers.flatMap(({ component_id: id }) => [id, groupOf(id)])));
  const compare = (a, b) => turn * (names.get(a) - names.get(b));
  const turn = isReversed ? -1 : 1;
  for (const worker of workers) {
    const name = groupOf(worker.component_id);
    if (!groups.has(name)) groups.set(name, { name, workers: [], worst: CALM, key: null });
    const group = groups.get(name);
    const key = KEYS[order](worker, usageOf(worker.component_id));
    group.workers.push({ worker, key });
    group.worst = Math.min(group.worst, rank(worker));
    group.key = group.key === null ? key : turn * Math.min(turn * group.key, turn * key); // its first worker
  }
  const found = [...groups.values()].sort((a, b) => turn * distance(a.key, b.key) || compare(a.name, b.name));
  for (const group of found) {
    group.workers.sort((a, b) => turn * distance(a.key, b.key) || compare(a.worker.component_id, b.worker.component_id));
    group.workers = group.workers.map((each) => each.worker);
  }
  return found;
}

// Two that have no value are equal.
function distance(a, b) {
  return a === b ? 0 : a - b;
}

export function groupRow(name, choose) {
  const arrow = el("span", { class: "arrow", "aria-hidden": "true" });
  const toggle = el("button", { type: "button", class: "group-name", onclick: () => choose(toggle.getAttribute("aria-expanded") !== "true") },
    arrow, el("bdi", {}, name));
  const counted = el("span", { class: "group-count" });
  const note = el("span", { class: "note" });
  const orders = el("td", { class: "orders" });
  const node = el("tr", { class: "group", "data-group": name },
    el("th", { scope: "rowgroup", colspan: 8 }, toggle, el("i", { class: "dot", "aria-hidden": "true" }), counted, note), orders);
  const all = () => [...state.workers.values()].filter((worker) => groupOf(worker.component_id) === name); // also those that a filter hides
  let shownOrders = "";

  function update({ workers, worst }, open) {
    const wanted = mayOrder() ? ordersForAll(workers).filter((order) => IN_ROWS.includes(order)).slice(0, 2) : [];
    if (wanted.join() !== shownOrders) {
      shownOrders = wanted.join();
      orders.replaceChildren(...wanted.map((order) => groupButton(order, name, all)));
    }
    mark(toggle, "aria-expanded", String(open));
    mark(node, "data-status", Object.keys(RANKS).find((word) => RANKS[word] === worst) ?? "healthy");
    const up = workers.filter((worker) => UP.has(shown(worker))).length;
    say(counted, `${up}/${workers.length} up`);
    say(note, troubles(workers));
  }

  return { node, update };
}

function troubles(workers) {
  const counts = new Map();
  for (const worker of workers) if (rank(worker) < CALM) counts.set(shown(worker), (counts.get(shown(worker)) ?? 0) + 1);
  const soon = workers.map(nextAttempt).filter((left) => left !== null).length;
  const words = Object.keys(RANKS).filter((word) => counts.has(word)).map((word) => `${counts.get(word)} ${word}`);
  return words.join(", ") + (soon ? ` · ${soon} to be restarted` : "");
}
