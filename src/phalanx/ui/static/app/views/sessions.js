// The last sessions, and one of them step by step: what was tried, voted, scored, committed and discarded.

import { button, el, empty, figures, link, lookedAt, replace, section, table } from "../dom.js";
import { amount, moment } from "../format.js";
import { addressTo, note } from "../router.js";
import { matcher, rowsOf, VirtualTable } from "../table.js";
import { countWords, numberWords } from "../../charts/words.js";

const SHARED = ["event", "action", "queue", "gang", "shard"];
const LEVELS = [["3", "what happened"], ["4", "also orders, votes and trials"], ["5", "also each node, filter and score"]];

export function sessionsView(context) {
  const refresh = () => context.fill(context.place, () => context.get("sessions"), list);
  context.place.append(lookedAt());
  refresh();
  return { refresh, stop: () => context.stop() };
}

function list(found) {
  const title = el("h1", {}, "Sessions");
  if (!found.sessions.length) return [title, empty("No session was held yet.")];
  const rows = found.sessions.map((session) => [
    link(addressTo("session", session.key), `Session ${session.key}`, { "data-key": `session ${session.key}` }), moment(session.now), some(session.placed), some(session.pipelined), some(session.evicted),
    session.sample.length ? el("ul", { class: "plain" }, session.sample.map((text) => el("li", {}, text))) : el("span", { class: "soft" }, session.placed + session.pipelined + session.evicted ? "" : "nothing"),
  ]);
  return [title, el("p", {}, "The last sessions, the latest first. Open one to go through it step by step."), table("Sessions", ["Session", "When", "#Placed", "#Pipelined", "#Evicted", "What it decided"], rows)];
}

// Most sessions decide nothing: those that did are to be seen among them.
function some(count) {
  return count ? numberWords(count) : el("span", { class: "soft" }, "–");
}

export function sessionView(context) {
  const view = new SessionView(context);
  view.load();
  return view;
}

class SessionView {
  constructor(context) {
    this.context = context;
    this.session = context.name;
    this.gang = context.params.get("gang") ?? "";
    this.level = context.params.get("level") ?? "3";
    this.at = Number(context.params.get("step") ?? 0);
    this.head = el("div");
    this.step = el("section", { class: "panel", "aria-live": "polite", "aria-label": "The chosen step" });
    this.list = new VirtualTable("Steps", columns(), { keyOf: (row) => String(row.number), open: (row) => this.show(row.number), height: 50 });
    this.filter = el("input", { type: "search", "data-filter": true, "data-key": "filter", placeholder: "word of a step", oninput: () => this.refilter() });
    this.gangField = el("input", { type: "text", value: this.gang, placeholder: "namespace/name", "data-key": "gang", onchange: (event) => this.change("gang", event.target.value.trim()) });
    this.levels = el("select", { "data-key": "level", onchange: (event) => this.change("level", event.target.value) }, LEVELS.map(([value, text]) => el("option", { value, selected: value === this.level }, `${value}: ${text}`)));
    this.count = el("output");
    context.place.append(el("p", { class: "crumbs" }, link(addressTo("sessions"), "Sessions")), this.head,
      el("p", { class: "controls" }, el("label", {}, "Steps ", this.levels), el("label", {}, "of gang ", this.gangField), el("label", {}, "Find ", this.filter), this.count),
      el("div", { class: "steps" }, this.list.place, this.step));
  }

  async load() {
    try {
      if (this.session === "latest") this.session = (await this.context.get("sessions")).sessions[0]?.key ?? "";
      replace(this.head, el("h1", {}, "Session"), el("p", { class: "busy" }, "The session is decided again, with everything written down…"));
      const found = await this.context.get("steps", { session: this.session, gang: this.gang, level: this.level });
      if (!this.context.isShown) return;
      this.found = found;
      this.rows = rowsOf(found, SHARED).map((row) => ({ ...row, words: `${row.event} ${row.text} ${row.action} ${row.gang} ${row.queue}`.toLowerCase() }));
      this.showHead(found);
      this.refilter();
      const first = this.rows.find((row) => row.number >= this.at) ?? this.rows[0];
      if (first) await this.show(first.number);
      else replace(this.step, empty("No step is of this gang at this level."));
    } catch (problem) {
      this.context.fail(problem, this.head);
    }
  }

  showHead(found) {
    const { placed, pipelined, evicted } = found.decided;
    replace(this.head, el("h1", {}, capital(found.title), this.gang ? `: ${this.gang}` : ""),
      figures([["Placed", countWords(placed, "pod")], ["Pipelined", countWords(pipelined, "pod")], ["Evicted", countWords(evicted, "pod")], ["Steps", numberWords(found.shown), ` of ${numberWords(found.count)}`]]),
      found.left ? el("p", { class: "note" }, `The first ${numberWords(this.rows.length)} steps are listed; name a gang, or choose a lower level.`) : null);
  }

  refilter() {
    const matches = matcher(this.filter.value);
    const shown = this.rows.filter((row) => matches(row.words));
    this.count.textContent = countWords(shown.length, "step");
    this.list.show(shown);
  }

  change(name, value) {
    this[name] = value;
    note(name, value);
    this.load();
  }

  async show(number) {
    this.at = number;
    note("step", String(number));
    const place = this.list.rows.findIndex((row) => row.number === number);
    if (place >= 0) this.list.choose(place);
    await this.context.fill(this.step, () => this.context.get("step", { session: this.session, gang: this.gang, step: number }), (found) => this.details(found));
  }

  details(found) {
    const place = this.list.rows.findIndex((row) => row.number === found.step);
    const go = (by) => () => { const row = this.list.rows[place + by]; if (row) this.show(row.number); };
    const to = (text, by, key) => button(text, go(by), { "data-key": text, disabled: !this.list.rows[place + by], "aria-keyshortcuts": key });
    return [
      el("h2", {}, `Step ${found.step} of ${found.of}`),
      el("p", { class: "controls" }, to("Back", -1, "ArrowLeft"), to("Next", 1, "ArrowRight")),
      el("p", { class: "headline", "data-part": "step" }, found.trace.text),
      el("ul", { class: "plain" }, found.lines.slice(1).map((line) => el("li", {}, line.trim()))),
      room(found.room), votes(found.votes), scores(found.scores),
    ];
  }

  key(key) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    const row = this.list.rows[this.list.rows.findIndex((each) => each.number === this.at) + (by ?? 0)];
    if (!by || !row) return false;
    this.show(row.number);
    return true;
  }

  resize() {
    this.list.draw(true);
  }

  stop() {
    this.context.stop();
  }
}

function capital(words) {
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
}

function columns() {
  return [
    { title: "Step", number: true, cell: (row) => String(row.number) },
    { title: "Action", cell: (row) => row.action },
    { title: "Event", cell: (row) => el("span", { class: `event ${row.event.replaceAll(" ", "-")}` }, row.event) },
    { title: "What", cell: (row) => row.text },
    { title: "Undecided", number: true, cell: (row) => (row.open ? String(row.open) : "") },
  ];
}

function room(found) {
  if (!found) return null;
  const { node, ...books } = found;
  const names = [...new Set(Object.values(books).flatMap((each) => [...Object.keys(each.before ?? {}), ...Object.keys(each.after ?? {})]))];
  if (!names.length) return null;
  const rows = Object.entries(books).flatMap(([book, { before, after }]) => names.filter((name) => (before?.[name] ?? 0) !== (after?.[name] ?? 0)).map((name) => [book, name, text(before?.[name]), text(after?.[name])]));
  return section(`Room on ${node}`, rows.length ? table(`Room on ${node}`, ["Book", "Resource", "#Before", "#After"], rows) : empty("Nothing changes on this node."));
}

function text(value) {
  return typeof value === "number" ? amount(value) : String(value ?? "–");
}

function votes(found) {
  return found.length ? section("Votes", table("Votes", ["Plugin", "Says"], found.map((vote) => [vote.plugin, vote.vote]))) : null;
}

function scores(found) {
  if (!found) return null;
  if (!found.rows.length) return section("Scores", empty("No node has a score."));
  const heads = ["Node", "#Total", ...found.plugins.map((name) => `#${name}`)];
  return section("Scores", table("Scores of nodes", heads, found.rows.map(([node, ...numbers]) => [node, ...numbers.map((number) => (number === null ? "–" : amount(number)))])));
}
