// The signatures of requests: an endpoint's own schemes, and those that endpoints of an application or project inherit.
import { Refused } from "../http.js";
import { Card, Confirmed, Dialog, Doing, Facts, Form, Loaded, Notice, Time, toast, useLoad } from "../parts.js";
import { Fragment, html, useState } from "../view.js";
import * as webhooks from "../webhooks.js";

const DAY_MS = 86_400_000;
const WARNED_MS = 7 * DAY_MS;
const STANDARD = "standard-webhooks";
const MOST = 2;

const NAMES = [
  [STANDARD, "Standard Webhooks"], ["stripe", "Stripe"], ["github", "GitHub"], ["shopify", "Shopify"], ["slack", "Slack"], ["twilio", "Twilio"], ["convoy-simple", "Convoy, simple"],
  ["convoy-advanced", "Convoy, advanced"], ["outpost", "Outpost"], ["hook0", "Hook0"], ["hmac-body", "HMAC of the body"], ["", "One of your own"],
];
const nameOf = (scheme) => NAMES.find(([preset]) => preset === (scheme.preset ?? ""))?.[1] ?? scheme.preset;
const headerOf = (scheme) => scheme.header?.name ?? "webhook-signature";

const isOwn = (values) => values.preset === "";
const fieldsOf = (shared) => [
  { name: "preset", label: "As", type: "choice", options: NAMES.filter(([preset]) => !shared || preset !== "twilio") },
  { name: "template", label: "The scheme", type: "long", when: isOwn, api: ["content", "hash", "encoding", "key", "header", "value", "each", "joiner", "keys", "headers", "legacy"], hint: "JSON with content and header, as in the documentation of signatures." },
  { name: "name", label: "Header", when: (values) => values.preset === "hmac-body", hint: "That carries the signature: X-Signature" },
  { name: "shop", label: "Shop domain", when: (values) => values.preset === "shopify", api: ["x-shopify-shop-domain", "X-Shopify-Shop-Domain"], hint: "Receivers want it: shop.example.com" },
  { name: "version", label: "API version", when: (values) => values.preset === "shopify", api: ["x-shopify-api-version", "X-Shopify-API-Version"], hint: "Receivers want it: 2026-10" },
  ...(shared ? [] : [{ name: "secret", label: "Secret", type: "password", when: (values) => values.preset !== STANDARD, hint: "Exactly as the receiver has it. Never shown again." }]),
];

function schemeOf({ preset, template, name, shop, version, secret }, shared) {
  const given = {};
  if (isOwn({ preset })) {
    try {
      Object.assign(given, JSON.parse(template || "{}"));
    } catch (error) {
      throw new Refused(422, error.message, { template: `is not JSON: ${error.message}` });
    }
  } else given.preset = preset;
  if (preset === "hmac-body") given.header = { name: name ?? "" };
  if (preset === "shopify") given.headers = { ...(shop && { "X-Shopify-Shop-Domain": shop }), ...(version && { "X-Shopify-API-Version": version }) };
  return shared || preset === STANDARD ? given : { ...given, secret: secret ?? "" };
}

/** The time at the end of a day, here, that a person has chosen. */
function endOf(day) {
  const at = new Date(`${day}T23:59:59`);
  if (Number.isNaN(at.getTime())) throw new Refused(422, "Choose a day.", { endsAt: "Choose a day." });
  return at.toISOString();
}

/**
 * A dialog with the schemes of an endpoint, or those that endpoints inherit.
 *
 * @param shared Whether endpoints inherit them: then they have no secrets.
 */
export function Signatures({ title, from, save, shared = false, onClose }) {
  const now = useLoad(from, []);
  const [asked, setAsked] = useState(null);
  const put = async (schemes) => {
    await save(schemes);
    setAsked(null);
    toast("Saved. It is in force at once.");
    await now.reload({ quietly: true });
  };
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <${Loaded} from=${now}>${({ signatures, inheritedFrom }) => {
      const own = inheritedFrom ? [] : signatures;
      const without = (scheme) => own.filter((each) => each !== scheme);
      const instead = (scheme, more) => own.map((each) => (each === scheme ? { ...each, ...more } : each));
      return html`<${Fragment}>
        <p class="hint">${shared ? "How endpoints are signed that have no signatures of their own; each with its own secret." : "What each request to this endpoint is signed with: one scheme, or two at a time while its receiver moves."}</p>
        ${inheritedFrom && html`<${Notice}>They are those of the ${inheritedFrom}. One of its own replaces them here.<//>`}
        ${signatures.length === 0 && html`<p>${shared ? "None: as Standard Webhooks, or as the project says." : "None."}</p>`}
        ${signatures.map((scheme) => html`<${Scheme} key=${headerOf(scheme)} scheme=${scheme} may=${!inheritedFrom} shared=${shared} alone=${own.length < 2}
          onAsk=${(what) => setAsked({ what, scheme })} onForever=${() => put(instead(scheme, { endsAt: null }))} onRemove=${() => put(without(scheme))} />`)}
        ${own.length < MOST && html`<div class="actions"><button type="button" onClick=${() => setAsked({ what: "add" })}>Add a signature</button></div>`}
        ${own.length > 0 && (shared || own.length > 1 || own[0].preset !== STANDARD) && html`<${Confirmed} name="Remove all" question="Remove all signatures here?" detail="Requests are signed as the application or project says, or else as Standard Webhooks. Stored secrets are deleted." onSure=${() => put([])} />`}
        <div><button type="button" onClick=${onClose}>Close</button></div>
        ${asked?.what === "add" && html`<${Dialog} title="Add a signature" onClose=${() => setAsked(null)}>
          <${Form} fields=${fieldsOf(shared)} values=${{ preset: own.some((each) => each.preset === STANDARD) ? "stripe" : STANDARD }} submit="Add it" onSubmit=${(values) => put([...own, schemeOf(values, shared)])} onCancel=${() => setAsked(null)} />
        <//>`}
        ${asked?.what === "secret" && html`<${Dialog} title="New secret of ${nameOf(asked.scheme)}" onClose=${() => setAsked(null)}>
          <${Form} fields=${[{ name: "secret", label: "New secret", type: "password", hint: asked.scheme.header.keys === "all" ? "The present one also signs for another day. Never shown again." : "It signs at once, and alone. Never shown again." }]}
            submit="Replace it" onSubmit=${({ secret }) => put(instead(asked.scheme, { secret: secret ?? "" }))} onCancel=${() => setAsked(null)} />
        <//>`}
        ${asked?.what === "end" && html`<${Dialog} title="End ${nameOf(asked.scheme)}" onClose=${() => setAsked(null)}>
          <${Form} fields=${[{ name: "endsAt", label: "Last day", type: "date", hint: "Within 400 days. From the next day on, requests are signed by the other scheme alone." }]}
            submit="Set the end" onSubmit=${({ endsAt }) => put(instead(asked.scheme, { endsAt: endOf(endsAt) }))} onCancel=${() => setAsked(null)} />
        <//>`}
      <//>`;
    }}<//>
  <//>`;
}

function Scheme({ scheme, may, shared, alone, onAsk, onForever, onRemove }) {
  const soon = scheme.endsAt && Date.parse(scheme.endsAt) - Date.now() < WARNED_MS;
  const old = scheme.oldSecretsEnd ?? [];
  return html`<${Card} title=${nameOf(scheme)}>
    ${soon && html`<${Notice} kind="warn">It ends <${Time} at=${scheme.endsAt} />; after that requests are signed without it.<//>`}
    <${Facts} of=${[
      ["Header", html`<span class="mono">${headerOf(scheme)}</span>`], ["What is hashed", scheme.content && html`<span class="mono">${scheme.content}</span>`],
      ["Ends", scheme.endsAt && html`<${Time} at=${scheme.endsAt} />`], ["Earlier secrets", old.length ? html`${old.length}, the last until <${Time} at=${old.at(-1)} />` : null],
    ]} />
    ${may && html`<div class="actions">
      ${!shared && scheme.preset !== STANDARD && html`<button type="button" onClick=${() => onAsk("secret")}>New secret</button>`}
      ${scheme.endsAt ? html`<${Doing} name="No end" onDo=${onForever} />` : !alone && html`<button type="button" onClick=${() => onAsk("end")}>Set an end</button>`}
      ${!alone && html`<${Confirmed} name="Remove" question="Remove ${nameOf(scheme)}?" detail="From now on requests are signed without it." onSure=${onRemove} />`}
    </div>`}
  <//>`;
}

export const ofEndpoint = (app, id) => ({ from: (signal) => webhooks.endpoints.signatures(app, id, signal), save: (schemes) => webhooks.endpoints.putSignatures(app, id, schemes) });
export const ofApplication = (app) => ({ from: (signal) => webhooks.signatures.show(app, signal), save: (schemes) => webhooks.signatures.put(app, schemes), shared: true });
export const ofProject = () => ({ from: (signal) => webhooks.signatures.show("", signal), save: (schemes) => webhooks.signatures.put("", schemes), shared: true });

const INHERIT = "inherit";
const INHERITED = [INHERIT, "As the project says, or else Standard Webhooks"];

/** The fields of one of two schemes; their names end in its number. */
function fieldsAt(number) {
  const when = (values) => number === 0 || values.two;
  const own = (values) => ({ ...values, preset: values[`preset${number}`] });
  return fieldsOf(false).map((each) => ({
    ...each,
    name: `${each.name}${number}`,
    label: number ? `${each.label} (second)` : each.label,
    api: [`signatures.${number}.${each.name}`, ...(each.api ?? []).map((name) => `signatures.${number}.${name}`), ...(number ? [] : [each.name, ...(each.api ?? [])])],
    when: (values) => when(values) && (each.name === "secret" || !each.when || each.when(own(values))),
    ...(each.name === "preset" && { options: [...(number ? [] : [INHERITED]), ...NAMES.filter(([preset]) => preset !== "twilio")] }),
    ...(each.name === "secret" && { hint: "Exactly as the receiver has it; whsec_... for Standard Webhooks. Never shown again. The stored one is kept if you leave this empty." }),
  }));
}

const SIGNING = [
  ...fieldsAt(0),
  { name: "two", label: "Another signature beside it, while the receiver moves", type: "check", when: (values) => values.preset0 !== INHERIT },
  { name: "endsAt", label: "Last day of the first", type: "date", when: (values) => values.two && values.preset0 !== INHERIT, api: ["endsAt", "signatures.0.endsAt"], hint: "Within 400 days; empty: both sign until you change it." },
  ...fieldsAt(1).map((each) => ({ ...each, when: (values) => values.preset0 !== INHERIT && each.when(values) })),
];

/** What a queue's subscriber or a store's service is sent as `signing`. */
function signingOf(values) {
  if (values.preset0 === INHERIT) return { secret: values.secret0 ?? "" };
  const numbers = values.two ? [0, 1] : [0];
  const of = (number) => {
    const at = (name) => values[`${name}${number}`];
    const { secret, ...scheme } = schemeOf({ preset: at("preset"), template: at("template"), name: at("name"), shop: at("shop"), version: at("version"), secret: at("secret") }, false);
    return { ...scheme, ...(secret && { secret }), ...(number === 0 && values.two && values.endsAt && { endsAt: endOf(values.endsAt) }) };
  };
  const standard = numbers.find((number) => values[`preset${number}`] === STANDARD);
  const key = standard === undefined ? "" : values[`secret${standard}`];
  return { ...(key && { secret: key }), signatures: numbers.map(of) };
}

/** How requests to a subscriber or service are signed. What is set is not shown: what is saved replaces it, but secrets that are left empty stay. */
export function Signing({ signed, save, onClose, onDone }) {
  const put = async (wanted) => {
    await save(wanted);
    await onDone();
  };
  return html`<${Dialog} title="Signatures" onClose=${onClose}>
    <p class="hint">${signed ? "Requests are signed. What you save here replaces how; a secret that you leave empty stays." : "Requests are not signed yet."}</p>
    ${signed && html`<${Confirmed} name="Sign no more" question="Sign requests no more?" detail="Stored secrets are deleted." onSure=${() => put(false)} />`}
    <${Form} fields=${SIGNING} values=${{ preset0: INHERIT, preset1: STANDARD }} onSubmit=${(values) => put(signingOf(values))} onCancel=${onClose} />
  <//>`;
}

/** When schemes of a subscriber or service end. */
export function Endings({ ends = {} }) {
  const ahead = Object.entries(ends).filter(([, at]) => Date.parse(at) > Date.now());
  return ahead.map(([header, at]) => html`<${Notice} key=${header} kind=${Date.parse(at) - Date.now() < WARNED_MS ? "warn" : ""}>The signature <span class="mono">${header}</span> ends <${Time} at=${at} />.<//>`);
}
