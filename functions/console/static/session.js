// Who is signed in. A project's token stays in sessionStorage, so that a reload keeps it and a closed tab does not; a portal token
// stays in memory only. Neither is ever part of an address that is asked for: the fragment a link brings is removed at once.

import { frame } from "./frame.js";
import { keptInTab } from "./storage.js";

const KEY = "pushhub.session";
let current = null;
let offered = null;
const watchers = new Set();

/** The session, or null: {kind: "project", project, token} or {kind: "portal", application, token}. */
export function session() {
  return current;
}

/** Call `watcher` with each new session; returns what stops that. */
export function watchSession(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function signIn(next) {
  current = next;
  if (next.kind === "project") keptInTab.set(KEY, JSON.stringify(next));
  else keptInTab.remove(KEY);
  watchers.forEach((each) => each(current));
}

export function signOut(reason = "") {
  current = null;
  offered = null;
  keptInTab.remove(KEY);
  watchers.forEach((each) => each(current, reason));
}

/** The session that a link brought to a tab that is signed in as somebody else, until a person has decided; or null. */
export function offer() {
  return offered;
}

/** Takes or leaves what a link brought. */
export function decide(taken) {
  const brought = offered;
  offered = null;
  if (taken) signIn(brought);
  else watchers.forEach((each) => each(current));
}

/**
 * What this tab was signed in with before a reload, or what the address brought; its fragment is removed before anything is asked for.
 * Anybody can write a link, so it does not replace a session: a person is asked.
 */
export function restoreSession() {
  const brought = fromFragment(location.hash);
  if (brought) history.replaceState(null, "", location.pathname + location.search);
  // Where other pages may show this one, nobody is signed in to a whole project, whatever a link says or the tab has kept.
  if (frame && brought?.kind !== "portal") return;
  current ??= frame ? null : kept();
  if (!brought || same(brought, current)) return;
  if (!current) return signIn(brought);
  offered = brought;
  watchers.forEach((each) => each(current));
}

function kept() {
  try {
    const stored = JSON.parse(keptInTab.get(KEY));
    return stored?.kind === "project" && stored.project && stored.token ? stored : null;
  } catch {
    keptInTab.remove(KEY);
    return null;
  }
}

function same(one, other) {
  return ["kind", "project", "application", "token"].every((name) => one?.[name] === other?.[name]);
}

/** Reads `#project=...&token=...`, or a portal's `#application=...&token=...`, or `#key=` and base64 of {appId, token}. */
export function fromFragment(fragment) {
  if (!fragment || fragment.startsWith("#/")) return null;
  const given = new URLSearchParams(fragment.slice(1));
  const token = given.get("token");
  if (token && given.get("project")) return { kind: "project", project: given.get("project"), token };
  if (token && given.get("application")) return { kind: "portal", application: given.get("application"), token };
  if (given.get("key")) {
    try {
      const key = JSON.parse(atob(given.get("key").replace(/-/g, "+").replace(/_/g, "/")));
      const secret = key.token ?? key.oneTimeToken;
      if (key.appId && secret) return { kind: "portal", application: String(key.appId), token: String(secret) };
    } catch {
      return null;
    }
  }
  return null;
}
