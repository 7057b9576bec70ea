// Commands: the dialog explains them before, a line reports the result after.

import { API, get, Problem, post, worker as workerPath } from "./api.js";
import { askFirst } from "./dialog.js";
import { byId, el } from "./dom.js";
import { refreshAll, refreshWorker, signedOut, state } from "./store.js";
import { count, signalName } from "./words.js";

const TOAST_MS = 8_000;
const AT_ONCE = 4; // commands to the workers of a group that are under way at the same time

const ORDERS = {
  restart: { verb: "Restart", done: "restarts", danger: false,
    means: "Stops the worker if it runs, clears its restart counters, and starts it." },
  start: { verb: "Start", done: "starts", danger: false,
    means: "Starts the worker now, even within a restart delay. Its restart counters stay." },
  stop: { verb: "Stop", done: "was stopped", danger: true,
    means: "Asks the worker to finish, then ends it. It stays stopped until you start it or the supervisor restarts; to keep it down longer, pause it." },
  reset: { verb: "Reset", done: "was reset", danger: false,
    means: "Clears the restart counters and the failure of the worker. Does not start it." },
  pause: { verb: "Pause", done: "was paused", danger: false, asksWhy: true,
    means: pauseMeans },
  resume: { verb: "Resume", done: "was resumed", danger: false, means: "Ends the pause." },
  "run-now": { verb: "Run now", done: "runs", danger: false,
    means: "Begins a run of its schedule now. The times at which it is due stay as they are." },
};

// A pause ends processes, or lets them idle: the dialog says which, and how many.
function pauseMeans(id, several = [...state.workers.values()]) {
  const chosen = id === null ? several : [state.workers.get(id)].filter(Boolean);
  const running = chosen.filter((worker) => worker.pid !== null && !worker.paused);
  const idle = running.filter((worker) => worker.pause_mode === "idle").length;
  const stopped = running.length - idle;
  const parts = [];
  if (stopped) parts.push(id === null ? `${count(stopped, "running process", "running processes")} will be stopped` : "The running process will be stopped");
  if (idle) parts.push(id === null ? `${count(idle, "process", "processes")} with pause_mode "idle" will keep running and idle` : "The process keeps running and idles (pause_mode \"idle\")");
  const effect = parts.length ? `${parts.join("; ")}. ` : "";
  return `${effect}Nothing starts until you resume, even if the supervisor restarts.`;
}

// The commands for a worker in its current state, the likeliest first.
export function ordersFor(worker) {
  if (worker.paused) return ["resume", worker.pid === null ? null : "stop", "reset"].filter(Boolean);
  if (worker.shown === "failed") return ["restart", "reset"];
  if (worker.pid === null) return ["start", "pause", worker.shown === "crashed" ? "stop" : null, "reset"].filter(Boolean);
  return ["restart", "pause", "stop", "reset"];
}

export function verb(order) {
  return ORDERS[order].verb;
}

export function button(order, id, extra = "") {
  return el(
    "button",
    { type: "button", class: `order ${extra}`, "data-order": order, "aria-label": `${verb(order)} ${id}`,
      onclick: () => confirm(order, id) },
    verb(order),
  );
}

// A command to one worker; without an id, to the whole system.
export function confirm(order, id = null) {
  const { means, danger, asksWhy } = ORDERS[order];
  askFirst({ verb: verb(order), name: id ?? "every worker", means: typeof means === "function" ? means(id) : means,
    danger, asksWhy, then: (body) => give(order, id, body) });
}

// The commands for the workers of a group, the likeliest first.
export function ordersForAll(workers) {
  return Object.keys(ORDERS).filter((order) => heedful(order, workers).length > 0);
}

// Those for which the command does something.
function heedful(order, workers) {
  return workers.filter((worker) => ordersFor(worker).includes(order) || (order === "restart" && !worker.paused));
}

export function groupButton(order, group, workersNow) {
  return el("button", { type: "button", class: "order", "data-order": order, "aria-label": `${verb(order)} all workers of ${group}`,
    onclick: () => confirmAll(order, group, workersNow()) }, verb(order));
}

// A command to every worker of a group.
export function confirmAll(order, group, workers) {
  const { means, danger, asksWhy } = ORDERS[order];
  const chosen = heedful(order, workers);
  const rolling = order === "restart" ? ` All at once: to restart one after the other, run: rekindle restart ${group} --rolling` : "";
  const said = typeof means === "function" ? means(null, chosen) : `Each of them: ${means[0].toLowerCase()}${means.slice(1)}${rolling}`;
  askFirst({ verb: verb(order), name: `${count(chosen.length, "worker")} of ${group}`, means: said, danger, asksWhy,
    then: (body) => giveAll(order, group, chosen.map((worker) => worker.component_id), body) });
}

// A few at a time; the line at the end names a worker for which it failed.
async function giveAll(order, group, ids, body) {
  const what = `${verb(order)} ${group}`;
  const done = toast(`${what} …`, "waiting");
  const [left, failed] = [[...ids], []];
  async function next() {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      try {
        const outcome = await post(workerPath(id, order), body);
        if (outcome.detail?.gone === false) failed.push(`${id} ${ending(outcome, order)}`);
      } catch (problem) {
        if (!(problem instanceof Problem)) throw problem;
        if (problem.status === 401) signedOut();
        failed.push(`${id}: ${problem.message}`);
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  const told = `${what}: ${ids.length - failed.length} of ${count(ids.length, "worker")}`;
  done(failed.length ? `${told}; ${failed[0]}${failed.length > 1 ? `, and ${failed.length - 1} more` : ""}` : `${told} done.`, failed.length ? "bad" : "good");
  refreshAll();
}

async function give(order, id, body) {
  const name = id ?? "all workers";
  await carryOut(`${verb(order)} ${name}`, id === null ? `${API}/${order}` : workerPath(id, order), body,
    (outcome) => [`${name} ${ending(outcome, order)}.`, outcome.detail?.gone === false ? "bad" : "good"]);
  if (id === null) refreshAll();
  else refreshWorker(id);
}

// Sends a command and reports its result; `told` puts the result into words.
export async function carryOut(what, path, body, told) {
  const done = toast(`${what} …`, "waiting");
  try {
    done(...told(await post(path, body)));
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 401) signedOut();
    done(`${what}: ${problem.message}`, "bad");
  }
}

function ending(outcome, order) {
  const detail = outcome.detail ?? {};
  if (detail.gone === false) return "survived SIGKILL; no replacement starts until its process is gone";
  if (order === "stop" && detail.exit === null) return "was not running; it stays stopped until you start it or the supervisor restarts";
  if (order === "stop" && detail.forced) return `was stopped with ${signalName(detail.forced)}`;
  return ORDERS[order].done;
}

// Acknowledging alerts changes nothing else, so it needs no confirmation.
export async function acknowledge(...ids) {
  const said = ids.length === 1 ? "The alert is acknowledged." : `${ids.length} alerts are acknowledged.`;
  const done = toast("Acknowledging …", "waiting");
  try {
    for (const id of ids) await post(`${API}/alerts/${id}/acknowledge`, { by: "the dashboard" });
    done(said, "good");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    done(`Acknowledge: ${problem.message}`, "bad");
  }
  refreshAll();
}

// A line that shows a command in progress, and later its result.
export function toast(text, kind) {
  const line = el("p", { class: "toast", "data-kind": kind }, text);
  byId("toasts").append(line);
  return (later, laterKind) => {
    line.textContent = later;
    line.dataset.kind = laterKind;
    setTimeout(() => line.remove(), TOAST_MS);
  };
}

export async function renewSession() {
  const session = await get("/session").catch(() => state.session);
  if (session.role === null) signedOut();
  else state.session = session;
}
