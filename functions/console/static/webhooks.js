// Webhooks (Svix API v1, docs/webhooks.md): applications, their endpoints, messages and attempts. With a portal's token, one application.
import { call, path } from "./http.js";
import { session } from "./session.js";

const api = (...rest) => `/api/v1/${path(...rest)}`;
const ask = (method, url, more) => call("webhooks", method, url, more);

export const PAGE = 25;
export const inPortal = () => session()?.kind === "portal";

/** Whether an endpoint with this URL is the tenant's own: a portal sees that it is there, and everything else is refused. */
export const tenantsOwn = (url) => inPortal() && /^[a-z0-9+.-]+:\/\/hidden$/.test(url ?? "");

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
  test: (app, id, eventType) => ask("POST", endpoint(app, id, "send-example"), { body: { eventType } }),
  recover: (app, id, since) => ask("POST", endpoint(app, id, "recover"), { body: { since } }),
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
export const logout = () => ask("POST", api("auth", "logout"));
