// What a worker left behind when it died, where the supervisor kept it: a row under its death.

import { el } from "./dom.js";

const TEXTS = { output: "Last output", traceback: "Traceback", stack: "Stack", context: "Context" };
const KNOWN = new Set(["component_id", "generation", "died_at_wall_ms", "cause", "exit_code", "signal", "uptime_ms", "job",
  "action", "reason", "delay_ms", "streak_cleared"]);

export function bundle(death) {
  const kept = death.bundle ?? Object.fromEntries(Object.entries(death).filter(([key, value]) => !KNOWN.has(key) && worthIt(value)));
  if (Object.keys(kept).length === 0) return null;
  const parts = Object.entries(kept).filter(([, value]) => worthIt(value)).flatMap(([key, value]) => [
    el("h3", {}, TEXTS[key] ?? key.replaceAll("_", " ")), el("pre", { class: "output" }, textOf(value))]);
  return el("tr", { class: "bundle" }, el("td", { colspan: 7 },
    el("details", {}, el("summary", {}, "What it left behind"), ...parts)));
}

function worthIt(value) {
  return value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
}

function textOf(value) {
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
