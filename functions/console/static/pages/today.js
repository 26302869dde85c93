// Today: what went on in the last day, what waits, what fails, and what a person has to decide, each with its button.
import * as ironmq from "../ironmq.js";
import * as hub from "../hub.js";
import * as webhooks from "../webhooks.js";
import { ActivityChart, Badge, Card, Confirmed, Doing, Figures, Loaded, Notice, Page, Table, Time, shorten, toast, useLoad } from "../parts.js";
import { href } from "../route.js";
import { Fragment, html } from "../view.js";
import { HealthBadge, isFailing, waiting } from "../health.js";
import { FirstSteps } from "./first_steps.js";
import { acceptedAt } from "./message.js";

const HOURS = 24;

/** What waits in all queues; one request, unless there are very many. */
async function countQueues(signal) {
  const queues = [];
  const errors = new Set();
  let counted = 0;
  for (let previous = ""; previous !== null; ) {
    const told = await ironmq.overview(previous, signal);
    queues.push(...told.queues);
    told.error_queues.forEach((each) => errors.add(each));
    counted += told.counted;
    previous = told.after;
  }
  const oldest = queues.filter((each) => each.oldest).map((each) => ({ queue: each.name, id: each.oldest, at: acceptedAt(each.oldest) }));
  return {
    queues,
    counted,
    failing: queues.filter((each) => each.type !== "pull"),
    oldest: oldest.filter((each) => each.at).sort((x, y) => x.at.localeCompare(y.at)),
    errors: queues.filter((each) => errors.has(each.name)),
  };
}

async function lookAtStore(signal) {
  const [counts, held] = await Promise.all([hub.counts(signal), hub.listMessages("accepted", { state: "parked" }, signal)]);
  return { ...counts, held: held.messages, more: held.pages > 1 };
}

/** What waits for endpoints that fail; what is owed to one that a person has paused does not fail. */
const owedTo = (endpoints) => endpoints.reduce((total, { health }) => total + (isFailing(health) ? health.waiting : 0), 0);

const link = (count, ...to) => html`<a href=${href(...to)}>${count.toLocaleString()}</a>`;

export function Today() {
  // Each part is shown as soon as it comes. Counting many queues takes longest, so it begins when the first has come.
  const hours = useLoad((signal) => ironmq.activity(HOURS, signal), [], { every: 15_000 });
  const store = useLoad(lookAtStore, [], { every: 15_000 });
  const troubled = useLoad(webhooks.endpoints.troubled, [], { every: 15_000 });
  const begun = Boolean(hours.data || hours.error);
  const counts = useLoad((signal) => (begun ? countQueues(signal) : undefined), [begun], { every: 15_000 });
  const refresh = () => Promise.all([hours, store, troubled, counts].map((each) => each.reload()));
  const decide = async (row, what, done) => {
    await hub.decide(row.id, what);
    toast(done);
    await store.reload({ quietly: true });
  };
  const enable = async (row, disabled) => {
    await webhooks.endpoints.change(row.appId, row.endpoint.id, { disabled });
    toast(disabled ? "It gets no messages until it is resumed." : "It gets messages again.");
    await troubled.reload({ quietly: true });
  };
  return html`<${Page} title="Today" lead="What is happening in this project, and what needs a person."
    actions=${html`<button type="button" onClick=${refresh}>Refresh</button>`}>
    <${Loaded} from=${hours}>${(told) => {
      const of = counts.data;
      const places = store.data;
      const sum = (queues) => queues.reduce((total, each) => total + each.size, 0);
      const known = (parts, count, ...to) => (parts.every(Boolean) ? link(count(), ...to) : html`<span title="Being counted.">…</span>`);
      const day = (name) => told.reduce((total, each) => total + each[name], 0).toLocaleString();
      const [oldest] = of?.oldest ?? [];
      return html`<${Fragment}>
        <${FirstSteps} hours=${told} counted=${counts.data?.counted} />
        <${Figures} wide of=${[
          ["Accepted, last day", link(day("accepted"), "events")],
          ["Delivered, last day", link(day("delivered"), "events", { in_state: "delivered" })],
          ["Given up, last day", link(day("given_up"), "search", { state: "given_up" })],
          ["Failing, to be retried", known([of, places, troubled.data], () => sum(of.failing) + places.failing + owedTo(troubled.data), "search", { state: "failing" })],
          ["Waiting for consumers", known([of], () => sum(of.queues.filter((each) => each.type === "pull")), "queues")],
          ["Store: on their way", known([places], () => places.incoming + places.pending + places.scheduled, "store")],
          ["Wait for a person", known([of, places], () => places.parked + sum(of.errors), "search", { state: "parked" })],
          ["Oldest waiting", oldest ? html`<a href=${href("queues", oldest.queue, "messages", oldest.id)}><${Time} at=${oldest.at} /></a>` : "–"],
        ]} />
        <${Card} title="The last day, by hour" aside=${html`<a href=${href("charts")}>Charts</a>`}>
          <${ActivityChart} hours=${told} />
          <p class="legend"><span class="key accent">Accepted</span><span class="key good">Delivered</span><span class="key bad">Failed attempts</span><span>Counted a minute or two later.</span></p>
        <//>
        ${counts.error && html`<${Notice} kind="bad" action="Try again" onAction=${() => counts.reload()}>The queues were not counted: ${counts.error.message}<//>`}
        <${Card} title="Needs a person" flush>
          <${Loaded} from=${store}>${({ held }) => html`<${Table} label="Needs a person" rows=${held} keyed=${(each) => each.id} empty=${of?.errors.length || troubled.data?.length ? "No message of the store." : "Nothing is failing."}
            columns=${[
              ["Message", (each) => html`<a href=${href("store", "messages", each.id)}>${each.message}</a>`],
              ["For", (each) => each.consumer],
              ["Since", (each) => html`<${Time} at=${each.attempt_at ?? each.created_at} />`],
              ["Last error", (each) => shorten(each.last_error ?? "–", 70)],
              ["", (each) => html`<span class="actions">
                ${each.locked_at ? "Being tried" : html`<${Doing} name="Try now" onDo=${() => decide(each, "attempt_now", "It is tried now.")} />`}
                <${Confirmed} name="Archive" question="Give this message up?" detail="It is archived and not tried again." onSure=${() => decide(each, "archive", "Archived.")} />
              </span>`],
            ]} />`}<//>
          ${places?.more && html`<div class="inside"><a href=${href("store", { queue: "accepted", state: "parked" })}>All that wait for a person</a></div>`}
        <//>
        ${troubled.error && html`<${Notice} kind="bad" action="Try again" onAction=${() => troubled.reload()}>The endpoints were not looked at: ${troubled.error.message}<//>`}
        ${troubled.data?.length > 0 && html`<${Card} title="Endpoints that get no messages" flush>
          <${Table} label="Endpoints that get no messages" rows=${troubled.data} keyed=${(each) => each.endpoint.id} columns=${[
            ["Endpoint", (each) => html`<a class="mono" href=${webhooks.isStream(each.appId) ? href("streams", each.appId) : href("apps", each.appId, "endpoints", each.endpoint.id)}>${shorten(each.endpoint.url, 60)}</a>`],
            ["Application", (each) => html`<a href=${href(webhooks.isStream(each.appId) ? "streams" : "apps", each.appId)}>${each.appName}</a>`],
            ["State", (each) => html`<${HealthBadge} health=${each.health} />`],
            ["Since", (each) => html`<${Time} at=${each.health.since} />`],
            ["Waiting", (each) => waiting(each.health), { number: true }],
            // A stream's page pauses its sinks.
            ["", (each) => !webhooks.isStream(each.appId) && html`<span class="actions"><${Doing} name=${each.endpoint.disabled ? "Resume" : "Pause"} onDo=${() => enable(each, !each.endpoint.disabled)} /></span>`],
          ]} />
        <//>`}
        ${of?.errors.length > 0 && html`<${Card} title="Error queues that are not empty" flush>
          <${Table} label="Error queues" rows=${of.errors} keyed=${(each) => each.name} columns=${[
            ["Error queue", (each) => html`<a class="name" href=${href("queues", each.name)}>${each.name}</a>`],
            ["Given up", (each) => each.size, { number: true }],
          ]} />
        <//>`}
        <${Card} title="Failing now" flush aside=${of && html`<span class="hint">${of.counted.toLocaleString()} queues counted</span>`}>
          <${Loaded} from=${counts}>${() => html`<${Table} label="Failing now" rows=${of.failing} keyed=${(each) => each.name} empty="No push queue has a failing delivery." columns=${[
            ["Queue", (each) => html`<a class="name" href=${href("queues", each.name)}>${each.name}</a>`],
            ["Failing", (each) => each.size, { number: true }],
            ["Oldest", (each) => html`<${Time} at=${of.oldest.find((other) => other.queue === each.name)?.at} />`],
            ["Tried again", (each) => `${each.retries === 1 ? "once" : `${each.retries} times`}, ${each.retries_delay} s apart`],
          ]} />`}<//>
        <//>
      <//>`;
    }}<//>
  <//>`;
}
