// The output of one worker, as it is written. No event tells of a line, so the page asks for the lines
// after the newest one that it has: often while the worker writes, seldom while it is silent, and not at
// all while the log is paused, out of sight, or the connection is lost.

import { API, get, Problem } from "./api.js";
import { el, mark, say } from "./dom.js";
import { state } from "./store.js";
import { count } from "./words.js";

const FIRST = 200; // as many as the supervisor keeps of a worker
const MOST = 2_000; // lines on the page
const BUSY_MS = 400;
const IDLE_MS = 2_000;

export function log(id) {
  const lines = []; // { node, text, stream, generation }
  let newest = null;
  let run = null;
  let paused = false;
  let waiting = 0; // lines that came while the user reads further up
  let timer = null;
  let underWay = false;
  let closed = false;
  const list = el("pre", { class: "output log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": "Output", onscroll: () => atEnd() && sawAll() });
  const search = el("input", { type: "search", placeholder: "Find in the output", "aria-label": "Find in the output", oninput: filter });
  const streams = el("select", { "aria-label": "Stream", onchange: filter }, ...[["", "out and err"], ["out", "out"], ["err", "err"]]
    .map(([value, text]) => el("option", { value }, text)));
  const pause = el("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => follow(paused) }, "Pause");
  const times = el("button", { type: "button", class: "quiet", "aria-pressed": "false",
    onclick: () => mark(times, "aria-pressed", String(list.toggleAttribute("data-times"))) }, "Times");
  const below = el("button", { type: "button", class: "below", hidden: true, onclick: () => toEnd() });
  const found = el("span", { class: "log-state", role: "status" });
  const node = el("section", { class: "card", "aria-labelledby": "output-title" },
    el("header", {}, el("h2", { id: "output-title" }, "Output"), found, el("span", { class: "log-tools" }, streams, search, times, pause)),
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
    run = answer.run;
    newest = answer.newest;
    if (answer.lost > 0) add(el("span", { class: "log-note" }, `${count(answer.lost, "line")} of all workers lost: too many at once`), null);
    const stay = !atEnd();
    for (const line of answer.lines) addLine(line);
    while (lines.length > MOST) lines.shift().node.remove();
    if (answer.lines.length) shown(stay, answer.lines.length);
    if (lines.length === 0) say(found, "Nothing written yet");
    return answer.lines.length > 0;
  }

  function addLine(line) {
    const before = lines.at(-1)?.generation ?? null;
    if (before !== null && before !== line.generation) add(el("span", { class: "log-note" }, `generation ${line.generation}`), line.generation);
    const at = new Date(line.at_wall_ms);
    add(el("span", { class: "log-line", "data-stream": line.stream, "data-at": at.toLocaleTimeString([], { hour12: false }) }, line.text || " "),
      line.generation, line.text, line.stream);
  }

  function add(line, generation, text = null, stream = null) {
    lines.push({ node: line, generation, text, stream });
    line.hidden = !matches(lines.at(-1));
    list.append(line);
  }

  function shown(stay, number) {
    if (stay) waiting += number;
    else list.scrollTop = list.scrollHeight;
    below.hidden = waiting === 0;
    say(below, `${count(waiting, "new line")} below`);
    counted();
  }

  function matches({ text, stream }) {
    const word = search.value.trim().toLowerCase();
    if (text === null) return word === "";
    return text.toLowerCase().includes(word) && (streams.value === "" || streams.value === stream);
  }

  function filter() {
    for (const line of lines) line.node.hidden = !matches(line);
    list.scrollTop = list.scrollHeight;
    counted();
  }

  function counted() {
    const matching = lines.filter((line) => line.text !== null && !line.node.hidden).length;
    say(found, search.value.trim() || streams.value ? count(matching, "line matches", "lines match") : paused ? "Paused" : "");
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

  // Ask at once: the worker is known, or something has happened to it.
  function again() {
    if (underWay || closed) return;
    clearTimeout(timer);
    timer = setTimeout(ask, 0);
  }

  return { node, again, close: () => ((closed = true), clearTimeout(timer)) };
}
