// One line of a worker's output, and which lines are wanted.

import { el } from "./dom.js";
import { coloured, plainText } from "./sgr.js";
import { moment } from "./words.js";

export function logLine(line) {
  const node = el("span", { class: "log-line", "data-stream": line.stream, "data-at": moment(line.at_wall_ms) });
  const text = plainText(line.text).toLowerCase();
  let drawn = null;

  // Shows the line if it is wanted, with what was searched for.
  function update({ find, stream, generation }) {
    node.hidden = !(text.includes(find.toLowerCase()) && (stream === "" || stream === line.stream)
      && (generation === "" || generation === String(line.generation)));
    if (node.hidden || drawn === find) return;
    drawn = find;
    node.replaceChildren(...el("span", {}, ...coloured(line.text || " ", find)).childNodes);
  }

  return { node, line, update };
}

// A rule with a few words between lines.
export function logNote(text) {
  const node = el("span", { class: "log-note" }, text);
  const update = ({ find, generation }) => (node.hidden = find !== "" || generation !== "");
  return { node, line: null, update };
}
