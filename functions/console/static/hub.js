// The hub protocol (docs/hub-protocol.md): the signed-in project as a store.
import { call, path } from "./http.js";
import { session } from "./session.js";

const store = (...rest) => `/api/stores/${path(session().project, ...rest)}`;

export const counts = (signal) => call("hub", "GET", store("queues"), { signal });
export const listMessages = (queue, query, signal) => call("hub", "GET", store("queues", queue), { query, signal });
export const showMessage = (id, signal) => call("hub", "GET", store("messages", id), { signal });
export const decide = (id, what) => call("hub", "PUT", store("messages", id), { body: { [what]: true } });
export const push = (message) => call("hub", "POST", store("messages"), { body: message });
export const listNotices = (query, signal) => call("hub", "GET", store("notifications"), { query, signal });

/** Mappings, schedulers, parameters and integrations: each is listed, made, changed and removed alike. */
export const things = {
  list: (kind, signal) => call("hub", "GET", store(kind), { signal }),
  show: (kind, id, signal) => call("hub", "GET", store(kind, id), { signal }),
  make: (kind, body) => call("hub", "POST", store(kind), { body }),
  change: (kind, id, body) => call("hub", "PUT", store(kind, id), { body }),
  remove: (kind, id) => call("hub", "DELETE", store(kind, id)),
};
