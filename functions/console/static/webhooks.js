// Webhooks (Svix API v1, docs/webhooks.md): applications, their endpoints, messages and attempts. With a portal's token, one application.
import { call, path } from "./http.js";
import { session } from "./session.js";

const api = (...rest) => `/api/v1/${path(...rest)}`;
const ask = (method, url, more) => call("webhooks", method, url, more);

export const PAGE = 25;
export const inPortal = () => session()?.kind === "portal";

/** Whether an endpoint with this URL is the tenant's own: a portal sees that it is there, and everything else is refused. */
export const tenantsOwn = (url) => inPortal() && /^[a-z0-9+.-]+:\/\/hidden$/.test(url ?? "");

const STATUS = ["success", "pending", "fail", "sending", "canceled"];

/** The state of a message or an attempt, in the words of the other protocols. */
export function stateOf(each) {
  const state = each.statusText ?? STATUS[each.status];
  return state === "canceled" ? "cancelled" : state;
}

export const applications = {
  list: (iterator, signal) => ask("GET", api("app"), { query: { limit: PAGE, iterator, order: "descending" }, signal }),
  show: (app, signal) => ask("GET", api("app", app), { signal }),
  make: (body) => ask("POST", api("app"), { body }),
  change: (app, body) => ask("PATCH", api("app", app), { body }),
  remove: (app) => ask("DELETE", api("app", app)),
  frame: (app, signal) => ask("GET", api("app", app, "portal", "frame"), { signal }),
  putFrame: (app, origins) => ask("PUT", api("app", app, "portal", "frame"), { body: { origins } }),
  portal: (app) => ask("POST", api("auth", "app-portal-access", app), { body: {} }),
};

export const eventTypes = {
  list: (iterator, signal) => ask("GET", api("event-type"), { query: { limit: PAGE, iterator, include_archived: true }, signal }),
  make: (body) => ask("POST", api("event-type"), { body }),
  change: (name, body) => ask("PATCH", api("event-type", name), { body }),
  remove: (name) => ask("DELETE", api("event-type", name)),
};

const source = (...rest) => `/ingest/api/v1/${path("source", ...rest)}`;

export const sources = {
  list: (iterator, signal) => ask("GET", source(), { query: { limit: PAGE, iterator, order: "descending" }, signal }),
  make: (body) => ask("POST", source(), { body }),
  addEndpoint: (id, body) => ask("POST", source(id, "endpoint"), { body }),
  rotate: (id) => ask("POST", source(id, "token", "rotate")),
  remove: (id) => ask("DELETE", source(id)),
  stats: (id, signal) => ask("GET", source(id, "stats"), { signal }),
};

const endpoint = (app, id, ...rest) => api("app", app, "endpoint", id, ...rest);

export const endpoints = {
  list: (app, iterator, signal, limit = PAGE) => ask("GET", api("app", app, "endpoint"), { query: { limit, iterator }, signal }),
  show: (app, id, signal) => ask("GET", endpoint(app, id), { signal }),
  make: (app, body) => ask("POST", api("app", app, "endpoint"), { body }),
  change: (app, id, body) => ask("PATCH", endpoint(app, id), { body }),
  remove: (app, id) => ask("DELETE", endpoint(app, id)),
  secret: (app, id) => ask("GET", endpoint(app, id, "secret")).then((told) => told.key),
  rotate: (app, id) => ask("POST", endpoint(app, id, "secret", "rotate"), { body: {} }),
  headers: (app, id, signal) => ask("GET", endpoint(app, id, "headers"), { signal }),
  putHeaders: (app, id, headers) => ask("PUT", endpoint(app, id, "headers"), { body: { headers } }),
  oauth: (app, id, signal) => ask("GET", endpoint(app, id, "oauth-config"), { signal }),
  putOauth: (app, id, body) => ask("PUT", endpoint(app, id, "oauth"), { body }),
  removeOauth: (app, id) => ask("DELETE", endpoint(app, id, "oauth")),
  certificate: (app, id, signal) => ask("GET", endpoint(app, id, "mtls-config"), { signal }),
  putCertificate: (app, id, body) => ask("PUT", endpoint(app, id, "mtls"), { body }),
  removeCertificate: (app, id) => ask("DELETE", endpoint(app, id, "mtls")),
  signatures: (app, id, signal) => ask("GET", endpoint(app, id, "signatures"), { signal }),
  putSignatures: (app, id, signatures) => ask("PUT", endpoint(app, id, "signatures"), { body: { signatures } }),
  health: (app, id, signal) => ask("GET", endpoint(app, id, "health"), { signal }),
  troubled: (signal) => ask("GET", api("health", "endpoints"), { signal }).then((told) => told.data),
  stats: (app, id, signal) => ask("GET", endpoint(app, id, "stats"), { signal }),
  attempts: (app, id, query, signal) => ask("GET", api("app", app, "attempt", "endpoint", id), { query: { limit: PAGE, with_content: true, ...query }, signal }),
  messages: (app, id, query, signal) => ask("GET", endpoint(app, id, "msg"), { query: { limit: PAGE, with_content: false, ...query }, signal }),
  /** The newest message that the endpoint was sent, with its payload; undefined for none. */
  lastMessage: (app, id, signal) => ask("GET", endpoint(app, id, "msg"), { query: { limit: 1, with_content: true }, signal, exact: true }).then((told) => told.data[0]),
  test: (app, id, eventType) => ask("POST", endpoint(app, id, "send-example"), { body: { eventType } }),
  recover: (app, id, since) => ask("POST", endpoint(app, id, "recover"), { body: { since } }),
};

const transformation = (url) => ({
  show: (signal) => ask("GET", url, { signal }),
  change: (body) => ask("PATCH", url, { body }),
  simulate: (body) => ask("POST", `${url}/simulate`, { body }),
});
export const transformations = (app, id) => transformation(endpoint(app, id, "transformation"));

const stream = (id, ...rest) => api("stream", id, ...rest);

export const streams = {
  list: (iterator, signal) => ask("GET", api("stream"), { query: { limit: PAGE, iterator, order: "descending" }, signal }),
  show: (id, signal) => ask("GET", stream(id), { signal }),
  make: (body) => ask("POST", api("stream"), { body }),
  remove: (id) => ask("DELETE", stream(id)),
  externalId: (id, signal) => ask("GET", stream(id, "external-id"), { signal }),
  events: (id, iterator, signal, limit = PAGE) => ask("GET", stream(id, "events"), { query: { limit, iterator }, signal, exact: true }),
  post: (id, events) => ask("POST", stream(id, "events"), { body: { events } }),
  sinks: (id, iterator, signal) => ask("GET", stream(id, "sink"), { query: { limit: PAGE, iterator }, signal }),
  sink: (id, sink, signal) => ask("GET", stream(id, "sink", sink), { signal }),
  makeSink: (id, body) => ask("POST", stream(id, "sink"), { body }),
  changeSink: (id, sink, body) => ask("PATCH", stream(id, "sink", sink), { body }),
  removeSink: (id, sink) => ask("DELETE", stream(id, "sink", sink)),
  retry: (id, sink) => ask("POST", stream(id, "sink", sink, "force-retry")),
  skip: (id, sink) => ask("POST", stream(id, "sink", sink, "skip")),
  transformation: (id, sink) => transformation(stream(id, "sink", sink, "transformation")),
};

/** What endpoints inherit: of an application, or without one of the project. */
const inherited = (app) => (app ? api("app", app, "signatures") : api("signatures"));

export const signatures = {
  show: (app, signal) => ask("GET", inherited(app), { signal }),
  put: (app, schemes) => ask("PUT", inherited(app), { body: { signatures: schemes } }),
};

export const messages = {
  list: (app, query, signal) => ask("GET", api("app", app, "msg"), { query: { limit: PAGE, with_content: false, ...query }, signal }),
  show: (app, id, signal) => ask("GET", api("app", app, "msg", id), { query: { with_content: true }, signal, exact: true }),
  make: (app, body) => ask("POST", api("app", app, "msg"), { body }),
  attempts: (app, id, signal) => ask("GET", api("app", app, "attempt", "msg", id), { query: { limit: 250 }, signal }),
  destinations: (app, id, signal) => ask("GET", api("app", app, "msg", id, "endpoint"), { query: { limit: 250 }, signal }),
  resend: (app, id, to) => ask("POST", api("app", app, "msg", id, "endpoint", to, "resend")),
  expunge: (app, id) => ask("DELETE", api("app", app, "msg", id, "content")),
};

export const task = (id, signal) => ask("GET", api("background-task", id), { signal });
/** Whether an application's id is that of a stream, which a portal may be of, too. */
export const isStream = (id) => id.startsWith("strm_");
export const logout = () => ask("POST", api("auth", isStream(session()?.application ?? "") ? "stream-logout" : "logout"));
