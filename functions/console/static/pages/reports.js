// What the newest delivery report says of this project. The whole of it tells of all projects, and is for operators.
import { Card, Figures, Loaded, Notice, Page, Table, Tabs, Time, duration, useLoad } from "../parts.js";
import * as report from "../report.js";
import { href } from "../route.js";
import { Fragment, html } from "../view.js";

const count = (number) => Number(number ?? 0).toLocaleString();
const time = (ms) => (ms === null || ms === undefined ? "–" : ms < 1000 ? `${ms} ms` : duration(ms / 1000));
const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");
const number = { number: true };
const who = [["Queue", (row) => row.queue], ["Subscriber", (row) => row.subscriber ?? row.subscriber_id ?? "–"]];

/** What is shown of each table, and how: columns as in parts.js. */
const TABLES = {
  queues: ["Queues", [
    ["Queue", (row) => row.queue],
    ["Messages", (row) => count(row.messages), number],
    ["Delivered", (row) => count((row.delivered ?? 0) + (row.acknowledged ?? 0)), number],
    ["Given up", (row) => count((row.exhausted ?? 0) + (row.expired ?? 0)), number],
    ["Open", (row) => count(row.open), number],
    ["Usual time", (row) => time(row.delivery_p50_ms), number],
    ["Slow (p99)", (row) => time(row.delivery_p99_ms), number],
  ]],
  subscribers: ["Subscribers", [
    ...who,
    ["Attempts", (row) => count(row.attempts), number],
    ["Failed", (row) => `${count(row.failed)} (${share(row.failed, row.attempts)})`, number],
    ["Usual answer", (row) => time(row.p50_ms), number],
    ["Slow (p99)", (row) => time(row.p99_ms), number],
  ]],
  outages: ["When subscribers were down", [
    ...who,
    ["Down", (row) => count(row.times_down), number],
    ["Given up meanwhile", (row) => count(row.given_up), number],
    ["In words", (row) => row.sentence],
  ]],
  given_up: ["Given up", null],
  backlog: ["Waiting", null],
  anomalies: ["Anomalies", null],
  findings: ["Findings", null],
  conservation: ["By hour", null],
};

/** Columns for a table of which nothing else is said: those that its rows have, few first. */
function columnsOf(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter((name) => rows.some((row) => row[name] !== null && row[name] !== 0 && row[name] !== ""));
  return names.slice(0, 9).map((name) => [name[0].toUpperCase() + name.slice(1).replaceAll("_", " "), (row) => shown(row[name]), typeof rows[0][name] === "number" ? number : undefined]);
}

const shown = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? value.toLocaleString() : typeof value === "object" ? JSON.stringify(value) : String(value));

export function Reports({ segments: [tab = "queues"] }) {
  const verdict = useLoad((signal) => report.verdict(signal), []);
  const name = Object.hasOwn(TABLES, tab) ? tab : "queues";
  return html`<${Page} title="Reports" lead="From the delivery records: whether every accepted message was delivered, given up or is still on its way.">
    <${Loaded} from=${verdict}>${(told) => (told ? html`<${Fragment}>
      <${Verdict} of=${told} />
      ${tells(told) && html`<${Tabs} label="Tables of the report" current=${name} tabs=${Object.entries(TABLES).map(([key, [title]]) => [key, title, href("reports", key)])} />
      <${ReportTable} name=${name} key=${name} />`}
    <//>` : html`<${Notice}>There is no report yet. On one machine <code>make report</code> makes one, on AWS the stack does each night at 01:30 UTC.<//>`)}<//>
    <p class="hint">This is this project's part. The whole page, with time series, causes and costs of all projects, is for operators: <code>pushhub report --link</code>.</p>
  <//>`;
}

/** Whether a report tells anything of this project: on its first day it does not, and empty tables say nothing. */
const tells = ({ verdict }) => Boolean(verdict && (verdict.messages || verdict.owed || verdict.unexpected || verdict.breaches));

function Verdict({ of: { from, to, as_of: asOf, verdict } }) {
  const days = html`${from} to ${to}, as of <${Time} at=${asOf} />`;
  if (!tells({ verdict })) return html`<${Notice}>The report of ${days} has nothing about this project: what was posted since is in the next one. Until then <a href=${href("today")}>Today</a> and the <a href=${href("charts")}>charts</a> tell.<//>`;
  const waits = ["pending", "retrying", "reserved", "polling", "scheduled", "held"].reduce((sum, each) => sum + (verdict[each] ?? 0), 0);
  return html`<${Fragment}>
    ${verdict.conserved
      ? html`<${Notice} kind="good"><strong>Everything is accounted for.</strong> ${days}.<//>`
      : html`<${Notice} kind="bad"><strong>Not everything is accounted for:</strong> ${count(verdict.missing)} missing, ${count(verdict.unexpected)} never owed, ${count(verdict.breaches)} findings say what is wrong. ${days}. <a href=${href("reports", "findings")}>Findings</a><//>`}
    <${Figures} of=${[
      ["Messages", count(verdict.messages)], ["Deliveries owed", count(verdict.owed)],
      ["Delivered", count((verdict.delivered ?? 0) + (verdict.acknowledged ?? 0))],
      ["Given up", count((verdict.exhausted ?? 0) + (verdict.expired ?? 0))], ["Cancelled", count(verdict.cancelled)],
      ["On their way", count(waits)],
    ]} />
  <//>`;
}

function ReportTable({ name }) {
  const table = useLoad((signal) => report.table(name, signal), [name]);
  const [title, columns] = TABLES[name];
  return html`<${Card} title=${title} flush>
    <${Loaded} from=${table}>${(told) => html`<${Fragment}>
      ${told && !told.complete && html`<div class="inside"><${Notice} kind="warn">Only the first 2,000 rows of all projects can be read here; there may be more.<//></div>`}
      <${Table} label=${title} rows=${told?.rows ?? []} empty="The report has no rows for this project." columns=${columns ?? columnsOf(told?.rows ?? [])} />
    <//>`}<//>
  <//>`;
}
