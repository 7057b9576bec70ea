// The state of the page. An event tells that something changed and where; the page then requests the
// current state, once for any number of events that came meanwhile. It never polls.

import { API, get, getIfServed, Problem, worker as workerPath } from "./api.js";

const MOST_DEATHS = 1000;
const MOST_LINES = 200;
const PACE_MS = 60_000; // over which the throughput of a queue is measured
const QUEUES_MS = 2_000;
const ALERTS_MS = 250;
const AGAIN_MS = 1_000; // before the next request to a busy supervisor
const REST = 4; // all workers are requested again after this many times the time that it took
const LONGEST_REST_MS = 2_000;
const A_FEW = 4; // if more workers changed, all are requested at once

export const state = {
  session: null, // { role, may_order }
  connection: "connecting", // connecting, live, lost, signed-out
  retryAt: 0,
  heardAt: 0, // when the supervisor last said something
  info: null,
  skewMs: 0, // how far the supervisor's clock is ahead of the browser's
  workers: new Map(), // by id; each with `at`, when its durations were measured
  system: { paused: false, degraded: null, unsaved: 0 },
  breakers: [], // the open ones; each with `at`
  rollouts: [], // those under way
  nodes: [], // of the cluster; each with `at`; none without one
  deaths: [], // newest first
  queues: new Map(), // by type; each with its recent counts
  alerts: null, // null: this supervisor does not serve alerts
  feed: [], // newest first
};

const watchers = new Set();
let announced = false;

export function watch(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

// The page is drawn once per frame, for any number of changes.
export function changed() {
  if (announced) return;
  announced = true;
  requestAnimationFrame(() => {
    announced = false;
    watchers.forEach((watcher) => watcher());
  });
}

// ── requests ────────────────────────────────────────────────────────────────────────────

const ALL = "*"; // not a worker id
const dirty = new Set();
let everything = false;
let asking = false;
let untold = null; // the states of workers that came while all workers were requested for the first time

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
    // A lost connection is detected elsewhere, and everything is requested again when it is back. A
    // busy supervisor is asked again later, since no further event may come.
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
  else if (ids.length > A_FEW || ids.includes(ALL)) await rested(askWorkers);
  else await Promise.all(ids.map(askWorker));
  changed();
}

// A large fleet that changes all the time is requested now and then, not without a pause.
let restedAt = 0;
async function rested(request) {
  await new Promise((done) => setTimeout(done, Math.max(0, restedAt - performance.now())));
  dirty.clear(); // what changed meanwhile is part of the answer
  const began = performance.now();
  await request();
  changed();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // drawing takes time, too
  restedAt = performance.now() + Math.min(LONGEST_REST_MS, REST * (performance.now() - began));
}

let meanwhile = []; // events that came while the log was read

async function askEverything() {
  meanwhile = [];
  untold = [];
  const [info, deaths, log, alerts] = await Promise.all([
    get(`${API}/info`),
    get(`${API}/deaths?limit=${MOST_DEATHS}`).catch(() => null), // the store may be unavailable
    getIfServed(`${API}/events/log`, `?limit=${MOST_LINES}`).catch(() => null),
    getIfServed(`${API}/alerts`).catch(() => state.alerts),
    askAllWorkers(),
    askQueues(),
  ]);
  state.info = info;
  state.skewMs = (info.at_wall_ms ?? Date.now()) - Date.now();
  state.alerts = alerts;
  if (deaths !== null) state.deaths = deaths.deaths;
  if (log !== null) state.feed = log.events.reverse();
  meanwhile.forEach(addEvent);
}

// The workers are drawn as soon as they are known. The stream begins with the state of each of them: only a
// worker whose state is another one than in the answer is requested again.
async function askAllWorkers() {
  try {
    await askWorkers();
  } finally {
    const said = untold;
    untold = null;
    said.forEach(hearWorker);
    changed();
  }
}

export async function askWorkers() {
  const report = await get(`${API}/workers`);
  const at = performance.now();
  state.workers = new Map(report.workers.map((worker) => [worker.component_id, same(state.workers.get(worker.component_id), { ...worker, at })]));
  state.system = { paused: report.paused, degraded: report.degraded, unsaved: report.unsaved };
  state.breakers = (report.breakers ?? []).map((breaker) => ({ ...breaker, at }));
  state.nodes = (report.nodes ?? []).map((node) => ({ ...node, at }));
  state.rollouts = (report.rollouts ?? []).filter((rollout) => rollout.stage !== "over");
}

// A worker that has not changed stays the same object, so that its row is not drawn again.
function same(known, worker) {
  if (known === undefined || known.pid !== worker.pid || known.generation !== worker.generation) return worker;
  return signature(known) === signature(worker) ? Object.assign(known, { at: worker.at, uptime_ms: worker.uptime_ms, next_attempt_in_ms: worker.next_attempt_in_ms }) : worker;
}

function signature({ at, uptime_ms, next_attempt_in_ms, ...rest }) {
  return JSON.stringify(rest);
}

export async function askQueues() {
  const answer = await getIfServed(`${API}/queues`).catch(() => null);
  for (const { queue, average_ms, eta_ms, ...figures } of answer?.queues ?? []) {
    const paused = (figures.pause ?? null) !== null;
    hearQueue({ ...figures, paused, queue_type: queue, avg_time: average_ms / 1000, eta: eta_ms / 1000 });
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

// ── events ──────────────────────────────────────────────────────────────────────────────

// Events without a worker that change what is shown of all workers.
const OF_ALL = ["store_degraded", "store_recovered", "stood_down", "pause_began", "pause_ended"];

// Pages with requests of their own hear what the stream says, too.
const listeners = new Set();

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function heard(name, said) {
  listeners.forEach((listener) => listener(name, said));
  if (name === "snapshot") said.states.forEach(hearState);
  else if (name === "reset") refreshAll(); // the events between are no longer persisted
  else if (said.topic !== undefined) hearState(said);
  else if (said.id !== undefined) hearEvent(said);
  changed();
}

function hearState(said) {
  if (said.queue) hearQueue(said.queue);
  else if (said.worker) hearWorker(said.worker);
  else if (said.worker === null) refreshWorker(said.topic.replace(/:status$/, ""));
  else if (said.type === "alert_update") hearAlert();
  else if (said.type === "job_update") queuesMoved();
}

// The death of a canary, or of a worker that is held back, is an ordinary death event.
function concernsBreakers(event) {
  return event.type.startsWith("breaker_") || event.type === "canary_started"
    || (state.breakers.length > 0 && event.type === "worker_died");
}

function hearEvent(event) {
  if (event.component_id !== null) refreshWorker(event.component_id);
  else if (OF_ALL.includes(event.type)) refreshWorker(ALL);
  if (concernsBreakers(event) || event.type.startsWith("rollout_")) refreshWorker(ALL);
  if (event.type.startsWith("alert_")) hearAlert();
  if (event.type.startsWith("job_")) queuesMoved();
  if (asking) meanwhile.push(event);
  addEvent(event);
}

// Each event once: the log or the deaths may already contain it.
function addEvent(event) {
  if (!state.feed.some((line) => line.id === event.id)) state.feed = [event, ...state.feed].slice(0, MOST_LINES);
  if (event.type !== "worker_died" || state.deaths.some((death) => isOf(death, event))) return;
  const death = { ...event, died_at_wall_ms: event.at_wall_ms };
  state.deaths = [death, ...state.deaths].slice(0, MOST_DEATHS);
}

// The time too: a worker that was removed and added again restarts its generations.
function isOf(death, event) {
  return death.component_id === event.component_id && death.generation === event.generation
    && Math.abs(death.died_at_wall_ms - event.at_wall_ms) < 60_000;
}

// A busy worker takes one job after the other; that alone needs no request.
function hearWorker(said) {
  if (untold !== null) return void untold.push(said);
  const { component, status, pid, current_job } = said;
  const known = state.workers.get(component);
  if (known === undefined || known.pid !== pid || known.shown !== status) refreshWorker(component);
  else known.current_job = current_job;
  queuesMoved();
}

// A worker took or finished a job, so the figures changed. They are requested at a limited rate.
let askingQueues = null;
function queuesMoved() {
  askingQueues ??= setTimeout(async () => {
    askingQueues = null;
    await askQueues();
    changed();
  }, QUEUES_MS);
}

function hearQueue(queue) {
  if (queue.queue_type === null) return; // the totals
  const now = performance.now();
  const known = state.queues.get(queue.queue_type);
  const past = (known?.past ?? []).filter((each) => now - each.at < PACE_MS);
  state.queues.set(queue.queue_type, { ...known, ...queue, past: [...past, { at: now, completed: queue.completed }] });
}

// A thousand deaths at once are a thousand alerts, but only a few requests.
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

// ── derived ─────────────────────────────────────────────────────────────────────────────

export function mayOrder() {
  return state.session?.may_order === true;
}

export function supervisorsNow() {
  return Date.now() + state.skewMs - (performance.now() - clock());
}

// Time stands still while the connection is lost: what is shown is what was last heard.
export function clock() {
  return state.connection === "lost" ? state.heardAt : performance.now();
}

// How long ago the worker's durations were measured.
export function since(worker) {
  return Math.max(0, clock() - worker.at);
}

export function uptime(worker) {
  return worker.uptime_ms === null ? null : worker.uptime_ms + since(worker);
}

export function nextAttempt(worker) {
  return worker.next_attempt_in_ms === null ? null : Math.max(0, worker.next_attempt_in_ms - since(worker));
}

// The status that is shown: a paused worker is "paused" only while it has no process.
export function shown(worker) {
  return worker.paused && worker.pid === null && worker.shown !== "failed" ? "paused" : worker.shown;
}

// The limit with the fewest restarts left, as in `rekindle status`.
export function tightest(budget) {
  const limits = [
    { used: budget.in_window, most: budget.max_in_window, what: `within ${Math.round(budget.window_ms / 60000)} min` },
    { used: budget.consecutive, most: budget.max_consecutive, what: "in a row" },
    { used: budget.lifetime, most: budget.max_lifetime, what: "in its lifetime" },
  ].filter((limit) => limit.most !== null);
  if (limits.length === 0) return { used: budget.lifetime, most: null, what: "in its lifetime" };
  return limits.reduce((a, b) => (b.most - b.used < a.most - a.used ? b : a));
}
