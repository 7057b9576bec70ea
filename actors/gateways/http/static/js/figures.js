// The numbers at the top: how many workers are up, failed, restarted, and how many jobs are done.

import { el, mark, say, svg } from "./dom.js";
import { levels } from "./levels.js";
import { shown, state, supervisorsNow } from "./store.js";

const HOUR_MS = 3_600_000;
const BARS = 12; // one for five minutes
const MINUTE_MS = 60_000;
const LINE_MS = 5 * MINUTE_MS; // what a line shows
const SAMPLE_MS = 5_000;
const LEAST_MS = 5_000; // over a shorter time a rate means nothing

// For the lines beside the numbers: what this page saw, and before that what the events tell.
const past = { up: [], failed: [], jobs: [] };
let isRemembered = false;

export function figures() {
  const parts = { up: figure("Up"), failed: figure("Failed"), restarts: figure("Restarts in the last hour"), jobs: figure("Jobs a minute") };
  const node = el("dl", { class: "figures" }, ...Object.values(parts).map((each) => each.node));

  function update(workers) {
    const of = (...words) => workers.filter((worker) => words.includes(shown(worker))).length;
    const now = { up: of("healthy"), failed: of("failed"), jobs: perMinute([...state.queues.values()]) };
    if (!isRemembered && workers.length > 0 && state.info !== null) remember(workers);
    if (workers.length > 0 && state.connection === "live") Object.keys(past).forEach((name) => now[name] !== null && sample(past[name], now[name]));
    parts.up.show(`${now.up}/${workers.length}`, now.up < workers.length ? "some" : "none");
    parts.up.line(past.up);
    parts.failed.show(String(now.failed), now.failed ? "spent" : "none");
    parts.failed.line(past.failed);
    const bars = perFiveMinutes(state.deaths.filter((death) => death.action.startsWith("restart")));
    parts.restarts.show(String(bars.reduce((sum, each) => sum + each, 0)), "none");
    parts.restarts.bars(bars);
    parts.jobs.node.hidden = state.queues.size === 0;
    parts.jobs.show(now.jobs === null ? "–" : String(now.jobs), "none");
    parts.jobs.line(past.jobs);
  }

  return { node, update };
}

function sample(samples, value) {
  const now = performance.now();
  const last = samples.at(-1);
  if (last !== undefined && now - last.at < SAMPLE_MS && last.value === value) return;
  if (last !== undefined && last.value !== value) samples.push({ at: now, value: last.value }); // a step, not a slope
  samples.push({ at: now, value });
  while (samples.length > 1 && now - samples[1].at > LINE_MS) samples.shift();
}

// What was before the page was opened.
function remember(workers) {
  isRemembered = true;
  for (const [name, samples] of Object.entries(levels(workers, LINE_MS))) {
    const step = samples.slice(-1).map(({ value }) => ({ at: past[name][0]?.at ?? performance.now(), value })); // not a slope
    past[name] = [...samples, ...step, ...past[name]];
  }
}

function figure(text) {
  const value = el("span", { class: "figure-value" });
  const spark = el("span", { class: "spark", "aria-hidden": "true" });
  const node = el("div", {}, el("dt", {}, text), el("dd", {}, value, spark));
  let drawn = "";

  function show(number, level) {
    say(value, number);
    mark(node, "data-level", level);
  }

  function bars(numbers) {
    if (String(numbers) === drawn) return;
    drawn = String(numbers);
    const most = Math.max(1, ...numbers);
    spark.replaceChildren(...numbers.map((each) => {
      const bar = el("i");
      bar.style.height = `${Math.max(6, (each / most) * 100)}%`;
      return bar;
    }));
  }

  const stroke = svg("polyline", { fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" });

  // The last minutes; a line that never changed has nothing to say.
  function line(samples) {
    const values = samples.map((each) => each.value);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    if (!spark.firstChild) spark.append(svg("svg", { viewBox: "0 0 90 22", preserveAspectRatio: "none", class: "spark-line" }, stroke));
    mark(node, "title", "In the last five minutes");
    if (values.length < 2 || least === most) return mark(stroke, "points", "");
    const now = performance.now();
    const at = (sampled) => `${Math.max(0, 90 * (1 - (now - sampled.at) / LINE_MS)).toFixed(1)},${(20 - (18 * (sampled.value - least)) / (most - least)).toFixed(1)}`;
    mark(stroke, "points", [...samples, { at: now, value: values.at(-1) }].map(at).join(" "));
  }

  return { node, show, bars, line };
}

function perFiveMinutes(deaths) {
  const now = supervisorsNow();
  const bars = Array.from({ length: BARS }, () => 0);
  for (const death of deaths) {
    const ago = now - death.died_at_wall_ms;
    if (ago < HOUR_MS) bars[BARS - 1 - Math.min(BARS - 1, Math.max(0, Math.floor(ago / (HOUR_MS / BARS))))] += 1;
  }
  return bars;
}

// What the queues did in the last minute; null until this page has seen a part of it.
function perMinute(queues) {
  const now = performance.now();
  const rates = queues.map(({ past: all }) => {
    const recent = (all ?? []).filter((each) => now - each.at <= MINUTE_MS);
    const elapsed = recent.length < 2 ? 0 : recent.at(-1).at - recent[0].at;
    return elapsed < LEAST_MS ? null : ((recent.at(-1).completed - recent[0].completed) * MINUTE_MS) / elapsed;
  });
  const known = rates.filter((each) => each !== null);
  return known.length ? Math.round(known.reduce((sum, each) => sum + each, 0)) : null;
}
