// What the keyboard does on every page: / finds, ? shows what there is, g and a letter goes.
import { Dialog, Facts } from "./parts.js";
import { go } from "./route.js";
import { html, useEffect, useState } from "./view.js";

/** Letters after g, the page's first segment, and its name. */
const PLACES = [["t", "today", "Today"], ["e", "events", "Events"], ["q", "queues", "Queues"], ["s", "store", "Store"], ["a", "apps", "Applications"], ["n", "topics", "Topics"], ["c", "charts", "Charts"], ["l", "alerts", "Alerts"], ["r", "reports", "Reports"], ["f", "search", "Search"]];
const WITHIN_MS = 1500;

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");

/** Listens while it is shown, and shows the list of keys when asked. */
export function Keys() {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    let began = 0;
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
      const place = Date.now() - began < WITHIN_MS && PLACES.find(([letter]) => letter === event.key);
      began = event.key === "g" ? Date.now() : 0;
      if (place) go(place[1]);
      else if (event.key === "/") focusFind();
      else if (event.key === "?") setShown(true);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  if (!shown) return null;
  const key = (...names) => html`<span>${names.map((each) => html`<kbd>${each}</kbd> `)}</span>`;
  return html`<${Dialog} title="Keys" onClose=${() => setShown(false)}>
    <${Facts} of=${[[key("/"), "Find a message"], [key("?"), "These keys"], ...PLACES.map(([letter, , name]) => [key("g", letter), name])]} />
    <div><button type="button" onClick=${() => setShown(false)}>Close</button></div>
  <//>`;
}

/** The search of the frame; on a phone it is behind the menu's button. */
function focusFind() {
  const find = document.querySelector(".find input");
  if (!find) return;
  if (!find.offsetParent) document.querySelector(".menu-button")?.click();
  requestAnimationFrame(() => find.focus());
}
