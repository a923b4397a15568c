// The queues as a tree of bars, who lends to whom, and the line of gangs in each queue with the rule that makes it.

import { bar } from "../bars.js";
import { el, empty, link, lookedAt, replace, section, table } from "../dom.js";
import { amount, moment, momentOf } from "../format.js";
import { addressTo, note } from "../router.js";
import { countWords, numberWords } from "../../charts/words.js";

const WORDS = { deserved: "deserved", fairShare: "fair share now", allocated: "allocated", borrowed: "borrowed", reclaimable: "reclaimable", limit: "limit" };

const DESERVES = "A queue deserves what its object says, or else its part by weight, whatever is asked for. Its fair share is what sessions give it now: more where other queues ask for less. The reasons why gangs wait go by this share, and most of them call it deserved.";

export function queuesView(context) {
  const view = { context, resource: context.params.get("resource") ?? "", queue: context.params.get("queue") ?? "" };
  view.controls = el("div");
  view.tree = el("div", {}, lookedAt());
  view.line = el("div", { "aria-live": "polite" });
  context.place.append(el("h1", {}, "Queues"), view.controls, view.tree, view.line);
  const refresh = async () => {
    await context.fill(view.tree, () => context.get("queues"), (found) => page(view, found));
    if (view.queue) await showLine(view, view.queue);
  };
  refresh();
  return { refresh, stop: () => context.stop() };
}

function page(view, found) {
  if (found.hidden) return empty("You may not list queues.");
  if (!found.queues.length) return empty("There is no queue.");
  if (!found.resources.includes(view.resource)) view.resource = found.resources.includes(found.resource) ? found.resource : found.resources[0] ?? "";
  view.found = found;
  showChooser(view);
  return [legend(), tree(view), el("p", { class: "note" }, `Amounts are of ${view.resource}; waiting counts gangs. ${DESERVES}`), lending(found)];
}

// Made anew only when other resources are offered: a list that is open stays open.
function showChooser(view) {
  const offered = JSON.stringify(view.found.resources);
  if (view.offered !== offered) replace(view.controls, chooser(view));
  view.offered = offered;
}

function chooser(view) {
  const choose = (event) => {
    view.resource = event.target.value;
    note("resource", view.resource);
    replace(view.tree, page(view, view.found));
  };
  const options = view.found.resources.map((name) => el("option", { value: name, selected: name === view.resource }, name));
  return el("p", { class: "controls" }, el("label", {}, "Resource ", el("select", { onchange: choose, "data-key": "resource" }, options)));
}

function legend() {
  const key = (kind, text) => el("li", {}, el("i", { class: `key ${kind}` }), text);
  return el("ul", { class: "legend" }, key("useful", "allocated"), key("borrowed", "borrowed: more than it deserves"), key("waiting", "asked for by gangs that wait"), key("deserved", "deserves"), key("share", "fair share now"), key("limit", "limit"));
}

function tree(view) {
  const { found, resource } = view;
  const rows = found.queues.map((queue) => ({ queue, own: queue.figures[resource] ?? {} }));
  const whole = Math.max(1e-9, ...rows.map(({ queue, own }) => Math.max(own.deserved ?? 0, own.fairShare ?? 0, (own.allocated ?? 0) + (resource === found.resource ? queue.asked : 0))));
  return table("Queues", ["Queue", "Use", "#Deserves", "#Fair share", "#Allocated", "#Borrowed", "#Reclaimable", "#Waiting", "#Asked"], rows.map((row) => rowOf(view, row, whole)), { class: "queues" });
}

function rowOf(view, { queue, own }, whole) {
  const isCounted = view.resource === view.found.resource;
  const name = el("span", { class: `depth-${Math.min(queue.depth, 6)}` },
    el("button", { type: "button", class: "plain-link", "data-key": `queue ${queue.name}`, onclick: () => showLine(view, queue.name) }, queue.name),
    queue.state === "Open" ? null : el("span", { class: "badge" }, queue.state));
  const cells = ["deserved", "fairShare", "allocated", "borrowed", "reclaimable"].map((word) => amount(own[word], view.resource));
  return [name, barOf(view, queue, own, whole), ...cells, numberWords(queue.waiting), isCounted ? amount(queue.asked, view.resource) : "–"];
}

function barOf(view, queue, own, whole) {
  const borrowed = own.borrowed ?? 0;
  const label = [`${queue.name}:`, ...Object.entries(WORDS).filter(([word]) => own[word] !== undefined).map(([word, text]) => `${amount(own[word], view.resource)} ${text}`)].join(" ");
  const asked = view.resource === view.found.resource ? queue.asked : 0;
  return bar(label, [{ value: (own.allocated ?? 0) - borrowed, kind: "useful" }, { value: borrowed, kind: "borrowed" }, { value: asked, kind: "waiting" }], whole,
    [{ value: own.deserved, kind: "deserved" }, { value: own.fairShare, kind: "share" }, { value: own.limit, kind: "limit" }]);
}

function lending(found) {
  if (!found.lending.length) return section("Who lends to whom", empty("No queue has more than it deserves while another one has less."));
  return section("Who lends to whom", el("ul", { class: "plain" }, found.lending.map((loan) => el("li", {}, loan.text))));
}

// --- the line of a queue -------------------------------------------------------------------------------------------------

async function showLine(view, name) {
  const isOther = view.queue !== name;
  view.queue = name;
  note("queue", name);
  if (isOther || !view.line.hasChildNodes()) replace(view.line, section(`The line of ${name}`, el("p", { class: "busy" }, "A session is held to find the order…")));
  await view.context.fill(view.line, () => view.context.get("pending"), (found) => line(name, found.gangs.filter((gang) => gang.queue === name)));
}

function line(name, gangs) {
  const title = `The line of ${name}`;
  if (!gangs.length) return section(title, empty("No gang of this queue waits."));
  const rows = gangs.map((gang) => [
    gang.position === null ? "–" : String(gang.position), link(addressTo("gang", gang.gang), gang.gang, { "data-key": `line ${gang.gang}` }), gang.status,
    gang.created ? moment(momentOf(gang.created), "since") : "–", gang.behind ? `behind ${gang.behind}: ${gang.rule}` : gang.position === 1 ? "first in line" : "", gang.why,
  ]);
  return section(title, el("p", { class: "note" }, `${countWords(gangs.length, "gang")} in the order in which a session takes them.`),
    table(title, ["#Place", "Gang", "Status", "Waits for", "Behind whom, by which rule", "Why it waits"], rows));
}
