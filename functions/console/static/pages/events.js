// Events: everything that was accepted in the last days, newest first, whatever became of it.
import * as ironmq from "../ironmq.js";
import { Card, Field, Folded, Loaded, Notice, Page, useLoad } from "../parts.js";
import { go } from "../route.js";
import { Fragment, html, useState } from "../view.js";
import { Again, Messages } from "./found.js";

const KINDS = [["", "All"], ["queue", "Queue"], ["application", "Application"], ["store", "Store"], ["topic", "Topic"]];
const STATES = [["", "Any"], ["pending", "Not tried yet"], ["retrying", "Failing (queues, applications)"], ["exhausted", "Given up"], ["delivered", "Delivered"], ["acknowledged", "Acknowledged"], ["held", "Held"], ["waiting", "Waiting in a pull queue"], ["reserved", "Reserved"], ["failing", "Failing (store)"], ["parked", "Waits for a person (store)"], ["completed", "Completed (store)"], ["published", "Published"]];
const LIVE_MS = 3000;
const FILTERS = ["kind", "of", "in_state", "subscriber", "type", "from", "to"];

export function Events({ query }) {
  const [values, setValues] = useState(Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? ""])));
  const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
  const chosen = FILTERS.filter((name) => query[name]).length;
  const time = (text) => (text ? new Date(text).toISOString() : undefined);
  const { kind, of, in_state, subscriber, type, after } = query;
  const page = useLoad((signal) => ironmq.events({ kind, of, in_state, subscriber, type, since: time(query.from), until: time(query.to), after }, signal), [JSON.stringify(query)], { every: after ? 0 : LIVE_MS });
  const show = (event) => {
    event.preventDefault();
    go("events", values);
  };
  return html`<${Page} title="Events" lead="Everything that was accepted in the last week, newest first, also what was delivered. New ones come by themselves, within two minutes.">
    <${Card}>
      <${Folded} name=${chosen ? `Filter (${chosen})` : "Filter"}>
        <form class="filter" onSubmit=${show} role="search" aria-label="Events">
          <${Field} label="Of" type="choice" options=${KINDS} value=${values.kind} onValue=${set("kind")} />
          <${Field} label="Name or id" value=${values.of} onValue=${set("of")} />
          <${Field} label="State" type="choice" options=${STATES} value=${values.in_state} onValue=${set("in_state")} />
          <${Field} label="Subscriber" placeholder="shop" value=${values.subscriber} onValue=${set("subscriber")} />
          <${Field} label="Type" placeholder="order:new" value=${values.type} onValue=${set("type")} />
          <${Field} label="From" type="datetime-local" value=${values.from} onValue=${set("from")} />
          <${Field} label="To" type="datetime-local" value=${values.to} onValue=${set("to")} />
          <button class="primary" type="submit">Show</button>
        </form>
      <//>
    <//>
    <${Loaded} from=${page}>${(told) => html`<${Card} title="Messages" flush aside=${html`<${Again} messages=${told.events} after=${() => page.reload({ quietly: true })} name="Send all of these again" />`}>
      <${Fragment}>
        <${Messages} label="Messages" rows=${told.events} empty=${told.after ? "None until there." : "No such message in the last week."} after=${() => page.reload({ quietly: true })} />
        ${told.looked_back_to && !told.events.length && html`<div class="inside"><${Notice}>Looked back to ${new Date(told.looked_back_to).toLocaleString()}.<//></div>`}
        ${(after || told.after) && html`<nav class="inside actions" aria-label="Older and newer">
          ${after && html`<button type="button" onClick=${() => go("events", { ...query, after: "" })}>Newest</button>`}
          ${told.after && html`<button type="button" onClick=${() => go("events", { ...query, after: told.after })}>Older</button>`}
        </nav>`}
      <//>
    <//>`}<//>
  <//>`;
}
