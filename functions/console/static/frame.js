// A portal that a page of another origin shows in a frame: who may, how high it is, and how that page wants it to look.
const META = document.querySelector('meta[name="pushhub-frame"]');
const ASKED = new URLSearchParams(META ? location.search : "");
const LONGEST_FONT = 200;
const READABLE = 4.5;

/** {name: its public id, origins: of the pages that may show it}, or null at the console's own address. */
export const frame = META && { name: META.content, origins: (META.dataset.origins ?? "").split(" ").filter(Boolean) };

/** Whether the page is in a frame now. */
export const framed = () => frame !== null && window.parent !== window;

/** What the embedding page wants: "dark", "light", or "" for as the device; null at the console's own address. */
export const wantedTheme = () => (frame ? ({ auto: "", true: "dark" }[ASKED.get("darkMode")] ?? "light") : null);

/** The address of the embedding page's icon, if it is at one of its origins; or null. */
export function wantedIcon() {
  try {
    const icon = new URL(ASKED.get("icon"));
    return frame.origins.includes(icon.origin) ? icon.href : null;
  } catch {
    return null;
  }
}

/** Tells the embedding page, and nobody else, how high the content is, whenever that changes. */
export function tellHeight(root) {
  if (!framed()) return;
  // Where the browser says who embeds the page, one message is enough. Otherwise each goes to one origin, and arrives only there.
  const parent = window.location.ancestorOrigins?.[0];
  const known = frame.origins.filter((each) => parent === undefined || each === parent);
  let last = 0;
  new ResizeObserver(() => {
    const height = Math.ceil(root.getBoundingClientRect().height);
    if (height === last) return;
    last = height;
    known.forEach((origin) => window.parent.postMessage({ type: "svix.iframe-resizer-height", payload: { height } }, origin));
  }).observe(root);
}

/** Puts the wanted font and main colour into the page, which is light or dark as it is now. */
export function applyLook() {
  if (!frame) return;
  const { style } = document.documentElement;
  document.documentElement.classList.toggle("embedded", framed());
  const font = ASKED.get("fontFamily");
  if (font && font.length <= LONGEST_FONT) document.body.style.fontFamily = `${font}, system-ui, sans-serif`;
  const main = colour(ASKED.get("primaryColor") ?? "");
  for (const name of ["--accent", "--on-accent", "--accent-ground", "--focus"]) style.removeProperty(name);
  if (!main) return;
  const now = getComputedStyle(document.documentElement);
  const surface = colour(now.getPropertyValue("--surface"));
  const text = colour(now.getPropertyValue("--text"));
  const ground = mixed(main, surface, 0.88);
  // Links and buttons stay readable: the colour goes towards that of the text until it is.
  let accent = main;
  for (let part = 0.1; part <= 1 && Math.min(contrast(accent, surface), contrast(accent, ground), contrast(accent, colour(now.getPropertyValue("--ground")))) < READABLE; part += 0.1) accent = mixed(main, text, part);
  const white = [255, 255, 255];
  const black = [0, 0, 0];
  style.setProperty("--accent", hex(accent));
  style.setProperty("--focus", hex(accent));
  style.setProperty("--accent-ground", hex(ground));
  style.setProperty("--on-accent", hex(contrast(accent, white) >= contrast(accent, black) ? white : black));
}

/** [red, green, blue] of a hexadecimal colour with or without #, or null. */
function colour(text) {
  const found = /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text.trim());
  if (!found) return null;
  const digits = found[1].length === 3 ? [...found[1]].map((each) => each + each).join("") : found[1];
  return [0, 2, 4].map((place) => parseInt(digits.slice(place, place + 2), 16));
}

const hex = (of) => `#${of.map((each) => each.toString(16).padStart(2, "0")).join("")}`;
const mixed = (one, other, part) => one.map((each, place) => Math.round(each + (other[place] - each) * part));

/** How well one colour is read on another (WCAG 2, relative luminance): 1 to 21. */
function contrast(one, other) {
  const [dark, light] = [one, other].map((of) => {
    const [red, green, blue] = of.map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }).sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}
