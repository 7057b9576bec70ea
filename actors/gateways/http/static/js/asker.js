// Requests that follow events: one at a time, at a limited rate, and once more if something changed
// while one was under way. A busy supervisor is asked again later, since no further event may come.

import { Problem } from "./api.js";
import { signedOut, state } from "./store.js";

const AGAIN_MS = 1_000;

export function asker(ask, paceMs = 500) {
  let wanted = false;
  let underWay = false;
  let timer = null;
  let stopped = false;

  function soon(delay = paceMs) {
    if (stopped) return;
    wanted = true;
    if (!underWay) timer ??= setTimeout(run, delay);
  }

  async function run() {
    timer = null;
    if (stopped) return;
    wanted = false;
    underWay = true;
    const delay = await answered();
    underWay = false;
    if (delay !== null) soon(delay);
    else if (wanted) soon();
  }

  // The delay before the next attempt; null: it is answered.
  async function answered() {
    try {
      await ask(() => stopped);
      return null;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (stopped) return null;
      if (problem.status === 401) return signedOut(), null;
      return state.connection === "live" && problem.status !== 404 ? AGAIN_MS : null;
    }
  }

  return { soon, now: () => soon(0), stop: () => ((stopped = true), clearTimeout(timer)) };
}
