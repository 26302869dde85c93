// Sources: URLs that take in what other senders post (docs/sources.md). What came in stands at the source's page among applications.
import { Badge, Card, Confirmed, Copy, Dialog, Form, Loaded, Notice, Page, Pager, Table, Time, toast, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import { sources } from "../webhooks.js";

const KINDS = [
  ["github", "GitHub"], ["stripe", "Stripe"], ["shopify", "Shopify"], ["slack", "Slack"], ["hubspot", "HubSpot"], ["zoom", "Zoom"], ["meta", "Meta"],
  ["svix", "Svix, or another that signs as Standard Webhooks says"], ["generic-webhook", "anybody who has the URL"],
];
const FIELDS = [
  { name: "name", label: "Name", required: true },
  { name: "type", label: "Sender", type: "choice", options: KINDS },
  { name: "secret", label: "The sender's secret", type: "password", when: (values) => values.type !== "generic-webhook", hint: "With which it signs. Never shown again." },
  { name: "verifyToken", label: "Verify token", when: (values) => values.type === "meta", hint: "Any text; enter the same at Meta." },
  { name: "url", label: "Send what comes in to", type: "url", placeholder: "https://example.com/webhook", hint: "Optional; more endpoints can be added later." },
];

const configOf = (values) => ({ ...(values.type !== "generic-webhook" && values.secret && { secret: values.secret }), ...(values.type === "meta" && values.verifyToken && { verifyToken: values.verifyToken }) });

export function Sources({ query }) {
  const list = useLoad((signal) => sources.list(query.iterator, signal), [query.iterator]);
  const [making, setMaking] = useState(false);
  const [looked, setLooked] = useState(null);
  const make = async (values) => {
    const source = await sources.make({ name: values.name, type: values.type, config: configOf(values) });
    if (values.url) await sources.addEndpoint(source.id, { url: values.url });
    setMaking(false);
    toast(`${source.name} is there: give its URL to the sender.`);
    await list.reload({ quietly: true });
  };
  const rotate = async (source) => {
    await sources.rotate(source.id);
    toast("It has another URL; the previous one goes on for 48 hours.");
    await list.reload({ quietly: true });
  };
  const remove = async (source) => {
    await sources.remove(source.id);
    toast(`${source.name} is deleted.`);
    await list.reload({ quietly: true });
  };
  return html`<${Page} title="Sources" lead="URLs that take in what other senders post: verified, stored and passed on."
    actions=${html`<button type="button" class="primary" onClick=${() => setMaking(true)}>New source</button>`}>
    <${Card} flush>
      <${Loaded} from=${list}>${(told) => html`<${Table} label="Sources" rows=${told.data} keyed=${(each) => each.id} empty="No sources yet. Make one for each sender whose webhooks you want to receive." columns=${[
        ["Source", (each) => html`<a href=${href("apps", each.id, "messages")}>${each.name}</a>`],
        ["Sender", (each) => each.type],
        ["Verified", (each) => html`<${Badge} kind=${each.verified ? "good" : "warn"}>${each.verified ? "by signature" : "by URL alone"}<//>`],
        ["Endpoints", (each) => html`<a href=${href("apps", each.id)}>Endpoints</a>`],
        ["Made", (each) => html`<${Time} at=${each.createdAt} />`],
        ["", (each) => html`<span class="actions">
          <${Copy} text=${each.ingestUrl} name="Copy the URL" />
          <button type="button" class="plain" aria-label="What ${each.name} refused" onClick=${() => setLooked(each)}>Refused</button>
          <${Confirmed} name="New URL" question="Give ${each.name} another URL?" detail="The previous one goes on for 48 hours." onSure=${() => rotate(each)} />
          <${Confirmed} name="Delete" question="Delete ${each.name}?" detail="Nothing comes in any more, and what came in is no longer delivered." onSure=${() => remove(each)} />
        </span>`],
      ]} />`}<//>
      <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("sources"))} onNext=${list.data && !list.data.done && (() => go("sources", { iterator: list.data.iterator }))} /></div>
    <//>
    ${making && html`<${Dialog} title="New source" onClose=${() => setMaking(false)}>
      <${Form} fields=${FIELDS} values=${{ type: "github" }} submit="Create the source" onSubmit=${make} onCancel=${() => setMaking(false)} />
    <//>`}
    ${looked && html`<${Refusals} source=${looked} onClose=${() => setLooked(null)} />`}
  <//>`;
}

const REASONS = ["unsigned", "forged", "old", "duplicate", "loop"];

function Refusals({ source, onClose }) {
  const found = useLoad((signal) => sources.stats(source.id, signal), [source.id]);
  return html`<${Dialog} title="Refused by ${source.name}" onClose=${onClose}>
    <${Loaded} from=${found}>${(told) => html`<${Fragment}>
      ${told.last && html`<${Notice}>The last one (${told.last.reason}) came from ${told.last.address || "an unknown address"}, <${Time} at=${told.last.at} />.<//>`}
      <${Table} label="Refused by day" rows=${told.days} keyed=${(each) => each.day} empty="Nothing in the last 30 days." columns=${[
        ["Day", (each) => each.day],
        ...REASONS.map((reason) => [reason, (each) => each[reason], { number: true }]),
      ]} />
    <//>`}<//>
  <//>`;
}
