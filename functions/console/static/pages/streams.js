// Streams: events that are kept in order, and the sinks that read them in batches (docs/streaming.md). In a portal, one stream.
import { Refused } from "../http.js";
import { Badge, Card, Confirmed, Copy, Dialog, Doing, Form, Loaded, Notice, Page, Pager, Table, Tabs, Time, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import { inPortal, streams } from "../webhooks.js";
import { orNull, words } from "./applications.js";
import { Editor, unlessForbidden } from "./transformation.js";

const STREAM = [
  { name: "name", label: "Name", required: true },
  { name: "uid", label: "Your own id for it (uid)", hint: "Letters, digits, - _ and dots. Can be used instead of its id everywhere." },
];

export function Streams({ query }) {
  const list = useLoad((signal) => streams.list(query.iterator, signal), [query.iterator]);
  const [making, setMaking] = useState(false);
  const make = async (values) => {
    const made = await streams.make({ name: values.name, uid: values.uid || null });
    toast(`${made.name} is there.`);
    go("streams", made.id);
  };
  return html`<${Page} title="Streams" lead="Events that are kept in order; sinks read them in batches."
    actions=${html`<button type="button" class="primary" onClick=${() => setMaking(true)}>New stream</button>`}>
    <${Card} flush>
      <${Loaded} from=${list}>${(told) => html`<${Table} label="Streams" rows=${told.data} keyed=${(each) => each.id} empty="No streams yet. Make one, then a sink: where its events are to be written." columns=${[
        ["Stream", (each) => html`<a href=${href("streams", each.id)}>${each.name}</a>`],
        ["Uid", (each) => each.uid ?? "–"],
        ["Id", (each) => html`<span class="mono">${each.id}</span>`],
        ["Made", (each) => html`<${Time} at=${each.createdAt} />`],
      ]} />`}<//>
      <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("streams"))} onNext=${list.data && !list.data.done && (() => go("streams", { iterator: list.data.iterator }))} /></div>
    <//>
    ${making && html`<${Dialog} title="New stream" onClose=${() => setMaking(false)}>
      <${Form} fields=${STREAM} submit="Make it" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

const above = (stream) => (inPortal() ? [] : [["Streams", href("streams")]]).concat(stream ? [[stream.name, href("streams", stream.id)]] : []);
const EVENT = [
  { name: "eventType", label: "Event type", required: true },
  { name: "payload", label: "Payload", type: "long", rows: 6, hint: "Any text." },
];

export function Stream({ segments: [id, tab = ""], query }) {
  const stream = useLoad((signal) => streams.show(id, signal), [id]);
  const [posting, setPosting] = useState(false);
  const remove = async () => {
    await streams.remove(id);
    toast("The stream is deleted.");
    go("streams");
  };
  const post = async (values) => {
    await streams.post(id, [{ eventType: values.eventType ?? "", payload: values.payload ?? "" }]);
    setPosting(false);
    toast("Posted. Sinks read it in some seconds.");
    go("streams", id, "events");
  };
  return html`<${Page} title=${stream.data?.name ?? "Stream"} crumbs=${above()}
    actions=${!inPortal() && html`<${Fragment}><button type="button" class="primary" onClick=${() => setPosting(true)}>Post an event</button>
      <${Confirmed} name="Delete" question="Delete this stream?" detail="Its sinks read nothing more." onSure=${remove} /><//>`}>
    <${Tabs} label="Parts of the stream" current=${tab} tabs=${[["", "Sinks", href("streams", id)], ["events", "Events", href("streams", id, "events")]]} />
    ${tab === "events" ? html`<${Events} id=${id} query=${query} />` : html`<${Sinks} id=${id} query=${query} />`}
    ${posting && html`<${Dialog} title="Post an event" onClose=${() => setPosting(false)}>
      <${Form} fields=${EVENT} values=${{ payload: "{}" }} submit="Post it" onSubmit=${post} onCancel=${() => setPosting(false)} />
    <//>`}
  <//>`;
}

function Events({ id, query }) {
  const list = useLoad((signal) => streams.events(id, query.iterator, signal), [id, query.iterator]);
  return html`<${Card} title="Events" flush aside=${html`<${Doing} name="Look again" onDo=${() => list.reload({ quietly: true })} />`}>
    <${Loaded} from=${list}>${(told) => html`<${Table} label="Events" rows=${told.data} keyed=${(each) => each.id} empty="No events yet." columns=${[
      ["Posted", (each) => html`<${Time} at=${each.timestamp} />`],
      ["Type", (each) => html`<span class="mono">${each.eventType}</span>`],
      ["Payload", (each) => html`<span class="mono">${JSON.stringify(each.payload).slice(0, 200)}</span>`],
      ["Id", (each) => html`<span class="mono">${each.id}</span>`],
    ]} />`}<//>
    <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("streams", id, "events"))} onNext=${list.data && !list.data.done && (() => go("streams", id, "events", { iterator: list.data.iterator }))} /></div>
  <//>`;
}

const TYPES = [["amazonS3", "Objects of S3"], ["kinesis", "Records of Kinesis"], ["http", "Requests to a URL"], ["sqs", "Messages of SQS"], ["sns", "Messages of SNS"], ["eventBridge", "Events of EventBridge"], ["poller", "Nobody: I read them by myself"]];
/** The field of each type that says where events go. */
const PLACES = {
  amazonS3: { name: "bucket", label: "Bucket" },
  kinesis: { name: "streamName", label: "Data stream" },
  http: { name: "url", label: "URL", placeholder: "https://example.com/events" },
  sqs: { name: "queueUrl", label: "URL of the queue", placeholder: "https://sqs.eu-west-1.amazonaws.com/111122223333/orders" },
  sns: { name: "topicArn", label: "ARN of the topic" },
  eventBridge: { name: "eventBusName", label: "ARN of the event bus" },
};
const onAws = ({ type }) => !["http", "poller"].includes(type);
const AWS = [
  { name: "region", label: "Region", hint: "Needed for buckets and data streams." },
  { name: "prefix", label: "Names of objects begin with", when: ({ type }) => type === "amazonS3" },
  { name: "roleArn", label: "Role (ARN)", hint: "Or a key, below." },
  { name: "accessKeyId", label: "Access key id" },
  { name: "secretAccessKey", label: "Secret access key", type: "password" },
  { name: "endpointUrl", label: "Where the service is called", hint: "AWS itself if left empty." },
];
const SINK = [
  { name: "type", label: "What it writes", type: "choice", options: TYPES },
  ...Object.entries(PLACES).map(([type, field]) => ({ ...field, when: (values) => values.type === type, required: true })),
  ...AWS.map((field) => ({ ...field, when: (values) => onAws(values) && (!field.when || field.when(values)) })),
  { name: "uid", label: "Your own id for it (uid)" },
  { name: "eventTypes", label: "Event types", hint: "One per line; all if left empty.", type: "long" },
  { name: "batchSize", label: "Events of a batch, at most", type: "number", hint: "100 if left empty." },
  { name: "maxWaitSecs", label: "Seconds that an event waits for others", type: "number", hint: "0 to 300." },
];
const whole = (text) => (text === "" || text === undefined || text === null ? null : Number(text));

function sinkOf(values) {
  const names = [PLACES[values.type]?.name, ...(onAws(values) ? AWS.map((each) => each.name) : [])];
  return {
    type: values.type,
    config: Object.fromEntries(names.filter((name) => name && values[name]).map((name) => [name, values[name]])),
    uid: values.uid || null,
    eventTypes: orNull(words(values.eventTypes)),
    batchSize: whole(values.batchSize),
    maxWaitSecs: whole(values.maxWaitSecs),
  };
}

const KINDS = { enabled: "good", retrying: "bad", disabled: "" };
const nameOf = (sink) => sink.uid ?? sink.id;

function Sinks({ id, query }) {
  const list = useLoad((signal) => streams.sinks(id, query.iterator, signal), [id, query.iterator], { every: 15_000 });
  const demanded = useLoad((signal) => streams.externalId(id, signal), [id]);
  const [making, setMaking] = useState(false);
  const reload = () => list.reload({ quietly: true });
  const make = async (values) => {
    const made = await streams.makeSink(id, sinkOf(values));
    setMaking(false);
    toast(`${nameOf(made)} gets what is posted from now on.`);
    await reload();
  };
  const doing = (what, said) => async (sink) => {
    await what(sink);
    toast(said);
    await reload();
  };
  const retry = doing((sink) => streams.retry(id, sink.id), "It is tried now.");
  const skip = doing((sink) => streams.skip(id, sink.id), "The batch is left out.");
  const remove = doing((sink) => streams.removeSink(id, sink.id), "The sink is removed.");
  const turn = async (sink) => {
    await streams.changeSink(id, sink.id, { type: sink.type, status: sink.status === "disabled" ? "enabled" : "disabled" });
    await reload();
  };
  return html`<${Card} title="Sinks" flush aside=${html`<button type="button" onClick=${() => setMaking(true)}>New sink</button>`}>
    <${Loaded} from=${list}>${(told) => html`<${Table} label="Sinks" rows=${told.data} keyed=${(each) => each.id} empty="No sinks yet: events are kept, and go nowhere." columns=${[
      ["Sink", (each) => html`<span class="mono">${nameOf(each)}</span>`],
      ["Writes to", (each) => html`${each.type} <span class="mono">${each.config[PLACES[each.type]?.name] ?? ""}</span>`],
      ["State", (each) => html`<${Fragment}><${Badge} kind=${KINDS[each.status]}>${each.status}<//>${each.failureReason && html`<div class="hint">${each.failureReason}; next try <${Time} at=${each.nextRetryAt} /></div>`}<//>`],
      ["Arrived up to", (each) => html`<span class="mono">${each.currentIterator}</span>`],
      ["Batch", (each) => `${each.batchSize}, ${each.maxWaitSecs} s`],
      ["", (each) => html`<span class="actions">
        ${each.type !== "poller" && html`<a href=${href("streams", id, "sinks", each.id, "transformation")} aria-label="Transformation of ${nameOf(each)}">Transformation</a>`}
        ${each.status === "retrying" && html`<${Doing} name="Try now" onDo=${() => retry(each)} />`}
        ${each.status === "retrying" && html`<${Confirmed} name="Skip" question="Leave out the next batch of ${nameOf(each)}?" detail="Its events never get there." onSure=${() => skip(each)} />`}
        <${Doing} name=${each.status === "disabled" ? "Enable" : "Disable"} onDo=${() => turn(each)} />
        <${Confirmed} name="Remove" question="Remove ${nameOf(each)}?" detail="What it has not read it never gets." onSure=${() => remove(each)} />
      </span>`],
    ]} />`}<//>
    <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("streams", id))} onNext=${list.data && !list.data.done && (() => go("streams", id, { iterator: list.data.iterator }))} /></div>
    ${making && html`<${Dialog} title="New sink" onClose=${() => setMaking(false)}>
      ${demanded.data && html`<${Notice}>A role lets in <span class="mono">${demanded.data.principal}</span> with the external id <span class="mono">${demanded.data.externalId}</span> <${Copy} text=${demanded.data.externalId} name="Copy the external id" /><//>`}
      <${Form} fields=${SINK} values=${{ type: "amazonS3" }} submit="Make the sink" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

const EXAMPLES = {
  amazonS3: `return { config: { format: "jsonl", key: "events" }, data: input.events };`,
  http: "return { data: input.events };",
  eventBridge: "return { payloads: input.events.map((each) => JSON.stringify(each)) };",
};
const STARTS = (type) => ({
  javascript: `// Of input: events (each with eventType and payload), env${type === "http" ? ", url" : ""}.
// What is not returned is left out.
function handler(input) {
  ${EXAMPLES[type] ?? "return { messages: input.events.map((each) => ({ payload: each })) };"}
}
`,
  jsonata: `{ ${type === "eventBridge" ? `"payloads": [events.$string()]` : ["amazonS3", "http"].includes(type) ? `"data": [events]` : `"messages": [events.{ "payload": $ }]`} }
`,
});
const WORDS = {
  returned: "handler(input) returns what is written of a batch. Empty for none.",
  value: "Its value is what is written of a batch.",
  off: "Saved. Events are written as they were posted.",
  enabled: "Otherwise events are written as they were posted.",
};

export function SinkTransformation({ segments: [id, , sinkId] }) {
  const about = useLoad(async (signal) => {
    const [stream, sink, stored, events] = await Promise.all([
      streams.show(id, signal), streams.sink(id, sinkId, signal), streams.transformation(id, sinkId).show(signal).catch(unlessForbidden),
      // The editor is useful without an example, too.
      streams.events(id, undefined, signal, 1).catch((error) => (error instanceof Refused ? { data: [] } : Promise.reject(error))),
    ]);
    return { stream, sink, stored, event: events.data[0] };
  }, [id, sinkId]);
  return html`<${Page} title="Transformation" lead="Code that makes what this sink writes of a batch." crumbs=${above(about.data?.stream)}>
    <${Loaded} from=${about}>${(told) => (told.stored
      ? html`<${Editor} api=${streams.transformation(id, sinkId)} starts=${STARTS(told.sink.type)} words=${WORDS} stored=${told.stored}
          example=${{ eventType: told.event?.eventType ?? "order.paid", payload: JSON.stringify(told.event?.payload ?? { id: 7 }, null, 2) }} />`
      : html`<${Notice} kind="warn">Your access does not include this sink's transformation.<//>`)}<//>
  <//>`;
}
