// IronMQ v3 (docs/ironmq.md): queues, subscribers, messages of the signed-in project.
import { call, path } from "./http.js";
import { session } from "./session.js";

const queues = (...rest) => `/3/projects/${path(session().project, "queues", ...rest)}`;

export const PAGE = 30;

/** What went on in the project by hour, and how long attempts took: {hours, p50_ms, p95_ms, p99_ms}. */
export const projectActivity = (hours, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "activity")}`, { query: { hours }, signal });
export const activity = (hours, signal) => projectActivity(hours, signal).then((told) => told.hours);
export const listQueues = (query, signal) => call("ironmq", "GET", queues(), { query: { per_page: PAGE, ...query }, signal }).then((told) => told.queues);
export const showQueue = (name, signal) => call("ironmq", "GET", queues(name), { signal }).then((told) => told.queue);
export const putQueue = (name, queue) => call("ironmq", "PUT", queues(name), { body: { queue } });
export const changeQueue = (name, queue) => call("ironmq", "PATCH", queues(name), { body: { queue } });
export const deleteQueue = (name) => call("ironmq", "DELETE", queues(name), { body: {} });
export const putSubscriber = (name, subscriber) => call("ironmq", "POST", queues(name, "subscribers"), { body: { subscribers: [subscriber] } });
export const removeSubscriber = (name, subscriber) => call("ironmq", "DELETE", queues(name, "subscribers"), { body: { subscribers: [{ name: subscriber }] } });
export const peek = (name, signal) => call("ironmq", "GET", queues(name, "messages"), { query: { n: 100 }, signal }).then((told) => told.messages);
export const postMessages = (name, messages) => call("ironmq", "POST", queues(name, "messages"), { body: { messages } }).then((told) => told.ids);
export const clearQueue = (name) => call("ironmq", "DELETE", queues(name, "messages"), { body: {} });
export const showMessage = (name, id, signal) => call("ironmq", "GET", queues(name, "messages", id), { signal }).then((told) => told.message);
export const statuses = (name, id, signal) => call("ironmq", "GET", queues(name, "messages", id, "subscribers"), { signal }).then((told) => told.subscribers);
export const deleteMessage = (name, id) => call("ironmq", "DELETE", queues(name, "messages", id), { body: {} });

export const deliveries = (name, query, signal) => call("ironmq", "GET", queues(name, "deliveries"), { query, signal });
/** Deliveries that were given up: {count, more} of the first page. */
export const givenUp = async (name, signal) => {
  const { deliveries: found, after } = await deliveries(name, { state: "exhausted" }, signal);
  return { count: found.length, more: after !== null };
};
/** What waits in all queues: {counted, queues, error_queues, after}. */
export const overview = (previous, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "overview")}`, { query: { previous }, signal });
/** Everything that was accepted, newest first: {events, after, looked_back_to}. */
export const events = (query, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "events")}`, { query, signal });
/** Messages of all protocols with a value in their body: {found, after, read_back_to}. */
export const find = (value, after, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "search")}`, { query: { value, after }, signal });
/** Starts a search of the delivery records: {id, first_day, last_day}. */
export const startPast = (wanted) => call("ironmq", "POST", `/3/projects/${path(session().project, "past")}`, { body: wanted });
/** What it has found until now: {state, reason, scanned_bytes, hours_left, found, after}. */
export const showPast = (id, after, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "past", id)}`, { query: { after }, signal });
export const attempts = (name, id, signal) => call("ironmq", "GET", queues(name, "messages", id, "attempts"), { signal });
export const pause = (name, subscriber) => call("ironmq", "POST", queues(name, "pause"), { body: { subscriber } });
export const resume = (name, subscriber) => call("ironmq", "POST", queues(name, "resume"), { body: { subscriber } });
/** How each subscriber is doing: {waiting, complete, subscribers: [{name, health}]}. */
export const health = (name, signal) => call("ironmq", "GET", queues(name, "health"), { signal });
export const replay = (name, body) => call("ironmq", "POST", queues(name, "replay"), { body });

/** What went on at a subscriber: of a queue by both names, a mapping by its id alone. */
export const atSubscriber = (subscriber, queue, hours, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "activity", "subscriber")}`, { query: { subscriber, queue, hours }, signal });

/** Who changed what: {kept, changes, after}. */
export const changes = (after, signal) => call("ironmq", "GET", `/3/projects/${path(session().project, "changes")}`, { query: { after }, signal });

const alerts = (...rest) => `/3/projects/${path(session().project, "alerts", ...rest)}`;

export const listAlerts = (signal) => call("ironmq", "GET", alerts(), { signal }).then((told) => told.alerts);
export const createAlert = (alert) => call("ironmq", "POST", alerts(), { body: { alert } });
export const changeAlert = (id, alert) => call("ironmq", "PUT", alerts(id), { body: { alert } });
export const removeAlert = (id) => call("ironmq", "DELETE", alerts(id));
export const testAlert = (id) => call("ironmq", "POST", alerts(id, "test"), { body: {} });

const traces = () => `/3/projects/${path(session().project, "traces")}`;

/** Where the spans of attempts are exported to, or null. */
export const spanExport = (signal) => call("ironmq", "GET", traces(), { signal }).then((told) => told.traces);
export const setSpanExport = (wanted) => call("ironmq", "PUT", traces(), { body: { traces: wanted } });
export const removeSpanExport = () => call("ironmq", "DELETE", traces());
