// Finds a message by its id and a subscriber by its name or URL, wherever they are, and lists what the APIs can select: by type, state and time.
import * as ironmq from "../ironmq.js";
import * as hub from "../hub.js";
import * as webhooks from "../webhooks.js";
import { Refused } from "../http.js";
import { Badge, Card, Doing, Field, Loaded, Page, Pager, Table, Time, shorten, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { LINK, Messages, OF } from "./found.js";
import { Fragment, html, useEffect, useRef, useState } from "../view.js";

/** States that can be searched for, with what each protocol calls them; one that is not there cannot be listed by it. */
const STATES = {
  pending: { name: "Not tried yet", store: "pending", webhooks: 1 },
  failing: { name: "Failing, to be tried again", store: "failing", queue: "retrying", webhooks: 3 },
  reserved: { name: "Reserved by a subscriber", queue: "reserved" },
  scheduled: { name: "Scheduled", store: "scheduled" },
  parked: { name: "Waits for a person", store: "parked" },
  given_up: { name: "Given up", queue: "exhausted", webhooks: 2 },
  completed: { name: "Delivered", store: "completed", webhooks: 0 },
  canceled: { name: "Cancelled", webhooks: 4 },
  never_processed: { name: "Never processed", store: "never_processed" },
};
const ARCHIVED = new Set(["completed", "never_processed"]);
const IN_STATE = 25;
const AT_ONCE = 8;

export function Search({ query }) {
  const [values, setValues] = useState({ id: query.id ?? "", queue: query.queue ?? "", subscriber: query.subscriber ?? "", app: query.app ?? "", state: query.state ?? "", type: query.type ?? "", from: query.from ?? "", to: query.to ?? "" });
  // The same search once more looks again.
  const [turn, setTurn] = useState(0);
  const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
  const search = (event) => {
    event.preventDefault();
    setTurn(turn + 1);
    go("search", values);
  };
  return html`<${Page} title="Search" lead="A message by its id or any value in it, a subscriber by its name or URL; messages of queues, the store and applications by state; by type and time.">
    <${Card}>
      <form onSubmit=${search} role="search" aria-label="Search">
        <div class="row">
          <${Field} label="Id or value" hint="A message's id, or a value in its body: an order's number." value=${values.id} onValue=${set("id")} />
          <${Field} label="Queue" hint="Limits an id or a state to one queue." value=${values.queue} onValue=${set("queue")} />
          <${Field} label="Subscriber" hint="Part of a name, an id or a URL: subscribers, services, endpoints." value=${values.subscriber} onValue=${set("subscriber")} />
        </div>
        <div class="row">
          <${Field} label="Application" hint="Its id or uid, to search webhooks. If empty, the store is searched." value=${values.app} onValue=${set("app")} />
          <${Field} label="Type" hint="For example order:new." value=${values.type} onValue=${set("type")} />
          <${Field} label="State" hint="Messages of queues, the store and applications. Find messages that a queue has delivered by their id." type="choice" options=${[["", "Any"], ...Object.entries(STATES).map(([key, state]) => [key, state.name])]} value=${values.state} onValue=${set("state")} />
        </div>
        <div class="row">
          <${Field} label="From" type="datetime-local" value=${values.from} onValue=${set("from")} />
          <${Field} label="To" type="datetime-local" value=${values.to} onValue=${set("to")} />
        </div>
        <div class="actions"><button class="primary" type="submit">Search</button></div>
      </form>
    <//>
    ${result(query, turn)}
    ${(query.id || query.queue || query.subscriber || STATES[query.state]?.queue) && html`<${InThePast} query=${query} key=${`p${JSON.stringify(query)}${turn}`} />`}
  <//>`;
}

/** What a search shows: the most exact thing asked for counts. */
function result(query, turn) {
  if (query.id) return html`<${ById} id=${query.id.trim()} queue=${query.queue} key=${turn} />`;
  if (query.subscriber) return html`<${BySubscriber} text=${query.subscriber.trim()} key=${turn} />`;
  const state = STATES[query.state];
  if (query.app && !state) return html`<${InApplication} query=${query} key=${turn} />`;
  if (state) return html`<${Fragment}>
    ${(query.queue || !query.app) && state.queue && html`<${InState} what="queues" query=${query} state=${state} ask=${inStateOfQueues} key=${`q${turn}`} />`}
    ${(query.app || !query.queue) && state.webhooks !== undefined && html`<${InState} what="applications" query=${query} state=${state} ask=${inStateOfApplications} key=${`a${turn}`} />`}
    ${!query.queue && !query.app && state.store && html`<${InStore} query=${{ ...query, state: state.store }} key=${`s${turn}`} />`}
  <//>`;
  return (query.type || query.from || query.to) && html`<${InStore} query=${query} key=${turn} />`;
}

/** Deliveries in a state, some of each place, the newest first. */
function InState({ what, query, state, ask }) {
  const [progress, setProgress] = useState("");
  const found = useLoad(async (signal) => {
    const [from, to] = [query.from, query.to].map((text) => (text ? new Date(text).getTime() : null));
    const rows = await ask(query, state, signal, setProgress);
    const fitting = rows.filter((row) => (!query.type || row.type === query.type || row.type === undefined) && (from === null || Date.parse(row.came) >= from) && (to === null || Date.parse(row.came) <= to));
    return fitting.sort((a, b) => b.came.localeCompare(a.came));
  }, [JSON.stringify(query)]);
  return html`<${Card} title="Messages of ${what}" flush>
    ${found.loading && progress && html`<p class="inside hint" role="status">${progress}</p>`}
    <${Loaded} from=${found}>${(rows) => html`<${Fragment}>
      <${Table} label="Messages of ${what}" rows=${rows} empty="None in this state." columns=${[
        ["Message", (row) => html`<a href=${row.link}>${row.name}</a>`],
        ["Of", (row) => row.of],
        ["To", (row) => shorten(row.to, 60)],
        ["State", (row) => html`<${Badge} state=${row.state} />`],
        ["Came", (row) => html`<${Time} at=${row.came} />`],
        ["Next attempt", (row) => html`<${Time} at=${row.next} />`],
      ]} />
      ${rows.length > 0 && html`<p class="legend inside">At most ${IN_STATE} of each queue or endpoint are examined; choose one to see more.</p>`}
    <//>`}<//>
  <//>`;
}

async function inStateOfQueues(query, state, signal, setProgress) {
  const ask = async (name) => {
    const told = await there(() => ironmq.deliveries(name, { state: state.queue, count: IN_STATE }, signal));
    return (told?.deliveries ?? []).map((one) => ({
      name: one.message_id, of: name, to: one.subscriber_name, state: one.state, came: one.accepted_at, next: one.next_try_at, link: href("queues", name, "messages", one.message_id),
    }));
  };
  return each(query.queue ? [query.queue] : await names(signal), setProgress, ask);
}

async function inStateOfApplications(query, state, signal, setProgress) {
  const all = query.app ? [await webhooks.applications.show(query.app, signal)] : await applications(signal);
  const ask = async (app) => {
    const page = await webhooks.endpoints.list(app.id, "", signal, IN_STATE);
    const ofEndpoint = async (endpoint) => {
      const told = await webhooks.endpoints.messages(app.id, endpoint.id, { status: state.webhooks, limit: IN_STATE }, signal);
      return told.data.map((one) => ({
        name: one.eventType, type: one.eventType, of: app.name, to: endpoint.url, state: webhooks.stateOf(one), came: one.timestamp, next: one.nextAttempt, link: href("apps", app.id, "messages", one.id),
      }));
    };
    return (await Promise.all(page.data.map(ofEndpoint))).flat();
  };
  return each(all, setProgress, ask);
}

const IDS = [
  [/^[0-9a-f]{24}$/i, "store"],
  [/^(msg|ep)_/, "applications"],
  [/^\d{19}$/, "queues"],
];

/**
 * Looks for a value in all messages, and for what has the form of an id also where such ids are (24 hex digits are the store's, 19 digits
 * those of queues, webhooks' begin with msg_, their endpoints' with ep_).
 */
function ById({ id, queue }) {
  const [progress, setProgress] = useState("");
  const place = IDS.find(([form]) => form.test(id))?.[1];
  const named = useLoad(async (signal) => {
    if (place === "store") {
      const shown = await there(() => hub.showMessage(id.toLowerCase(), signal));
      return shown ? [{ name: shown.message, what: "Message of the store", states: [{ state: shown.state }], link: href("store", "messages", id.toLowerCase()) }] : [];
    }
    if (place === "applications") return inApplications(id, signal, setProgress);
    return place === "queues" ? inQueues(id, queue ? [queue] : await names(signal), signal, setProgress) : [];
  }, [id, queue]);
  return html`<${Fragment}>
    ${place && html`<${Card} title="With this id" flush>
      ${named.loading && progress && html`<p class="inside hint" role="status">${progress}</p>`}
      <${Loaded} from=${named}>${(rows) => html`<${Table} label="With this id" rows=${rows} empty=${nothing(place, queue)} columns=${FOUND} />`}<//>
    <//>`}
    <${ByValue} value=${id} queue=${queue} />
  <//>`;
}

const MOST_REQUESTS = 10;

/**
 * The next messages with a value, {found, after, read}, from where `after` says. One request reads only so much: while there is none, and
 * more to read, this asks for more by itself, ten times at most, and tells `onRead` how far back it has read (null if that is not known).
 */
async function nextWith(value, queue, after, signal, onRead) {
  for (let asked = 1; ; asked++) {
    const told = await ironmq.find(value.slice(0, 200), after, signal);
    const found = told.found.filter((one) => !queue || one.queue === queue);
    if (found.length || told.after === null || asked === MOST_REQUESTS) return { found, after: told.after, read: told.read_back_to };
    onRead(told.read_back_to);
    after = told.after;
  }
}

const readBack = (read) => `Messages with many values were read back to ${new Date(read).toLocaleString()}.`;

/** Messages with a value in their body. The first come by themselves; further ones, and what takes many requests, are asked for. */
function ByValue({ value, queue }) {
  const [more, setMore] = useState({ rows: [], after: undefined });
  const [progress, setProgress] = useState("");
  const leaving = useRef(null);
  const look = async (after, signal) => {
    setProgress("");
    const told = await nextWith(value, queue, after, signal, (read) => setProgress(`Nothing yet, looking further. ${read ? readBack(read) : ""}`));
    setProgress("");
    return told;
  };
  const first = useLoad(async (signal) => {
    setMore({ rows: [], after: undefined });
    return look("", signal);
  }, [value, queue]);
  useEffect(() => {
    leaving.current = new AbortController();
    return () => leaving.current.abort();
  }, [value, queue]);
  const next = async (after) => {
    const { signal } = leaving.current;
    try {
      const told = await look(after, signal);
      setMore((before) => ({ ...told, rows: [...before.rows, ...told.found] }));
    } catch (error) {
      if (signal.aborted) return;
      setProgress("");
      throw error;
    }
  };
  return html`<${Card} title="Found" flush>
    ${progress && html`<p class="inside hint" role="status">${progress}</p>`}
    <${Loaded} from=${first}>${(told) => {
      const rows = [...told.found, ...more.rows];
      const { after, read } = more.after === undefined ? told : more;
      return html`<${Fragment}>
        <${Messages} label="Found" rows=${rows} after=${() => first.reload({ quietly: true })}
          empty=${after === null ? "No message of the last week has this as a whole text, number or word in its body. One of the last two minutes may not be here yet; headers are found only where a queue's settings name them." : "None until there."} />
        ${after !== null && html`<div class="inside actions">
          ${read && html`<span class="hint">${readBack(read)}</span>`}
          <${Doing} name="Look further" onDo=${() => next(after)} />
        </div>`}
      <//>`;
    }}<//>
  <//>`;
}

const FOUND = [
  ["Message", (each) => html`<a class="name" href=${each.link}>${each.name}</a>`],
  ["What", (each) => html`<span class="name">${each.what}</span>`],
  ["State", (each) => (each.states?.length ? html`<span class="stack">${each.states.map((one) => html`<span>${one.to && html`${shorten(one.to, 40)} `}<${Badge} state=${one.state} /></span>`)}</span>` : "–")],
];

const nothing = (place, queue) => `No ${place === "applications" ? "message or endpoint" : "message"} with this id is ${{ store: "in the store", applications: "in an application", queues: queue ? `in the queue ${queue}` : "in any queue" }[place]} (any more).`;

const LOOK_AGAIN_MS = 1000;

/** What happened, from the delivery records: on demand, because it reads all of those days, and costs where Athena does it. */
function InThePast({ query }) {
  const [rows, setRows] = useState(null);
  const [progress, setProgress] = useState("");
  const look = async () => {
    const time = (text) => (text ? new Date(text).toISOString() : undefined);
    const started = await ironmq.startPast({
      message_id: query.id?.trim(), queue: query.queue, subscriber: query.subscriber, state: STATES[query.state]?.queue, since: time(query.from), until: time(query.to),
    });
    const found = [];
    for (let after = ""; ; ) {
      const told = await ironmq.showPast(started.id, after);
      found.push(...told.found);
      if (told.state === "failed") throw new Refused(0, told.reason ?? "The search failed.");
      if (told.state !== "running" && told.after === null) break;
      const left = told.hours_left === null ? "" : `, ${told.hours_left} hours of records left`;
      setProgress(`Reading ${started.first_day} to ${started.last_day}: ${(told.scanned_bytes / 1e6).toFixed(1)} MB read${left}, ${found.length} found.`);
      after = told.after ?? "";
      if (!after) await new Promise((later) => setTimeout(later, LOOK_AGAIN_MS));
    }
    setProgress("");
    setRows(found.sort((a, b) => b.at.localeCompare(a.at)));
  };
  return html`<${Card} title="In the past" flush>
    <div class="inside">
      <p class="hint">Reads the delivery records of ${query.from || query.to ? "that time (31 days at most)" : "the last day; From and To choose another time"}. They tell what happened to messages that are long gone, by id, queue, subscriber and state, and hold no contents.</p>
      <div class="actions"><${Doing} name="Search the past" onDo=${look} /></div>
      ${progress && html`<p class="hint" role="status">${progress}</p>`}
    </div>
    ${rows && html`<${Table} label="In the past" rows=${rows} empty="No record of that time fits." columns=${[
      ["When", (row) => html`<${Time} at=${row.at} />`],
      ["What happened", (row) => `${row.event}${row.attempt ? ` ${row.attempt}` : ""}`],
      ["Message", (row) => html`<a class="name id" href=${LINK[row.kind](row)}>${row.message_id}</a>`],
      ["Of", (row) => html`<span class="name">${OF[row.kind](row)}</span>`],
      ["To", (row) => shorten(row.subscriber ?? "–", 40)],
      ["Answer", (row) => html`<span class="answer">${row.error ?? (row.status_code ? `HTTP ${row.status_code}` : "–")}</span>`],
      ["State", (row) => (row.state ? html`<${Badge} state=${row.state} />` : "–")],
    ]} />`}
  <//>`;
}

async function names(signal) {
  const all = [];
  for (let previous = ""; ; ) {
    const page = await ironmq.listQueues({ per_page: 100, previous }, signal);
    all.push(...page.map((each) => each.name));
    if (page.length < 100) break;
    previous = all.at(-1);
  }
  return all;
}

/** All applications of the project, newest first. */
async function applications(signal) {
  const all = [];
  for (let iterator = ""; ; ) {
    const page = await webhooks.applications.list(iterator, signal);
    all.push(...page.data);
    if (page.done) break;
    iterator = page.iterator;
  }
  return all;
}

/** Asks for each of some things, a few at a time, until there is an answer for `enough` of them. */
async function each(things, setProgress, ask, enough = Infinity) {
  const found = [];
  for (let start = 0; start < things.length && found.length < enough; start += AT_ONCE) {
    setProgress(`Looked in ${start} of ${things.length}.`);
    found.push(...(await Promise.all(things.slice(start, start + AT_ONCE).map(ask))).flat().filter(Boolean));
  }
  return found;
}

async function inApplications(id, signal, setProgress) {
  const message = id.startsWith("msg_");
  const ask = async (app) => {
    const shown = await there(() => (message ? webhooks.messages.show(app.id, id, signal) : webhooks.endpoints.show(app.id, id, signal)));
    return shown && { name: message ? shown.eventType : shown.url, what: `${message ? "Message" : "Endpoint"} of ${app.name}`, link: href("apps", app.id, message ? "messages" : "endpoints", id) };
  };
  return each(await applications(signal), setProgress, ask, 1);
}

/** Subscribers of queues, services of the store and endpoints of applications whose name, id or URL holds a text. */
function BySubscriber({ text }) {
  const [progress, setProgress] = useState("");
  const found = useLoad(async (signal) => {
    const wanted = text.toLowerCase();
    const fits = (...texts) => texts.some((some) => String(some ?? "").toLowerCase().includes(wanted));
    const ofQueue = async (name) => {
      const queue = await there(() => ironmq.showQueue(name, signal));
      const fitting = (queue?.push?.subscribers ?? []).filter((some) => fits(some.name, some.url));
      return fitting.map((some) => ({ name: some.name, url: some.url, what: `Of the queue ${name}`, link: href("queues", name, "subscribers", some.name) }));
    };
    const ofApplication = async (app) => {
      const page = await webhooks.endpoints.list(app.id, "", signal, 250);
      const fitting = page.data.filter((some) => fits(some.id, some.uid, some.url, some.description));
      return fitting.map((some) => ({ name: some.uid ?? some.description ?? some.id, url: some.url, what: `Endpoint of ${app.name}`, link: href("apps", app.id, "endpoints", some.id) }));
    };
    const mappings = (await hub.things.list("mappings", signal)).filter((some) => fits(some.name, some.url, some.id));
    return [
      ...mappings.map((some) => ({ name: some.name, url: some.url, what: "Service of the store", link: href("store", { queue: "accepted", mapping: some.id }) })),
      ...(await each(await names(signal), setProgress, ofQueue)),
      ...(await each(await applications(signal), setProgress, ofApplication)),
    ];
  }, [text]);
  return html`<${Card} title="Subscribers" flush>
    ${found.loading && progress && html`<p class="inside hint" role="status">${progress}</p>`}
    <${Loaded} from=${found}>${(rows) => html`<${Table} label="Subscribers" rows=${rows} empty="No subscriber has this in its name, id or URL." columns=${[
      ["Subscriber", (row) => html`<a href=${row.link}>${row.name || row.url}</a>`],
      ["What", (row) => row.what],
      ["URL", (row) => html`<span class="mono">${shorten(row.url, 80)}</span>`],
    ]} />`}<//>
  <//>`;
}

/** Messages of an application by type and time, newest first. */
function InApplication({ query }) {
  const list = useLoad((signal) => {
    const time = (text) => (text ? new Date(text).toISOString() : undefined);
    return webhooks.messages.list(query.app, { event_types: query.type, after: time(query.from), before: time(query.to), iterator: query.iterator }, signal);
  }, [JSON.stringify(query)]);
  return html`<${Card} title="Messages of the application" flush>
    <${Loaded} from=${list}>${(told) => html`<${Fragment}>
      <${Table} label="Messages of the application" rows=${told.data} keyed=${(row) => row.id} empty="No such message." columns=${[
        ["Message", (row) => html`<a class="mono" href=${href("apps", query.app, "messages", row.id)}>${row.id}</a>`],
        ["Type", (row) => row.eventType],
        ["Came", (row) => html`<${Time} at=${row.timestamp} />`],
      ]} />
      <div class="inside"><${Pager} loading=${list.loading} onFirst=${query.iterator && (() => go("search", { ...query, iterator: "" }))} onNext=${!told.done && (() => go("search", { ...query, iterator: told.iterator }))} /></div>
    <//>`}<//>
  <//>`;
}

async function inQueues(id, queues, signal, setProgress) {
  const ask = async (name) => (await there(() => ironmq.showMessage(name, id, signal))) && { name: id, what: `Queue ${name}`, link: href("queues", name, "messages", id) };
  return each(queues, setProgress, ask, 1);
}

async function there(ask) {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Refused && [400, 404, 422].includes(error.status)) return null;
    throw error;
  }
}

function InStore({ query }) {
  const page = Number(query.page ?? 1);
  const list = useLoad((signal) => {
    const time = (text) => (text ? new Date(text).toISOString() : undefined);
    const asked = { page, state: query.state, message: query.type, start_date: time(query.from), end_date: time(query.to) };
    // What is done is listed apart: copies for services, and what came in.
    const archived = [["archived", { ...asked, source: "accepted" }], ["archived", { ...asked, source: "incoming" }]];
    const lists = [...(ARCHIVED.has(query.state) ? [] : [["accepted", asked]]), ...(query.state && !ARCHIVED.has(query.state) ? [] : archived)];
    return Promise.all(lists.map(([queue, selected]) => hub.listMessages(queue, selected, signal))).then((told) => ({
      pages: Math.max(...told.map((each) => each.pages)),
      messages: told.flatMap((each) => each.messages).sort((a, b) => b.created_at.localeCompare(a.created_at)),
    }));
  }, [JSON.stringify(query)]);
  return html`<${Card} title="Messages of the store" flush>
    <${Loaded} from=${list}>${(told) => html`<${Fragment}>
      <${Table} label="Messages of the store" rows=${told.messages} keyed=${(each) => each.id} empty="No such message." columns=${[
        ["Message", (each) => html`<a href=${href("store", "messages", each.id)}>${each.message}</a>`],
        ["State", (each) => html`<${Badge} state=${each.state} />`],
        ["For", (each) => each.consumer ?? "–"],
        ["Came", (each) => html`<${Time} at=${each.created_at} />`],
        ["Last error", (each) => shorten(each.last_error ?? each.reason ?? "–", 80)],
      ]} />
      ${told.pages > 1 && html`<nav class="inside actions" aria-label="Pages of the list">
        <button type="button" disabled=${page <= 1} onClick=${() => go("search", { ...query, page: page - 1 })}>Newer</button>
        <span>Page ${page} of ${told.pages}</span>
        <button type="button" disabled=${page >= told.pages} onClick=${() => go("search", { ...query, page: page + 1 })}>Older</button>
      </nav>`}
    <//>`}<//>
  <//>`;
}
