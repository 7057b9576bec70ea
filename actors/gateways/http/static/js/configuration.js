// The effective settings of the supervisor, and where the value of each comes from. Secrets are masked by
// the supervisor.

import { API, getIfServed, Problem } from "./api.js";
import { el, mark, say } from "./dom.js";
import { count } from "./words.js";

const WRITTEN = new Set(["file", "defaults", "scale"]);

export function configuration() {
  let found = null; // { file, settings }
  let drawn = "";
  const search = el("input", { type: "search", placeholder: "Find a setting", "aria-label": "Find a setting", oninput: update });
  const all = el("button", { type: "button", "aria-pressed": "false", onclick: () => (mark(all, "aria-pressed", String(all.getAttribute("aria-pressed") !== "true")), update()) },
    "Presets and defaults");
  const state = el("span", { class: "log-state", role: "status" });
  const rows = el("tbody");
  const table = el("table", { class: "plain settings", hidden: true },
    el("thead", {}, el("tr", {}, ...["Setting", "Value", "Comes from"].map((text) => el("th", { scope: "col" }, text)))), rows);
  const none = el("p", { class: "empty" }, "Loading …");
  const node = el("section", { class: "card", "aria-labelledby": "configuration-title" },
    el("header", {}, el("h2", { id: "configuration-title" }, "Configuration"), el("div", { class: "chips" }, all), state, search), el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Settings" }, table), none);

  async function ask() {
    try {
      found = (await getIfServed(`${API}/configuration`)) ?? { file: null, settings: [] };
      update();
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (found === null) say(none, problem.message);
    }
  }

  function update() {
    if (found === null) return;
    const word = search.value.trim().toLowerCase();
    const isAll = all.getAttribute("aria-pressed") === "true" || word !== "";
    const shown = found.settings.filter((each) => (isAll || WRITTEN.has(each.origin))
      && `${nameOf(each)} ${each.value} ${originOf(each)}`.toLowerCase().includes(word));
    const key = JSON.stringify(shown);
    if (key === drawn) return;
    drawn = key;
    table.hidden = shown.length === 0;
    none.hidden = shown.length > 0;
    say(none, found.settings.length === 0 ? "The supervisor does not tell its settings." : "No setting matches.");
    say(state, `${count(shown.length, "setting")} of ${found.settings.length}`);
    rows.replaceChildren(...groupedRows(shown));
  }

  function groupedRows(shown) {
    const lines = [];
    let before = null;
    for (const each of shown) {
      if (each.table !== before) lines.push(el("tr", { class: "group" }, el("th", { scope: "rowgroup", colspan: 3 }, el("bdi", {}, each.table ? `[${each.table}]` : "The file"))));
      before = each.table;
      lines.push(el("tr", { "data-origin": each.origin }, el("th", { scope: "row" }, el("bdi", {}, each.key)),
        el("td", { "data-label": "Value" }, el("code", {}, each.value)), el("td", { "data-label": "Comes from" }, originOf(each))));
    }
    return lines;
  }

  function originOf({ origin, line, preset }) {
    const where = line === null ? (found.file === null ? "command line" : "the file") : `line ${line}`;
    return { file: where, defaults: `${where}, [defaults]`, preset: `preset ${preset}`, default: "default", scale: "rekindle scale, until the next reload" }[origin] ?? origin;
  }

  return { node, ask };
}

const nameOf = ({ table, key }) => (table ? `${table}.${key}` : key);
