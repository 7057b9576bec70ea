// How many workers were up and failed before the page was opened, as the events that the page has tell.

import { shown, state, supervisorsNow } from "./store.js";

const UP = ["healthy", "unhealthy", "recovering"];

// What the worker was before an event, and what it is then.
const MOVES = {
  worker_started: () => ["down", "starting"],
  status_changed: ({ old, new: now }) => (UP.includes(now) ? [UP.includes(old) ? "up" : "starting", "up"] : null), // deaths tell the rest
  worker_died: () => ["up", "down"],
  worker_stopped: () => ["up", "down"],
  worker_failed: () => ["down", "failed"],
};

// Steps of each number, { at, value }, the oldest first; `at` is a time of this page.
export function levels(workers, periodMs) {
  const toHere = performance.now() - supervisorsNow();
  const oldest = state.feed.at(-1)?.at_wall_ms ?? Infinity; // of what was before, nothing is known
  const from = Math.max(supervisorsNow() - periodMs, state.info.started_at_wall_ms, oldest);
  const known = new Set(workers.map((worker) => worker.component_id));
  const moves = state.feed.filter((event) => event.at_wall_ms >= from && known.has(event.component_id) && MOVES[event.type])
    .reverse().map((event) => ({ id: event.component_id, at: event.at_wall_ms + toHere, states: MOVES[event.type](event) }))
    .filter(({ states: known }) => known !== null);
  const states = new Map(workers.map((worker) => [worker.component_id, { healthy: "up", failed: "failed" }[shown(worker)] ?? "down"]));
  for (const { id, states: [before] } of moves.toReversed()) states.set(id, before);
  const counted = (word) => [...states.values()].filter((each) => each === word).length;
  const samples = { up: [], failed: [] };
  const note = (at) => Object.entries(samples).forEach(([name, all]) => {
    const value = counted(name);
    if (all.length && all.at(-1).value !== value) all.push({ at, value: all.at(-1).value }); // a step, not a slope
    if (all.at(-1)?.value !== value || all.length === 0) all.push({ at, value });
  });
  if (oldest === Infinity) return samples;
  note(from + toHere);
  for (const { id, at, states: [, after] } of moves) {
    states.set(id, after);
    note(at);
  }
  return samples;
}
