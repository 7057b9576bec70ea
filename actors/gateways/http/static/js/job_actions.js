// Commands about jobs and queues.

import { carryOut } from "./actions.js";
import { API } from "./api.js";
import { askFirst } from "./dialog.js";
import { el } from "./dom.js";

const ORDERS = {
  retry: { verb: "Retry", states: ["toxic", "error", "cancelled", "expired"],
    means: "Makes the job pending again, with its crashes and errors cleared." },
  cancel: { verb: "Cancel", states: ["pending", "running", "waiting"], danger: true,
    means: "A job that waits never runs. One that runs is asked to end; if it does not, its process is replaced." },
  drop: { verb: "Drop", states: ["pending", "done", "error", "toxic", "cancelled", "expired"], danger: true,
    means: "Deletes the job, its result and the evidence of its crashes. This cannot be undone." },
};

const DONE = { retry: "is pending again", drop: "was dropped" };

// The commands for a job in this state, the likeliest first.
export function jobOrders(job) {
  const asked = job.cancel_requested_at_wall_ms !== null;
  return Object.keys(ORDERS).filter((order) => ORDERS[order].states.includes(job.state) && !(order === "cancel" && asked));
}

export function jobButton(order, job, then, extra = "") {
  const { verb, means, danger } = ORDERS[order];
  const name = `job ${job.id}`;
  return el("button", { type: "button", class: `order ${extra}`, "data-order": order, "aria-label": `${verb} ${name}`,
    onclick: () => askFirst({ verb, name, means, danger, leave: order === "cancel" ? "Keep it" : "Cancel", then: () => give(order, job.id).then(() => then(order)) }) }, verb);
}

function give(order, id) {
  return carryOut(`${ORDERS[order].verb} job ${id}`, `${API}/jobs/${id}/${order}`, {}, ({ detail }) => [
    `Job ${id} ${DONE[order] ?? (detail?.state === "running" ? "is asked to end" : "is cancelled")}.`, "good"]);
}

export function queueButton(queue, then) {
  const paused = queue.paused === true;
  const [order, verb] = paused ? ["resume", "Resume"] : ["pause", "Pause"];
  const means = paused ? "Ends the pause: workers take jobs of this queue again."
    : "Starts no further job of this queue until it is resumed. Jobs that run continue.";
  const name = queue.queue_type;
  return el("button", { type: "button", class: "order", "data-order": order, "aria-label": `${verb} queue ${name}`,
    onclick: () => askFirst({ verb, name: `queue ${name}`, means, asksWhy: !paused, then: (body) =>
      carryOut(`${verb} queue ${name}`, `${API}/queues/${encodeURIComponent(name)}/${order}`, body,
        () => [`Queue ${name} is ${paused ? "resumed" : "paused"}.`, "good"]).then(then) }) }, verb);
}
