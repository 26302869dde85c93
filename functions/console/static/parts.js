// What pages are made of.
import { Refused, asWritten, onWarning } from "./http.js";
import { href } from "./route.js";
import { Fragment, html, shown, useCallback, useEffect, useRef, useState } from "./view.js";

/** Load something and keep it: {data, error, loading, reload}. It is loaded again when `depends` change, and every `every` ms while seen. */
export function useLoad(load, depends, { every = 0 } = {}) {
  const [state, setState] = useState({ data: undefined, error: null, loading: true });
  const turn = useRef(0);
  const abort = useRef(null);
  const busy = useRef(false);
  const reload = useCallback(async ({ quietly = false } = {}) => {
    const mine = ++turn.current;
    abort.current?.abort();
    const controller = (abort.current = new AbortController());
    busy.current = true;
    if (!quietly) setState((before) => ({ ...before, loading: true }));
    try {
      const data = await load(controller.signal);
      if (mine === turn.current) setState({ data, error: null, loading: false });
    } catch (error) {
      if (mine !== turn.current || controller.signal.aborted) return;
      if (!(error instanceof Refused)) console.error(error);
      const told = error instanceof Refused ? error : new Refused(0, "The console could not show this.");
      setState((before) => ({ data: quietly ? before.data : undefined, error: told, loading: false }));
    } finally {
      if (mine === turn.current) busy.current = false;
    }
  }, depends);
  useEffect(() => {
    setState({ data: undefined, error: null, loading: true });
    reload();
    const timer = every && setInterval(() => document.hidden || busy.current || reload({ quietly: true }), every);
    return () => {
      clearInterval(timer);
      turn.current++;
      abort.current?.abort();
    };
  }, [reload]);
  return { ...state, reload };
}

/** What was loaded, or why it was not. */
export function Loaded({ from, children }) {
  if (from.data !== undefined) {
    return html`<${Fragment}>
      ${from.error && html`<${Notice} kind="bad" action="Try again" onAction=${() => from.reload()}>${from.error.message}<//>`}
      ${children(from.data)}
    <//>`;
  }
  if (from.error) return html`<${Notice} kind="bad" action="Try again" onAction=${() => from.reload()}>${from.error.message}<//>`;
  return html`<div class="waiting" role="status"><span class="visually-hidden">Loading</span></div>`;
}

export function Page({ title, lead, crumbs = [], actions, children }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${shown(title)} · Pushhub`;
  }, [title]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return html`<${Fragment}>
    <div class="head">
      <div>
        ${crumbs.length > 0 &&
        html`<nav class="crumbs" aria-label="Where this is">
          ${crumbs.map(([name, link]) => html`<a href=${link}>${name}</a><span aria-hidden="true">/</span>`)}
        </nav>`}
        <h1 tabindex="-1" ref=${heading}>${title}</h1>
        ${lead && html`<p class="lead">${lead}</p>`}
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${children}
  <//>`;
}

export function Card({ title, aside, children, flush = false }) {
  return html`<section class="card">
    ${title && html`<header><h2>${title}</h2>${aside && html`<div class="actions">${aside}</div>`}</header>`}
    ${flush ? children : html`<div class="inside">${children}</div>`}
  </section>`;
}

export function Notice({ kind = "", action, onAction, children }) {
  return html`<div class="notice ${kind}" role=${kind === "bad" ? "alert" : "status"}>
    <span>${children}</span>
    ${action && html`<button type="button" onClick=${onAction}>${action}</button>`}
  </div>`;
}

export function Empty({ children }) {
  return html`<div class="empty">${children}</div>`;
}

/** States of all protocols, in the order good, on its way, wrong, idle. */
const KINDS = {
  good: ["delivered", "acknowledged", "completed", "success", "succeeded", "enabled", "open", "ready", "connected"],
  warn: ["retrying", "failing", "sending", "scheduled", "polling", "reserved", "pending", "waiting", "connecting"],
  bad: ["exhausted", "fail", "failed", "held", "parked", "expired", "error", "disabled", "paused", "never_processed"],
};
const KIND_OF = Object.fromEntries(Object.entries(KINDS).flatMap(([kind, names]) => names.map((name) => [name, kind])));

export function kindOf(state) {
  return KIND_OF[state] ?? "";
}

export function Badge({ state, kind, children }) {
  return html`<span class="badge ${kind ?? kindOf(state)}">${children ?? String(state).replaceAll("_", " ")}</span>`;
}

const UNITS = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];

/** Seconds as people say them: 90 is "1 min 30 s". */
export function duration(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of UNITS) {
    if (left >= size && parts.length < 2) {
      parts.push(`${Math.floor(left / size)} ${unit}`);
      left %= size;
    } else if (parts.length) break;
  }
  return parts.join(" ") || "0 s";
}

/** A time, said from now; exactly when pointed at. Ticks each few seconds. */
export function Time({ at }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5000);
    return () => clearInterval(timer);
  }, []);
  const moment = at ? new Date(at) : null;
  if (!moment || Number.isNaN(moment.getTime())) return html`<span>–</span>`;
  const seconds = (moment - now) / 1000;
  const past = seconds < -60 ? duration(-seconds).replace(/^(\S+ \S+) .*/, "$1") : duration(-seconds);
  const said = Math.abs(seconds) < 2 ? "now" : seconds < 0 ? `${past} ago` : `in ${duration(seconds)}`;
  return html`<time datetime=${moment.toISOString()} title=${moment.toLocaleString()}>${said}</time>`;
}

/** Rows under headings; on a phone each row is a card. `columns` are [heading, cell(row), {number}]. */
export function Table({ label, columns, rows, keyed, empty = "Nothing here." }) {
  if (!rows.length) return html`<${Empty}>${empty}<//>`;
  return html`<div class="table" tabindex="0" role="region" aria-label=${label}>
    <table class="cards">
      <thead>
        <tr>${columns.map(([name, , more]) => html`<th scope="col" class=${more?.number ? "number" : ""}>${name || html`<span class="visually-hidden">Actions</span>`}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map((row, index) => html`<tr key=${keyed ? keyed(row) : index}>
          ${columns.map(([name, cell, more]) => html`<td data-label=${name} class=${more?.number ? "number" : ""}>${cell(row)}</td>`)}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}

/** Pages of a list that says where the next one begins. */
export function Pager({ onFirst, onNext, loading }) {
  if (!onFirst && !onNext) return null;
  return html`<nav class="actions" aria-label="Pages of the list">
    ${onFirst && html`<button type="button" disabled=${loading} onClick=${onFirst}>First page</button>`}
    ${onNext && html`<button type="button" disabled=${loading} onClick=${onNext}>Next page</button>`}
  </nav>`;
}

/** A body as it came: JSON is laid out, everything else is shown as it is. Always as text. */
export function Body({ text, label = "Body" }) {
  const [raw, setRaw] = useState(false);
  const laidOut = prettyJson(text);
  const shown = raw || laidOut === null ? String(text) : laidOut;
  return html`<div class="stack">
    <pre class="body" tabindex="0" role="region" aria-label=${label}>${shown}</pre>
    <div class="actions">
      <${Copy} text=${String(text)} />
      ${laidOut !== null && laidOut !== text && html`<button type="button" class="plain" onClick=${() => setRaw(!raw)}>${raw ? "Lay out" : "As sent"}</button>`}
    </div>
  </div>`;
}

export function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text, asWritten), null, 2);
  } catch {
    return null;
  }
}

export function Copy({ text, name = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return html`<button type="button" class="plain" onClick=${copy}>${done ? "Copied" : name}</button>`;
}

let fieldNumber = 0;

/** One field of a form with what is wrong with it beside it. */
export function Field({ label, hint, problem, type = "text", value, onValue, options, ...more }) {
  const [id] = useState(() => `field-${++fieldNumber}`);
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const shared = { id, "aria-describedby": described, "aria-invalid": problem ? "true" : undefined, ...more };
  const typed = (event) => onValue(event.currentTarget.value);
  let control;
  if (type === "check") {
    control = html`<div class="check">
      <input type="checkbox" ...${shared} checked=${Boolean(value)} onChange=${(event) => onValue(event.currentTarget.checked)} />
      <label for=${id}>${label}</label>
    </div>`;
  } else if (type === "choice") {
    control = html`<select ...${shared} value=${value} onChange=${typed}>
      ${options.map(([key, name]) => html`<option value=${key} selected=${key === value}>${name}</option>`)}
    </select>`;
  } else if (type === "long") {
    control = html`<textarea ...${shared} spellcheck="false" value=${value ?? ""} onInput=${typed}></textarea>`;
  } else {
    control = html`<input type=${type} ...${shared} autocomplete="off" spellcheck="false" value=${value ?? ""} onInput=${typed} />`;
  }
  return html`<div class="field">
    ${type !== "check" && html`<label for=${id}>${label}</label>`}
    ${control}
    ${hint && html`<span class="hint" id="${id}-hint">${hint}</span>`}
    ${problem && html`<span class="problem" id="${id}-problem">${problem}</span>`}
  </div>`;
}

/** What takes no room on a phone until it is opened, and is open elsewhere. */
export function Folded({ name, children }) {
  const [open] = useState(() => !matchMedia("(max-width: 40rem)").matches);
  return html`<details class="folded" open=${open}><summary>${name}</summary>${children}</details>`;
}

/**
 * A form of fields. A refusal of the API is shown beside the field it names, or above the form.
 *
 * @param fields Each {name, label, api (names by which the API calls it, the name itself unless given), ...what Field takes}.
 * @param onSubmit Is given the values; throws Refused.
 */
export function Form({ fields, values: initial = {}, submit = "Save", onSubmit, onCancel, children }) {
  const [values, setValues] = useState(initial);
  const [refused, setRefused] = useState(null);
  const [busy, setBusy] = useState(false);
  const form = useRef(null);
  const shown = fields.filter((each) => !each.when || each.when(values));
  const problems = refused ? besides(refused, shown) : {};
  const unplaced = refused && (Object.keys(problems).length === 0 ? refused.message : "");
  useEffect(() => {
    if (refused) form.current?.querySelector("[aria-invalid=true], [role=alert]")?.focus?.();
  }, [refused]);
  const send = async (event) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setRefused(null);
    try {
      await onSubmit(values);
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      setRefused(error instanceof Refused ? error : new Refused(0, "The console could not send this."));
    } finally {
      setBusy(false);
    }
  };
  return html`<form onSubmit=${send} ref=${form} novalidate>
    ${unplaced && html`<${Notice} kind="bad">${unplaced}<//>`}
    ${shown.map(({ name, when, api, ...field }) => html`<${Field} key=${name} ...${field} name=${name} value=${values[name]} problem=${problems[name]}
      onValue=${(value) => setValues((before) => ({ ...before, [name]: value }))} />`)}
    ${children}
    <div class="actions">
      <button type="submit" class="primary" disabled=${busy}>${busy ? "Sending …" : submit}</button>
      ${onCancel && html`<button type="button" onClick=${onCancel}>Cancel</button>`}
    </div>
  </form>`;
}

/** Which field a refusal is about: the one the API names, or the one whose name is in its message. */
export function besides(refused, fields) {
  const problems = {};
  for (const { name, api = [name] } of fields) {
    const told = [name, ...api].find((each) => Object.hasOwn(refused.fields, each));
    if (told) problems[name] = refused.fields[told];
  }
  if (Object.keys(problems).length || refused.status === 401 || refused.status === 0) return problems;
  const words = refused.message.toLowerCase();
  const named = fields.filter(({ name, api = [name] }) => api.some((each) => new RegExp(`(^|[^a-z_])${each.toLowerCase()}([^a-z_]|$)`).test(words)));
  // The longest name says it most exactly: "retries_delay" is not about "retries".
  named.sort((a, b) => Math.max(...(b.api ?? [b.name]).map((each) => each.length)) - Math.max(...(a.api ?? [a.name]).map((each) => each.length)));
  return named.length ? { [named[0].name]: refused.message } : {};
}

/** A dialog that asks before something is done that cannot be undone, or holds a form. */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${onClose} onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <h2>${title}</h2>
    <div class="stack">${children}</div>
  </dialog>`;
}

/**
 * A button that asks first.
 *
 * @param count Optional: finds out what would be done before it is asked. Returns {question, detail}, or null when there is nothing to do (which it says itself).
 */
export function Confirmed({ name, question, detail, sure = name, onSure, kind = "danger", disabled = false, count }) {
  const [asking, setAsking] = useState(null);
  const close = () => setAsking(null);
  const ask = async () => setAsking(count ? await count() : { question, detail });
  return html`<${Fragment}>
    <${Doing} name=${name} kind=${kind} disabled=${disabled} onDo=${ask} />
    ${asking && html`<${Dialog} title=${asking.question} onClose=${close}>
      ${asking.detail && html`<p>${asking.detail}</p>`}
      <${Doing} name=${sure} kind=${kind} onDo=${async () => { await onSure(); close(); }} />
      <div><button type="button" onClick=${close}>Cancel</button></div>
    <//>`}
  <//>`;
}

/** A button that does something, and says when it could not. */
export function Doing({ name, onDo, kind = "", disabled = false }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async () => {
    setBusy(true);
    setProblem("");
    try {
      await onDo();
    } catch (error) {
      if (!(error instanceof Refused)) console.error(error);
      setProblem(error instanceof Refused ? error.message : "The console could not do this.");
    }
    setBusy(false);
  };
  return html`<span class="actions">
    <button type="button" class=${kind} disabled=${busy || disabled} onClick=${run}>${name}</button>
    ${problem && html`<span class="problem" role="alert">${problem}</span>`}
  </span>`;
}

let tell = () => {};

/** Say in passing that something was done. */
export function toast(message, kind = "good") {
  tell({ message, kind, id: Math.random() });
}

export function Toasts() {
  const [told, setTold] = useState([]);
  const close = (each) => setTold((before) => before.filter((other) => other.id !== each.id));
  useEffect(() => {
    tell = (each) => {
      setTold((before) => [...before.slice(-2), each]);
      if (!each.stays) setTimeout(() => close(each), 5000);
    };
    onWarning((message) => tell({ message: `Saved, but ${message}`, kind: "warn", id: Math.random(), stays: true }));
  }, []);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${told.map((each) => html`<div class="notice ${each.kind}" key=${each.id}><span>${each.message}</span>${each.stays && html`<button type="button" onClick=${() => close(each)}>Close</button>`}</div>`)}
  </div>`;
}

/** What happened, and what is to come: items of {kind, what, at, detail}. */
export function Timeline({ label, items }) {
  return html`<ol class="timeline" aria-label=${label}>
    ${items.map((each, index) => html`<li key=${index} class=${each.kind ?? ""}>
      <div class="what"><span>${each.what}</span>${each.at && html`<${Time} at=${each.at} />`}</div>
      ${each.detail && html`<div class="detail">${each.detail}</div>`}
    </li>`)}
  </ol>`;
}

const MOST_BRANCHES = 12;

/** A message and where it goes, as a picture: branches of {name, state, detail, link}. */
export function FanOut({ from, branches }) {
  const shown = branches.slice(0, MOST_BRANCHES);
  const left = branches.length - shown.length;
  const rows = shown.length + (left ? 1 : 0);
  const height = Math.max(80, rows * 46 + 20);
  const middle = height / 2;
  const said = branches.map((each) => `${each.name}: ${each.state}`).join("; ");
  return html`<svg class="picture" viewBox="0 0 480 ${height}" role="img" aria-label="${from} goes to ${branches.length}: ${said}">
    ${shown.map((each, index) => {
      const y = rowAt(index, rows, height);
      const kind = kindOf(each.state);
      return html`<g key=${index}>
        <path class="edge ${kind}" d="M140 ${middle} C 185 ${middle}, 165 ${y}, 206 ${y}" />
        <circle class="dot ${kind}" cx="210" cy=${y} r="6" />
        <text x="226" y=${y - 1}>${shorten(each.name, 34)}</text>
        <text class="soft" x="226" y=${y + 15}>${shorten(`${each.state}${each.detail ? ` · ${each.detail}` : ""}`, 44)}</text>
      </g>`;
    })}
    ${left > 0 && html`<text class="soft" x="226" y=${rowAt(rows - 1, rows, height) + 4}>and ${left} more</text>`}
    <rect class="node" x="10" y=${middle - 22} width="130" height="44" rx="9" />
    <text x="75" y=${middle + 5} text-anchor="middle">${shorten(from, 16)}</text>
  </svg>`;
}

function rowAt(index, rows, height) {
  return rows === 1 ? height / 2 : 28 + (index * (height - 56)) / (rows - 1);
}

/** "1 message", "3 messages". */
export const counted = (count, one, more = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : more}`;

export function shorten(text, most) {
  const characters = [...String(text)];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : String(text);
}

/** Tabs that are links, so that each has an address. */
export function Tabs({ label, current, tabs }) {
  return html`<nav class="tabs" aria-label=${label}>
    ${tabs.map(([key, name, link]) => html`<a href=${link} aria-current=${key === current ? "page" : undefined}>${name}</a>`)}
  </nav>`;
}

export function Facts({ of }) {
  return html`<dl class="facts">
    ${of.filter(([, value]) => value !== undefined && value !== null && value !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
  </dl>`;
}

export function Figures({ of, wide = false }) {
  return html`<dl class="figures ${wide ? "wide" : ""}">
    ${of.map(([name, value, unit]) => html`<div><dt>${name}</dt><dd>${value}${unit && html` <small>${unit}</small>`}</dd></div>`)}
  </dl>`;
}

export { href };

/** Names of hours as they are here: "14 h". */
export const hourName = (at) => `${new Date(at).getHours()} h`;

/** Bars are no wider than this, in units of a picture's 600, however few there are. */
const WIDEST = 26;

/** Where the bar at an index begins, and its width, if each has that much room. */
function bar(index, room, gap) {
  const width = Math.min(room - 2 * gap, WIDEST);
  return { x: index * room + (room - width) / 2, width };
}

const BUCKETS = [["now", 10], ["1 min", 60], ["5 min", 300], ["30 min", 1800], ["2 h", 7200], ["6 h", 21_600], ["12 h", 43_200], ["later", Infinity]];

/** When what is still ahead comes, as bars: how many within a minute, within five, and so on. `times` are ISO times. */
export function Ahead({ times }) {
  const counts = BUCKETS.map(() => 0);
  for (const each of times) {
    const seconds = (Date.parse(each) - Date.now()) / 1000;
    counts[BUCKETS.findIndex(([, most]) => seconds <= most)]++;
  }
  const most = Math.max(1, ...counts);
  const wide = 600 / BUCKETS.length;
  const name = (index) => (index === 0 ? "now" : index === BUCKETS.length - 1 ? "later" : `within ${BUCKETS[index][0]}`);
  const said = counts.map((count, index) => count && `${name(index)}: ${count}`).filter(Boolean).join("; ");
  return html`<svg class="picture course" viewBox="0 0 600 120" role="img" aria-label="Retries ahead. ${said || "None"}">
    <line class="axis" x1="0" x2="600" y1="95.5" y2="95.5" />
    ${counts.map((count, index) => html`<g key=${index}>
      ${count > 0 && html`<rect class="bar" ...${bar(index, wide, 8)} y=${95 - (count / most) * 70} height=${(count / most) * 70} rx="2" />
        <text class="count" x=${(index + 0.5) * wide} y=${89 - (count / most) * 70} text-anchor="middle">${count}</text>`}
      <text class="soft" x=${(index + 0.5) * wide} y="113" text-anchor="middle">${BUCKETS[index][0]}</text>
    </g>`)}
  </svg>`;
}

/** A day's activity: bars of what was delivered and what failed, and a line of what was accepted. `hours` are those of the API. */
export function ActivityChart({ hours }) {
  const most = Math.max(1, ...hours.map((each) => Math.max(each.accepted, each.delivered + each.failed)));
  const wide = 600 / hours.length;
  const y = (count) => 115 - (count / most) * 91;
  const sum = (name) => hours.reduce((total, each) => total + each[name], 0);
  const line = hours.map((each, index) => `${index ? "L" : "M"}${(index + 0.5) * wide} ${y(each.accepted)}`).join(" ");
  return html`<svg class="picture course" viewBox="0 0 600 140" role="img" aria-label="The last ${hours.length} hours: ${sum("accepted")} accepted, ${sum("delivered")} delivered, ${sum("failed")} attempts failed">
    <line class="axis" x1="0" x2="600" y1="115.5" y2="115.5" />
    <line class="axis" x1="0" x2="600" y1="23.5" y2="23.5" />
    <text class="soft" x="0" y="17">${most.toLocaleString()}</text>
    ${hours.map((each, index) => html`<g key=${each.hour}>
      <title>${hourName(each.hour)}: ${each.accepted} accepted, ${each.delivered} delivered, ${each.failed} failed</title>
      <rect class="bar blank" x=${index * wide} width=${wide} y="0" height="116" />
      ${each.delivered > 0 && html`<rect class="bar good" ...${bar(index, wide, 3)} y=${y(each.delivered)} height=${115 - y(each.delivered)} rx="2" />`}
      ${each.failed > 0 && html`<rect class="bar bad" ...${bar(index, wide, 3)} y=${y(each.delivered + each.failed)} height=${115 - y(each.failed)} rx="2" />`}
      ${index % 6 === 0 && html`<text class="soft" x=${index * wide + 3} y="133">${hourName(each.hour)}</text>`}
    </g>`)}
    <path class="line" d=${line} />
  </svg>`;
}

/** What went well and badly by hour, as bars: items of {label, good, bad}, oldest first. */
export function Bars({ label, items }) {
  const most = Math.max(1, ...items.map((each) => each.good + each.bad));
  const wide = 600 / items.length;
  const said = items.filter((each) => each.good + each.bad).map((each) => `${each.label}: ${each.good} good, ${each.bad} failed`).join("; ");
  return html`<svg class="picture course" viewBox="0 0 600 130" role="img" aria-label="${label}. ${said || "Nothing"}">
    <line class="axis" x1="0" x2="600" y1="105.5" y2="105.5" />
    ${items.map((each, index) => {
      const good = (each.good / most) * 95;
      const bad = (each.bad / most) * 95;
      return html`<g key=${index}>
        <title>${each.label}: ${each.good} delivered, ${each.bad} failed</title>
        <rect class="bar blank" x=${index * wide} width=${wide} y="0" height="106" />
        ${each.good > 0 && html`<rect class="bar good" ...${bar(index, wide, 2)} y=${105 - good} height=${good} rx="2" />`}
        ${each.bad > 0 && html`<rect class="bar bad" ...${bar(index, wide, 2)} y=${105 - good - bad} height=${bad} rx="2" />`}
        ${index % 6 === 0 && html`<text class="soft" x=${index * wide + 2} y="122">${each.label}</text>`}
      </g>`;
    })}
  </svg>`;
}

/** Milliseconds as people say them: 1250 is "1.3 s". */
export const milliseconds = (ms) => (ms === null || ms === undefined ? "–" : ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`);

/** Under which hours of a chart something is written, and what: the hour, or the day where there are several. */
function labels(hours) {
  const step = Math.max(1, Math.ceil(hours.length / 7));
  const name = ({ hour }) => (hours.length > 24 ? new Date(hour).toLocaleDateString([], { day: "numeric", month: "short" }) : hourName(hour));
  return hours.map((each, index) => (index % step === 0 ? name(each) : ""));
}

/** Deliveries and failed attempts by hour, as bars. */
export function Course({ label, hours }) {
  const most = Math.max(1, ...hours.map((each) => each.delivered + each.failed));
  const wide = 600 / hours.length;
  const gap = Math.min(3, wide / 6);
  const high = (count) => (count / most) * 91;
  const named = labels(hours);
  return html`<svg class="picture course" viewBox="0 0 600 140" role="img" aria-label=${label}>
    <line class="axis" x1="0" x2="600" y1="115.5" y2="115.5" />
    <line class="axis" x1="0" x2="600" y1="23.5" y2="23.5" />
    <text class="soft" x="0" y="17">${most.toLocaleString()}</text>
    ${hours.map((each, index) => html`<g key=${each.hour}>
      <title>${hourName(each.hour)}: ${each.delivered} delivered, ${each.failed} failed, ${each.given_up} given up</title>
      <rect class="bar blank" x=${index * wide} width=${wide} y="0" height="116" />
      ${each.delivered > 0 && html`<rect class="bar good" ...${bar(index, wide, gap)} y=${115 - high(each.delivered)} height=${high(each.delivered)} />`}
      ${each.failed > 0 && html`<rect class="bar bad" ...${bar(index, wide, gap)} y=${115 - high(each.delivered + each.failed)} height=${high(each.failed)} />`}
      ${named[index] && html`<text class="soft" x=${index * wide + gap} y="133">${named[index]}</text>`}
    </g>`)}
  </svg>`;
}

const PERCENTILES = [["p50_ms", "good"], ["p95_ms", "warn"], ["p99_ms", "bad"]];

/** How long attempts took by hour, as lines of percentiles; an hour without attempts interrupts them. */
export function Durations({ label, hours }) {
  const most = Math.max(1, ...hours.map((each) => each.p99_ms ?? 0));
  const wide = 600 / hours.length;
  const x = (index) => (index + 0.5) * wide;
  const y = (ms) => 115 - (ms / most) * 91;
  const named = labels(hours);
  const line = (name) => hours.map((each, index) => (each[name] === null ? "" : `${index && hours[index - 1][name] !== null ? "L" : "M"}${x(index)} ${y(each[name])}`)).join(" ");
  return html`<svg class="picture course" viewBox="0 0 600 140" role="img" aria-label=${label}>
    <line class="axis" x1="0" x2="600" y1="115.5" y2="115.5" />
    <line class="axis" x1="0" x2="600" y1="23.5" y2="23.5" />
    <text class="soft" x="0" y="17">${milliseconds(most)}</text>
    ${PERCENTILES.map(([name, kind]) => html`<path key=${name} class="line ${kind}" d=${line(name)} />`)}
    ${hours.map((each, index) => html`<g key=${each.hour}>
      ${PERCENTILES.map(([name, kind]) => each[name] !== null && html`<circle class="dot ${kind}" cx=${x(index)} cy=${y(each[name])} r=${hours.length > 24 ? 1.5 : 3} />`)}
      <rect class="bar blank" x=${index * wide} width=${wide} y="0" height="116"><title>${hourName(each.hour)}: p50 ${milliseconds(each.p50_ms)}, p95 ${milliseconds(each.p95_ms)}, p99 ${milliseconds(each.p99_ms)}</title></rect>
      ${named[index] && html`<text class="soft" x=${index * wide + 2} y="133">${named[index]}</text>`}
    </g>`)}
  </svg>`;
}

/** What went on at a subscriber in the last day: figures, and a picture by hour. */
export function DayAtSubscriber({ told: { hours, complete, p95_ms } }) {
  const sum = (name) => hours.reduce((total, each) => total + each[name], 0);
  const [attempts, delivered, failed] = ["attempts", "delivered", "failed"].map(sum);
  return html`<${Fragment}>
    <${Figures} of=${[["Delivered, last day", delivered.toLocaleString()], ["Failed attempts", failed.toLocaleString()], ["Success", attempts ? `${Math.floor((100 * (attempts - failed)) / attempts)} %` : "–"], ["95 of 100 answered within", milliseconds(p95_ms)]]} />
    <${Card} title="The last day, by hour">
      <${Bars} label="Attempts by hour" items=${hours.map((each) => ({ label: hourName(Date.parse(each.hour)), good: each.attempts - each.failed, bad: each.failed }))} />
      <p class="legend">Counted a minute or two later. ${complete ? "" : "So many subscribers were busy that not all attempts were counted. "}Green: delivered. Red: failed.</p>
    <//>
  <//>`;
}
