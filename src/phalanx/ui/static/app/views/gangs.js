// All gangs in a table that filters as somebody types.

import { el, link, lookedAt } from "../dom.js";
import { moment, withUnit } from "../format.js";
import { addressTo, note } from "../router.js";
import { matcher, rowsOf, VirtualTable } from "../table.js";
import { countWords, numberWords } from "../../charts/words.js";

const SHARED = ["queue", "status", "code", "why", "reserved"];
const ORDER = ["Waits", "Pipelined", "Evicted", "Starts", "Grows", "Bound", "Runs", "Empty", "Completed"];

export function gangsView(context) {
  const view = new GangsView(context);
  view.refresh();
  return view;
}

class GangsView {
  constructor(context) {
    this.context = context;
    this.status = context.params.get("status") ?? "";
    this.filter = el("input", { type: "search", id: "gang-filter", "data-filter": true, placeholder: "name, queue, reason", value: context.params.get("filter") ?? "", oninput: () => this.refilter() });
    this.count = el("output", { for: "gang-filter" });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Status" }, lookedAt());
    this.list = new VirtualTable("Gangs", columns(() => this.unit), { keyOf: (row) => row.gang, open: (row) => { location.hash = addressTo("gang", row.gang); } });
    context.place.append(el("h1", {}, "Gangs"),
      el("p", { class: "controls" }, el("label", { for: "gang-filter" }, "Find "), this.filter, this.count), this.chips, this.list.place);
  }

  async refresh() {
    try {
      const found = await this.context.get("gangs");
      if (!this.context.isShown) return;
      this.unit = found.unit;
      this.rows = rowsOf(found, SHARED).map((row) => ({ ...row, text: `${row.gang} ${row.queue} ${row.status} ${row.code} ${row.why}`.toLowerCase() }));
      this.rows.sort((one, other) => ORDER.indexOf(one.status) - ORDER.indexOf(other.status));
      this.refilter();
    } catch (problem) {
      this.context.fail(problem);
    }
  }

  refilter() {
    note("filter", this.filter.value);
    const matches = matcher(this.filter.value);
    const found = this.rows.filter((row) => matches(row.text));
    const shown = this.status ? found.filter((row) => row.status === this.status) : found;
    this.count.textContent = shown.length === this.rows.length ? countWords(shown.length, "gang") : `${numberWords(shown.length)} of ${countWords(this.rows.length, "gang")}`;
    this.showChips(found);
    this.list.show(shown);
  }

  showChips(found) {
    const counts = new Map();
    for (const row of found) counts.set(row.status, (counts.get(row.status) ?? 0) + 1);
    const words = ORDER.filter((status) => counts.has(status) || status === this.status);
    const chip = (status, text) => el("button", { type: "button", class: "chip", "aria-pressed": String(this.status === status), "data-key": `chip ${status}`, onclick: () => this.choose(status) }, text);
    const focused = this.chips.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    this.chips.replaceChildren(chip("", `all ${numberWords(found.length)}`), ...words.map((status) => chip(status, `${status} ${numberWords(counts.get(status) ?? 0)}`)));
    if (focused) this.chips.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  choose(status) {
    this.status = status;
    note("status", status);
    this.refilter();
  }

  resize() {
    this.list.draw(true);
  }

  stop() {
    this.context.stop();
  }
}

function columns(unit) {
  return [
    { title: "Gang", cell: (row) => link(addressTo("gang", row.gang), row.gang), key: (row) => row.gang },
    { title: "Queue", cell: (row) => row.queue, key: (row) => row.queue },
    { title: "Status", cell: (row) => el("span", { class: `status ${row.status}` }, row.status), key: (row) => ORDER.indexOf(row.status) },
    { title: "Placed", number: true, cell: (row) => `${row.placed} of ${row.pods}`, key: (row) => row.placed },
    { title: "Needs", number: true, cell: (row) => row.minimum, key: (row) => row.minimum },
    { title: "Holds", number: true, cell: (row) => withUnit(row.held, "", unit()), key: (row) => row.held },
    { title: "Priority", number: true, cell: (row) => row.priority, key: (row) => row.priority },
    { title: "Created", cell: (row) => (row.created ? moment(row.created) : "–"), key: (row) => row.created },
    { title: "Why it waits", cell: (row) => row.reserved || row.why || (row.code ? row.code : ""), key: (row) => row.code },
  ];
}
