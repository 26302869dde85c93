// The console: who is signed in, the frame around pages, and which page an address shows.
import { frame, framed, tellHeight, wantedIcon } from "./frame.js";
import { Keys } from "./keys.js";
import { Notice, Page, Toasts } from "./parts.js";
import { currentRoute, go, href } from "./route.js";
import { decide, offer, restoreSession, session, signIn, signOut, watchSession } from "./session.js";
import { applyTheme, followDevice, ThemeSwitch } from "./theme.js";
import { html, render, useEffect, useState } from "./view.js";
import { isStream, logout } from "./webhooks.js";
import { Alerts } from "./pages/alerts.js";
import { Application, Applications, EventTypes } from "./pages/applications.js";
import { Changes } from "./pages/changes.js";
import { Charts } from "./pages/charts.js";
import { Endpoint, WebhookMessage } from "./pages/endpoint.js";
import { Events } from "./pages/events.js";
import { QueueMessage } from "./pages/message.js";
import { Queue, Queues, QueueSubscriber } from "./pages/queues.js";
import { Reports } from "./pages/reports.js";
import { Search } from "./pages/search.js";
import { SignIn } from "./pages/signin.js";
import { Sources } from "./pages/sources.js";
import { Store, StoreMessage } from "./pages/store.js";
import { SinkTransformation, Stream, Streams } from "./pages/streams.js";
import { Today } from "./pages/today.js";
import { Live, Topics } from "./pages/topics.js";
import { Transformation } from "./pages/transformation.js";

const PROJECT_NAV = [["today", "Today"], ["events", "Events"], ["queues", "Queues"], ["store", "Store"], ["apps", "Applications"], ["sources", "Sources"], ["streams", "Streams"], ["topics", "Topics"], ["live", "Live"], ["search", "Search"], ["charts", "Charts"], ["alerts", "Alerts"], ["changes", "Changes"], ["reports", "Reports"]];

/** Which page shows a route: by its first segment, and what follows. */
function pageOf({ segments: [first = "today", ...rest], query }, who) {
  // A portal has one application, and nothing else.
  if (who.kind === "portal") {
    const own = isStream(who.application) ? "streams" : "apps";
    [first, rest] = [own, [who.application, ...(first === own ? rest.slice(1) : [])]];
  }
  const shown = { segments: rest, query };
  const [one, two, three, four] = rest;
  if (first === "today") return html`<${Today} />`;
  if (first === "events") return html`<${Events} ...${shown} key=${JSON.stringify(query)} />`;
  if (first === "queues" && two === "messages" && rest.length === 3) return html`<${QueueMessage} ...${shown} key=${rest.join("\n")} />`;
  if (first === "queues" && two === "subscribers" && rest.length === 3) return html`<${QueueSubscriber} ...${shown} key=${rest.join("\n")} />`;
  if (first === "queues") return rest.length ? html`<${Queue} ...${shown} key=${one} />` : html`<${Queues} ...${shown} key="queues" />`;
  if (first === "store" && one === "messages" && two) return html`<${StoreMessage} ...${shown} key=${two} />`;
  if (first === "store") return html`<${Store} ...${shown} key="store" />`;
  if (first === "apps" && two === "endpoints" && four === "transformation") return html`<${Transformation} ...${shown} key=${rest.join("\n")} />`;
  if (first === "apps" && two === "endpoints" && three) return html`<${Endpoint} ...${shown} key=${rest.join("\n")} />`;
  if (first === "apps" && two === "messages" && three) return html`<${WebhookMessage} ...${shown} key=${rest.join("\n")} />`;
  if (first === "apps") return one ? html`<${Application} ...${shown} key=${one} />` : html`<${Applications} ...${shown} key="apps" />`;
  if (first === "sources") return html`<${Sources} ...${shown} key="sources" />`;
  if (first === "streams" && two === "sinks" && four === "transformation") return html`<${SinkTransformation} ...${shown} key=${rest.join("\n")} />`;
  if (first === "streams") return one ? html`<${Stream} ...${shown} key=${one} />` : html`<${Streams} ...${shown} key="streams" />`;
  if (first === "event-types") return html`<${EventTypes} ...${shown} />`;
  if (first === "topics") return html`<${Topics} ...${shown} />`;
  if (first === "live") return html`<${Live} ...${shown} key=${one} />`;
  if (first === "search") return html`<${Search} ...${shown} key=${JSON.stringify(query)} />`;
  if (first === "alerts") return html`<${Alerts} />`;
  if (first === "changes") return html`<${Changes} ...${shown} key=${JSON.stringify(query)} />`;
  if (first === "charts") return html`<${Charts} ...${shown} />`;
  if (first === "reports") return html`<${Reports} ...${shown} />`;
  return html`<${Page} title="Not found"><${Notice} kind="warn">The console has no such page.<//><//>`;
}

function Logo() {
  const icon = frame && wantedIcon();
  if (icon) return html`<img src=${icon} alt="" referrerpolicy="no-referrer" />`;
  return html`<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" fill="#3b5bdb" />
    <path d="M7 16h9m0 0 8-7M16 16h9M16 16l8 7" stroke="#fff" stroke-width="2.6" stroke-linecap="round" fill="none" /><circle cx="7.5" cy="16" r="2.6" fill="#fff" /></svg>`;
}

/** The pages of a portal, which is of an application or of a stream. */
function portalPages(id) {
  if (isStream(id)) return [["streams", "Sinks", href("streams", id)], ["events", "Events", href("streams", id, "events")]];
  return [["apps", "Endpoints", href("apps", id)], ["messages", "Messages", href("apps", id, "messages")]];
}

function Frame({ who, route }) {
  const [open, setOpen] = useState(false);
  const portal = who.kind === "portal";
  const pages = portal ? portalPages(who.application) : PROJECT_NAV.map(([key, name]) => [key, name, href(key)]);
  const first = route.segments[0] ?? PROJECT_NAV[0][0];
  const current = portal ? (pages.some(([key]) => key === route.segments[2]) ? route.segments[2] : pages[0][0]) : first === "event-types" ? "apps" : first;
  const leave = async () => {
    // A portal's token ends with its session; where that cannot be said, it ends by itself.
    if (portal) await logout().catch(() => {});
    signOut();
  };
  useEffect(() => setOpen(false), [route]);
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>Skip to the page</a>
    <header class="side ${open ? "open" : ""}">
      <a class="brand" href="#/"><${Logo} />${frame ? "Webhooks" : "Pushhub"}</a>
      <button type="button" class="menu-button" aria-expanded=${String(open)} aria-controls="pages" onClick=${() => setOpen(!open)}>Menu</button>
      <nav id="pages" aria-label="Pages">
        <ul class="nav">${pages.map(([key, name, link]) => html`<li><a href=${link} aria-current=${current === key ? "page" : undefined}>${name}</a></li>`)}</ul>
      </nav>
      ${!portal && html`<${Find} />`}
      <div class="account">
        <div>${who.kind === "portal" ? "Application" : "Project"}<br /><span class="mono">${who.project ?? who.application}</span></div>
        ${!frame && html`<${ThemeSwitch} />`}
        ${!framed() && html`<button type="button" onClick=${leave}>Sign out</button>`}
      </div>
    </header>
    ${!portal && html`<${Keys} />`}
    <main id="main" tabindex="-1" data-address=${route.address}>${pageOf(route, who)}</main>
  </div>`;
}

/** Finds a message from every page. */
function Find() {
  const [text, setText] = useState("");
  const find = (event) => {
    event.preventDefault();
    if (text.trim()) go("search", { id: text.trim() });
  };
  return html`<form class="find" role="search" aria-label="Find" onSubmit=${find}>
    <input type="search" aria-label="Find" placeholder="Find: 4711" aria-keyshortcuts="/" title="Press / to come here, ? for all keys" value=${text} onInput=${(event) => setText(event.currentTarget.value)} />
  </form>`;
}

/** Asks whether a link may replace the session: it may come from anybody, and lead to somebody else's project. */
function Offered({ from, to }) {
  const name = (each) => `${each.kind === "portal" ? "application" : "project"} ${each.project ?? each.application}`;
  useEffect(() => {
    document.title = "Sign in elsewhere? · Pushhub";
    document.getElementById("stay").focus();
  }, []);
  return html`<main class="signin">
    <div class="card">
      <h1>Sign in elsewhere?</h1>
      <p>A link asks to sign this tab in to the ${name(to)}. You are signed in to the ${name(from)}.</p>
      <p>Switch only if you expected this: what you enter afterwards goes there.</p>
      <p class="actions">
        <button type="button" id="stay" class="primary" onClick=${() => decide(false)}>Stay</button>
        <button type="button" onClick=${() => decide(true)}>Switch</button>
      </p>
    </div>
  </main>`;
}

/** A page that others may show has no form to sign in with: whoever shows it makes the link. */
function Closed({ reason }) {
  useEffect(() => {
    document.title = "Webhooks";
  }, []);
  return html`<main class="signin"><${Notice} kind="warn">${reason || "This page opens with a link that its owner makes."} Open it again from where you came.<//></main>`;
}

function App() {
  const [who, setWho] = useState(session());
  const [offered, setOffered] = useState(offer());
  const [reason, setReason] = useState("");
  const [route, setRoute] = useState(currentRoute());
  useEffect(() => {
    const stop = watchSession((next, why = "") => {
      setWho(next);
      setOffered(offer());
      setReason(why);
    });
    const moved = () => {
      // A link with a token in its fragment may be opened in a tab that has the console already.
      if (location.hash && !location.hash.startsWith("#/")) restoreSession();
      setRoute(currentRoute());
      window.scrollTo(0, 0);
    };
    window.addEventListener("hashchange", moved);
    return () => {
      stop();
      window.removeEventListener("hashchange", moved);
    };
  }, []);
  return html`${who && offered ? html`<${Offered} from=${who} to=${offered} />` : who ? html`<${Frame} who=${who} route=${route} />` : frame ? html`<${Closed} reason=${reason} />` : html`<${SignIn} reason=${reason} onSignIn=${signIn} />`}<${Toasts} />`;
}

applyTheme();
followDevice();
restoreSession();
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
tellHeight(root);
