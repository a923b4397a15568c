// The chart of gangs: rows by queue, a thin line while a gang waits, a bar while it runs. Only rows in view are drawn.

import { AXIS_HEIGHT, clipped, colour, pen } from "./canvas.js";
import { queueName } from "./gangs.js";
import { drawTimeAxis, timeScale } from "./times.js";
import { countWords } from "./words.js";

const HEADER_HEIGHT = 20;
const TALL_ROW = 18;
const THIN_ROW = 5;
const NAMES_FROM = 12;
const LEAST_BAR = 1;
const LEAST_LINE = 0.5;

export function layOut(gangs, mode, room) {
  const groups = groupsOf(gangs);
  const header = mode !== "fit" || groups.length * HEADER_HEIGHT <= room / 3 ? HEADER_HEIGHT : 0;
  const fitting = (room - groups.length * header) / Math.max(gangs.length, 1);
  const rowHeight = { fit: Math.min(fitting, TALL_ROW), thin: THIN_ROW, tall: TALL_ROW }[mode];
  let top = 0;
  for (const group of groups) {
    group.top = top;
    top += header + group.gangs.length * rowHeight;
    group.bottom = top;
  }
  return { groups, header, rowHeight, height: top };
}

function groupsOf(gangs) {
  const groups = [];
  for (const gang of gangs) {
    if (groups.at(-1)?.queue !== gang.queue) groups.push({ queue: gang.queue, gangs: [] });
    groups.at(-1).gangs.push(gang);
  }
  return groups;
}

export function gangAt(layout, y) {
  const group = layout.groups.find((candidate) => y < candidate.bottom);
  if (!group || y < group.top + layout.header) return null;
  return group.gangs[Math.min(Math.floor((y - group.top - layout.header) / layout.rowHeight), group.gangs.length - 1)];
}

export function rowTop(layout, wanted) {
  const group = layout.groups.find((candidate) => candidate.queue === wanted.queue);
  return group.top + layout.header + group.gangs.indexOf(wanted) * layout.rowHeight;
}

export function gutterOf(width, rowHeight) {
  return rowHeight >= NAMES_FROM ? Math.min(180, width / 4) : 0;
}

export function drawGantt(canvas, view) {
  const paper = pen(canvas, view.room + AXIS_HEIGHT);
  const gutter = gutterOf(paper.width, view.layout.rowHeight);
  const scale = timeScale(view.from, view.to, gutter, paper.width - gutter);
  const colours = Object.fromEntries(["wait", "run", "mark", "stuck", "ink", "panel", "line", "accent", "stripe", "ground"].map((name) => [name, colour(name)]));
  drawTimeAxis(paper, scale, gutter);
  const brush = { ...paper, scale, gutter, colours, view, end: view.seconds, bottom: view.room };
  brush.context.save();
  brush.context.beginPath();
  brush.context.rect(0, 0, paper.width, view.room);
  brush.context.clip();
  for (const group of view.layout.groups) drawGroup(brush, group);
  brush.context.restore();
  return scale;
}

function drawGroup(brush, group) {
  const { layout, scrolled } = brush.view;
  const top = group.top - scrolled;
  if (group.bottom - scrolled < 0 || top > brush.bottom) return;
  const first = top + layout.header;
  const begin = Math.max(0, Math.floor(-first / layout.rowHeight));
  const end = Math.min(group.gangs.length, Math.ceil((brush.bottom - first) / layout.rowHeight));
  const rows = group.gangs.slice(begin, end).map((gang, index) => [gang, first + (begin + index) * layout.rowHeight]);
  for (const draw of [drawWaits, drawRuns, drawStuck, drawMarks]) for (const [gang, y] of rows) draw(brush, gang, y);
  for (const [gang, y] of rows) drawName(brush, gang, y);
  drawHeader(brush, group, Math.min(Math.max(top, 0), group.bottom - scrolled - layout.header));
}

function waitsOf(gang, end) {
  const waits = [];
  let since = gang.submitted;
  for (const [from, to] of gang.spans) {
    if (from > since) waits.push([since, from]);
    since = to ?? end;
  }
  if (gang.finished === null && since < end) waits.push([since, end]);
  return waits;
}

function drawSpan(brush, [from, to], y, height, isSeen = false) {
  const left = Math.max(brush.scale.x(from), brush.gutter);
  const right = Math.min(brush.scale.x(to ?? brush.end), brush.width);
  if (right < brush.gutter || left > brush.width) return;
  brush.context.fillRect(left, y, Math.max(right - left, isSeen ? 1.5 : 0.5), height);
}

function drawWaits(brush, gang, y) {
  const height = brush.view.layout.rowHeight;
  const line = Math.max(height / 9, LEAST_LINE);
  brush.context.fillStyle = brush.colours.wait;
  for (const wait of waitsOf(gang, brush.end)) drawSpan(brush, wait, y + (height - line) / 2, line);
}

function drawRuns(brush, gang, y) {
  const height = brush.view.layout.rowHeight;
  const margin = height > 3 ? height * 0.15 : 0;
  brush.context.fillStyle = brush.colours.run;
  for (const span of gang.spans) drawSpan(brush, span, y + margin, Math.max(height - 2 * margin, LEAST_BAR), true);
}

function drawStuck(brush, gang, y) {
  if (!gang.stuck) return;
  const height = brush.view.layout.rowHeight;
  const margin = height > 3 ? height * 0.15 : 0;
  brush.context.fillStyle = height > 8 ? stripes(brush) : brush.colours.stuck;
  drawSpan(brush, gang.stuck, y + margin, Math.max(height - 2 * margin, LEAST_BAR), true);
}

function stripes({ context, colours }) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const brush = tile.getContext("2d");
  brush.fillStyle = colours.stuck;
  brush.fillRect(0, 0, 8, 8);
  brush.strokeStyle = colours.stripe;
  brush.lineWidth = 1;
  for (const shift of [-8, 0, 8]) {
    brush.moveTo(shift, 8);
    brush.lineTo(shift + 8, 0);
  }
  brush.stroke();
  return context.createPattern(tile, "repeat");
}

function drawMarks(brush, gang, y) {
  const height = Math.max(brush.view.layout.rowHeight, 3);
  brush.context.fillStyle = brush.colours.mark;
  for (const moment of gang.marks) {
    const x = brush.scale.x(moment);
    if (x < brush.gutter || x > brush.width) continue;
    brush.context.fillRect(x - 1, y, 2, height);
    if (height > 8) brush.context.fillRect(x - 3, y, 6, 4);
  }
}

function drawName(brush, gang, y) {
  const { context, colours, view, gutter } = brush;
  if (view.chosen === gang) outline(brush, y);
  if (view.layout.rowHeight < NAMES_FROM) return;
  context.fillStyle = colours.ink;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const middle = y + view.layout.rowHeight / 2;
  context.fillText(clipped(context, gang.name, gutter - 12), 6, middle);
}

function outline({ context, colours, width, view }, y) {
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.strokeRect(1, y, width - 2, Math.max(view.layout.rowHeight, 3));
}

function drawHeader({ context, colours, width, view }, group, y) {
  if (!view.layout.header) return drawBandName({ context, colours, width }, group);
  context.fillStyle = colours.panel;
  context.fillRect(0, y, width, view.layout.header);
  context.fillStyle = colours.ink;
  context.textBaseline = "middle";
  context.textAlign = "left";
  const text = `${queueName(group.queue)}: ${countWords(group.gangs.length, "gang")}`;
  return context.fillText(clipped(context, text, width - 12), 6, y + view.layout.header / 2);
}

// With very many queues, all in view, there is no room for headers: a line parts them, and those with room are named.
function drawBandName({ context, colours, width }, group) {
  context.fillStyle = colours.line;
  context.fillRect(0, group.top, width, 0.5);
  if (group.bottom - group.top < 14) return;
  context.fillStyle = colours.ink;
  context.strokeStyle = colours.ground;
  context.lineWidth = 4;
  context.textBaseline = "top";
  context.textAlign = "left";
  const text = clipped(context, queueName(group.queue), 160);
  context.strokeText(text, 6, group.top + 1);
  context.fillText(text, 6, group.top + 1);
}
