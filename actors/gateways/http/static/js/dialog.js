// The dialog that explains a command before it is given.

import { byId, el } from "./dom.js";

const LASTING = [["until resumed", ""], ["10 minutes", "600"], ["30 minutes", "1800"], ["2 hours", "7200"], ["1 day", "86400"]];

// Calls `then` with the body of the command once the user agrees. `asksWhy` adds a reason and a duration.
export function askFirst({ verb, name, means, danger = false, asksWhy = false, leave = "Cancel", then }) {
  const dialog = byId("confirm");
  const reason = el("input", { type: "text", maxlength: 200, id: "reason", autocomplete: "off" });
  const lasting = el("select", { id: "lasting" }, ...LASTING.map(([text, value]) => el("option", { value }, text)));
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, verb);
  const form = el(
    "form",
    { method: "dialog", onsubmit: (event) => submitted(event) },
    el("h2", { id: "confirm-title" }, `${verb} `, el("bdi", {}, name), "?"),
    el("p", {}, means),
    asksWhy ? el("div", { class: "fields" },
      el("label", { for: "reason" }, "Reason"), reason,
      el("label", { for: "lasting" }, "Duration"), lasting) : null,
    el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => dialog.close() }, leave), go),
  );

  function submitted(event) {
    event.preventDefault();
    dialog.close();
    const body = {};
    if (asksWhy && reason.value.trim()) body.reason = reason.value.trim();
    if (asksWhy && lasting.value) body.for_s = Number(lasting.value);
    then(body);
  }

  dialog.replaceChildren(form);
  dialog.showModal();
  (asksWhy ? reason : go).focus();
}
