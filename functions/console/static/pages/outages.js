// When a subscriber was down, and what was given up meanwhile: of any protocol, from last night's report.
import { Card, Loaded, Time, useLoad } from "../parts.js";
import * as report from "../report.js";
import { html, useState } from "../view.js";

/** Asked for when somebody wants it: the page has its answer to what is the matter now without it. */
export function Outages({ queue, subscriber }) {
  const [wanted, setWanted] = useState(false);
  return html`<${Card} title="When it was down" aside=${!wanted && html`<button type="button" onClick=${() => setWanted(true)}>Look in the report</button>`}>
    ${wanted ? html`<${Told} queue=${queue} subscriber=${subscriber} />` : html`<p class="hint">The delivery report tells it each night.</p>`}
  <//>`;
}

function Told({ queue, subscriber }) {
  const told = useLoad((signal) => report.outages(queue, subscriber, signal), [queue, subscriber]);
  return html`<${Loaded} from=${told}>${(known) => (known
    ? html`${known.said.map((each) => html`<p>${each}</p>`)}<p class="hint">From the delivery report, as of <${Time} at=${known.as_of} />.</p>`
    : html`<p class="hint">There is no report yet.</p>`)}<//>`;
}
