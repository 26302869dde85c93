// The library, in one place: Preact and htm. Text is always set as text; no page makes markup of a string.
import htm from "./vendor/htm.js";
import { Fragment, h, render } from "./vendor/preact.js";

export { useCallback, useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { Fragment, render };

// Characters that turn the text around them: they would make a customer's name say something else of what stands beside it.
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const READ_ALOUD = ["title", "alt", "aria-label", "placeholder"];

/** A text as it may be shown: what turns text is written out. What people edit in a field stays as it is. */
export const shown = (text) =>
  text.replace(TURNING, (each) => `[U+${each.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

const cleaned = (child) =>
  typeof child === "string" ? shown(child) : Array.isArray(child) ? child.map(cleaned) : child;

function element(type, props, ...children) {
  if (props && typeof type === "string") {
    for (const name of READ_ALOUD) if (typeof props[name] === "string") props[name] = shown(props[name]);
  }
  return h(type, props, ...(type === "textarea" ? children : children.map(cleaned)));
}

export const html = htm.bind(element);
