// Who is not known yet: a link with a token opens the door, or the token itself, typed in.

import { get, post } from "./api.js";
import { el } from "./dom.js";

// The token is taken out of the address at once: an address is copied, kept and shown.
export function tokenInAddress() {
  const found = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (found === null) return null;
  history.replaceState(null, "", location.pathname);
  return found[1];
}

// The session, by a token or by the cookie that is there; null if there is none.
export async function enter(token) {
  const session = token === null ? await get("/session") : await post("/session", { token });
  return session.role === null ? null : session;
}

export function entrance(entered, said = "") {
  const input = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const problem = el("p", { class: "problem", role: "alert" }, said);
  const form = el("form", { class: "card entrance", onsubmit: submitted },
    el("h1", {}, "Who is there?"),
    el("p", {}, "Open this page with the link that ", el("code", {}, "rekindle dashboard"), " prints, or paste its token."),
    el("label", { for: "token" }, "Token"), input,
    el("button", { type: "submit", class: "primary" }, "Open"), problem);

  async function submitted(event) {
    event.preventDefault();
    const token = input.value.trim().replace(/^.*#token=/, "");
    try {
      entered(await enter(token));
    } catch (error) {
      problem.textContent = error.status === 401 ? "That token is not this supervisor's." : error.message;
    }
  }

  return { node: el("div", { class: "page" }, form), update() {}, tick() {}, close() {}, title: "Sign in", focus: () => input.focus() };
}
