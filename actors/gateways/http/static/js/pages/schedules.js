// What runs by the clock: scheduled workers with their next and latest runs, and periodic jobs.

import { button } from "../actions.js";
import { API, get, getIfServed, Problem, worker as workerPath } from "../api.js";
import { asker } from "../asker.js";
import { byId, el, mark, say } from "../dom.js";
import { changed, listen, mayOrder, state, supervisorsNow } from "../store.js";
import { count, elapsed, moment, span } from "../words.js";

const RUNS = 12; // of each worker
const MOST = 50; // workers whose runs are requested

export function schedules() {
  const rows = new Map();
  const runs = new Map(); // by worker; each with the key for which they were requested
  let periodic = null;
  const body = el("tbody");
  const jobs = el("tbody");
  const none = el("p", { class: "empty", hidden: true });
  const table = el("table", { class: "plain schedules" },
    el("thead", {}, el("tr", {}, ...["Worker", "Schedule", "Next", "Latest run", "Runs"].map((text) => el("th", { scope: "col" }, text)),
      el("th", { scope: "col" }, el("span", { class: "unseen" }, "Commands")))), body);
  const jobCard = el("section", { class: "card", hidden: true, "aria-labelledby": "periodic-title" },
    el("header", {}, el("h2", { id: "periodic-title" }, "Periodic jobs")),
    el("div", { class: "scroll" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...["Name", "Queue", "Schedule", "Next", "Latest job", "Missed"].map((text) => el("th", { scope: "col" }, text)))), jobs)));
  const node = el("div", { class: "page" },
    el("section", { class: "card", "aria-labelledby": "schedules-title" },
      el("header", {}, el("h1", { id: "schedules-title" }, "Schedules")), el("div", { class: "scroll" }, table), none), jobCard);
  const asking = asker(ask);
  const deaf = listen((name, said) => (name === "connected" || name === "reset" || /^(run_|job_)/.test(said.type ?? "")) && asking.soon());
  asking.now();

  const scheduled = () => [...state.workers.values()].filter((worker) => worker.schedule);

  // The runs of a worker are requested again only if it had another one.
  async function ask(isStopped) {
    periodic = (await getIfServed(`${API}/periodic`).catch(() => null))?.periodic ?? periodic ?? [];
    for (const worker of scheduled().slice(0, MOST)) {
      const key = keyOf(worker);
      if (runs.get(worker.component_id)?.key === key) continue;
      const found = await get(`${workerPath(worker.component_id, "runs")}?limit=${RUNS}`).catch(ignored);
      if (isStopped()) return;
      if (found) runs.set(worker.component_id, { key, runs: found.runs });
    }
    changed();
  }

  function update() {
    const wanted = scheduled().sort((a, b) => a.schedule.next_due_wall_ms - b.schedule.next_due_wall_ms || (a.component_id < b.component_id ? -1 : 1));
    if (wanted.slice(0, MOST).some((worker) => runs.get(worker.component_id)?.key !== keyOf(worker))) asking.soon();
    place(wanted);
    table.hidden = wanted.length === 0;
    none.hidden = wanted.length > 0;
    say(none, state.info === null ? "Loading …" : "No worker has a schedule. One with every = \"15m\" or cron = \"0 3 * * *\" runs by the clock.");
    showJobs();
  }

  function place(wanted) {
    const kept = new Set(wanted.map((worker) => worker.component_id));
    for (const [id, each] of rows) if (!kept.has(id)) (each.node.remove(), rows.delete(id));
    wanted.forEach((worker, index) => {
      const id = worker.component_id;
      if (!rows.has(id)) rows.set(id, row(id));
      rows.get(id).update(worker, runs.get(id)?.runs ?? []);
      const line = rows.get(id).node;
      if (body.children[index] !== line) body.insertBefore(line, body.children[index] ?? null);
    });
  }

  function showJobs() {
    const key = JSON.stringify(periodic);
    if (periodic === null || jobs.dataset.key === key) return;
    jobs.dataset.key = key;
    jobCard.hidden = periodic.length === 0;
    jobs.replaceChildren(...periodic.map((each) => el("tr", {}, el("th", { scope: "row" }, el("bdi", {}, each.name)), ...[
      el("a", { href: `#/jobs?${new URLSearchParams({ queue: each.queue })}` }, el("bdi", {}, each.queue)), each.schedule,
      each.next_due_wall_ms === null ? "–" : moment(each.next_due_wall_ms),
      each.last_job_id === null ? "–" : el("a", { href: `#/job/${each.last_job_id}` }, `job ${each.last_job_id}`), String(each.missed),
    ].map((cell, index) => el("td", { "data-label": ["Queue", "Schedule", "Next", "Latest job", "Missed"][index] }, cell)))));
  }

  function tick() {
    for (const worker of scheduled()) rows.get(worker.component_id)?.tick(worker);
  }

  return { node, update, tick, title: "Schedules", close: () => (asking.stop(), deaf()), focus: () => byId("content").focus() };
}

function ignored(problem) {
  if (!(problem instanceof Problem) || problem.status === 401) throw problem;
  return null;
}

function keyOf({ schedule }) {
  return [schedule.current, schedule.last].map((run) => (run ? `${run.number} ${run.state} ${run.times}` : "")).join();
}

function row(id) {
  const [plan, next, last, past] = ["Schedule", "Next", "Latest run", "Runs"].map((name) => el("td", { "data-label": name }));
  const orders = el("td", { class: "orders" });
  const node = el("tr", { "data-schedule": id },
    el("th", { scope: "row" }, el("a", { href: `#/worker/${encodeURIComponent(id)}` }, el("bdi", {}, id))), plan, next, last, past, orders);
  let drawn = "";

  function update(worker, runs) {
    const { schedule } = worker;
    say(plan, schedule.plan);
    const key = JSON.stringify([schedule.current, schedule.last, schedule.overdue, runs, mayOrder()]);
    if (key !== drawn) {
      drawn = key;
      const latest = schedule.current ?? schedule.last;
      last.replaceChildren(...(latest === null ? ["none yet"] : [
        el("span", { class: "status", "data-run": latest.state }, latest.state), el("span", { class: "note" }, noteOf(latest))]),
      schedule.overdue ? el("strong", { class: "overdue" }, " overdue") : "");
      past.replaceChildren(strip(runs));
      orders.replaceChildren(...(mayOrder() ? [button("run-now", id)] : []));
    }
    tick(worker);
  }

  function tick({ schedule, paused }) {
    const left = schedule.next_due_wall_ms - supervisorsNow();
    say(next, paused ? "paused" : `${moment(schedule.next_due_wall_ms)} (${left <= 0 ? "now" : `in ${elapsed(left + 999)}`})`);
  }

  return { node, update, tick };
}

function noteOf(run) {
  const times = run.times > 1 ? `${count(run.times, "time")}, ` : "";
  const took = run.started_at_wall_ms !== null && run.ended_at_wall_ms !== null ? ` after ${span(run.ended_at_wall_ms - run.started_at_wall_ms)}` : "";
  const why = run.detail || (run.reason ?? "").replaceAll("_", " ");
  return `${times}${moment(run.due_wall_ms)}${took}${why ? `: ${why}` : ""}`;
}

// A bar for each run, the latest on the right; the list says the same to a screen reader.
function strip(runs) {
  const list = el("ol", { class: "run-strip", "aria-label": "Runs, the latest last" });
  list.append(...[...runs].reverse().map((run) => {
    const item = el("li", { title: `${run.state} ${noteOf(run)}` }, el("span", { class: "unseen" }, `${run.state} ${noteOf(run)}`));
    mark(item, "data-run", run.state);
    return item;
  }));
  return list;
}
