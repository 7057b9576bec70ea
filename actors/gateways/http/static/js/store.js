// What the page knows. Events say that something changed and where; what it is like now is asked of
// the supervisor, once for any number of events that came meanwhile. Nothing is asked by the clock.

import { API, get, getIfServed, Problem, worker as workerPath } from "./api.js";

const MOST_DEATHS = 1000;
const MOST_LINES = 200;
const PACE_MS = 60_000; // over which the pace of a queue is taken
const QUEUES_MS = 2_000;
const ALERTS_MS = 250;
const AGAIN_MS = 1_000; // after a supervisor that was too busy to answer
const A_FEW = 4; // more workers than these are asked for all at once

export const state = {
  session: null, // { role, may_order }
  connection: "connecting", // connecting, live, lost, signed-out
  retryAt: 0,
  info: null,
  skewMs: 0, // by how much the supervisor's clock is ahead of ours
  workers: new Map(), // by id; each with `at`, the moment at which its durations held
  system: { paused: false, degraded: null, unsaved: 0 },
  breakers: [], // those that are open; each with `at`
  deaths: [], // newest first
  queues: new Map(), // by type; each with its recent past
  alerts: null, // null: this supervisor has none
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

const ALL = "*"; // no worker's name
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
    // A connection that is lost is about to be noticed, and all is asked again when it is back; a
    // supervisor that was too busy is asked again, since no further event may come.
    else setTimeout(() => state.connection === "live" && refreshAll(), AGAIN_MS);
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
  else if (ids.length > A_FEW || ids.includes(ALL)) await askWorkers();
  else await Promise.all(ids.map(askWorker));
  changed();
}

let meanwhile = []; // events that came while the past was being read

async function askEverything() {
  meanwhile = [];
  const [info, deaths, log, alerts] = await Promise.all([
    get(`${API}/info`),
    get(`${API}/deaths?limit=${MOST_DEATHS}`).catch(() => null), // the store may be away
    getIfServed(`${API}/events/log`, `?limit=${MOST_LINES}`).catch(() => null),
    getIfServed(`${API}/alerts`).catch(() => state.alerts),
    askWorkers(),
    askQueues(),
  ]);
  state.info = info;
  state.skewMs = (info.at_wall_ms ?? Date.now()) - Date.now();
  state.alerts = alerts;
  if (deaths !== null) state.deaths = deaths.deaths;
  if (log !== null) state.feed = log.events.reverse();
  meanwhile.forEach(addEvent);
}

async function askWorkers() {
  const report = await get(`${API}/workers`);
  const at = performance.now();
  state.workers = new Map(report.workers.map((worker) => [worker.component_id, { ...worker, at }]));
  state.system = { paused: report.paused, degraded: report.degraded, unsaved: report.unsaved };
  state.breakers = (report.breakers ?? []).map((breaker) => ({ ...breaker, at }));
}

async function askQueues() {
  const answer = await getIfServed(`${API}/queues`).catch(() => null);
  for (const { queue, average_ms, eta_ms, ...figures } of answer?.queues ?? []) {
    hearQueue({ ...figures, queue_type: queue, avg_time: average_ms / 1000, eta: eta_ms / 1000 });
  }
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

// Of no worker in particular, and yet they change what is shown of all.
const OF_ALL = ["store_degraded", "store_recovered", "stood_down", "pause_began", "pause_ended"];

export function heard(name, said) {
  if (name === "snapshot") said.states.forEach(hearState);
  else if (name === "reset") refreshAll(); // what lies between is not kept any more
  else if (said.topic !== undefined) hearState(said);
  else if (said.id !== undefined) hearEvent(said);
  changed();
}

function hearState(said) {
  if (said.queue) hearQueue(said.queue);
  else if (said.worker) hearWorker(said.worker);
  else if (said.worker === null) refreshWorker(said.topic.replace(/:status$/, ""));
  else if (said.type === "alert_update") hearAlert();
}

// A canary that dies, or a worker that is held back, is told as any other death is.
function concernsBreakers(event) {
  return event.type.startsWith("breaker_") || event.type === "canary_started"
    || (state.breakers.length > 0 && event.type === "worker_died");
}

function hearEvent(event) {
  if (event.component_id !== null) refreshWorker(event.component_id);
  else if (OF_ALL.includes(event.type)) refreshWorker(ALL);
  if (concernsBreakers(event)) refreshWorker(ALL);
  if (event.type.startsWith("alert_")) hearAlert();
  if (event.type.startsWith("job_")) queuesMoved();
  if (asking) meanwhile.push(event);
  addEvent(event);
}

// Each once: it may have been read from the log, or from the deaths, or from neither.
function addEvent(event) {
  if (!state.feed.some((line) => line.id === event.id)) state.feed = [event, ...state.feed].slice(0, MOST_LINES);
  if (event.type !== "worker_died" || state.deaths.some((death) => isOf(death, event))) return;
  const death = { ...event, died_at_wall_ms: event.at_wall_ms };
  state.deaths = [death, ...state.deaths].slice(0, MOST_DEATHS);
}

// By the minute too: a worker that was removed and is there again counts its lives anew.
function isOf(death, event) {
  return death.component_id === event.component_id && death.generation === event.generation
    && Math.abs(death.died_at_wall_ms - event.at_wall_ms) < 60_000;
}

// A busy worker takes one job after the other: that alone is no reason to ask for more.
function hearWorker({ component, status, pid, current_job }) {
  const known = state.workers.get(component);
  if (known === undefined || known.pid !== pid || known.shown !== status) refreshWorker(component);
  else known.current_job = current_job;
  queuesMoved();
}

// A worker took a job, or ended one: the figures are others now. Asked for seldom, and only then.
let askingQueues = null;
function queuesMoved() {
  askingQueues ??= setTimeout(async () => {
    askingQueues = null;
    await askQueues();
    changed();
  }, QUEUES_MS);
}

function hearQueue(queue) {
  if (queue.queue_type === null) return; // all of them together
  const now = performance.now();
  const known = state.queues.get(queue.queue_type);
  const past = (known?.past ?? []).filter((each) => now - each.at < PACE_MS);
  state.queues.set(queue.queue_type, { ...known, ...queue, past: [...past, { at: now, completed: queue.completed }] });
}

// A thousand workers that die at once are a thousand alerts, and a few questions.
let askingAlerts = null;
function hearAlert() {
  askingAlerts ??= setTimeout(async () => {
    askingAlerts = null;
    state.alerts = await getIfServed(`${API}/alerts`).catch(() => state.alerts);
    changed();
  }, ALERTS_MS);
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

export function supervisorsNow() {
  return Date.now() + state.skewMs;
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
