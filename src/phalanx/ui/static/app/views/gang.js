// One gang: why it waits and what would start it, when it starts, its pods, its life, where it is, and events.

import { bar } from "../bars.js";
import { el, empty, figures, link, lookedAt, replace, section, table } from "../dom.js";
import { explanation, remedies } from "../explanation.js";
import { amount, moment, momentOf, relative, withUnit } from "../format.js";
import { life } from "../life.js";
import { addressTo } from "../router.js";
import { rowsOf, VirtualTable } from "../table.js";
import { countWords, durationWords } from "../../charts/words.js";

const SHARED = ["status", "node", "role", "asks"];
const LONG = 30;

export function gangView(context) {
  const view = new GangView(context);
  view.refresh();
  return view;
}

class GangView {
  constructor(context) {
    this.context = context;
    this.key = context.name;
    this.parts = Object.fromEntries(["head", "why", "remedies", "eta", "life", "members", "places", "events"].map((name) => [name, el("div")]));
    this.parts.why.setAttribute("aria-live", "polite");
    this.parts.head.append(lookedAt());
    context.place.append(...Object.values(this.parts));
    this.members = new VirtualTable("Pods", podColumns(), { keyOf: (row) => row.pod, height: 45 });
  }

  async refresh() {
    const { context, parts, key } = this;
    try {
      this.gang = await context.get("gang", { gang: key });
    } catch (problem) {
      return context.fail(problem, parts.head);
    }
    if (!context.isShown) return undefined;
    replace(parts.head, head(this.gang));
    this.showMembers();
    replace(parts.places, places(this.gang));
    return Promise.all([this.explain(), this.showLife(), this.showEvents()]);
  }

  // The explanation takes a session or more: it is asked for once, and again only when the gang stands otherwise.
  async explain() {
    const stand = JSON.stringify([this.gang.status, this.gang.why, this.gang.placed, this.context.at]);
    if (stand === this.explained) return;
    this.explained = stand;
    const { parts, key, context } = this;
    if (!parts.why.hasChildNodes()) {
      parts.why.replaceChildren(section("Why", el("p", { class: "busy" }, this.gang.why || "A session is held to explain it…")));
      parts.remedies.replaceChildren(section("What would start it", el("p", { class: "busy" }, "Changes are tried…")));
    }
    await context.fill(parts.why, () => context.get("explain", { gang: key }), (found) => this.explainedAs(found));
  }

  explainedAs(found) {
    this.parts.remedies.replaceChildren(...(found.starts ? [] : [section("What would start it", remedies(found))]), ...this.etaPart(found));
    return [section("Why", el("p", { class: "headline" }, found.why || `It ${found.status.toLowerCase()}.`), explanation(found))];
  }

  etaPart(found) {
    if (found.status === "Completed" || found.status === "Runs" || !this.context.about.questions.includes("eta")) return [];
    const answer = el("div", { "aria-live": "polite" });
    const ask = () => {
      answer.replaceChildren(el("p", { class: "busy" }, "The cluster is simulated on, a few times…"));
      this.context.fill(answer, () => this.context.get("eta", { gang: this.key }), eta);
    };
    return [section("When does it start", el("p", { class: "controls" }, el("button", { type: "button", "data-key": "eta", onclick: ask }, "Estimate its start")), answer)];
  }

  async showLife() {
    const moments = [...this.gang.moments];
    if (this.context.about.hasRecording && this.context.at) {
      try {
        const told = await this.context.get("history", { gang: this.key });
        moments.push(...told.moments.filter((item) => !moments.some((known) => known.kind === item.kind && Math.abs(known.time - item.time) < 2)));
      } catch (problem) {
        if (problem.name === "AbortError") return;
      }
    }
    this.moments = moments.sort((one, other) => one.time - other.time);
    this.drawLife();
  }

  drawLife() {
    if (this.context.isShown && this.moments) replace(this.parts.life, section("Its life", life(this.moments, this.parts.life.clientWidth)));
  }

  showMembers() {
    const rows = rowsOf(this.gang.members, SHARED);
    if (!this.parts.members.hasChildNodes()) this.parts.members.append(section("Pods", this.members.place));
    this.members.place.classList.toggle("tall", rows.length > LONG);
    this.members.show(rows);
  }

  showEvents() {
    return this.context.fill(this.parts.events, () => this.context.get("gang-events", { gang: this.key }), events);
  }

  resize() {
    this.members.draw(true);
    this.drawLife();
  }

  stop() {
    this.context.stop();
  }
}

function head(gang) {
  const isWaiting = gang.status === "Waits" || gang.status === "Pipelined";
  const rows = [
    ["Status", el("span", { class: `status ${gang.status}` }, gang.status), gang.phase ? ` phase ${gang.phase}` : ""],
    ["Pods", `${gang.placed} of ${gang.pods} placed`, ` ${gang.minimum} needed, ${gang.running} running`],
    ["Queue", link(addressTo("queues", "", { queue: gang.queue }), gang.queue || "(none)")],
    ["Priority", String(gang.priority), gang.priorityClass ? ` ${gang.priorityClass}` : ""],
    ["Holds", withUnit(gang.held, "", gang.unit), gang.asked ? ` asks for ${amount(gang.asked)} more` : ""],
    [isWaiting ? "Waits since" : "Created", moment(gang.created)],
  ];
  if (gang.reserved) rows.push(["Start", gang.reserved]);
  return [
    el("p", { class: "crumbs" }, link(addressTo("gangs"), "Gangs"), ` / ${gang.namespace}`),
    el("h1", {}, gang.gang), figures(rows),
    el("p", { class: "controls" },
      link(addressTo("session", "latest", { gang: gang.gang }), "Step through the last session of it"),
      link(addressTo("what-if", "", { gang: gang.gang }), "Try a change"),
      gang.owners.length ? el("span", { class: "note" }, `owned by ${gang.owners.join(", ")}`) : null),
  ];
}

function podColumns() {
  return [
    { title: "Pod", cell: (row) => row.pod, key: (row) => row.pod },
    { title: "Status", cell: (row) => el("span", { class: `status ${row.status}` }, row.status), key: (row) => row.status },
    { title: "Node", cell: (row) => (row.node && !row.node.startsWith("(") ? link(addressTo("nodes", "", { node: row.node }), row.node) : row.node), key: (row) => row.node },
    { title: "Role", cell: (row) => row.role, key: (row) => row.role },
    { title: "Asks for", cell: (row) => row.asks, key: (row) => row.asks },
    { title: "Bound", cell: (row) => moment(row.scheduled), key: (row) => row.scheduled },
    { title: "Started", cell: (row) => moment(row.started), key: (row) => row.started },
  ];
}

function places(gang) {
  if (!gang.places.length) return section("Where it is", empty("None of its pods has a node."));
  const levels = gang.places.map((level) => el("div", {}, el("h3", {}, level.level), domains(level)));
  return section("Where it is", ...levels);
}

function domains(level) {
  const all = level.domains.reduce((sum, domain) => sum + domain.pods, level.outside);
  const shown = level.domains.slice(0, 12);
  const rows = shown.map((domain) => [domain.name, bar(`${countWords(domain.pods, "pod")} of ${all}`, [{ value: domain.pods, kind: "useful" }], all), String(domain.pods)]);
  const more = level.domains.length - shown.length;
  return [table(level.level, ["Domain", "Share of its pods", "#Pods"], rows), more > 0 ? el("p", { class: "note" }, `and ${more} more`) : null, level.outside ? el("p", { class: "note" }, `${countWords(level.outside, "pod")} in none`) : null];
}

function events({ events: found, hidden }) {
  if (hidden) return section("Events", empty("The events of this namespace may not be listed."));
  if (!found.length) return section("Events", empty("No events are known."));
  const rows = [...found].reverse().map((event) => [event.last ? moment(momentOf(event.last)) : "–", event.type, event.reason, event.about, event.count > 1 ? `${event.text} (${event.count} times)` : event.text, event.from]);
  return section("Events", table("Events", ["When", "Type", "Reason", "About", "Message", "From"], rows));
}

function eta(found) {
  const mine = found.gangs[0];
  if (!mine) return empty(found.text);
  const when = (text) => (text ? relative(momentOf(text)) : "–");
  return [
    figures([["Expected start", when(mine.startsAt), mine.startsAt ? ` ${mine.startsAt}` : ""], ["With nine of ten by", when(mine.startsBy), mine.startsBy ? ` ${mine.startsBy}` : ""], ["Started in", `${mine.startedIn} of ${found.seeds} simulations`, ` each up to ${durationWords(found.horizonSeconds)}`]]),
    el("p", {}, found.text), ...found.notes.map((text) => el("p", { class: "note" }, text)),
  ];
}
