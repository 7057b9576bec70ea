// The numbers at the top: how many workers are up, failed, restarted, and how many jobs are done.

import { el, mark, say } from "./dom.js";
import { shown, state, supervisorsNow } from "./store.js";

const HOUR_MS = 3_600_000;
const BARS = 12; // one for five minutes
const MINUTE_MS = 60_000;

export function figures() {
  const parts = { up: figure("Up"), failed: figure("Failed"), restarts: figure("Restarts in the last hour"), jobs: figure("Jobs a minute") };
  const node = el("dl", { class: "figures" }, ...Object.values(parts).map((each) => each.node));

  function update(workers) {
    const of = (...words) => workers.filter((worker) => words.includes(shown(worker))).length;
    parts.up.show(`${of("healthy")}/${workers.length}`, null, of("healthy") < workers.length ? "some" : "none");
    parts.failed.show(String(of("failed")), null, of("failed") ? "spent" : "none");
    const bars = perFiveMinutes(state.deaths.filter((death) => death.action.startsWith("restart")));
    parts.restarts.show(String(bars.reduce((sum, each) => sum + each, 0)), bars, "none");
    parts.jobs.node.hidden = state.queues.size === 0;
    parts.jobs.show(String(perMinute([...state.queues.values()])), null, "none");
  }

  return { node, update };
}

function figure(text) {
  const value = el("span", { class: "figure-value" });
  const spark = el("span", { class: "spark", "aria-hidden": "true" });
  const node = el("div", {}, el("dt", {}, text), el("dd", {}, value, spark));
  let drawn = "";

  function show(number, bars, level) {
    say(value, number);
    mark(node, "data-level", level);
    const key = String(bars);
    if (key === drawn) return;
    drawn = key;
    const most = Math.max(1, ...(bars ?? [0]));
    spark.replaceChildren(...(bars ?? []).map((each) => {
      const bar = el("i");
      bar.style.height = `${Math.max(6, (each / most) * 100)}%`;
      return bar;
    }));
  }

  return { node, show };
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

function perMinute(queues) {
  const now = performance.now();
  const rates = queues.map(({ past }) => {
    const recent = (past ?? []).filter((each) => now - each.at <= MINUTE_MS);
    if (recent.length < 2) return 0;
    const elapsed = recent.at(-1).at - recent[0].at;
    return elapsed > 0 ? ((recent.at(-1).completed - recent[0].completed) * MINUTE_MS) / elapsed : 0;
  });
  return Math.round(rates.reduce((sum, each) => sum + each, 0));
}
