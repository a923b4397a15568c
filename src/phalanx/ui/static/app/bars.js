// Bars: parts of a whole, with a mark for what is deserved, drawn as SVG so that they scale with the page.

import { svg } from "./dom.js";

const WIDTH = 1000;
const HEIGHT = 18;

// parts: [{ value, kind }] from left to right; marks: [{ value, kind }]; whole: what the width stands for.
export function bar(label, parts, whole, marks = []) {
  const scale = (value) => (whole > 0 ? Math.min(Math.max((value / whole) * WIDTH, 0), WIDTH) : 0);
  let from = 0;
  const drawn = parts.filter((part) => part.value > 0).map((part) => {
    const width = Math.max(scale(part.value), 2);
    const rect = svg("rect", { class: `part ${part.kind}`, x: from, y: 2, width: Math.min(width, WIDTH - from), height: HEIGHT - 4 });
    from = Math.min(from + width, WIDTH);
    return rect;
  });
  const lines = marks.filter((mark) => mark.value !== undefined && mark.value !== null && mark.value <= whole).map((mark) => svg("line", { class: `mark ${mark.kind}`, x1: scale(mark.value), x2: scale(mark.value), y1: 0, y2: HEIGHT }));
  return svg("svg", { class: "bar", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: "part ground", x: 0, y: 2, width: WIDTH, height: HEIGHT - 4 }), drawn, lines);
}
