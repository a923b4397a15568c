// Starts the page: asks what is served here, shows the view that the address names, and lets it know when something has changed.

import { get, hasToken } from "./api.js";
import { clock } from "./clock.js";
import { button, el, link, replace, visible } from "./dom.js";
import { Feed } from "./feed.js";
import { updateMoments } from "./format.js";
import { listenToKeys } from "./keys.js";
import { addressTo, routeOf } from "./router.js";
import { askForToken } from "./sign_in.js";
import { VIEWS } from "./views.js";
import { Yesterday } from "./yesterday.js";
import { showTip } from "../charts/canvas.js";

const BETWEEN_REFRESHES = 1500;
const BETWEEN_CLOCKS = 5000;
const UNSEEN = 5000;
const LISTS = { gang: "gangs", session: "sessions" };

class App {
  constructor(about) {
    this.about = about;
    this.content = document.getElementById("content");
    this.shown = null;
    this.feed = null;
    this.at = null;
    this.lastRefresh = 0;
    this.yesterday = about.hasRecording ? new Yesterday(document.getElementById("yesterday"), about, () => this.at) : null;
  }

  start() {
    document.getElementById("subject").textContent = visible(this.about.title);
    const views = VIEWS.filter((view) => view.isThere(this.about) && !view.isHidden);
    document.getElementById("views").append(...views.map((view) => el("li", {}, link(addressTo(view.name), view.title, { "data-view": view.name }))));
    window.addEventListener("hashchange", () => this.route());
    window.addEventListener("resize", () => this.shown?.view.resize?.());
    window.addEventListener("scroll", () => showTime(document.activeElement));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.shown?.view.resize?.());
    document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); this.content.focus(); });
    document.addEventListener("focusin", (event) => showTime(event.target));
    document.addEventListener("focusout", (event) => { if (!event.relatedTarget) showTip("", 0, 0); });
    setInterval(() => updateMoments(), BETWEEN_CLOCKS);
    document.addEventListener("visibilitychange", () => this.rest(document.hidden));
    listenToKeys(this, views);
    this.route();
  }

  // --- what is shown -----------------------------------------------------------------------------------------------------

  route() {
    const { view: name, name: what, params } = routeOf();
    const there = VIEWS.filter((view) => view.isThere(this.about));
    const view = there.find((candidate) => candidate.name === (what ? name : LISTS[name] ?? name)) ?? there[0];
    this.follow(params.get("at") ?? "");
    this.shown?.view.stop?.();
    this.shown = null;
    this.mark(view);
    const place = el("div", { class: `view ${view.name}` });
    this.content.replaceChildren(place);
    this.arrive(`${view.name}/${what}`);
    const context = new Context(this, place, what, params);
    document.title = visible(what ? `${what} – ${view.title} – Phalanx` : `${view.title} – Phalanx`);
    try {
      this.shown = { view: view.start(context), context };
    } catch (problem) {
      context.fail(problem);
    }
  }

  // Another view begins at its top, and the keyboard goes on there.
  arrive(view) {
    if (this.view !== undefined && this.view !== view) {
      window.scrollTo(0, 0);
      this.content.focus({ preventScroll: true });
    }
    this.view = view;
  }

  mark(view) {
    for (const item of document.querySelectorAll("#views a")) {
      item.href = addressTo(item.dataset.view);
      if (item.dataset.view === (view.under ?? view.name)) item.setAttribute("aria-current", "page");
      else item.removeAttribute("aria-current");
    }
    document.querySelector(".brand a").href = addressTo("overview");
  }

  // --- what changes ------------------------------------------------------------------------------------------------------

  // Hears of the cluster as it is, or as it was at a moment.
  follow(at) {
    if (this.at === at) return;
    this.at = at;
    this.yesterday?.show(at);
    this.listen();
  }

  listen() {
    this.feed?.end();
    if (!this.about.hasCluster && !this.about.hasRecording) return;
    this.feed = new Feed(this.at ? { at: this.at } : {}, (look) => this.heard(look), (state) => this.state(state));
  }

  // A page that nobody sees hears nothing: it would cost the cluster something, and a browser has six connections for all of them.
  rest(isHidden) {
    clearTimeout(this.hiding);
    if (isHidden) this.hiding = setTimeout(() => { this.feed?.end(); this.feed = null; }, UNSEEN);
    else if (!this.feed) this.listen();
  }

  heard(look) {
    if (look.now) clock.set(look.now, this.stands);
    if (look.version === this.version) return;
    this.version = look.version;
    this.refreshSoon();
  }

  // Files, and moments of a recording, never change: their time does not go on either.
  get stands() {
    return this.at !== "" || !this.about.hasCluster || this.about.kind === "files";
  }

  // The view fetches what it shows: not more often than anybody can read, and not while it still waits for the last answer.
  refreshSoon() {
    if (this.planned) return;
    const wait = Math.max(this.lastRefresh + BETWEEN_REFRESHES - performance.now(), 0);
    this.planned = setTimeout(async () => {
      this.planned = null;
      this.lastRefresh = performance.now();
      await this.shown?.view.refresh?.();
    }, wait);
  }

  state({ lost, problem, refused }) {
    if (refused && this.about.needsToken) {
      this.feed?.end();
      askForToken(this.content, "The token does not open this page any more.", () => location.reload());
      return;
    }
    const place = document.getElementById("state");
    const shown = this.at ? "A moment of the past" : this.about.kind === "files" ? "Files, as they were read" : this.about.hasCluster ? "Live" : "The end of the recording";
    const text = lost ? "Connection lost; trying again" : problem ? `Not up to date: ${problem}` : shown;
    if (place.textContent !== text) place.textContent = visible(text);
    place.dataset.state = lost ? "lost" : problem ? "stale" : this.stands ? "still" : "well";
  }
}

// Whoever has no pointer to rest on a time, goes to it or taps it to read when it was.
function showTime(element) {
  const box = element.getBoundingClientRect();
  showTip(element.matches("time[title]") ? element.title : "", box.left, box.top);
}

// What a view is given: its place, what the address says, and how to ask the server about the moment that is shown.
class Context {
  constructor(app, place, name, params) {
    this.app = app;
    this.about = app.about;
    this.place = place;
    this.name = name;
    this.params = params;
    this.control = new AbortController();
    this.filled = new Map();
  }

  get isShown() {
    return this.place.isConnected;
  }

  get at() {
    return this.app.at ?? "";
  }

  get(path, parameters = {}) {
    return get(path, { ...parameters, at: this.at }, this.control.signal);
  }

  // Shows what an answer is made into; an answer that comes when somebody has gone on is left out, and so is one that says the same as
  // what stands there: a screen reader would read it again.
  async fill(place, ask, make) {
    try {
      const found = await ask();
      const text = JSON.stringify({ ...found, now: 0 });
      const shown = this.filled.get(place);
      if (!this.isShown || (shown?.text === text && shown.first === place.firstChild)) return;
      replace(place, make(found));
      this.filled.set(place, { text, first: place.firstChild });
    } catch (problem) {
      this.fail(problem, place);
    }
  }

  fail(problem, place = this.place) {
    if (problem.name === "AbortError" || !this.isShown) return;
    if (problem.status === 401) {
      askForToken(this.place, "", () => location.reload());
      return;
    }
    replace(place, el("p", { class: "failure", role: "alert" }, problem.message), problem.status === 0 ? button("Try again", () => this.app.route()) : null);
  }

  stop() {
    this.control.abort();
  }
}

async function begin() {
  const content = document.getElementById("content");
  try {
    const about = await get("about");
    if (about.needsToken && !hasToken()) askForToken(content, "", () => location.reload());
    else new App(about).start();
    document.documentElement.dataset.ready = "true";
  } catch (problem) {
    replace(content, el("p", { class: "failure", role: "alert" }, problem.message), button("Try again", () => location.reload()));
  }
}

begin();
