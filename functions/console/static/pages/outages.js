// When a subscriber was down, and what was given up meanwhile: of any protocol, from last night's report.
import { Card, Loaded, Time, useLoad } from "../parts.js";
import * as report from "../report.js";
import { html } from "../view.js";

export function Outages({ queue, subscriber }) {
  const told = useLoad((signal) => report.outages(queue, subscriber, signal), [queue, subscriber]);
  return html`<${Card} title="When it was down">
    <${Loaded} from=${told}>${(known) => (known
      ? html`${known.said.map((each) => html`<p>${each}</p>`)}<p class="hint">From the delivery report, as of <${Time} at=${known.as_of} />.</p>`
      : html`<p class="hint">There is no report yet, which tells it each night.</p>`)}<//>
  <//>`;
}
