// IronMQ queues: the list, one queue with its messages, subscribers and settings.
import * as ironmq from "../ironmq.js";
import { asWritten } from "../http.js";
import { Ahead, Badge, Card, Confirmed, counted, DayAtSubscriber, Dialog, Doing, Facts, Field, Figures, Form, Loaded, Notice, Page, Pager, Table, Tabs, Time, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import { HealthBadge, HealthNotice, isWell, waiting } from "../health.js";
import { Demands, subscriberOf, withoutGates } from "./gates.js";
import { Outages } from "./outages.js";

const TYPES = [["multicast", "Push to every subscriber (multicast)"], ["unicast", "Push to one of the subscribers (unicast)"], ["pull", "Pull: consumers reserve messages"]];

export function Queues({ query }) {
  const prefix = query.prefix ?? "";
  const previous = query.previous ?? "";
  const [making, setMaking] = useState(false);
  const [typed, setTyped] = useState(prefix);
  const list = useLoad(async (signal) => {
    const shown = await ironmq.listQueues({ prefix, previous, health: true }, signal);
    return { shown, next: shown.length === ironmq.PAGE ? shown.at(-1).name : null };
  }, [prefix, previous], { every: 15_000 });
  const search = (event) => {
    event.preventDefault();
    go("queues", { prefix: typed });
  };
  return html`<${Page} title="Queues" lead="Push queues deliver each message to their subscribers; pull queues keep it until a consumer takes it."
    actions=${html`<button class="primary" type="button" onClick=${() => setMaking(true)}>New queue</button>`}>
    <form class="filter" role="search" onSubmit=${search}>
      <div class="field"><label for="prefix">Name begins with</label><input id="prefix" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></div>
      <button type="submit">Find</button>
    </form>
    <${Loaded} from=${list}>${({ shown, next }) => html`<${Fragment}>
      <section class="card">
        <${Table} label="Queues" rows=${shown} keyed=${(queue) => queue.name}
          empty=${prefix || previous ? "No queue's name begins like this." : "No queues yet. Create one, or post to a name, which creates a pull queue."}
          columns=${[
            ["Queue", (queue) => html`<a class="name" href=${href("queues", queue.name)}>${queue.name}</a>`],
            ["Type", (queue) => queue.type],
            ["State", (queue) => (queue.health ? html`<${HealthBadge} health=${queue.health} />` : "–")],
            ["Since", (queue) => html`<${Time} at=${queue.health?.since} />`],
            ["Waiting", (queue) => waiting(queue), { number: true }],
            ["Subscribers", (queue) => queue.subscribers || "–", { number: true }],
          ]} />
      </section>
      <${Pager} loading=${list.loading} onFirst=${previous && (() => go("queues", { prefix }))} onNext=${next && (() => go("queues", { prefix, previous: next }))} />
    <//>`}<//>
    ${making && html`<${NewQueue} onClose=${() => setMaking(false)} />`}
  <//>`;
}

const PUSHES = (values) => values.type !== "pull";
const number = (text) => (text === "" || text === undefined ? undefined : Number(text));

/** Settings of a queue as a form's fields; the API's names stand in its refusals. */
const SETTINGS = [
  { name: "retries", label: "Retries", type: "number", hint: "Attempts after the first, 0 to 100. Default: 3.", when: PUSHES, api: ["retries"] },
  { name: "retries_delay", label: "Seconds between attempts", type: "number", hint: "3 to 86400. Default: 60.", when: PUSHES, api: ["retries_delay"] },
  { name: "error_queue", label: "Error queue", hint: "The queue that gets a message when a delivery has used up its attempts.", when: PUSHES, api: ["error_queue"] },
  { name: "eager", label: "Eager: a post sends the first orders itself", type: "check", hint: "Faster on AWS, for one more SQS message a delivery.", when: PUSHES, api: ["eager"] },
  { name: "search_fields", label: "Fields to find messages by", type: "long", hint: "At most 3, one per line: a path in the JSON body (order.id), or header:NAME. Each costs a write a message, for messages posted from now on.", api: ["search_fields"] },
  { name: "message_timeout", label: "Length of a reservation, seconds", type: "number", hint: "1 to 86400. Default: 60.", when: (values) => !PUSHES(values), api: ["message_timeout"] },
  { name: "message_expiration", label: "Lifetime of a message, seconds", type: "number", hint: "1 to 2592000. Default: a week.", api: ["message_expiration"] },
];

const lines = (text) => String(text ?? "").split("\n").map((line) => line.trim()).filter(Boolean);

function settingsOf(values, subscribers) {
  return {
    message_expiration: number(values.message_expiration),
    search_fields: lines(values.search_fields),
    ...(PUSHES(values)
      ? { push: { ...(subscribers ? { subscribers } : {}), retries: number(values.retries), retries_delay: number(values.retries_delay), error_queue: values.error_queue, eager: Boolean(values.eager) } }
      : { message_timeout: number(values.message_timeout) }),
  };
}

function NewQueue({ onClose }) {
  const make = async (values) => {
    const subscribers = [{ name: values.subscriber, url: values.url }];
    await ironmq.putQueue(values.name, { type: values.type, ...settingsOf(values, subscribers) });
    toast(`Queue ${values.name} created.`);
    go("queues", values.name);
  };
  const fields = [
    { name: "name", label: "Name", required: true, api: ["queue name", "name"] },
    { name: "type", label: "Type", type: "choice", options: TYPES },
    { name: "url", label: "First subscriber's URL", type: "url", placeholder: "https://example.com/hook", when: PUSHES, api: ["url", "address", "host", "target"] },
    { name: "subscriber", label: "Its name", when: PUSHES, api: ["subscriber's name", "subscribers"] },
    ...SETTINGS,
  ];
  return html`<${Dialog} title="New queue" onClose=${onClose}>
    <${Form} fields=${fields} values=${{ type: "multicast", subscriber: "first" }} submit="Create the queue" onSubmit=${make} onCancel=${onClose} />
  <//>`;
}

/** Notices of subscribers above a queue; the list of subscribers has them all. */
const MOST_NOTICES = 3;

const TABS = [["", "Messages"], ["given-up", "Given up"], ["subscribers", "Subscribers"], ["settings", "Settings"]];
const OF_PUSH = new Set(["given-up", "subscribers"]);

export function Queue({ segments: [name, tab = ""], query }) {
  const queue = useLoad(async (signal) => {
    const shown = await ironmq.showQueue(name, signal);
    const [given, health] = shown.push ? await Promise.all([ironmq.givenUp(name, signal), ironmq.health(name, signal)]) : [null, { subscribers: [] }];
    return { ...shown, given, health };
  }, [name], { every: 10_000 });
  const [posting, setPosting] = useState(false);
  const posted = () => {
    setPosting(false);
    queue.reload({ quietly: true });
  };
  const tabs = TABS.filter(([key]) => !OF_PUSH.has(key) || queue.data?.push).map(([key, label]) => [key, label, key ? href("queues", name, key) : href("queues", name)]);
  return html`<${Page} title=${name} lead=${Object.fromEntries(TYPES)[queue.data?.type]} crumbs=${[["Queues", href("queues")]]}
    actions=${html`<button class="primary" type="button" onClick=${() => setPosting(true)}>Post a message</button>`}>
    <${Loaded} from=${queue}>${(shown) => html`<${Fragment}>
      <${Figures} of=${[["Waiting", shown.push ? waiting(shown.health) : shown.size], ...(shown.push ? givenFigures(name, shown) : []), ["Ever posted", shown.total_messages], ...(shown.push ? [["Subscribers", html`<a href=${href("queues", name, "subscribers")}>${shown.push.subscribers.length}</a>`]] : [])]} />
      ${shown.health.subscribers.filter((each) => !isWell(each.health)).slice(0, MOST_NOTICES).map((each) => html`<${HealthNotice} key=${each.name} health=${each.health} who=${html`<a href=${href("queues", name, "subscribers", each.name)}>${each.name}</a>`} />`)}
      <${Tabs} label="Parts of the queue" current=${tab} tabs=${tabs} />
      ${tab === "" && html`<${Messages} queue=${shown} key=${shown.id} />`}
      ${tab === "given-up" && shown.push && html`<${GivenUp} queue=${shown} query=${query} />`}
      ${tab === "subscribers" && shown.push && html`<${Subscribers} queue=${shown} reload=${queue.reload} />`}
      ${tab === "settings" && html`<${Settings} queue=${shown} reload=${queue.reload} />`}
    <//>`}<//>
    ${posting && html`<${Post} name=${name} onClose=${() => setPosting(false)} onPosted=${posted} />`}
  <//>`;
}

const orMore = ({ count, more }) => `${count.toLocaleString()}${more ? " or more" : ""}`;

function givenFigures(name, { given, push }) {
  const errors = push.error_queue && ["Error queue", html`<a class="name" href=${href("queues", push.error_queue)}>${push.error_queue}</a>`];
  return [["Given up", html`<a href=${href("queues", name, "given-up")}>${orMore(given)}</a>`], ...(errors ? [errors] : [])];
}

/** Deliveries that have used up their attempts, oldest first. */
function GivenUp({ queue, query }) {
  const list = useLoad((signal) => ironmq.deliveries(queue.name, { state: "exhausted", after: query.after }, signal), [queue.name, query.after]);
  const here = new Set(queue.push.subscribers.map((each) => each.name));
  return html`<${Card} title="Given up" flush aside=${html`<button type="button" onClick=${() => list.reload()}>Refresh</button>`}>
    <${Loaded} from=${list}>${({ deliveries: rows, after }) => html`<${Fragment}>
      <${Table} label="Given up" rows=${rows} keyed=${(each) => `${each.message_id} ${each.subscriber_name}`} empty="Every delivery has arrived, is still tried, or has expired." columns=${[
        ["Message", (each) => html`<a class="mono" href=${href("queues", queue.name, "messages", each.message_id)}>${each.message_id}</a>`],
        ...fieldColumns(queue),
        ["Subscriber", (each) => (here.has(each.subscriber_name) ? html`<a class="name" href=${href("queues", queue.name, "subscribers", each.subscriber_name)}>${each.subscriber_name}</a>` : each.subscriber_name || "removed")],
        ["Accepted", (each) => html`<${Time} at=${each.accepted_at} />`],
        ["Last answer", (each) => html`<span class="answer">${each.status_code ? `HTTP ${each.status_code}` : "no answer"}</span>`],
        ["Attempts", (each) => each.tries, { number: true }],
      ]} />
      <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.after && (() => go("queues", queue.name, "given-up"))} onNext=${after && (() => go("queues", queue.name, "given-up", { after }))} /></div>
    <//>`}<//>
  <//>`;
}

function Messages({ queue }) {
  const list = useLoad((signal) => ironmq.peek(queue.name, signal), [queue.name], { every: 10_000 });
  const push = Boolean(queue.push);
  return html`<${Card} title=${push ? "Failed, to be retried" : "In the queue"} flush
    aside=${html`<button type="button" onClick=${() => list.reload()}>Refresh</button>`}>
    <${Loaded} from=${list}>${(messages) => html`<${Table} label="Messages" rows=${messages} keyed=${(each) => each.id}
      empty=${!push ? "The queue is empty." : queue.given.count ? html`No delivery waits to be retried. <a href=${href("queues", queue.name, "given-up")}>${counted(queue.given.count, "delivery was", "deliveries were")} given up</a>` : "Nothing failed. Use Search to find a message that has arrived."}
      columns=${[
        ["Message", (each) => html`<a class="mono" href=${href("queues", queue.name, "messages", each.id)}>${each.id}</a>`],
        ...(queue.search_fields ?? []).filter((field) => !field.startsWith("header:")).map((field) => [field, (each) => html`<span class="name">${valueAt(each.body, field)}</span>`]),
        ["Body", (each) => html`<span class="snippet">${String(each.body).slice(0, 200)}</span>`],
        ["Reserved", (each) => `${each.reserved_count ?? 0} times`],
      ].filter(([label]) => !push || label !== "Reserved")} />
    `}<//>
  <//>`;
}

/** The value of a field of a JSON body, as the hub finds it. */
function valueAt(body, field) {
  let value;
  try {
    value = JSON.parse(body, asWritten);
  } catch {
    return "–";
  }
  value = Object.hasOwn(Object(value), field) ? value[field] : field.split(".").reduce((at, name) => (at !== null && typeof at === "object" && Object.hasOwn(at, name) ? at[name] : undefined), value);
  return value === undefined || value === null || (typeof value === "object" && !JSON.isRawJSON?.(value)) ? "–" : String(value.rawJSON ?? value);
}

/** Columns for the named fields of a queue, of a list that has their values. */
const fieldColumns = (queue) => (queue.search_fields ?? []).map((field) => [field, (each) => html`<span class="name">${each.fields?.[field] ?? "–"}</span>`]);

function Post({ name, onClose, onPosted }) {
  const send = async (values) => {
    const [id] = await ironmq.postMessages(name, [{ body: values.body ?? "", delay: number(values.delay) }]);
    toast(`Accepted as ${id}.`);
    onPosted();
    go("queues", name, "messages", id);
  };
  const fields = [
    { name: "body", label: "Body", type: "long", hint: "Any text; subscribers get exactly this.", api: ["body", "messages"] },
    { name: "delay", label: "Seconds to wait first", type: "number", hint: "0 to 604800.", api: ["delay"] },
  ];
  return html`<${Dialog} title="Post to ${name}" onClose=${onClose}>
    <${Form} fields=${fields} submit="Post" onSubmit=${send} onCancel=${onClose} />
  <//>`;
}

function Subscribers({ queue, reload }) {
  const [edited, setEdited] = useState(null);
  const remove = async (subscriber) => {
    await ironmq.removeSubscriber(queue.name, subscriber.name);
    toast(`${subscriber.name} is removed.`);
    await reload({ quietly: true });
  };
  const done = async () => {
    await reload({ quietly: true });
    setEdited(null);
  };
  // Both lists are in the order of the queue.
  const healthOf = (each) => queue.health.subscribers[queue.push.subscribers.indexOf(each)]?.health;
  return html`<${Card} title="Subscribers" flush aside=${html`<button type="button" onClick=${() => setEdited({})}>Add a subscriber</button>`}>
    <${Table} label="Subscribers" rows=${queue.push.subscribers} keyed=${(each) => each.name} columns=${[
      ["Name", (each) => html`<a class="name" href=${href("queues", queue.name, "subscribers", each.name)}>${each.name}</a>`],
      ["State", (each) => healthOf(each) && html`<${HealthBadge} health=${healthOf(each)} />`],
      ["Waiting", (each) => (healthOf(each) ? waiting(healthOf(each)) : "–"), { number: true }],
      ["URL", (each) => html`<span class="mono">${each.url}</span>`],
      ["Headers", (each) => Object.keys(each.headers ?? {}).join(", ") || "–"],
      ["", (each) => html`<span class="actions">
        <button type="button" class="plain" aria-label="Edit ${each.name}" onClick=${() => setEdited(each)}>Edit</button>
        <${Confirmed} name="Remove" question="Remove ${each.name}?" detail="It gets no more messages from this queue." onSure=${() => remove(each)} />
      </span>`],
    ]} />
    ${edited && html`<${EditSubscriber} queue=${queue} subscriber=${edited} onClose=${() => setEdited(null)} onDone=${done} />`}
  <//>`;
}

const MOST_PAGES = 10;
const HOURS = 24;

/** Deliveries of a queue to one subscriber in a state, oldest first, as far as some pages go. */
async function deliveriesTo(name, who, state, signal) {
  const found = [];
  let after = "";
  for (let page = 0; page < MOST_PAGES && after !== null; page++) {
    const told = await ironmq.deliveries(name, { state, after }, signal);
    found.push(...told.deliveries.filter((each) => each.subscriber_name === who));
    after = told.after;
  }
  return { found, all: after === null };
}

/** A subscriber of a push queue: how it does by hour, what fails there now, when that is tried again, and a replay of what it missed. */
export function QueueSubscriber({ segments: [name, , who] }) {
  const queue = useLoad(async (signal) => {
    const [told, { subscribers }] = await Promise.all([ironmq.showQueue(name, signal), ironmq.health(name, signal)]);
    return { ...told, health: subscribers.find((each) => each.name === who)?.health };
  }, [name, who], { every: 15_000 });
  const pause = async (paused) => {
    await (paused ? ironmq.pause(name, who) : ironmq.resume(name, who));
    toast(paused ? `${who} is paused.` : `${who} is resumed. What waits is sent within two minutes.`);
    await queue.reload({ quietly: true });
  };
  const owed = useLoad(async (signal) => {
    const [retrying, reserved, exhausted] = await Promise.all(["retrying", "reserved", "exhausted"].map((state) => deliveriesTo(name, who, state, signal)));
    return { ahead: [...retrying.found, ...reserved.found], missed: exhausted.found, all: retrying.all && reserved.all && exhausted.all };
  }, [name, who]);
  const activity = useLoad((signal) => ironmq.atSubscriber(who, name, HOURS, signal), [name, who], { every: 60_000 });
  const shown = queue.data?.push?.subscribers.find((each) => each.name === who);
  return html`<${Page} title=${who} crumbs=${[["Queues", href("queues")], [name, href("queues", name)], ["Subscribers", href("queues", name, "subscribers")]]}
    actions=${html`<${Fragment}>${shown && queue.data.type === "multicast" && (shown.paused
      ? html`<${Doing} name="Resume" onDo=${() => pause(false)} />`
      : html`<${Confirmed} name="Pause" kind="" question="Pause ${who}?" detail="Nothing is sent to it until you resume it. What it is owed waits, uses up no attempts, and expires with its messages." onSure=${() => pause(true)} />`)}
      <a class="button" href=${href("charts", { queue: name, subscriber: who })}>Charts</a>
      <button type="button" onClick=${() => owed.reload()}>Refresh</button><//>`}>
    ${queue.data?.health && html`<${HealthNotice} health=${queue.data.health} />`}
    <${Loaded} from=${queue}>${() => (shown ? html`<${Card} title="Where it is"><${Facts} of=${[["State", queue.data.health && html`<${HealthBadge} health=${queue.data.health} />`], ["Waiting", queue.data.health && waiting(queue.data.health)], ["URL", html`<span class="mono">${shown.url}</span>`], ["Headers", Object.keys(shown.headers ?? {}).join(", ")]]} /><${Demands} of=${subscriberOf(name, shown)} onDone=${() => queue.reload({ quietly: true })} /><//>` : html`<${Notice} kind="warn">The queue has no subscriber with this name (any more).<//>`)}<//>
    <${Loaded} from=${activity}>${(told) => html`<${DayAtSubscriber} told=${told} />`}<//>
    <${Outages} queue=${name} subscriber=${who} />
    <${Loaded} from=${owed}>${({ ahead, missed, all }) => html`<${Fragment}>
      ${!all && html`<${Notice}>From the oldest deliveries in the queue that wait or were given up; there are more.<//>`}
      <div class="columns">
        <${Card} title="Retries ahead">${ahead.length ? html`<${Ahead} times=${ahead.filter((each) => each.next_try_at).map((each) => each.next_try_at)} />` : html`<p class="hint">No retry is planned.</p>`}<//>
        <${Replay} queue=${name} subscriber=${who} onDone=${() => owed.reload({ quietly: true })} />
      </div>
      <${Unaccepted} queue=${name} settings=${queue.data ?? {}} subscriber=${who} rows=${[...ahead, ...missed].slice(0, 100)} onDone=${() => owed.reload({ quietly: true })} />
    <//>`}<//>
  <//>`;
}

/** Deliveries that a subscriber has not accepted; those that were given up can be chosen and sent again. */
function Unaccepted({ queue, settings, subscriber, rows, onDone }) {
  const [chosen, setChosen] = useState(new Set());
  const given = rows.filter((each) => each.state === "exhausted").map((each) => each.message_id);
  const picked = given.filter((each) => chosen.has(each));
  const pick = (ids, on) => setChosen((before) => {
    const after = new Set(before);
    for (const each of ids) after[on ? "add" : "delete"](each);
    return after;
  });
  const resend = async () => {
    const { replayed } = await ironmq.replay(queue, { subscriber, message_ids: picked });
    toast(`${counted(replayed, "message")} sent again.`);
    setChosen(new Set());
    onDone();
  };
  return html`<${Card} title="What it has not accepted" flush aside=${given.length > 0 && html`<${Fragment}>
      <button type="button" class="plain" onClick=${() => pick(given, picked.length < given.length)}>${picked.length < given.length ? `Choose all ${given.length}` : "Choose none"}</button>
      <${Confirmed} name="Send again what is chosen" kind="" disabled=${!picked.length} sure="Send again" question="Send ${counted(picked.length, "message")} again to ${subscriber}?" detail="Each once, to this subscriber alone." onSure=${resend} />
    <//>`}>
    <${Table} label="What it has not accepted" rows=${rows} keyed=${(each) => each.message_id} empty="Nothing is failing here." columns=${[
      ["Choose", (each) => each.state === "exhausted" && html`<input type="checkbox" aria-label="Choose ${each.message_id}" checked=${chosen.has(each.message_id)} onChange=${(event) => pick([each.message_id], event.currentTarget.checked)} />`],
      ["Message", (each) => html`<a class="mono" href=${href("queues", queue, "messages", each.message_id)}>${each.message_id}</a>`],
      ...fieldColumns(settings),
      ["Accepted", (each) => html`<${Time} at=${each.accepted_at} />`],
      ["State", (each) => html`<${Badge} state=${each.state} />`],
      ["Last answer", (each) => html`<span class="answer">${each.status_code ? `HTTP ${each.status_code}` : each.tries ? "no answer" : "–"}</span>`],
      ["Attempts", (each) => each.tries, { number: true }],
      ["Next attempt", (each) => html`<${Time} at=${each.next_try_at} />`],
    ]} />
  <//>`;
}

/** Sends again what a subscriber missed, of all times or of one, page by page, after it said how many that are. */
function Replay({ queue, subscriber, onDone }) {
  const [said, setSaid] = useState("");
  const [most, setMost] = useState(null);
  const [done, setDone] = useState(null);
  const [between, setBetween] = useState({ since: "", until: "" });
  const set = (name) => (value) => setBetween((before) => ({ ...before, [name]: value }));
  const pages = async (dry_run, tell) => {
    const time = (text) => (text ? new Date(text).toISOString() : undefined);
    let found = 0;
    for (let after; after !== null; ) {
      const told = await ironmq.replay(queue, { subscriber, dry_run, after, since: time(between.since), until: time(between.until) });
      found += dry_run ? told.found : told.replayed;
      after = told.after;
      tell(found);
    }
    return found;
  };
  const count = async () => {
    const found = await pages(true, (so_far) => setSaid(`Counted ${so_far}.`));
    setMost(found);
    setSaid(found ? `${counted(found, "message was", "messages were")} given up and can still be delivered.` : "Nothing was given up that can still be delivered.");
    return found ? { question: `Send ${counted(found, "message")} again to ${subscriber}?`, detail: "Each once, to this subscriber alone." } : null;
  };
  const run = async () => {
    const sent = await pages(false, (so_far) => {
      setDone(so_far);
      setSaid(`${so_far} of ${most} sent again.`);
    });
    setDone(null);
    setSaid(`${counted(sent, "message is", "messages are")} sent again, once each.`);
    onDone();
  };
  return html`<${Card} title="Send again what was given up">
    <p class="hint">Messages whose attempts are used up get one more, as long as they have not expired.</p>
    <div class="row">
      <${Field} label="Accepted from" type="datetime-local" value=${between.since} onValue=${set("since")} />
      <${Field} label="Accepted before" type="datetime-local" value=${between.until} onValue=${set("until")} />
    </div>
    <div class="actions"><${Confirmed} name="Count and send again" sure="Send again" kind="" count=${count} onSure=${run} /></div>
    ${said && html`<p role="status">${said}</p>`}
    ${done !== null && html`<progress aria-label="Sent again" max=${most || undefined} value=${most ? done : undefined}></progress>`}
  <//>`;
}

function EditSubscriber({ queue, subscriber, onClose, onDone }) {
  const known = Boolean(subscriber.name);
  const save = async (values) => {
    await ironmq.putSubscriber(queue.name, { ...withoutGates(subscriber), name: values.name, url: values.url, headers: headersOf(values.headers) });
    toast(`${values.name} is saved.`);
    await onDone();
  };
  const fields = [
    { name: "name", label: "Name", required: true, disabled: known, api: ["name"] },
    { name: "url", label: "URL", type: "url", placeholder: "https://example.com/hook", required: true, api: ["url", "address", "host", "target"], hint: "Or on AWS: sqs://, sns://, events:// or lambda://REGION/ACCOUNT/NAME?role=ARN" },
    { name: "headers", label: "Headers", type: "long", hint: "One per line: Name: value", api: ["header", "headers"] },
  ];
  const values = { name: subscriber.name ?? "", url: subscriber.url ?? "", headers: Object.entries(subscriber.headers ?? {}).map(([key, value]) => `${key}: ${value}`).join("\n") };
  return html`<${Dialog} title=${known ? `Edit ${subscriber.name}` : "Add a subscriber"} onClose=${onClose}>
    <${Form} fields=${fields} values=${values} onSubmit=${save} onCancel=${onClose} />
  <//>`;
}

export function headersOf(text) {
  return Object.fromEntries(lines(text).map((line) => {
    const [name, ...value] = line.split(":");
    return [name.trim(), value.join(":").trim()];
  }));
}

function Settings({ queue, reload }) {
  const save = async (values) => {
    await ironmq.changeQueue(queue.name, settingsOf({ ...values, type: queue.type }));
    toast("Saved.");
    await reload({ quietly: true });
  };
  const values = { type: queue.type, message_timeout: queue.message_timeout, message_expiration: queue.message_expiration, search_fields: (queue.search_fields ?? []).join("\n"), ...(queue.push ?? {}), error_queue: queue.push?.error_queue ?? "" };
  return html`<div class="columns">
    <${Card} title="Settings">
      <${Form} fields=${SETTINGS} values=${values} onSubmit=${save} />
    <//>
    <${Card} title="What cannot be undone">
      <p class="hint">Clearing removes every waiting message; deliveries under way are not repeated. Deleting removes the queue too.</p>
      <div class="actions">
        <${Confirmed} name="Clear the queue" question="Clear ${queue.name}?" detail="Every message in it is removed." onSure=${async () => { await ironmq.clearQueue(queue.name); toast("Cleared."); await reload({ quietly: true }); }} />
        <${Confirmed} name="Delete the queue" question="Delete ${queue.name}?" detail="The queue and every message in it are removed." onSure=${async () => { await ironmq.deleteQueue(queue.name); toast(`${queue.name} is deleted.`); go("queues"); }} />
      </div>
    <//>
  </div>`;
}
