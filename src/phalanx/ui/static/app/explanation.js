// An explanation as a tree: the sentences of `phalanx explain`, stage by stage, and what would start the gang.

import { el, link } from "./dom.js";
import { addressTo } from "./router.js";

const SIGNS = { true: ["✓", "passed"], false: ["✗", "holds it up"], null: ["·", "has no say"] };

export function explanation(found) {
  const stages = found.stages.map((stage) => {
    const [sign, meaning] = SIGNS[String(stage.ok)];
    return el("li", { class: `stage ${meaning.replaceAll(" ", "-")}` },
      el("div", { class: "stage-name" }, el("span", { class: "sign", role: "img", "aria-label": meaning }, sign), el("strong", {}, stage.stage)),
      lines(stage.lines));
  });
  return el("ol", { class: "stages" }, stages);
}

function lines(found) {
  return el("ul", { class: "tree" }, found.map((line) => el("li", {}, line.text, line.lines?.length ? lines(line.lines) : null)));
}

export function headline(found) {
  return found.why ? `${found.gang} waits: ${found.why}` : `${found.gang}: ${found.status}`;
}

// What would start it, each with a link that tries it.
export function remedies(found) {
  const { remedies: known = [], summary = "" } = found.wouldStart ?? {};
  if (!known.length) return el("p", { class: "empty" }, summary || "Nothing has to be different.");
  const items = known.map((remedy) => el("li", {}, `${remedy.text} `, link(addressTo("what-if", "", { changes: JSON.stringify(remedy.changes), gang: found.gang }), "try it", { "aria-label": `try it: ${remedy.text}` }), " ", el("code", {}, remedy.changes.map((change) => `--if '${change}'`).join(" "))));
  return [el("ol", { class: "remedies" }, items), summary ? el("p", { class: "note" }, summary) : null];
}
