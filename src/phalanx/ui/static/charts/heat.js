// The heat map of nodes: one row for a node or several neighbours, one column for a piece of time.

import { AXIS_HEIGHT, clipped, colour, pen, sayEmpty, tipFollows } from "./canvas.js";
import { drawTimeAxis, timeScale } from "./times.js";
import { durationWords } from "./words.js";

const TALLEST_ROW = 18;
const TALLEST_MAP = 400;
const NAMES_FROM = 12;

export function startHeat(place, result) {
  const canvas = place.querySelector("canvas");
  const { rows, values } = result.heat;
  if (!rows.length) {
    sayEmpty(place, canvas, "There was no node.");
    return () => {};
  }
  const rowHeight = Math.min(TALLEST_ROW, TALLEST_MAP / rows.length);
  place.querySelector(".absent").hidden = !values.some((row) => row.includes(-1));
  tipFollows(canvas, (x, y) => tipOf(result, partOf(canvas, rowHeight, x), Math.floor(y / rowHeight)));
  return () => drawHeat(canvas, result, rowHeight);
}

function gutterOf(width, rowHeight) {
  return rowHeight >= NAMES_FROM ? Math.min(140, width / 4) : 0;
}

function partOf(canvas, rowHeight, x) {
  const gutter = gutterOf(canvas.clientWidth, rowHeight);
  return (x - gutter) / (canvas.clientWidth - gutter);
}

function tipOf({ heat, seconds }, part, row) {
  if (row >= heat.rows.length || part < 0 || part >= 1) return "";
  const held = heat.values[row][Math.floor(part * heat.values[row].length)];
  return `${heat.rows[row]}\n${durationWords(part * seconds)}: ${held < 0 ? "not there" : `${held} % held`}`;
}

function drawHeat(canvas, { heat, seconds }, rowHeight) {
  const mapHeight = rowHeight * heat.rows.length;
  const paper = pen(canvas, mapHeight + AXIS_HEIGHT);
  const gutter = gutterOf(paper.width, rowHeight);
  drawTimeAxis(paper, timeScale(0, seconds, gutter, paper.width - gutter), gutter);
  paper.context.imageSmoothingEnabled = false;
  paper.context.drawImage(pictureOf(heat), gutter, 0, paper.width - gutter, mapHeight);
  if (gutter) drawNodeNames(paper.context, heat.rows, rowHeight, gutter);
  canvas.dataset.drawn = String(heat.rows.length);
}

function drawNodeNames(context, names, rowHeight, gutter) {
  context.fillStyle = colour("ink");
  context.textAlign = "left";
  context.textBaseline = "middle";
  names.forEach((name, row) => context.fillText(clipped(context, name, gutter - 12), 6, (row + 0.5) * rowHeight));
}

function pictureOf({ rows, values }) {
  const picture = document.createElement("canvas");
  picture.width = values[0].length;
  picture.height = rows.length;
  const context = picture.getContext("2d");
  const pixels = context.createImageData(picture.width, picture.height);
  const palette = paletteOf();
  values.flat().forEach((held, index) => pixels.data.set(palette[held + 1], 4 * index));
  context.putImageData(pixels, 0, 0);
  return picture;
}

// First the colour of a node that is not there, then those of 0 to 100 per cent.
function paletteOf() {
  const [none, low, high] = ["none", "heat-low", "heat-high"].map((name) => channelsOf(colour(name)));
  const mixed = (part) => low.map((channel, index) => Math.round(channel * (1 - part) + high[index] * part));
  return [none, ...Array.from({ length: 101 }, (_, held) => mixed(held / 100))];
}

function channelsOf(hex) {
  return [...[1, 3, 5].map((index) => parseInt(hex.slice(index, index + 2), 16)), 255];
}
