// The reference of the APIs in the console's colours, with a search that also a phone has: the viewer's own is in its
// side bar, which there is none of on a phone.
import "./vendor/openapi-explorer.js";

const LIGHT = {
  "bg-color": "#ffffff", "header-bg-color": "#eef0f4", "text-color": "#1a202c", "header-color": "#3349c4",
  "primary-color": "#3349c4", "secondary-color": "#3349c4", "nav-bg-color": "#f6f7f9", "nav-text-color": "#414b5c",
  "nav-hover-bg-color": "#e8ebfd", "nav-hover-text-color": "#1a202c",
};
const DARK = {
  "bg-color": "#181d26", "header-bg-color": "#2c3442", "text-color": "#e6e9ef", "header-color": "#9db0ff",
  "primary-color": "#9db0ff", "secondary-color": "#9db0ff", "nav-bg-color": "#10141b", "nav-text-color": "#b6bfcd",
  "nav-hover-bg-color": "#232c4d", "nav-hover-text-color": "#e6e9ef",
};

/** What was chosen in the console, whose storage this page shares; the storage may be refused. */
function chosen() {
  try {
    return localStorage.getItem("pushhub.theme");
  } catch {
    return null;
  }
}

const viewer = document.querySelector("openapi-explorer");
const darkDevice = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const theme = chosen() ?? (darkDevice.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  for (const [name, colour] of Object.entries(theme === "dark" ? DARK : LIGHT)) viewer.setAttribute(name, colour);
}

// What is folded away in the side bar cannot be reached by the keyboard either.
const folded = new CSSStyleSheet();
folded.replaceSync(".nav-bar-tag-and-paths.collapsed > .nav-bar-section-wrapper { visibility: hidden; }");
viewer.shadowRoot.adoptedStyleSheets.push(folded);

paint();
darkDevice.addEventListener("change", paint);

const find = document.getElementById("find");
find.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  viewer.matchPaths = wanted;
  for (const tag of viewer.resolvedSpec?.tags ?? []) tag.expanded = Boolean(wanted);
  viewer.requestUpdate();
});
/** A project's token as each protocol wants it. Those that are left out would be sent besides. */
const CREDENTIALS = {
  ironmqOAuth: (token) => `OAuth ${token}`,
  storeToken: (token) => token,
  tenantBearer: (token) => token,
  webhooksToken: (token) => token,
};

const form = document.getElementById("token");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = form.elements.token.value.trim();
  for (const [scheme, credentials] of Object.entries(CREDENTIALS)) {
    await viewer.setAuthenticationConfiguration(scheme, { token: token && credentials(token) });
  }
  form.querySelector("[role=status]").textContent = token ? "Requests are sent with this token." : "Requests are sent without a token.";
});

document.addEventListener("keydown", (event) => {
  const typing = event.composedPath()[0].closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  find.focus();
});
