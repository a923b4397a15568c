// Asks for a token of the cluster. It stays in this tab.

import { setToken } from "./api.js";
import { el, replace } from "./dom.js";

export function askForToken(place, complaint, done) {
  const field = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false" });
  const open = (event) => { event.preventDefault(); setToken(field.value); done(); };
  replace(place,
    el("h1", {}, "Show who you are"),
    complaint ? el("p", { class: "failure", role: "alert" }, complaint) : null,
    el("p", {}, "This page shows what a token of the cluster may see. ", el("code", {}, "kubectl create token NAME"), " makes one for a service account. It stays in this tab, and is forgotten when the tab is closed."),
    el("form", { class: "controls", onsubmit: open }, el("label", { for: "token" }, "Token "), field, el("button", {}, "Open")));
  setToken("");
  field.focus();
}
