// The project's own part of the newest delivery report (docs/report.md).
import { call, path, Refused } from "./http.js";
import { session } from "./session.js";

const report = (...rest) => `/3/projects/${path(session().project, "report", ...rest)}`;

/** What an ask answers, or null where there is no report yet. */
async function there(ask) {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return null;
    throw error;
  }
}

export const verdict = (signal) => there(() => call("ironmq", "GET", report(), { signal }).then((told) => told.report));
export const table = (name, signal) => there(() => call("ironmq", "GET", report(name), { signal }));

/** When a subscriber was down, in sentences and in numbers: {as_of, said, outages}. */
export const outages = (queue, subscriber, signal) => there(() => call("ironmq", "GET", `/3/projects/${path(session().project, "outages")}`, { query: { queue, subscriber }, signal }));
