// A table of ten thousand rows, of which only those in view are in the document. It filters, sorts and is walked by keyboard.

import { el, replace, visible } from "./dom.js";

const ROW = 34;
const MORE = 12;

export class VirtualTable {
  // columns: [{ title, number, cell(row) -> child, key(row) -> what to sort by }]; open(row) is called with Enter or a click.
  constructor(label, columns, { open = null, keyOf, height = 60 } = {}) {
    this.columns = columns;
    this.open = open;
    this.keyOf = keyOf;
    this.rows = [];
    this.chosen = -1;
    this.order = null;
    this.head = el("tr", {}, columns.map((column, place) => this.headOf(column, place)));
    this.before = el("tr", { class: "gap", "aria-hidden": "true" });
    this.after = el("tr", { class: "gap", "aria-hidden": "true" });
    this.body = el("tbody");
    this.table = el("table", { class: "virtual", "aria-rowcount": "0" }, el("caption", { class: "unseen" }, label), el("thead", {}, this.head), this.body);
    this.place = el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": label, onscroll: () => this.draw(), onkeydown: (event) => this.onKey(event) }, this.table);
    this.place.style.maxHeight = `${height}vh`;
    new ResizeObserver(() => this.draw()).observe(this.place);
  }

  headOf(column, place) {
    const sort = column.key ? el("button", { type: "button", class: "sort", onclick: () => this.sortBy(place) }, column.title) : column.title;
    return el("th", { scope: "col", class: column.number ? "number" : null }, sort);
  }

  show(rows) {
    this.all = rows;
    this.sorted();
  }

  sortBy(place) {
    const isSame = this.order?.place === place;
    this.order = isSame && this.order.down ? null : { place, down: isSame };
    [...this.head.cells].forEach((cell, index) => {
      if (this.order?.place === index) cell.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    this.sorted();
  }

  sorted() {
    const chosen = this.chosen >= 0 ? this.keyOf(this.rows[this.chosen]) : null;
    this.rows = this.order ? inOrder(this.all, this.columns[this.order.place].key, this.order.down) : this.all;
    this.chosen = chosen === null ? -1 : this.rows.findIndex((row) => this.keyOf(row) === chosen);
    this.table.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.draw(true);
  }

  draw(isOther = false) {
    const top = Math.max(Math.floor(this.place.scrollTop / ROW) - MORE, 0);
    const end = Math.min(top + Math.ceil((this.place.clientHeight || 600) / ROW) + 2 * MORE, this.rows.length);
    if (!isOther && top === this.top && end === this.end) return;
    [this.top, this.end] = [top, end];
    this.before.style.height = `${top * ROW}px`;
    this.after.style.height = `${(this.rows.length - end) * ROW}px`;
    replace(this.body, this.before, this.rows.slice(top, end).map((row, place) => this.rowOf(row, top + place)), this.after);
    this.table.dataset.shown = String(this.rows.length);
  }

  rowOf(row, place) {
    const cells = this.columns.map((column, index) => el(index ? "td" : "th", { scope: index ? null : "row", class: column.number ? "number" : null }, el("div", { class: "cell" }, column.cell(row))));
    const act = this.open ? (event) => { if (!event.target.closest("a, button")) this.open(row); } : null;
    return el("tr", { "aria-rowindex": String(place + 2), class: place === this.chosen ? "chosen" : null, "data-key": this.keyOf(row), onclick: act }, cells);
  }

  onKey(event) {
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
    if (event.target !== this.place || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.step(steps[event.key]);
    else if (event.key === "Enter" && this.open && this.rows[this.chosen]) this.open(this.rows[this.chosen]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  step(by) {
    if (!this.rows.length) return;
    this.choose(Math.min(Math.max(this.chosen < 0 ? 0 : this.chosen + by, 0), this.rows.length - 1));
  }

  choose(place) {
    this.chosen = place;
    const [top, room] = [place * ROW, this.place.clientHeight - 2 * ROW];
    if (top < this.place.scrollTop) this.place.scrollTop = top;
    if (top > this.place.scrollTop + room) this.place.scrollTop = top - room;
    this.draw();
    this.mark();
    document.getElementById("said").textContent = this.body.querySelector("tr.chosen")?.textContent ?? "";
  }

  // Among the rows that are there: to make all of them anew with every key would be slow.
  mark() {
    for (const row of this.body.rows) row.classList.toggle("chosen", row.getAttribute("aria-rowindex") === String(this.chosen + 2));
  }
}

function inOrder(rows, key, isDown) {
  const keyed = rows.map((row) => [key(row), row]);
  const compare = (one, other) => (typeof one === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true }));
  keyed.sort(([one], [other]) => (isDown ? -compare(one, other) : compare(one, other)));
  return keyed.map(([, row]) => row);
}

// Columns as the server sends them, as rows: texts stand once in a list, and some columns have places in it.
export function rowsOf({ columns, texts }, shared) {
  const names = Object.keys(columns);
  const count = names.length ? columns[names[0]].length : 0;
  return Array.from({ length: count }, (_, place) => Object.fromEntries(names.map((name) => [name, shared.includes(name) ? texts[columns[name][place]] : columns[name][place]])));
}

// Whether a row has every word that somebody typed.
export function matcher(filter) {
  const words = visible(filter).toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => words.every((word) => text.includes(word));
}
