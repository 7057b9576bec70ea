// The queues and their jobs: by queue, state and text, with the commands for each.

import { API, get } from "../api.js";
import { asker } from "../asker.js";
import { byId, el, mark, say } from "../dom.js";
import { jobButton, jobOrders } from "../job_actions.js";
import { queues } from "../queues.js";
import { askQueues, changed, listen, mayOrder, state } from "../store.js";
import { count, moment, span } from "../words.js";

const STATES = ["running", "pending", "waiting", "toxic", "error", "cancelled", "expired", "done"];
const FIRST = 100; // how many are listed at first
const MOST = 1000; // the most that the supervisor lists
const COLUMNS = ["Job", "Queue", "State", "Payload", "Attempts", "Worker", "Added", "Took"];

export function jobs(query) {
  let chosen = { queue: query.get("queue"), state: query.get("state") };
  let limit = FIRST;
  let answer = null; // null: not asked yet
  let unavailable = "";
  const rows = new Map();
  const body = el("tbody");
  const figures = queues({ commands: () => askQueues().then(changed), link: (name) => address({ ...chosen, queue: name }) });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "State" });
  const queue = el("select", { "aria-label": "Queue", onchange: () => choose({ queue: queue.value || null }) });
  const search = el("input", { type: "search", placeholder: "Number or text", "aria-label": "Find a job", oninput: () => update(),
    onkeydown: (event) => event.key === "Enter" && openNumber() });
  const none = el("p", { class: "empty", hidden: true });
  const more = el("button", { type: "button", class: "quiet", hidden: true, onclick: () => ((limit = MOST), asking.now()) }, "Show more");
  const asking = asker(ask);
  const deaf = listen(hear);
  const node = el("div", { class: "page" }, figures.node,
    el("section", { class: "card", "aria-labelledby": "jobs-title" },
      el("header", {}, el("h1", { id: "jobs-title" }, "Jobs"), queue, chips, search),
      el("div", { class: "scroll" }, el("table", { class: "plain jobs" },
        el("thead", {}, el("tr", {}, ...COLUMNS.map((text) => el("th", { scope: "col" }, text)),
          el("th", { scope: "col" }, el("span", { class: "unseen" }, "Commands")))), body)),
      none, el("div", { class: "after" }, more)));
  asking.now();

  async function ask(isStopped) {
    const wanted = new URLSearchParams({ limit });
    for (const [name, value] of Object.entries(chosen)) if (value) wanted.set(name, value);
    try {
      const found = await get(`${API}/jobs?${wanted}`);
      if (isStopped()) return;
      [answer, unavailable] = [found.jobs.map(({ job }) => job), ""];
    } catch (problem) {
      unavailable = problem.message ?? "";
      changed();
      throw problem;
    }
    changed();
  }

  function hear(name, said) {
    if (said.type === "job_update" || name === "reset" || name === "connected" || String(said.type).startsWith("job_")) asking.soon();
  }

  function choose(part) {
    chosen = { ...chosen, ...part };
    history.replaceState(null, "", address(chosen));
    limit = FIRST;
    answer = null;
    update();
    asking.now();
  }

  function openNumber() {
    if (/^#?\d+$/.test(search.value.trim())) location.hash = `#/job/${search.value.trim().replace("#", "")}`;
  }

  function update() {
    figures.update(state.queues);
    showChoices();
    const word = search.value.trim().toLowerCase().replace(/^#(?=\d+$)/, "");
    const wanted = (answer ?? []).filter((job) => textOf(job).includes(word));
    place(wanted);
    none.hidden = wanted.length > 0;
    say(none, emptyText(word));
    more.hidden = answer === null || answer.length < limit || limit === MOST;
  }

  function emptyText(word) {
    if (answer === null) return unavailable ? `The jobs cannot be read: ${unavailable}.` : "Loading …";
    if (word && answer.length) return `None of the latest ${count(answer.length, "job")} matches. Press Enter to open a job by its number.`;
    if (chosen.queue || chosen.state) return "There is no such job.";
    return state.queues.size ? "There are no jobs." : "No worker serves a queue, and there are no jobs.";
  }

  function place(wanted) {
    const kept = new Set(wanted.map((job) => job.id));
    for (const [id, each] of rows) if (!kept.has(id)) (each.node.remove(), rows.delete(id));
    wanted.forEach((job, index) => {
      if (!rows.has(job.id)) rows.set(job.id, row(job.id, () => asking.now()));
      const { node: line, update: show } = rows.get(job.id);
      show(job);
      if (body.children[index] !== line) body.insertBefore(line, body.children[index] ?? null);
    });
  }

  function showChoices() {
    const names = [...state.queues.keys()].sort();
    if (chosen.queue && !names.includes(chosen.queue)) names.push(chosen.queue);
    if (queue.dataset.names !== names.join("\n")) {
      queue.dataset.names = names.join("\n");
      queue.replaceChildren(el("option", { value: "" }, "All queues"), ...names.map((name) => el("option", { value: name }, name)));
    }
    queue.value = chosen.queue ?? "";
    if (chips.childElementCount === 0) {
      chips.append(...STATES.map((word) => el("button", { type: "button", "data-job": word,
        onclick: () => choose({ state: chosen.state === word ? null : word }) }, el("i", { class: "dot", "aria-hidden": "true" }), word)));
    }
    for (const chip of chips.children) mark(chip, "aria-pressed", String(chip.dataset.job === chosen.state));
  }

  function tick() {
    for (const job of answer ?? []) rows.get(job.id)?.tick(job);
  }

  return { node, update, tick, title: "Jobs", close: () => (asking.stop(), deaf()), focus: () => byId("content").focus() };
}

function address({ queue, state: word }) {
  const query = new URLSearchParams(Object.entries({ queue, state: word }).filter(([, value]) => value));
  return `#/jobs${query.size ? `?${query}` : ""}`;
}

function row(id, ordered) {
  const cells = Object.fromEntries(["queue", "payload", "attempts", "worker", "added", "took"].map((name) => [name, el("td", { "data-label": name })]));
  const word = el("span", { class: "status" });
  const note = el("span", { class: "note" });
  const orders = el("td", { class: "orders" });
  const node = el("tr", { "data-row": id },
    el("th", { scope: "row" }, el("a", { href: `#/job/${id}` }, String(id))), cells.queue,
    el("td", {}, el("i", { class: "dot", "aria-hidden": "true" }), word, note), cells.payload, cells.attempts, cells.worker, cells.added, cells.took, orders);
  let shownOrders = "";

  function update(job) {
    mark(node, "data-job", job.state);
    say(word, wordOf(job));
    say(note, progressOf(job));
    say(cells.queue, job.queue);
    say(cells.payload, valueText(job.payload));
    say(cells.attempts, String(job.attempts));
    say(cells.worker, job.claimed_by ?? "–");
    say(cells.added, moment(job.created_at_wall_ms));
    tick(job);
    const wanted = mayOrder() ? jobOrders(job).slice(0, 1) : [];
    if (wanted.join() === shownOrders) return;
    shownOrders = wanted.join();
    orders.replaceChildren(...wanted.map((order) => jobButton(order, job, ordered)));
  }

  function tick(job) {
    say(cells.took, took(job));
  }

  return { node, update, tick };
}

export function wordOf(job) {
  return job.state === "running" && job.cancel_requested_at_wall_ms !== null ? "running (asked to end)" : job.state;
}

// From the latest start to the end.
export function took(job) {
  return job.started_at_wall_ms === null || job.finished_at_wall_ms === null ? "–" : span(job.finished_at_wall_ms - job.started_at_wall_ms);
}

export function progressOf({ progress, state: word }) {
  if (word !== "running" || !progress) return "";
  const share = progress.total > 0 && progress.done !== null ? `${Math.round((100 * progress.done) / progress.total)} %` : "";
  return [share, progress.note].filter(Boolean).join(" ");
}

// A value on one line.
export function valueText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function textOf(job) {
  return [job.id, job.queue, job.state, valueText(job.payload), job.claimed_by ?? "", job.error ?? "", job.key ?? ""].join(" ").toLowerCase();
}
