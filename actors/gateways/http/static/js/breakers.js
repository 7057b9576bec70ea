// The open breakers: which workers they hold back, since when, and which worker is the canary.

import { el, say } from "./dom.js";
import { clock } from "./store.js";
import { count, elapsed, until } from "./words.js";

export function breakers() {
  const node = el("ul", { class: "breakers", "aria-live": "polite", "aria-relevant": "additions", "aria-label": "Open breakers", hidden: true });
  let lines = [];

  function update(open) {
    node.hidden = open.length === 0;
    const names = open.map((breaker) => breaker.name).join();
    if (node.dataset.names !== names) {
      node.dataset.names = names;
      lines = open.map((breaker) => line(breaker.name));
      node.replaceChildren(...lines.map((each) => each.node));
    }
    open.forEach((breaker, index) => lines[index].update(breaker));
  }

  return { node, update };
}

function line(name) {
  const why = el("bdi");
  const next = el("span", { class: "then" });
  const node = el("li", { "data-breaker": name },
    el("strong", {}, "Breaker ", el("bdi", {}, name), " open"), why, next);

  function update(breaker) {
    const passed = Math.max(0, clock() - breaker.at);
    say(why, breaker.why);
    say(next, [
      `for ${elapsed(breaker.open_for_ms + passed)}`,
      `${count(breaker.held.length, "worker")} held back`,
      canaryOf(breaker),
    ].join(" · "));
  }

  return { node, update };
}

// Which worker is tried, or when the next one is; its clock goes on.
export function canaryOf(breaker) {
  const passed = Math.max(0, clock() - breaker.at);
  return breaker.canary === null ? `canary ${until(Math.max(0, breaker.next_try_in_ms - passed))}` : `${breaker.canary} is the canary`;
}
