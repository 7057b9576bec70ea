// The command palette: / or Ctrl-K, a few letters, Enter. It finds workers, groups, queues, jobs by
// their number, pages, and the commands for a worker.

import { confirm, confirmAll, ordersFor, ordersForAll, verb } from "./actions.js";
import { byId, el, mark, say } from "./dom.js";
import { groupOf } from "./groups.js";
import { PAGES } from "./pages.js";
import { mayOrder, shown, state } from "./store.js";
import { count } from "./words.js";

const MOST = 12;

export function setUpPalette() {
  const dialog = byId("palette");
  const list = el("ul", { id: "palette-list", role: "listbox", "aria-label": "Found" });
  const input = el("input", { type: "text", role: "combobox", id: "palette-input", "aria-label": "Go to a worker, a page or a command",
    placeholder: "A worker, a page, a command …", autocomplete: "off", spellcheck: "false",
    "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", oninput: () => draw(0), onkeydown: pressed });
  const none = el("p", { class: "empty", role: "status" });
  let found = [];
  let chosen = 0;
  dialog.replaceChildren(input, list, none);
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  addEventListener("keydown", opens);
  byId("find").addEventListener("click", open);

  function opens(event) {
    const isPalette = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isField(event.target) && !event.ctrlKey && !event.altKey);
    if (!isPalette || state.session === null || byId("confirm").open) return;
    event.preventDefault();
    if (!dialog.open) open();
  }

  function open() {
    input.value = "";
    draw(0);
    dialog.showModal();
    input.focus();
  }

  function draw(at) {
    found = matching(input.value);
    chosen = Math.min(Math.max(0, at), Math.max(0, found.length - 1));
    list.replaceChildren(...found.map((each, index) => el("li", { role: "option", id: `palette-${index}`, "aria-selected": String(index === chosen),
      "data-status": each.status ?? null, onclick: () => go(each) },
    each.status ? el("i", { class: "dot", "aria-hidden": "true" }) : null, el("bdi", {}, each.text), el("span", { class: "note" }, each.kind))));
    mark(input, "aria-activedescendant", found.length ? `palette-${chosen}` : null);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
    none.hidden = found.length > 0;
    say(none, found.length ? "" : "Nothing matches.");
  }

  function pressed(event) {
    if (event.key === "ArrowDown") draw((chosen + 1) % Math.max(1, found.length));
    else if (event.key === "ArrowUp") draw((chosen + found.length - 1) % Math.max(1, found.length));
    else if (event.key === "Enter" && found[chosen]) go(found[chosen]);
    else return;
    event.preventDefault();
  }

  function go(entry) {
    dialog.close();
    entry.run();
  }
}

function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

const visit = (hash) => () => (location.hash = hash);

// What matches every word that was typed: names that begin with the first word come first.
export function matching(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const ranked = entries(words).map((entry) => ({ entry, rank: rank(entry.text.toLowerCase(), words) })).filter(({ rank: found }) => found !== null);
  return ranked.sort((a, b) => a.rank - b.rank).slice(0, MOST).map(({ entry }) => entry);
}

function rank(text, words) {
  if (!words.every((word) => text.includes(word))) return null;
  if (words.length === 0) return 1;
  return text.startsWith(words[0]) || text.includes(`:${words[0]}`) ? 0 : 1;
}

function entries(words) {
  const workers = [...state.workers.values()];
  const groups = [...new Set(workers.map((worker) => groupOf(worker.component_id)))];
  const number = words.length === 1 && /^#?\d{1,18}$/.test(words[0]) ? words[0].replace("#", "") : null;
  return [
    ...PAGES.map(({ text, hash }) => ({ text, kind: "page", run: visit(hash) })),
    ...workers.map((worker) => ({ text: worker.component_id, kind: shown(worker), status: shown(worker), run: visit(`#/worker/${encodeURIComponent(worker.component_id)}`) })),
    ...groups.filter((name) => !state.workers.has(name)).map((name) => ({ text: name, kind: "group", run: visit(`#/?${new URLSearchParams({ find: `:${name}:` })}`) })),
    ...[...state.queues.keys()].map((name) => ({ text: name, kind: "queue", run: visit(`#/jobs?${new URLSearchParams({ queue: name })}`) })),
    ...(number === null ? [] : [{ text: words[0], kind: `job ${number}`, run: visit(`#/job/${number}`) }]),
    ...(words.length && mayOrder() && state.connection === "live" ? commands(workers) : []),
  ];
}

function commands(workers) {
  const all = state.system.paused ? "resume" : "pause";
  return [{ text: `${verb(all)} all`, kind: "command", run: () => confirm(all) },
    ...groupsOf(workers).flatMap(([name, members]) => ordersForAll(members).map((order) => ({ text: `${verb(order)} ${name}`, kind: count(members.length, "worker"),
      run: () => confirmAll(order, name, members) }))),
    ...workers.flatMap((worker) => ordersFor(worker).map((order) => ({ text: `${verb(order)} ${worker.component_id}`, kind: "command", run: () => confirm(order, worker.component_id) })))];
}

// The groups of more than one worker.
function groupsOf(workers) {
  const groups = new Map();
  for (const worker of workers) {
    const name = groupOf(worker.component_id);
    groups.set(name, [...(groups.get(name) ?? []), worker]);
  }
  return [...groups].filter(([, members]) => members.length > 1);
}
