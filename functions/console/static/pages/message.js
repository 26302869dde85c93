// The life of a message in an IronMQ queue: what it says, whom it went to, what they answered, what comes next.
import * as ironmq from "../ironmq.js";
import { Body, Card, Confirmed, Copy, Doing, duration, Facts, FanOut, Loaded, Page, Time, Timeline, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html } from "../view.js";

export function QueueMessage({ segments: [name, , id] }) {
  const message = useLoad(async (signal) => {
    const [shown, queue] = await Promise.all([ironmq.showMessage(name, id, signal), ironmq.showQueue(name, signal)]);
    return { shown, queue };
  }, [name, id], { every: 5000 });
  const again = async (shown) => {
    const [copy] = await ironmq.postMessages(name, [{ body: shown.body }]);
    toast(`Posted again as ${copy}.`);
    go("queues", name, "messages", copy);
  };
  const remove = async () => {
    await ironmq.deleteMessage(name, id);
    toast("Deleted with its body.");
    go("queues", name);
  };
  return html`<${Page} title="Message ${id}" crumbs=${[["Queues", href("queues")], [name, href("queues", name)]]}
    actions=${message.data && html`<${Fragment}>
      ${message.data.shown.body_base64 === undefined && html`<${Doing} name="Post again" onDo=${() => again(message.data.shown)} />`}
      <${Confirmed} name="Delete" question="Delete this message?" detail="It is no longer pushed, and its body is deleted." onSure=${remove} />
    <//>`}>
    <${Loaded} from=${message}>${({ shown, queue }) => html`<${Fragment}>
      <div class="columns">
        <div class="stack">
          ${shown.push_statuses && html`<${Card} title="Where it goes">
            <${FanOut} from=${name} branches=${shown.push_statuses.map((each) => branch(each))} />
          <//>`}
          <${Card} title="Body" aside=${html`<${Copy} text=${id} name="Copy id" />`}>
            <${Body} text=${shown.body} />
          <//>
        </div>
        ${shown.push_statuses && html`<${Card} title="Its life">
          <${Timeline} label="Its life" items=${life(id, shown.push_statuses, queue)} />
        <//>`}
      </div>
      ${!shown.push_statuses && html`<${Card} title="In the queue"><${Facts} of=${[["Reserved", `${shown.reserved_count} times`]]} /><//>`}
    <//>`}<//>
  <//>`;
}

function branch(status) {
  const answered = status.status_code === undefined ? "" : status.status_code ? `HTTP ${status.status_code}` : "no answer";
  return { name: status.subscriber_name || "a removed subscriber", state: status.state, detail: [answered, status.tries ? `${status.tries} ${status.tries === 1 ? "try" : "tries"}` : ""].filter(Boolean).join(" · ") };
}

/** What is known of a message's life, in order: each subscriber's last try, and the next one. */
function life(id, statuses, queue) {
  const told = statuses
    .filter((each) => each.last_try_at)
    .map((each) => ({
      kind: { delivered: "good", acknowledged: "good", reserved: "warn" }[each.state] ?? "bad",
      what: `${each.subscriber_name || "A removed subscriber"}: ${each.status_code ? `HTTP ${each.status_code}` : "no answer"}`,
      at: each.last_try_at,
      detail: html`${each.tries === 1 ? "First try" : `Try ${each.tries}`} of at most ${each.tries + each.retries_remaining}. ${each.msg}`,
    }))
    .sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  const ahead = statuses
    .filter((each) => ["pending", "retrying", "reserved"].includes(each.state))
    .map((each) => ({
      kind: "ahead",
      what: each.tries ? `${each.subscriber_name}: the next try` : `${each.subscriber_name || "A removed subscriber"}: the first try`,
      at: each.next_try_at,
      detail: why(each, queue),
    }));
  const given = statuses
    .filter((each) => each.state === "exhausted")
    .map((each) => ({
      kind: "bad",
      what: `${each.subscriber_name}: given up`,
      detail: queue.push?.error_queue
        ? html`Its tries are used up. A message in <a href=${href("queues", queue.push.error_queue)}>${queue.push.error_queue}</a> tells of it.`
        : "Its tries are used up, and the queue has no error queue.",
    }));
  return [{ kind: "accent", what: "Accepted", at: acceptedAt(id), detail: "Stored, to be delivered to its subscribers." }, ...told, ...given, ...ahead];
}

/** Why the next try is when it is. */
function why(status, queue) {
  if (!status.tries || !status.last_try_at) return "It waits for its turn.";
  const waits = (Date.parse(status.next_try_at) - Date.parse(status.last_try_at)) / 1000;
  if (status.state === "reserved") return `Reserved for ${duration(waits)}: without an acknowledgement by then it counts as failed.`;
  const asked = Math.abs(waits - (queue.push?.retries_delay ?? waits)) < 2 ? "The queue waits" : "Asked for by its policy or its answer";
  return `${asked} ${duration(waits)} after the end of a try; ${status.retries_remaining} left.`;
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
