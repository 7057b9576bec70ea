// Requests to the gateway, and its problems.

export class Problem extends Error {
  constructor(status, word, message) {
    super(message);
    this.status = status;
    this.word = word;
  }
}

export const API = "/api/v1";

// The session is kept in the storage of this origin and not in a cookie: browsers send cookies to every
// port of a host, where another user's server could read them.
const SESSION = "rekindle-session";
export function keepSession(name) {
  if (name === null) return localStorage.removeItem(SESSION);
  localStorage.setItem(SESSION, name);
  underWay = new AbortController();
}

// A session that ends takes its requests with it: the supervisor would refuse them.
let underWay = new AbortController();
export function endRequests() {
  underWay.abort();
}
export function authorization() {
  const session = localStorage.getItem(SESSION);
  return session === null ? {} : { authorization: `Bearer ${session}` };
}

const ofSession = (path) => path.startsWith("/session");

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);
export const worker = (id, ...rest) => [`${API}/workers`, encodeURIComponent(id), ...rest].join("/");

// The answer, or null if this supervisor does not serve the route.
export async function getIfServed(path, query = "") {
  try {
    return await get(path + query);
  } catch (problem) {
    if (problem instanceof Problem && problem.word === "no_such_path") return null;
    throw problem;
  }
}

async function ask(method, path, body) {
  const options = { method, cache: "no-store", credentials: "omit", redirect: "error", headers: authorization() };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  if (!ofSession(path)) options.signal = underWay.signal;
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem(0, "unreachable", "cannot reach the supervisor");
  }
  let document = {};
  try {
    document = await response.json();
  } catch {
    // The connection broke, or another server replied: the status is all there is.
  }
  if (response.ok) return document;
  throw new Problem(response.status, document.error ?? "", document.message ?? `status ${response.status}`);
}
