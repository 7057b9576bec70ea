// One job: its state, payload and result, every failed attempt, and the evidence of its crashes.

import { API, get } from "../api.js";
import { asker } from "../asker.js";
import { byId, el, mark, say } from "../dom.js";
import { jobButton, jobOrders } from "../job_actions.js";
import { changed, listen, mayOrder } from "../store.js";
import { cause, count, moment, span } from "../words.js";
import { progressOf, took, wordOf } from "./jobs.js";

export function job(number) {
  let answer = null;
  let problem = "";
  let drawn = "";
  const word = el("span", { class: "pill" });
  const note = el("p", { class: "next", hidden: true });
  const orders = el("div", { class: "orders" });
  const facts = el("dl", { class: "facts" });
  const parts = el("div", { class: "parts" });
  const gone = el("p", { class: "empty" }, "Loading …");
  const card = el("section", { class: "card head", "aria-labelledby": "job-title", hidden: true },
    el("header", {}, el("h1", { id: "job-title" }, `Job ${number}`), word, orders), note, facts);
  const node = el("div", { class: "page one" },
    el("nav", { "aria-label": "Back" }, el("a", { href: "#/jobs", class: "back" }, "← All jobs")), gone, card, parts);
  const asking = asker(ask);
  const deaf = listen(hear);
  asking.now();

  async function ask(isStopped) {
    try {
      const found = await get(`${API}/jobs/${number}`);
      if (isStopped()) return;
      [answer, problem] = [found, ""];
    } catch (error) {
      if (error.status === 404) answer = null;
      problem = error.status === 404 ? "There is no job with this number; it may have been dropped or deleted after its retention."
        : `The job cannot be read: ${error.message}.`;
      changed();
      throw error;
    }
    changed();
  }

  function hear(name, said) {
    if (name === "reset" || name === "connected" || said.job?.id === Number(number) || String(said.job_id) === number) asking.soon();
  }

  function update() {
    gone.hidden = answer !== null;
    say(gone, problem || "Loading …");
    card.hidden = parts.hidden = answer === null;
    if (answer === null) return;
    const key = JSON.stringify([answer, mayOrder()]);
    if (key === drawn) return;
    drawn = key;
    show(answer);
  }

  function show({ job: found, crashes }) {
    mark(node, "data-job", found.state);
    say(word, wordOf(found));
    const progress = progressOf(found);
    note.hidden = progress === "";
    say(note, progress);
    orders.replaceChildren(...(mayOrder() ? jobOrders(found) : []).map((order, index) =>
      jobButton(order, found, () => asking.now(), index === 0 ? "primary" : "")));
    facts.replaceChildren(...factsOf(found).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    parts.replaceChildren(...[
      value("Payload", found.payload, found.payload_cut), failure(found), attempts(found.errors), evidence(crashes),
      value("Checkpoint", found.checkpoint), value("Result", found.result, found.result_cut),
    ].filter(Boolean));
  }

  return { node, update, tick() {}, title: `Job ${number}`, close: () => (asking.stop(), deaf()), focus: () => byId("content").focus() };
}

function factsOf(found) {
  const time = (at) => (at === null ? null : moment(at));
  const claimed = found.claimed_by === null ? null : el("a", { href: `#/worker/${encodeURIComponent(found.claimed_by)}` }, el("bdi", {}, found.claimed_by));
  return [
    ["Queue", el("a", { href: `#/jobs?${new URLSearchParams({ queue: found.queue })}` }, el("bdi", {}, found.queue))],
    ["Worker", claimed], ["Attempts", String(found.attempts)], ["Crashes", String(found.crash_count)], ["Errors", String(found.error_count)],
    ["Added", time(found.created_at_wall_ms)], ["Started", time(found.started_at_wall_ms)], ["Ended", time(found.finished_at_wall_ms)],
    ["Took", found.finished_at_wall_ms === null ? null : took(found)], ["Priority", String(found.priority)],
    ["Not before", found.not_before_wall_ms > found.created_at_wall_ms ? time(found.not_before_wall_ms) : null],
    ["Expires", time(found.expires_at_wall_ms)], ["Timeout", found.timeout_ms === null ? null : span(found.timeout_ms)],
    ["Key", found.key], ["Unique key", found.unique_key], ["Comes after", found.waits_for === null ? null : count(found.waits_for, "job that is not done", "jobs that are not done")],
    ["Cancelled by", found.failed_by === null ? null : el("a", { href: `#/job/${found.failed_by}` }, `job ${found.failed_by}`)],
    ["Batch", found.batch_id === null ? null : String(found.batch_id)],
  ].filter(([, shown]) => shown !== null && shown !== undefined);
}

function section(id, title, ...content) {
  return el("section", { class: "card", "aria-labelledby": id }, el("header", {}, el("h2", { id }, title)), ...content);
}

function value(title, found, cut = false) {
  if (found === null || found === undefined) return null;
  const text = typeof found === "string" ? found : JSON.stringify(found, null, 2);
  return section(`${title.toLowerCase()}-title`, cut ? `${title} (its beginning)` : title,
    el("pre", { class: "output", tabindex: 0, "aria-label": title }, text));
}

function failure(found) {
  return found.error ? section("error-title", "Error", el("pre", { class: "output", tabindex: 0, "aria-label": "Error" }, found.error)) : null;
}

function attempts(errors) {
  if (errors.length === 0) return null;
  return section("attempts-title", "Failed attempts", ...[...errors].reverse().map((each) =>
    entry(`Attempt ${each.attempt}`, each.at_wall_ms, each.component_id, each.error.split("\n")[0], each.error)));
}

function evidence(crashes) {
  if (crashes.length === 0) return null;
  return section("crashes-title", "Crashes of its worker", ...[...crashes].reverse().map((each) =>
    entry(`Attempt ${each.attempt}`, each.at_wall_ms, each.component_id, cause(each), each.output.join("\n") || "The worker wrote nothing.")));
}

function entry(title, at, id, sentence, text) {
  return el("details", { class: "attempt" },
    el("summary", {}, el("strong", {}, title), el("time", { datetime: new Date(at).toISOString() }, moment(at)), el("bdi", {}, sentence)),
    el("p", {}, "In ", el("a", { href: `#/worker/${encodeURIComponent(id)}` }, el("bdi", {}, id))), el("pre", { class: "output" }, text));
}
