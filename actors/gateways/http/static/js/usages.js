// What each worker uses; sampled only while the page is looked at and shows it: the supervisor reads it from
// the processes, which takes long for a thousand of them.

import { API, getIfServed } from "./api.js";
import { state } from "./store.js";

const EVERY_MS = 5_000;
const KEPT = 60; // samples of each worker: five minutes

const past = new Map(); // by worker; kept while the user moves between pages

export function usages(changed, isShown = () => true) {
  let found = new Map();
  let stopped = false;
  let first = null;

  async function sample() {
    if (stopped || !isShown() || document.visibilityState === "hidden" || state.connection !== "live") return;
    const answer = await getIfServed(`${API}/resources`).catch(() => null);
    if (stopped || answer === null) return;
    found = new Map(answer.workers.map((each) => [each.id, each]));
    keep(found);
    changed();
  }

  // It need not be waited for, once it is shown.
  function look() {
    if (isShown()) first ??= setTimeout(sample, 300);
  }

  const timer = setInterval(sample, EVERY_MS);
  look();
  // A worker without a process uses nothing: what was measured was its former one.
  const of = (id) => (state.workers.get(id)?.pid === null ? undefined : found.get(id));

  return { of, past: (id) => past.get(id) ?? [], look, stop: () => ((stopped = true), clearInterval(timer), clearTimeout(first)) };
}

function keep(found) {
  for (const id of past.keys()) if (!state.workers.has(id)) past.delete(id);
  for (const [id, { cpu_percent, memory_mb }] of found) {
    past.set(id, [...(past.get(id) ?? []), { at: performance.now(), cpu: cpu_percent, memory: memory_mb }].slice(-KEPT));
  }
}
