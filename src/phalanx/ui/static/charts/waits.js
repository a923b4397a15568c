// What part of the gangs had started after which wait: one line for each queue or size, waits on a logarithmic axis.

import { AXIS_HEIGHT, colour, create, pen, sayEmpty, tipFollows } from "./canvas.js";
import { queueName } from "./gangs.js";
import { countWords, durationWords } from "./words.js";

const LINES = 8;
const HEIGHT = 280;
const LEFT = 48;
const TOP = 12;
const SHORTEST_WAIT = 1;
const TICKS = [1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000];
const DASHES = [[], [8, 3], [2, 2], [10, 3, 2, 3], [5, 5], [14, 4], [1, 4], [8, 3, 2, 3, 2, 3]];

export function startWaits(place, result, gangs) {
  const canvas = place.querySelector("canvas");
  const by = place.querySelector("[data-control=by]");
  if (!gangs.length) {
    sayEmpty(place, canvas, "No gang was submitted.");
    return () => {};
  }
  const curves = {
    queue: curvesOf(gangs, (gang) => queueName(gang.queue)),
    size: bySize(curvesOf(gangs, (gang) => result.sizes[gang.size])),
  };
  const draw = () => drawWaitCurves(place, canvas, curves[by.value]);
  by.addEventListener("change", draw);
  tipFollows(canvas, (x, y) => tipOfWaits(canvas, curves[by.value].drawn, x, y));
  return draw;
}

function bySize({ drawn, count }) {
  return { drawn: drawn.sort((one, other) => one.size - other.size), count };
}

function curvesOf(gangs, labelOf) {
  const groups = new Map();
  for (const gang of gangs) {
    const label = labelOf(gang);
    if (!groups.has(label)) groups.set(label, { label, size: gang.size, count: 0, waits: [] });
    const group = groups.get(label);
    group.count += 1;
    if (gang.started !== null) group.waits.push(gang.wait);
  }
  const curves = [...groups.values()].sort((one, other) => other.count - one.count);
  curves.forEach((curve) => curve.waits.sort((one, other) => one - other));
  const drawn = curves.slice(0, LINES);
  return { drawn, count: curves.length };
}

function waitScale(longest, width) {
  const most = Math.max(longest, 10 * SHORTEST_WAIT);
  const span = Math.log(most / SHORTEST_WAIT);
  return {
    most,
    x: (wait) => LEFT + (Math.log(Math.max(wait, SHORTEST_WAIT) / SHORTEST_WAIT) / span) * (width - LEFT - 8),
    wait: (x) => SHORTEST_WAIT * Math.exp((Math.max(x - LEFT, 0) / (width - LEFT - 8)) * span),
  };
}

function longestOf(curves) {
  return Math.max(...curves.map((curve) => curve.waits.at(-1) ?? 0));
}

function heightOf(part) {
  return HEIGHT - AXIS_HEIGHT - part * (HEIGHT - AXIS_HEIGHT - TOP);
}

function drawWaitCurves(place, canvas, { drawn, count }) {
  const paper = pen(canvas, HEIGHT);
  const scale = waitScale(longestOf(drawn), paper.width);
  drawWaitAxes(paper, scale);
  drawn.forEach((curve, index) => drawCurve(paper, scale, curve, index));
  fillLegend(place.querySelector("[data-part=legend]"), drawn);
  const others = count > LINES ? ` Of ${count} groups, the ${LINES} with the most gangs are drawn.` : "";
  place.querySelector("[data-part=note]").textContent = `Gangs that never started keep a line below 100 %. Waits under 1 s stand at 1 s.${others}`;
  canvas.dataset.drawn = String(drawn.length);
}

function drawWaitAxes({ context, width }, scale) {
  context.strokeStyle = colour("line");
  context.fillStyle = colour("soft");
  context.textBaseline = "middle";
  const rule = (x, y, toX, toY) => { context.beginPath(); context.moveTo(x, y); context.lineTo(toX, toY); context.stroke(); };
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    rule(LEFT, heightOf(part), width - 8, heightOf(part));
    context.textAlign = "right";
    context.fillText(`${part * 100} %`, LEFT - 6, heightOf(part));
  }
  for (const tick of TICKS.filter((candidate) => candidate <= scale.most)) {
    rule(scale.x(tick), TOP, scale.x(tick), heightOf(0));
    context.textAlign = tick === 1 ? "left" : scale.x(tick) > width - 40 ? "right" : "center";
    context.fillText(durationWords(tick), scale.x(tick), HEIGHT - AXIS_HEIGHT / 2);
  }
}

function drawCurve({ context, width }, scale, curve, index) {
  context.save();
  context.strokeStyle = colour(`line-${index}`);
  context.setLineDash(DASHES[index]);
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(LEFT, heightOf(0));
  curve.waits.forEach((wait, position) => {
    context.lineTo(scale.x(wait), heightOf(position / curve.count));
    context.lineTo(scale.x(wait), heightOf((position + 1) / curve.count));
  });
  context.lineTo(width - 8, heightOf(curve.waits.length / curve.count));
  context.stroke();
  context.restore();
}

function fillLegend(list, curves) {
  list.replaceChildren(...curves.map((curve, index) => {
    const item = create("li");
    const sample = create("canvas", "", { width: "36", height: "10", "aria-hidden": "true" });
    sample.style.cssText = "width:36px;height:10px;border:0";
    drawSample(sample.getContext("2d"), index);
    item.append(sample, create("span", `${curve.label} (${countWords(curve.count, "gang")})`));
    return item;
  }));
}

function drawSample(context, index) {
  context.strokeStyle = colour(`line-${index}`);
  context.setLineDash(DASHES[index]);
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(0, 5);
  context.lineTo(36, 5);
  context.stroke();
}

function tipOfWaits(canvas, drawn, x, y) {
  if (x < LEFT || y > HEIGHT - AXIS_HEIGHT) return "";
  const wait = waitScale(longestOf(drawn), canvas.clientWidth).wait(x);
  const lines = drawn.map((curve) => `${curve.label}: ${Math.round((100 * startedWithin(curve.waits, wait)) / curve.count)} %`);
  return [`started within ${durationWords(wait)}`, ...lines].join("\n");
}

function startedWithin(waits, limit) {
  const after = waits.findIndex((wait) => wait > limit);
  return after < 0 ? waits.length : after;
}
