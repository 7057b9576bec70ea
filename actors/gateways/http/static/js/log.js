// The output of one worker, as it is written. No event tells of a line, so the page asks for the lines
// after the newest one that it has: often while the worker writes, seldom while it is silent, and not at
// all while the log is paused, out of sight, or the connection is lost. Older lines come from its log file.

import { API, get, Problem } from "./api.js";
import { el, mark, say } from "./dom.js";
import { logLine, logNote } from "./log_line.js";
import { logPast } from "./log_past.js";
import { state } from "./store.js";
import { count, moment } from "./words.js";

const FIRST = 200; // as many as the supervisor keeps of a worker
const MOST = 2_000; // lines on the page
const BUSY_MS = 400;
const IDLE_MS = 2_000;
const TYPING_MS = 300;

export function log(id) {
  const lines = []; // { node, line, update }
  let newest = null;
  let run = null;
  let generation = null; // of the newest line
  let paused = false;
  let waiting = 0; // lines that came while the user reads further up
  let timer = null;
  let typing = null;
  let underWay = false;
  let closed = false;
  const list = el("pre", { class: "output log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Output", onscroll: () => atEnd() && sawAll() });
  const search = el("input", { type: "search", placeholder: "Find in the output", "aria-label": "Find in the output", oninput: () => filter(TYPING_MS) });
  const streams = el("select", { "aria-label": "Stream", onchange: () => filter() }, ...[["", "out and err"], ["out", "out"], ["err", "err"]]
    .map(([value, text]) => el("option", { value }, text)));
  const generations = el("select", { "aria-label": "Generation", onchange: () => filter() }, el("option", { value: "" }, "all runs"));
  const pause = el("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => follow(paused) }, "Pause");
  const times = el("button", { type: "button", class: "quiet", "aria-pressed": "false",
    onclick: () => mark(times, "aria-pressed", String(list.toggleAttribute("data-times"))) }, "Times");
  const below = el("button", { type: "button", class: "below", hidden: true, onclick: () => toEnd() });
  const found = el("span", { class: "log-state", role: "status" });
  const past = logPast({ id, list, oldest, filter: wanted, found: counted });
  const now = el("div");
  list.append(past.node, now);
  const node = el("section", { class: "card", "aria-labelledby": "output-title" },
    el("header", {}, el("h2", { id: "output-title" }, "Output"), found,
      el("span", { class: "log-tools" }, generations, streams, search, times, pause)),
    el("div", { class: "log-frame" }, list, below));

  async function ask() {
    underWay = true;
    const delay = !paused && document.visibilityState !== "hidden" && state.connection === "live" ? await asked() : IDLE_MS;
    underWay = false;
    if (!closed) timer = setTimeout(ask, delay);
  }

  // The delay until the next request.
  async function asked() {
    const range = newest === null ? `last=${FIRST}` : `after=${newest}`;
    try {
      const answer = await get(`${API}/output?ids=${encodeURIComponent(id)}&${range}`);
      return !closed && take(answer) ? BUSY_MS : IDLE_MS;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      return IDLE_MS;
    }
  }

  function take(answer) {
    if (run !== null && answer.run !== run) {
      [run, newest] = [answer.run, null]; // another supervisor: its numbers begin again
      return true;
    }
    const isFirst = run === null;
    run = answer.run;
    newest = answer.newest;
    const stay = !atEnd();
    if (answer.lost > 0) add(logNote(`${count(answer.lost, "line")} of all workers lost: too many at once`));
    for (const line of answer.lines) addLine(line);
    while (lines.length > MOST) past.keep(lines.shift());
    if (answer.lines.length) shown(stay, answer.lines.length);
    if (isFirst && lines.length === 0) past.begin(true); // what it wrote before this supervisor
    return answer.lines.length > 0;
  }

  function addLine(line) {
    if (generation !== null && generation !== line.generation) add(logNote(`generation ${line.generation}`));
    generation = line.generation;
    add(logLine(line));
  }

  function add(line) {
    line.update(wanted());
    lines.push(line);
    now.append(line.node);
  }

  function shown(stay, number) {
    if (stay) waiting += number;
    else toEnd();
    below.hidden = waiting === 0;
    say(below, `${count(waiting, "new line")} below`);
    counted();
  }

  function wanted() {
    return { find: search.value.trim(), stream: streams.value, generation: generations.value };
  }

  // The oldest line below the stored ones; null: there is none.
  function oldest() {
    const first = lines.find((each) => each.line !== null);
    return first === undefined ? null : { lines, at: first.line.at_wall_ms };
  }

  // What is on the page is filtered at once, and the log file searched when the user stops typing.
  function filter(delay = 0) {
    const now = wanted();
    for (const line of lines) line.update(now);
    clearTimeout(typing);
    past.begin(false);
    if (now.find || now.generation) typing = setTimeout(() => past.begin(true), delay);
    toEnd();
    counted();
  }

  function counted() {
    const { find, stream, generation: only } = wanted();
    const matching = lines.filter((each) => each.line !== null && !each.node.hidden).length + past.shown;
    say(found, find || stream || only ? count(matching, "line matches", "lines match") : paused ? "Paused" : "");
  }

  function follow(on) {
    paused = !on;
    mark(pause, "aria-pressed", String(paused));
    say(pause, paused ? "Follow" : "Pause");
    counted();
    if (on) again();
  }

  const atEnd = () => list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  const toEnd = () => (list.scrollTop = list.scrollHeight);

  function sawAll() {
    waiting = 0;
    below.hidden = true;
  }

  // The generations of the worker that are known, newest first, with the time of the latest event of each.
  function runs(current, events) {
    const named = new Map();
    for (const { generation: number, at_wall_ms: at } of events) {
      if (number !== null && !named.has(number)) named.set(number, number === current ? "now" : moment(at));
    }
    const wantedOptions = [["", "all runs"], ...[...named].map(([number, when]) => [String(number), `run ${number} · ${when}`])];
    const key = JSON.stringify(wantedOptions);
    if (generations.dataset.key === key) return;
    generations.dataset.key = key;
    const chosen = generations.value;
    generations.replaceChildren(...wantedOptions.map(([value, text]) => el("option", { value }, text)));
    generations.value = named.has(Number(chosen)) ? chosen : "";
  }

  // Ask at once: the worker is known, or something has happened to it.
  function again() {
    if (underWay || closed) return;
    clearTimeout(timer);
    timer = setTimeout(ask, 0);
  }

  return { node, again, runs, close: () => ((closed = true), clearTimeout(timer), clearTimeout(typing)) };
}
