// A recording as a slider: the whole page as it was at a moment, with what happened over time behind it.

import { get } from "./api.js";
import { button, el, replace, svg } from "./dom.js";
import { absolute } from "./format.js";
import { routeOf } from "./router.js";

const HAS_ZONE = /(Z|UTC|[+-]\d\d:?\d\d)$/i;
const STEP = 60;
const WAIT = 250;
const WIDTH = 1000;
const HEIGHT = 36;

export class Yesterday {
  constructor(place, about, at) {
    this.place = place;
    this.about = about;
    this.at = at;
    place.hidden = false;
    this.slider = el("input", { type: "range", min: "0", max: "1", step: "1", "aria-label": "Moment of the recording", oninput: () => this.slide() });
    this.text = el("output");
    this.field = el("input", { type: "text", placeholder: "03:12", size: "8", "aria-label": "Time, such as 03:12", onkeydown: (event) => { if (event.key === "Enter") this.typed(); } });
    this.chart = el("div", { class: "happenings" });
    this.failure = el("p", { class: "failure", role: "alert", hidden: true });
    replace(place, this.chart, this.slider, el("p", { class: "controls" },
      button("−1 min", () => this.step(-1), { "data-key": "earlier", "aria-keyshortcuts": "[" }), this.text, button("+1 min", () => this.step(1), { "data-key": "later", "aria-keyshortcuts": "]" }),
      el("label", {}, "Go to ", this.field), button("Go", () => this.typed()), about.hasCluster ? button("Now", () => this.go(""), { "data-key": "now" }) : null,
      el("ul", { class: "legend" }, el("li", {}, el("i", { class: "key useful" }), "pods placed"), el("li", {}, el("i", { class: "key evicted" }), "pods evicted"))), this.failure);
    this.load();
  }

  async load() {
    try {
      const found = await get("moments");
      this.span = found;
      this.slider.min = String(Math.floor(found.begun));
      this.slider.max = String(Math.ceil(found.ended));
      if (found.bars) this.chart.replaceChildren(happenings(found));
      this.show(this.at() ?? "");
    } catch (problem) {
      this.fail(problem.message);
    }
  }

  fail(text) {
    this.failure.textContent = text;
    this.failure.hidden = !text;
  }

  // What the address says: seconds, a time of day, or nothing for now or the end.
  show(at) {
    if (!this.span) return;
    const seconds = at === "" ? this.span.ended : Number(at) || momentIn(at, this.span);
    if (!seconds) {
      this.text.textContent = at;
      return;
    }
    this.slider.value = String(Math.round(seconds));
    this.text.textContent = at === "" && this.about.hasCluster ? "now" : absolute(seconds);
  }

  slide() {
    this.text.textContent = absolute(Number(this.slider.value));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.go(this.slider.value), WAIT);
  }

  step(by) {
    if (!this.span) return false;
    const now = this.at() ? Number(this.slider.value) : this.span.ended;
    this.go(String(Math.min(Math.max(now + by * STEP, this.span.begun), this.span.ended)));
    return true;
  }

  // A time of day is the last one in the recording; a date is taken as it is.
  typed() {
    const found = momentIn(this.field.value.trim(), this.span);
    if (found === null) this.fail(`${this.field.value}: no time of the recording, which is from ${absolute(this.span.begun)} to ${absolute(this.span.ended)}; write for example 03:12`);
    else this.go(String(found));
  }

  go(at) {
    this.fail("");
    const { view, name, params } = routeOf();
    if (at) params.set("at", at);
    else params.delete("at");
    const path = name ? `/${name.split("/").map(encodeURIComponent).join("/")}` : "";
    location.hash = `#/${view}${path}${params.size ? `?${params}` : ""}`;
  }
}

export function momentIn(text, span) {
  if (!span) return null;
  const clock = /^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$/.exec(text);
  if (!clock) {
    const found = Date.parse(HAS_ZONE.test(text) ? text : `${text.replace(" ", "T")}Z`) / 1000;
    return Number.isNaN(found) || found < span.begun || found > span.ended ? null : found;
  }
  const day = new Date(span.ended * 1000);
  day.setUTCHours(Number(clock[1]), Number(clock[2]), Number(clock[3] ?? 0), 0);
  const last = day.getTime() / 1000;
  const found = last <= span.ended ? last : last - 86400;
  return found >= span.begun ? found : null;
}

function happenings({ bars }) {
  const most = Math.max(1, ...bars.placed, ...bars.evicted);
  const width = WIDTH / bars.placed.length;
  const column = (kind, counts) => counts.map((count, place) => {
    const high = count ? Math.max((Math.sqrt(count) / Math.sqrt(most)) * (HEIGHT / 2 - 1), 1) : 0;
    return high ? svg("rect", { class: `part ${kind}`, x: place * width, y: kind === "evicted" ? HEIGHT / 2 : HEIGHT / 2 - high, width: Math.max(width - 0.5, 1), height: high }) : null;
  });
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${bars.sessions} sessions in the recording: pods placed above the line, evicted below it` },
    column("placed", bars.placed), column("evicted", bars.evicted));
}
