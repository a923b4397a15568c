// Nodes as a map by domain, coloured by use or by queue; a search for room; one node with its gangs.

import { el, empty, figures, link, lookedAt, replace, say, table, visible } from "../dom.js";
import { amount, withUnit } from "../format.js";
import { drawMap, layOut, neighbour, nodeAt, queueColour, STATES } from "../node_map.js";
import { addressTo, note } from "../router.js";
import { showTip, tipFollows } from "../../charts/canvas.js";
import { countWords, numberWords } from "../../charts/words.js";

const TALLEST = 620;
const NO_LEVEL = "none";
const MOST_LEGEND = 8;
const MOST_DOMAINS = 3;
const NOTHING = { names: [], offered: [], used: [], unit: "", name: "" };

export function nodesView(context) {
  const view = new NodesView(context);
  view.refresh();
  return view;
}

class NodesView {
  constructor(context) {
    this.context = context;
    this.by = context.params.get("by") ?? "use";
    this.levelKey = context.params.get("level");
    this.resourceName = context.params.get("resource") ?? "";
    this.wanted = context.params.get("node") ?? "";
    this.chosen = -1;
    this.controls = el("div", {}, lookedAt());
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "Map of nodes" });
    this.legend = el("ul", { class: "legend" });
    this.node = el("section", { class: "panel", "aria-live": "polite", "aria-label": "The chosen node" }, empty("Choose a node on the map: with a click, or with the arrow keys and Enter."));
    this.room = new RoomSearch(this);
    this.domains = el("div");
    context.place.append(el("h1", {}, "Nodes"), this.controls, this.room.place, this.legend, el("div", { class: "map" }, this.canvas), this.node, this.domains);
    this.listen();
  }

  listen() {
    tipFollows(this.canvas, (x, y) => (this.places ? this.tip(nodeAt(this.places, x, y)) : ""));
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect();
      this.choose(nodeAt(this.places, event.clientX - box.left, event.clientY - box.top), true);
    });
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => showTip("", 0, 0));
  }

  async refresh() {
    try {
      const found = await this.context.get("nodes");
      if (!this.context.isShown) return;
      this.show(found);
    } catch (problem) {
      this.context.fail(problem);
    }
  }

  show(found) {
    if (found.hidden || !found.names.length) {
      replace(this.context.place, el("h1", {}, "Nodes"), empty(found.hidden ? "You may not list nodes." : "There is no node."));
      return;
    }
    this.found = found;
    this.resource = found.resources.find((resource) => resource.name === this.resourceName) ?? found.resources[0] ?? NOTHING;
    const narrowest = found.levels.at(-1);
    this.level = this.levelKey === NO_LEVEL ? null : found.levels.find((level) => level.key === this.levelKey) ?? narrowest ?? null;
    this.outer = this.level ? found.levels[found.levels.indexOf(this.level) - 1] ?? null : null;
    this.showControls();
    this.room.offer(found);
    this.draw();
    this.showLegend();
    this.showDomains();
    if (this.wanted) this.find(this.wanted, true);
  }

  // --- the map -----------------------------------------------------------------------------------------------------------

  draw() {
    if (!this.found || !this.canvas.clientWidth) return;
    this.places = layOut(this.found.names.length, this.level, this.outer, this.canvas.clientWidth, TALLEST);
    this.redraw();
  }

  redraw() {
    drawMap(this.canvas, this.places, this.found, this);
  }

  resize() {
    this.draw();
    if (this.places) this.showLegend(); // in other colours, where it was light and is dark now
  }

  showControls() {
    const { found } = this;
    const offered = JSON.stringify([found.levels.map((level) => level.key), found.resources.map((resource) => resource.name)]);
    if (offered === this.offered) return;
    this.offered = offered; // while the same is offered, nobody loses a list that is open or a word half typed
    const select = (name, title, options, chosen, act) => el("label", {}, `${title} `, el("select", { "data-key": name, onchange: (event) => act(event.target.value) }, options.map(([value, text]) => el("option", { value, selected: value === chosen }, text))));
    const change = (name, key) => (value) => { this[key] = value; note(name, value); this.show(this.found); };
    replace(this.controls, el("p", { class: "controls" },
      select("level", "By", [[NO_LEVEL, "no domain"], ...found.levels.map((level) => [level.key, level.title])], this.level?.key ?? NO_LEVEL, change("level", "levelKey")),
      select("by", "Coloured by", [["use", "use"], ["queue", "queue"]], this.by, change("by", "by")),
      select("resource", "Resource", found.resources.map((resource) => [resource.name, resource.name]), this.resource.name, change("resource", "resourceName")),
      el("label", {}, "Find ", el("input", { type: "search", "data-filter": true, "data-key": "find", placeholder: "name of a node", value: this.wanted, oninput: (event) => this.find(event.target.value, false), onchange: (event) => this.find(event.target.value, true) }))));
  }

  find(text, isSure) {
    this.wanted = text;
    const word = text.toLowerCase();
    const names = this.found.names;
    const place = word ? [names.indexOf(text), names.findIndex((name) => name.toLowerCase().startsWith(word)), names.findIndex((name) => name.toLowerCase().includes(word))].find((found) => found >= 0) ?? -1 : -1;
    if (place !== this.chosen) this.choose(place, isSure && place >= 0);
    else if (isSure && place >= 0) this.open(place);
  }

  choose(node, isOpened) {
    this.chosen = node;
    this.redraw();
    if (node >= 0) say(this.tip(node));
    if (node >= 0 && isOpened) this.open(node);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "j", "k"].includes(event.key)) this.walk(event.key);
    else if (event.key === "Enter" && this.chosen >= 0) this.open(this.chosen);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  walk(key) {
    this.choose(neighbour(this.places, this.chosen, key), false);
    const box = this.canvas.getBoundingClientRect();
    showTip(this.tip(this.chosen), box.left + this.places.x[this.chosen], box.top + this.places.y[this.chosen]);
  }

  tip(node) {
    if (node < 0) return "";
    const { found, resource } = this;
    const domains = found.levels.map((level) => (level.of[node] < 0 ? "" : `${level.title}: ${level.names[level.of[node]]}`)).filter(Boolean);
    const queue = found.queues[found.queue[node]];
    return [found.names[node], `${amount(resource.used[node], resource.name)} of ${withUnit(resource.offered[node], resource.name, resource.unit)} used`, countWords(found.pods[node], "pod"),
      queue ? `mostly queue ${queue}` : "", STATES[found.state[node]] === "ready" ? "" : STATES[found.state[node]], ...domains].filter(Boolean).map(visible).join("\n");
  }

  // --- words -------------------------------------------------------------------------------------------------------------

  showLegend() {
    const { found, resource } = this;
    const sum = summed(found, resource, found.names.map((_, node) => node));
    const text = `${numberWords(found.names.length)} nodes by ${this.level?.title ?? "name"}: ${numberWords(sum.free)} free, ${numberWords(sum.partly)} partly used, ${numberWords(sum.full)} full`;
    this.canvas.setAttribute("aria-label", `Map of ${text}. Arrow keys go from node to node, Enter opens one. The table below says the same by domain.`);
    const key = (kind, words) => el("li", {}, el("i", { class: `key ${kind}` }), words);
    const queues = this.by !== "queue" ? [] : found.queues.slice(0, MOST_LEGEND).map((name, place) => {
      const sample = el("i", { class: "key" });
      sample.style.background = queueColour(place);
      return el("li", {}, sample, name);
    });
    const more = found.queues.length - MOST_LEGEND;
    this.legend.classList.toggle("by-queue", this.by === "queue");
    replace(this.legend, key("node-free", `free: ${countWords(sum.free, "node")}`), key("node-partly", `partly used: ${countWords(sum.partly, "node")} with ${withUnit(sum.scattered, resource.name, resource.unit)} free, scattered`), key("node-full", `full: ${countWords(sum.full, "node")}`),
      sum.cordoned ? key("node-cordoned", `cordoned: ${numberWords(sum.cordoned)}`) : null, sum.unready ? key("node-unready", `not ready: ${numberWords(sum.unready)}`) : null, queues, this.by === "queue" && more > 0 ? el("li", {}, `and ${more} more queues in the same colours`) : null);
  }

  showDomains() {
    const { found, resource } = this;
    if (!this.level) return replace(this.domains);
    const rows = this.places.blocks.map((block) => {
      const sum = summed(found, resource, block.nodes);
      return [block.outer ? `${block.outer} / ${block.name}` : block.name, numberWords(block.nodes.length), numberWords(sum.free), numberWords(sum.partly), numberWords(sum.full), numberWords(sum.cordoned + sum.unready), amount(sum.room, resource.name), amount(sum.scattered, resource.name)];
    });
    return replace(this.domains, el("details", { "data-key": "domains" }, el("summary", {}, `The same as a table, by ${this.level.title}`), table(`Nodes by ${this.level.title}`, ["Domain", "#Nodes", "#Free", "#Partly used", "#Full", "#Take no pods", `#${resource.unit} free`, "#Of which scattered"], rows)));
  }

  open(node) {
    const name = this.found.names[node];
    this.wanted = name;
    note("node", name);
    return this.context.fill(this.node, () => this.context.get("node", { node: name }), one);
  }

  stop() {
    this.context.stop();
  }
}

function summed(found, resource, nodes) {
  const sum = { free: 0, partly: 0, full: 0, room: 0, scattered: 0, cordoned: 0, unready: 0 };
  for (const node of nodes) {
    const [offered, used] = [resource.offered[node], resource.used[node]];
    const left = Math.max(offered - used, 0);
    if (found.state[node] === 1) sum.cordoned += 1;
    if (found.state[node] === 2) sum.unready += 1;
    if (found.state[node]) continue; // what is left there is no room: it takes no pods
    sum.room += left;
    if (used <= 0) sum.free += 1;
    else if (left > 0) { sum.partly += 1; sum.scattered += left; } else sum.full += 1;
  }
  return sum;
}

function one(node) {
  const room = node.resources.map((resource) => [resource.name, `${amount(Math.max(resource.offered - resource.used, 0), resource.name)} free`, ` of ${amount(resource.offered, resource.name)}${resource.leaving ? `, ${amount(resource.leaving, resource.name)} soon` : ""}`]);
  const gangs = node.gangs.map((gang) => [link(addressTo("gang", gang.gang), gang.gang), gang.queue, gang.status, String(gang.pods), withUnit(gang.held, "", gang.unit)]);
  return [
    el("h2", {}, node.name), STATES[node.state] === "ready" ? null : el("p", { class: "badge" }, STATES[node.state]),
    figures([...room, ...node.domains.map((domain) => [domain.level.split("/").at(-1), domain.name])]),
    gangs.length ? table(`Gangs on ${node.name}`, ["Gang", "Queue", "Status", "#Pods here", "#Holds here"], gangs) : empty("No gang has a pod here."),
    node.otherPods ? el("p", { class: "note" }, `and ${countWords(node.otherPods, "other pod")}`) : null,
    node.taints.length ? el("p", { class: "note" }, `Taints: ${node.taints.join(", ")}`) : null,
    el("p", { class: "controls" }, link(addressTo("what-if", "", { changes: JSON.stringify([`node/${node.name}=drained`]) }), "What if it is drained")),
    el("details", { "data-key": "labels" }, el("summary", {}, countWords(Object.keys(node.labels).length, "label")), el("ul", { class: "plain" }, Object.entries(node.labels).map(([key, value]) => el("li", {}, el("code", {}, `${key}=${value}`))))),
  ];
}

// Looks for so many nodes with so much free in one domain, and marks those that are found.
class RoomSearch {
  constructor(view) {
    this.view = view;
    this.place = el("details", { class: "panel", "data-key": "room", open: true }, el("summary", {}, "Find room"));
    this.form = el("p", { class: "controls" });
    this.answer = el("div", { "aria-live": "polite" });
    this.place.append(this.form, this.answer);
  }

  offer(found) {
    if (this.form.hasChildNodes()) return;
    const input = (name, title, value) => el("label", {}, `${title} `, el("input", { name, value, type: "text", inputmode: "numeric", size: "5", "data-key": `room ${name}`, onkeydown: (event) => { if (event.key === "Enter") this.ask(); } }));
    const narrowest = found.levels.at(-1)?.key ?? "cluster";
    const most = found.resources[0] ? Math.max(...found.resources[0].offered) : 1;
    this.form.append(input("nodes", "For", "8"), "nodes with", input("amount", "at least", String(most)),
      el("label", {}, el("span", { class: "unseen" }, "of the resource "), el("select", { name: "resource", "data-key": "room resource" }, found.resources.map((resource) => el("option", { value: resource.name }, resource.name)))), "free",
      el("label", {}, "in one ", el("select", { name: "level", "data-key": "room level" }, [["cluster", "cluster"], ...found.levels.map((level) => [level.key, level.title])].map(([value, text]) => el("option", { value, selected: value === narrowest }, text)))),
      el("button", { type: "button", "data-key": "room ask", onclick: () => this.ask() }, "Find"));
  }

  async ask() {
    const given = Object.fromEntries([...this.form.querySelectorAll("[name]")].map((field) => [field.name, field.value.trim()]));
    await this.view.context.fill(this.answer, () => this.view.context.get("rooms", given), (found) => this.found(found));
  }

  found(found) {
    this.mark(found.nodes, found.domains[0]?.name);
    const numbers = new Map(this.view.found.names.map((name, node) => [name, node]));
    const rows = found.enough ? found.domains.slice(0, MOST_DOMAINS).map((domain) => [
      el("button", { type: "button", class: "plain-link", onclick: () => this.mark(domain.names.map((name) => numbers.get(name)), domain.name) }, domain.name), String(domain.nodes), domain.names.join(", "),
    ]) : [];
    return [el("p", { class: "headline", "data-part": "room" }, found.text), rows.length ? table("Domains with room", ["Domain", "#Nodes with room", "For example"], rows) : null, found.enough > rows.length ? el("p", { class: "note" }, `and ${found.enough - rows.length} more`) : null];
  }

  mark(nodes, block) {
    this.view.marked = { nodes: nodes.filter((node) => node >= 0), blocks: new Set([block]) };
    this.view.redraw();
    const first = this.view.marked.nodes[0];
    if (first === undefined) return;
    const top = this.view.canvas.getBoundingClientRect().top + this.view.places.y[first];
    if (top < 0 || top > window.innerHeight) window.scrollBy({ top: top - window.innerHeight / 2 });
  }
}
