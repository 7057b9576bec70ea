// All elements are created here. Text stays text: nothing in this page turns a string into HTML, and
// the browser refuses it (require-trusted-types-for).

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// Characters that reverse or hide the text around them are shown as what they are.
const STEERING = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

function plain(text) {
  return text.replace(STEERING, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  const shown = children.filter((child) => child !== null && child !== undefined);
  node.append(...shown.map((child) => (typeof child === "string" ? plain(child) : child)));
  return node;
}

// Writing the same text again would make screen readers repeat it and lose the selection.
export function say(node, text) {
  const shown = plain(String(text));
  if (node.textContent !== shown) node.textContent = shown;
}

export function mark(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

export function byId(id) {
  return document.getElementById(id);
}
