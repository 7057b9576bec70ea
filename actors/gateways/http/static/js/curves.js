// CPU and memory of one worker over the last minutes, as far as this page measured them.

import { el, mark, say, svg } from "./dom.js";
import { number, span } from "./words.js";

const WIDTH = 300;
const HEIGHT = 56;
const PERIOD_MS = 5 * 60_000;

export function curves() {
  const parts = { cpu: curve("CPU", "%"), memory: curve("Memory", "MB") };
  const node = el("section", { class: "card", "data-empty": "true", "aria-labelledby": "curves-title" },
    el("header", {}, el("h2", { id: "curves-title" }, "CPU and memory")),
    el("div", { class: "curves" }, parts.cpu.node, parts.memory.node));

  function update(samples) {
    mark(node, "data-empty", samples.length < 2);
    for (const [name, part] of Object.entries(parts)) part.update(samples.filter((each) => typeof each[name] === "number").map((each) => ({ at: each.at, value: each[name] })));
  }

  return { node, update };
}

function curve(title, unit) {
  const line = svg("polyline", { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, line);
  const said = el("figcaption");
  const node = el("figure", {}, said, picture);

  function update(samples) {
    if (samples.length < 2) return;
    const values = samples.map((each) => each.value);
    const top = Math.max(...values, 1) * 1.15;
    const now = samples.at(-1).at;
    const points = samples.map(({ at, value }) => `${(WIDTH * (1 - (now - at) / PERIOD_MS)).toFixed(1)},${(HEIGHT * (1 - value / top)).toFixed(1)}`);
    mark(line, "points", points.join(" "));
    say(said, `${title} ${number(values.at(-1))} ${unit}; at most ${number(Math.max(...values))} ${unit} in the last ${span(now - samples[0].at)}`);
  }

  return { node, update };
}
