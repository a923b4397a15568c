// Amounts and times as people read them: numbers with units, times relative, and absolute where somebody points.

import { durationWords, numberWords } from "../charts/words.js";
import { el } from "./dom.js";
import { clock } from "./clock.js";

const MINUTE = 60;
const DAY = 86400;
const BINARY = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];

export function amount(value, resource = "") {
  if (value === null || value === undefined) return "–";
  if (resource !== "memory") return numberWords(Math.round(value * 100) / 100);
  const [suffix, size] = BINARY.find(([, size]) => Math.abs(value) >= size) ?? ["", 1];
  return `${numberWords(Math.round((value / size) * 10) / 10)}${suffix}`;
}

export function withUnit(value, resource, unit) {
  return `${amount(value, resource)} ${value === 1 && unit.endsWith("s") && unit.toUpperCase() !== unit ? unit.slice(0, -1) : unit}`;
}

export function percent(part, whole) {
  return whole ? `${Math.round((100 * part) / whole)} %` : "–";
}

export function absolute(seconds) {
  return new Date(seconds * 1000).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

export function relative(seconds, now = clock.now()) {
  const distance = now - seconds;
  return distance >= 0 ? `${coarse(distance)} ago` : `in ${coarse(-distance)}`;
}

export function since(seconds, now = clock.now()) {
  return coarse(Math.max(now - seconds, 0));
}

// From a minute on nobody looks at seconds, and from two days on at nothing but days.
function coarse(seconds) {
  const step = seconds < MINUTE ? 1 : seconds < 2 * DAY ? MINUTE : DAY;
  return durationWords(Math.floor(seconds / step) * step);
}

// Files are written by the clock of the machine, whatever time it is in the cluster that is shown beside them.
function told(seconds, words) {
  if (words === "written") return relative(seconds, Date.now() / 1000);
  return words === "since" ? since(seconds) : relative(seconds);
}

// A moment that goes on being told relative to now; the absolute time is in its title, and shown where it has the focus.
export function moment(seconds, words = "relative") {
  if (!seconds) return el("span", { class: "soft" }, "–");
  const text = told(seconds, words);
  return el("time", { datetime: new Date(seconds * 1000).toISOString(), title: absolute(seconds), "data-seconds": String(seconds), "data-words": words, tabindex: "0" }, text);
}

export function momentOf(text) {
  const found = Date.parse(text);
  return Number.isNaN(found) ? 0 : found / 1000;
}

export function updateMoments(place = document) {
  for (const time of place.querySelectorAll("time[data-seconds]")) {
    const seconds = Number(time.dataset.seconds);
    time.textContent = told(seconds, time.dataset.words);
  }
}
