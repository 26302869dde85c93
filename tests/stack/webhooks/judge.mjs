// What the unmodified npm client of Svix sees of a running hub: node judge.mjs BASE_URL TOKEN OTHER_TOKEN prints, as JSON, what failed by the name
// of the check. Runs beside the client's node_modules.
import assert from "node:assert/strict"
import { createHmac, createPublicKey, verify } from "node:crypto"
import { createServer } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { Svix, Webhook } from "svix"

const WAIT_MS = 40000
const [baseUrl, token, otherToken] = process.argv.slice(2)
const svix = new Svix(token, { serverUrl: baseUrl })
const came = new Map()
const checks = {}

const server = createServer((request, response) => {
  const chunks = []
  request.on("data", (chunk) => chunks.push(chunk))
  request.on("end", () => {
    const [, name, status] = request.url.split("/")
    came.get(name).push({ headers: request.headers, body: Buffer.concat(chunks).toString() })
    response.writeHead(Number(status)).end()
  })
})

async function until(look, what) {
  const end = Date.now() + WAIT_MS
  for (;;) {
    const found = await look()
    if (found) return found
    assert.ok(Date.now() < end, `waited for ${what}`)
    await sleep(300)
  }
}

async function refused(status, call) {
  try {
    await call()
  } catch (error) {
    assert.equal(error.code, status, String(error))
    assert.ok(error.body.detail)
    return error.body
  }
  assert.fail(`wanted ${status}`)
}

function inbox(status = 200) {
  const name = `e${came.size}`
  came.set(name, [])
  return { url: `http://127.0.0.1:${server.address().port}/${name}/${status}`, deliveries: came.get(name) }
}

async function application(fields = {}) {
  return svix.application.create({ name: "node", ...fields })
}

async function delivered(box, id, count = 1) {
  const found = () => box.deliveries.filter((each) => each.headers["webhook-id"] === id)
  return until(() => found().length >= count && found(), `${count} deliveries of ${id}`)
}

checks.check_01_a_wrong_token_is_401 = async () => {
  const body = await refused(401, () => new Svix("wrong", { serverUrl: baseUrl }).application.list())
  assert.equal(body.code, "authentication_failed")
}

checks.check_50_an_application_is_created_patched_and_deleted = async () => {
  const uid = `node-${Date.now()}`
  const app = await application({ uid, throttleRate: 5, metadata: { a: "b" } })
  assert.match(app.id, /^app_[A-Za-z0-9]{27}$/)
  assert.ok(app.createdAt instanceof Date && !Number.isNaN(app.createdAt.getTime()))
  const patched = await svix.application.patch(uid, { throttleRate: null })
  assert.equal(patched.throttleRate ?? null, null)
  assert.deepEqual([patched.name, patched.uid, patched.metadata], ["node", uid, { a: "b" }])
  assert.equal((await svix.application.getOrCreate({ name: "other", uid })).name, "node")
  await refused(409, () => application({ uid }))
  await refused(422, () => application({ name: "" }))
  await svix.application.delete(uid)
  await refused(404, () => svix.application.get(uid))
}

checks.check_50_an_endpoint_is_created_patched_and_listed = async () => {
  const app = await application()
  const box = inbox()
  const endpoint = await svix.endpoint.create(app.id, { url: box.url, channels: ["a"], uid: "e", metadata: null, secret: null })
  assert.match(endpoint.id, /^ep_[A-Za-z0-9]{27}$/)
  const patched = await svix.endpoint.patch(app.id, "e", { channels: null, uid: null })
  assert.deepEqual([patched.channels ?? null, patched.uid ?? null, patched.url], [null, null, box.url])
  await svix.endpoint.setHeaders(app.id, endpoint.id, { headers: { "X-Node": "1" } })
  assert.deepEqual((await svix.endpoint.getHeaders(app.id, endpoint.id)).headers, { "X-Node": "1" })
  const second = await svix.endpoint.create(app.id, { url: box.url })
  const list = await svix.endpoint.list(app.id, { limit: 1, order: "ascending" })
  assert.deepEqual([list.data.map((each) => each.id), list.done], [[endpoint.id], false])
  const rest = await svix.endpoint.list(app.id, { limit: 1, order: "ascending", iterator: list.iterator })
  assert.deepEqual([rest.data.map((each) => each.id), rest.done], [[second.id], true])
  await svix.endpoint.delete(app.id, second.id)
  await refused(404, () => svix.endpoint.get(app.id, second.id))
}

checks.check_50_a_message_is_delivered_verified_and_resent = async () => {
  const app = await application()
  const box = inbox()
  const endpoint = await svix.endpoint.create(app.id, { url: box.url })
  // Attempts then say by which schemes they were signed, which the client does not know
  const signed = { signatures: [{ preset: "stripe", secret: "whsec_of-stripe" }, { preset: "standard-webhooks" }] }
  const set = await fetch(`${baseUrl}/api/v1/app/${app.id}/endpoint/${endpoint.id}/signatures`, {
    method: "PUT",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(signed),
  })
  assert.ok(set.ok, String(set.status))
  const { key } = await svix.endpoint.getSecret(app.id, endpoint.id)
  const payload = { text: "größer ☃", n: 1.5 }
  const message = await svix.message.create(app.id, { eventType: "node.posted", payload, eventId: "once" })
  const [first] = await delivered(box, message.id)
  assert.equal(first.body, JSON.stringify(payload))
  new Webhook(key).verify(first.body, first.headers)
  await refused(409, () => svix.message.create(app.id, { eventType: "node.posted", payload, eventId: "once" }))
  const attempts = await until(async () => {
    const { data } = await svix.messageAttempt.listByMsg(app.id, message.id)
    return data.length === 1 && data
  }, "the attempt")
  assert.deepEqual([attempts[0].status, attempts[0].responseStatusCode, attempts[0].statusText], [0, 200, "success"])
  await svix.messageAttempt.resend(app.id, message.id, endpoint.id)
  const [, second] = await delivered(box, message.id, 2)
  new Webhook(key).verify(second.body, second.headers)
  assert.deepEqual((await svix.message.get(app.id, "once", { withContent: true })).payload, payload)
  await svix.message.expungeContent(app.id, message.id)
  assert.deepEqual((await svix.message.get(app.id, message.id, { withContent: true })).payload, { expired: true })
}

checks.check_50_a_rotated_secret_verifies_beside_the_old_one = async () => {
  const app = await application()
  const box = inbox()
  const endpoint = await svix.endpoint.create(app.id, { url: box.url })
  const old = (await svix.endpoint.getSecret(app.id, endpoint.id)).key
  await svix.endpoint.rotateSecret(app.id, endpoint.id, {})
  const { key } = await svix.endpoint.getSecret(app.id, endpoint.id)
  assert.notEqual(key, old)
  const message = await svix.message.create(app.id, { eventType: "node.posted", payload: {} })
  const [delivery] = await delivered(box, message.id)
  for (const each of [old, key]) new Webhook(each).verify(delivery.body, delivery.headers)
}

checks.check_20_v1a_is_verified_by_nodes_own_crypto = async () => {
  const app = await application()
  const box = inbox()
  const secret = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
  const endpoint = await svix.endpoint.create(app.id, { url: box.url, secret })
  const { key } = await svix.endpoint.getSecret(app.id, endpoint.id)
  assert.equal(key, "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=")
  const message = await svix.message.create(app.id, { eventType: "node.posted", payload: { a: 1 } })
  const [delivery] = await delivered(box, message.id)
  const [version, signature] = delivery.headers["webhook-signature"].split(",")
  assert.equal(version, "v1a")
  const x = Buffer.from(key.slice(5), "base64").toString("base64url")
  const signed = `${message.id}.${delivery.headers["webhook-timestamp"]}.${delivery.body}`
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" })
  assert.ok(verify(null, Buffer.from(signed), publicKey, Buffer.from(signature, "base64")))
  // The same with what anybody may fetch
  const asked = { headers: { authorization: `Bearer ${token}` } }
  const answer = await fetch(`${baseUrl}/api/v1/app/${app.id}/endpoint/${endpoint.id}/secret`, asked)
  const { publicKeysUrl } = await answer.json()
  const { keys } = await (await fetch(baseUrl + new URL(publicKeysUrl).pathname)).json()
  const fetched = createPublicKey({ key: keys[0], format: "jwk" })
  assert.ok(verify(null, Buffer.from(signed), fetched, Buffer.from(signature, "base64")))
}

checks.check_50_a_destination_is_made_changed_and_deleted = async () => {
  const app = await application()
  const config = {
    queueUrl: "https://sqs.eu-west-1.amazonaws.com/111122223333/orders",
    region: "eu-west-1",
    roleArn: "arn:aws:iam::111122223333:role/hub",
  }
  const made = await svix.destination.create(app.id, { type: "sqs", uid: "q", config })
  assert.equal(made.config.queueUrl, config.queueUrl)
  assert.match(made.config.externalId, /^[0-9a-f]{40}$/)
  assert.equal((await svix.destination.get(app.id, "q")).id, made.id)
  const changed = await svix.destination.patch(app.id, "q", { type: "sqs", status: "disabled", config: {} })
  assert.equal(changed.status, "disabled")
  const topic = { topicArn: "arn:aws:sns:eu-west-1:111122223333:t", region: "eu-west-1", roleArn: config.roleArn }
  assert.equal((await svix.destination.upsert(app.id, "q", { type: "sns", uid: "q", config: topic })).type, "sns")
  assert.deepEqual((await svix.destination.list(app.id)).data.map((each) => each.id), [made.id])
  assert.equal((await svix.destination.transformation.get(app.id, "q")).enabled, false)
  const code = "function handler(input) { return { messages: input.events } }"
  await svix.destination.transformation.patch(app.id, "q", { code, enabled: true })
  assert.equal((await svix.destination.transformation.get(app.id, "q")).code, code)
  await svix.destination.delete(app.id, "q")
  await refused(404, () => svix.destination.get(app.id, "q"))
}

checks.check_53_a_source_takes_in_what_its_sender_signs = async () => {
  const box = inbox()
  const secret = "It's a Secret to Everybody"
  const source = await svix.ingest.source.create({ name: "node", type: "github", config: { secret } })
  assert.equal(source.type, "github")
  const endpoint = await svix.ingest.endpoint.create(source.id, { url: box.url })
  assert.deepEqual((await svix.ingest.endpoint.list(source.id)).data.map((each) => each.id), [endpoint.id])
  const body = '{"zen": "Keep it logically awesome."}'
  const post = async (signature) => {
    const headers = { "content-type": "application/json", "x-github-event": "push", "x-github-delivery": "n1" }
    headers["x-hub-signature-256"] = `sha256=${signature}`
    return fetch(baseUrl + new URL(source.ingestUrl).pathname, { method: "POST", body, headers })
  }
  assert.equal((await post("0".repeat(64))).status, 400)
  const taken = await post(createHmac("sha256", secret).update(body).digest("hex"))
  assert.equal(taken.status, 200)
  const [delivery] = await delivered(box, taken.headers.get("pushhub-message-id"))
  assert.equal(delivery.body, body)
  const { key } = await svix.ingest.endpoint.getSecret(source.id, endpoint.id)
  new Webhook(key).verify(delivery.body, delivery.headers)
  const { ingestUrl } = await svix.ingest.source.rotateToken(source.id)
  assert.notEqual(ingestUrl, source.ingestUrl)
  await svix.ingest.source.delete(source.id)
  await refused(404, () => svix.ingest.source.get(source.id))
}

checks.check_11_another_projects_application_is_not_there = async () => {
  const app = await application()
  await refused(404, () => new Svix(otherToken, { serverUrl: baseUrl }).application.get(app.id))
}

const failures = {}
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
await Promise.all(
  Object.entries(checks).map(async ([name, check]) => {
    try {
      await check()
      failures[name] = ""
    } catch (error) {
      failures[name] = String(error.stack ?? error)
    }
  }),
)
process.stdout.write(JSON.stringify(failures), () => process.exit(0))
