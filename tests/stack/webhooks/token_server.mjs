// npm's oidc-provider, unmodified, with the clients that the first argument names; says on stdout where it listens, and
// each token that it gives or refuses.
import {createServer} from "node:http"
import Provider from "oidc-provider"

const {clients, seconds} = JSON.parse(process.argv[2])
const tell = (told) => console.log(JSON.stringify(told))
const server = createServer()
await new Promise((ready) => server.listen(0, "127.0.0.1", ready))
const issuer = `http://127.0.0.1:${server.address().port}`
const provider = new Provider(issuer, {
  clients: clients.map((each) => ({grant_types: ["client_credentials"], redirect_uris: [], response_types: [], ...each})),
  clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt"],
  features: {clientCredentials: {enabled: true}, introspection: {enabled: true}, devInteractions: {enabled: false}},
  scopes: ["webhooks"],
  ttl: {ClientCredentials: seconds},
})
provider.on("grant.success", (ctx) => tell({client: ctx.oidc.client.clientId, scope: ctx.body?.scope}))
provider.on("grant.error", (ctx, error) => tell({client: ctx.oidc.client?.clientId, error: error.error}))
provider.on("server_error", (ctx, error) => tell({error: String(error)}))
server.on("request", provider.callback())
tell({issuer})
