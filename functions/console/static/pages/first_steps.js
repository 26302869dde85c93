// The first steps of a new project, on today's page: each is ticked off by what the project has, and the card goes with the last.
import * as ironmq from "../ironmq.js";
import { Card, useLoad } from "../parts.js";
import { href } from "../route.js";
import { session } from "../session.js";
import { kept } from "../storage.js";
import { html } from "../view.js";
import * as webhooks from "../webhooks.js";

const KEY = () => `pushhub.first-steps.${session().project}`;

/** What is done, by what the page knows already; what it does not know is asked when it is next, in one request. */
async function look(hours, counted, signal) {
  const some = (name) => hours.some((each) => each[name] > 0);
  const done = { place: counted > 0 || some("accepted"), posted: some("accepted"), delivered: some("delivered"), alert: false };
  if (!done.place) done.place = (await webhooks.applications.list("", signal)).data.length > 0;
  else if (done.delivered) done.alert = (await ironmq.listAlerts(signal)).length > 0;
  return done;
}

const STEPS = [
  ["place", "Make a place for messages", html`<a href=${href("queues")}>A queue</a>, <a href=${href("apps")}>an application</a> for webhooks, or <a href=${href("store", "mappings")}>a mapping</a> of the store.`],
  ["posted", "Post a message", "The button is on the page of each; clients of IronMQ, Svix and the hub protocol work as they are."],
  ["delivered", "See it delivered", "Its page shows each attempt with the answer. Counted here a minute or two later."],
  ["alert", "Be told when something fails", html`<a href=${href("alerts")}>An alert</a> tells Slack, PagerDuty or any URL.`],
];

/** `hours` are those of the last day; `counted` is how many queues there are, once it is known. */
export function FirstSteps({ hours, counted }) {
  return kept.get(KEY()) || counted === undefined ? null : html`<${Steps} hours=${hours} counted=${counted} />`;
}

function Steps({ hours, counted }) {
  const from = useLoad((signal) => look(hours, counted, signal), [JSON.stringify(hours), counted]);
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
