// Sign-in: by a link with a token, or by a token that the user pastes.

import { endRequests, get, keepSession, post } from "./api.js";
import { el } from "./dom.js";

// The token is removed from the address at once: addresses are copied, stored and shown.
export function tokenInAddress() {
  const found = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (found === null) return null;
  history.replaceState(null, "", location.pathname);
  return found[1];
}

// The session of a token, or the one that this browser has; null if there is none.
export async function signIn(token) {
  const session = token === null ? await get("/session") : await post("/session", { token });
  if (session.session !== undefined) keepSession(session.session);
  if (session.role === null) keepSession(null);
  return session.role === null ? null : session;
}

export async function signOut() {
  endRequests();
  await post("/session/end").catch(() => null);
  keepSession(null);
}

export function loginPage(signedIn, message = "") {
  const input = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const problem = el("p", { class: "problem", role: "alert" }, message);
  const form = el("form", { class: "card login", onsubmit: submitted },
    el("h1", {}, "Sign in"),
    el("p", {}, "Open the link that ", el("code", {}, "rekindle dashboard"), " prints, or paste its token here."),
    el("label", { for: "token" }, "Token"), input,
    el("button", { type: "submit", class: "primary" }, "Sign in"), problem);

  async function submitted(event) {
    event.preventDefault();
    const token = input.value.trim().replace(/^.*#token=/, "");
    try {
      signedIn(await signIn(token));
    } catch (error) {
      problem.textContent = error.status === 401 ? "Wrong token for this supervisor." : error.message;
    }
  }

  return { node: el("div", { class: "page" }, form), update() {}, tick() {}, close() {}, title: "Sign in", focus: () => input.focus() };
}
