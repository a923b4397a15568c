// What all charts share: colours of the style sheet, sharp canvases, tooltips, small pieces of the document.

export const FONT = "12px system-ui, sans-serif";
export const AXIS_HEIGHT = 24;

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function create(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function pen(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = FONT;
  return { context, width, height };
}

export function sayEmpty(place, chart, sentence) {
  for (const part of [chart, ...place.querySelectorAll(".controls, .legend, details")]) part.hidden = true;
  chart.before(create("p", sentence, { class: "empty" }));
}

export function clipped(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return length ? `${text.slice(0, length)}…` : "";
}

export function showTip(text, x, y) {
  const tip = document.getElementById("tip");
  tip.textContent = text;
  tip.hidden = !text;
  if (!text) return;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, window.innerWidth - box.width - 4))}px`;
  tip.style.top = `${y + 18 + box.height > window.innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}

export function tipFollows(canvas, textAt) {
  const show = (event) => {
    const box = canvas.getBoundingClientRect();
    showTip(textAt(event.clientX - box.left, event.clientY - box.top), event.clientX, event.clientY);
  };
  canvas.addEventListener("pointermove", show);
  canvas.addEventListener("pointerdown", show);
  canvas.addEventListener("pointerleave", () => showTip("", 0, 0));
}

export function announce(text) {
  document.getElementById("said").textContent = text;
}
