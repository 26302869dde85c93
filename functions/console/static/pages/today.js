// Today: what went on in the last day, what waits, what fails, and what a person has to decide, each with its button.
import * as ironmq from "../ironmq.js";
import * as hub from "../hub.js";
import * as webhooks from "../webhooks.js";
import { ActivityChart, Badge, Card, Confirmed, Doing, Figures, Loaded, Notice, Page, Table, Time, shorten, toast, useLoad } from "../parts.js";
import { href } from "../route.js";
import { Fragment, html } from "../view.js";
import { HealthBadge, waiting } from "../health.js";
import { acceptedAt } from "./message.js";

const QUEUES_LOOKED_AT = 100;
const AT_ONCE = 4;
const HOURS = 24;

async function look(signal) {
  const [hours, troubled, store, held, names] = await Promise.all([
    ironmq.activity(HOURS, signal),
    webhooks.endpoints.troubled(signal),
    hub.counts(signal),
    hub.listMessages("accepted", { state: "parked" }, signal),
    ironmq.listQueues({ per_page: QUEUES_LOOKED_AT }, signal),
  ]);
  const queues = [];
  for (let start = 0; start < names.length; start += AT_ONCE) {
    queues.push(...await Promise.all(names.slice(start, start + AT_ONCE).map((each) => ironmq.showQueue(each.name, signal).catch(() => null))));
  }
  const known = queues.filter(Boolean);
  const failing = known.filter((each) => each.push && each.size > 0);
  // Where the most waits, the oldest most likely is: a failing delivery, or what no consumer has taken.
  const waiting = known.filter((each) => each.size > 0).sort((a, b) => b.size - a.size);
  const oldest = await Promise.all(waiting.slice(0, AT_ONCE * 2).map((each) => ironmq.peek(each.name, signal).then(([first]) => first && { queue: each.name, id: first.id, at: acceptedAt(first.id) }).catch(() => null)));
  const feeds = new Set(known.map((each) => each.push?.error_queue).filter(Boolean));
  return {
    hours,
    troubled,
    store,
    held: held.messages,
    more: held.pages > 1,
    queues: known,
    failing,
    complete: names.length < QUEUES_LOOKED_AT,
    oldest: oldest.filter((each) => each?.at).sort((a, b) => a.at.localeCompare(b.at)),
    errors: known.filter((each) => feeds.has(each.name) && each.size > 0),
  };
}

const link = (count, ...to) => html`<a href=${href(...to)}>${count.toLocaleString()}</a>`;

export function Today() {
  const now = useLoad(look, [], { every: 15_000 });
  const decide = async (row, what, done) => {
    await hub.decide(row.id, what);
    toast(done);
    await now.reload({ quietly: true });
  };
  const enable = async (row, disabled) => {
    await webhooks.endpoints.change(row.appId, row.endpoint.id, { disabled });
    toast(disabled ? "It gets no messages until it is resumed." : "It gets messages again.");
    await now.reload({ quietly: true });
  };
  return html`<${Page} title="Today" lead="What is happening in this project, and what needs a person."
    actions=${html`<button type="button" onClick=${() => now.reload()}>Refresh</button>`}>
    <${Loaded} from=${now}>${(told) => {
      const sum = (queues) => queues.reduce((total, each) => total + each.size, 0);
      const day = (name) => told.hours.reduce((total, each) => total + each[name], 0).toLocaleString();
      const [oldest] = told.oldest;
      return html`<${Fragment}>
        <${Figures} wide of=${[
          ["Accepted, last day", link(day("accepted"), "queues")],
          ["Delivered, last day", link(day("delivered"), "queues")],
          ["Given up, last day", link(day("given_up"), "search", { state: "given_up" })],
          ["Failing, to be retried", link(sum(told.failing) + told.store.failing, "search", { state: "failing" })],
          ["Waiting for consumers", link(sum(told.queues.filter((each) => !each.push)), "queues")],
          ["Store: on their way", link(told.store.incoming + told.store.pending + told.store.scheduled, "store")],
          ["Wait for a person", link(told.store.parked + sum(told.errors), "search", { state: "parked" })],
          ["Oldest waiting", oldest ? html`<a href=${href("queues", oldest.queue, "messages", oldest.id)}><${Time} at=${oldest.at} /></a>` : "–"],
        ]} />
        <${Card} title="The last day, by hour" aside=${html`<a href=${href("charts")}>Charts</a>`}>
          <${ActivityChart} hours=${told.hours} />
          <p class="legend"><span class="key accent">Accepted</span><span class="key good">Delivered</span><span class="key bad">Failed attempts</span><span>Counted a minute or two later.</span></p>
        <//>
        ${!told.complete && html`<${Notice} kind="warn">The first ${QUEUES_LOOKED_AT} queues are counted here. <a href=${href("queues")}>All queues</a><//>`}
        <${Card} title="Needs a person" flush>
          <${Table} label="Needs a person" rows=${told.held} keyed=${(each) => each.id} empty=${told.errors.length || told.troubled.length ? "No message of the store." : "Nothing is failing."}
            columns=${[
              ["Message", (each) => html`<a href=${href("store", "messages", each.id)}>${each.message}</a>`],
              ["For", (each) => each.consumer],
              ["Since", (each) => html`<${Time} at=${each.attempt_at ?? each.created_at} />`],
              ["Last error", (each) => shorten(each.last_error ?? "–", 70)],
              ["", (each) => html`<span class="actions">
                ${each.locked_at ? "Being tried" : html`<${Doing} name="Try now" onDo=${() => decide(each, "attempt_now", "It is tried now.")} />`}
                <${Confirmed} name="Archive" question="Give this message up?" detail="It is archived and not tried again." onSure=${() => decide(each, "archive", "Archived.")} />
              </span>`],
            ]} />
          ${told.more && html`<div class="inside"><a href=${href("store", { queue: "accepted", state: "parked" })}>All that wait for a person</a></div>`}
        <//>
        ${told.troubled.length > 0 && html`<${Card} title="Endpoints that get no messages" flush>
          <${Table} label="Endpoints that get no messages" rows=${told.troubled} keyed=${(each) => each.endpoint.id} columns=${[
            ["Endpoint", (each) => html`<a class="mono" href=${href("apps", each.appId, "endpoints", each.endpoint.id)}>${shorten(each.endpoint.url, 60)}</a>`],
            ["Application", (each) => html`<a href=${href("apps", each.appId)}>${each.appName}</a>`],
            ["State", (each) => html`<${HealthBadge} health=${each.health} />`],
            ["Since", (each) => html`<${Time} at=${each.health.since} />`],
            ["Waiting", (each) => waiting(each.health), { number: true }],
            ["", (each) => html`<span class="actions"><${Doing} name=${each.endpoint.disabled ? "Resume" : "Pause"} onDo=${() => enable(each, !each.endpoint.disabled)} /></span>`],
          ]} />
        <//>`}
        ${told.errors.length > 0 && html`<${Card} title="Error queues that are not empty" flush>
          <${Table} label="Error queues" rows=${told.errors} keyed=${(each) => each.name} columns=${[
            ["Error queue", (each) => html`<a class="name" href=${href("queues", each.name)}>${each.name}</a>`],
            ["Given up", (each) => each.size, { number: true }],
          ]} />
        <//>`}
        <${Card} title="Failing now" flush>
          <${Table} label="Failing now" rows=${told.failing} keyed=${(each) => each.name} empty="No push queue has a failing delivery." columns=${[
            ["Queue", (each) => html`<a class="name" href=${href("queues", each.name)}>${each.name}</a>`],
            ["Failing", (each) => each.size, { number: true }],
            ["Oldest", (each) => html`<${Time} at=${told.oldest.find((other) => other.queue === each.name)?.at} />`],
            ["Tried again", (each) => `${each.push.retries === 1 ? "once" : `${each.push.retries} times`}, ${each.push.retries_delay} s apart`],
          ]} />
        <//>
      <//>`;
    }}<//>
  <//>`;
}
