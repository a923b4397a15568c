// Gangs as objects, which of them are shown, what is said about one, and their table.

import { announce, create } from "./canvas.js";
import { countWords, durationWords, numberWords } from "./words.js";

const PAGE_ROWS = 100;

export function unpackGangs(result) {
  return result.gangs.map((row) => {
    const gang = Object.fromEntries(result.fields.map((field, index) => [field, row[index]]));
    return { ...gang, queue: result.queues[gang.queue], text: `${gang.name} ${result.queues[gang.queue]}`.toLowerCase() };
  });
}

export function matchingGangs(gangs, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length ? gangs.filter((gang) => words.every((word) => gang.text.includes(word))) : gangs;
}

export function queueName(queue) {
  return queue || "(no queue)";
}

export function stateOf(gang) {
  if (gang.finished !== null) return `finished after ${durationWords(gang.finished)}`;
  if (gang.spans.some(([, to]) => to === null)) return "runs";
  const doing = gang.stuck && gang.stuck[1] === null ? "in a deadlock" : "waits";
  return gang.why ? `${doing}: ${gang.why}` : doing;
}

export function describeGang(gang) {
  const wait = `${gang.started === null ? "has waited" : "waited"} ${durationWords(gang.wait)}`;
  const lines = [
    gang.name,
    `queue ${queueName(gang.queue)}, priority ${gang.priority}`,
    `${countWords(gang.tasks, "task")}, at least ${numberWords(gang.minimum)}`,
    `${wait}, ran ${durationWords(gang.run)}`,
  ];
  if (gang.evicted) lines.push(`${countWords(gang.evicted, "pod")} evicted`);
  return [...lines, stateOf(gang)].join("\n");
}

function columnsOf(resource) {
  return ["Gang", "Queue", "Priority", "Tasks", "Minimum", resource, "Submitted", "Waited", "Ran", "Pods evicted", "State"];
}

function cellsOf(gang) {
  return [
    gang.name, queueName(gang.queue), numberWords(gang.priority), numberWords(gang.tasks), numberWords(gang.minimum),
    numberWords(gang.amount), durationWords(gang.submitted), durationWords(gang.wait), durationWords(gang.run),
    numberWords(gang.evicted), stateOf(gang),
  ];
}

function rowOf(cells, tag) {
  const row = create("tr");
  row.append(...cells.map((text) => create(tag, text, tag === "th" ? { scope: "col" } : {})));
  return row;
}

function tableOf(gangs, resource) {
  const box = create("div", "", { class: "scroll long", tabindex: "0", role: "region", "aria-label": "Gangs" });
  const table = create("table");
  const head = create("thead");
  const body = create("tbody");
  head.append(rowOf(columnsOf(resource), "th"));
  body.append(...gangs.map((gang) => rowOf(cellsOf(gang), "td")));
  table.append(head, body);
  box.append(table);
  return box;
}

function pagerOf(from, count, turn) {
  const pager = create("div", "", { class: "pager" });
  const button = (text, target, isPossible) => {
    const made = create("button", text, { type: "button" });
    made.disabled = !isPossible;
    made.addEventListener("click", () => turn(target));
    return made;
  };
  const shown = `${numberWords(count ? from + 1 : 0)} to ${numberWords(Math.min(from + PAGE_ROWS, count))} of ${numberWords(count)}`;
  pager.append(button("Before", from - PAGE_ROWS, from > 0), create("span", shown), button("Next", from + PAGE_ROWS, from + PAGE_ROWS < count));
  return pager;
}

export function fillGangTable(place, gangs, resource, from = 0) {
  const turn = (target) => {
    fillGangTable(place, gangs, resource, target);
    announce(`gangs from ${target + 1}`);
  };
  place.replaceChildren(pagerOf(from, gangs.length, turn), tableOf(gangs.slice(from, from + PAGE_ROWS), resource));
}
