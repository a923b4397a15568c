// What is shown is in the address, behind #: `#/gangs?filter=bert&at=...`. So the back button, bookmarks and links work.

export function routeOf(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = path.split("/");
  return { view: view || "overview", name: rest.map(decoded).join("/"), params: new URLSearchParams(query) };
}

// An address that somebody typed may hold what stands for no character: it is taken as it is, and nothing is called so.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function addressTo(view, name = "", parameters = {}) {
  const kept = routeOf().params.get("at");
  const query = new URLSearchParams(Object.entries({ ...parameters, ...(kept && !("at" in parameters) ? { at: kept } : {}) }).filter(([, value]) => value));
  const path = name ? `/${name.split("/").map(encodeURIComponent).join("/")}` : "";
  return `#/${view}${path}${query.size ? `?${query}` : ""}`;
}

// Notes a parameter in the address without another entry in the history: what is typed into a filter is no place to go back to.
export function note(name, value) {
  const { view, name: what, params } = routeOf();
  if (value) params.set(name, value);
  else params.delete(name);
  const path = what ? `/${what.split("/").map(encodeURIComponent).join("/")}` : "";
  history.replaceState(null, "", `#/${view}${path}${params.size ? `?${params}` : ""}`);
}
