// Used restarts against the budget: a pip for each allowed restart, or a bar if there are many.

import { el, mark, say } from "./dom.js";
import { tightest } from "./store.js";
import { count } from "./words.js";

const MOST_PIPS = 10;

export function gauge() {
  const track = el("span", { class: "gauge-track", "aria-hidden": "true" });
  const text = el("span", { class: "gauge-text" });
  const node = el("span", { class: "gauge", role: "meter", "aria-valuemin": 0 }, track, text);
  let drawn = "";

  function update({ used, most, what }) {
    const key = `${used}/${most}/${what}`;
    if (key === drawn) return;
    drawn = key;
    const sentence = most === null ? `${count(used, "restart")}, no limit` : `${used} of ${most} restarts ${what}`;
    mark(node, "title", sentence);
    mark(node, "aria-label", sentence);
    mark(node, "aria-valuenow", Math.min(used, most ?? used));
    mark(node, "aria-valuemax", most ?? Math.max(used, 1));
    mark(node, "data-level", level(used, most));
    say(text, most === null ? `${used}` : `${used}/${most}`);
    track.replaceChildren(...(most === null ? [] : most <= MOST_PIPS ? pips(used, most) : bar(used, most)));
  }

  return { node, update };
}

// The limit that a worker is nearest to. One that was given up has none any more: its window passes, as in `rekindle status`.
export function budgetOf(worker) {
  return worker.shown === "failed" ? { used: worker.restart_count, most: null, what: "in all" } : tightest(worker.budget);
}

function level(used, most) {
  if (most === null || used === 0) return "none";
  if (used >= most) return "spent";
  return used / most >= 0.6 ? "high" : "some";
}

function pips(used, most) {
  return Array.from({ length: most }, (_, index) => el("i", { class: index < used ? "pip on" : "pip" }));
}

function bar(used, most) {
  const meter = el("i", { class: "fill" });
  meter.style.width = `${Math.min(100, (used / most) * 100)}%`;
  return [el("i", { class: "long" }, meter)];
}
