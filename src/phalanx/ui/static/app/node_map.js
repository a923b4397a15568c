// A map of ten thousand nodes: one square each, in blocks by domain, filled as far as the node is used.

import { clipped, colour, pen } from "../charts/canvas.js";

const LARGEST = 34;
const FINE = 8;
const FAINT = 0.55;
const SMALLEST = 4;
const GAP = 10;
const LABEL = 13;
const LEAST_WIDE = 44;
const HEADING = 22;
const WIDE = 1.7;
const ROOM = 1.6;
const COLOURS = 8;
export const STATES = ["ready", "cordoned", "not ready"];

// Where every node is drawn. `inner` and `outer` are levels, or null where nodes are not divided.
export function layOut(count, inner, outer, width, height) {
  const size = Math.min(Math.max(Math.floor(Math.sqrt((width * height) / (Math.max(count, 1) * ROOM))), SMALLEST), LARGEST);
  const blocks = blocksOf(count, inner, outer);
  const places = { x: new Float32Array(count), y: new Float32Array(count), size, blocks, order: [] };
  let [x, y, tall, heading] = [0, 0, 0, null];
  for (const block of blocks) {
    const columns = Math.min(Math.max(Math.ceil(Math.sqrt(block.nodes.length * WIDE)), 1), Math.max(Math.floor(width / size), 1));
    const [wide, high] = [Math.max(columns * size, LEAST_WIDE), Math.ceil(block.nodes.length / columns) * size + LABEL];
    const isNew = outer && block.outer !== heading;
    if (isNew || (x > 0 && x + wide > width)) [x, y, tall] = [0, y + tall + (tall ? GAP : 0), 0];
    if (isNew) {
      heading = block.outer;
      block.heading = { y: y + HEADING - 7 };
      y += HEADING;
    }
    Object.assign(block, { x, y, wide });
    block.nodes.forEach((node, place) => {
      places.x[node] = x + (place % columns) * size;
      places.y[node] = y + LABEL + Math.floor(place / columns) * size;
      places.order.push(node);
    });
    [x, tall] = [x + wide + GAP, Math.max(tall, high)];
  }
  return { ...places, height: y + tall };
}

function blocksOf(count, inner, outer) {
  const blocks = new Map();
  for (let node = 0; node < count; node += 1) {
    const domain = inner ? inner.of[node] : 0;
    const around = outer ? outer.of[node] : -1;
    const key = `${around}/${domain}`;
    if (!blocks.has(key)) blocks.set(key, { name: inner ? nameOf(inner, domain) : "", outer: outer ? nameOf(outer, around) : "", nodes: [] });
    blocks.get(key).nodes.push(node);
  }
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return [...blocks.values()].sort((one, other) => compare(one.outer, other.outer) || compare(one.name, other.name));
}

function nameOf(level, domain) {
  return domain < 0 ? "(none)" : level.names[domain];
}

export function nodeAt(places, x, y) {
  const { size } = places;
  return places.order.find((node) => x >= places.x[node] && x < places.x[node] + size && y >= places.y[node] && y < places.y[node] + size) ?? -1;
}

// The colour of a queue; there are eight, and queues beyond share them.
export function queueColour(place) {
  return place < 0 ? colour("wait") : colour(`line-${place % COLOURS}`);
}

export function drawMap(canvas, places, found, view) {
  const paper = pen(canvas, Math.max(places.height, 40));
  const brush = { ...paper, places, found, side: places.size > 6 ? places.size - 2 : places.size - 1, inks: inksOf(view, found) };
  drawLabels(brush, view);
  drawSquares(brush, view);
  drawMarked(brush, view);
  canvas.dataset.drawn = String(places.order.length);
}

function inksOf(view, found) {
  const inks = Object.fromEntries(["ground", "bar", "line", "run", "mark", "ink", "soft", "accent", "stuck"].map((name) => [name, colour(name)]));
  return { ...inks, queues: view.by === "queue" ? found.queues.map((_, place) => queueColour(place)) : [] };
}

function drawLabels({ context, places, inks, width }, view) {
  context.textBaseline = "alphabetic";
  context.textAlign = "left";
  for (const block of places.blocks) {
    if (block.heading) {
      context.font = "600 13px system-ui, sans-serif";
      context.fillStyle = inks.ink;
      context.fillText(clipped(context, block.outer, width), 0, block.heading.y);
    }
    if (!block.name) continue;
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = view.marked?.blocks?.has(block.name) ? inks.accent : inks.soft;
    context.fillText(clipped(context, block.name, block.wide + GAP - 2), block.x, block.y + LABEL - 3);
  }
}

function drawSquares({ context, places, found, side, inks }, view) {
  const { offered, used } = view.resource;
  for (const node of places.order) {
    const [x, y] = [places.x[node], places.y[node]];
    context.fillStyle = offered[node] ? inks.bar : inks.ground;
    context.fillRect(x, y, side, side);
    const high = offered[node] ? Math.min(used[node] / offered[node], 1) * side : 0;
    if (high > 0) {
      context.globalAlpha = side < FINE && high < side && view.by !== "queue" ? FAINT : 1; // a pixel of room is not seen
      context.fillStyle = view.by === "queue" ? inks.queues[found.queue[node]] ?? inks.soft : inks.run;
      context.fillRect(x, y + side - Math.max(high, 1), side, Math.max(high, 1));
      context.globalAlpha = 1;
    }
    if (found.state[node]) drawState(context, x, y, side, found.state[node], inks);
  }
  if (side < 6) return;
  context.strokeStyle = inks.line;
  context.lineWidth = 1;
  context.beginPath();
  for (const node of places.order) context.rect(places.x[node] + 0.5, places.y[node] + 0.5, side - 1, side - 1);
  context.stroke();
}

// A cordoned node is crossed once, one that is not ready twice.
function drawState(context, x, y, side, state, inks) {
  context.beginPath();
  context.moveTo(x, y + side);
  context.lineTo(x + side, y);
  if (state === 2) {
    context.moveTo(x, y);
    context.lineTo(x + side, y + side);
  }
  for (const [ink, width] of [[inks.ground, side < FINE ? 1 : 4], [inks.mark, 1.5]]) { // on a colour of queues it would be lost
    context.strokeStyle = ink;
    context.lineWidth = width;
    context.stroke();
  }
}

function drawMarked({ context, places, side, inks }, view) {
  const outline = (node, ink, width) => {
    context.strokeStyle = ink;
    context.lineWidth = width;
    context.strokeRect(places.x[node] - 1, places.y[node] - 1, side + 2, side + 2);
  };
  const marked = view.marked?.nodes ?? [];
  for (const node of marked) outline(node, inks.ground, 6);
  for (const node of marked) outline(node, inks.stuck, 3);
  if (view.chosen >= 0) outline(view.chosen, inks.ink, 2.5);
}

// The node next to another one, in the direction of an arrow.
export function neighbour(places, node, key) {
  if (node < 0) return places.order[0] ?? -1;
  const place = places.order.indexOf(node);
  if (key === "ArrowLeft" || key === "k") return places.order[Math.max(place - 1, 0)];
  if (key === "ArrowRight" || key === "j") return places.order[Math.min(place + 1, places.order.length - 1)];
  const down = key === "ArrowDown" ? 1 : -1;
  let [best, distance] = [node, Infinity];
  for (const other of places.order) {
    const rise = (places.y[other] - places.y[node]) * down;
    if (rise <= 0) continue;
    const far = rise + Math.abs(places.x[other] - places.x[node]) * 2;
    if (far < distance) [best, distance] = [other, far];
  }
  return best;
}
