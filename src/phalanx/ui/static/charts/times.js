// Axes of time: a scale from seconds to pixels, and ticks at round times.

import { AXIS_HEIGHT, colour } from "./canvas.js";
import { durationWords } from "./words.js";

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

export function timeScale(from, to, left, width) {
  const span = Math.max(to - from, 1e-6);
  return {
    from,
    to,
    x: (seconds) => left + ((seconds - from) / span) * width,
    seconds: (x) => from + ((x - left) / width) * span,
  };
}

export function tickStep(span, count) {
  const wanted = span / Math.max(count, 1);
  const found = STEPS.find((step) => step >= wanted);
  return found ?? Math.ceil(wanted / 86400) * 86400;
}

export function drawTimeAxis({ context, width, height }, scale, left) {
  const step = tickStep(scale.to - scale.from, Math.floor((width - left) / 90));
  context.fillStyle = colour("soft");
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.textBaseline = "middle";
  for (let tick = Math.ceil(scale.from / step) * step; tick <= scale.to + step * 1e-6; tick += step) {
    drawTick({ context, width, height }, scale.x(tick), durationWords(tick));
  }
}

function drawTick({ context, width, height }, x, text) {
  const room = context.measureText(text).width;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height - AXIS_HEIGHT + 4);
  context.stroke();
  context.textAlign = "left";
  context.fillText(text, Math.min(Math.max(x - room / 2, 2), width - room - 2), height - AXIS_HEIGHT / 2);
}
