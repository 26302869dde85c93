// Who changed what in the project, newest first.
import * as ironmq from "../ironmq.js";
import { Badge, Card, Loaded, Notice, Page, Table, Time, useLoad } from "../parts.js";
import { href } from "../route.js";
import { Fragment, html } from "../view.js";

const WHO = { token: "A token", portal: "An application's owner", link: "Who had the link" };

export function Changes({ query }) {
  const found = useLoad((signal) => ironmq.changes(query.after, signal), [query.after]);
  return html`<${Page} title="Changes" lead="Who changed settings, when and from where. What opens something is not shown.">
    <${Card} flush>
      <${Loaded} from=${found}>${(told) => (told.kept ? html`<${Found} ...${told} />` : html`<div class="inside"><${Notice}>This hub keeps no audit trail. Its operator can switch it on.<//></div>`)}<//>
    <//>
  <//>`;
}

function Found({ changes, after }) {
  return html`<${Fragment}>
    <${Table} label="Changes" rows=${changes} keyed=${(row) => row.id} empty="No changes are kept." columns=${[
      ["When", (row) => html`<${Time} at=${row.at} />`],
      ["Who", (row) => html`<span>${WHO[row.by.kind] ?? row.by.kind} <span class="mono">${row.by.app ?? row.by.token}</span></span>`],
      ["From", (row) => html`<span class="mono">${row.from.address}</span>`],
      ["What", (row) => html`<details><summary>${row.what}</summary>
        ${[["asked", "Asked for"], ["before", "Before"], ["after", "After"]].map(([name, title]) => row[name] !== null && html`<p>${title}</p><pre class="body" tabindex="0">${JSON.stringify(row[name], null, 2)}</pre>`)}
      </details>`],
      ["Answer", (row) => html`<${Badge} kind=${row.status === null ? "warn" : row.status < 400 ? "good" : "bad"}>${row.status ?? "not known"}<//>`],
    ]} />
    ${after && html`<p class="inside"><a href=${href("changes", { after })}>Older ones</a></p>`}
  <//>`;
}
