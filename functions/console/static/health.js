// How a subscriber is doing, in the hub's words (engine/model/subscriber_health.py): the same badge and sentence wherever it is shown.
import { Badge, Notice, Time, counted } from "./parts.js";
import { html } from "./view.js";

const KINDS = { delivering: "good", rate_limited: "good", retrying: "warn", catching_up: "warn", awaits_consent: "warn", suspended: "warn" };
const WELL = new Set(["delivering", "rate_limited", "retrying"]);
const FAILING = new Set(["token_server_down", "circuit_open", "catching_up", "failing"]);

/** Whether it accepts messages. */
export const isWell = (health) => WELL.has(health.state);

/** Whether it is tried, and accepts nothing or not yet all. */
export const isFailing = (health) => FAILING.has(health.state);

/** Whether nothing is sent to it until one thing happens: then no delivery has a time of its own. */
export const waitsForOne = (health) => !isWell(health) && !["failing", "catching_up"].includes(health.state);

export function HealthBadge({ health }) {
  return html`<${Badge} kind=${KINDS[health.state] ?? "bad"}>${health.text}<//>`;
}

/** How many deliveries wait, in digits. */
export const waiting = (health) => `${health.waiting.toLocaleString()}${health.complete ? "" : " or more"}`;

/** The same in words. */
export const waits = (health) => (health.complete ? counted(health.waiting, "delivery waits", "deliveries wait") : `${waiting(health)} deliveries wait`);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What is the matter with it, for how long, and what that means for its messages. Nothing if it is well. */
export function HealthNotice({ health, who, disablesAt, action, onAction }) {
  if (isWell(health)) return null;
  return html`<${Notice} kind=${KINDS[health.state] ?? "bad"} action=${action} onAction=${onAction}>
    ${who && html`${who}: `}${capital(health.text)}${health.since && html`, since <${Time} at=${health.since} />`}.
    ${health.reason && ` It said: ${health.reason}.`}
    ${" "}${health.state === "disabled" ? "Nothing is sent to it." : `${capital(waits(health))}.`}
    ${health.until && html` The next attempt is <${Time} at=${health.until} />.`}
    ${disablesAt && html` If every attempt fails until then, it is disabled <${Time} at=${disablesAt} />.`}
  <//>`;
}
