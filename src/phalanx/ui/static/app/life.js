// The life of a gang on a line: created, admitted, bound, running, evicted, ended; and the same as a list.

import { el, svg, table } from "./dom.js";
import { absolute, moment, relative } from "./format.js";
import { clock } from "./clock.js";
import { durationWords } from "../charts/words.js";

const LANES = ["created", "pods", "phase", "admitted", "condition", "waits", "reserved", "bound", "running", "evicted", "failed", "ended"];
const WORDS = { pods: "pods created", condition: "conditions", waits: "waits", phase: "phase", reserved: "reserved start" };
const LEFT = 110;
const NARROW = 600;
const LEAST_WIDE = 280;
const LANE = 22;
const LEAST = 60;

// Drawn as wide as its place is: text that shrinks with a drawing cannot be read on a phone.
export function life(moments, room) {
  if (!moments.length) return el("p", { class: "empty" }, "Its objects tell nothing of the past.");
  const lanes = LANES.filter((kind) => moments.some((item) => item.kind === kind));
  const from = Math.min(...moments.map((item) => item.time));
  const to = Math.max(clock.now(), from + LEAST, ...moments.map((item) => item.until || item.time));
  const width = Math.max(room, LEAST_WIDE);
  const x = (time) => LEFT + ((time - from) / (to - from)) * (width - LEFT - 10);
  const height = lanes.length * LANE + 26;
  return el("div", {},
    el("div", { class: "life", tabindex: "0", role: "region", "aria-label": "Its life on a line" }, svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Its life from ${absolute(from)}; the table below says the same` },
      lanes.map((kind, place) => lane(kind, place, moments, x, x(to))), axis(from, to, { x, width, height }))),
    table("Moments of its life", ["When", "What"], [...moments].reverse().map((item) => [moment(item.time), item.until ? `${item.text} until ${relative(item.until)}` : item.text])));
}

function lane(kind, place, moments, x, end) {
  const y = place * LANE + LANE / 2;
  const marks = moments.filter((item) => item.kind === kind).map((item) => svg("g", { class: `moment ${kind}` },
    svg("title", {}, `${absolute(item.time)}: ${item.text}`),
    item.until ? svg("line", { x1: x(item.time), x2: x(item.until), y1: y, y2: y }) : null,
    svg("circle", { cx: x(item.time), cy: y, r: 5 })));
  return [svg("line", { class: "lane", x1: LEFT, x2: end, y1: y, y2: y }), svg("text", { x: 0, y: y + 4 }, WORDS[kind] ?? kind), marks];
}

function axis(from, to, { x, width, height }) {
  const parts = width < NARROW ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
  const anchor = (part) => (part === 0 ? "start" : part === 1 ? "end" : "middle");
  return parts.map((part) => {
    const time = from + part * (to - from);
    return svg("text", { class: "soft", x: x(time), y: height - 6, "text-anchor": anchor(part) }, part ? `+${durationWords(Math.round(time - from))}` : absolute(from));
  });
}
