// Judges signatures with the senders' own npm packages, as verify.py does; the request is the last argument, a file.
import {readFileSync} from "node:fs"
import "@shopify/shopify-api/adapters/node"
import {verify} from "@octokit/webhooks-methods"
import {LogSeverity, shopifyApi} from "@shopify/shopify-api"

async function github({secret, headers, text}) {
  return verify(secret, text, headers["x-hub-signature-256"])
}

async function shopify({secret, headers, text}) {
  const api = shopifyApi({
    apiKey: "key", apiSecretKey: secret, scopes: [], hostName: "acme.example", isEmbeddedApp: false,
    apiVersion: headers["x-shopify-api-version"], logger: {level: LogSeverity.Error},
  })
  const answer = await api.webhooks.validate({rawBody: text, rawRequest: {headers, method: "POST", url: "/"}, rawResponse: {}})
  return answer.valid
}

const verifiers = {github, shopify}
const given = JSON.parse(readFileSync(process.argv[2], "utf8"))
for (const each of given) {
  const text = Buffer.from(each.body, "base64").toString("utf8")
  const found = await verifiers[each.preset]({...each, text})
  if (found !== each.good) throw new Error(`${found}: ${JSON.stringify(each)}`)
}
console.log(given.length)
