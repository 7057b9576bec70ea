// The page: the session, the current view, and the connection to the supervisor.

import { confirm, renewSession } from "./actions.js";
import { API } from "./api.js";
import { byId, el, mark, say } from "./dom.js";
import { loginPage, signIn, signOut, tokenInAddress } from "./login.js";
import { setUpPalette } from "./palette.js";
import { pageAt, PAGES } from "./pages.js";
import { changed, heard, mayOrder, refreshAll, shown, signedOut, state, supervisorsNow, watch } from "./store.js";
import { Stream } from "./stream.js";
import { setUpTheme } from "./theme.js";
import { count, elapsed } from "./words.js";

const TICK_MS = 250; // countdowns; nothing is requested
const RENEW_MS = 6 * 3600 * 1000;

let view = null;

const TOPICS = "event:*,worker:*:status,queue:*:status,queue:jobs,system:health";

const stream = new Stream(`${API}/events?topics=${TOPICS}`, {
  opened() {
    state.connection = "live";
    refreshAll();
    changed();
  },
  alive() {
    state.heardAt = performance.now();
  },
  event: heard,
  lost(retryInMs) {
    state.connection = "lost";
    state.retryAt = performance.now() + retryInMs;
    changed();
  },
  refused(status) {
    state.connection = status === 401 ? "signed-out" : "refused";
    if (status === 401) state.session = null;
    else refreshAll();
    changed();
  },
});

function show(next) {
  view?.close();
  view = next;
  byId("content").replaceChildren(view.node);
  view.update();
}

function route() {
  if (location.hash.startsWith("#token=")) return begin();
  if (state.session === null) return;
  show(pageAt(location.hash));
  for (const link of byId("pages").children) mark(link, "aria-current", link.hash === pageOf(location.hash) ? "page" : null);
  scrollTo(0, 0);
}

// The page of the bar to which an address belongs.
function pageOf(hash) {
  return PAGES.find((page) => page.covers.test(hash))?.hash ?? "#/";
}

function draw() {
  if (state.session === null && state.connection === "signed-out" && !byId("token")) {
    stream.stop();
    show(loginPage(signedIn, "Your session has ended: you signed out, did not use it for 12 hours, or its token was replaced."));
  }
  drawBar();
  drawBanner();
  view?.update();
  drawOrders();
}

// A command cannot be given while the connection is lost.
function drawOrders() {
  const off = state.connection === "lost";
  for (const button of document.querySelectorAll("[data-order]")) if (button.disabled !== off) button.disabled = off;
  byId("pause-all").disabled = off;
}

const WORDS = { connecting: "Connecting", live: "Live", lost: "Offline", refused: "No events", "signed-out": "Signed out" };

function drawBar() {
  const { info, session, connection, workers } = state;
  mark(byId("live"), "data-state", connection);
  mark(document.body, "data-connection", connection);
  byId("pages").hidden = session === null;
  byId("find").hidden = session === null;
  byId("role").hidden = session === null;
  byId("sign-out").hidden = session === null;
  say(byId("role"), session?.may_order ? "operator" : "read only");
  const pauseAll = byId("pause-all");
  pauseAll.hidden = !mayOrder();
  say(pauseAll, state.system.paused ? "Resume all" : "Pause all");
  if (info === null) return;
  const up = elapsed(supervisorsNow() - info.started_at_wall_ms);
  say(byId("supervisor"), `${count(workers.size, "worker")} · up ${up}`);
  const bad = [...workers.values()].filter((each) => ["failed", "crashed"].includes(shown(each))).length;
  document.title = `${bad ? `(${bad}) ` : ""}${view?.title ?? "Workers"} – Rekindle`;
}

function drawBanner() {
  const banner = byId("banner");
  const lost = state.connection === "lost";
  const refused = state.connection === "refused";
  banner.hidden = !(lost || refused);
  if (refused) say(byId("banner-text"), "This supervisor does not serve events: the page shows the state at the time it was opened.");
  const left = Math.max(0, Math.ceil((state.retryAt - performance.now()) / 1000));
  if (lost) say(byId("banner-text"), "The connection to the supervisor is lost. This page shows what was known then; commands are off.");
  const ago = elapsed(performance.now() - state.heardAt);
  say(byId("banner-count"), lost ? `Last heard ${ago} ago. ${left > 0 ? `Retrying in ${left} s …` : "Retrying …"}` : "");
  say(byId("live-word"), lost ? `Offline for ${ago}` : WORDS[state.connection]);
  byId("banner-retry").hidden = !lost;
}

function signedIn(session) {
  state.session = session;
  state.connection = "connecting";
  route();
  stream.start(); // everything is requested when it is open
}

async function begin() {
  const token = tokenInAddress();
  try {
    const session = await signIn(token);
    if (session !== null) return signedIn(session);
    show(loginPage(signedIn));
  } catch (problem) {
    show(loginPage(signedIn, problem.status === 401 ? "The token in the link is wrong for this supervisor." : problem.message));
  }
  view.focus();
}

setUpTheme();
byId("pages").replaceChildren(...PAGES.map(({ text, hash }) => el("a", { href: hash }, text)));
setUpPalette();
watch(draw);
addEventListener("hashchange", route);
byId("banner-retry").addEventListener("click", () => stream.now());
byId("sign-out").addEventListener("click", () => {
  stream.stop();
  signOut().then(signedOut);
});
byId("pause-all").addEventListener("click", () => confirm(state.system.paused ? "resume" : "pause"));
setInterval(() => {
  if (document.visibilityState === "hidden" || state.session === null) return;
  view?.tick();
  drawBar();
  drawBanner();
}, TICK_MS);
setInterval(() => state.session !== null && renewSession(), RENEW_MS);
begin();
