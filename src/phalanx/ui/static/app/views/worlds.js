// A shadow: the cluster as others scheduled it, and the same work as we would have, side by side.

import { bar } from "../bars.js";
import { button, el, empty, figures, link, section, table } from "../dom.js";
import { percent } from "../format.js";
import { addressTo } from "../router.js";
import { durationWords, numberWords } from "../../charts/words.js";

const MOST = 200;

export function worldsView(context) {
  const answer = el("div", { "aria-live": "polite" });
  const ask = () => {
    answer.replaceChildren(el("p", { class: "busy" }, "The recorded work is simulated twice: under rules like those of then, and under ours. This takes a while…"));
    context.fill(answer, () => context.get("worlds"), page);
  };
  context.place.append(el("h1", {}, "Both worlds"),
    el("p", {}, "What other schedulers did in the recorded cluster, beside what we would have made of the same work."),
    el("p", { class: "controls" }, button("Compare", ask, { "data-key": "compare", "data-filter": true })), answer);
  return { stop: () => context.stop() };
}

function page(found) {
  if (!found.gangs.length) return empty("There is no gang in the recording.");
  const [then, ours] = [found.totals.recorded, found.totals.ours];
  return [
    figures([["Start earlier with us", numberWords(found.earlier)], ["Start later", numberWords(found.later)], ["The same", numberWords(found.same)],
      ["Mean wait, recorded", durationWords(then.meanWait)], ["Mean wait, ours", durationWords(ours.meanWait)]]),
    el("p", { class: "note" }, found.uncertainty.text),
    use(found), gangs(found), seen(found),
    el("ul", { class: "plain note" }, found.notes.map((text) => el("li", {}, text))),
  ];
}

function use({ use: found }) {
  const row = (title, { held, byWholeGangs }) => [title, bar(`${title}: ${percent(held ?? 0, 1)} held`, [{ value: byWholeGangs ?? 0, kind: "useful" }, { value: Math.max((held ?? 0) - (byWholeGangs ?? 0), 0), kind: "vain" }], 1), percent(held ?? 0, 1), percent(byWholeGangs ?? 0, 1)];
  return section(`${found.resource} held`, table("Use of both worlds", ["World", "Use", "#Held", "#By whole gangs"], [row("recorded", found.recorded), row("ours", found.ours)]));
}

function gangs(found) {
  const longest = Math.max(1, ...found.gangs.flatMap((gang) => [gang.recorded.wait, gang.ours.wait]));
  const shown = found.gangs.slice(0, MOST);
  const rows = shown.map((gang) => [
    link(addressTo("gang", gang.name), gang.name), gang.queue,
    el("div", { class: "pair" }, bar(`recorded: waited ${durationWords(gang.recorded.wait)}`, [{ value: gang.recorded.wait, kind: "waiting" }], longest), bar(`ours: waits ${durationWords(gang.ours.wait)}`, [{ value: gang.ours.wait, kind: "useful" }], longest)),
    durationWords(gang.recorded.wait), durationWords(gang.ours.wait), gang.verdict || "ran before",
  ]);
  const more = found.gangs.length - shown.length;
  return section("Gangs", el("ul", { class: "legend" }, el("li", {}, el("i", { class: "key waiting" }), "waited, as recorded"), el("li", {}, el("i", { class: "key useful" }), "waits with us")),
    table("Gangs in both worlds", ["Gang", "Queue", "Waits", "#Recorded", "#Ours", "Verdict"], rows), more > 0 ? el("p", { class: "note" }, `and ${more} more`) : null);
}

function seen(found) {
  const half = found.halfStarted.map((item) => [item.gang, `${item.placed} of ${item.minimum}`, durationWords(item.seconds)]);
  const room = found.waitedWithRoom.map((item) => [item.gang, durationWords(item.seconds), item.stillWaits ? "still waits" : ""]);
  return [
    half.length ? section("Half-started gangs", table("Half-started gangs", ["Gang", "#Placed", "#For"], half)) : null,
    room.length ? section("Waited although there was room", table("Waited although there was room", ["Gang", "#For", ""], room)) : null,
  ];
}
