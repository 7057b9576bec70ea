// The older output of one worker, from its log file: a page at a time, above the lines that are on the page.

import { get, Problem, worker as workerPath } from "./api.js";
import { el, say } from "./dom.js";
import { logLine } from "./log_line.js";
import { moment } from "./words.js";

const MOST = 5_000; // older lines on the page
const PAGE = 200;

// `oldest()` is the oldest line on the page below; `filter()` what is searched for.
export function logPast({ id, list, oldest, filter, found }) {
  const lines = el("div", { class: "log-past" });
  const more = el("button", { type: "button", class: "quiet log-more", onclick: () => ask() }, "Earlier lines");
  const state = el("span", { class: "log-end", role: "status" });
  const node = el("div", {}, el("div", { class: "log-top" }, more, state), lines);
  let shown = 0;
  let cursor = null; // where the next page begins; undefined: there are no older lines
  let asked = 0;

  // Another search, or another set of lines below.
  function begin(atOnce) {
    asked += 1;
    shown = 0;
    cursor = null;
    lines.replaceChildren();
    more.hidden = false;
    more.disabled = false;
    say(state, "");
    found();
    if (atOnce) ask();
  }

  async function ask() {
    const mine = asked;
    more.disabled = true;
    say(state, "Searching …");
    try {
      const page = await get(`${workerPath(id, "log")}?${new URLSearchParams(query())}`);
      if (mine === asked) take(page);
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (mine === asked) say(state, problem.message);
    }
    if (mine === asked) more.disabled = false;
  }

  function query() {
    const { find, stream, generation } = filter();
    const from = cursor ?? below();
    const given = { find, stream, generation, before: from?.before ?? "", seen: from?.seen ?? "", limit: PAGE };
    return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ""));
  }

  // The lines on the page of the very millisecond of the oldest one are known already.
  function below() {
    const first = oldest();
    if (first === null) return null;
    const { lines: all, at } = first;
    const same = all.filter((each) => each.line?.at_wall_ms === at);
    same.forEach((each) => each.update(filter()));
    return { before: at, seen: same.filter((each) => !each.node.hidden).length };
  }

  function take(page) {
    const height = list.scrollHeight;
    const drawn = page.lines.map(logLine);
    drawn.forEach((each) => each.update(filter()));
    lines.prepend(...drawn.map((each) => each.node));
    shown += drawn.length;
    list.scrollTop += list.scrollHeight - height; // the lines that the user sees stay where they are
    cursor = page.before === null ? undefined : page;
    more.hidden = cursor === undefined || shown >= MOST;
    say(state, ending(page));
    found();
  }

  function ending({ before, source, lines: last }) {
    if (source === "memory" && oldest() === null) return "Nothing written yet";
    if (source === "memory") return "This worker has no log file: only its last lines are kept.";
    if (before === null) return shown ? "The beginning of the log" : oldest() === null ? "Nothing written yet" : "No earlier line matches";
    if (shown >= MOST) return "Search for a text to see older lines.";
    return last.length < PAGE ? `Searched back to ${moment(before)}` : "";
  }

  // The oldest of the lines below, which no longer has room there.
  function keep(line) {
    if (shown === 0 || shown >= MOST) line.node.remove();
    else (lines.append(line.node), (shown += 1));
  }

  return { node, begin, keep, get shown() { return shown; } };
}
