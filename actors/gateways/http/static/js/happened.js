// The events of one worker, newest first, one line each; and its mean time between failures.

import { el, say } from "./dom.js";
import { count, moment, span } from "./words.js";

export function happened() {
  const mean = el("p", { class: "mean" });
  const source = el("p", { class: "mean", hidden: true });
  const list = el("ol", { class: "happened", tabindex: 0, "aria-label": "Events of this worker, newest first" });
  const node = el("section", { class: "card", "aria-labelledby": "happened-title" },
    el("header", {}, el("h2", { id: "happened-title" }, "Events")), mean, source, list);

  function update({ entries, ever, source: where }) {
    source.hidden = !where;
    say(source, where ?? "");
    mean.hidden = ever.deaths === 0; // the history says so
    say(mean, mean.hidden ? "" : `Mean time between failures: ${span(ever.mean_between_ms)} over ${count(ever.deaths, "death")}.`);
    list.replaceChildren(...entries.map(line));
  }

  return { node, update };
}

function line(entry) {
  const at = el("time", { datetime: new Date(entry.at_wall_ms).toISOString() }, moment(entry.at_wall_ms));
  const node = entry.node ? [el("bdi", {}, `${entry.node}: `)] : [];
  return el("li", { "data-kind": entry.kind }, at, ...node, el("bdi", {}, entry.text));
}
