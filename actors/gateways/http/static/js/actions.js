// Orders: what they do is said before, and what came of them after.

import { API, get, Problem, post, worker as workerPath } from "./api.js";
import { byId, el } from "./dom.js";
import { refreshAll, refreshWorker, signedOut, state } from "./store.js";
import { signalName } from "./words.js";

const TOAST_MS = 8_000;

const ORDERS = {
  restart: { verb: "Restart", done: "is started afresh", danger: false,
    means: "It is stopped if it runs, its restart counters are cleared, and it is started afresh." },
  start: { verb: "Start", done: "is started", danger: false,
    means: "It is started now, whatever delay it is in. Its counters stay." },
  stop: { verb: "Stop", done: "is stopped", danger: true,
    means: "It may finish, then it is ended. It stays down until it is started, or the supervisor is; a pause holds it for good." },
  reset: { verb: "Reset", done: "has its counters cleared", danger: false,
    means: "Its restart counters and its failure are cleared. It is not started." },
  pause: { verb: "Pause", done: "is paused", danger: false, asksWhy: true,
    means: "It is held back, also over a restart of the supervisor, until it is resumed." },
  resume: { verb: "Resume", done: "goes on", danger: false, means: "The pause ends." },
};

// What can be done with a worker as it is, the likeliest first.
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

// An order to one worker; without an id, to the whole system.
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
    el("p", {}, means),
    asksWhy ? el("div", { class: "fields" },
      el("label", { for: "reason" }, "Why"), reason,
      el("label", { for: "lasting" }, "For how long"), lasting) : null,
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

const LASTING = [["until it is resumed", ""], ["10 minutes", "600"], ["30 minutes", "1800"], ["2 hours", "7200"], ["1 day", "86400"]];

async function give(order, id, body) {
  const name = id ?? "everything";
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
  if (detail.gone === false) return "survived SIGKILL; nothing is started in its place until it is gone";
  if (order === "stop" && detail.exit === null) return "was not running; it stays down until it is started, or the supervisor is";
  if (order === "stop" && detail.forced) return `is stopped, after ${signalName(detail.forced)}`;
  return ORDERS[order].done;
}

// Noting an alert changes nothing but the noise: it needs no confirmation.
export async function acknowledge(id) {
  const done = toast("Acknowledge …", "waiting");
  try {
    await post(`${API}/alerts/${id}/acknowledge`, { by: "the dashboard" });
    done("The alert is acknowledged.", "good");
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    done(`Acknowledge: ${problem.message}`, "bad");
  }
  refreshAll();
}

// A line that says what is going on, and later what came of it.
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
