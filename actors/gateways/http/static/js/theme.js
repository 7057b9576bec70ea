// Light, dark, or the system's colours.

import { byId, mark, svg } from "./dom.js";

const ORDER = ["system", "light", "dark"];
const LABELS = { system: "Colours: system", light: "Colours: light", dark: "Colours: dark" };
const SHAPES = {
  system: () => [svg("circle", { cx: 12, cy: 12, r: 8, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
    svg("path", { d: "M12 4a8 8 0 0 1 0 16Z", fill: "currentColor" })],
  light: () => [svg("circle", { cx: 12, cy: 12, r: 4.5, fill: "currentColor" }),
    svg("path", { d: "M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2", stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round" })],
  dark: () => [svg("path", { d: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500Z", fill: "currentColor" })],
};

const redraws = new Set();
export const onTheme = (redraw) => (redraws.add(redraw), () => redraws.delete(redraw));

export function setUpTheme() {
  const button = byId("theme");
  show(button, current());
  button.addEventListener("click", () => {
    const next = ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length];
    if (next === "system") localStorage.removeItem("rekindle-theme");
    else localStorage.setItem("rekindle-theme", next);
    mark(document.documentElement, "data-theme", next === "system" ? null : next);
    show(button, next);
    redraws.forEach((redraw) => redraw());
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
}

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function current() {
  return document.documentElement.dataset.theme ?? "system";
}

function show(button, theme) {
  button.setAttribute("aria-label", LABELS[theme]);
  button.title = LABELS[theme];
  button.replaceChildren(svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, ...SHAPES[theme]()));
}
