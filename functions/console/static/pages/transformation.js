// An endpoint's transformation: code that is tried on a payload beside it before it is kept.
import { Refused, asWritten } from "../http.js";
import { Body, Card, Doing, Facts, Field, Loaded, Notice, Page, Table, besides, toast, useLoad } from "../parts.js";
import { href } from "../route.js";
import { Fragment, html, useEffect, useRef, useState } from "../view.js";
import * as webhooks from "../webhooks.js";
import { above } from "./applications.js";

const LANGUAGES = [["javascript", "JavaScript"], ["jsonata", "JSONata"]];
/** What somebody begins with who has no code yet. */
const STARTS = {
  javascript: `// Of webhook: payload, eventType, url, method, env.
// Set headers to add some, or cancel to send nothing.
function handler(webhook) {
  webhook.payload = { type: webhook.eventType, data: webhook.payload };
  return webhook;
}
`,
  jsonata: `{
  "payload": { "type": eventType, "data": payload }
}
`,
};
const WORDS = {
  returned: "handler(webhook) returns what is sent. Empty for none.",
  value: "Its value is what is sent: payload, headers, method, url, cancel.",
  off: "Saved. Messages are sent as they were posted.",
  enabled: "Otherwise messages are sent as they were posted.",
};
const FIELDS = ["code", "language", "variables", "eventType", "payload"].map((name) => ({ name }));
/** Stands for the stored value of a variable. */
const STORED = "********";
const EXAMPLE = { eventType: "invoice.paid", payload: { id: "4711", amount: 12.5 } };
/** Characters of a message's payload that is still offered as an example. */
const LONGEST_EXAMPLE = 10_000;

export function Transformation({ segments: [app, , id] }) {
  const about = useLoad(async (signal) => {
    const [application, endpoint, stored, message] = await Promise.all([
      webhooks.applications.show(app, signal), webhooks.endpoints.show(app, id, signal),
      webhooks.transformations(app, id).show(signal).catch(unlessForbidden),
      // The editor is useful without an example, too.
      webhooks.endpoints.lastMessage(app, id, signal).catch(() => undefined),
    ]);
    return { application, endpoint, stored, message };
  }, [app, id]);
  const endpoint = about.data?.endpoint;
  return html`<${Page} title="Transformation" lead="Code that changes what this endpoint is sent." crumbs=${above(app, about.data?.application).concat(endpoint ? [[endpoint.url, href("apps", app, "endpoints", id)]] : [])}>
    <${Loaded} from=${about}>${(told) => (told.stored
      ? html`<${Editor} api=${webhooks.transformations(app, id)} starts=${STARTS} words=${WORDS} stored=${told.stored} example=${exampleOf(told)} />`
      : html`<${Notice} kind="warn">Your access does not include this endpoint's transformation.<//>`)}<//>
  <//>`;
}

/** Who may not look at code may not change it either, and is shown none. */
export function unlessForbidden(error) {
  if (error instanceof Refused && error.status === 403) return null;
  throw error;
}

/** What the code is tried on at first: the last message of the endpoint, unless it is none that can be read at a glance. */
function exampleOf({ endpoint, message }) {
  const text = message && JSON.stringify(message.payload, null, 2);
  if (text?.startsWith("{") && text.length <= LONGEST_EXAMPLE) return { eventType: message.eventType, payload: text };
  return { eventType: message?.eventType ?? endpoint.eventTypes?.[0] ?? EXAMPLE.eventType, payload: JSON.stringify(EXAMPLE.payload, null, 2) };
}

let rowNumber = 0;
const storedRows = (names) => names.map((name) => ({ key: ++rowNumber, name, value: "", stored: true }));

/** Variables as the API takes them: a stored value that was not typed anew stays. */
function variablesOf(rows) {
  const given = rows.filter((each) => each.name || each.value);
  const refuse = (problem) => {
    throw new Refused(422, problem, { variables: problem });
  };
  if (given.some((each) => !each.name)) refuse("A variable needs a name.");
  if (new Set(given.map((each) => each.name)).size < given.length) refuse("Two variables have the same name.");
  return Object.fromEntries(given.map((each) => [each.name, each.stored && !each.value ? STORED : each.value]));
}

function payloadOf(text) {
  try {
    return JSON.parse(text, asWritten);
  } catch (error) {
    const problem = `is not JSON: ${error.message}`;
    throw new Refused(422, problem, { payload: problem });
  }
}

/**
 * Code beside a payload, and what comes of it.
 *
 * @param api show, change and simulate of a transformation.
 * @param starts What somebody begins with who has no code, by language.
 * @param words What its fields are about: returned, value, enabled, and what is said when it is off.
 */
export function Editor({ api, starts, words, stored, example }) {
  const [values, setValues] = useState({ language: stored.language, code: stored.code ?? starts[stored.language], enabled: stored.enabled, ...example });
  const [rows, setRows] = useState(() => storedRows(Object.keys(stored.variables)));
  const [problems, setProblems] = useState({});
  const [result, setResult] = useState(null);
  const whole = useRef(null);
  const below = useRef(null);
  useEffect(() => whole.current?.querySelector("[aria-invalid=true]")?.focus(), [problems]);
  useEffect(() => {
    if (result) below.current?.scrollIntoView({ block: "nearest" });
  }, [result]);
  const field = (name) => ({ value: values[name], problem: problems[name], onValue: (value) => setValues((before) => ({ ...before, [name]: value })) });
  const speak = (language) => setValues((before) => ({ ...before, language, code: before.code === starts[before.language] ? starts[language] : before.code }));
  const { code, language, enabled, eventType, payload } = values;
  const now = JSON.stringify([code, language, eventType, payload, rows]);
  const attempt = async () => {
    setProblems({});
    try {
      setResult({ of: now, sent: await api.simulate({ code, language, variables: variablesOf(rows), eventType, payload: payloadOf(payload) }) });
    } catch (error) {
      // Whatever else went wrong says nothing about the code.
      if (!(error instanceof Refused) || error.status !== 422) throw error;
      const { code: failed, ...others } = besides(error, FIELDS);
      setProblems(others);
      setResult(Object.keys(others).length ? null : { of: now, failed: failed ?? error.message });
    }
  };
  const save = async () => {
    setProblems({});
    try {
      const variables = variablesOf(rows);
      await api.change({ code: code.trim() ? code : null, language, enabled, variables });
      setRows(storedRows(Object.keys(variables)));
      toast(enabled && code.trim() ? "Saved. It applies to each try from now on." : words.off);
    } catch (error) {
      const found = error instanceof Refused ? besides(error, FIELDS) : {};
      if (!Object.keys(found).length) throw error;
      setProblems(found);
    }
  };
  return html`<div class="columns" ref=${whole}>
    <${Card} title="Code">
      <${Field} label="Language" type="choice" options=${LANGUAGES} ...${field("language")} onValue=${speak} />
      <${Field} label="Code" type="long" rows="16" autocapitalize="off" hint=${language === "jsonata" ? words.value : words.returned} ...${field("code")} />
      <${Variables} rows=${rows} onRows=${setRows} problem=${problems.variables} />
      <${Field} label="Enabled" type="check" hint=${words.enabled} ...${field("enabled")} />
      <div class="actions"><${Doing} name="Save" kind="primary" onDo=${save} /></div>
    <//>
    <div class="stack">
      <${Card} title="A message to try it on">
        <${Field} label="Event type" ...${field("eventType")} />
        <${Field} label="Payload" type="long" rows="8" autocapitalize="off" hint="A JSON object." ...${field("payload")} />
        <div class="actions"><${Doing} name="Try" onDo=${attempt} /></div>
        <p class="hint">The code is tried as it stands here. Nothing is sent or saved.</p>
      <//>
      <div ref=${below}><${Card} title="What would be sent"><div class="stack" role="status"><${Result} of=${result} old=${result && result.of !== now} /></div><//></div>
    </div>
  </div>`;
}

/** Texts that code finds in `env`. Nobody is shown a value again. */
function Variables({ rows, onRows, problem }) {
  const set = (row, changed) => onRows(rows.map((each) => (each.key === row.key ? { ...each, ...changed } : each)));
  return html`<fieldset>
    <legend>Variables</legend>
    <p class="hint">The code finds them in env. Values are stored encrypted, and not shown again.</p>
    ${rows.map((row) => html`<div class="filter" key=${row.key} role="group" aria-label=${row.name || "New variable"}>
      ${!row.stored && html`<${Field} label="Name" value=${row.name} onValue=${(name) => set(row, { name })} />`}
      <${Field} label=${row.stored ? `Value of ${row.name}` : "Value"} type="password" placeholder=${row.stored ? "Stored; type to replace" : ""} value=${row.value} onValue=${(value) => set(row, { value })} />
      <button type="button" onClick=${() => onRows(rows.filter((each) => each.key !== row.key))}>Remove${row.name && html`<span class="visually-hidden"> ${row.name}</span>`}</button>
    </div>`)}
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
    <div class="actions"><button type="button" onClick=${() => onRows([...rows, { key: ++rowNumber, name: "", value: "", stored: false }])}>Add a variable</button></div>
  </fieldset>`;
}

function Result({ of, old }) {
  if (!of) return html`<p class="hint">Try the code to see it.</p>`;
  const changed = old && html`<p class="hint">Something was changed since it was tried.</p>`;
  if (of.failed) return html`<${Fragment}>${changed}<${Notice} kind="bad">It fails, so nothing would be sent: ${of.failed}<//><//>`;
  const { sent } = of;
  if (sent.cancel) return html`<${Fragment}>${changed}<${Notice} kind="warn">Cancelled: nothing would be sent. That is no failure.<//><//>`;
  return html`<${Fragment}>${changed}
    <${Facts} of=${[["Method", sent.method], ["URL", html`<span class="mono">${sent.url}</span>`]]} />
    <h3>Headers that it sets</h3>
    <${Table} label="Headers that it sets" rows=${Object.entries(sent.headers)} keyed=${([name]) => name} empty="None." columns=${[["Name", ([name]) => html`<span class="mono">${name}</span>`], ["Value", ([, value]) => html`<span class="mono">${value}</span>`]]} />
    <h3>Payload</h3>
    <${Body} text=${sent.payload} label="Payload that would be sent" />
  <//>`;
}
