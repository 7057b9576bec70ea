// What each worker uses; sampled only while the page is looked at.

import { API, getIfServed } from "./api.js";
import { state } from "./store.js";

const EVERY_MS = 5_000;

export function usages(changed) {
  let found = new Map();
  let stopped = false;

  async function sample() {
    if (stopped || document.visibilityState === "hidden" || state.connection !== "live") return;
    const answer = await getIfServed(`${API}/resources`).catch(() => null);
    if (stopped || answer === null) return;
    found = new Map(answer.workers.map((each) => [each.id, each]));
    changed();
  }

  const timer = setInterval(sample, EVERY_MS);
  const first = setTimeout(sample, 300);
  return { of: (id) => found.get(id), stop: () => ((stopped = true), clearInterval(timer), clearTimeout(first)) };
}
