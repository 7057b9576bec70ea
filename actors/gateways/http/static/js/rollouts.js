// The rollouts under way: how many workers have their new processes, and the latest step.

import { el, say } from "./dom.js";

export function rollouts() {
  const node = el("ul", { class: "rollouts", "aria-live": "polite", "aria-relevant": "additions", "aria-label": "Rollouts", hidden: true });

  function update(underWay) {
    node.hidden = underWay.length === 0;
    while (node.children.length > underWay.length) node.lastChild.remove();
    while (node.children.length < underWay.length) node.append(el("li", {}, el("strong"), el("bdi")));
    underWay.forEach((rollout, index) => show(node.children[index], rollout));
  }

  return { node, update };
}

function show(line, rollout) {
  const [title, step] = line.children;
  say(title, `Rollout of ${rollout.group}: ${rollout.replaced.length} of ${rollout.workers.length} replaced`);
  say(step, rollout.problem || (rollout.steps.at(-1) ?? ""));
}
