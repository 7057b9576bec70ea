// The colours that a worker writes: "Select Graphic Rendition" of ECMA-48, which the supervisor escapes as
// \x1b[…m. They become classes of a fixed list, never styles or HTML; all other sequences stay visible.

import { el } from "./dom.js";

const SEQUENCE = /\\x1b\[([0-9;:]*)m/g;

// Marks that codes set and take back; blinking and hidden text are not shown as such.
const MARKS = { 1: "bold", 2: "faint", 3: "italic", 4: "underline", 7: "inverse", 9: "struck" };
const ENDS = { 22: ["bold", "faint"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["struck"] };

export function plainText(text) {
  return text.includes("\\x1b[") ? text.replace(SEQUENCE, "") : text;
}

// A line as pieces of text: strings, and spans with classes. Every line begins without colours.
export function coloured(text, word = "") {
  const pieces = split(text);
  const plain = pieces.map((piece) => piece.text).join("");
  const found = matchesOf(plain, word);
  let at = 0;
  return pieces.flatMap(({ text: part, classes }) => {
    const cut = marked(part, at, found);
    at += part.length;
    return cut.map(({ text: bit, hit }) => (hit ? el("mark", { class: classes }, bit) : classes ? el("span", { class: classes }, bit) : bit));
  });
}

function split(text) {
  const style = { marks: new Set(), ink: null, ground: null };
  const pieces = [];
  let at = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    add(pieces, text.slice(at, found.index), style);
    apply(style, found[1].split(/[;:]/).map(Number));
    at = found.index + found[0].length;
  }
  add(pieces, text.slice(at), style);
  return pieces;
}

function add(pieces, text, style) {
  if (text) pieces.push({ text, classes: classesOf(style) });
}

function classesOf({ marks, ink, ground }) {
  const names = [...marks].map((mark) => `sgr-${mark}`);
  if (ink !== null) names.push(`sgr-ink-${ink}`);
  if (ground !== null) names.push(`sgr-ground-${ground}`);
  return names.length ? names.join(" ") : null;
}

function apply(style, codes) {
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 38 || code === 48) {
      const [colour, used] = wide(codes.slice(at + 1));
      style[code === 38 ? "ink" : "ground"] = colour;
      at += used;
    } else set(style, code);
  }
}

function set(style, code) {
  if (code === 0) (style.marks.clear(), (style.ink = style.ground = null));
  else if (code in MARKS) style.marks.add(MARKS[code]);
  else if (code in ENDS) ENDS[code].forEach((mark) => style.marks.delete(mark));
  else if (code >= 30 && code <= 37) style.ink = code - 30;
  else if (code >= 90 && code <= 97) style.ink = code - 82;
  else if (code === 39) style.ink = null;
  else if (code >= 40 && code <= 47) style.ground = code - 40;
  else if (code >= 100 && code <= 107) style.ground = code - 92;
  else if (code === 49) style.ground = null;
}

// One of 256 colours, or of all: the nearest of the sixteen, which are legible in both themes.
function wide([kind, ...values]) {
  if (kind === 5) return [of256(values[0]), 2];
  if (kind !== 2) return [null, 1];
  return [nearest(...values.slice(0, 3).map((value) => Math.min(255, value || 0))), 4];
}

function of256(number) {
  if (!(number >= 0 && number <= 255)) return null;
  if (number < 16) return number;
  if (number >= 232) return nearest(...Array(3).fill(8 + (number - 232) * 10));
  const level = (step) => (step ? 55 + step * 40 : 0);
  const cube = number - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function nearest(red = 0, green = 0, blue = 0) {
  const [least, most] = [Math.min(red, green, blue), Math.max(red, green, blue)];
  if (most - least < 48) return most < 64 ? 0 : most < 160 ? 8 : most < 224 ? 7 : 15;
  const middle = (least + most) / 2;
  const hue = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return most > 200 ? hue + 8 : hue;
}

// ── what a search found ─────────────────────────────────────────────────────────────────

function matchesOf(text, word) {
  const found = [];
  const [hay, needle] = [text.toLowerCase(), word.toLowerCase()];
  if (needle === "" || hay.length !== text.length) return found; // a few letters change their length
  for (let at = hay.indexOf(needle); at !== -1; at = hay.indexOf(needle, at + needle.length)) found.push([at, at + needle.length]);
  return found;
}

function marked(part, begin, found) {
  const cut = [];
  let at = 0;
  for (const [from, to] of found) {
    const [a, b] = [Math.max(from - begin, at), Math.min(to - begin, part.length)];
    if (a >= b) continue;
    if (a > at) cut.push({ text: part.slice(at, a), hit: false });
    cut.push({ text: part.slice(a, b), hit: true });
    at = b;
  }
  if (at < part.length) cut.push({ text: part.slice(at), hit: false });
  return cut;
}
