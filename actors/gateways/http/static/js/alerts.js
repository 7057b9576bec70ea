// The alerts, those of one cause together: every one can be reached and acknowledged, and none jumps,
// since causes keep the order in which they began.

import { acknowledge } from "./actions.js";
import { el, mark, say } from "./dom.js";
import { groupOf } from "./groups.js";
import { mayOrder } from "./store.js";
import { count, moment } from "./words.js";

const MOST = 4; // causes shown before the user asks for all
const SEVERITIES = ["critical", "warning", "info"];

export function alerts() {
  const list = el("ul");
  const all = el("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => toggle("all") });
  const noted = el("button", { type: "button", class: "link", "aria-expanded": "false", onclick: () => toggle("noted") });
  const more = el("p", { class: "more" }, all, noted);
  const node = el("section", { class: "alerts", hidden: true, "aria-label": "Alerts" }, list, more);
  const lines = new Map();
  const open = { all: false, noted: false };
  let latest = null;

  function toggle(which) {
    open[which] = !open[which];
    update(latest);
  }

  function update(answer) {
    latest = answer;
    const active = (answer?.alerts ?? []).filter((alert) => alert.resolved_at_wall_ms === null);
    const loud = causes(active.filter((alert) => alert.acknowledged_at_wall_ms === null));
    const quiet = active.filter((alert) => alert.acknowledged_at_wall_ms !== null);
    node.hidden = active.length === 0;
    place([...(open.all ? loud : loud.slice(0, MOST)), ...(open.noted ? causes(quiet, "noted ") : [])]);
    show(all, loud.length > MOST, open.all, open.all ? "Show fewer" : count(loud.length - MOST, "more cause"));
    show(noted, quiet.length > 0, open.noted, count(quiet.length, "acknowledged alert"));
    more.hidden = all.hidden && noted.hidden;
  }

  function show(button, wanted, isOpen, text) {
    button.hidden = !wanted;
    mark(button, "aria-expanded", String(isOpen));
    say(button, text);
  }

  function place(wanted) {
    const kept = new Set(wanted.map((cause) => cause.key));
    for (const [key, each] of lines) if (!kept.has(key)) (each.node.remove(), lines.delete(key));
    wanted.forEach((cause, index) => {
      if (!lines.has(cause.key)) lines.set(cause.key, line());
      const { node: item, update: draw } = lines.get(cause.key);
      draw(cause);
      if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
    });
  }

  return { node, update };
}

// Alerts of one kind with the same message but for its numbers, most severe first, then in the order in which they began.
export function causes(found, prefix = "") {
  const together = new Map();
  for (const alert of [...found].sort((a, b) => a.opened_at_wall_ms - b.opened_at_wall_ms || a.id - b.id)) {
    const about = alert.breaker ?? alert.queue ?? (alert.component_id === null ? "" : "workers");
    const key = prefix + [alert.severity, alert.kind, about, alert.message.replace(/\d+/g, "#")].join("\n");
    if (!together.has(key)) together.set(key, { key, severity: alert.severity, alerts: [] });
    together.get(key).alerts.push(alert);
  }
  return [...together.values()].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

function line() {
  const node = el("li");
  let drawn = "";

  function update({ severity, alerts: found }) {
    const key = JSON.stringify([found, mayOrder()]);
    if (key === drawn) return;
    drawn = key;
    mark(node, "data-severity", severity);
    mark(node, "data-alert", found.length === 1 ? found[0].id : null);
    mark(node, "data-alerts", found.length);
    const wasOpen = node.querySelector("details")?.open === true;
    node.replaceChildren(...(found.length === 1 ? single(found[0]) : several(found, wasOpen)));
  }

  return { node, update };
}

function single(alert) {
  return [el("strong", {}, alert.severity), worker(alert), said(alert), since(alert), button([alert], `Acknowledge: ${alert.message}`)].filter(Boolean);
}

function several(found, open) {
  const groups = [...new Set(found.map((alert) => groupOf(alert.component_id ?? "supervisor")))];
  const names = groups.length > 3 ? `${groups.slice(0, 3).join(", ")} and ${groups.length - 3} more` : groups.join(", ");
  const each = found.map((alert) => el("li", { "data-alert": alert.id }, ...[worker(alert), said(alert), since(alert),
    button([alert], `Acknowledge: ${alert.component_id ?? ""} ${alert.message}`)].filter(Boolean)));
  return [
    el("strong", {}, found[0].severity),
    el("details", open ? { open: true } : {},
      el("summary", {}, el("b", {}, count(found.length, "alert")), " of ", el("bdi", {}, names), ": ", el("bdi", {}, found[0].message)), el("ul", {}, ...each)),
    button(found, `Acknowledge ${found.length} alerts: ${found[0].message}`, "Acknowledge all")].filter(Boolean);
}

function worker(alert) {
  return alert.component_id ? el("a", { href: `#/worker/${encodeURIComponent(alert.component_id)}` }, el("bdi", {}, alert.component_id)) : null;
}

function said(alert) {
  const times = alert.occurrences > 1 ? ` (${alert.occurrences} times)` : "";
  return el("span", {}, el("bdi", {}, alert.message), times);
}

function since(alert) {
  const by = alert.acknowledged_by ? `, acknowledged by ${alert.acknowledged_by}` : "";
  return el("time", { datetime: new Date(alert.opened_at_wall_ms).toISOString() }, `${alert.escalated ? "escalated, " : ""}since ${moment(alert.opened_at_wall_ms)}${by}`);
}

function button(found, label, text = "Acknowledge") {
  const ids = found.filter((alert) => alert.acknowledged_at_wall_ms === null).map((alert) => alert.id);
  return mayOrder() && ids.length ? el("button", { type: "button", "data-order": "acknowledge", "aria-label": label, onclick: () => acknowledge(...ids) }, text) : null;
}
