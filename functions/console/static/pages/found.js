// Messages of all protocols as a search or the list of events shows them, and sending them again from there.
import * as ironmq from "../ironmq.js";
import * as hub from "../hub.js";
import * as webhooks from "../webhooks.js";
import { Badge, Confirmed, Table, Time, counted, shorten, toast } from "../parts.js";
import { href } from "../route.js";
import { html } from "../view.js";

export const OF = { queue: (one) => `Queue ${one.queue}`, application: (one) => `Application ${one.application_name ?? one.application}`, store: () => "Store", topic: (one) => `Topic ${one.topic}` };
export const LINK = {
  queue: (one) => href("queues", one.queue, "messages", one.message_id),
  application: (one) => (webhooks.isStream(one.application) ? href("streams", one.application, "events") : href("apps", one.application, "messages", one.message_id)),
  store: (one) => href("store", "messages", one.message_id),
  topic: () => href("topics"),
};

/** States from which a receiver can be sent a message again. */
const GIVEN_UP = { queue: ["exhausted"], application: ["exhausted", "held"], store: ["parked", "failing"] };

/** Whom a message can be sent again, among its receivers. */
export const owed = (one) => one.deliveries.filter((each) => GIVEN_UP[one.kind]?.includes(each.state));

const AGAIN = {
  queue: (one, to) => ironmq.replay(one.queue, { subscriber: to.subscriber_id, message_ids: [one.message_id] }),
  application: (one, to) => webhooks.messages.resend(one.application, one.message_id, to.subscriber_id),
  store: (one) => hub.decide(one.message_id, "attempt_now"),
};

/** Sends messages again to those that gave them up, a few at a time, and says how it went. */
export async function sendAgain(messages, after) {
  const all = messages.flatMap((one) => owed(one).map((to) => [one, to]));
  let failed = 0;
  for (let start = 0; start < all.length; start += 4) {
    const told = await Promise.allSettled(all.slice(start, start + 4).map(([one, to]) => AGAIN[one.kind](one, to)));
    failed += told.filter((each) => each.status === "rejected").length;
  }
  toast(failed ? `Sent ${all.length - failed} again; ${failed} could not be.` : `Sent again: ${counted(all.length, "delivery", "deliveries")}.`);
  await after();
}

/** A button that sends messages again; nothing where none was given up. */
export function Again({ messages, after, name = "Send again" }) {
  const all = messages.flatMap(owed);
  if (!all.length) return null;
  const names = [...new Set(all.map((each) => each.subscriber_name))];
  return html`<${Confirmed} name=${name} kind="" sure="Send again" question=${`Send ${counted(all.length, "delivery", "deliveries")} again?`}
    detail=${`Only to those that gave up or wait for a person: ${names.slice(0, 10).join(", ")}${names.length > 10 ? " and others" : ""}.`} onSure=${() => sendAgain(messages, after)} />`;
}

/** A table of messages. */
export function Messages({ label, rows, empty, after, first = [] }) {
  return html`<${Table} label=${label} rows=${rows} keyed=${(one) => `${one.kind} ${one.queue ?? one.application ?? one.topic} ${one.message_id}`} empty=${empty} columns=${[
    ...first,
    ["Message", (one) => html`<a class=${one.type ? "name" : "name id"} href=${LINK[one.kind](one)}>${one.type || one.message_id}</a>`],
    ["Of", (one) => html`<span class="name">${OF[one.kind](one)}${one.field ? `, ${one.field}` : ""}</span>`],
    ["State", (one) => (one.deliveries.length ? html`<span class="stack">${one.deliveries.slice(0, 5).map((each) => html`<span>${each.subscriber_name && html`${shorten(each.subscriber_name, 40)} `}<${Badge} state=${each.state} /></span>`)}${one.deliveries.length > 5 && html`<span>and ${one.deliveries.length - 5} more</span>`}</span>` : html`<${Badge} state=${one.state} />`)],
    ["What it says", (one) => html`<span class="mono">${shorten(one.excerpt, 120)}</span>`],
    ["Accepted", (one) => html`<${Time} at=${one.accepted_at} />`],
    ["", (one) => html`<span class="actions"><${Again} messages=${[one]} after=${after} /></span>`],
  ]} />`;
}
