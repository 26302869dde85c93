// Charts: deliveries, failures and how long answers took over a chosen time, of the project, a queue's subscribers or one of them.
import * as ironmq from "../ironmq.js";
import { Card, Course, Durations, Figures, Loaded, Notice, Page, Table, counted, milliseconds, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";

const PERIODS = [["6", "6 hours"], ["24", "24 hours"], ["72", "3 days"], ["168", "7 days"]];
const LISTED = 100;
const AT_ONCE = 6;

const total = (hours, name) => hours.reduce((sum, each) => sum + each[name], 0);
const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(part && part / whole < 0.1 ? 1 : 0)} %` : "–");

/** What each subscriber of a queue did in the time. */
async function subscribersOf(queue, hours, signal) {
  const { push } = await ironmq.showQueue(queue, signal);
  const names = (push?.subscribers ?? []).map((each) => each.name);
  const told = [];
  for (let start = 0; start < names.length; start += AT_ONCE) {
    told.push(...await Promise.all(names.slice(start, start + AT_ONCE).map(async (name) => ({ name, ...await ironmq.atSubscriber(name, queue, hours, signal) }))));
  }
  return told;
}

export function Charts({ query }) {
  const { queue = "", subscriber = "" } = query;
  const period = PERIODS.some(([key]) => key === query.hours) ? query.hours : "24";
  const show = (changed) => go("charts", { queue, subscriber, hours: period, ...changed });
  const queues = useLoad((signal) => ironmq.listQueues({ per_page: LISTED }, signal), []);
  const told = useLoad((signal) => (subscriber ? ironmq.atSubscriber(subscriber, queue || undefined, period, signal) : queue ? null : ironmq.projectActivity(period, signal)), [queue, subscriber, period], { every: 60_000 });
  const rows = useLoad((signal) => (queue ? subscribersOf(queue, period, signal) : []), [queue, period]);
  const of = subscriber ? `${subscriber}${queue ? ` of ${queue}` : ""}` : queue || "the project";
  return html`<${Page} title="Charts" lead="Deliveries, failures and how long answers took, of ${of}."
    crumbs=${subscriber && queue ? [["Charts", href("charts", { hours: period })], [queue, href("charts", { queue, hours: period })]] : queue || subscriber ? [["Charts", href("charts", { hours: period })]] : []}
    actions=${subscriber && queue && html`<a class="button" href=${href("queues", queue, "subscribers", subscriber)}>Subscriber</a>`}>
    <${Chosen} key=${`${queue}\n${period}`} queue=${queue} period=${period} queues=${queues.data ?? []} show=${show} />
    ${queue && !subscriber && html`<${Loaded} from=${rows}>${(found) => html`<${BySubscriber} queue=${queue} period=${period} rows=${found} />`}<//>`}
    ${(subscriber || !queue) && html`<${Loaded} from=${told}>${(activity) => activity && html`<${Shown} of=${of} activity=${activity} />`}<//>`}
  <//>`;
}

function Chosen({ queue, period, queues, show }) {
  const [named, setNamed] = useState(queue);
  return html`<form class="filter" onSubmit=${(event) => { event.preventDefault(); show({ queue: named.trim(), subscriber: "" }); }}>
    <div class="field"><label for="charts-period">Period</label>
      <select id="charts-period" value=${period} onChange=${(event) => show({ hours: event.currentTarget.value })}>
        ${PERIODS.map(([key, name]) => html`<option value=${key}>${name}</option>`)}
      </select></div>
    <div class="field"><label for="charts-queue">Queue</label>
      <input id="charts-queue" list="charts-queues" autocomplete="off" placeholder="All queues" value=${named} onInput=${(event) => setNamed(event.currentTarget.value)} />
      <datalist id="charts-queues">${queues.filter((each) => each.type !== "pull").map((each) => html`<option value=${each.name} />`)}</datalist></div>
    <div class="actions"><button type="submit">Show</button></div>
  </form>`;
}

function BySubscriber({ queue, period, rows }) {
  return html`<${Card} title="By subscriber" flush>
    <${Table} label="By subscriber" rows=${rows} keyed=${(each) => each.name} empty="This queue has no subscribers that the hub calls." columns=${[
      ["Subscriber", (each) => html`<a class="name" href=${href("charts", { queue, subscriber: each.name, hours: period })}>${each.name}</a>`],
      ["Delivered", (each) => total(each.hours, "delivered").toLocaleString(), { number: true }],
      ["Failed attempts", (each) => total(each.hours, "failed").toLocaleString(), { number: true }],
      ["Failure rate", (each) => share(total(each.hours, "failed"), total(each.hours, "attempts")), { number: true }],
      ["Given up", (each) => total(each.hours, "given_up").toLocaleString(), { number: true }],
      ["p50", (each) => milliseconds(each.p50_ms), { number: true }],
      ["p95", (each) => milliseconds(each.p95_ms), { number: true }],
      ["p99", (each) => milliseconds(each.p99_ms), { number: true }],
    ]} />
  <//>`;
}

function Shown({ of, activity }) {
  const { hours, complete = true } = activity;
  const [attempts, delivered, failed, givenUp] = ["attempts", "delivered", "failed", "given_up"].map((name) => total(hours, name));
  const when = `the last ${counted(hours.length, "hour")}`;
  return html`<${Fragment}>
    <${Figures} wide of=${[
      ["Delivered", delivered.toLocaleString()], ["Failed attempts", failed.toLocaleString()], ["Failure rate", share(failed, attempts)], ["Given up", givenUp.toLocaleString()],
      ["Half answered within", milliseconds(activity.p50_ms)], ["95 of 100 within", milliseconds(activity.p95_ms)], ["99 of 100 within", milliseconds(activity.p99_ms)], ["Attempts", attempts.toLocaleString()],
    ]} />
    ${!complete && html`<${Notice} kind="warn">So many subscribers were busy that not all attempts were counted.<//>`}
    <${Card} title="Deliveries and failures by hour">
      <${Course} label="${of}, ${when}: ${delivered} delivered, ${failed} attempts failed, ${givenUp} given up" hours=${hours} />
      <p class="legend"><span class="key good">Delivered</span><span class="key bad">Failed attempts</span><span>Counted a minute or two later.</span></p>
    <//>
    <${Card} title="How long answers took, by hour">
      <${Durations} label="${of}, ${when}: half of all attempts within ${milliseconds(activity.p50_ms)}, 95 of 100 within ${milliseconds(activity.p95_ms)}, 99 of 100 within ${milliseconds(activity.p99_ms)}" hours=${hours} />
      <p class="legend"><span class="key good">p50</span><span class="key warn">p95</span><span class="key bad">p99</span><span>Exact to a fifth.</span></p>
    <//>
    <details class="card"><summary class="inside">The numbers</summary>
      <${Table} label="The numbers" rows=${hours.filter((each) => each.attempts || each.given_up || each.accepted).reverse()} keyed=${(each) => each.hour} empty="Nothing happened in this time." columns=${[
        ["Hour", (each) => new Date(each.hour).toLocaleString([], { dateStyle: "short", timeStyle: "short" })],
        ["Delivered", (each) => each.delivered, { number: true }], ["Failed attempts", (each) => each.failed, { number: true }], ["Given up", (each) => each.given_up, { number: true }],
        ["p50", (each) => milliseconds(each.p50_ms), { number: true }], ["p95", (each) => milliseconds(each.p95_ms), { number: true }], ["p99", (each) => milliseconds(each.p99_ms), { number: true }],
      ]} />
    </details>
  <//>`;
}
