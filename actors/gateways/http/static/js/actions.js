// Commands: the dialog explains them before, a line reports the result after.

import { API, get, Problem, post, worker as workerPath } from "./api.js";
import { byId, el } from "./dom.js";
import { refreshAll, refreshWorker, signedOut, state } from "./store.js";
import { count, signalName } from "./words.js";

const TOAST_MS = 8_000;

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
};

// A pause ends processes, or lets them idle: the dialog says which, and how many.
function pauseMeans(id) {
  const chosen = id === null ? [...state.workers.values()] : [state.workers.get(id)].filter(Boolean);
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
  const dialog = byId("confirm");
  const reason = el("input", { type: "text", maxlength: 200, id: "reason", autocomplete: "off" });
  const lasting = el("select", { id: "lasting" }, ...LASTING.map(([text, value]) => el("option", { value }, text)));
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, verb(order));
  const form = el(
    "form",
    { method: "dialog", onsubmit: (event) => submitted(event) },
    el("h2", { id: "confirm-title" }, `${verb(order)} `, el("bdi", {}, id ?? "every worker"), "?"),
    el("p", {}, typeof means === "function" ? means(id) : means),
    asksWhy ? el("div", { class: "fields" },
      el("label", { for: "reason" }, "Reason"), reason,
      el("label", { for: "lasting" }, "Duration"), lasting) : null,
    el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), go),
  );

  function submitted(event) {
    event.preventDefault();
    dialog.close();
    const body = {};
    if (asksWhy && reason.value.trim()) body.reason = reason.value.trim();
    if (asksWhy && lasting.value) body.for_s = Number(lasting.value);
    give(order, id, body);
  }

  dialog.replaceChildren(form);
  dialog.showModal();
  (asksWhy ? reason : go).focus();
}

const LASTING = [["until resumed", ""], ["10 minutes", "600"], ["30 minutes", "1800"], ["2 hours", "7200"], ["1 day", "86400"]];

async function give(order, id, body) {
  const name = id ?? "all workers";
  const done = toast(`${verb(order)} ${name} …`, "waiting");
  try {
    const outcome = await post(id === null ? `${API}/${order}` : workerPath(id, order), body);
    done(`${name} ${ending(outcome, order)}.`, outcome.detail?.gone === false ? "bad" : "good");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 401) signedOut();
    done(`${verb(order)} ${name}: ${problem.message}`, "bad");
  }
  if (id === null) refreshAll();
  else refreshWorker(id);
}

function ending(outcome, order) {
  const detail = outcome.detail ?? {};
  if (detail.gone === false) return "survived SIGKILL; no replacement starts until its process is gone";
  if (order === "stop" && detail.exit === null) return "was not running; it stays stopped until you start it or the supervisor restarts";
  if (order === "stop" && detail.forced) return `was stopped with ${signalName(detail.forced)}`;
  return ORDERS[order].done;
}

// Acknowledging an alert changes nothing else, so it needs no confirmation.
export async function acknowledge(id) {
  const done = toast("Acknowledging …", "waiting");
  try {
    await post(`${API}/alerts/${id}/acknowledge`, { by: "the dashboard" });
    done("The alert is acknowledged.", "good");
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
