// Light or dark: what the device says, or what the person chose here.
import { html, useState } from "./view.js";

const KEY = "pushhub.theme";
const CHOICES = [["", "As the device"], ["light", "Light"], ["dark", "Dark"]];

export function applyTheme(choice = localStorage.getItem(KEY) ?? "") {
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

export function ThemeSwitch() {
  const [choice, setChoice] = useState(localStorage.getItem(KEY) ?? "");
  const choose = (event) => {
    const next = event.currentTarget.value;
    if (next) localStorage.setItem(KEY, next);
    else localStorage.removeItem(KEY);
    setChoice(next);
    applyTheme(next);
  };
  return html`<label>Colours <select value=${choice} onChange=${choose}>
    ${CHOICES.map(([key, name]) => html`<option value=${key} selected=${key === choice}>${name}</option>`)}
  </select></label>`;
}
