// What happened, newest first, a sentence each.

import { el } from "./dom.js";
import { cause, moment, number, span } from "./words.js";

const SAID = {
  worker_started: (event) => ["starting", `started, pid ${event.pid}`],
  worker_died: (event) => [event.action === "mark_failed" ? "failed" : event.action === "none" && event.exit_code === 0 ? "stopped" : "crashed",
    `${cause(event)} after ${span(event.uptime_ms ?? 0)}. ${event.reason ?? ""}`],
  worker_failed: (event) => ["failed", `given up: ${event.reason}`],
  worker_stopping: (event) => ["stopped", `told to end: ${event.reason.replaceAll("_", " ")}`],
  stop_step_taken: (event) => ["stopped", event.step === "stacks" ? "asked for its stacks" : `sent ${event.step}`],
  worker_stopped: (event) => ["stopped", event.forced ? "stopped, by force" : "stopped on request"],
  worker_unkillable: (event) => ["failed", `pid ${event.pid} survived SIGKILL; nothing is started beside it`],
  worker_reset: () => ["stopped", "has its counters cleared"],
  worker_removed: () => ["stopped", "is supervised no longer"],
  failure_lifted: (event) => ["starting", `failed no longer: ${event.reason}`],
  worker_recycled: (event) => ["starting", `gets a new process: ${event.reason}`],
  pause_began: (event) => ["paused", `${event.component_id ? "is" : "everything is"} paused${event.reason ? `: ${event.reason}` : ""}`],
  pause_ended: (event) => ["healthy", `${event.component_id ? "is" : "everything is"} not paused any more`],
  resource_warned: (event) => ["crashed", `uses much: ${event.resource} is ${number(event.used)}, above ${number(event.limit)}`],
  resource_eased: (event) => ["healthy", `uses less ${event.resource} again: ${number(event.used)}`],
  resource_violated: (event) => [event.fatal ? "failed" : "crashed",
    `uses too much: ${event.resource} is ${number(event.used)}, above ${number(event.limit)}${event.fatal ? "; it is killed for it" : ""}`],
  events_lost: (event) => ["crashed", `${event.count} events were given up in an outage of the store`],
  job_requeued: (event) => ["starting", `job ${event.job_id} of ${event.queue} is pending again`],
  job_convicted: (event) => ["failed", `job ${event.job_id} of ${event.queue} is toxic: ${event.crash_count} workers died on it`],
  alert_changed: (event) => ({
    escalated: ["failed", `worse now: ${event.alert.message}`],
    acknowledged: ["stopped", `noted by ${event.alert.acknowledged_by}: ${event.alert.message}`],
    resolved: ["healthy", `over: ${event.alert.message}`],
  })[event.happening],
  breaker_opened: (event) => ["crashed", `breaker ${event.breaker} opened: ${event.reason}; ${event.workers.length} are held back`],
  canary_started: (event) => ["starting", `tries for all behind breaker ${event.breaker}`],
  breaker_closed: (event) => ["healthy", `breaker ${event.breaker} closed after ${span(event.open_for_ms)}`],
  work_released: (event) => ["stopped", `work item ${event.work_item}: ${event.detail}`],
  work_release_failed: (event) => ["crashed", `work item ${event.work_item} was not released: ${event.reason}`],
  resources_sampled: () => undefined, // for the timeline; worth no line here
  gateway_lost: (event) => ["crashed", `the gateway ${event.gateway} delivers nothing for now: ${event.reason}`],
  gateway_restored: (event) => ["healthy", `the gateway ${event.gateway} delivers again`],
  store_degraded: (event) => ["crashed", `the store takes nothing at the moment: ${event.reason}`],
  store_recovered: () => ["healthy", "the store takes everything again"],
  actor_replaced: (event) => ["crashed", `our own ${event.actor} was replaced: ${event.error}`],
  stood_down: (event) => ["failed", `stood down: ${event.reason}`],
  status_changed: (event) => ({
    healthy: event.old === "pending" ? ["healthy", "is healthy"] : ["healthy", "is healthy again"],
    unhealthy: ["crashed", `missed a heartbeat (${event.misses ?? 1})`],
    recovering: ["starting", `asked for time to recover${event.recover_for_ms ? `: ${span(event.recover_for_ms)}` : ""}`],
  })[event.new],
};

export function sentence(event) {
  return Object.hasOwn(SAID, event.type) ? SAID[event.type](event) : ["stopped", event.type.replaceAll("_", " ")];
}

export function feed(only = null) {
  const node = el("ol", { class: "feed" });
  const empty = el("p", { class: "empty" }, "Nothing has happened yet.");
  let newest = null;

  function update(events) {
    if (events[0] === newest && node.childElementCount > 0) return;
    newest = events[0];
    const lines = events
      .filter((event) => only === null || event.component_id === only)
      .map((event) => [event, sentence(event)])
      .filter(([, said]) => said !== undefined)
      .slice(0, 60);
    node.replaceChildren(...lines.map(([event, said]) => line(event, said)));
    empty.hidden = lines.length > 0;
  }

  return { node: el("div", {}, empty, node), update };
}

function line(event, [kind, text]) {
  const who = event.component_id
    ? el("a", { href: `#/worker/${encodeURIComponent(event.component_id)}`, class: "who" }, el("bdi", {}, event.component_id))
    : el("span", { class: "who" }, "supervisor");
  return el("li", { "data-kind": kind },
    el("time", { datetime: new Date(event.at_wall_ms).toISOString() }, moment(event.at_wall_ms)),
    el("i", { class: "dot", "aria-hidden": "true" }), who, el("span", { class: "what" }, el("bdi", {}, text)));
}
