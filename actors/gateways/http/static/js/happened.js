// What happened to one worker, newest first, a line for each; and its mean time between failures.

import { el, say } from "./dom.js";
import { count, moment, span } from "./words.js";

export function happened() {
  const mean = el("p", { class: "next" });
  const list = el("ol", { class: "happened", tabindex: 0, "aria-label": "What happened, newest first" });
  const node = el("section", { class: "card", "aria-labelledby": "happened-title" },
    el("header", {}, el("h2", { id: "happened-title" }, "What happened")), mean, list);

  function update({ entries, ever }) {
    say(mean, ever.deaths === 0 ? "It has not died."
      : `Mean time between failures: ${span(ever.mean_between_ms)} over ${count(ever.deaths, "death")}.`);
    list.replaceChildren(...entries.map(line));
  }

  return { node, update };
}

function line(entry) {
  const at = el("time", { datetime: new Date(entry.at_wall_ms).toISOString() }, moment(entry.at_wall_ms));
  return el("li", { "data-kind": entry.kind }, at, el("bdi", {}, entry.text));
}
