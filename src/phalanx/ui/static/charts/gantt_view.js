// The controls of the chart of gangs: filter, row height, time shown, and a gang chosen by keyboard or pointer.

import { AXIS_HEIGHT, announce, sayEmpty, showTip, tipFollows } from "./canvas.js";
import { describeGang, fillGangTable, matchingGangs } from "./gangs.js";
import { drawGantt, gangAt, gutterOf, layOut, rowTop } from "./gantt.js";
import { countWords, numberWords } from "./words.js";

const TALL_UP_TO = 60;
const SHORTEST = 1;

export function startGantt(place, result, gangs) {
  const canvas = place.querySelector("canvas");
  if (!gangs.length) {
    sayEmpty(place, place.querySelector("[data-part=viewport]"), "No gang was submitted.");
    return () => {};
  }
  const view = { gangs, shown: gangs, seconds: result.seconds, from: 0, to: result.seconds, scrolled: 0, chosen: null };
  const chart = { place, canvas, view, resource: result.resource, ...partsOf(place) };
  chart.rows.value = gangs.length <= TALL_UP_TO ? "tall" : "fit";
  listen(chart);
  chart.draw = () => redraw(chart);
  refilter(chart);
  return chart.draw;
}

function partsOf(place) {
  const part = (name) => place.querySelector(`[data-part=${name}]`);
  const control = (name) => place.querySelector(`[data-control=${name}]`);
  return { viewport: part("viewport"), spacer: part("height"), count: part("count"), details: part("table"), table: part("rows"),
    filter: control("filter"), rows: control("rows") };
}

function listen(chart) {
  chart.filter.addEventListener("input", () => refilter(chart));
  chart.rows.addEventListener("change", () => redraw(chart));
  chart.viewport.addEventListener("scroll", () => redraw(chart));
  chart.details.addEventListener("toggle", () => refillTable(chart));
  for (const button of chart.place.querySelectorAll("button[data-control]")) {
    button.addEventListener("click", () => move(chart, button.dataset.control));
  }
  chart.canvas.addEventListener("keydown", (event) => onKey(chart, event));
  chart.canvas.addEventListener("blur", () => showTip("", 0, 0));
  chart.canvas.addEventListener("wheel", (event) => onWheel(chart, event), { passive: false });
  listenToDrags(chart);
  tipFollows(chart.canvas, (x, y) => tipAt(chart, y));
}

function refilter(chart) {
  chart.view.shown = matchingGangs(chart.view.gangs, chart.filter.value);
  chart.view.chosen = null;
  const { shown, gangs } = chart.view;
  chart.count.textContent = shown.length === gangs.length ? countWords(gangs.length, "gang") : `${numberWords(shown.length)} of ${countWords(gangs.length, "gang")}`;
  refillTable(chart);
  redraw(chart);
}

function refillTable(chart) {
  if (chart.details.open) fillGangTable(chart.table, chart.view.shown, chart.resource);
}

function redraw(chart) {
  const { view, viewport, spacer, canvas } = chart;
  if (!viewport.clientWidth) return;
  const most = parseFloat(getComputedStyle(viewport).maxHeight) - AXIS_HEIGHT;
  view.layout = layOut(view.shown, chart.rows.value, most);
  view.room = Math.min(most, view.layout.height);
  spacer.style.height = `${Math.max(0, view.layout.height - view.room)}px`;
  view.scrolled = viewport.scrollTop;
  chart.scale = drawGantt(canvas, view);
  canvas.dataset.drawn = String(view.shown.length);
}

// --- time shown ----------------------------------------------------------------------------------------------------------

function move(chart, how) {
  const { view } = chart;
  const span = view.to - view.from;
  const middle = (view.from + view.to) / 2;
  const moves = {
    earlier: () => show(chart, view.from - span / 4, span),
    later: () => show(chart, view.from + span / 4, span),
    closer: () => show(chart, middle - span / 4, span / 2),
    further: () => show(chart, middle - span, span * 2),
    whole: () => show(chart, 0, view.seconds),
  };
  moves[how]();
}

function show(chart, from, span) {
  const { view } = chart;
  const length = Math.min(Math.max(span, Math.min(SHORTEST, view.seconds)), view.seconds);
  view.from = Math.min(Math.max(from, 0), view.seconds - length);
  view.to = view.from + length;
  redraw(chart);
}

function onWheel(chart, event) {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const span = chart.view.to - chart.view.from;
  const factor = event.deltaY > 0 ? 1.25 : 0.8;
  const under = chart.scale.seconds(event.clientX - chart.canvas.getBoundingClientRect().left);
  show(chart, under - (under - chart.view.from) * factor, span * factor);
}

function listenToDrags(chart) {
  let held = null;
  chart.canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, from: chart.view.from };
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const { view, canvas } = chart;
    const width = canvas.clientWidth - gutterOf(canvas.clientWidth, view.layout.rowHeight);
    show(chart, held.from - ((event.clientX - held.x) / width) * (view.to - view.from), view.to - view.from);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) chart.canvas.addEventListener(end, () => { held = null; });
}

// --- one gang ------------------------------------------------------------------------------------------------------------

function tipAt(chart, y) {
  const gang = y < chart.view.room ? gangAt(chart.view.layout, y + chart.view.scrolled) : null;
  return gang ? describeGang(gang) : "";
}

function onKey(chart, event) {
  const moves = { ArrowLeft: "earlier", ArrowRight: "later", "+": "closer", "=": "closer", "-": "further", 0: "whole" };
  const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -20, PageDown: 20 };
  if (event.key in moves) move(chart, moves[event.key]);
  else if (event.key in steps) choose(chart, steps[event.key]);
  else if (event.key === "Escape") showTip("", 0, 0);
  else return;
  event.preventDefault();
}

function choose(chart, step) {
  const { view, viewport, canvas } = chart;
  if (!view.shown.length) return;
  const index = view.chosen ? view.shown.indexOf(view.chosen) + step : 0;
  view.chosen = view.shown[Math.min(Math.max(index, 0), view.shown.length - 1)];
  const top = rowTop(view.layout, view.chosen);
  if (top - view.layout.header < viewport.scrollTop) viewport.scrollTop = top - view.layout.header;
  if (top + view.layout.rowHeight > viewport.scrollTop + view.room) viewport.scrollTop = top + view.layout.rowHeight - view.room;
  redraw(chart);
  const box = canvas.getBoundingClientRect();
  showTip(describeGang(view.chosen), box.left + box.width / 3, box.top + top - viewport.scrollTop);
  announce(describeGang(view.chosen));
}
