// The whole at a glance.

import { bar } from "../bars.js";
import { el, empty, figures, link, lookedAt, section, table, visible } from "../dom.js";
import { amount, moment, percent } from "../format.js";
import { addressTo } from "../router.js";
import { numberWords } from "../../charts/words.js";

const STARTED = ["Starts", "Grows", "Bound", "Runs"];

export function overviewView(context) {
  const refresh = () => context.fill(context.place, () => context.get("overview"), page);
  context.place.append(lookedAt());
  refresh();
  return { refresh, stop: () => context.stop() };
}

function page(found) {
  return [
    el("h1", {}, "Overview"),
    figures(numbers(found)),
    found.use ? use(found) : null,
    el("div", { class: "columns" }, reasons(found), waits(found)),
    changes(found),
    problems(found),
  ];
}

function count(found, ...words) {
  return words.reduce((sum, word) => sum + (found.gangs[word] ?? 0), 0);
}

function numbers(found) {
  const rows = [
    ["Gangs that run or start", numberWords(count(found, ...STARTED))],
    ["Gangs that wait", numberWords(count(found, "Waits", "Pipelined", "Evicted")), count(found, "Pipelined") ? ` ${count(found, "Pipelined")} pipelined` : ""],
    ["Pods that wait", numberWords(found.pods.waiting), ` of ${numberWords(found.pods.all)}`],
  ];
  if (found.nodes) {
    const { all, unready, cordoned } = found.nodes;
    rows.push(["Nodes", numberWords(all), [unready ? `${unready} not ready` : "", cordoned ? `${cordoned} cordoned` : ""].filter(Boolean).join(", ")]);
  }
  if (found.use) {
    rows.push([`${found.unit} allocated`, percent(found.use.allocated, found.use.offered), ` ${amount(found.use.allocated, found.resource)} of ${amount(found.use.offered, found.resource)}`]);
    rows.push([`${found.unit} asked for`, amount(found.use.asked, found.resource), " by pods that wait"]);
  }
  return rows;
}

function use({ use: found, unit, resource }) {
  const label = `${amount(found.useful, resource)} useful, ${amount(found.vain, resource)} held in vain, of ${amount(found.offered, resource)} ${unit}`;
  const free = Math.max(found.offered - found.allocated, 0);
  return el("section", {}, el("h2", {}, `${unit}: allocated and useful`),
    bar(label, [{ value: found.useful, kind: "useful" }, { value: found.vain, kind: "vain" }], found.offered),
    el("ul", { class: "legend" },
      el("li", {}, el("i", { class: "key useful" }), `useful: ${amount(found.useful, resource)}`),
      el("li", {}, el("i", { class: "key vain" }), `held in vain: ${amount(found.vain, resource)}`),
      el("li", {}, el("i", { class: "key ground" }), `free: ${amount(free, resource)}, of which ${amount(found.scattered, resource)} on partly used nodes`)),
    el("p", { class: "note" }, found.text));
}

function reasons(found) {
  if (!found.reasons.length) return section("Why gangs wait", empty("No gang waits."));
  const most = Math.max(...found.reasons.map((reason) => reason.gangs));
  const items = found.reasons.map((reason) => el("li", {},
    el("div", { class: "reason" }, link(addressTo("gangs", "", { filter: reason.code }), reason.code, { "data-key": `reason ${reason.code}` }), el("span", { class: "number" }, numberWords(reason.gangs))),
    bar(`${reason.gangs} gangs`, [{ value: reason.gangs, kind: "waiting" }], most),
    el("p", { class: "note" }, "For example ", link(addressTo("gang", reason.example), reason.example), `: ${visible(reason.why)}`)));
  return section("Why gangs wait", el("ul", { class: "reasons" }, items));
}

function waits(found) {
  if (!found.waits.length) return section("Longest waits", empty("Nobody waits, or nobody knows since when."));
  const rows = found.waits.map((wait) => [
    link(addressTo("gang", wait.gang), wait.gang, { "data-key": `wait ${wait.gang}` }), wait.queue, moment(wait.since, "since"), wait.reserved || wait.why || "a session now would start it",
  ]);
  return section("Longest waits", table("Longest waits", ["Gang", "Queue", "Waits for", "Why"], rows));
}

function changes(found) {
  if (!found.changes.length) return section("The last hour", empty("No gang came, started, ended or was evicted in the last hour."));
  const items = found.changes.map((change) => el("li", {}, moment(change.time), " ", link(addressTo("gang", change.gang), change.gang), ` ${change.text}`));
  return section("The last hour", el("ul", { class: "changes" }, items));
}

function problems(found) {
  if (!found.problems.length) return null;
  const more = found.moreProblems ? el("p", { class: "note" }, `and ${found.moreProblems} more`) : null;
  return section("What could not be read, or may surprise", el("ul", { class: "plain" }, found.problems.map((text) => el("li", {}, text))), more);
}
