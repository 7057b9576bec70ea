// The supervisor itself: its process, its store, its gateways, upgrades, rollouts, and who ordered what.

import { API, get, getIfServed } from "../api.js";
import { asker } from "../asker.js";
import { byId, el, mark, say } from "../dom.js";
import { configuration } from "../configuration.js";
import { changed, listen, state, supervisorsNow } from "../store.js";
import { count, elapsed, moment, number, span } from "../words.js";

const EVERY_MS = 5_000; // memory and descriptors: no event tells of them
const ORDERS = 20;

export function supervisor() {
  let found = null; // { info, upgrade, report, audit }
  let drawn = "";
  const up = el("dd");
  const facts = el("dl", { class: "facts" });
  const places = el("dl", { class: "facts wide" });
  const store = el("dl", { class: "facts wide" });
  const gateways = listing("gateways", "Gateways and alert sinks", ["Name", "State", "Since", "Delivered", "Waiting", "Dropped", "Detail"],
    "No events and no alerts are sent elsewhere.");
  const rollouts = listing("rollouts", "Upgrades and rollouts", ["What", "State", "Latest step"], "The supervisor was not upgraded, and nothing was rolled out.");
  const actors = listing("actors", "Actors", ["Actor", "Number", "Lane", "Rebuilt after an error"], "The supervisor does not tell.");
  const settings = configuration();
  const orders = listing("orders", "Latest commands", ["When", "Who", "Command", "Target", "Result"], "No command was given yet.");
  const node = el("div", { class: "page" },
    el("section", { class: "card", "aria-labelledby": "supervisor-title" },
      el("header", {}, el("h1", { id: "supervisor-title" }, "Supervisor")), facts, places),
    el("section", { class: "card", "aria-labelledby": "store-title" }, el("header", {}, el("h2", { id: "store-title" }, "Store")), store),
    gateways.node, rollouts.node, orders.node, settings.node, actors.node);
  const asking = asker(ask);
  const deaf = listen((name, said) => (name === "connected" || name === "reset" || said.topic === undefined) && asking.soon());
  const timer = setInterval(() => document.visibilityState !== "hidden" && state.connection === "live" && asking.now(), EVERY_MS);
  asking.now();

  async function ask(isStopped) {
    const [info, upgrade, report, audit] = await Promise.all([get(`${API}/info`),
      getIfServed(`${API}/upgrade`).catch(() => null), get(`${API}/workers`), get(`${API}/audit?limit=${ORDERS}`).catch(() => null)]);
    if (isStopped()) return;
    settings.ask();
    found = { info, upgrade: upgrade?.detail ?? {}, rollouts: report.rollouts ?? [], audit: audit?.entries ?? null };
    changed();
  }

  function update() {
    tick();
    const key = JSON.stringify(found);
    if (found === null || key === drawn) return;
    drawn = key;
    const { info, upgrade } = found;
    facts.replaceChildren(...terms([["Version", info.version], ["Pid", String(info.pid)], ["Up", up], ["Python", info.python],
      ...Object.entries(info.libraries ?? {}),
      ["Memory", info.memory_mb === null || info.memory_mb === undefined ? null : `${number(info.memory_mb)} MB`], ["Threads", text(info.threads)],
      ["Open descriptors", text(info.descriptors)], ["Workers", String(info.workers)], ["Waiting jobs", String(info.queue_depth)],
      ]));
    places.replaceChildren(...terms([["Configuration", info.configuration], ["State directory", info.state_directory], ["Dashboard", info.dashboard]]));
    store.replaceChildren(...terms([["Database", info.database], ["State", info.degraded ? `unavailable: ${info.degraded}` : "available"],
      ["Not persisted yet", count(info.unsaved, "record")]]));
    mark(store, "data-level", info.degraded ? "spent" : "none");
    actors.show((info.actors ?? []).map((each) => [each.name, String(each.number), each.lane, each.rebuilt === 0 ? "never" : count(each.rebuilt, "time")]));
    gateways.show(info.gateways.map((each) => [each.name, each.connected ? "delivers" : "does not deliver", moment(each.since_wall_ms),
      number(each.delivered), number(each.waiting), number(each.dropped), each.detail]));
    rollouts.show([...upgrades(upgrade), ...found.rollouts.map(rolled)]);
    orders.show(found.audit === null ? null : found.audit.map((each) => [moment(each.at_wall_ms), by(each), each.action.replaceAll("_", " "),
      each.target || "everything", each.reason ? `${each.result}: ${each.reason}` : each.result]));
  }

  function tick() {
    if (found !== null) say(up, elapsed(supervisorsNow() - found.info.started_at_wall_ms));
  }

  return { node, update, tick, title: "Supervisor", close: () => (clearInterval(timer), asking.stop(), deaf()), focus: () => byId("content").focus() };
}

const text = (value) => (value === null || value === undefined ? null : String(value));

function terms(pairs) {
  return pairs.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), value instanceof Node ? value : el("dd", {}, el("bdi", {}, value))));
}

function by({ claimed_user: user, uid, gateway }) {
  return `${user ?? (uid === null ? "a client" : `uid ${uid}`)} over ${gateway}`;
}

function upgrades({ number: times, failed, blind_ms: blind, version }) {
  if (failed) return [["Upgrade of the supervisor", "failed", failed]];
  return times ? [["Upgrade of the supervisor", `done, ${count(times, "time")}`,
    `now ${version}${typeof blind === "number" ? `; the latest one took ${span(blind)}` : ""}`]] : [];
}

function rolled(rollout) {
  const word = rollout.problem ? "ended early" : rollout.stage === "over" ? "done" : "under way";
  return [`Rollout of ${rollout.group}`, `${word}, ${rollout.replaced.length} of ${rollout.workers.length} replaced`, rollout.problem || (rollout.steps.at(-1) ?? "")];
}

function listing(id, title, columns, empty) {
  const rows = el("tbody");
  const none = el("p", { class: "empty" }, "Loading …");
  const table = el("table", { class: "plain", hidden: true }, el("thead", {}, el("tr", {}, ...columns.map((each) => el("th", { scope: "col" }, each)))), rows);
  const node = el("section", { class: "card", "aria-labelledby": `${id}-title` },
    el("header", {}, el("h2", { id: `${id}-title` }, title)), el("div", { class: "scroll" }, table), none);

  function show(lines) {
    table.hidden = !lines?.length;
    none.hidden = Boolean(lines?.length);
    say(none, lines === null ? "They cannot be read: the store is unavailable." : empty);
    rows.replaceChildren(...(lines ?? []).map((cells) => el("tr", {}, ...cells.map((cell, index) => el("td", { "data-label": columns[index] }, el("bdi", {}, String(cell)))))));
  }

  return { node, show };
}
