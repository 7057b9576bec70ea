// What the page knows. Events say that something changed and where; what it is like now is asked of
// the supervisor, once for any number of events that came meanwhile. Nothing is asked by the clock.

import { API, get, getIfServed, Problem, worker as workerPath } from "./api.js";

const MOST_DEATHS = 1000;
const MOST_LINES = 200;
const A_FEW = 4; // more workers than these are asked for all at once

export const state = {
  session: null, // { role, may_order }
  connection: "connecting", // connecting, live, lost, signed-out
  retryAt: 0,
  info: null,
  workers: new Map(), // by id; each with `at`, the moment at which its durations held
  system: { paused: false, degraded: null, unsaved: 0 },
  deaths: [], // newest first
  queues: null, // null: this supervisor has none
  alerts: null,
  feed: [], // newest first
};

const watchers = new Set();
let announced = false;

export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

// However many changes there are, the page is drawn once a frame.
export function changed() {
  if (announced) return;
  announced = true;
  requestAnimationFrame(() => {
    announced = false;
    watchers.forEach((watcher) => watcher());
  });
}

// ── asking ──────────────────────────────────────────────────────────────────────────────

const dirty = new Set();
let everything = false;
let asking = false;

export function refreshAll() {
  everything = true;
  return refresh();
}

export function refreshWorker(id) {
  dirty.add(id);
  return refresh();
}

async function refresh() {
  if (asking) return;
  asking = true;
  try {
    while (everything || dirty.size > 0) await refreshOnce();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (problem.status === 401) signedOut();
    // Else the connection is about to be noticed as lost, and all is asked again when it is back.
  } finally {
    asking = false;
  }
}

async function refreshOnce() {
  const all = everything;
  const ids = [...dirty];
  everything = false;
  dirty.clear();
  if (all) await askEverything();
  else if (ids.length > A_FEW) await askWorkers();
  else await Promise.all(ids.map(askWorker));
  changed();
}

async function askEverything() {
  const [info, deaths, queues, alerts] = await Promise.all([
    get(`${API}/info`),
    get(`${API}/deaths?limit=${MOST_DEATHS}`).catch(() => null), // the store may be away
    getIfServed(`${API}/queues`).catch(() => state.queues),
    getIfServed(`${API}/alerts`).catch(() => state.alerts),
    askWorkers(),
  ]);
  state.info = info;
  state.queues = queues;
  state.alerts = alerts;
  if (deaths !== null) state.deaths = deaths.deaths;
  if (state.feed.length === 0) state.feed = state.deaths.slice(0, 40).map(asEvent);
}

async function askWorkers() {
  const report = await get(`${API}/workers`);
  const at = performance.now();
  state.workers = new Map(report.workers.map((worker) => [worker.component_id, { ...worker, at }]));
  state.system = { paused: report.paused, degraded: report.degraded, unsaved: report.unsaved };
}

async function askWorker(id) {
  try {
    const worker = await get(workerPath(id));
    state.workers.set(id, { ...worker, at: performance.now() });
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    state.workers.delete(id);
  }
}

// ── hearing ─────────────────────────────────────────────────────────────────────────────

// Of no worker in particular, and yet they change what is shown.
const SYSTEM_EVENTS = ["store_degraded", "store_recovered", "stood_down", "system_update", "pause_began", "pause_ended"];

export function heard(name, document) {
  const event = document.event ?? document;
  const type = event.type ?? name;
  const id = event.component_id ?? document.worker?.component ?? null;
  if (document.queue !== undefined || type.startsWith("queue_")) hearQueue(document.queue);
  else if (type.startsWith("alert")) hearAlert();
  else if (document.worker !== undefined) hearWorker(document.worker);
  else if (id !== null) refreshWorker(id);
  else if (SYSTEM_EVENTS.includes(type) || type.startsWith("worker")) refreshAll();
  if (event.at_wall_ms !== undefined) keep(event, type, id);
  changed();
}

function keep(event, type, id) {
  if (state.feed.some((line) => line.id === event.id && event.id !== undefined)) return;
  state.feed = [{ ...event, type, component_id: id }, ...state.feed].slice(0, MOST_LINES);
  if (type === "worker_died") {
    const death = { ...event, component_id: id, died_at_wall_ms: event.at_wall_ms };
    state.deaths = [death, ...state.deaths].slice(0, MOST_DEATHS);
  }
}

// A busy worker takes one job after the other: that alone is no reason to ask for more.
function hearWorker({ component, status, pid, current_job }) {
  const known = state.workers.get(component);
  if (known === undefined || known.pid !== pid || known.shown !== status) refreshWorker(component);
  else known.current_job = current_job;
}

function hearQueue(queue) {
  if (state.queues === null || queue?.queue_type == null) return;
  const queues = state.queues.queues ?? [];
  const known = queues.find((each) => (each.queue_type ?? each.queue) === queue.queue_type);
  if (known) Object.assign(known, queue);
  else queues.push(queue);
}

async function hearAlert() {
  state.alerts = await getIfServed(`${API}/alerts`).catch(() => state.alerts);
  changed();
}

function asEvent(death) {
  return { ...death, type: "worker_died", at_wall_ms: death.died_at_wall_ms };
}

export function signedOut() {
  state.session = null;
  state.connection = "signed-out";
  changed();
}

// ── reading ─────────────────────────────────────────────────────────────────────────────

export function mayOrder() {
  return state.session?.may_order === true;
}

// How long ago the worker's durations held.
export function since(worker) {
  return performance.now() - worker.at;
}

export function uptime(worker) {
  return worker.uptime_ms === null ? null : worker.uptime_ms + since(worker);
}

export function nextAttempt(worker) {
  return worker.next_attempt_in_ms === null ? null : Math.max(0, worker.next_attempt_in_ms - since(worker));
}

// The word that is shown: what is paused is called paused only while it is down for it.
export function shown(worker) {
  return worker.paused && worker.pid === null && worker.shown !== "failed" ? "paused" : worker.shown;
}

// The limit that is nearest to its end, as `rekindle status` shows it.
export function tightest(budget) {
  const limits = [
    { used: budget.in_window, most: budget.max_in_window, what: `within ${Math.round(budget.window_ms / 60000)} min` },
    { used: budget.consecutive, most: budget.max_consecutive, what: "in a row" },
    { used: budget.lifetime, most: budget.max_lifetime, what: "in its lifetime" },
  ].filter((limit) => limit.most !== null);
  if (limits.length === 0) return { used: budget.lifetime, most: null, what: "in its lifetime" };
  return limits.reduce((a, b) => (b.most - b.used < a.most - a.used ? b : a));
}
