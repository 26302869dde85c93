// Webhooks: applications (one for each customer), event types, and one application with its endpoints and messages. The last is the portal.
import { Refused } from "../http.js";
import { Badge, Card, Confirmed, Copy, Dialog, Doing, Form, Loaded, Notice, Page, Pager, Table, Tabs, Time, toast, useLoad } from "../parts.js";
import { HealthBadge, waiting } from "../health.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import * as webhooks from "../webhooks.js";
import { ofApplication, ofProject, Signatures } from "./signatures.js";

export const words = (text) => String(text ?? "").split(/[\s,]+/).filter(Boolean);
export const orNull = (values) => (values.length ? values : null);
const asNumber = (text) => (text === "" || text === undefined || text === null ? null : Number(text));

const APPLICATION = [
  { name: "name", label: "Name", required: true },
  { name: "uid", label: "Your own id for it (uid)", hint: "Letters, digits, - _ and dots. Can be used instead of its id everywhere." },
  { name: "throttleRate", label: "Maximum messages a second", type: "number", api: ["throttleRate", "rateLimit"] },
  { name: "searchFields", label: "Fields to find messages by", type: "long", hint: "At most 3, one per line: a path in the payload (order.id). Each costs a write a message, for messages posted from now on." },
  { name: "eager", label: "Eager: a post sends the first orders itself", type: "check", hint: "Faster on AWS, for one more SQS message a delivery.", api: ["eager"] },
];
const applicationOf = (values) => ({ name: values.name, uid: values.uid || null, throttleRate: asNumber(values.throttleRate), searchFields: words(values.searchFields), eager: Boolean(values.eager) });

export function Applications({ query }) {
  const list = useLoad((signal) => webhooks.applications.list(query.iterator, signal), [query.iterator]);
  const [making, setMaking] = useState(false);
  const [signing, setSigning] = useState(false);
  const make = async (values) => {
    const made = await webhooks.applications.make(applicationOf(values));
    toast(`${made.name} is there.`);
    go("apps", made.id);
  };
  return html`<${Page} title="Applications" lead="Webhooks: one application for each customer; its endpoints get its messages, signed."
    actions=${html`<${Fragment}><a class="button" href=${href("event-types")}>Event types</a>
      <button type="button" onClick=${() => setSigning(true)}>Signatures</button>
      <button class="primary" type="button" onClick=${() => setMaking(true)}>New application</button><//>`}>
    <section class="card"><${Loaded} from=${list}>${(told) => html`<${Table} label="Applications" rows=${told.data} keyed=${(each) => each.id} empty=${html`<span>No applications yet. Make one for each customer, then add an endpoint: the URL where the customer wants webhooks.</span><button type="button" onClick=${() => setMaking(true)}>Make the first application</button>`}
      columns=${[
        ["Application", (each) => html`<a href=${href("apps", each.id)}>${each.name}</a>`],
        ["Uid", (each) => each.uid ?? "–"],
        ["Id", (each) => html`<span class="mono">${each.id}</span>`],
        ["Made", (each) => html`<${Time} at=${each.createdAt} />`],
      ]} />`}<//></section>
    <${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("apps"))} onNext=${list.data && !list.data.done && (() => go("apps", { iterator: list.data.iterator }))} />
    ${signing && html`<${Signatures} title="Signatures of the whole project" ...${ofProject()} onClose=${() => setSigning(false)} />`}
    ${making && html`<${Dialog} title="New application" onClose=${() => setMaking(false)}>
      <${Form} fields=${APPLICATION} submit="Make it" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

export function EventTypes({ query }) {
  const list = useLoad((signal) => webhooks.eventTypes.list(query.iterator, signal), [query.iterator]);
  const [making, setMaking] = useState(false);
  const make = async (values) => {
    await webhooks.eventTypes.make({ name: values.name, description: values.description ?? "" });
    setMaking(false);
    toast(`${values.name} is there.`);
    await list.reload({ quietly: true });
  };
  const archive = async (type, archived) => {
    await (archived ? webhooks.eventTypes.remove(type.name) : webhooks.eventTypes.change(type.name, { archived: false }));
    await list.reload({ quietly: true });
  };
  return html`<${Page} title="Event types" crumbs=${[["Applications", href("apps")]]} lead="The types that messages can have; endpoints choose among them."
    actions=${html`<button class="primary" type="button" onClick=${() => setMaking(true)}>New event type</button>`}>
    <section class="card"><${Loaded} from=${list}>${(told) => html`<${Table} label="Event types" rows=${told.data} keyed=${(each) => each.name} empty=${html`<span>No event types yet. Messages can have any type; those listed here are offered to customers when they choose what an endpoint gets.</span><button type="button" onClick=${() => setMaking(true)}>Make the first event type</button>`}
      columns=${[
        ["Name", (each) => html`<span class="mono">${each.name}</span>`],
        ["Description", (each) => each.description],
        ["State", (each) => html`<${Badge} kind=${each.archived ? "" : "good"}>${each.archived ? "archived" : each.deprecated ? "deprecated" : "in use"}<//>`],
        ["", (each) => html`<span class="actions"><${Doing} name=${each.archived ? "Bring back" : "Archive"} onDo=${() => archive(each, !each.archived)} /></span>`],
      ]} />`}<//></section>
    <${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("event-types"))} onNext=${list.data && !list.data.done && (() => go("event-types", { iterator: list.data.iterator }))} />
    ${making && html`<${Dialog} title="New event type" onClose=${() => setMaking(false)}>
      <${Form} fields=${[{ name: "name", label: "Name", hint: "For example invoice.paid." }, { name: "description", label: "Description" }]} submit="Make it" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

/** Where an application's page is among others; in a portal there are none. */
export const above = (app, application) => (webhooks.inPortal() ? [] : [["Applications", href("apps")]]).concat(application ? [[application.name ?? app, href("apps", app)]] : []);

const TABS = [["", "Endpoints"], ["messages", "Messages"], ["settings", "Settings"]];

export function Application({ segments: [app, tab = ""], query }) {
  const application = useLoad((signal) => webhooks.applications.show(app, signal), [app]);
  const [posting, setPosting] = useState(false);
  const portal = webhooks.inPortal();
  const tabs = TABS.filter(([key]) => !portal || key !== "settings").map(([key, name]) => [key, name, key ? href("apps", app, key) : href("apps", app)]);
  return html`<${Page} title=${application.data?.name ?? "Application"} crumbs=${above(app)}
    actions=${!portal && html`<button type="button" class="primary" onClick=${() => setPosting(true)}>Send a message</button>`}>
    <${Tabs} label="Parts of the application" current=${tab} tabs=${tabs} />
    ${tab === "" && html`<${Endpoints} app=${app} query=${query} />`}
    ${tab === "messages" && html`<${Messages} app=${app} query=${query} />`}
    ${tab === "settings" && html`<${Loaded} from=${application}>${(told) => html`<${Settings} app=${app} application=${told} reload=${application.reload} />`}<//>`}
    ${posting && html`<${Send} app=${app} onClose=${() => setPosting(false)} />`}
  <//>`;
}

export const ENDPOINT = [
  { name: "url", label: "URL", type: "url", placeholder: "https://example.com/webhook", required: true, hint: "Or on AWS: sqs://, sns://, events:// or lambda://REGION/ACCOUNT/NAME?role=ARN" },
  { name: "description", label: "Description" },
  { name: "eventTypes", label: "Event types", hint: "One per line; all if left empty.", type: "long", api: ["eventTypes", "filterTypes"] },
  { name: "channels", label: "Channels", hint: "One per line; all if left empty.", type: "long" },
  { name: "throttleRate", label: "Maximum messages a second", type: "number", api: ["throttleRate", "rateLimit"] },
];
export const endpointOf = (values) => ({
  url: values.url ?? "", description: values.description ?? "", eventTypes: orNull(words(values.eventTypes)), channels: orNull(words(values.channels)), throttleRate: asNumber(values.throttleRate),
});

function Endpoints({ app, query }) {
  const list = useLoad((signal) => webhooks.endpoints.list(app, query.iterator, signal), [app, query.iterator], { every: 15_000 });
  const [making, setMaking] = useState(false);
  const make = async (values) => {
    const made = await webhooks.endpoints.make(app, endpointOf(values));
    toast("Endpoint created.");
    go("apps", app, "endpoints", made.id);
  };
  return html`<${Card} title="Endpoints" flush aside=${html`<button type="button" onClick=${() => setMaking(true)}>New endpoint</button>`}>
    <${Loaded} from=${list}>${(told) => html`<${Table} label="Endpoints" rows=${told.data} keyed=${(each) => each.id} empty="No endpoints yet, so messages go nowhere."
      columns=${[
        ["URL", (each) => html`<a class="mono" href=${href("apps", app, "endpoints", each.id)}>${each.url}</a>`],
        ["State", (each) => html`<${HealthBadge} health=${each.health} />`],
        ["Waiting", (each) => waiting(each.health), { number: true }],
        ["Event types", (each) => (each.eventTypes ?? ["all"]).join(", ")],
        ["Description", (each) => each.description || "–"],
      ]} />`}<//>
    <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("apps", app))} onNext=${list.data && !list.data.done && (() => go("apps", app, { iterator: list.data.iterator }))} /></div>
    ${making && html`<${Dialog} title="New endpoint" onClose=${() => setMaking(false)}>
      <${Form} fields=${ENDPOINT} submit="Create the endpoint" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
  <//>`;
}

function Messages({ app, query }) {
  const list = useLoad((signal) => webhooks.messages.list(app, { iterator: query.iterator, event_types: query.type }, signal), [app, JSON.stringify(query)], { every: query.iterator ? 0 : 10_000 });
  const [type, setType] = useState(query.type ?? "");
  const find = (event) => {
    event.preventDefault();
    go("apps", app, "messages", { type });
  };
  return html`<${Fragment}>
    <form class="filter" role="search" onSubmit=${find}>
      <div class="field"><label for="type">Event type</label><input id="type" value=${type} onInput=${(event) => setType(event.currentTarget.value)} /></div>
      <button type="submit">Find</button>
    </form>
    <${Card} title="Messages" flush>
      <${Loaded} from=${list}>${(told) => html`<${Table} label="Messages" rows=${told.data} keyed=${(each) => each.id} empty="No such message in the last 90 days."
        columns=${[
          ["Message", (each) => html`<a class="mono" href=${href("apps", app, "messages", each.id)}>${each.id}</a>`],
          ["Event type", (each) => each.eventType],
          ["Event id", (each) => each.eventId ?? "–"],
          ["Accepted", (each) => html`<${Time} at=${each.timestamp} />`],
        ]} />`}<//>
      <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("apps", app, "messages", { type: query.type }))}
        onNext=${list.data && !list.data.done && (() => go("apps", app, "messages", { type: query.type, iterator: list.data.iterator }))} /></div>
    <//>
  <//>`;
}

function Send({ app, onClose }) {
  const send = async (values) => {
    let payload;
    try {
      payload = JSON.parse(values.payload);
    } catch (error) {
      throw new Refused(422, error.message, { payload: `is not JSON: ${error.message}` });
    }
    const made = await webhooks.messages.make(app, { eventType: values.eventType ?? "", payload, eventId: values.eventId || null });
    toast("Accepted.");
    go("apps", app, "messages", made.id);
    onClose();
  };
  const fields = [
    { name: "eventType", label: "Event type", hint: "For example invoice.paid." },
    { name: "payload", label: "Payload", type: "long", hint: "A JSON object." },
    { name: "eventId", label: "Event id", hint: "A message with the same id is accepted only once. Optional." },
  ];
  return html`<${Dialog} title="Send a message" onClose=${onClose}>
    <${Form} fields=${fields} values=${{ payload: "{}" }} submit="Send" onSubmit=${send} onCancel=${onClose} />
  <//>`;
}

/** Which pages may show the portal in a frame. */
function PortalFrame({ app }) {
  const from = useLoad((signal) => webhooks.applications.frame(app, signal), [app]);
  const save = async (values) => {
    await webhooks.applications.putFrame(app, words(values.origins));
    toast("Saved. It applies to new links.");
  };
  return html`<${Loaded} from=${from}>${(told) => html`<${Form} values=${{ origins: told.origins.join("\n") }} onSubmit=${save} submit="Save the origins"
    fields=${[{ name: "origins", label: "Pages that may show it in a frame", type: "long", placeholder: "https://app.example.com", hint: "Their origins, one per line; those of the project if left empty. For new links." }]} />`}<//>`;
}

function Settings({ app, application, reload }) {
  const [portal, setPortal] = useState(null);
  const [signing, setSigning] = useState(false);
  const save = async (values) => {
    await webhooks.applications.change(app, applicationOf(values));
    toast("Saved.");
    await reload({ quietly: true });
  };
  const remove = async () => {
    await webhooks.applications.remove(app);
    toast(`${application.name} is deleted.`);
    go("apps");
  };
  return html`<div class="columns">
    <${Card} title="Settings"><${Form} fields=${APPLICATION} values=${{ ...application, uid: application.uid ?? "", throttleRate: application.throttleRate ?? "", searchFields: (application.searchFields ?? []).join("\n") }} onSubmit=${save} /><//>
    <div class="stack">
      <${Card} title="The customer's portal">
        <p class="hint">A link opens only this application, for a week: its endpoints, attempts and secrets. Anyone who has the link can see them.</p>
        <div class="actions"><${Doing} name="Create a link" onDo=${async () => setPortal(await webhooks.applications.portal(app))} />
          ${portal && html`<${Copy} text=${portal.url} name="Copy the link" />`}</div>
        ${portal && html`<${Notice} kind="good">The link has been created. It is not shown; copy it.<//>`}
        <${PortalFrame} app=${app} />
      <//>
      <${Card} title="Signatures">
        <p class="hint">How its endpoints are signed that have no signatures of their own.</p>
        <div><button type="button" onClick=${() => setSigning(true)}>Signatures</button></div>
      <//>
      <${Card} title="What cannot be undone">
        <div><${Confirmed} name="Delete the application" question="Delete ${application.name}?" detail="Its endpoints get no more messages." onSure=${remove} /></div>
      <//>
    </div>
    ${signing && html`<${Signatures} title="Signatures of the application" ...${ofApplication(app)} onClose=${() => setSigning(false)} />`}
  </div>`;
}
