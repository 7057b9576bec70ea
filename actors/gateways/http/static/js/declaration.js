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
    found.python ? ["Function", found.python] : ["Command", (found.command ?? []).map(quoted).join(" ")],
    ["Folder", found.folder ?? found.cwd], ["User", found.runs_as ?? found.user],
    ["Variables", (found.env ?? []).join(", ")], ["Inherits", (found.inherit_env ?? []).join(", ")],
    ["After", (found.after ?? []).join(", ")],
    ["Restart", settings(found.restart)], ["Health", found.reports_health ? settings(found.health) : null],
    ["Ready", settings(found.ready)], ["Alive", settings(found.alive)], ["Stop", settings(found.stop)], ["Limits", settings(found.limits)],
  ];
  return given.filter(([, text]) => text);
}

// Only what is set, as in the file: `max_in_window = 5, restart_on = "always"`.
function settings(table) {
  return table ? inside(table).join(", ") : null;
}

function inside(table) {
  const isSet = (value) => value !== null && value !== false && value !== "" && (typeof value !== "object" || Object.keys(value).length > 0);
  return Object.entries(table).filter(([, value]) => isSet(value)).map(([name, value]) => `${name} = ${asToml(value)}`);
}

function asToml(value) {
  if (Array.isArray(value)) return `[${value.map(asToml).join(", ")}]`;
  return typeof value === "object" ? `{ ${inside(value).join(", ")} }` : JSON.stringify(value);
}

// A word of the command as a shell would take it.
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
