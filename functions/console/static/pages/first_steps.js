// The first steps of a new project, on today's page: each is ticked off by what the project has, and the card goes with the last.
import * as hub from "../hub.js";
import * as ironmq from "../ironmq.js";
import { Card, useLoad } from "../parts.js";
import { href } from "../route.js";
import { session } from "../session.js";
import { kept } from "../storage.js";
import { html } from "../view.js";
import * as webhooks from "../webhooks.js";

const WEEK_H = 168;
const KEY = () => `pushhub.first-steps.${session().project}`;

async function look(signal) {
  const [queues, applications, mappings, hours, alerts] = await Promise.all([
    ironmq.listQueues({ per_page: 1 }, signal),
    webhooks.applications.list("", signal),
    hub.things.list("mappings", signal),
    ironmq.activity(WEEK_H, signal),
    ironmq.listAlerts(signal),
  ]);
  const some = (name) => hours.some((each) => each[name] > 0);
  return { place: queues.length > 0 || applications.data.length > 0 || mappings.length > 0, posted: some("accepted"), delivered: some("delivered"), alert: alerts.length > 0 };
}

const STEPS = [
  ["place", "Make a place for messages", html`<a href=${href("queues")}>A queue</a>, <a href=${href("apps")}>an application</a> for webhooks, or <a href=${href("store", "mappings")}>a mapping</a> of the store.`],
  ["posted", "Post a message", "The button is on the page of each; clients of IronMQ, Svix and the hub protocol work as they are."],
  ["delivered", "See it delivered", "Its page shows each attempt with the answer. Counted here a minute or two later."],
  ["alert", "Be told when something fails", html`<a href=${href("alerts")}>An alert</a> tells Slack, PagerDuty or any URL.`],
];

export function FirstSteps() {
  return kept.get(KEY()) ? null : html`<${Steps} />`;
}

function Steps() {
  const from = useLoad(look, [], { every: 30_000 });
  const done = from.data;
  if (!done || kept.get(KEY())) return null;
  if (STEPS.every(([name]) => done[name])) {
    kept.set(KEY(), "done");
    return null;
  }
  const close = () => {
    kept.set(KEY(), "closed");
    from.reload({ quietly: true });
  };
  return html`<${Card} title="First steps" aside=${html`<button type="button" class="plain" onClick=${close}>Do not show this again</button>`}>
    <ol class="first-steps">
      ${STEPS.map(([name, what, how]) => html`<li key=${name} class=${done[name] ? "done" : ""}>
        <span aria-hidden="true">${done[name] ? "✓" : "○"}</span>
        <div><strong>${what}</strong><span class="visually-hidden">${done[name] ? " (done)" : " (to do)"}</span>${!done[name] && html`<p class="hint">${how}</p>`}</div>
      </li>`)}
    </ol>
  <//>`;
}
