// Simulations beside each other, with the charts of the report, also while they run.

import { get } from "../api.js";
import { el, empty, replace, section, table } from "../dom.js";
import { moment } from "../format.js";
import { note } from "../router.js";
import { unpackGangs } from "../../charts/gangs.js";
import { startGantt } from "../../charts/gantt_view.js";
import { startHeat } from "../../charts/heat.js";
import { startShares } from "../../charts/shares.js";
import { startWaits } from "../../charts/waits.js";

const BETWEEN_LOOKS = 2000;
const AT_FIRST = 2;

export function simulationsView(context) {
  const view = new SimulationsView(context);
  view.look();
  return view;
}

class SimulationsView {
  constructor(context) {
    this.context = context;
    this.chosen = new Set((context.params.get("show") ?? "").split(",").filter(Boolean));
    this.versions = new Map();
    this.list = el("div");
    this.results = el("div", { class: "beside" });
    context.place.append(el("h1", {}, "Simulations"), this.list, this.results);
  }

  async look() {
    try {
      const found = await get("simulations", {}, this.context.control.signal);
      if (!this.context.isShown) return;
      if (!this.chosen.size) found.simulations.slice(0, AT_FIRST).forEach((row) => this.chosen.add(row.name));
      this.found = found;
      replace(this.list, this.page());
      await this.update();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      this.context.fail(problem, this.list);
    }
    if (this.context.isShown) this.timer = setTimeout(() => this.look(), BETWEEN_LOOKS);
  }

  page() {
    const { simulations, comparison } = this.found;
    if (!simulations.length) return [empty("No simulation has written a result here yet; 'phalanx simulate ... --results DIR' does.")];
    const rows = simulations.map((row) => [
      el("label", {}, el("input", { type: "checkbox", checked: this.chosen.has(row.name), "data-key": `show ${row.name}`, onchange: (event) => this.toggle(row.name, event.target.checked) }), ` ${row.title}`),
      row.problem ? row.problem : row.over ? "is over" : "runs", moment(row.changed, "written"),
    ]);
    return [table("Simulations", ["Shown", "State", "Last written"], rows), this.compared(comparison)];
  }

  compared(found) {
    if (!found.rows?.length || found.columns.length < 2) return null;
    const rows = found.rows.map((row) => [row.name, ...row.cells.map((cell, place) => (row.best.includes(place) ? el("strong", {}, `${cell} ★`) : cell))]);
    return section("Beside each other", table("Simulations beside each other", ["Figure", ...found.columns.map((name) => `#${name}`)], rows), ...found.notes.map((text) => el("p", { class: "note" }, text)));
  }

  toggle(name, isShown) {
    if (isShown) this.chosen.add(name);
    else this.chosen.delete(name);
    note("show", [...this.chosen].join(","));
    this.update();
  }

  // Fetches the results that are shown and have been written since.
  async update() {
    const rows = this.found.simulations.filter((row) => this.chosen.has(row.name) && !row.problem);
    for (const part of [...this.results.children]) if (!rows.some((row) => row.name === part.dataset.name)) part.remove();
    for (const row of rows) await this.one(row);
  }

  async one(row) {
    const known = [...this.results.children].find((part) => part.dataset.name === row.name);
    if (known && this.versions.get(row.name) === row.changed) return;
    const result = await get("simulation", { name: row.name }, this.context.control.signal);
    if (!this.context.isShown) return;
    this.versions.set(row.name, row.changed);
    const made = resultOf(row, result);
    if (known) known.replaceWith(made.place);
    else this.results.append(made.place);
    made.start();
  }

  resize() {
    for (const part of this.results.children) part.dispatchEvent(new Event("redraw"));
  }

  stop() {
    clearTimeout(this.timer);
    this.context.stop();
  }
}

function resultOf(row, result) {
  const charts = { gantt: gantt(), heat: heat(result.resource), shares: shares(result.resource), waits: waits() };
  const place = el("section", { class: "result", "data-name": row.name }, el("h2", {}, row.title, row.over ? "" : el("span", { class: "badge" }, "runs")), el("p", { class: "headline" }, result.headline),
    el("h3", {}, "Gangs over time"), charts.gantt, el("h3", {}, "Nodes over time"), charts.heat, el("h3", {}, "Queues: held and deserved"), charts.shares, el("h3", {}, "Waits"), charts.waits);
  const start = () => {
    const gangs = unpackGangs(result);
    const draws = [startGantt(charts.gantt, result, gangs), startHeat(charts.heat, result), startShares(charts.shares, result), startWaits(charts.waits, result, gangs)];
    const draw = () => draws.forEach((each) => each());
    place.addEventListener("redraw", draw);
    draw();
  };
  return { place, start };
}

function chart(name, ...parts) {
  return el("div", { "data-chart": name, class: name }, parts);
}

function gantt() {
  const control = (name, text, label) => el("button", { type: "button", "data-control": name, "aria-label": label }, text);
  return chart("gantt",
    el("div", { class: "controls" },
      el("label", {}, "Find ", el("input", { type: "search", "data-control": "filter", placeholder: "gang or queue" })),
      el("label", {}, "Rows ", el("select", { "data-control": "rows" }, [["fit", "all in view"], ["thin", "thin"], ["tall", "tall, with names"]].map(([value, text]) => el("option", { value }, text)))),
      el("span", { class: "buttons", role: "group", "aria-label": "Time shown" }, control("earlier", "←", "Earlier"), control("closer", "+", "Zoom in"), control("further", "−", "Zoom out"), control("later", "→", "Later"), control("whole", "All", "All of the time")),
      el("output", { "data-part": "count" })),
    el("ul", { class: "legend" }, [["wait", "waits"], ["run", "runs"], ["mark", "loses pods"], ["stuck", "in a deadlock"]].map(([kind, text]) => el("li", {}, el("i", { class: `key ${kind}` }), text))),
    el("div", { class: "viewport", "data-part": "viewport" }, el("canvas", { tabindex: "0", role: "img", "aria-label": "When gangs waited and ran. Arrow keys go from gang to gang and through time. The table below holds the same." }), el("div", { "data-part": "height" })),
    el("details", { "data-part": "table" }, el("summary", {}, "Gangs as a table"), el("div", { "data-part": "rows" })));
}

function heat(resource) {
  return chart("heat", el("p", { class: "legend scale" }, el("span", {}, "0 %"), el("i", { class: "ramp" }), el("span", {}, `100 % of ${resource} held`), el("span", { class: "absent" }, el("i", { class: "key none" }), "node not there")),
    el("canvas", { role: "img", "aria-label": "How much of each node was held over time." }));
}

function shares(resource) {
  return chart("shares", el("ul", { class: "legend" }, el("li", {}, el("i", { class: "key held" }), `${resource} held`), el("li", {}, el("i", { class: "key deserved" }), "deserved")),
    el("div", { class: "multiples", "data-part": "multiples" }), el("p", { class: "note", "data-part": "note" }));
}

function waits() {
  return chart("waits", el("div", { class: "controls" }, el("label", {}, "By ", el("select", { "data-control": "by" }, [["queue", "queue"], ["size", "tasks of a gang"]].map(([value, text]) => el("option", { value }, text))))),
    el("canvas", { role: "img", "aria-label": "What part of the gangs had started after which wait." }), el("ul", { class: "legend lines", "data-part": "legend" }), el("p", { class: "note", "data-part": "note" }));
}
