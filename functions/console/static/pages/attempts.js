// Attempts as people look into them: two of them side by side, and the request as a command.
import { Card, counted, shorten, Table } from "../parts.js";
import { html, useState } from "../view.js";

/** Characters of an answer that are shown beside another. */
const MOST_SHOWN = 2000;

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

/** A request as a command, without signatures; credentials stay hidden, as everywhere. Null where there is none. */
export function curl(url, headers, body) {
  if (!/^https?:/.test(url ?? "") || body === undefined || body === null) return null;
  return ["curl -X POST", ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`), `--data-raw ${quoted(body)}`, quoted(url)].join(" \\\n  ");
}

/**
 * Two attempts side by side; what differs is marked. Nothing for a single one.
 *
 * @param attempts Oldest first: {of, name, facts}, the facts as texts by what they are.
 */
export function Compared({ attempts }) {
  const [chosen, setChosen] = useState([null, null]);
  if (attempts.length < 2) return null;
  // Until a person chooses: the last one, and the one before it at the same receiver.
  const last = attempts.length - 1;
  const before = attempts.findLastIndex((each, place) => place < last && each.of === attempts[last].of);
  const places = [chosen[0] ?? (before < 0 ? last - 1 : before), chosen[1] ?? last];
  const [one, other] = places.map((place) => attempts[Math.min(place, attempts.length - 1)]);
  const select = (side, label) => html`<div class="field"><label for="compared-${side}">${label}</label>
    <select id="compared-${side}" value=${String(places[side])} onChange=${(event) => setChosen(places.map((each, index) => (index === side ? Number(event.currentTarget.value) : each)))}>
      ${attempts.map((each, place) => html`<option key=${place} value=${String(place)} selected=${place === places[side]}>${each.name}</option>`)}
    </select></div>`;
  const rows = Object.keys({ ...one.facts, ...other.facts }).map((what) => ({ what, said: [one.facts[what] ?? "", other.facts[what] ?? ""] }));
  const different = rows.filter(({ said: [first, second] }) => first !== second).length;
  const cell = (side) => ({ said }) => {
    const text = html`<span class="said">${shorten(said[side] || "–", MOST_SHOWN)}</span>`;
    return said[0] === said[1] ? text : html`<mark>${text}</mark>`;
  };
  return html`<${Card} title="Two attempts compared">
    <div class="filter" role="group" aria-label="Attempts to compare">${select(0, "This one")}${select(1, "And this one")}</div>
    <p class="hint">${different ? `${counted(different, "line")} ${different === 1 ? "differs" : "differ"}, and ${different === 1 ? "is" : "are"} marked.` : "They are alike."}</p>
    <${Table} label="Two attempts compared" rows=${rows} keyed=${(each) => each.what} columns=${[["What", (each) => each.what], ["This one", cell(0)], ["And this one", cell(1)]]} />
  <//>`;
}
