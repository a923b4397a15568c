// Pieces of the document. Every text from a cluster goes through here: it becomes text, never markup.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const LONG_TEXT = 60;
const SVG = "http://www.w3.org/2000/svg";

// Characters that cannot be seen, or that turn a line around, are shown as what they are.
export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

export function link(address, text, attributes = {}) {
  return el("a", { href: address, ...attributes }, text);
}

export function button(text, act, attributes = {}) {
  return el("button", { type: "button", onclick: act, ...attributes }, text);
}

// A table with sentences in it becomes a list of cards on a phone, where a column of them would stand outside of the window.
export function table(caption, heads, rows, attributes = {}) {
  const head = el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col", class: isNumber(text) ? "number" : null }, headText(text)))));
  const body = el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, place) => cellOf(cell, heads[place], place)))));
  const kind = [attributes.class, rows.some((cells) => cells.some(isLong)) ? "cards" : null].filter(Boolean).join(" ") || null;
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", { ...attributes, class: kind }, el("caption", { class: "unseen" }, caption), head, body));
}

// A head that begins with # is that of a column of numbers.
function isNumber(text) {
  return text.startsWith("#");
}

function headText(text) {
  return isNumber(text) ? text.slice(1) : text;
}

function isLong(cell) {
  return (cell?.textContent ?? cell)?.length > LONG_TEXT;
}

function cellOf(cell, head, place) {
  const kind = isNumber(head) ? "number" : cell?.length > LONG_TEXT ? "long" : null;
  return place ? el("td", { class: kind, "data-head": headText(head) }, cell) : el("th", { scope: "row", "data-head": isNumber(head) ? headText(head) : null }, cell);
}

export function section(title, ...children) {
  const heading = el("h2", {}, title);
  return el("section", {}, heading, ...children);
}

// Stands where the first answer will be: a look at a large cluster takes a session, and an empty page looks broken.
export function lookedAt() {
  return el("p", { class: "busy" }, "The cluster is looked at…");
}

export function empty(text) {
  return el("p", { class: "empty" }, text);
}

export function figures(pairs) {
  return el("dl", { class: "figures" }, pairs.map(([name, value, note]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, note) : null))));
}

// Puts other content into a place and keeps the focus where it was, if what had it is still there.
export function replace(place, ...children) {
  const focused = place.contains(document.activeElement) ? signOf(document.activeElement) : null;
  const open = new Set([...place.querySelectorAll("details[open][data-key]")].map((details) => details.dataset.key));
  const scrolled = new Map([...place.querySelectorAll("[data-key].scroll")].map((part) => [part.dataset.key, part.scrollTop]));
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const details of place.querySelectorAll("details[data-key]")) details.open ||= open.has(details.dataset.key);
  for (const part of place.querySelectorAll("[data-key].scroll")) part.scrollTop = scrolled.get(part.dataset.key) ?? 0;
  if (focused) [...place.querySelectorAll(focused.tag)].find((part) => signOf(part).sign === focused.sign)?.focus({ preventScroll: true });
}

// By what an element is found again after its place was filled anew.
function signOf(element) {
  const { key, seconds } = element.dataset;
  return { tag: element.localName, sign: key ?? element.getAttribute("href") ?? seconds ?? element.textContent };
}

export function say(text) {
  document.getElementById("said").textContent = visible(text);
}
