// Alerts that the project sets: which are firing, and how they are made, changed and tested.
import * as ironmq from "../ironmq.js";
import { Badge, Card, Confirmed, Dialog, Doing, Facts, Form, Loaded, Page, Table, Time, shorten, toast, useLoad } from "../parts.js";
import { href } from "../route.js";
import { headersOf } from "./queues.js";
import { Fragment, html, useState } from "../view.js";

const counts = (values) => values.measure !== "oldest_waiting";
const FIELDS = [
  { name: "name", label: "Name", required: true },
  { name: "measure", label: "When", type: "choice", options: [["failure_rate", "too many attempts fail"], ["given_up", "deliveries are given up"], ["oldest_waiting", "a message waits too long"]] },
  { name: "threshold", label: "Percent of the attempts", type: "number", required: true, when: (values) => values.measure === "failure_rate", hint: "Of five attempts at least." },
  { name: "threshold", label: "Deliveries given up", type: "number", required: true, when: (values) => values.measure === "given_up" },
  { name: "threshold", label: "Seconds", type: "number", required: true, when: (values) => values.measure === "oldest_waiting", hint: "Since the oldest message that waits was accepted." },
  { name: "minutes", label: "Within so many minutes", type: "number", when: counts, hint: "5 to 60." },
  { name: "queue", label: "Queue", hint: "Empty: the whole project." },
  { name: "subscriber", label: "Subscriber", when: counts, hint: "By its name in the queue; an endpoint by its id, without a queue. Empty: all." },
  { name: "url", label: "Send to", type: "url", required: true, placeholder: "https://ops.example.com/alerts" },
  { name: "format", label: "As", type: "choice", options: [["json", "JSON"], ["slack", "a message for Slack (incoming webhook)"]] },
];
const NEW = { name: "", measure: "failure_rate", threshold: 50, minutes: 15, queue: "", subscriber: "", url: "", format: "json" };
const SAID = { failure_rate: (each) => `${each.threshold} % of attempts fail`, given_up: (each) => `${each.threshold} given up`, oldest_waiting: (each) => `oldest waits ${each.threshold} s` };

const place = (each) => (each.queue ? `${each.queue}${each.subscriber ? `, ${each.subscriber}` : ""}` : each.subscriber || "the project");
const page = (each) => (each.measure === "oldest_waiting" ? href("queues", each.queue) : href("charts", { queue: each.queue, subscriber: each.subscriber }));

export function Alerts() {
  const alerts = useLoad((signal) => ironmq.listAlerts(signal), [], { every: 15_000 });
  const [edited, setEdited] = useState(null);
  const test = async (each) => {
    await ironmq.testAlert(each.id);
    toast(`A test is on its way to ${shorten(each.url, 50)}.`);
  };
  const remove = async (each) => {
    await ironmq.removeAlert(each.id);
    toast(`${each.name} is deleted.`);
    await alerts.reload({ quietly: true });
  };
  const saved = async (name) => {
    await alerts.reload({ quietly: true });
    setEdited(null);
    toast(`${name} is saved.`);
  };
  return html`<${Page} title="Alerts" lead="Sent to a webhook or to Slack when too much fails, is given up or waits too long; and again when it is over."
    actions=${html`<button type="button" class="primary" onClick=${() => setEdited(NEW)}>New alert</button>`}>
    <${Card} flush>
      <${Loaded} from=${alerts}>${(found) => html`<${Table} label="Alerts" rows=${found} keyed=${(each) => each.id} empty="No alert is set. With New alert, you are told before somebody asks." columns=${[
        ["Alert", (each) => html`<span class="name">${each.name}</span>`],
        ["State", (each) => html`<${Fragment}><${Badge} kind=${each.state === "firing" ? "bad" : "good"}>${each.state}<//>${each.since && html` <${Time} at=${each.since} />`}<//>`],
        ["When", (each) => `${SAID[each.measure](each)}${counts(each) ? ` within ${each.minutes} min` : ""}`],
        ["Where", (each) => html`<a href=${page(each)}>${place(each)}</a>`],
        ["Sent to", (each) => html`<span class="mono">${shorten(each.url, 40)}</span>${each.format === "slack" ? " (Slack)" : ""}`],
        ["", (each) => html`<span class="actions">
          <${Doing} name="Test" onDo=${() => test(each)} />
          <button type="button" class="plain" aria-label="Edit ${each.name}" onClick=${() => setEdited(each)}>Edit</button>
          <${Confirmed} name="Delete" question="Delete ${each.name}?" detail="It tells nothing more." onSure=${() => remove(each)} />
        </span>`],
      ]} />`}<//>
    <//>
    <${Traces} />
    ${edited && html`<${Edit} alert=${edited} onClose=${() => setEdited(null)} onDone=${saved} />`}
  <//>`;
}

const COLLECTOR = [
  { name: "url", label: "Collector", type: "url", required: true, placeholder: "https://otel.example.com/v1/traces", hint: "OTLP over HTTP, with its whole path." },
  { name: "headers", label: "Headers", type: "long", hint: "One per line: Name: value. ******** keeps a value.", api: ["header", "headers"] },
  { name: "on", label: "Export now", type: "check" },
];

// Where the spans of attempts go, and what became of them.
function Traces() {
  const found = useLoad((signal) => ironmq.spanExport(signal), [], { every: 15_000 });
  const [edited, setEdited] = useState(null);
  const values = (each) => ({ url: each?.url ?? "", headers: Object.entries(each?.headers ?? {}).map(([key, value]) => `${key}: ${value}`).join("\n"), on: each?.on ?? true });
  const save = async (given) => {
    await ironmq.setSpanExport({ url: given.url, headers: headersOf(given.headers), on: given.on });
    setEdited(null);
    toast(given.on ? "Spans are exported within half a minute." : "No spans are exported for now.");
    await found.reload({ quietly: true });
  };
  const remove = async () => {
    await ironmq.removeSpanExport();
    toast("No spans are exported any more.");
    await found.reload({ quietly: true });
  };
  return html`<${Card} title="Traces">
    <${Loaded} from=${found}>${(each) => (each ? html`<${Fragment}>
      <${Facts} of=${[
        ["Collector", html`<span class="mono">${each.url}</span>`],
        ["Headers", Object.keys(each.headers).join(", ") || "–"],
        ["State", html`<${Badge} kind=${each.failing ? "bad" : each.on ? "good" : ""}>${each.failing ? "failing" : each.on ? "exporting" : "off"}<//>${each.failing && html` ${each.failing.message}`}`],
        ["Spans in 24 hours", `${each.exported} exported, ${each.dropped} dropped`],
      ]} />
      <span class="actions">
        <button type="button" class="plain" aria-label="Edit the export of traces" onClick=${() => setEdited(values(each))}>Edit</button>
        <${Confirmed} name="Stop" question="Export no spans any more?" detail="Those that wait are dropped." onSure=${remove} />
      </span>
    <//>` : html`<${Fragment}>
      <p>Each attempt of a traced message can be exported to your OpenTelemetry collector.</p>
      <span class="actions"><button type="button" onClick=${() => setEdited(values(null))}>Export traces</button></span>
    <//>`)}<//>
    ${edited && html`<${Dialog} title="Export of traces" onClose=${() => setEdited(null)}>
      <${Form} fields=${COLLECTOR} values=${edited} onSubmit=${save} onCancel=${() => setEdited(null)} />
    <//>`}
  <//>`;
}

function Edit({ alert, onClose, onDone }) {
  const save = async (values) => {
    const given = { ...values, threshold: Number(values.threshold), minutes: Number(values.minutes) || undefined, subscriber: counts(values) ? values.subscriber : "" };
    await (alert.id ? ironmq.changeAlert(alert.id, given) : ironmq.createAlert(given));
    await onDone(values.name);
  };
  return html`<${Dialog} title=${alert.id ? `Edit ${alert.name}` : "New alert"} onClose=${onClose}>
    <${Form} fields=${FIELDS} values=${alert} onSubmit=${save} onCancel=${onClose} />
  <//>`;
}
