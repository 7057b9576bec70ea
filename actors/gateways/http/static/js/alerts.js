// Alerts, where the supervisor offers them (GET /api/v1/alerts); nothing is shown where it does not.

import { el } from "./dom.js";
import { moment } from "./words.js";

export function alerts() {
  const list = el("ul");
  const node = el("section", { class: "alerts", hidden: true, "aria-label": "Alerts" }, list);

  function update(answer) {
    const firing = (answer?.alerts ?? []).filter((alert) => (alert.state ?? "firing") === "firing");
    node.hidden = firing.length === 0;
    list.replaceChildren(...firing.map(line));
  }

  return { node, update };
}

function line(alert) {
  const since = alert.since_wall_ms ?? alert.at_wall_ms;
  return el("li", { "data-severity": alert.severity ?? "warning" },
    el("strong", {}, el("bdi", {}, alert.name ?? alert.rule ?? "alert")),
    alert.component_id ? el("a", { href: `#/worker/${encodeURIComponent(alert.component_id)}` }, el("bdi", {}, alert.component_id)) : null,
    el("span", {}, el("bdi", {}, alert.message ?? alert.summary ?? "")),
    since ? el("time", {}, `since ${moment(since)}`) : null);
}
