// Uses the types that openapi-typescript made of the hub's description, with openapi-fetch; compiled strictly.
// Arguments: the hub's base URL, a token, an application's id, a message's payload as JSON. Prints what came back as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./hub.js";

declare const process: { argv: string[] };

const [baseUrl, token, app, payload] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const given: components["schemas"]["WebhooksMessage"]["payload"] = JSON.parse(payload);
const ask = (name: string, eventType: string) =>
  client.POST("/api/v1/app/{app}/msg", {
    params: { path: { app: name }, query: { with_content: true } },
    body: { eventType, payload: { ...given, order: { number: "R1" } } },
  });
const posted = await ask(app, "order.created");
const missing = await ask("app_none", "order.created");
console.log(JSON.stringify({ payload: posted.data?.payload, missing: missing.error }));
