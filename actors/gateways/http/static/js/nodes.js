// The nodes of the cluster: their states, how long their leases last, how many workers they have. One that is
// pressed narrows the list of workers to its own.

import { el, mark, say } from "./dom.js";
import { askWorkers, state } from "./store.js";
import { count, elapsed } from "./words.js";

const NEWS_MS = 2_000; // no event tells of a renewed lease, nor of a worker elsewhere

export function nodes(changed) {
  const node = el("div", { class: "nodes", role: "group", "aria-label": "Nodes", hidden: true });
  const cards = new Map();
  let only = null;
  let askedAt = 0;

  function update(known) {
    node.hidden = known.length === 0;
    const names = known.map((each) => each.name);
    if (only !== null && !names.includes(only)) only = null;
    for (const [name, each] of cards) if (!names.includes(name)) (each.node.remove(), cards.delete(name));
    for (const each of known) {
      if (!cards.has(each.name)) cards.set(each.name, card(each.name, () => choose(each.name)));
      if (cards.get(each.name).node.parentNode === null) node.append(cards.get(each.name).node);
      cards.get(each.name).update(each, only === each.name);
    }
  }

  function choose(name) {
    only = only === name ? null : name;
    changed();
  }

  function tick() {
    if (state.nodes.length === 0) return;
    const now = performance.now();
    if (state.connection === "live" && now - askedAt > NEWS_MS) {
      askedAt = now;
      askWorkers().then(changed, () => {}); // a lost connection is told elsewhere
    }
    state.nodes.forEach((each) => cards.get(each.name)?.tick(each));
  }

  return { node, update, tick, has: (worker) => only === null || worker.node === only };
}

function card(name, choose) {
  const word = el("span", { class: "node-state" });
  const lease = el("progress", { max: "1", value: "0", "aria-label": `Lease of ${name}` });
  const left = el("span", { class: "node-lease" });
  const workers = el("span", { class: "node-workers" });
  const why = el("bdi", { class: "node-why" });
  const node = el("button", { type: "button", class: "node", "data-node": name, onclick: choose },
    el("span", { class: "node-head" }, el("i", { class: "dot", "aria-hidden": "true" }), el("strong", {}, el("bdi", {}, name)), word),
    lease, el("span", { class: "node-figures" }, workers, left), why);
  let longest = 1; // the longest lease that was seen: the length of the whole bar

  function update(each, isChosen) {
    mark(node, "data-state", each.state);
    mark(node, "aria-pressed", String(isChosen));
    say(word, each.leads ? `${each.state}, leads` : each.state);
    say(workers, count(each.workers, "worker"));
    say(why, [each.why, each.by ? `(${each.by})` : "", newsOf(each)].filter(Boolean).join(" "));
    longest = Math.max(longest, each.lease_left_ms ?? 0);
    tick(each);
  }

  function tick(each) {
    const leftMs = each.lease_left_ms === null ? null : Math.max(0, each.lease_left_ms - (performance.now() - each.at));
    lease.hidden = leftMs === null;
    lease.value = leftMs === null ? 0 : leftMs / longest;
    say(left, leftMs === null ? "no lease" : `${(leftMs / 1000).toFixed(1)} s`);
  }

  return { node, update, tick };
}

// What is shown of its workers is not live on another node: say so when it is old.
function newsOf(each) {
  if (each.is_own) return "this node";
  return each.age_ms !== null && each.age_ms > 5_000 ? `last heard ${elapsed(each.age_ms)} ago` : "";
}
