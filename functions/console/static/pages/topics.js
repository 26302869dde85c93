// Topics (Notifications 2.0): the rules that feed them, publishing, and a consumer in the browser.
import * as notifications from "../notifications.js";
import { Refused } from "../http.js";
import { Badge, Body, Card, Confirmed, Dialog, Doing, Empty, Form, Loaded, Notice, Page, Table, Time, prettyJson, shorten, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useEffect, useRef, useState } from "../view.js";

const APIS = ["alarms", "events", "measurements", "managedobjects", "operations"];
const words = (text) => String(text ?? "").split(/[\s,]+/).filter(Boolean);

export function Topics({ query }) {
  const page = Number(query.page ?? 1);
  const list = useLoad((signal) => notifications.listSubscriptions({ currentPage: page, subscription: query.name }, signal), [page, query.name]);
  const [making, setMaking] = useState(false);
  const [publishing, setPublishing] = useState(false);
  const [waiting, setWaiting] = useState("");
  const remove = async (rule) => {
    await notifications.removeSubscription(rule.id);
    toast("The rule is removed.");
    await list.reload({ quietly: true });
  };
  return html`<${Page} title="Topics" lead="Rules say which notifications go into which topic; consumers read a topic over a WebSocket and acknowledge."
    actions=${html`<${Fragment}>
      <button type="button" onClick=${() => setPublishing(true)}>Publish</button>
      <button class="primary" type="button" onClick=${() => setMaking(true)}>New rule</button>
    <//>`}>
    <section class="card">
      <${Loaded} from=${list}>${(told) => html`<${Fragment}>
        <${Table} label="Rules" rows=${told.subscriptions} keyed=${(each) => each.id} empty="No rules yet, so published notifications go nowhere."
          columns=${[
            ["Topic", (each) => html`<a href=${href("live", each.subscription)}>${each.subscription}</a>`],
            ["Gets", (each) => (each.subscriptionFilter?.apis ?? ["everything of its context"]).join(", ")],
            ["Types", (each) => each.subscriptionFilter?.typeFilter ?? "any"],
            ["Of", (each) => (each.context === "mo" ? `source ${each.source.id}` : "the whole project")],
            ["Kept", (each) => (each.nonPersistent ? "while connected" : "until acknowledged")],
            ["", (each) => html`<span class="actions">
              <a class="button" href=${href("live", each.subscription)}>Watch</a>
              <button type="button" onClick=${() => setWaiting(each.subscription)}>Subscribers</button>
              <${Confirmed} name="Remove" question="Remove this rule?" detail="The topic keeps its notifications and its subscribers." onSure=${() => remove(each)} />
            </span>`],
          ]} />
        ${told.statistics.totalPages > 1 && html`<nav class="inside actions" aria-label="Pages of the list">
          <button type="button" disabled=${page <= 1} onClick=${() => go("topics", { ...query, page: page - 1 })}>Before</button>
          <span>Page ${page} of ${told.statistics.totalPages}</span>
          <button type="button" disabled=${page >= told.statistics.totalPages} onClick=${() => go("topics", { ...query, page: page + 1 })}>After</button>
        </nav>`}
      <//>`}<//>
    </section>
    ${making && html`<${NewRule} onClose=${() => setMaking(false)} onDone=${() => { setMaking(false); list.reload({ quietly: true }); }} />`}
    ${publishing && html`<${Publish} onClose=${() => setPublishing(false)} />`}
    ${waiting && html`<${Subscribers} topic=${waiting} onClose=${() => setWaiting("")} />`}
  <//>`;
}

/** What waits for each subscriber of a topic: who is about to fill it. */
function Subscribers({ topic, onClose }) {
  const list = useLoad((signal) => notifications.listSubscribers(topic, signal), [topic]);
  return html`<${Dialog} title=${`Subscribers of ${topic}`} onClose=${onClose}>
    <${Loaded} from=${list}>${(told) => html`<${Table} label="Subscribers" rows=${told.subscribers} keyed=${(each) => `${each.nonPersistent} ${each.subscriber}`} empty="Nobody has connected to this topic."
      columns=${[
        ["Subscriber", (each) => each.subscriber],
        ["Connected", (each) => each.consumers],
        ["Waiting", (each) => `${each.bytes.toLocaleString()} bytes`],
        ["Since", (each) => (each.oldest ? html`<${Time} at=${each.oldest} />` : "nothing waits")],
        ["Unacknowledged", (each) => each.unacknowledged],
        ["Kept", (each) => (each.nonPersistent ? "while connected" : "until acknowledged")],
      ]} />`}<//>
    <div class="actions"><button type="button" onClick=${onClose}>Close</button></div>
  <//>`;
}

function NewRule({ onClose, onDone }) {
  const make = async (values) => {
    const apis = words(values.apis);
    const filter = { ...(apis.length ? { apis } : {}), ...(values.typeFilter ? { typeFilter: values.typeFilter } : {}) };
    await notifications.makeSubscription({
      context: values.context,
      subscription: values.subscription,
      ...(values.context === "mo" ? { source: { id: values.source } } : {}),
      ...(Object.keys(filter).length ? { subscriptionFilter: filter } : {}),
      ...(values.nonPersistent ? { nonPersistent: true } : {}),
    });
    toast(`It feeds the topic ${values.subscription}.`);
    onDone();
  };
  const fields = [
    { name: "subscription", label: "Topic", hint: "Letters and digits.", api: ["subscription"] },
    { name: "context", label: "Of", type: "choice", options: [["tenant", "The whole project"], ["mo", "One source"]], api: ["context"] },
    { name: "source", label: "Source", when: (values) => values.context === "mo", api: ["source", "source.id"] },
    { name: "apis", label: "Gets", hint: `Any of ${APIS.join(", ")}; everything if left empty.`, api: ["apis", "subscriptionFilter.apis"] },
    { name: "typeFilter", label: "Types", hint: "'a' or 'b'; any if left empty.", api: ["typeFilter"] },
    { name: "nonPersistent", label: "Keep messages only for connected consumers", type: "check" },
  ];
  return html`<${Dialog} title="New rule" onClose=${onClose}>
    <${Form} fields=${fields} values=${{ context: "tenant" }} submit="Create the rule" onSubmit=${make} onCancel=${onClose} />
  <//>`;
}

function Publish({ onClose }) {
  const send = async (values) => {
    let data;
    try {
      data = JSON.parse(values.data);
    } catch (error) {
      throw new Refused(422, error.message, { data: `is not JSON: ${error.message}` });
    }
    await notifications.publish({ api: values.api, source: values.source, action: values.action, data });
    toast("Published.");
    onClose();
  };
  const fields = [
    { name: "api", label: "Kind", type: "choice", options: APIS.map((each) => [each, each]), api: ["api"] },
    { name: "source", label: "Source", api: ["source"] },
    { name: "action", label: "Action", type: "choice", options: [["CREATE", "CREATE"], ["UPDATE", "UPDATE"], ["DELETE", "DELETE"]], api: ["action"] },
    { name: "data", label: "Data", type: "long", hint: "Any JSON.", api: ["data"] },
  ];
  return html`<${Dialog} title="Publish" onClose=${onClose}>
    <${Form} fields=${fields} values=${{ api: "events", source: "111", action: "CREATE", data: '{"type": "door"}' }} submit="Publish" onSubmit=${send} onCancel=${onClose} />
  <//>`;
}

const KEPT = 200;
const STATE_KINDS = { connected: "good", connecting: "warn", waiting: "bad", left: "" };

/** A consumer of a topic in this tab: what is published while it is connected, as it comes. */
export function Live({ segments: [topic = ""] }) {
  const [typed, setTyped] = useState(topic);
  const watch = (event) => {
    event.preventDefault();
    go("live", typed);
  };
  return html`<${Page} title="Live" lead="Connects as a separate subscriber, and shows and acknowledges what is published from now on. Other subscribers are not affected.">
    <form class="filter" onSubmit=${watch}>
      <div class="field"><label for="topic">Topic</label><input id="topic" value=${typed} onInput=${(event) => setTyped(event.currentTarget.value)} /></div>
      <button type="submit" class="primary">Watch</button>
    </form>
    ${topic ? html`<${Consumer} topic=${topic} key=${topic} />` : html`<${Empty}>Enter a topic. <a href=${href("topics")}>All topics</a><//>`}
  <//>`;
}

function Consumer({ topic }) {
  const [state, setState] = useState(["connecting", ""]);
  const [messages, setMessages] = useState([]);
  const [paused, setPaused] = useState(false);
  const held = useRef(false);
  const count = useRef(0);
  held.current = paused;
  useEffect(() => {
    const subscriber = `console${crypto.randomUUID().replaceAll("-", "").slice(0, 12)}`;
    const leave = notifications.consume(
      topic,
      subscriber,
      (message) => {
        count.current++;
        const came = { ...message, at: new Date().toISOString(), number: count.current };
        if (!held.current) setMessages((before) => [came, ...before].slice(0, KEPT));
      },
      (next, why) => setState([next, why]),
    );
    return leave;
  }, [topic]);
  return html`<${Card} title=${topic} aside=${html`<${Fragment}>
      <${Badge} kind=${STATE_KINDS[state[0]]}>${state[0]}<//>
      <button type="button" aria-pressed=${String(paused)} onClick=${() => setPaused(!paused)}>${paused ? "Show notifications" : "Hold still"}</button>
      <button type="button" onClick=${() => setMessages([])}>Clear</button>
    <//>`}>
    ${state[1] && html`<${Notice} kind="warn">${state[1]}<//>`}
    <p class="hint" role="status">${count.current} came.</p>
    ${messages.length === 0
      ? html`<${Empty}>Nothing yet. Notifications that are published from now on appear here.<//>`
      : html`<ol class="live" reversed tabindex="0" aria-label="Received notifications">
          ${messages.map((each) => html`<li key=${each.number}>
            <div class="actions"><strong class="mono">${each.description}</strong><${Badge} kind="accent">${each.action}<//><${Time} at=${each.at} /></div>
            <details><summary class="snippet">${shorten(each.body, 160)}</summary><pre class="body" tabindex="0">${prettyJson(each.body) ?? each.body}</pre></details>
          </li>`)}
        </ol>`}
  <//>`;
}
