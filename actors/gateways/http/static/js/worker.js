// One worker: its state and the reason, its output as it is written, its deaths.

import { button, ordersFor } from "./actions.js";
import { get, getIfServed, Problem, worker as workerPath } from "./api.js";
import { bundle } from "./bundle.js";
import { byId, el, mark, say } from "./dom.js";
import { curves } from "./curves.js";
import { flagged, noteOf } from "./fleet.js";
import { gauge } from "./gauge.js";
import { happened } from "./happened.js";
import { log } from "./log.js";
import { mayOrder, nextAttempt, shown, state, uptime } from "./store.js";
import { timeline } from "./timeline.js";
import { usages } from "./usages.js";
import { declaration } from "./declaration.js";
import { cause, elapsed, moment, number, span } from "./words.js";

const DECISIONS = { restart: "restart", restart_uncounted: "restart, not counted", mark_failed: "failed", ignore: "not restarted", notify_only: "notified only", hold: "held" };

const COLUMNS = ["When", "Gen", "Cause", "Lived", "Decision", "Delay", "Why"];

export function worker(id) {
  const status = el("span", { class: "pill" });
  const note = el("p", { class: "next" });
  const orders = el("div", { class: "orders" });
  const facts = factsOf();
  const why = el("p", { class: "why" });
  const output = log(id);
  const curve = curves();
  const checks = el("ul", { class: "checks", hidden: true, "aria-label": "Readiness and probes" });
  const usage = usages(() => (facts.use(usage.of(id)), curve.update(usage.past(id))));
  const history = el("tbody");
  const table = el("table", { class: "plain history" },
    el("thead", {}, el("tr", {}, ...COLUMNS.map((text) => el("th", { scope: "col" }, text)))), history);
  const noDeaths = el("p", { class: "empty", hidden: true }, "This worker has not died.");
  const strip = timeline({ only: id });
  const past = happened();
  const gone = el("p", { class: "empty", hidden: true }, "There is no worker with this name; it may have been removed.");
  let seen = "";
  let shownOrders = "";

  const declared = declaration();
  const cards = [
    el("section", { class: "card head", "aria-labelledby": "worker-title" },
      el("header", {}, el("h1", { id: "worker-title" }, el("bdi", {}, id)), status, orders),
      note, why, facts.node, checks),
    output.node,
    curve.node,
    declared.node,
    el("section", { class: "card", "aria-labelledby": "life-title" },
      el("header", {}, el("h2", { id: "life-title" }, "Deaths and restarts"), strip.ranges), strip.node),
    el("section", { class: "card", "aria-labelledby": "history-title" },
      el("header", {}, el("h2", { id: "history-title" }, "History")),
      el("div", { class: "scroll" }, table), noDeaths),
    past.node];
  const node = el("div", { class: "page one" },
    el("nav", { "aria-label": "Back" }, el("a", { href: "#/", class: "back" }, "← All workers")), gone, ...cards);

  function update() {
    const found = state.workers.get(id);
    gone.hidden = found !== undefined || state.info === null;
    cards.forEach((card) => (card.hidden = !gone.hidden)); // an unknown worker is one sentence
    if (found === undefined) return;
    mark(node, "data-status", shown(found));
    say(status, flagged(found));
    facts.update(found);
    showChecks(found);
    showOrders(found);
    tick();
    strip.update();
    // The details are requested again only if the worker itself has changed.
    const deaths = state.deaths.filter((death) => death.component_id === id).length;
    const key = [found.generation, found.status, found.shown, found.paused, found.restart_count, deaths].join();
    if (key !== seen) (seen = key), ask();
  }

  // What it says of itself, which conditions of its start are open, and the latest answers of its probe.
  function showChecks({ said, not_ready: open, probes }) {
    const lines = [...(said ? [`It says: ${said}`] : []), ...(open ?? []).map((each) => `Not ready: ${each}`), ...(probes ?? [])];
    checks.hidden = lines.length === 0;
    if (checks.dataset.lines === lines.join("\n")) return;
    checks.dataset.lines = lines.join("\n");
    checks.replaceChildren(...lines.map((text) => el("li", {}, el("bdi", {}, text))));
  }

  function showOrders(found) {
    const wanted = mayOrder() ? ordersFor(found) : [];
    const key = [...wanted, isDown(found)].join();
    if (key === shownOrders) return;
    shownOrders = key;
    orders.replaceChildren(...wanted.map((order, index) => button(order, id, index === 0 && isDown(found) ? "primary" : "")));
  }

  function tick() {
    const found = state.workers.get(id);
    if (found === undefined) return;
    const text = nextAttempt(found) === null ? "" : noteOf(found); // the rest is in the explanation
    note.hidden = text === "";
    say(note, text);
    facts.tick(found);
    strip.tick();
  }

  async function ask() {
    output.again();
    await Promise.all([
      show(get(workerPath(id, "explain")), (answer) => say(why, answer.text)),
      show(Promise.all([
        get(`${workerPath(id, "history")}?limit=100`),
        getIfServed(workerPath(id, "bundles"), "?limit=100").catch(onlyIfServed), // its node may be away
      ]), showHistory),
      show(get(`${workerPath(id, "timeline")}?limit=100`), (answer) => {
        past.update(answer);
        output.runs(state.workers.get(id)?.generation, answer.entries);
      }),
      show(getIfServed(workerPath(id, "declaration")), declared.update),
    ]);
  }

  async function show(asked, use) {
    try {
      use(await asked);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
    }
  }

  function onlyIfServed(problem) {
    if (problem instanceof Problem) return null;
    throw problem;
  }

  function showHistory([{ deaths }, autopsies]) {
    strip.tell(deaths);
    noDeaths.hidden = deaths.length > 0;
    table.hidden = deaths.length === 0;
    const findings = autopsies?.bundles ?? [];
    const open = history.querySelector("details[open]"); // the user reads it: leave it until the next death
    if (open && history.dataset.deaths === String(deaths.length)) return;
    history.dataset.deaths = deaths.length;
    history.replaceChildren(...deaths.flatMap((death, index) => [deathRow(death), bundle(death, findings, deaths[index - 1])].filter(Boolean)));
  }

  return { node, update, tick, title: id, close: () => (usage.stop(), output.close(), strip.close()), focus: () => byId("content").focus() };
}

// The likeliest command stands out where something has to be done, not on a worker that is well.
function isDown(found) {
  return ["failed", "crashed", "paused", "stopped"].includes(shown(found));
}

function deathRow(death) {
  const cells = [
    el("time", { datetime: new Date(death.died_at_wall_ms).toISOString() }, moment(death.died_at_wall_ms)),
    String(death.generation), cause(death), span(death.uptime_ms),
    DECISIONS[death.action] ?? death.action, death.action === "restart" ? span(death.delay_ms) : "–",
    el("bdi", {}, death.reason),
  ];
  return el("tr", { "data-action": death.action }, ...cells.map((cell, index) => el("td", { "data-label": COLUMNS[index] }, cell)));
}

function factsOf() {
  const items = { pid: "Pid", uptime: "Uptime", generation: "Generation", job: "Job", exact: "Health",
    memory: "Memory", cpu: "CPU" };
  const values = Object.fromEntries(Object.keys(items).map((key) => [key, el("dd")]));
  const budgets = [["in_window", "max_in_window", "in the window"], ["consecutive", "max_consecutive", "in a row"], ["lifetime", "max_lifetime", "in its lifetime"]]
    .map(([used, most, what]) => ({ used, most, what, gauge: gauge() }));
  const node = el("dl", { class: "facts" },
    ...Object.entries(items).map(([key, text]) => el("div", {}, el("dt", {}, text), values[key])),
    ...budgets.map((each) => el("div", {}, el("dt", {}, `Restarts ${each.what}`), el("dd", {}, each.gauge.node))));

  function update(found) {
    say(values.pid, found.pid === null ? "–" : String(found.pid));
    say(values.generation, String(found.generation));
    say(values.job, found.current_job === null ? "–" : String(found.current_job));
    say(values.exact, found.status ?? "–");
    for (const each of budgets) each.gauge.update({ used: found.budget[each.used], most: found.budget[each.most], what: each.what });
  }

  function tick(found) {
    const lived = uptime(found);
    say(values.uptime, lived === null ? "–" : elapsed(lived));
  }

  function use(usage) {
    say(values.memory, usage ? `${number(usage.memory_mb)} MB` : "–");
    say(values.cpu, typeof usage?.cpu_percent === "number" ? `${number(usage.cpu_percent)} %` : "–");
  }

  return { node, update, tick, use };
}
