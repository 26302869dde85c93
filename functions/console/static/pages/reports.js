// Reports are the operator's: they are made from the records of all projects, so no project's token reaches them.
import { Card, Page } from "../parts.js";
import { html } from "../view.js";

export function Reports() {
  return html`<${Page} title="Reports" lead="The delivery report proves from the records that every accepted message was delivered, given up or is still on its way, and says what to change.">
    <div class="columns">
      <${Card} title="On one machine">
        <p>In the repository, while the stack runs:</p>
        <pre class="body" tabindex="0">make report</pre>
        <p class="hint">It says where <code>report.html</code> lies: conservation, causes of failures, advice on retries, anomalies.</p>
      <//>
      <${Card} title="On AWS">
        <p>Each night at 01:30 UTC, once <code>make report-upload</code> has put the job there. In the records bucket, <code>reports/latest.json</code> says where the newest page is.</p>
        <p class="hint">The alarm ReportFailed sounds when a delivery is not accounted for.</p>
      <//>
    </div>
    <p class="hint">A report covers all projects of a deployment, and so is read with the operator's AWS rights, not with a project's token. The simulator for retry policies is run in the repository: <code>make simulate</code>.</p>
  <//>`;
}
