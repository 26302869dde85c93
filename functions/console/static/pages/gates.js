// What receivers demand before they look at a request: tokens, a client certificate, signatures; of endpoints, subscribers and services.
import { Refused } from "../http.js";
import * as hub from "../hub.js";
import * as ironmq from "../ironmq.js";
import { Dialog, Doing, Facts, Form, Loaded, Notice, Time, toast, useLoad } from "../parts.js";
import { Fragment, html, useState } from "../view.js";
import * as webhooks from "../webhooks.js";
import { headersOf } from "./queues.js";
import { Endings, Signing } from "./signatures.js";

const WARNED_MS = 30 * 86_400_000;

const byKey = (values) => values.authMethod === "clientSecretJwt";
const TOKENS = [
  { name: "tokenUrl", label: "Token URL", required: true, api: ["token_url"], hint: "Of the receiver's token server: https://..." },
  { name: "authMethod", label: "The hub shows who it is by", type: "choice", options: [["clientSecretBasic", "a secret, in the header"], ["clientSecretPost", "a secret, in the body"], ["clientSecretJwt", "a private key (private_key_jwt)"]] },
  { name: "clientId", label: "Client id", required: true, api: ["client_id"] },
  { name: "clientSecret", label: "Client secret", type: "password", when: (values) => !byKey(values), api: ["client_secret"], hint: "Never shown again. The stored one is kept if you leave this empty." },
  { name: "key", label: "Private key", type: "long", when: byKey, api: ["secretBase64", "jwtParams", "secret_base64", "jwt_params"], hint: "RSA, in PEM. Never shown again. The stored one is kept if you leave this empty." },
  { name: "secretId", label: "Key id", when: byKey, api: ["secretId", "secret_id"], hint: "What the token server calls the key (kid). Only together with the key." },
  { name: "audience", label: "Audience", when: byKey, api: ["audience"], hint: "The token URL if left empty. Only together with the key." },
  { name: "scopes", label: "Scopes", type: "long", hint: "One per line" },
  { name: "extraParams", label: "Further parameters", type: "long", api: ["extra_params"], hint: "One per line: audience: https://api.example.com" },
  { name: "extraHeaders", label: "Further headers", type: "long", api: ["extra_headers"], hint: "Of requests for tokens. One per line: Name: value" },
];
const written = (named = {}) => Object.entries(named).map(([name, value]) => `${name}: ${value}`).join("\n");

function oauthOf({ authMethod, clientId, clientSecret, tokenUrl, key, secretId, audience, ...more }) {
  const method = authMethod || "clientSecretBasic";
  const jwt = key ? { jwtParams: { secretBase64: btoa(key), signingAlgorithm: "RS256", secretId: secretId || null, audience: audience || null } } : {};
  return {
    grantType: "clientCredentials", authMethod: method, clientId, tokenUrl, ...(method === "clientSecretJwt" ? jwt : { clientSecret: clientSecret || null }),
    scopes: (more.scopes ?? "").split(/\s+/).filter(Boolean), extraParams: headersOf(more.extraParams ?? ""), extraHeaders: headersOf(more.extraHeaders ?? ""),
  };
}

const METHODS = { clientSecretBasic: "client_secret_basic", clientSecretPost: "client_secret_post", clientSecretJwt: "private_key_jwt" };

/** A grant in the words of queues and stores; what is left empty is left out. */
function inTheirWords({ authMethod, clientId, clientSecret, tokenUrl, jwtParams, scopes, extraParams, extraHeaders }) {
  const jwt = jwtParams && { secret_base64: jwtParams.secretBase64, signing_algorithm: jwtParams.signingAlgorithm, ...(jwtParams.secretId && { secret_id: jwtParams.secretId }), ...(jwtParams.audience && { audience: jwtParams.audience }) };
  return {
    token_url: tokenUrl ?? "", client_id: clientId ?? "", auth_method: METHODS[authMethod], ...(clientSecret && { client_secret: clientSecret }), ...(jwt && { jwt_params: jwt }),
    ...(scopes.length && { scopes }), ...(Object.keys(extraParams).length && { extra_params: extraParams }), ...(Object.keys(extraHeaders).length && { extra_headers: extraHeaders }),
  };
}

/**
 * How tokens are obtained for a receiver behind OAuth 2.0.
 *
 * @param from Loads {enabled, config}; without config, what is set is not shown.
 */
export function Tokens({ from, put, onRemove, onClose, onDone }) {
  const now = useLoad(from, []);
  const save = async (values) => {
    await put(oauthOf(values));
    await onDone();
  };
  const remove = async () => {
    await onRemove();
    await onDone();
  };
  return html`<${Dialog} title="Tokens" onClose=${onClose}>
    <${Loaded} from=${now}>${({ enabled, config }) => html`<${Fragment}>
      <p class="hint">For receivers behind OAuth 2.0: each request carries a token that their token server gives the hub.</p>
      ${enabled && !config && html`<${Notice}>Tokens are sent. What is set is not shown; what you save here replaces it.<//>`}
      ${enabled && html`<${Doing} name="Send no tokens" onDo=${remove} />`}
      <${Form} fields=${TOKENS} onSubmit=${save} onCancel=${onClose}
        values=${{ authMethod: "clientSecretBasic", ...config, scopes: (config?.scopes ?? []).join("\n"), extraParams: written(config?.extraParams), extraHeaders: written(config?.extraHeaders) }} />
    <//>`}<//>
  <//>`;
}

const CERTIFICATE = [
  { name: "identity", label: "Private key and certificate", type: "long", required: true, hint: "PEM, with the certificates above it if the receiver wants them. The key must not be encrypted; it is never shown again." },
  { name: "ca", label: "The receiver's own authority", type: "long", hint: "PEM. Left empty, the public authorities are trusted." },
];

/** The certificate that connections to a receiver show. */
export function Certificate({ from, put, onRemove, onClose, onDone }) {
  const now = useLoad(from, []);
  const save = async ({ identity, ca }) => {
    await put({ identity: identity ?? "", ca: ca || null });
    await onDone();
  };
  const remove = async () => {
    await onRemove();
    await onDone();
  };
  return html`<${Dialog} title="Client certificate" onClose=${onClose}>
    <${Loaded} from=${now}>${({ enabled, config = {} }) => html`<${Fragment}>
      <p class="hint">For receivers that demand mutual TLS: connections to them show this certificate.</p>
      ${enabled && html`<${Fragment}>
        ${Date.parse(config.endsAt) - Date.now() < WARNED_MS && html`<${Notice} kind=${Date.parse(config.endsAt) < Date.now() ? "bad" : "warn"}>It ends <${Time} at=${config.endsAt} />; after that nothing is sent there.<//>`}
        <${Facts} of=${[["Now", config.subject], ["Ends", html`<${Time} at=${config.endsAt} />`], ["Receiver's authority", config.privateCa ? "its own" : "public ones"]]} />
        <${Doing} name="Show no certificate" onDo=${remove} />
      <//>`}
      <${Form} fields=${CERTIFICATE} onSubmit=${save} onCancel=${onClose} />
    <//>`}<//>
  <//>`;
}

/** The gates of an endpoint. */
export const gatesOfEndpoint = (app, id) => ({
  tokens: { from: (signal) => webhooks.endpoints.oauth(app, id, signal), put: (body) => webhooks.endpoints.putOauth(app, id, body), onRemove: () => webhooks.endpoints.removeOauth(app, id) },
  certificate: { from: (signal) => webhooks.endpoints.certificate(app, id, signal), put: (body) => webhooks.endpoints.putCertificate(app, id, body), onRemove: () => webhooks.endpoints.removeCertificate(app, id) },
});

/** A subscriber of a queue, or a service of a store: as its API shows it, and what changes it. */
export const subscriberOf = (queue, subscriber) => ({ shown: subscriber, save: (more) => ironmq.putSubscriber(queue, { ...withoutGates(subscriber), ...more }) });
export const serviceOf = (mapping) => ({ shown: mapping, save: (more) => said(() => hub.things.change("mappings", mapping.id, { mapping: more })) });

/** What a subscriber is sent again to stay as it is: gates and signatures that are not named are kept, whatever this page knew of them. */
export function withoutGates({ signing, signing_ends, oauth, mtls, ...kept }) {
  return kept;
}

/** A store names the whole gate, and in its text the field in it. */
async function said(change) {
  try {
    return await change();
  } catch (error) {
    const told = error instanceof Refused && Object.values(error.fields).join("; ");
    throw told ? new Refused(error.status, told, {}) : error;
  }
}

/** What a subscriber or service demands: as it is, and forms to set and remove it. */
export function Demands({ of: { shown, save }, onDone }) {
  const [edited, setEdited] = useState("");
  const close = () => setEdited("");
  // The dialog stays until the page shows what is set now: nobody is to change what was.
  const done = async () => {
    await onDone();
    close();
    toast("Saved. It is in force at once.");
  };
  const http = /^https?:/i.test(shown.url);
  const { oauth, mtls, signing } = shown;
  const config = mtls && { subject: mtls.subject, endsAt: mtls.ends_at, privateCa: mtls.private_ca };
  const tokens = { from: async () => ({ enabled: Boolean(oauth) }), put: (body) => save({ oauth: inTheirWords(body) }), onRemove: () => save({ oauth: false }) };
  const certificate = { from: async () => ({ enabled: Boolean(mtls), config }), put: ({ identity, ca }) => save({ mtls: { identity, ...(ca && { ca }) } }), onRemove: () => save({ mtls: false }) };
  const until = mtls && `${mtls.subject}, ${Date.parse(mtls.ends_at) > Date.now() ? "ends" : "ended"} ${mtls.ends_at.slice(0, 10)}`;
  return html`<${Fragment}>
    <${Facts} of=${[["Signatures", signing && "each request is signed"], ["Tokens", oauth && "each request carries one (OAuth 2.0)"], ["Client certificate", until]]} />
    <${Endings} ends=${shown.signing_ends} />
    <div class="actions">
      <button type="button" onClick=${() => setEdited("signatures")}>Signatures</button>
      ${http && html`<${Fragment}><button type="button" onClick=${() => setEdited("tokens")}>Tokens</button><button type="button" onClick=${() => setEdited("certificate")}>Certificate</button><//>`}
    </div>
    ${edited === "signatures" && html`<${Signing} signed=${Boolean(signing)} save=${(wanted) => save({ signing: wanted })} onClose=${close} onDone=${done} />`}
    ${edited === "tokens" && html`<${Tokens} ...${tokens} onClose=${close} onDone=${done} />`}
    ${edited === "certificate" && html`<${Certificate} ...${certificate} onClose=${close} onDone=${done} />`}
  <//>`;
}
