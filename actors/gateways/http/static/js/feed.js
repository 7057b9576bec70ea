// What happened, newest first, a sentence each.

import { el } from "./dom.js";
import { moment } from "./words.js";

// The colour of the dot, by the level that the supervisor sends with each event.
const DOTS = { success: "healthy", info: "starting", warning: "crashed", error: "failed", critical: "failed" };

// What another event says, or the list of alerts, has no line of its own.
function isShown(event) {
  return event.level !== "trace" && !(event.type === "alert_changed" && event.happening === "opened");
}

export function feed(only = null) {
  const node = el("ol", { class: "feed" });
  const empty = el("p", { class: "empty" }, "Nothing has happened yet.");
  let newest = null;

  function update(events) {
    if (events[0] === newest && node.childElementCount > 0) return;
    newest = events[0];
    const lines = events
      .filter((event) => isShown(event) && (only === null || event.component_id === only))
      .slice(0, 60);
    node.replaceChildren(...lines.map(line));
    empty.hidden = lines.length > 0;
  }

  return { node: el("div", {}, empty, node), update };
}

function line(event) {
  const text = event.text ?? event.type.replaceAll("_", " "); // an older supervisor sends no text
  const who = event.component_id
    ? el("a", { href: `#/worker/${encodeURIComponent(event.component_id)}`, class: "who" }, el("bdi", {}, event.component_id))
    : el("span", { class: "who" }, "supervisor");
  return el("li", { "data-kind": DOTS[event.level] ?? "stopped" },
    el("time", { datetime: new Date(event.at_wall_ms).toISOString() }, moment(event.at_wall_ms)),
    el("i", { class: "dot", "aria-hidden": "true" }), who, el("span", { class: "what" }, el("bdi", {}, text)));
}
