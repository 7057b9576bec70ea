// What a worker runs: its command, folder, user, the names of its variables, and its policy.

import { el } from "./dom.js";

export function declaration() {
  const list = el("dl", { class: "runs" });
  const node = el("section", { class: "card", "aria-labelledby": "runs-title" },
    el("header", {}, el("h2", { id: "runs-title" }, "What it runs")), list);
  let drawn = "";

  function update(found) {
    if (found === null || JSON.stringify(found) === drawn) return;
    drawn = JSON.stringify(found);
    list.replaceChildren(...lines(found).flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, el("code", {}, text))]));
  }

  return { node, update };
}

function lines(found) {
  const given = [
    found.python ? ["Function", found.python] : ["Command", (found.command ?? []).join(" ")],
    ["Folder", found.cwd], ["User", found.user],
    ["Variables", (found.env ?? []).join(", ")], ["Inherits", (found.inherit_env ?? []).join(", ")],
    ["After", (found.after ?? []).join(", ")],
    ["Restart", settings(found.restart)], ["Health", found.reports_health ? settings(found.health) : null],
    ["Ready", settings(found.ready)], ["Alive", settings(found.alive)], ["Stop", settings(found.stop)], ["Limits", settings(found.limits)],
  ];
  return given.filter(([, text]) => text);
}

// Only what is set: `max_in_window = 5, window_s = 300`.
function settings(table) {
  if (!table) return null;
  const set = Object.entries(table).filter(([, value]) => value !== null && value !== false && String(value) !== "");
  return set.map(([name, value]) => `${name} = ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", ");
}
