// The policy simulator (docs/policy-simulator.md): what a retry policy would do to an outage; the hub runs its own rules on virtual time.
import { Card, Figures, Form, Notice, Page, Table, Time, duration } from "../parts.js";
import { simulatePolicy } from "../ironmq.js";
import { href } from "../route.js";
import { Fragment, html, useState } from "../view.js";

const POLICIES = [["webhooks", "Webhooks: a schedule"], ["ironmq", "IronMQ: a number of retries at fixed intervals"], ["hub", "Hub protocol: waits that double"]];
const TROUBLES = [["times_out", "times out"], ["refuses", "refuses connections"], ["answers", "answers with a status"], ["slow", "answers slowly"]];
const OUTAGES = [["described", "As described here"], ["replayed", "What a subscriber went through"]];
const of = (kind) => (values) => values.kind === kind;
const DESCRIBED = (values) => values.from === "described";
const REPLAYED = (values) => values.from === "replayed";
const number = (text) => (text === "" || text === undefined ? undefined : Number(text));
const hours = (text) => (number(text) === undefined ? undefined : Math.round(Number(text) * 3600));

const FIELDS = [
  { name: "kind", label: "Policy", type: "choice", options: POLICIES },
  { name: "schedule", label: "Schedule", hint: "svix, standard-webhooks, or seconds to wait: 5, 300, 1800", when: of("webhooks") },
  { name: "retries", label: "Retries", type: "number", when: of("ironmq") },
  { name: "retries_delay", label: "Seconds between attempts", type: "number", when: of("ironmq") },
  { name: "max_attempts", label: "Maximum attempts", type: "number", hint: "Empty: no limit", when: of("hub") },
  { name: "retry_base", label: "Seconds of the first wait", type: "number", when: of("hub") },
  { name: "retry_cap", label: "Seconds of the longest wait", type: "number", when: of("hub") },
  { name: "circuit", label: "Probe a failing endpoint instead of trying each message (circuit)", type: "check" },
  { name: "from", api: [], label: "Outage", type: "choice", options: OUTAGES },
  { name: "trouble", api: ["endpoint"], label: "The endpoint", type: "choice", options: TROUBLES, when: DESCRIBED },
  { name: "status", label: "Status", type: "number", when: (values) => DESCRIBED(values) && values.trouble === "answers" },
  { name: "retry_after", label: "Its Retry-After, seconds", type: "number", hint: "Empty: none", when: (values) => DESCRIBED(values) && values.trouble === "answers" },
  { name: "takes", label: "Seconds that an answer takes", type: "number", step: "any", when: (values) => DESCRIBED(values) && values.trouble === "slow" },
  { name: "lasts", api: ["end", "duration"], label: "Duration in hours", type: "number", step: "any", when: DESCRIBED },
  { name: "rate", label: "Messages a second", type: "number", step: "any", when: DESCRIBED },
  { name: "life", api: ["message_expiration"], label: "Hours that a message lives", type: "number", step: "any", when: DESCRIBED },
  { name: "queue", label: "Queue", hint: "For a webhook endpoint: webhooks/ and the application's id", when: REPLAYED },
  { name: "subscriber", label: "Subscriber", hint: "Its name or id", when: REPLAYED },
  { name: "since", api: ["since is", "since must be"], label: "Since", type: "datetime-local", when: REPLAYED },
  { name: "until", label: "Until", type: "datetime-local", hint: "Empty: at most a week later", when: REPLAYED },
];
const FIRST = { kind: "webhooks", schedule: "svix", retries: "3", retries_delay: "60", max_attempts: "", retry_base: "30", retry_cap: "3600", circuit: true, from: "described", rate: "50", life: "168", trouble: "times_out", status: "503", retry_after: "", takes: "5", lasts: "6" };

const DAY_MS = 86_400_000;

/** The link that tries policies against a subscriber's last day. */
export const againstLastDay = (queue, subscriber) => href("reports", "policy", { queue, subscriber, since: new Date(Date.now() - DAY_MS).toISOString() });

/** What the API is asked, of what is in the form. */
function requestOf(values) {
  const policies = {
    webhooks: () => ({ schedule: /^[a-z-]+$/.test(values.schedule.trim()) ? values.schedule.trim() : values.schedule.split(",").map((each) => Number(each)) }),
    ironmq: () => ({ retries: number(values.retries) ?? 3, retries_delay: number(values.retries_delay) }),
    hub: () => ({ max_attempts: number(values.max_attempts), retry_base: number(values.retry_base) ?? 30, retry_cap: number(values.retry_cap) }),
  };
  const tried = { policy: policies[values.kind](), circuit: Boolean(values.circuit) };
  if (REPLAYED(values)) return { ...tried, replay: { queue: values.queue, subscriber: values.subscriber, since: exactly(values.since), until: exactly(values.until) } };
  const window = { start: 0, end: hours(values.lasts), endpoint: values.trouble };
  if (values.trouble === "answers") Object.assign(window, { status: number(values.status), retry_after: number(values.retry_after) });
  if (values.trouble === "slow") window.takes = number(values.takes);
  return { ...tried, rate: number(values.rate), message_expiration: hours(values.life), outage: [window] };
}

/** A time of a field as the API takes it; none if it is none. */
const exactly = (text) => (Number.isNaN(Date.parse(text)) ? undefined : new Date(text).toISOString());

/** A time as a field takes it: to the minute, in the reader's time zone. */
function toTheMinute(text) {
  const at = Date.parse(text);
  return Number.isNaN(at) ? "" : new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function PolicySimulator({ query: { queue, subscriber, since, until } }) {
  const [found, setFound] = useState(null);
  const ask = async (values) => {
    const request = requestOf(values);
    setFound(await simulatePolicy(request));
    // The address leads to the same history again; the page stays as it is.
    history.replaceState(null, "", href("reports", "policy", request.replay ?? {}));
  };
  const replayed = queue && { from: "replayed", queue, subscriber, since: toTheMinute(since), until: toTheMinute(until) };
  const own = queue && !queue.startsWith("webhooks/") && { kind: "ironmq", circuit: false };
  return html`<${Page} title="Policy simulator" crumbs=${[["Reports", href("reports")]]}
    lead="What a retry policy would do in an outage. The hub's own rules run in virtual time; nothing is sent and nothing is changed.">
    <div class="columns">
      <${Card} title="What is tried"><${Form} fields=${FIELDS} values=${{ ...FIRST, ...replayed, ...own }} submit="Simulate" onSubmit=${ask} /><//>
      ${found && html`<div class="stack" aria-live="polite"><${Found} of=${found} /></div>`}
    </div>
  <//>`;
}

/** What a subscriber went through, as it was counted. */
function Replayed({ of: { from, messages, attempts, failed, outage }, lasted }) {
  return html`<${Notice}>${failed} of ${attempts} attempts failed, in ${outage.length === 1 ? "one stretch" : `${outage.length} stretches`}; ${messages} ${messages === 1 ? "message" : "messages"} within ${duration(lasted)}, the first <${Time} at=${from} />.<//>`;
}

const COMPARED = { no_circuit: "No circuit", default: "Default policy" };

function Found({ of: { plan, forecast, compared, replayed, notes } }) {
  const columns = [["This policy", forecast], ...(compared ? [[COMPARED[compared.with], compared.forecast]] : [])];
  const lost = forecast.expired + forecast.given_up;
  return html`<${Fragment}>
    ${replayed && html`<${Replayed} of=${replayed} lasted=${plan.duration} />`}
    <${Figures} of=${[
      ["Delivered", share(forecast.delivered, forecast.accepted)], ["Lost", lost.toLocaleString()],
      ["Attempts", forecast.attempts.toLocaleString()], ["Busiest minute", forecast.peak_per_minute.toLocaleString(), "attempts"],
      ["Half arrive within", forecast.delay ? duration(forecast.delay.p50) : "–"], ["Cost", dollars(forecast.dollars)],
    ]} />
    ${columns.map(([name, each]) => html`<${Card} title="${name}: attempts at the endpoint"><${Attempts} label=${name} of=${each.over_time} />
      <p class="legend">Each bar is ${duration(each.over_time.every)}. Green: delivered. Red: failed.</p><//>`)}
    <${Card} title="In figures" flush><${Table} label="In figures" rows=${ROWS.filter(([, shown, always = true]) => always || columns.some(([, each]) => shown(each) !== "0"))} keyed=${([name]) => name} columns=${[
      ["Figure", ([name]) => name], ...columns.map(([name, each]) => [name, ([, shown]) => shown(each), { number: true }]),
    ]} /><//>
    ${notes.map((each) => html`<p class="hint">${each}</p>`)}
  <//>`;
}

const share = (part, whole) => `${((100 * part) / whole).toLocaleString(undefined, { maximumFractionDigits: 2 })} %`;
const dollars = (amount) => `$${amount.toLocaleString(undefined, { maximumFractionDigits: amount < 1 ? 4 : 2 })}`;
const count = (name) => (each) => each[name].toLocaleString();
const delay = (name) => (each) => (each.delay ? duration(each.delay[name]) : "–");

const ROWS = [
  ["Accepted", count("accepted")], ["Delivered", count("delivered")], ["Expired", count("expired")], ["Given up", count("given_up")],
  ["Waiting for a person", count("held"), false], ["Still on their way", count("waiting"), false], ["Attempts", count("attempts")], ["Failed attempts", count("failed_attempts")],
  ["Busiest minute", count("peak_per_minute")], ["Half arrive within", delay("p50")], ["90 %", delay("p90")], ["99 %", delay("p99")], ["All", delay("max")],
  ["Circuit opened", count("circuit_opened"), false], ["Cost", (each) => dollars(each.dollars)],
];

/** Attempts over time as bars, failed ones at the foot. */
function Attempts({ label, of: { every, attempts, failed } }) {
  const most = Math.max(1, ...attempts);
  const wide = 600 / attempts.length;
  const foot = 125;
  const high = (each) => (each / most) * 110;
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0).toLocaleString();
  const said = `${label}: ${sum(attempts)} attempts, ${sum(failed)} of which fail, over ${duration(every * attempts.length)}; ${most.toLocaleString()} at most in ${duration(every)}`;
  return html`<svg class="picture" viewBox="0 0 600 146" role="img" aria-label=${said}>
    ${attempts.map((each, index) => each > 0 && html`<g key=${index}>
      ${each > failed[index] && html`<rect class="bar good" x=${index * wide} width=${wide * 0.92} y=${foot - high(each)} height=${high(each - failed[index])} />`}
      ${failed[index] > 0 && html`<rect class="bar bad" x=${index * wide} width=${wide * 0.92} y=${foot - high(failed[index])} height=${high(failed[index])} />`}
    </g>`)}
    <line class="axis" x1="0" x2="600" y1=${foot + 0.5} y2=${foot + 0.5} />
    <text class="soft" x="0" y="11">${most.toLocaleString()}</text>
    <text class="soft" x="0" y="141">0</text><text class="soft" x="600" y="141" text-anchor="end">${duration(every * attempts.length)}</text>
  </svg>`;
}
