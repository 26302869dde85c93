// The policy simulator (docs/policy-simulator.md): what a retry policy would do to an outage; the hub runs its own rules on virtual time.
import { Card, Figures, Form, Loaded, Notice, Page, Table, duration, useLoad } from "../parts.js";
import { simulatePolicy } from "../ironmq.js";
import { href } from "../route.js";
import { endpoints } from "../webhooks.js";
import { Fragment, html, useState } from "../view.js";

const POLICIES = [["webhooks", "Webhooks: a schedule"], ["ironmq", "IronMQ: so many retries, so far apart"], ["hub", "Hub protocol: doubling waits"]];
const TROUBLES = [["times_out", "times out"], ["refuses", "refuses connections"], ["answers", "answers with a status"], ["slow", "answers slowly"]];
const of = (kind) => (values) => values.kind === kind;
const number = (text) => (text === "" || text === undefined ? undefined : Number(text));
const hours = (text) => (number(text) === undefined ? undefined : Math.round(Number(text) * 3600));

const FIELDS = [
  { name: "kind", label: "Policy", type: "choice", options: POLICIES },
  { name: "schedule", label: "Schedule", hint: "svix, standard-webhooks, or seconds to wait: 5, 300, 1800", when: of("webhooks") },
  { name: "retries", label: "Retries", type: "number", when: of("ironmq") },
  { name: "retries_delay", label: "Seconds between tries", type: "number", when: of("ironmq") },
  { name: "max_attempts", label: "Attempts at most", type: "number", hint: "Empty: no end", when: of("hub") },
  { name: "retry_base", label: "Seconds of the first wait", type: "number", when: of("hub") },
  { name: "retry_cap", label: "Seconds of the longest wait", type: "number", when: of("hub") },
  { name: "circuit", label: "Probe a failing endpoint instead of trying each message (circuit)", type: "check" },
  { name: "rate", label: "Messages a second", type: "number", step: "any" },
  { name: "life", api: ["message_expiration"], label: "Hours that a message lives", type: "number", step: "any" },
];
const OUTAGE = [
  { name: "trouble", api: ["endpoint"], label: "The endpoint", type: "choice", options: TROUBLES },
  { name: "status", label: "Status", type: "number", when: (values) => values.trouble === "answers" },
  { name: "retry_after", label: "Its Retry-After, seconds", type: "number", hint: "Empty: none", when: (values) => values.trouble === "answers" },
  { name: "takes", label: "Seconds that an answer takes", type: "number", step: "any", when: (values) => values.trouble === "slow" },
  { name: "lasts", api: ["end", "duration"], label: "Hours that it lasts", type: "number", step: "any" },
];
const FIRST = { kind: "webhooks", schedule: "svix", retries: "3", retries_delay: "60", max_attempts: "", retry_base: "30", retry_cap: "3600", circuit: true, rate: "50", life: "168", trouble: "times_out", status: "503", retry_after: "", takes: "5", lasts: "6" };

/** What the API is asked, of what is in the form; an outage that happened replaces the form's. */
function requestOf(values, past) {
  const policies = {
    webhooks: () => ({ schedule: /^[a-z-]+$/.test(values.schedule.trim()) ? values.schedule.trim() : values.schedule.split(",").map((each) => Number(each)) }),
    ironmq: () => ({ retries: number(values.retries) ?? 3, retries_delay: number(values.retries_delay) }),
    hub: () => ({ max_attempts: number(values.max_attempts), retry_base: number(values.retry_base) ?? 30, retry_cap: number(values.retry_cap) }),
  };
  const window = { start: 0, end: hours(values.lasts), endpoint: values.trouble };
  if (values.trouble === "answers") Object.assign(window, { status: number(values.status), retry_after: number(values.retry_after) });
  if (values.trouble === "slow") window.takes = number(values.takes);
  return {
    policy: policies[values.kind](), circuit: Boolean(values.circuit), rate: number(values.rate), message_expiration: hours(values.life),
    ...(past ? { outage: past.outage, duration: past.duration } : { outage: [window] }),
  };
}

export function PolicySimulator({ query: { app, endpoint } }) {
  const past = useLoad((signal) => (app && endpoint ? history(app, endpoint, signal) : Promise.resolve(null)), [app, endpoint]);
  return html`<${Page} title="Policy simulator" crumbs=${[["Reports", href("reports")]]}
    lead="What a retry policy would do to an outage. The hub's own rules run on virtual time; nothing is sent, and nothing of yours is changed.">
    <${Loaded} from=${past}>${(told) => html`<${Trial} past=${told} />`}<//>
  <//>`;
}

function Trial({ past }) {
  const [found, setFound] = useState(null);
  const fields = past ? FIELDS : [...FIELDS, ...OUTAGE];
  const ask = async (values) => setFound(await simulatePolicy(requestOf(values, past)));
  return html`<${Fragment}>
    ${past && html`<${Notice}>The outage is that of an endpoint: ${past.failed} of its last ${past.attempts} attempts failed, in ${past.outage.length === 1 ? "one stretch" : `${past.outage.length} stretches`} within ${duration(past.duration)}.<//>`}
    <div class="columns">
      <${Card} title="What is tried"><${Form} fields=${fields} values=${past ? { ...FIRST, rate: String(past.rate) } : FIRST} submit="Simulate" onSubmit=${ask} /><//>
      ${found && html`<div class="stack" aria-live="polite"><${Found} of=${found} /></div>`}
    </div>
  <//>`;
}

const COMPARED = { no_circuit: "No circuit", default: "Default policy" };

function Found({ of: { forecast, compared, notes } }) {
  const columns = [["This policy", forecast], ...(compared ? [[COMPARED[compared.with], compared.forecast]] : [])];
  const lost = forecast.expired + forecast.given_up;
  return html`<${Fragment}>
    <${Figures} of=${[
      ["Delivered", share(forecast.delivered, forecast.accepted)], ["Lost", lost.toLocaleString()],
      ["Attempts", forecast.attempts.toLocaleString()], ["Busiest minute", forecast.peak_per_minute.toLocaleString(), "attempts"],
      ["Half arrive within", forecast.delay ? duration(forecast.delay.p50) : "–"], ["Cost", dollars(forecast.dollars)],
    ]} />
    ${columns.map(([name, each]) => html`<${Card} title="${name}: attempts at the endpoint"><${Attempts} label=${name} of=${each.over_time} />
      <p class="legend">Each bar ${duration(each.over_time.every)}. Green: taken. Red: failed.</p><//>`)}
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
  ["Left to a person", count("held"), false], ["Still on their way", count("waiting"), false], ["Attempts", count("attempts")], ["Failed attempts", count("failed_attempts")],
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

const DAY_MS = 86_400_000;
const MOST_STRETCHES = 60;

/** The last day of an endpoint, as an outage: its newest attempts, and the stretches of them that failed. Null when it has none. */
async function history(app, endpoint, signal) {
  const told = await endpoints.attempts(app, endpoint, { limit: 250, after: new Date(Date.now() - DAY_MS).toISOString(), with_content: false }, signal);
  return historyOf(told.data.map((each) => ({ at: Date.parse(each.timestamp), failed: each.status === 2, status: each.responseStatusCode, message: each.msgId })));
}

function historyOf(attempts) {
  if (!attempts.length) return null;
  const inOrder = attempts.toSorted((one, other) => one.at - other.at);
  const from = inOrder[0].at;
  const second = (at) => Math.floor((at - from) / 1000);
  const outage = [];
  let open = null;
  for (const each of inOrder) {
    if (!each.failed) {
      if (open) open.end = Math.max(open.start + 1, second(each.at));
      open = null;
    } else if (!open) {
      const answered = each.status >= 300 && each.status <= 599;
      open = { start: second(each.at), end: second(each.at) + 1, endpoint: answered ? "answers" : "times_out", ...(answered ? { status: each.status } : {}) };
      if (outage.length < MOST_STRETCHES) outage.push(open);
    } else open.end = Math.max(open.end, second(each.at) + 1);
  }
  const lasted = Math.max(60, second(inOrder.at(-1).at) + 1);
  const messages = new Set(inOrder.map((each) => each.message)).size;
  return { outage, duration: lasted, rate: Math.max(0.001, Math.round((messages * 1000) / lasted) / 1000), attempts: inOrder.length, failed: inOrder.filter((each) => each.failed).length };
}
