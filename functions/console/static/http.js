// One way to ask the hub's APIs, and one shape of refusal for the four ways in which they word theirs.
import { frame } from "./frame.js";
import { session, signOut } from "./session.js";

const SECONDS = 35;

/** What the hub says of settings that it has taken, but that are probably not what was meant. */
const WARNING = "Pushhub-Warning";
let warn = () => {};

/** Have somebody told of warnings. */
export function onWarning(tell) {
  warn = tell;
}
const BUSY = new Set([429, 502, 503, 504]);
const AGAIN_MS = [500, 1500, 4000];

/** A refusal or failure. `fields` maps names of fields to what is wrong with them; `message` is for people. */
export class Refused extends Error {
  constructor(status, message, fields = {}) {
    super(message);
    this.status = status;
    this.fields = fields;
  }
}

/** A path of segments, each of them any text. */
export function path(...segments) {
  return segments
    .map((each) => {
      const text = String(each);
      if (text === "." || text === "..") throw new Refused(0, `No address can name “${text}”.`);
      return encodeURIComponent(text);
    })
    .join("/");
}

const AUTHORIZATIONS = {
  ironmq: (token) => ({ Authorization: `OAuth ${token}` }),
  hub: (token) => ({ "X-Augury-Token": token }),
  notifications: (token) => ({ Authorization: `Bearer ${token}` }),
  // In a frame, only a token that was made for that frame opens anything.
  webhooks: (token) => ({ Authorization: `Bearer ${token}`, ...(frame && { "Pushhub-Portal-Frame": frame.name }) }),
};

/**
 * Ask an API of the hub.
 *
 * @param protocol Whose way of showing a token and of wording refusals it is.
 * @param method HTTP method.
 * @param url Path below the base URL.
 * @param options query (undefined, null and "" are left out), body (sent as JSON), signal (AbortSignal), headers, keepalive (outlives the page),
 *   who (whose token is shown, that of the session unless given), exact (numbers are kept as they are written, where the browser can).
 * @returns What the answer's JSON is; null when there is none.
 * @throws Refused
 */
export async function call(protocol, method, url, { query = {}, body, signal, headers = {}, keepalive = false, who = session(), exact = false } = {}) {
  if (!who) throw new Refused(401, "You are signed out.");
  const asked = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const address = asked.length ? `${url}?${new URLSearchParams(asked)}` : url;
  const limit = AbortSignal.timeout(SECONDS * 1000);
  let answer;
  const ask = () =>
    fetch(address, {
      method,
      headers: {
        Accept: "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...AUTHORIZATIONS[protocol](who.token),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      credentials: "omit",
      cache: "no-store",
      keepalive,
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  try {
    answer = await ask();
    // A hub that is too busy for a moment is asked again; only reads are, because what a lost write did is not known.
    for (const wait of method === "GET" ? AGAIN_MS : []) {
      if (!BUSY.has(answer.status)) break;
      await new Promise((later) => setTimeout(later, wait));
      answer = await ask();
    }
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, limit.aborted ? `No answer within ${SECONDS} seconds.` : "The hub cannot be reached.");
  }
  const text = await answer.text();
  let told = null;
  try {
    told = text ? JSON.parse(text, exact ? asWritten : undefined) : null;
  } catch {
    if (answer.ok) throw new Refused(answer.status, "The hub's answer is not JSON.");
  }
  if (answer.ok) {
    const warning = answer.headers.get(WARNING);
    if (warning) warn(warning);
    return told;
  }
  if (answer.status === 401 && session() === who) signOut("The hub does not accept this token (any more).");
  throw refusal(answer.status, told, text);
}

/** For JSON.parse: a number that would be written another way than it came, such as 1.0 or one of twenty digits, becomes what JSON.stringify writes as it came. */
export function asWritten(name, value, context) {
  return typeof value === "number" && JSON.rawJSON && String(value) !== context.source ? JSON.rawJSON(context.source) : value;
}

function refusal(status, told, text) {
  const fields = {};
  if (Array.isArray(told?.detail)) {
    // Svix: [{loc: ["body", "url"], msg}]
    for (const each of told.detail) {
      const name = (each.loc ?? []).filter((part) => typeof part === "string" && !/^(body|query|path|__all__)$/.test(part)).at(-1);
      if (name) fields[name] = String(each.msg);
    }
    return new Refused(status, told.detail.map((each) => String(each.msg)).join("; ") || `Refused (${status}).`, fields);
  }
  for (const [name, problems] of Object.entries(told?.errors ?? {})) {
    // The hub: {error, errors: {url: ["can't be blank"]}}
    if (name !== "base") fields[name] = [problems].flat().map(String).join("; ");
  }
  const base = [told?.errors?.base ?? []].flat().map(String).join("; ");
  const message = base || [told?.msg, told?.message, told?.detail, told?.error].find((each) => typeof each === "string" && each);
  return new Refused(status, message ?? (text && text.length < 300 ? text : `The hub answered ${status}.`), fields);
}
