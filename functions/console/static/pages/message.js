// The life of a message in an IronMQ queue: what it says, whom it went to, what they answered, what comes next.
import * as ironmq from "../ironmq.js";
import { Badge, Body, Card, Confirmed, Copy, counted, duration, Facts, FanOut, Loaded, Page, Table, Time, Timeline, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html } from "../view.js";
import { Compared, curl } from "./attempts.js";

export function QueueMessage({ segments: [name, , id] }) {
  const message = useLoad(async (signal) => {
    const [shown, queue] = await Promise.all([ironmq.showMessage(name, id, signal), ironmq.showQueue(name, signal)]);
    const made = shown.push_statuses ? await ironmq.attempts(name, id, signal) : { attempts: [], forgotten: 0 };
    return { shown, queue, made };
  }, [name, id], { every: 5000 });
  const copy = async (shown) => {
    const [posted] = await ironmq.postMessages(name, [{ body: shown.body }]);
    toast(`Posted as ${posted}.`);
    go("queues", name, "messages", posted);
  };
  const resend = async (subscribers) => {
    const sent = await Promise.all(subscribers.map((subscriber) => ironmq.replay(name, { subscriber, message_ids: [id] })));
    const replayed = sent.reduce((total, each) => total + each.replayed, 0);
    toast(replayed ? `Sent again to ${counted(replayed, "subscriber")}.` : "Nothing was sent: it is no longer given up there.");
    await message.reload({ quietly: true });
  };
  const remove = async () => {
    await ironmq.deleteMessage(name, id);
    toast("Deleted with its body.");
    go("queues", name);
  };
  return html`<${Page} title="Message ${id}" crumbs=${[["Queues", href("queues")], [name, href("queues", name)]]}
    actions=${message.data && html`<${Fragment}>
      ${message.data.shown.body_base64 === undefined && html`<${Confirmed} name="Post a copy" kind="" question=${copyQuestion(message.data.queue)} sure="Post the copy" onSure=${() => copy(message.data.shown)}
        detail=${message.data.queue.push ? "It is a new message: those who have accepted this one get it too. To repeat a delivery that was given up, use Send again beside the subscriber." : "It is a new message at the end of the queue."} />`}
      <${Confirmed} name="Delete" question="Delete this message?" detail="It is no longer pushed, and its body is deleted." onSure=${remove} />
    <//>`}>
    <${Loaded} from=${message}>${({ shown, queue, made }) => html`<${Fragment}>
      ${shown.push_statuses && html`<${Subscribers} name=${name} queue=${queue} shown=${shown} statuses=${shown.push_statuses} resend=${resend} />`}
      <div class="columns">
        <div class="stack">
          ${shown.push_statuses && html`<${Card} title="Where it goes">
            <${FanOut} from=${name} branches=${shown.push_statuses.map((each) => branch(each))} />
          <//>`}
          <${Card} title="Body" aside=${html`<${Copy} text=${id} name="Copy id" />`}>
            <${Body} text=${shown.body} />
          <//>
        </div>
        ${shown.push_statuses && html`<${Card} title="History">
          <${Timeline} label="History" items=${life(id, shown.push_statuses, queue, made)} />
        <//>`}
      </div>
      <${Compared} attempts=${comparable(made)} />
      ${!shown.push_statuses && html`<${Card} title="In the queue"><${Facts} of=${[["Reserved", `${shown.reserved_count} times`]]} /><//>`}
    <//>`}<//>
  <//>`;
}

const copyQuestion = (queue) => {
  if (!queue.push) return `Post a copy to ${queue.name}?`;
  return queue.type === "unicast" ? "Post a copy to one of the subscribers?" : `Post a copy to ${counted(queue.push.subscribers.length, "subscriber")}?`;
};

const answerOf = (status) => (status.status_code === undefined ? "" : status.status_code ? `HTTP ${status.status_code}` : "no answer");

/** The request to a subscriber as a command; null where there is none. */
const curlOf = (subscriber, shown) => (shown.body_base64 === undefined ? curl(subscriber?.url, { ...subscriber?.headers, ...shown.push_headers }, shown.body) : null);

/** Attempts as they are compared. */
const comparable = ({ attempts }) => attempts.map((each) => ({
  of: each.subscriber_name,
  name: `${each.subscriber_name || "Subscriber without a name"}, attempt ${each.number}`,
  facts: { Began: new Date(each.started_at).toLocaleString(), Took: `${each.took_ms.toLocaleString()} ms`, Status: answerOf(each), Result: each.result, "In a line": each.msg, Answer: each.answer },
}));

/** Each subscriber of the message with what it answered, and a resend to those that did not accept it. */
function Subscribers({ name, queue, shown, statuses, resend }) {
  const here = new Set(queue.push?.subscribers.map((each) => each.name));
  const command = (each) => curlOf(queue.push?.subscribers.find((one) => one.name === each.subscriber_name && (one.name || one.url === each.url)), shown);
  // In unicast the message is not owed to any one of them.
  const failed = queue.type === "multicast" ? statuses.filter((each) => each.state === "exhausted" && each.subscriber_name && here.has(each.subscriber_name)).map((each) => each.subscriber_name) : [];
  return html`<${Card} title="Subscribers" flush
    aside=${failed.length > 1 && html`<${Confirmed} name="Send again to all ${failed.length}" kind="" sure="Send again" question="Send this message again to ${failed.length} subscribers?" detail=${`Only to those that gave it up: ${failed.join(", ")}.`} onSure=${() => resend(failed)} />`}>
    <${Table} label="Subscribers" rows=${statuses} columns=${[
      ["Subscriber", (each) => (each.subscriber_name && here.has(each.subscriber_name) ? html`<a class="name" href=${href("queues", name, "subscribers", each.subscriber_name)}>${each.subscriber_name}</a>` : each.subscriber_name || each.url || "removed")],
      ["State", (each) => html`<${Badge} state=${each.state} />`],
      ["Last answer", (each) => html`<span class="answer">${answerOf(each) || "–"}</span>`],
      ["Attempts", (each) => each.tries, { number: true }],
      ["", (each) => html`<span class="actions">${failed.includes(each.subscriber_name) && html`<${Confirmed} name="Send again" kind="" question="Send this message again to ${each.subscriber_name}?" detail="To this subscriber alone, once, at once. No other subscriber gets it." onSure=${() => resend([each.subscriber_name])} />`}${command(each) && html`<${Copy} text=${command(each)} name="Copy as curl" />`}</span>`],
    ]} />
  <//>`;
}

function branch(status) {
  const answered = answerOf(status);
  return { name: status.subscriber_name || "a removed subscriber", state: status.state, detail: [answered, status.tries ? `${status.tries} ${status.tries === 1 ? "attempt" : "attempts"}` : ""].filter(Boolean).join(" · ") };
}

const RESULTS = { delivered: "good", reserved: "warn", failed: "bad" };

/** A message's history in order: every attempt, and what comes next. */
function life(id, statuses, queue, { attempts, forgotten }) {
  const paused = new Set((queue.push?.subscribers ?? []).filter((each) => each.paused).map((each) => each.name));
  const told = attempts.map((each) => ({
    kind: RESULTS[each.result] ?? "",
    what: `${each.subscriber_name || "A removed subscriber"}: ${answerOf(each)}`,
    at: each.started_at,
    detail: html`Attempt ${each.number}${each.manual ? ", requested by a person" : ""}, ${each.took_ms.toLocaleString()} ms. ${each.msg}
      ${each.answer && html`<details><summary>The answer</summary><pre class="body" tabindex="0">${each.answer}</pre></details>`}`,
  }));
  if (forgotten) told.unshift({ what: `${counted(forgotten, "older attempt")}`, detail: "No longer shown here; the delivery records have them." });
  const ahead = statuses
    .filter((each) => ["pending", "retrying", "reserved"].includes(each.state))
    .map((each) => ({
      kind: "ahead",
      what: each.tries ? `${each.subscriber_name}: the next attempt` : `${each.subscriber_name || "A removed subscriber"}: the first attempt`,
      at: each.next_try_at,
      detail: paused.has(each.subscriber_name) ? "The subscriber is paused: this waits until it is resumed." : why(each, queue),
    }));
  const given = statuses
    .filter((each) => each.state === "exhausted")
    .map((each) => ({
      kind: "bad",
      what: `${each.subscriber_name}: given up`,
      detail: queue.push?.error_queue
        ? html`Its attempts are used up. A message in <a href=${href("queues", queue.push.error_queue)}>${queue.push.error_queue}</a> reports it.`
        : "Its attempts are used up, and the queue has no error queue.",
    }));
  return [{ kind: "accent", what: "Accepted", at: acceptedAt(id), detail: "Stored, to be delivered to its subscribers." }, ...told, ...given, ...ahead];
}

/** Why the next attempt is when it is. */
function why(status, queue) {
  if (!status.tries || !status.last_try_at) return "It is sent as soon as it is its turn.";
  const waits = (Date.parse(status.next_try_at) - Date.parse(status.last_try_at)) / 1000;
  if (status.state === "reserved") return `Reserved for ${duration(waits)}: without an acknowledgement by then it counts as failed.`;
  const asked = Math.abs(waits - (queue.push?.retries_delay ?? waits)) < 2 ? "The queue waits" : "Asked for by its policy or its answer";
  return `${asked} ${duration(waits)} after an attempt ended; ${counted(status.retries_remaining, "retry", "retries")} left.`;
}

// An id is 41 bits of milliseconds since 2020, from the first number of 19 digits on, then 22 bits that tell ids apart
// (pushhub/base/ids.py).
const LOW_BITS = 22n;
const FIRST_MS = 10n ** 18n >> LOW_BITS;
const EPOCH_MS = 1_577_836_800_000n;

/** When a message was accepted, by its id; null for what is none. */
export function acceptedAt(id) {
  if (!/^\d{19}$/.test(id)) return null;
  return new Date(Number((BigInt(id) >> LOW_BITS) - FIRST_MS + EPOCH_MS)).toISOString();
}
