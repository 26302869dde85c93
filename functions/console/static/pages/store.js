// A store (hub protocol): its messages, the mappings that route them, and what services said.
import { Refused } from "../http.js";
import * as hub from "../hub.js";
import * as ironmq from "../ironmq.js";
import { Badge, Body, Card, Confirmed, Copy, DayAtSubscriber, Dialog, Doing, Facts, FanOut, Figures, Form, Loaded, Notice, Page, Table, Tabs, Time, Timeline, duration, shorten, toast, useLoad } from "../parts.js";
import { HealthBadge, HealthNotice, waiting } from "../health.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import { curl } from "./attempts.js";
import { Demands, serviceOf } from "./gates.js";
import { Endings } from "./signatures.js";

const TABS = [["", "Messages"], ["mappings", "Mappings"], ["notices", "Notices"], ["schedulers", "Schedulers"], ["parameters", "Parameters"], ["integrations", "Integrations"]];
const QUEUES = [["accepted", "For services (accepted)"], ["incoming", "To be routed (incoming)"], ["archived", "Done (archived)"]];
const STATES = { accepted: ["pending", "failing", "scheduled", "parked"], incoming: [], archived: ["completed", "never_processed"] };

export function Store({ segments: [tab = ""], query }) {
  const counts = useLoad((signal) => hub.counts(signal), [], { every: 10_000 });
  const [posting, setPosting] = useState(false);
  return html`<${Page} title="Store" lead="Messages come in, mappings send copies to services, and messages that fail for good wait for a person."
    actions=${html`<button class="primary" type="button" onClick=${() => setPosting(true)}>Push a message</button>`}>
    <${Loaded} from=${counts}>${(told) => html`<${Figures} of=${[
      ["To be routed", told.incoming],
      ["Pending", told.pending],
      ["Failing", told.failing],
      ["Scheduled", told.scheduled],
      ["Waits for a person", told.parked],
      ["Archived", told.archived],
    ]} />`}<//>
    <${Tabs} label="Parts of the store" current=${tab} tabs=${TABS.map(([key, name]) => [key, name, key ? href("store", key) : href("store")])} />
    ${tab === "" && html`<${Messages} query=${query} />`}
    ${tab === "mappings" && html`<${Mappings} />`}
    ${tab === "notices" && html`<${Notices} query=${query} />`}
    ${SIMPLE[tab] && html`<${Simple} kind=${tab} key=${tab} />`}
    ${posting && html`<${Push} onClose=${() => setPosting(false)} />`}
  <//>`;
}

function Messages({ query }) {
  const asked = { queue: "accepted", ...query };
  const list = useLoad((signal) => hub.listMessages(asked.queue, { page: asked.page, state: asked.state, message: asked.message, mapping_id: asked.mapping, source: asked.source }, signal), [JSON.stringify(asked)], { every: 10_000 });
  const narrow = (change) => go("store", { ...asked, page: "", ...change });
  const decide = async (row, what, done) => {
    await hub.decide(row.id, what);
    toast(done);
    await list.reload({ quietly: true });
  };
  const select = (id, label, value, options, onValue) => html`<div class="field"><label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onValue(event.currentTarget.value)}>
      ${options.map(([key, name]) => html`<option value=${key} selected=${key === value}>${name}</option>`)}
    </select></div>`;
  return html`<${Fragment}>
    ${asked.mapping && html`<${Service} mapping=${asked.mapping} key=${asked.mapping} />`}
    <div class="filter" role="search" aria-label="Messages">
      ${select("queue", "Where", asked.queue, QUEUES, (queue) => narrow({ queue, state: "", source: "" }))}
      ${asked.queue === "archived" && select("source", "Came as", asked.source ?? "accepted", [["accepted", "Copy for a service"], ["incoming", "Incoming message"]], (source) => narrow({ source }))}
      ${STATES[asked.queue]?.length > 0 && select("state", "State", asked.state ?? "", [["", "Any"], ...STATES[asked.queue].map((each) => [each, each.replace("_", " ")])], (state) => narrow({ state }))}
      ${select("type", "Type", asked.message ?? "", [["", "Any"], ...(list.data?.available_messages ?? []).map((each) => [each, each])], (message) => narrow({ message }))}
      ${asked.queue !== "incoming" && select("mapping", "Mapping", asked.mapping ?? "", [["", "Any"], ...(list.data?.available_consumers ?? []).map(([name, id]) => [id, name])], (mapping) => narrow({ mapping }))}
    </div>
    <section class="card">
      <${Loaded} from=${list}>${(told) => html`<${Fragment}>
        <${Table} label="Messages" rows=${told.messages} keyed=${(each) => each.id} empty="No such message."
          columns=${[
            ["Message", (each) => html`<a href=${href("store", "messages", each.id)}>${each.message}</a>`],
            ["State", (each) => html`<${Badge} state=${each.state} />`],
            ["For", (each) => each.consumer ?? "–"],
            ["Came", (each) => html`<${Time} at=${each.created_at} />`],
            ["Next attempt", (each) => html`<${Time} at=${each.next_attempt} />`],
            ["Last error", (each) => html`<span title=${each.last_error ?? each.reason ?? ""}>${shorten(each.last_error ?? each.reason ?? "–", 60)}</span>`],
            ["", (each) => each.queue_name === "accepted" && html`<span class="actions">
              ${each.locked_at ? "Being tried" : html`<${Doing} name="Try now" onDo=${() => decide(each, "attempt_now", "It is tried now.")} />`}
              <${Confirmed} name="Archive" question="Give this message up?" detail="It is archived and not tried again." onSure=${() => decide(each, "archive", "Archived.")} />
            </span>`],
          ]} />
        ${told.pages > 1 && html`<nav class="inside actions" aria-label="Pages of the list">
          <button type="button" disabled=${told.page <= 1} onClick=${() => narrow({ page: told.page - 1 })}>Newer</button>
          <span>Page ${told.page} of ${told.pages}</span>
          <button type="button" disabled=${told.page >= told.pages} onClick=${() => narrow({ page: told.page + 1 })}>Older</button>
        </nav>`}
      <//>`}<//>
    </section>
  <//>`;
}

/** How the service of a mapping did in the last day. */
function Service({ mapping }) {
  const activity = useLoad((signal) => ironmq.atSubscriber(mapping, "", 24, signal), [mapping], { every: 60_000 });
  const shown = useLoad((signal) => hub.things.show("mappings", mapping, signal), [mapping], { every: 15_000 });
  return html`<${Fragment}>
    ${shown.data && html`<${HealthNotice} health=${shown.data.health} who=${shown.data.name} />`}
    <${Loaded} from=${activity}>${(told) => html`<${DayAtSubscriber} told=${told} />`}<//>
  <//>`;
}

function Push({ onClose }) {
  const send = async (values) => {
    const told = await hub.push({ message: values.message, payload: asJson(values.payload, "payload", "{}") });
    toast("Accepted.");
    onClose();
    go("store", "messages", told.id);
  };
  const fields = [
    { name: "message", label: "Type", hint: "For example order:new.", required: true, api: ["message"] },
    { name: "payload", label: "Payload", type: "long", hint: "A JSON object.", api: ["payload"] },
  ];
  return html`<${Dialog} title="Push a message" onClose=${onClose}>
    <${Form} fields=${fields} values=${{ payload: "{}" }} submit="Push" onSubmit=${send} onCancel=${onClose} />
  <//>`;
}

/** What a person typed as JSON; the field is told what is wrong with it. */
function asJson(text, field, whenEmpty = "null") {
  try {
    return JSON.parse(text?.trim() || whenEmpty);
  } catch (error) {
    throw new Refused(422, error.message, { [field]: `is not JSON: ${error.message}` });
  }
}

const lines = (text) => String(text ?? "").split(/[\n,]/).map((each) => each.trim()).filter(Boolean);

function Mappings() {
  const list = useLoad((signal) => hub.things.list("mappings", signal), [], { every: 15_000 });
  const [edited, setEdited] = useState(null);
  const [demanding, setDemanding] = useState("");
  const enable = async (mapping, enabled) => {
    await hub.things.change("mappings", mapping.id, { mapping: { enabled } });
    toast(`${mapping.name} is ${enabled ? "enabled" : "disabled"}.`);
    await list.reload({ quietly: true });
  };
  const remove = async (mapping) => {
    await hub.things.remove("mappings", mapping.id);
    toast(`${mapping.name} is removed.`);
    await list.reload({ quietly: true });
  };
  return html`<${Card} title="Mappings" flush aside=${html`<button type="button" onClick=${() => setEdited({})}>New mapping</button>`}>
    <${Loaded} from=${list}>${(mappings) => html`<${Table} label="Mappings" rows=${mappings} keyed=${(each) => each.id}
      empty="No mappings yet, so incoming messages go nowhere."
      columns=${[
        ["Name", (each) => html`<a href=${href("store", { queue: "accepted", mapping: each.id })}>${each.name}</a>`],
        ["State", (each) => html`<${HealthBadge} health=${each.health} />`],
        ["Since", (each) => html`<${Time} at=${each.health.since} />`],
        ["Waiting", (each) => waiting(each.health), { number: true }],
        ["Types", (each) => each.messages.join(", ")],
        ["URL", (each) => html`<span class="mono">${each.url}</span><${Endings} ends=${each.signing_ends} />`],
        ["", (each) => html`<span class="actions">
          <button type="button" class="plain" aria-label="Edit ${each.name}" onClick=${() => setEdited(each)}>Edit</button>
          <button type="button" class="plain" aria-label="Gates of ${each.name}" onClick=${() => setDemanding(each.id)}>Gates</button>
          ${!(each.required && each.enabled) && html`<${Doing} name=${each.enabled ? "Pause" : "Resume"} onDo=${() => enable(each, !each.enabled)} />`}
          <${Confirmed} name="Remove" question="Remove ${each.name}?" detail="Its outstanding messages are archived." onSure=${() => remove(each)} />
        </span>`],
      ]} />`}<//>
    ${list.data?.filter((each) => each.id === demanding).map((each) => html`<${Dialog} key=${each.id} title="Gates of ${each.name}" onClose=${() => setDemanding("")}>
      <${Demands} of=${serviceOf(each)} onDone=${() => list.reload({ quietly: true })} />
      <div><button type="button" onClick=${() => setDemanding("")}>Close</button></div>
    <//>`)}
    ${edited && html`<${EditMapping} mapping=${edited} onClose=${() => setEdited(null)} onDone=${async () => { await list.reload({ quietly: true }); setEdited(null); }} />`}
  <//>`;
}

function EditMapping({ mapping, onClose, onDone }) {
  const save = async (values) => {
    const body = {
      mapping: {
        name: values.name,
        url: values.url,
        token: values.token,
        messages: lines(values.messages),
        filters: asJson(values.filters, "filters", "[]"),
        identifiers: asJson(values.identifiers, "identifiers", "{}"),
        options: asJson(values.options, "options", "{}"),
        search_fields: lines(values.search_fields),
      },
    };
    await (mapping.id ? hub.things.change("mappings", mapping.id, body) : hub.things.make("mappings", body));
    toast(`${values.name} is saved.`);
    await onDone();
  };
  const fields = [
    { name: "name", label: "Name", required: true },
    { name: "url", label: "URL of the service", type: "url", required: true },
    { name: "token", label: "Token sent to it", type: "password", required: true },
    { name: "messages", label: "Types", hint: "One per line, for example order:new.", type: "long", required: true },
    { name: "filters", label: "Filters", hint: 'JSON: [{"path": "payload.order.total", "operator": "gt", "value": "100"}]', type: "long" },
    { name: "identifiers", label: "Identifiers", hint: "JSON: paths by name; messages with the same values are delivered only once.", type: "long" },
    { name: "search_fields", label: "Fields to find messages by", type: "long", hint: "At most 3, one per line: a path in the payload (order.number). Each costs a write a message, for messages that come from now on." },
    { name: "options", label: "Options", hint: "JSON: retries_allowed, retry_base, retry_cap, max_attempts, lenient.", type: "long" },
  ];
  const values = {
    name: mapping.name, url: mapping.url, token: mapping.token, messages: (mapping.messages ?? []).join("\n"),
    filters: JSON.stringify(mapping.filters ?? []), identifiers: JSON.stringify(mapping.identifiers ?? {}), options: JSON.stringify(mapping.options ?? {}), search_fields: (mapping.search_fields ?? []).join("\n"),
  };
  return html`<${Dialog} title=${mapping.id ? `Edit ${mapping.name}` : "New mapping"} onClose=${onClose}>
    <${Form} fields=${fields} values=${values} onSubmit=${save} onCancel=${onClose} />
  <//>`;
}

const LEVELS = { error: "bad", warn: "warn", info: "accent" };

function Notices({ query }) {
  const list = useLoad((signal) => hub.listNotices({ page: query.page, level: query.level }, signal), [query.page, query.level]);
  const narrow = (change) => go("store", "notices", { ...query, ...change });
  return html`<${Card} title="Notifications from services" flush aside=${html`<label>Level <select value=${query.level ?? ""} onChange=${(event) => narrow({ level: event.currentTarget.value, page: "" })}>
      ${[["", "Any"], ["error", "Error"], ["warn", "Warning"], ["info", "Information"]].map(([key, name]) => html`<option value=${key} selected=${key === (query.level ?? "")}>${name}</option>`)}
    </select></label>`}>
    <${Loaded} from=${list}>${(told) => html`<${Fragment}>
      <${Table} label="Notices" rows=${told.notifications} keyed=${(each) => each.id} empty="No notifications." columns=${[
        ["Level", (each) => html`<${Badge} kind=${LEVELS[each.level]}>${each.level}<//>`],
        ["Subject", (each) => html`<a href=${href("store", "messages", each.message_id)}>${each.subject || "Without a subject"}</a>`],
        ["Description", (each) => shorten(each.description ?? "", 300)],
        ["Times", (each) => each.occurrences, { number: true }],
        ["Last", (each) => html`<${Time} at=${each.last_update} />`],
      ]} />
      ${told.pages > 1 && html`<nav class="inside actions" aria-label="Pages of the list">
        <button type="button" disabled=${told.page <= 1} onClick=${() => narrow({ page: told.page - 1 })}>Newer</button>
        <span>Page ${told.page} of ${told.pages}</span>
        <button type="button" disabled=${told.page >= told.pages} onClick=${() => narrow({ page: told.page + 1 })}>Older</button>
      </nav>`}
    <//>`}<//>
  <//>`;
}

/** What is listed, made and removed without a page of its own. */
const SIMPLE = {
  schedulers: {
    title: "Schedulers", one: "scheduler", empty: "No schedulers.", name: (each) => each.key,
    columns: [["Message type", (each) => each.key], ["Every", (each) => `${each.count} ${each.interval}`], ["Next", (each) => html`<${Time} at=${each.next_at} />`]],
    fields: [
      { name: "key", label: "Message type", hint: "A message of this type comes in at regular intervals." },
      { name: "count", label: "Every", type: "number" },
      { name: "interval", label: "Unit", type: "choice", options: [["minutes", "minutes"], ["hours", "hours"], ["days", "days"], ["weeks", "weeks"]] },
    ],
    initial: { count: "1", interval: "hours" },
    body: (values) => ({ scheduler: { key: values.key, count: Number(values.count), interval: values.interval } }),
  },
  parameters: {
    title: "Parameters", one: "parameter", empty: "No parameters.", name: (each) => each.name,
    columns: [["Name", (each) => each.name], ["Type", (each) => each.data_type], ["Value", () => "kept from view"]],
    fields: [
      { name: "name", label: "Name" },
      { name: "value", label: "Value", type: "password", hint: "Sent to services; not shown here." },
    ],
    initial: {},
    body: (values) => ({ parameter: { name: values.name, value: values.value } }),
  },
  integrations: {
    title: "Integrations", one: "integration", empty: "No integrations.", name: (each) => each.name,
    columns: [
      ["Name", (each) => each.display || each.name],
      ["State", (each) => html`<${Badge} state=${each.state} />`],
      ["URL", (each) => html`<span class="mono">${each.url}</span>`],
      ["Services", (each) => each.services.length, { number: true }],
      ["What is wrong", (each) => (each.error_messages ?? []).join("; ") || "–"],
    ],
    fields: [
      { name: "name", label: "Name" },
      { name: "url", label: "URL of the endpoint", type: "url", hint: "Its endpoint.json is read, and a mapping is created for each service." },
      { name: "token", label: "Token sent to it", type: "password" },
      { name: "category", label: "Category" },
    ],
    initial: { category: "custom" },
    body: (values) => ({ integration: { name: values.name, url: values.url, token: values.token, category: values.category } }),
  },
};

function Simple({ kind }) {
  const of = SIMPLE[kind];
  const list = useLoad((signal) => hub.things.list(kind, signal), [kind]);
  const [making, setMaking] = useState(false);
  const make = async (values) => {
    await hub.things.make(kind, of.body(values));
    setMaking(false);
    toast("Saved.");
    await list.reload({ quietly: true });
  };
  const remove = async (each) => {
    await hub.things.remove(kind, each.id);
    toast(`${of.name(each)} is removed.`);
    await list.reload({ quietly: true });
  };
  return html`<${Card} title=${of.title} flush aside=${html`<button type="button" onClick=${() => setMaking(true)}>New ${of.one}</button>`}>
    <${Loaded} from=${list}>${(rows) => html`<${Table} label=${of.title} rows=${rows} keyed=${(each) => each.id} empty=${of.empty} columns=${[
      ...of.columns,
      ["", (each) => html`<${Confirmed} name="Remove" question="Remove ${of.name(each)}?" onSure=${() => remove(each)} />`],
    ]} />`}<//>
    ${making && html`<${Dialog} title="New ${of.one}" onClose=${() => setMaking(false)}>
      <${Form} fields=${of.fields} values=${of.initial} onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

/** The life of a message of the store: an incoming one with its copies, or a copy with its attempts and answer. */
export function StoreMessage({ segments: [, id] }) {
  const message = useLoad(async (signal) => {
    const shown = await hub.showMessage(id, signal);
    // Who each child is for is in its own page only; the first few are asked, for the picture.
    const children = await Promise.all(shown.children.slice(0, 8).map((each) => hub.showMessage(each.id, signal).catch(() => each)));
    return { ...shown, children: [...children, ...shown.children.slice(8)] };
  }, [id], { every: 5000 });
  const decide = async (what, done) => {
    await hub.decide(id, what);
    toast(done);
    await message.reload({ quietly: true });
  };
  const shown = message.data;
  return html`<${Page} title=${shown ? shown.message : `Message ${id}`} crumbs=${[["Store", href("store")]]}
    actions=${shown?.queue_name === "accepted" && html`<${Fragment}>
      ${shown.can_attempt && html`<${Doing} name="Try now" kind="primary" onDo=${() => decide("attempt_now", "It is tried now.")} />`}
      <${Confirmed} name="Archive" question="Give this message up?" detail="It is archived and not tried again." onSure=${() => decide("archive", "Archived.")} />
    <//>`}>
    <${Loaded} from=${message}>${(told) => html`<${Fragment}>
      <div class="columns">
        <${Card} title="Status" aside=${html`<${Copy} text=${id} name="Copy id" />`}>
          <${Facts} of=${[
            ["State", html`<${Badge} state=${told.state} />`],
            ["Id", html`<span class="mono">${told.id}</span>`],
            ["For", told.consumer],
            ["Comes of", told.parent_id && html`<a class="mono" href=${href("store", "messages", told.parent_id)}>${told.parent_id}</a>`],
            ["Why it went nowhere", told.reason],
            ["Being tried since", told.locked_at && html`<${Time} at=${told.locked_at} />`],
            ["Failed attempts in a row", told.attempts || null],
            ["Last error", told.last_error],
          ]} />
        <//>
        <${Card} title="History"><${Timeline} label="History" items=${life(told)} /><//>
      </div>
      ${told.children.length > 0 && html`<${Card} title=${told.source === "incoming" ? "Copies for services" : "Messages from the service's answer"}>
        <${FanOut} from=${told.message} branches=${told.children.map((each) => ({ name: each.consumer ?? each.message, state: each.state ?? each.location, detail: each.last_error }))} />
        <div class="legend">${told.children.map((each) => html`<a href=${href("store", "messages", each.id)}>${each.consumer ?? each.message}</a>`)}</div>
      <//>`}
      ${told.notifications.length > 0 && html`<${Card} title="Notifications about it" flush>
        <${Table} label="Notices" rows=${told.notifications} keyed=${(each) => each.id} columns=${[
          ["Level", (each) => html`<${Badge} kind=${LEVELS[each.level]}>${each.level}<//>`],
          ["Subject", (each) => each.subject],
          ["Description", (each) => each.description],
          ["Times", (each) => each.occurrences, { number: true }],
        ]} />
      <//>`}
      <${Card} title="Payload" aside=${command(told) && html`<${Copy} text=${command(told)} name="Copy as curl" />`}>
        ${told.payload === null ? html`<${Notice} kind="warn">Its content is no longer kept.<//>` : html`<${Body} text=${JSON.stringify(told.payload, null, 2)} />`}
      <//>
      ${told.last_answer && html`<${Card} title="The last answer">
        <${Facts} of=${[
          ["Status", told.last_answer.status || "no answer"], ["Error", told.last_answer.error], ["Message", told.last_answer.message],
          ["Content type", told.last_answer.content_type], ["Took", `${told.last_answer.duration_ms} ms`],
        ]} />
        <${Body} label="Answer" text=${typeof told.result === "string" ? told.result : JSON.stringify(told.result, null, 2)} />
      <//>`}
    <//>`}<//>
  <//>`;
}

/** The request to the service as a command, without signatures and the values of parameters; null where there is none. */
function command({ mapping, id, message, payload }) {
  if (!mapping || payload === null) return null;
  const { parameters: _, ...sent } = payload;
  return curl(mapping.url, { "Content-Type": "application/json", "X-Augury-Token": mapping.token }, JSON.stringify({ message, message_id: id, payload: sent }));
}

function life(told) {
  const answer = told.last_answer;
  const items = [{ kind: "accent", what: told.source === "incoming" ? "Came in" : "Copied for the service", at: told.created_at }];
  if (answer) {
    const good = answer.status >= 200 && answer.status < 300 && !told.last_error;
    items.push({
      kind: good ? "good" : "bad",
      what: `${answer.polled ? "Asked how far it is" : `Attempt ${answer.attempt}`}: ${answer.status ? `HTTP ${answer.status}` : "no answer"}`,
      at: answer.at,
      detail: told.last_error ?? `Answered in ${answer.duration_ms} ms.`,
    });
  }
  if (told.completed_at) items.push({ kind: told.state === "completed" ? "good" : "warn", what: told.state === "completed" ? "Completed" : "Archived", at: told.completed_at, detail: told.reason });
  if (told.next_attempt) items.push({ kind: "ahead", what: "The next attempt", at: told.next_attempt, detail: waits(told) });
  if (told.state === "parked") items.push({ kind: "bad", what: "Waits for a person", detail: "Its mapping allows no (further) retries. Try it now, or archive it." });
  return items;
}

function waits(told) {
  const options = told.mapping?.options;
  if (told.state === "scheduled") return "The service asked for this time.";
  if (!options || !told.attempts) return "It waits for its turn.";
  const wait = Math.min(options.retry_cap, options.retry_base * 2 ** (told.attempts - 1));
  return `After ${told.attempts} failures in a row: ${duration(wait)} and up to a fifth more, doubling each time, at most ${duration(options.retry_cap)}.`;
}
