// An endpoint of webhooks: its health, its attempts, what is still ahead, its secret; and one message with all its attempts.
import { Ahead, Badge, Bars, Body, Card, Confirmed, Copy, Dialog, Doing, Facts, FanOut, Figures, Form, Loaded, Notice, Page, Table, Time, Timeline, hourName, shorten, toast, useLoad } from "../parts.js";
import { isWell, HealthBadge, HealthNotice, waiting, waits, waitsForOne } from "../health.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import * as webhooks from "../webhooks.js";
import { above, ENDPOINT, endpointOf } from "./applications.js";
import { Compared, curl } from "./attempts.js";
import { Certificate, gatesOfEndpoint, Tokens } from "./gates.js";
import { Outages } from "./outages.js";
import { headersOf } from "./queues.js";
import { Endings, ofEndpoint, Signatures } from "./signatures.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;
const { stateOf } = webhooks;
const answered = (attempt) => (attempt.responseStatusCode ? `HTTP ${attempt.responseStatusCode}` : "no answer");

export function Endpoint({ segments: [app, , id] }) {
  const about = useLoad(async (signal) => {
    const [application, endpoint] = await Promise.all([webhooks.applications.show(app, signal), webhooks.endpoints.show(app, id, signal)]);
    return { application, endpoint };
  }, [app, id]);
  const attempts = useLoad((signal) => webhooks.endpoints.attempts(app, id, { limit: 250, after: new Date(Date.now() - HOURS * HOUR_MS).toISOString() }, signal), [app, id], { every: 10_000 });
  const ahead = useLoad((signal) => webhooks.endpoints.messages(app, id, { status: 3, limit: 250 }, signal), [app, id], { every: 10_000 });
  const stats = useLoad((signal) => webhooks.endpoints.stats(app, id, signal), [app, id]);
  const health = useLoad((signal) => webhooks.endpoints.health(app, id, signal), [app, id], { every: 10_000 });
  const [edited, setEdited] = useState("");
  const shown = about.data?.endpoint;
  const theirs = webhooks.tenantsOwn(shown?.url);
  const enable = async (disabled) => {
    await webhooks.endpoints.change(app, id, { disabled });
    toast(disabled ? "It gets no messages until it is resumed." : "It gets messages again.");
    await Promise.all([about.reload({ quietly: true }), health.reload({ quietly: true })]);
  };
  const resend = async (message) => {
    const { skipped } = await webhooks.messages.resend(app, message, id);
    toast(skipped ? "Nothing is sent: the endpoint is disabled." : "It is sent again.");
    await attempts.reload({ quietly: true });
  };
  const test = async () => {
    await webhooks.endpoints.test(app, id, "svix.ping");
    toast("A test message is on its way.");
    await attempts.reload({ quietly: true });
  };
  const remove = async () => {
    await webhooks.endpoints.remove(app, id);
    toast("The endpoint is deleted.");
    go("apps", app);
  };
  const saved = async () => {
    await about.reload({ quietly: true });
    setEdited("");
    toast("Saved.");
  };
  return html`<${Page} title=${shown?.url ?? "Endpoint"} crumbs=${above(app, about.data?.application)}
    actions=${shown && !theirs && html`<${Fragment}>
      ${!webhooks.inPortal() && html`<${Doing} name="Send a test" kind="primary" onDo=${test} />`}
      <${Doing} name=${shown.disabled ? "Resume" : "Pause"} onDo=${() => enable(!shown.disabled)} />
      <button type="button" onClick=${() => setEdited("endpoint")}>Edit</button>
      <${Confirmed} name="Delete" question="Delete this endpoint?" detail="It gets no more messages." onSure=${remove} />
    <//>`}>
    <${Loaded} from=${about}>${({ application, endpoint }) => html`<${Fragment}>
      ${theirs && html`<${Notice}>This endpoint is the provider's own: it is shown because it gets your messages, too.<//>`}
      ${health.data && html`<${HealthNotice} health=${health.data.health} disablesAt=${health.data.disablesAt} action=${endpoint.disabled && !theirs ? "Resume" : undefined} onAction=${() => enable(false)} />`}
      <${Endings} ends=${health.data?.signaturesEnd} />
      <${Loaded} from=${stats}>${(told) => html`<${Figures} of=${[["Delivered, 28 days", told.success], ["Failed", told.fail], ["Waiting", health.data ? waiting(health.data.health) : "–"], ["Usual answer", typical(attempts.data?.data)], ["State", health.data ? html`<${HealthBadge} health=${health.data.health} />` : "–"]]} />`}<//>
      <${Card} title="The last day, by hour">
        <${Loaded} from=${attempts}>${(told) => html`<${Bars} label="Attempts by hour" items=${byHour(told.data)} />
          <p class="legend">${told.done ? "" : "The newest 250 attempts are shown."} Green: delivered. Red: failed.${!webhooks.inPortal() && html` <a href=${href("charts", { subscriber: endpoint.id })}>Other periods, and how long answers took</a>.`}</p>`}<//>
      <//>
      ${!webhooks.inPortal() && html`<${Outages} queue=${`webhooks/${application.id}`} subscriber=${endpoint.id} />`}
      <div class="columns">
        <${Card} title="Still ahead" flush>
          <${Loaded} from=${ahead}>${(told) => html`${health.data && waitsForOne(health.data.health)
            ? health.data.health.waiting > 0 && html`<div class="inside"><p class="hint">${waits(health.data.health)} for the same: ${health.data.health.text}. Those that were tried before are listed.</p></div>`
            : told.data.length > 0 && html`<div class="inside"><${Ahead} times=${told.data.map((each) => each.nextAttempt)} /></div>`}<${Table} label="Still ahead" rows=${told.data.slice(0, 10)} keyed=${(each) => each.id} empty="None that was tried before." columns=${[
            ["Message", (each) => html`<a href=${href("apps", app, "messages", each.id)}>${each.eventType}</a>`],
            ["Next attempt", (each) => html`<${Time} at=${each.nextAttempt} />`],
          ]} />`}<//>
        <//>
        <div class="stack">
          ${!theirs && html`<${Secret} app=${app} id=${id} old=${health.data?.oldSecretsEnd ?? []} onChanged=${() => health.reload({ quietly: true })} />
          <${Recover} app=${app} id=${id} />`}
          <${Card} title="What it gets" aside=${!theirs && html`<${Fragment}><button type="button" onClick=${() => setEdited("headers")}>Headers</button><button type="button" onClick=${() => setEdited("tokens")}>Tokens</button><button type="button" onClick=${() => setEdited("certificate")}>Certificate</button><button type="button" onClick=${() => setEdited("signatures")}>Signatures</button><a class="button" href=${href("apps", app, "endpoints", id, "transformation")}>Transformation</a><//>`}>
            <${Facts} of=${[
              ["Event types", (endpoint.eventTypes ?? ["all"]).join(", ")], ["Channels", (endpoint.channels ?? ["all"]).join(", ")],
              ["At most", endpoint.throttleRate && `${endpoint.throttleRate} a second`], ["Description", endpoint.description], ["Id", html`<span class="mono">${endpoint.id}</span>`],
            ]} />
          <//>
        </div>
      </div>
      <${Card} title="Attempts" flush>
        <${Loaded} from=${attempts}>${(told) => html`<${Table} label="Attempts" rows=${told.data.slice(0, 25)} keyed=${(each) => each.id} empty="None in the last day." columns=${[
          ["When", (each) => html`<${Time} at=${each.timestamp} />`],
          ["Result", (each) => html`<${Badge} state=${stateOf(each)} />`],
          ["Answer", (each) => html`<span class="answer">${answered(each)}</span>`],
          ["Took", (each) => `${each.responseDurationMs} ms`, { number: true }],
          ["Text", (each) => html`<span class="snippet">${shorten(each.response, 100)}</span>`],
          ["Message", (each) => html`<a href=${href("apps", app, "messages", each.msgId)}>History</a>`],
          ...(theirs ? [] : [["", (each) => html`<span class="actions"><${Confirmed} name="Send again" kind="" question="Send this message again?" detail="Once, at once, to this endpoint alone." onSure=${() => resend(each.msgId)} /></span>`]]),
        ]} />`}<//>
      <//>
      ${edited === "endpoint" && html`<${Edit} app=${app} endpoint=${endpoint} onClose=${() => setEdited("")} onDone=${saved} />`}
      ${edited === "headers" && html`<${Headers} app=${app} id=${id} onClose=${() => setEdited("")} onDone=${saved} />`}
      ${edited === "certificate" && html`<${Certificate} ...${gatesOfEndpoint(app, id).certificate} onClose=${() => setEdited("")} onDone=${saved} />`}
      ${edited === "signatures" && html`<${Signatures} title="Signatures" ...${ofEndpoint(app, id)} onClose=${() => { setEdited(""); health.reload({ quietly: true }); }} />`}
      ${edited === "tokens" && html`<${Tokens} ...${gatesOfEndpoint(app, id).tokens} onClose=${() => setEdited("")} onDone=${saved} />`}
    <//>`}<//>
  <//>`;
}

function byHour(attempts) {
  const first = Math.floor(Date.now() / HOUR_MS) - HOURS + 1;
  const hours = Array.from({ length: HOURS }, (_, index) => ({ label: hourName((first + index) * HOUR_MS), good: 0, bad: 0 }));
  for (const each of attempts) {
    const hour = hours[Math.floor(Date.parse(each.timestamp) / HOUR_MS) - first];
    if (hour) hour[stateOf(each) === "success" ? "good" : "bad"]++;
  }
  return hours;
}

function typical(attempts = []) {
  const times = attempts.map((each) => each.responseDurationMs).sort((a, b) => a - b);
  return times.length ? `${times[Math.floor(times.length / 2)]} ms` : "–";
}

function Edit({ app, endpoint, onClose, onDone }) {
  const save = async (values) => {
    await webhooks.endpoints.change(app, endpoint.id, endpointOf(values));
    await onDone();
  };
  const values = { ...endpoint, eventTypes: (endpoint.eventTypes ?? []).join("\n"), channels: (endpoint.channels ?? []).join("\n"), throttleRate: endpoint.throttleRate ?? "" };
  return html`<${Dialog} title="Edit the endpoint" onClose=${onClose}><${Form} fields=${ENDPOINT} values=${values} onSubmit=${save} onCancel=${onClose} /><//>`;
}

function Headers({ app, id, onClose, onDone }) {
  const now = useLoad((signal) => webhooks.endpoints.headers(app, id, signal), [app, id]);
  const save = async (values) => {
    await webhooks.endpoints.putHeaders(app, id, headersOf(values.headers));
    await onDone();
  };
  return html`<${Dialog} title="Headers" onClose=${onClose}>
    <${Loaded} from=${now}>${(told) => html`<${Fragment}>
      ${told.sensitive.length > 0 && html`<${Notice} kind="warn">Hidden, and removed when you save unless you enter them again: ${told.sensitive.join(", ")}<//>`}
      <${Form} fields=${[{ name: "headers", label: "Headers", type: "long", hint: "One per line: Name: value" }]}
        values=${{ headers: Object.entries(told.headers).map(([name, value]) => `${name}: ${value}`).join("\n") }} onSubmit=${save} onCancel=${onClose} />
    <//>`}<//>
  <//>`;
}

function Secret({ app, id, old, onChanged }) {
  const [secret, setSecret] = useState("");
  const show = async () => setSecret(await webhooks.endpoints.secret(app, id));
  const rotate = async () => {
    await webhooks.endpoints.rotate(app, id);
    if (secret) await show();
    onChanged();
    toast("There is a new secret; the old one also signs for another day.");
  };
  return html`<${Card} title="Signing secret">
    ${secret && html`<code class="mono" data-secret>${secret}</code>`}
    ${old.length > 0 && html`<p class="hint">${old.length === 1 ? "An earlier secret still signs" : `${old.length} earlier secrets still sign`}, the last one's end is <${Time} at=${old.at(-1)} />.</p>`}
    <div class="actions">
      ${secret ? html`<${Fragment}><${Copy} text=${secret} /><button type="button" onClick=${() => setSecret("")}>Hide</button><//>` : html`<${Doing} name="Show" onDo=${show} />`}
      <${Confirmed} name="New secret" kind="" question="Create a new secret?" detail="Messages are signed with both for a day, so that the receiver has time to switch." onSure=${rotate} />
    </div>
  <//>`;
}

const SINCE = [["1", "the last hour"], ["24", "the last day"], ["168", "the last week"], ["336", "the last two weeks"]];
const TASK_LOOKS = 60;

/** Sends again what failed and never arrived; shows how many that would be first, and how far it is. */
function Recover({ app, id }) {
  const [hours, setHours] = useState("24");
  const [would, setWould] = useState(null);
  const [most, setMost] = useState(null);
  const [progress, setProgress] = useState(null);
  const since = () => new Date(Date.now() - Number(hours) * HOUR_MS).toISOString();
  const count = async () => {
    const failed = await webhooks.endpoints.messages(app, id, { status: 2, limit: 250, after: since() });
    const found = `${failed.data.length}${failed.done ? "" : " or more"} ${failed.data.length === 1 && failed.done ? "message" : "messages"}`;
    setMost(failed.done ? failed.data.length : null);
    setWould(`${found} failed and never arrived.`);
    return failed.data.length ? { question: `Send ${found} again to this endpoint?`, detail: `What failed in ${SINCE.find(([key]) => key === hours)[1]} and never arrived, each once.` } : null;
  };
  const run = async () => {
    const { id: task } = await webhooks.endpoints.recover(app, id, since());
    setProgress({ said: "Running." });
    // A portal may not look at tasks; it is told that they run.
    if (webhooks.inPortal()) return;
    for (let look = 0; look < TASK_LOOKS; look++) {
      const told = await webhooks.task(task);
      const { messagesSent: sent = 0, messagesLooked: looked = 0 } = told.data ?? {};
      const running = told.status === "running";
      setProgress({ said: `${running ? "Running" : told.status}: looked at ${looked}, sent ${sent} again.`, sent, running });
      if (told.status !== "running") return;
      await new Promise((later) => setTimeout(later, 1000));
    }
  };
  return html`<${Card} title="Send again what it missed">
    <div class="filter">
      <div class="field"><label for="since">Of</label><select id="since" value=${hours} onChange=${(event) => { setHours(event.currentTarget.value); setWould(null); setMost(null); }}>
        ${SINCE.map(([key, name]) => html`<option value=${key} selected=${key === hours}>${name}</option>`)}
      </select></div>
      <${Confirmed} name="Count and send again" sure="Send again" kind="" count=${count} onSure=${run} />
    </div>
    ${would && html`<p role="status">${would}</p>`}
    ${progress && html`<p role="status">${progress.said}</p>`}
    ${progress?.running && html`<progress aria-label="Sent again" max=${most || undefined} value=${most ? progress.sent : undefined}></progress>`}
  <//>`;
}

/** A message's history: to which endpoints it went, each attempt with its answer, and when the next one is. */
export function WebhookMessage({ segments: [app, , id] }) {
  const life = useLoad(async (signal) => {
    const [application, message, attempts, destinations] = await Promise.all([
      webhooks.applications.show(app, signal), webhooks.messages.show(app, id, signal), webhooks.messages.attempts(app, id, signal), webhooks.messages.destinations(app, id, signal),
    ]);
    return { application, message, attempts: attempts.data, destinations: destinations.data };
  }, [app, id], { every: 5000 });
  const resend = async (to) => {
    const { skipped } = await webhooks.messages.resend(app, id, to);
    toast(skipped ? "Nothing is sent: the endpoint is disabled." : "It is sent again.");
    await life.reload({ quietly: true });
  };
  const expunge = async () => {
    await webhooks.messages.expunge(app, id);
    toast("Its content is deleted.");
    await life.reload({ quietly: true });
  };
  return html`<${Page} title=${life.data?.message.eventType ?? "Message"} crumbs=${above(app, life.data?.application)}
    actions=${life.data && !webhooks.inPortal() && html`<${Confirmed} name="Expunge" question="Destroy the content?" detail="Retries end, and nobody can read it any more." onSure=${expunge} />`}>
    <${Loaded} from=${life}>${({ message, attempts, destinations }) => html`<${Fragment}>
      <div class="columns">
        <div class="stack">
          <${Card} title="Where it goes">
            ${destinations.length ? html`<${FanOut} from=${message.eventType} branches=${destinations.map((each) => ({ name: each.url, state: stateOf(each), detail: each.status === 0 || stateOf(each) === "cancelled" || isWell(each.health) ? (each.nextAttempt ? "a retry is planned" : "") : each.health.text }))} />` : html`<p class="hint">No endpoint wanted it.</p>`}
            <div class="actions">${destinations.filter((each) => !webhooks.tenantsOwn(each.url)).map((each) => html`<${Confirmed} key=${each.id} kind="long" name="Send again to ${shorten(each.url, 40)}" sure="Send again" question="Send this message again to ${shorten(each.url, 60)}?" detail="Once, at once. No other endpoint gets it." onSure=${() => resend(each.id)} />`)}
              ${destinations.map((each) => [each, command(message, each)]).filter(([, text]) => text).map(([each, text]) => html`<${Copy} key=${each.id} text=${text} name=${destinations.length > 1 ? `Copy as curl for ${shorten(each.url, 40)}` : "Copy as curl"} />`)}</div>
          <//>
          <${Card} title="Payload" aside=${html`<${Copy} text=${id} name="Copy id" />`}>
            <${Facts} of=${[["Id", html`<span class="mono">${message.id}</span>`], ["Event id", message.eventId], ["Channels", (message.channels ?? []).join(", ")]]} />
            <${Body} text=${JSON.stringify(message.payload, null, 2)} />
          <//>
        </div>
        <${Card} title="History"><${Timeline} label="History" items=${timeline(message, attempts, destinations)} /><//>
      </div>
      <${Compared} attempts=${comparable(attempts, destinations)} />
    <//>`}<//>
  <//>`;
}

// What an attempt showed its endpoint of who asks; nothing for Standard Webhooks alone.
function identity(attempt) {
  const said = [
    attempt.signedBy && `Signed by ${attempt.signedBy.join(", ")}.`,
    attempt.tokenClient && `Token of ${attempt.tokenClient}.`,
    attempt.certificate && `Certificate ${attempt.certificate.slice(0, 16)}….`,
  ];
  return said.filter(Boolean).map((each) => `${each} `).join("");
}

/** The request to an endpoint as a command, without signatures and the headers of its own; null where there is none. */
const command = (message, { url }) => (webhooks.tenantsOwn(url) ? null : curl(url, { "Content-Type": "application/json", "webhook-id": message.id }, JSON.stringify(message.payload)));

const oldestFirst = (attempts) => [...attempts].sort((a, b) => a.timestamp.localeCompare(b.timestamp));

/** Attempts as they are compared. */
function comparable(attempts, destinations) {
  const urls = Object.fromEntries(destinations.map((each) => [each.id, each.url]));
  return oldestFirst(attempts).map((each) => {
    const url = urls[each.endpointId] ?? each.url;
    return {
      of: each.endpointId,
      name: `${shorten(url, 40)}, ${new Date(each.timestamp).toLocaleString()}`,
      facts: {
        Endpoint: url, Began: new Date(each.timestamp).toLocaleString(), Took: `${each.responseDurationMs.toLocaleString()} ms`, Status: answered(each),
        Result: stateOf(each), "Shown of who asks": identity(each).trim(), Answer: each.response ?? "",
      },
    };
  });
}

function timeline(message, attempts, destinations) {
  const urls = Object.fromEntries(destinations.map((each) => [each.id, each.url]));
  const made = oldestFirst(attempts).map((each) => ({
    kind: stateOf(each) === "success" ? "good" : "bad",
    what: `${urls[each.endpointId] ?? each.url}: ${answered(each)}`,
    at: each.timestamp,
    detail: html`${each.triggerType === 1 ? "Requested by a person. " : ""}${identity(each)}${each.responseDurationMs} ms.
      ${each.response && html`<details><summary>The answer</summary><pre class="body" tabindex="0">${each.response}</pre></details>`}`,
  }));
  const cancelled = destinations.filter((each) => stateOf(each) === "cancelled").map((each) => ({
    what: `${each.url}: cancelled`,
    detail: "Nothing is sent: its transformation said so, or the endpoint or the content was deleted.",
  }));
  const open = destinations.filter((each) => !["success", "cancelled"].includes(stateOf(each)) && (each.nextAttempt || waitsForOne(each.health)));
  const ahead = open.map((each) => ({
    kind: "ahead",
    what: `${each.url}: the ${each.status === 1 ? "first" : "next"} attempt`,
    at: each.nextAttempt,
    detail: waitsForOne(each.health) ? `The endpoint: ${each.health.text}. ${waits(each.health)} with this one.${each.health.reason && ` It said: ${each.health.reason}.`}` : "Waits grow: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, each up to a fifth longer or shorter, and longer if the endpoint asked for it.",
  }));
  return [{ kind: "accent", what: "Accepted", at: message.timestamp }, ...made, ...cancelled, ...ahead];
}
