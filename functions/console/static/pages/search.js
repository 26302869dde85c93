// Finds a message by its id, wherever it is, and lists what the APIs can select: by queue, type, state and time.
import * as ironmq from "../ironmq.js";
import * as hub from "../hub.js";
import { Refused } from "../http.js";
import { Badge, Card, Empty, Field, Loaded, Notice, Page, Table, Time, shorten, useLoad } from "../parts.js";
import { go, href } from "../route.js";
import { Fragment, html, useState } from "../view.js";

const STATES = ["", "pending", "failing", "scheduled", "parked", "completed", "never_processed"];
const ARCHIVED = new Set(["completed", "never_processed"]);
const MOST_QUEUES = 100;
const AT_ONCE = 4;

export function Search({ query }) {
  const [values, setValues] = useState({ id: query.id ?? "", queue: query.queue ?? "", state: query.state ?? "", type: query.type ?? "", from: query.from ?? "", to: query.to ?? "" });
  // The same search once more looks again.
  const [turn, setTurn] = useState(0);
  const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
  const search = (event) => {
    event.preventDefault();
    setTurn(turn + 1);
    go("search", values);
  };
  return html`<${Page} title="Search" lead="By the id of a message of any kind; messages of the store by type, state and time too.">
    <${Card}>
      <form onSubmit=${search} role="search">
        <div class="row">
          <${Field} label="Message id" value=${values.id} onValue=${set("id")} />
          <${Field} label="Queue" hint="Narrows an IronMQ id to one queue." value=${values.queue} onValue=${set("queue")} />
        </div>
        <div class="row">
          <${Field} label="Type" hint="Of the store, such as order:new." value=${values.type} onValue=${set("type")} />
          <${Field} label="State" type="choice" options=${STATES.map((each) => [each, each ? each.replace("_", " ") : "Any"])} value=${values.state} onValue=${set("state")} />
          <${Field} label="From" type="datetime-local" value=${values.from} onValue=${set("from")} />
          <${Field} label="To" type="datetime-local" value=${values.to} onValue=${set("to")} />
        </div>
        <div class="actions"><button class="primary" type="submit">Search</button></div>
      </form>
    <//>
    ${query.id ? html`<${ById} id=${query.id.trim()} queue=${query.queue} key=${turn} />` : (query.type || query.state || query.from || query.to) && html`<${InStore} query=${query} key=${turn} />`}
  <//>`;
}

/** Looks a message up: 24 hex digits are the store's, 19 digits IronMQ's, in whatever queue has it. */
function ById({ id, queue }) {
  const [progress, setProgress] = useState("");
  const found = useLoad(async (signal) => {
    if (/^[0-9a-f]{24}$/.test(id)) {
      const shown = await there(() => hub.showMessage(id, signal));
      return shown ? [{ name: shown.message, what: "Message of the store", state: shown.state, link: href("store", "messages", id) }] : [];
    }
    if (!/^\d{1,19}$/.test(id)) throw new Refused(0, "This is no id of a message: IronMQ's have 19 digits, the store's 24 hexadecimal ones.");
    return inQueues(id, queue ? [queue] : await names(signal), signal, setProgress);
  }, [id, queue]);
  return html`<${Card} title="Found" flush>
    ${found.loading && progress && html`<p class="inside hint" role="status">${progress}</p>`}
    <${Loaded} from=${found}>${(rows) => html`<${Table} label="Found" rows=${rows} empty="No message has this id (any more)." columns=${[
      ["Message", (each) => html`<a href=${each.link}>${each.name}</a>`],
      ["What", (each) => each.what],
      ["State", (each) => (each.state ? html`<${Badge} state=${each.state} />` : "–")],
    ]} />`}<//>
  <//>`;
}

async function names(signal) {
  const all = [];
  for (let previous = ""; all.length < MOST_QUEUES; ) {
    const page = await ironmq.listQueues({ per_page: 100, previous }, signal);
    all.push(...page.map((each) => each.name));
    if (page.length < 100) break;
    previous = all.at(-1);
  }
  return all;
}

async function inQueues(id, queues, signal, setProgress) {
  const found = [];
  for (let start = 0; start < queues.length && !found.length; start += AT_ONCE) {
    setProgress(`Looked in ${start} of ${queues.length} queues.`);
    await Promise.all(queues.slice(start, start + AT_ONCE).map(async (name) => {
      if (await there(() => ironmq.showMessage(name, id, signal))) found.push({ name: id, what: `In the queue ${name}`, link: href("queues", name, "messages", id) });
    }));
  }
  return found;
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
      ${told.pages > 1 && html`<nav class="inside actions" aria-label="Pages">
        <button type="button" disabled=${page <= 1} onClick=${() => go("search", { ...query, page: page - 1 })}>Newer</button>
        <span>Page ${page} of ${told.pages}</span>
        <button type="button" disabled=${page >= told.pages} onClick=${() => go("search", { ...query, page: page + 1 })}>Older</button>
      </nav>`}
    <//>`}<//>
  <//>`;
}
