// What is asked of the server. A token, where one is needed, stays in this tab and goes with every request; there are no cookies.

const TOKEN = "phalanx-token";
let token = sessionStorage.getItem(TOKEN) ?? "";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function hasToken() {
  return token !== "";
}

export function setToken(text) {
  token = text.trim();
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export function headers() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export function addressOf(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined));
  return `api/${path}${query.size ? `?${query}` : ""}`;
}

export async function get(path, parameters = {}, signal = undefined) {
  return answerOf(await reached(fetch(addressOf(path, parameters), { headers: headers(), signal })));
}

export async function post(path, body, parameters = {}, signal = undefined) {
  const options = { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
  return answerOf(await reached(fetch(addressOf(path, parameters), options)));
}

async function reached(request) {
  try {
    return await request;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new ApiError(0, "the server does not answer");
  }
}

async function answerOf(response) {
  const text = await response.text();
  let data = null;
  try {
    data = JSON.parse(text);
  } catch {
    throw new ApiError(response.status, `the server answered with something else (${response.status})`);
  }
  if (!response.ok) throw new ApiError(response.status, data.error ?? `the server refused (${response.status})`);
  return data;
}
