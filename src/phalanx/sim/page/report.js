// Starts the charts of each result, shows the chosen one, and draws again when size, colours or paper change.

import { showTip } from "../../ui/static/charts/canvas.js";
import { unpackGangs } from "../../ui/static/charts/gangs.js";
import { startGantt } from "../../ui/static/charts/gantt_view.js";
import { startHeat } from "../../ui/static/charts/heat.js";
import { startShares } from "../../ui/static/charts/shares.js";
import { startWaits } from "../../ui/static/charts/waits.js";

function startResult(section, result) {
  const chart = (name) => section.querySelector(`[data-chart=${name}]`);
  const gangs = unpackGangs(result);
  return [
    startGantt(chart("gantt"), result, gangs),
    startHeat(chart("heat"), result),
    startShares(chart("shares"), result),
    startWaits(chart("waits"), result, gangs),
  ];
}

function startPage() {
  const results = JSON.parse(document.getElementById("data").textContent);
  const sections = [...document.querySelectorAll(".result")];
  const draws = sections.map((section) => startResult(section, results[Number(section.dataset.result)]));
  const drawAll = () => sections.forEach((section, index) => section.hidden || draws[index].forEach((draw) => draw()));
  const choose = (number) => {
    sections.forEach((section, index) => { section.hidden = index !== number; });
    drawAll();
  };
  document.getElementById("chooser")?.addEventListener("change", (event) => choose(Number(event.target.value)));
  listenToSurroundings(drawAll);
  choose(0);
  document.documentElement.dataset.ready = "true";
}

function listenToSurroundings(drawAll) {
  const inColours = (isPrint) => {
    if (isPrint) document.documentElement.dataset.print = "true";
    else delete document.documentElement.dataset.print;
    drawAll();
  };
  window.addEventListener("resize", drawAll);
  window.addEventListener("scroll", () => showTip("", 0, 0));
  window.addEventListener("beforeprint", () => inColours(true));
  window.addEventListener("afterprint", () => inColours(false));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}

startPage();
