// When each worker ran: a lane per worker, a line per life, a mark per death; of one worker in a cluster a lane
// per node. uPlot draws on a canvas,
// so a worker's name can never become HTML.

import { el, say } from "./dom.js";
import { colour, onTheme } from "./theme.js";
import { state, supervisorsNow, uptime } from "./store.js";
import { cause, moment, span } from "./words.js";

const LANE = 26;
const MOST_LANES = 14;
export const RANGES = [["1 min", 60], ["5 min", 300], ["15 min", 900], ["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800]];

export function timeline({ only = null } = {}) {
  const box = el("div", { class: "plot" });
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const none = el("p", { class: "empty", hidden: true }, "No deaths in this range.");
  const ranges = el("div", { class: "ranges", role: "group", "aria-label": "Range" },
    ...RANGES.map(([text, seconds]) => el("button", { type: "button", "data-range": seconds, onclick: () => choose(seconds) }, text)));
  const node = el("div", { class: "timeline" }, box, tip, none);
  let chosen = Number(sessionStorage.getItem("rekindle-range")) || null;
  let range = chosen ?? RANGES[0][1];
  let plot = null;
  let lanes = [];
  let shape = "";
  let points = [];
  let drawn = 0;
  let told = null; // the deaths of the one worker on all nodes, as its history has them
  const forget = onTheme(() => rebuild());
  let room = 0; // asking the element would lay out the whole page, at each drawing
  const resized = new ResizeObserver(([{ contentRect }]) => {
    room = contentRect.width;
    plot?.setSize({ width: width(), height: height() });
  });
  resized.observe(node);

  function choose(seconds) {
    chosen = seconds;
    sessionStorage.setItem("rekindle-range", seconds);
    update();
  }

  function update() {
    range = chosen ?? fitting(only);
    for (const each of ranges.children) each.setAttribute("aria-pressed", String(Number(each.dataset.range) === range));
    const now = supervisorsNow();
    drawn = performance.now();
    lanes = only === null ? lanesOf(now - range * 1000) : lanesByNode(only, told, now);
    none.hidden = lanes.length > 0;
    box.hidden = lanes.length === 0;
    if (lanes.length === 0) return;
    const wanted = lanes.map((lane) => lane.id).join("\n");
    if (plot === null || wanted !== shape) {
      shape = wanted;
      rebuild();
    } else plot.setData([[now / 1000 - range, now / 1000], [null, null]]);
  }

  // Redraw only when the time axis has moved by a pixel.
  function tick() {
    if (performance.now() - drawn > Math.max(1000, (range * 1000) / width())) update();
  }

  function rebuild() {
    plot?.destroy();
    plot = null;
    if (lanes.length === 0 || !node.isConnected) return;
    plot = new window.uPlot(options(), [[supervisorsNow() / 1000 - range, supervisorsNow() / 1000], [null, null]], box);
  }

  const width = () => Math.max(200, room || node.clientWidth);
  const height = () => lanes.length * LANE + 44;

  function options() {
    const axis = { stroke: colour("muted"), font: "11px system-ui, sans-serif", ticks: { show: false } };
    return {
      width: width(), height: height(), legend: { show: false }, padding: [6, 32, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { setScale: false } },
      scales: { x: { time: true, range: (_, min, max) => [min, max] }, y: { range: () => [-0.5, lanes.length - 0.5], dir: -1 } },
      axes: [
        { ...axis, size: 30, space: 78, grid: { stroke: colour("line"), width: 1 },
          values: (_, splits, __, ___, step) => splits.map((split) => timeLabel(split, step)) },
        { ...axis, size: named() ? labels() : 32, gap: 8, grid: { show: false }, splits: () => lanes.map((_, index) => index),
          values: () => lanes.map((lane) => (named() ? shortened(lane.id) : "")) },
      ],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: { draw: [draw], setCursor: [point] },
    };
  }

  const named = () => only === null || lanes.length > 1;
  const labels = () => (width() < 560 ? 96 : 190);
  const shortened = (id) => {
    const most = width() < 560 ? 14 : 28;
    const text = id.replace(/^worker:/, "");
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  };

  function draw(u) {
    const { ctx } = u;
    const unit = devicePixelRatio;
    points = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width + 10 * unit, u.bbox.height); // do not clip a mark at the right edge
    ctx.clip();
    lanes.forEach((lane, index) => {
      const y = Math.round(u.valToPos(index, "y", true));
      ctx.lineCap = "butt";
      stroke(ctx, u.bbox.left, u.bbox.left + u.bbox.width, y, colour("line"), unit);
      for (const life of lane.lives) {
        const from = u.valToPos(life.from / 1000, "x", true);
        const to = Math.max(from + 2 * unit, u.valToPos(life.to / 1000, "x", true));
        stroke(ctx, from, to, y, colour(life.ended ? "alive-past" : "healthy"), 6 * unit);
      }
      for (const death of lane.deaths.toReversed()) {
        const x = u.valToPos(death.died_at_wall_ms / 1000, "x", true);
        points.push({ x: x / unit, y: y / unit, death });
        deathMark(ctx, x, y, markOf(death), unit);
      }
    });
    ctx.restore();
  }

  function deathMark(ctx, x, y, kind, unit) {
    const failed = kind === "failed";
    const r = (failed ? 5.5 : kind === "done" ? 3 : 4) * unit;
    ctx.beginPath();
    ctx.fillStyle = colour(kind === "done" ? "alive-past" : kind);
    ctx.strokeStyle = colour("surface");
    ctx.lineWidth = 1.5 * unit;
    if (failed) ctx.rect(x - r, y - r, 2 * r, 2 * r);
    else ctx.arc(x, y, r, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
  }

  function point(u) {
    const { left, top } = u.cursor;
    const at = { x: left + u.bbox.left / devicePixelRatio, y: top + u.bbox.top / devicePixelRatio };
    const near = points.map((each) => ({ ...each, far: Math.hypot(each.x - at.x, each.y - at.y) }))
      .sort((a, b) => a.far - b.far)[0];
    tip.hidden = !near || near.far > 14 || left < 0;
    if (tip.hidden) return;
    const { death } = near;
    say(tip, `${moment(death.died_at_wall_ms)}  ${death.component_id} ${cause(death)} after ${span(death.uptime_ms)}. ${death.reason}`);
    tip.style.left = `${Math.min(near.x, width() - 200)}px`;
    tip.style.top = `${near.y + 12}px`;
  }

  function close() {
    forget();
    resized.disconnect();
    plot?.destroy();
  }

  function tell(deaths) {
    told = deaths;
    update();
  }

  return { node, ranges, update, tick, tell, close };
}

// The shortest range that shows all deaths, unless the user chooses one; a day at most.
function fitting(only) {
  const oldest = state.deaths.findLast((death) => (only === null ? markOf(death) !== "done" : death.component_id === only));
  const begun = (state.info?.started_at_wall_ms ?? 0);
  const age = (supervisorsNow() - (oldest === undefined ? Math.max(begun, supervisorsNow() - 300_000) : oldest.died_at_wall_ms)) / 1000;
  return (RANGES.slice(0, 6).find(([, seconds]) => seconds >= age) ?? RANGES[5])[1];
}

function stroke(ctx, from, to, y, style, width) {
  ctx.strokeStyle = style;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(from, y);
  ctx.lineTo(to, y);
  ctx.stroke();
}

function timeLabel(seconds, step) {
  const when = new Date(seconds * 1000);
  if (step >= 86_400) return when.toLocaleDateString([], { month: "short", day: "numeric" });
  return when.toLocaleTimeString([], { hour12: false, hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined });
}

// A lane for every worker that died in this range, the latest death first.
function lanesOf(from) {
  const deaths = new Map();
  for (const death of state.deaths) {
    if (death.died_at_wall_ms < from || markOf(death) === "done") continue;
    if (!deaths.has(death.component_id)) deaths.set(death.component_id, []);
    deaths.get(death.component_id).push(death);
  }
  return [...deaths].slice(0, MOST_LANES).map(([id, all]) => ({ id, deaths: all, lives: [...livesOf(all), ...lifeNow(id)] }));
}

// For one worker a lane per node on which it died or runs, with its runs that ended well.
function lanesByNode(id, told, now) {
  const home = state.workers.get(id)?.node ?? null;
  const heard = state.deaths.filter((death) => death.component_id === id);
  const known = told ?? [];
  const fresh = heard.filter((death) => !known.some((each) => each.generation === death.generation && (each.node ?? home) === (death.node ?? home)));
  const lanes = new Map([[home, []]]);
  for (const death of [...fresh, ...known]) {
    const node = death.node ?? home;
    if (!lanes.has(node)) lanes.set(node, []);
    lanes.get(node).push(death);
  }
  return [...lanes].slice(0, MOST_LANES).map(([node, all]) => ({ id: node ?? id, deaths: all, lives: [...livesOf(all), ...(node === home ? lifeNow(id, now) : [])] }));
}

// A death tells when its life began.
function livesOf(deaths) {
  return deaths.map((death) => ({ from: death.died_at_wall_ms - death.uptime_ms, to: death.died_at_wall_ms, ended: true }));
}

// The current life comes from the worker itself.
function lifeNow(id, now = supervisorsNow()) {
  const worker = state.workers.get(id);
  const lived = worker ? uptime(worker) : null;
  return lived === null ? [] : [{ from: now - lived, to: now, ended: false }];
}

// A task or a run that ended well has not crashed.
function markOf({ action, reason }) {
  if (action === "mark_failed") return "failed";
  return action === "none" && reason === "done" ? "done" : "crashed";
}
