// The alerts that are not acknowledged; acknowledged ones are only counted.

import { acknowledge } from "./actions.js";
import { el } from "./dom.js";
import { mayOrder } from "./store.js";
import { count, moment } from "./words.js";

const MOST = 4;

export function alerts() {
  const list = el("ul");
  const more = el("p", { class: "more" });
  const node = el("section", { class: "alerts", hidden: true, "aria-label": "Alerts" }, list, more);
  let drawn = "";

  function update(answer) {
    const key = JSON.stringify([answer, mayOrder()]);
    if (key === drawn) return;
    drawn = key;
    const active = (answer?.alerts ?? []).filter((alert) => alert.resolved_at_wall_ms === null);
    const loud = active.filter((alert) => alert.acknowledged_at_wall_ms === null);
    const others = [
      loud.length > MOST ? `${count(loud.length - MOST, "more alert")}` : "",
      active.length > loud.length ? `${count(active.length - loud.length, "acknowledged alert")}` : "",
    ].filter(Boolean);
    node.hidden = loud.length + others.length === 0;
    list.replaceChildren(...loud.slice(0, MOST).map(line));
    more.textContent = others.join(" · ");
  }

  return { node, update };
}

function line(alert) {
  const times = alert.occurrences > 1 ? ` (${alert.occurrences} times)` : "";
  return el("li", { "data-severity": alert.severity, "data-alert": alert.id },
    el("strong", {}, alert.severity),
    alert.component_id ? el("a", { href: `#/worker/${encodeURIComponent(alert.component_id)}` }, el("bdi", {}, alert.component_id)) : null,
    el("span", {}, el("bdi", {}, alert.message), times),
    el("time", { datetime: new Date(alert.opened_at_wall_ms).toISOString() }, `${alert.escalated ? "escalated, " : ""}since ${moment(alert.opened_at_wall_ms)}`),
    mayOrder() ? el("button", { type: "button", "aria-label": `Acknowledge: ${alert.message}`, onclick: () => acknowledge(alert.id) }, "Acknowledge") : null);
}
