// Keys: / finds, a digit opens a view, ? explains, Escape closes or goes back, arrows and j and k walk through what is listed.

import { button, el, replace } from "./dom.js";
import { addressTo, routeOf } from "./router.js";

const KEYS = [
  ["/", "find: go to the filter of this view"],
  ["j, k, arrows", "next and previous row, node or step"],
  ["Enter", "open the row or node"],
  ["Escape", "close, leave the filter, or go back"],
  ["[, ]", "earlier and later, where a moment of a recording is shown"],
  ["?", "these keys"],
];
const BACK = { gang: "gangs", session: "sessions" };

export function listenToKeys(app, views) {
  const help = document.getElementById("help");
  document.getElementById("help-button").addEventListener("click", () => explain(help, views));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (act(event.key, app, views, help)) event.preventDefault();
  });
}

function isTyping(target) {
  return target.matches?.("input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select");
}

function act(key, app, views, help) {
  if (key === "?") return explain(help, views);
  if (key === "/") return focus(app.content.querySelector("[data-filter]"));
  if (key === "Escape") return leave();
  if (key === "[" || key === "]") return app.yesterday?.step(key === "]" ? 1 : -1) ?? false;
  const number = Number(key);
  if (number >= 1 && number <= views.length) return go(addressTo(views[number - 1].name));
  if (["j", "k", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"].includes(key)) {
    if (app.shown?.view.key?.(key)) return true;
    if (key === "j" || key === "k") return walk(app.content, key);
  }
  return false;
}

// The first of these keys goes into the list of the view; from then on the list hears them itself.
function walk(content, key) {
  const list = content.querySelector(".scroll.tall");
  if (!list || document.activeElement === list) return false;
  list.focus({ preventScroll: false });
  list.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  return true;
}

function focus(field) {
  field?.focus();
  field?.select?.();
  return Boolean(field);
}

function go(address) {
  location.hash = address;
  return true;
}

function leave() {
  const { view } = routeOf();
  return view in BACK ? go(addressTo(BACK[view])) : false;
}

function explain(help, views) {
  const rows = [...KEYS, ...views.slice(0, 9).map((view, place) => [String(place + 1), `the view ${view.title}`])];
  replace(help,
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", { class: "keys" }, rows.map(([key, meaning]) => [el("dt", {}, key.split(", ").map((each) => el("kbd", {}, each))), el("dd", {}, meaning)])),
    button("Close", () => help.close(), { autofocus: true }));
  help.showModal();
  return true;
}
