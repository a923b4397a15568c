// What if: changes put together by choosing, tried on a copy of the cluster, and who would start and whom it costs.

import { post } from "../api.js";
import { button, el, empty, link, replace, section, table } from "../dom.js";
import { explanation, headline } from "../explanation.js";
import { addressTo, note } from "../router.js";
import { countWords } from "../../charts/words.js";

const NUMBERED = { type: "number", min: "1", max: "1000", value: "1" };
const GPU = "nvidia.com/gpu";

// Each kind of change: what is asked for, and how it is written.
const KINDS = [
  { name: "drain", title: "Drain a node", fields: [["node", "Node", { list: "nodes" }]], text: ({ node }) => `node/${node}=drained` },
  { name: "more", title: "Add nodes", fields: [["count", "How many", NUMBERED], ["node", "like node", { list: "nodes" }]], text: ({ count, node }) => `node/+${count}=${node}` },
  { name: "gone", title: "Lose a node", fields: [["node", "Node", { list: "nodes" }]], text: ({ node }) => `node/${node}=gone` },
  { name: "queue", title: "Change a queue", fields: [["queue", "Queue", { list: "queues" }], ["field", "Field", { options: ["capability", "deserved", "guarantee", "weight", "priority", "reclaimable", "state"] }], ["resource", "Resource", { list: "resources", value: GPU, optional: true }], ["value", "Value", { placeholder: "+4, 8, none" }]], text: queueChange },
  { name: "minimum", title: "Change the minimum of a gang", fields: [["gang", "Gang", { list: "gangs" }], ["value", "Minimum", { ...NUMBERED }]], text: ({ gang, value }) => `gang/${gang}.minMember=${value}` },
  { name: "priority", title: "Change the priority of a gang", fields: [["gang", "Gang", { list: "gangs" }], ["value", "Priority", { placeholder: "100, or a class" }]], text: ({ gang, value }) => `gang/${gang}.priority=${value}` },
  { name: "end", title: "End a gang", fields: [["gang", "Gang", { list: "gangs" }]], text: ({ gang }) => `gang/${gang}=gone` },
  { name: "other", title: "Another change", fields: [["text", "Change", { placeholder: "node/n1.taints.KEY=none" }]], text: ({ text }) => text },
];
const PLAIN = ["weight", "priority", "reclaimable", "state"];
const OFFERED = 30;

function queueChange({ queue, field, resource, value }) {
  return PLAIN.includes(field) ? `queue/${queue}.${field}=${value}` : `queue/${queue}.${field}.${resource}=${value}`;
}

export function whatIfView(context) {
  const view = new WhatIfView(context);
  view.load();
  return view;
}

class WhatIfView {
  constructor(context) {
    this.context = context;
    this.gang = context.params.get("gang") ?? "";
    this.changes = readChanges(context.params.get("changes"));
    this.kind = KINDS[0];
    this.names = { nodes: [], queues: [], gangs: [], resources: [GPU, "cpu", "memory"] };
    this.form = el("div", { class: "panel" });
    this.chosen = el("div");
    this.answer = el("div", { "aria-live": "polite" });
    context.place.append(el("h1", {}, "What if"),
      el("p", {}, "Changes are made to a copy of the cluster, a session decides on it, and they are taken back. Nothing in the cluster changes."),
      this.form, this.chosen, this.answer);
    this.showForm();
    this.showChosen();
    if (this.changes.length) this.ask();
  }

  async load() {
    const [nodes, queues, gangs] = await Promise.allSettled(["nodes", "queues", "gangs"].map((path) => this.context.get(path)));
    if (nodes.status === "fulfilled") this.names.nodes = nodes.value.names;
    if (queues.status === "fulfilled") this.names.queues = queues.value.queues.map((queue) => queue.name);
    if (gangs.status === "fulfilled") this.names.gangs = gangs.value.columns.gang;
  }

  // --- the form ----------------------------------------------------------------------------------------------------------

  showForm() {
    const choose = (event) => { this.kind = KINDS.find((kind) => kind.name === event.target.value); this.showForm(); };
    const select = el("select", { "data-key": "kind", "data-filter": true, onchange: choose }, KINDS.map((kind) => el("option", { value: kind.name, selected: kind === this.kind }, kind.title)));
    const fields = this.kind.fields.map(([name, title, how]) => this.field(name, title, how));
    replace(this.form, el("p", { class: "controls" }, el("label", {}, "Change ", select), fields, button("Add", () => this.add(), { "data-key": "add" })), el("p", { class: "failure", role: "alert", hidden: true }));
  }

  field(name, title, how) {
    const { list, options, optional, ...attributes } = how;
    if (options) return el("label", {}, `${title} `, el("select", { name, "data-key": `field ${name}` }, options.map((text) => el("option", {}, text))));
    const given = name === "gang" && this.gang ? { value: this.gang } : {};
    const input = el("input", { name, "data-key": `field ${name}`, type: "text", autocomplete: "off", spellcheck: "false", ...attributes, ...given, list: list ? `list-${name}` : null, required: !optional });
    input.addEventListener("keydown", (event) => { if (event.key === "Enter") this.add(); });
    if (!list) return el("label", {}, `${title} `, input);
    const offers = el("datalist", { id: `list-${name}` });
    const offer = () => offers.replaceChildren(...this.offered(list, input.value).map((value) => el("option", { value })));
    input.addEventListener("input", offer);
    input.addEventListener("focus", offer);
    return [el("label", {}, `${title} `, input), offers];
  }

  offered(list, typed) {
    const word = typed.toLowerCase();
    return this.names[list].filter((name) => name.toLowerCase().includes(word)).slice(0, OFFERED);
  }

  add() {
    const values = Object.fromEntries([...this.form.querySelectorAll("[name]")].map((field) => [field.name, field.value.trim()]));
    const missing = [...this.form.querySelectorAll("[required]")].find((field) => !field.value.trim());
    const failure = this.form.querySelector(".failure");
    failure.hidden = !missing;
    if (missing) {
      failure.textContent = `${missing.closest("label").firstChild.textContent.trim()}: write something`;
      missing.focus();
      return;
    }
    this.changed([...this.changes, this.kind.text(values)]);
  }

  changed(changes) {
    this.changes = changes;
    note("changes", changes.length ? JSON.stringify(changes) : "");
    this.showChosen();
    if (changes.length) this.ask();
    else this.answer.replaceChildren();
  }

  showChosen() {
    const items = this.changes.map((text, place) => el("li", {}, el("code", {}, text), " ", button("Remove", () => this.changed(this.changes.filter((_, other) => other !== place)), { "aria-label": `Remove ${text}`, "data-key": `remove ${text}` })));
    replace(this.chosen, this.changes.length ? section("Tried", el("ul", { class: "plain" }, items)) : empty("No change is chosen yet."));
  }

  // --- the answer --------------------------------------------------------------------------------------------------------

  async ask() {
    replace(this.answer, el("p", { class: "busy" }, "A session decides with and without them…"));
    const body = { changes: this.changes };
    await this.context.fill(this.answer, async () => {
      const whole = await post("what-if", body, { at: this.context.at }, this.context.control.signal);
      const own = this.gang ? await post("what-if", { ...body, gang: this.gang }, { at: this.context.at }, this.context.control.signal) : null;
      return { whole, own };
    }, ({ whole, own }) => [all(whole), own ? one(own) : null]);
  }

  stop() {
    this.context.stop();
  }
}

function readChanges(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((item) => typeof item === "string") : [];
  } catch {
    return [];
  }
}

function all(found) {
  const idle = found.idle.length ? el("p", { class: "note" }, `${found.idle.join(", ")} changes nothing: perhaps a name is misspelt`) : null;
  const summary = el("p", { class: "headline", "data-part": "summary" }, found.text);
  if (!found.gangs.length) return section("What would change", summary, idle);
  const rows = (good) => found.gangs.filter((gang) => gang.good === good).map((gang) => [link(addressTo("gang", gang.gang), gang.gang), gang.text.replace(`${gang.gang} would `, ""), String(gang.evictedPods || "–"), String(gang.movedPods || "–")]);
  const part = (title, good) => (rows(good).length ? el("div", {}, el("h3", {}, `${title} (${countWords(rows(good).length, "gang")})`), table(title, ["Gang", "Would", "#Pods evicted", "#Pods moved"], rows(good), { class: "cards" })) : null);
  return section("What would change", summary, idle, part("Goes on or starts", true), part("Pays for it", false));
}

function one(found) {
  return section(`And ${found.gang}`, el("p", { class: "headline" }, headline(found)), explanation(found));
}
