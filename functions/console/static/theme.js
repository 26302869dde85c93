// Light or dark: what the device says, what the person chose here, or what the page wants that shows a portal in a frame.
import { applyLook, wantedTheme } from "./frame.js";
import { kept } from "./storage.js";
import { html, useState } from "./view.js";

const KEY = "pushhub.theme";
const CHOICES = [["", "As the device"], ["light", "Light"], ["dark", "Dark"]];

export function applyTheme(choice = wantedTheme() ?? kept.get(KEY) ?? "") {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  applyLook();
}

/** The device's choice may change while the page is there. */
export function followDevice() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyLook);
}

export function ThemeSwitch() {
  const [choice, setChoice] = useState(kept.get(KEY) ?? "");
  const choose = (event) => {
    const next = event.currentTarget.value;
    if (next) kept.set(KEY, next);
    else kept.remove(KEY);
    setChoice(next);
    applyTheme(next);
  };
  return html`<label>Colours <select value=${choice} onChange=${choose}>
    ${CHOICES.map(([key, name]) => html`<option value=${key} selected=${key === choice}>${name}</option>`)}
  </select></label>`;
}
