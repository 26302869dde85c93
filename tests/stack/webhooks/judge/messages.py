"""Messages: posted, selected for endpoints, delivered as they are."""

from __future__ import annotations

import json
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import standardwebhooks
from svix import Webhook
from svix.api.message import message_in_raw
from svix.models import MessageIn
from tests.stack.webhooks.judge.receiver import Answer
from tests.stack.webhooks.judge.stage import OLD, Stage, is_invalid, options


def check_23_every_matching_endpoint_gets_exactly_what_was_posted(stage: Stage) -> None:
    app = stage.app()
    inboxes = [stage.endpoint(app)[1] for _ in range(3)]
    payload = {"text": "größer ☃ \u2028", "n": [1, 2.5, None, True], "nested": {"b": 1, "a": 2}}
    posted = stage.post(app, payload=payload)
    assert re.fullmatch(r"msg_[0-9A-Za-z]{27}", posted.id)
    assert posted.event_type == "check.posted"
    assert abs((datetime.now(UTC) - posted.timestamp).total_seconds()) < 300
    for inbox in inboxes:
        delivery = inbox.one()
        assert delivery.method == "POST"
        assert delivery.body == json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()
        assert delivery.headers["content-type"].startswith("application/json")
        for name in ("id", "timestamp", "signature"):
            assert delivery.headers[f"webhook-{name}"] == delivery.headers[f"svix-{name}"]
        assert delivery.id == posted.id
        assert abs(int(delivery.headers["webhook-timestamp"]) - delivery.at) < 60
    # The text of a payload goes out as it was written, its spelling included.
    raw = b'{ "eventType":"check.posted", "payload": {"n": 1.10, "u": "\\u00e4" ,  "big": 12345678901234567890} }'
    answer = stage.raw("POST", f"/app/{app.id}/msg", raw)
    assert answer.status == 202, answer.content
    sent = inboxes[0].of(answer.json["id"])[0]
    assert sent.body == b'{"n": 1.10, "u": "\\u00e4" ,  "big": 12345678901234567890}'


def check_24_both_verifiers_accept_each_delivery(stage: Stage) -> None:
    app = stage.app()
    endpoint, inbox = stage.endpoint(app, Answer(status=500), Answer())
    secret = stage.secret(app, endpoint)
    message = stage.post(app)
    inbox.of(message.id, 2)
    stage.attempted(app, endpoint, message, 0)
    stage.svix.message_attempt.resend(app.id, message.id, endpoint.id)
    deliveries = inbox.of(message.id, 3)
    newer = stage.rotate(app, endpoint)
    stage.svix.message_attempt.resend(app.id, message.id, endpoint.id)
    deliveries = inbox.of(message.id, 4)
    for delivery in deliveries:
        Webhook(secret).verify(delivery.body, delivery.headers)
        standardwebhooks.Webhook(secret).verify(delivery.body, delivery.headers)
    Webhook(newer).verify(deliveries[3].body, deliveries[3].headers)
    assert {each.id for each in deliveries} == {message.id}
    assert len({each.body for each in deliveries}) == 1
    assert deliveries[1].at - deliveries[0].at >= 3.9, "five seconds, a fifth more or less"


def check_26_content_is_shown_when_asked_for(stage: Stage) -> None:
    app = stage.app()
    posted = stage.post(app, payload={"seen": 1})
    assert posted.payload == ({"seen": 1} if OLD else {})
    with_content = {"seen": 1}
    for wanted, shown in ((True, with_content), (False, {})):
        # The 1.x client says nothing, and the default on the wire is true.
        of = options("MessageGetOptions", with_content=wanted)
        assert stage.svix.message.get(app.id, posted.id, of).payload == shown
        (listed,) = stage.svix.message.list(app.id, options("MessageListOptions", with_content=wanted)).data
        assert listed.payload == shown
    assert stage.raw("GET", f"/app/{app.id}/msg/{posted.id}").json["payload"] == with_content
    assert stage.raw("GET", f"/app/{app.id}/msg").json["data"][0]["payload"] == with_content
    body = {"eventType": "a", "payload": {"b": 1}}
    assert stage.raw("POST", f"/app/{app.id}/msg", body).json["payload"] == {"b": 1}
    assert stage.raw("POST", f"/app/{app.id}/msg?with_content=false", body).json["payload"] == {}


def check_30_a_raw_message_goes_out_byte_for_byte(stage: Stage) -> None:
    app = stage.app()
    _, inbox = stage.endpoint(app)
    text = "<order>  größe=1 & more\n</order>"
    posted = stage.svix.message.create(app.id, message_in_raw("raw.posted", text, "application/xml"))
    delivery = inbox.of(posted.id)[0]
    assert delivery.body == text.encode()
    assert delivery.headers["content-type"] == "application/xml"
    spaced = stage.svix.message.create(app.id, message_in_raw("raw.posted", '{"a":  1.10}'))
    delivery = inbox.of(spaced.id)[0]
    assert delivery.body == b'{"a":  1.10}'
    assert delivery.headers["content-type"].startswith("application/json")


def check_31_one_idempotency_key_makes_one_message(stage: Stage) -> None:
    app, key = stage.app(), f"key-{secrets.token_hex(8)}"
    _, inbox = stage.endpoint(app)
    of = options("MessageCreateOptions", idempotency_key=key)

    def post(n: int) -> str:
        created = stage.svix.message.create(app.id, MessageIn(event_type="a", payload={"n": n}), of)
        return str(created.id)

    with ThreadPoolExecutor(5) as executor:
        ids = set(executor.map(post, [9] * 5))
    assert len(ids) == 1
    assert post(9) in ids
    assert [each.id for each in stage.svix.message.list(app.id).data] == list(ids)
    # Scope is the URL with its query and the token, besides the key.
    elsewhere = stage.app()
    assert stage.svix.message.create(elsewhere.id, MessageIn(event_type="a", payload={}), of).id not in ids
    # A refused request does not use its key up.
    path, headers = f"/app/{app.id}/msg", {"Idempotency-Key": f"again-{key}"}
    is_invalid(stage.raw("POST", path, {"eventType": "a"}, headers=headers))
    first = stage.raw("POST", path, {"eventType": "a", "payload": {"x": 1}}, headers=headers)
    again = stage.raw("POST", path, {"eventType": "a", "payload": {"x": 2}}, headers=headers)
    # Another body under the same key is another request.
    assert (first.status, again.status) == (202, 422)
    delivered = inbox.of(first.json["id"])
    assert [each.body for each in delivered] == [b'{"x": 1}']
    # Any POST takes a key.
    headers = {"Idempotency-Key": f"app-{key}"}
    created = {stage.raw("POST", "/app", {"name": "once"}, headers=headers).json["id"] for _ in range(2)}
    assert len(created) == 1
    assert len(inbox.came) == 2
