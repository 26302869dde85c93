// Notifications 2.0 (docs/notifications.md): rules that feed topics, publishing, and a consumer on a WebSocket.
import { call, path } from "./http.js";

const BASE = "/notification2";

export const listSubscriptions = (query, signal) => call("notifications", "GET", `${BASE}/subscriptions`, { query: { pageSize: 20, withTotalPages: true, ...query }, signal });
export const listSubscribers = (subscription, signal) => call("notifications", "GET", `${BASE}/subscribers`, { query: { subscription }, signal });
export const makeSubscription = (body) => call("notifications", "POST", `${BASE}/subscriptions`, { body });
export const removeSubscription = (id) => call("notifications", "DELETE", `${BASE}/subscriptions/${path(id)}`);
export const publish = (body) => call("notifications", "POST", `${BASE}/notifications`, { body });
const consumerToken = (subscription, subscriber) =>
  call("notifications", "POST", `${BASE}/token`, { body: { subscription, subscriber, expiresInMinutes: 60 } }).then((told) => told.token);
const unsubscribe = (token) => call("notifications", "POST", `${BASE}/unsubscribe`, { query: { token }, keepalive: true });

/** Where consumers connect: the base URL's own address, or that of the WebSocket API. */
async function socketAddress() {
  const { websocket } = await (await fetch("/console/config.json")).json();
  if (websocket) return websocket;
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/notification2/consumer/`;
}

/**
 * Consume a topic until it is left: each notification is handed over, then acknowledged. A lost connection is made again, ever later.
 *
 * @param topic Name of the subscription.
 * @param subscriber Whose backlog; a subscriber of its own for each tab, removed when it leaves.
 * @param onMessage Is given {id, description, action, body}.
 * @param onState Is told "connecting", "connected", "waiting" or "left", and why.
 * @returns Leaves.
 */
export function consume(topic, subscriber, onMessage, onState) {
  let left = false;
  let socket = null;
  let token = "";
  let timer = 0;
  let tries = 0;

  const again = (why) => {
    if (left) return;
    const wait = Math.min(30, 2 ** tries++);
    onState("waiting", `${why} Next in ${wait} s.`);
    timer = setTimeout(connect, wait * 1000);
  };

  const connect = async () => {
    onState("connecting", "");
    try {
      token = await consumerToken(topic, subscriber);
      const address = await socketAddress();
      if (left) return;
      // The consumer's own token, good for this subscriber only; the protocol has it in the query.
      socket = new WebSocket(`${address}?${new URLSearchParams({ token })}`);
    } catch (error) {
      again(error.message);
      return;
    }
    const mine = socket;
    mine.onopen = () => {
      tries = 0;
      onState("connected", "");
    };
    mine.onmessage = ({ data }) => {
      const [head, ...rest] = String(data).split("\n\n");
      const [id, description = "", action = ""] = head.split("\n");
      onMessage({ id, description, action, body: rest.join("\n\n") });
      mine.send(id);
    };
    mine.onclose = () => again("The connection ended.");
  };

  // A subscriber that nobody reads would make the topic keep everything for it, so it goes with its tab, also when that is closed.
  const leave = () => {
    if (left) return;
    left = true;
    clearTimeout(timer);
    removeEventListener("pagehide", leave);
    if (socket?.readyState === WebSocket.OPEN) socket.send("unsubscribe_subscriber");
    else if (token) unsubscribe(token).catch(() => {});
    onState("left", "");
  };
  addEventListener("pagehide", leave);
  connect();
  return leave;
}
