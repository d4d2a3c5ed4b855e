// Calls of the API, and the stream of events.

let csrf = "";
let lastId = "";
const seen = new Set();

export class ProblemError extends Error {
  constructor(problem) {
    super([problem.detail || problem.title, ...(problem.hints || [])].join("; "));
    this.status = problem.status;
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new ProblemError({ status: 0, detail: "the server does not answer; is `brigade web` running?" });
  }
  const text = await response.text();
  const body = text ? JSON.parse(text) : {};
  if (!response.ok) throw new ProblemError(body);
  return body;
}

export function read(path) {
  return request(`/api/v1${path}`, {});
}

// Each change has a key, so that it is made once, also if the browser sends it again.
export function change(path, body = {}, method = "POST") {
  return request(`/api/v1${path}`, {
    method,
    headers: {
      "content-type": "application/json",
      "x-brigade-csrf": csrf,
      "idempotency-key": crypto.randomUUID ? crypto.randomUUID() : String(Math.random()),
    },
    body: JSON.stringify(body),
  });
}

// Uses the secret of a login link, which is behind `#login=` in the address, and removes it from the address.
export async function logIn() {
  const secret = new URLSearchParams(location.hash.slice(1)).get("login");
  if (secret) {
    history.replaceState(null, "", location.pathname);
    await request("/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ secret }),
    });
  }
  const session = await read("/session");
  csrf = session.csrf || "";
  return session;
}

export async function logOut() {
  await request("/logout", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
}

// Calls `onEvent` for each event, once. The browser connects again by itself, and the server continues after the last event.
export function follow(onEvent, onConnection) {
  const source = new EventSource("/api/v1/events");
  source.onopen = () => onConnection("live");
  source.onerror = () => onConnection("connecting again …");
  const take = (message) => {
    lastId = message.lastEventId || lastId;
    const event = JSON.parse(message.data);
    if (event.key) {
      if (seen.has(event.key)) return;
      seen.add(event.key);
      if (seen.size > 20000) seen.delete(seen.values().next().value);
    }
    onEvent(message.type, event);
  };
  for (const type of ["hello", "record", "requests"]) source.addEventListener(type, take);
  return source;
}
