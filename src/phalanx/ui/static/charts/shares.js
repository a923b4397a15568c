// Small charts, one for each queue: what it holds as a filled step curve, what it deserves as a dashed one.

import { AXIS_HEIGHT, colour, create, pen, sayEmpty, tipFollows } from "./canvas.js";
import { queueName } from "./gangs.js";
import { drawTimeAxis, timeScale } from "./times.js";
import { durationWords, numberWords } from "./words.js";

const DRAWN_QUEUES = 24;
const HEIGHT = 150;
const LEFT = 44;
const TOP = 10;

export function startShares(place, result) {
  const multiples = place.querySelector("[data-part=multiples]");
  if (!result.shares.length) {
    sayEmpty(place, multiples, "There was no queue.");
    return () => {};
  }
  const drawn = [...result.shares].sort((one, other) => highest(other) - highest(one)).slice(0, DRAWN_QUEUES);
  if (result.shares.length > DRAWN_QUEUES) place.querySelector("[data-part=note]").textContent = `The ${DRAWN_QUEUES} largest of ${result.shares.length} queues are drawn; the table has them all.`;
  const draws = drawn.map((share) => addShare(multiples, share, result));
  return () => draws.forEach((draw) => draw());
}

function highest(share) {
  return Math.max(0, ...share.held, ...share.deserved);
}

function addShare(multiples, share, result) {
  const figure = create("figure");
  const label = `${queueName(share.queue)}: ${result.resource} held and deserved over time`;
  const canvas = create("canvas", "", { role: "img", "aria-label": label });
  figure.append(create("figcaption", queueName(share.queue)), canvas);
  multiples.append(figure);
  tipFollows(canvas, (x) => tipOfShare(share, result.seconds * ((x - LEFT) / (canvas.clientWidth - LEFT))));
  return () => drawShare(canvas, share, result.seconds);
}

function tipOfShare(share, seconds) {
  const index = share.times.findLastIndex((time) => time <= seconds);
  if (index < 0) return "";
  return `${durationWords(seconds)}: ${numberWords(share.held[index])} held, ${numberWords(share.deserved[index])} deserved`;
}

function drawShare(canvas, share, seconds) {
  const paper = pen(canvas, HEIGHT);
  const scale = timeScale(0, seconds, LEFT, paper.width - LEFT);
  const most = highest(share) || 1;
  const floor = HEIGHT - AXIS_HEIGHT;
  const chart = { ...paper, scale, floor, seconds, y: (value) => floor - (value / most) * (floor - TOP) };
  drawTimeAxis(paper, scale, LEFT);
  drawAmounts(chart, most);
  drawSteps(chart, share.times, share.held, { fill: colour("run"), stroke: colour("run"), dash: [] });
  drawSteps(chart, share.times, share.deserved, { stroke: colour("ink"), dash: [5, 3] });
  canvas.dataset.drawn = String(share.times.length);
}

function drawAmounts({ context, y }, most) {
  context.fillStyle = colour("soft");
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of [0, most]) context.fillText(numberWords(value), LEFT - 6, y(value));
}

// A value that is not known leaves a gap.
function drawSteps(chart, times, values, { fill, stroke, dash }) {
  const { context, scale, y, floor, seconds } = chart;
  context.save();
  context.lineWidth = 1.75;
  context.strokeStyle = stroke;
  context.setLineDash(dash);
  for (const [begin, end] of knownRuns(values)) {
    const path = stepPath({ times, values, seconds, x: scale.x, y }, begin, end);
    if (fill) fillUnder(context, path, { left: scale.x(times[begin]), right: scale.x(times[end] ?? seconds), floor, fill });
    context.stroke(path);
  }
  context.restore();
}

function knownRuns(values) {
  const runs = [];
  values.forEach((value, index) => {
    if (value === null) return;
    if (runs.length && runs.at(-1)[1] === index) runs.at(-1)[1] = index + 1;
    else runs.push([index, index + 1]);
  });
  return runs;
}

function stepPath({ times, values, seconds, x, y }, begin, end) {
  const path = new Path2D();
  path.moveTo(x(times[begin]), y(values[begin]));
  for (let index = begin; index < end; index += 1) {
    path.lineTo(x(times[index]), y(values[index]));
    path.lineTo(x(times[index + 1] ?? seconds), y(values[index]));
  }
  return path;
}

function fillUnder(context, path, { left, right, floor, fill }) {
  const area = new Path2D(path);
  area.lineTo(right, floor);
  area.lineTo(left, floor);
  area.closePath();
  context.save();
  context.globalAlpha = 0.35;
  context.fillStyle = fill;
  context.fill(area);
  context.restore();
}
