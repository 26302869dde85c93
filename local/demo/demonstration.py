"""What ``make run`` shows: one path of each protocol on the running stack, with every claim checked."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from local.demo.clients import Client, Hub, Store, Tenant, serve
from local.demo.shop import CHILDREN, KEY, ORDER, SERVICES, Shop
from local.errors import LocalError, Say
from local.place import HOST, REPOSITORY
from local.stack import Description

MESSAGES = REPOSITORY / "events" / "messages.jsonl"
"""One JSON object to a line with ``kind`` and ``body``."""
RETRIES, RETRIES_DELAY = 2, 6
SECONDS = 180.0
"""A part of the demonstration fails after this time."""
MANNERS = {
    "healthy": "answers 200",
    "flaky": "answers 503 to each third message, once",
    "later": "answers 202, acknowledges a moment later",
    "dead": "refuses connections",
}
"""The subscribers of the queue, and what each does."""
_BATCH = 10
_DEAD_URL = f"http://{HOST}:9/dead"
"""Nothing listens on the discard port."""


@dataclass(kw_only=True)
class Subscribers:
    """The subscribers of the queue that listen.

    Attributes:
        tries: How often each was pushed to.
        accepted: Body by subscriber and message id.
    """

    tries: Counter[str] = field(default_factory=Counter)
    accepted: dict[tuple[str, str], str] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)
    _acknowledging: set[asyncio.Task[None]] = field(default_factory=set)

    async def take(self, request: web.Request) -> web.Response:
        """Answer a push, in the manner of the subscriber."""
        name, message_id = request.match_info["name"], request.headers["Iron-Message-Id"]
        body = (await request.read()).decode()
        self.tries[name] += 1
        if name == "later":
            task = asyncio.create_task(self._acknowledge(dict(request.headers), body))
            self._acknowledging.add(task)
            task.add_done_callback(self._acknowledging.discard)
            return web.Response(status=202)
        if name == "flaky" and self.tries[name] % 3 == 0 and message_id not in self._refused:
            self._refused.add(message_id)
            return web.Response(status=503)
        self.accepted[name, message_id] = body
        return web.Response()

    async def _acknowledge(self, headers: Mapping[str, str], body: str) -> None:
        await asyncio.sleep(0.2)
        proof = {"reservation_id": headers["Iron-Reservation-Id"], "subscriber_name": "later"}
        # One that fails is made again when the hub pushes again.
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                aiohttp.ClientSession() as session,
                session.delete(headers["Iron-Subscriber-Message-Url"], json=proof) as answer,
            ):
                if answer.status == 200:
                    self.accepted["later", headers["Iron-Message-Id"]] = body


def load(path: Path = MESSAGES) -> list[str]:
    """Bodies of the messages to post."""
    try:
        return [str(json.loads(line)["body"]) for line in path.read_text(encoding="utf-8").strip("\n").split("\n")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LocalError(f"the demonstration's messages cannot be read: {path}: {error!r}") from error


async def show_queue(stack: Description, say: Say, *, messages: Path = MESSAGES) -> None:
    """A push queue with four subscribers: each has every message, or the error queue has it with their name."""
    bodies = load(messages)
    subscribers, posted = Subscribers(), dict[str, str]()
    given_up: dict[tuple[str, str], str] = {}
    async with Hub(stack) as hub, serve([web.post("/{name}", subscribers.take)]) as url:
        queue = f"demo-{uuid.uuid4().hex[:6]}"
        urls = {name: f"{url}/{name}" for name in MANNERS} | {"dead": _DEAD_URL}
        push = {
            "subscribers": [{"name": name, "url": each} for name, each in urls.items()],
            "retries": RETRIES,
            "retries_delay": RETRIES_DELAY,
            "error_queue": f"{queue}-errors",
        }
        await hub.put_queue(queue, {"type": "multicast", "push": push})
        say(f"Posting {len(bodies)} messages to the multicast queue {queue}: {stack.base_url}/console#/queues/{queue}")
        started = time.monotonic()
        for first in range(0, len(bodies), _BATCH):
            batch = bodies[first : first + _BATCH]
            posted |= zip(await hub.post(queue, batch), batch, strict=True)
        while lacking := {(name, each) for name in MANNERS for each in posted} - {*subscribers.accepted, *given_up}:
            say(f"  {time.monotonic() - started:3.0f} s: {_standing(lacking, len(posted))}")
            _in_time(started, "not every message arrived, or came to the error queue")
            await asyncio.sleep(2)
            for error in [json.loads(each["body"]) for each in await hub.reserve(f"{queue}-errors", 100, 60)]:
                given_up |= {(each["name"], error["source_msg_id"]): error["body"] for each in error["subscribers"]}
        dead = (await hub.statuses(queue, next(iter(posted))))["dead"]
    say(table(posted, subscribers, given_up))
    say(f"The error queue {queue}-errors holds what was not taken in {RETRIES + 1} tries {RETRIES_DELAY} s apart.")
    if problems := check(posted, subscribers, given_up, dead_tries=dead["tries"]):
        raise LocalError(f"the demonstration is not right: {'; '.join(problems)}")
    say(f"Checked: every body arrived as it was posted, byte for byte. {time.monotonic() - started:.1f} s in all.")


def check(
    posted: Mapping[str, str],
    subscribers: Subscribers,
    given_up: Mapping[tuple[str, str], str],
    *,
    dead_tries: int,
) -> list[str]:
    """What is wrong; empty when every claim of the table is true.

    A slow machine may acknowledge too late, so a message that was accepted may be in the error queue as well. A post
    that was repeated may have stored its messages twice, so a body may come under an id that nobody was told.
    """
    problems = []
    for (name, message_id), body in {**given_up, **subscribers.accepted}.items():
        if body != posted.get(message_id, body) or body not in posted.values():
            problems.append(f"{message_id} for {name} holds another body")
    problems += [f"healthy lacks {each}" for each in posted if ("healthy", each) not in subscribers.accepted]
    problems += [f"the error queue lacks {each} for dead" for each in posted if ("dead", each) not in given_up]
    if dead_tries != RETRIES + 1:
        problems.append(f"dead was tried {dead_tries} times")
    return problems


def table(posted: Mapping[str, str], subscribers: Subscribers, given_up: Mapping[tuple[str, str], str]) -> str:
    """What became of the messages at each subscriber, in columns of the necessary width."""
    rows = [("subscriber", "what it does", "received", "tries", "in the error queue")]
    for name, manner in MANNERS.items():
        received = sum((name, each) in subscribers.accepted for each in posted)
        failed = sum((name, each) in given_up for each in posted)
        tries = subscribers.tries[name] if name != "dead" else failed * (RETRIES + 1)
        rows.append((name, manner, f"{received} of {len(posted)}", str(tries), str(failed)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [rows[0], tuple("-" * width for width in widths), *rows[1:]]
    return "\n".join(["", *("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines), ""])


def _standing(lacking: set[tuple[str, str]], of: int) -> str:
    waiting = Counter(name for name, _ in lacking)
    return ", ".join(f"{name} {of - waiting[name]}/{of}" for name in MANNERS)


async def show_order(stack: Description, say: Say) -> None:
    """A store pushes an order to two endpoints, one that answers at once and one that answers later."""
    shop = Shop(say)
    async with Store(stack) as store, serve(shop.routes()) as url:
        for name in SERVICES:
            services = await store.register(f"demo-{name}", f"{url}/{name}", KEY)
            say(f"Registered the endpoint demo-{name}: it describes the service {', '.join(services)}.")
        started = time.monotonic()
        order_id = (await store.call("POST", "/messages", {"message": "order:new", "payload": {"order": ORDER}}))[
            "message_id"
        ]
        say(f"Pushed order:new, {order_id}.")
        while True:
            copies = await store.copies(order_id)
            children = sorted(child["message"] for copy in copies for child in copy["children"])
            # (a message is listed a moment after the answer that led to it)
            completed = [each["state"] for each in copies] == ["completed"] * len(SERVICES)
            if completed and len(children) >= len(CHILDREN):
                break
            _in_time(started, f"the order is at {[(each['consumer'], each['state']) for each in copies]}, {children}")
            await asyncio.sleep(0.5)
    say(f"Both services are done. Their answers led to: {', '.join(children)}.")
    if children != CHILDREN or shop.asked["warehouse: poll"] < 2:
        raise LocalError(f"the order flow is not right: {dict(shop.asked)}, {children}")
    say(f"Checked: each child message was made once. {time.monotonic() - started:.1f} s in all.")


async def show_consumer(stack: Description, say: Say) -> None:
    """A consumer of notifications loses its connection, and gets exactly the rest once it is back."""
    async with Tenant(stack, user="demo", topic="demo", subscriber=f"demo{time.time_ns()}") as tenant:
        await tenant.subscribe()
        token = await tenant.token()
        async with tenant.connect(token) as consumer:
            say(f"A consumer connected as {tenant.subscriber} to the topic {tenant.topic}.")
            await tenant.publish(range(6))
            received = await _receive(consumer, 6)
            # Out of order, as clients that work on several at once acknowledge.
            for number in (4, 2, 0):
                await consumer.send_str(received[number])
            say("It received 6 notifications and acknowledged 3: 4, 2, 0.")
            await asyncio.sleep(1)
        await tenant.publish(range(6, 10))
        say("Its connection is gone; 4 more were published meanwhile.")
        async with tenant.connect(token) as consumer:
            rest = await _receive(consumer, 7)
            say(f"Back again it received {len(rest)}: {', '.join(map(str, rest))}.")
            if list(rest) != [1, 3, 5, 6, 7, 8, 9]:
                raise LocalError(f"the consumer should have received the rest in order, not {list(rest)}")
            for ack_id in rest.values():
                await consumer.send_str(ack_id)
            try:
                raise LocalError(f"the consumer received what it had: {await consumer.receive(timeout=1)}")
            except TimeoutError:
                await tenant.call("POST", f"/unsubscribe?token={token}", {})
    say("Checked: exactly the rest, in order, and then silence.")


async def _receive(consumer: aiohttp.ClientWebSocketResponse, count: int) -> dict[int, str]:
    """Acknowledgement ids by number, in the order received. A publication that was repeated may come twice."""
    received: dict[int, str] = {}
    while len(received) < count:
        ack_id, *_, body = (await consumer.receive_str(timeout=SECONDS)).split("\n")
        if received.setdefault(json.loads(body)["number"], ack_id) != ack_id:
            await consumer.send_str(ack_id)
    return received


async def show_webhook(stack: Description, say: Say) -> None:
    """A webhook, and the signature that its receiver verifies (Svix API, Standard Webhooks)."""
    received: dict[str, tuple[Mapping[str, str], bytes]] = {}
    event = {"eventType": "invoice.paid", "payload": {"invoice": "R123456789", "customer": "jürgen@example.org"}}

    async def take(request: web.Request) -> web.Response:
        received.setdefault(request.headers["webhook-id"], (request.headers.copy(), await request.read()))
        return web.json_response({"ok": True})

    started, headers = time.monotonic(), {"Authorization": f"Bearer {stack.token}"}
    async with serve([web.post("/crm", take)]) as url, Client(f"{stack.base_url}/api/v1", headers) as hub:
        await hub.call("POST", "/app?get_if_exists=true", {"name": "Demonstration", "uid": "demo"})
        await hub.call("PUT", "/app/demo/endpoint/crm", {"uid": "crm", "url": f"{url}/crm"})
        secret = (await hub.call("GET", "/app/demo/endpoint/crm/secret"))["key"]
        say("The application demo has the endpoint crm, which was given its signing secret.")
        # With a key, repeating it is harmless; the other requests say what is to be, and are so without one.
        key = {"Idempotency-Key": uuid.uuid4().hex}
        message_id = (await hub.call("POST", "/app/demo/msg", event, headers=key))["id"]
        say(f"Posted {event['eventType']}, {message_id}.")
        # The receiver has it a moment before the hub has stored the attempt and lists the endpoint.
        while message_id not in received or not await _delivered(hub, message_id):
            _in_time(started, "the webhook was not delivered, or the hub does not say so")
            await asyncio.sleep(0.2)
    signed, body = received[message_id]
    say(f"It was delivered with webhook-signature: {signed['webhook-signature']}")
    if json.loads(body) != event["payload"] or not verified(secret, signed, body):
        raise LocalError(f"the delivery of {message_id} is not what was posted, or its signature is wrong")
    if verified(secret, signed, body + b" "):
        raise LocalError("a changed body has the same signature")
    say(f"Checked: the signature fits, and fits no other body. {time.monotonic() - started:.1f} s in all.")


async def _delivered(hub: Client, message_id: str) -> bool:
    endpoints = (await hub.call("GET", f"/app/demo/msg/{message_id}/endpoint"))["data"]
    return [each["statusText"] for each in endpoints] == ["success"]


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a request was signed with a secret, as a receiver checks it: HMAC-SHA256 of ``id.timestamp.body``."""
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256)
    signatures = headers["webhook-signature"].split(" ")
    return any(hmac.compare_digest(each, "v1," + base64.b64encode(digest).decode()) for each in signatures)


def _in_time(started: float, problem: str) -> None:
    if time.monotonic() - started > SECONDS:
        raise LocalError(f"after {SECONDS:.0f} s {problem}")


PARTS: dict[str, Callable[[Description, Say], Coroutine[Any, Any, None]]] = {
    "A queue with four subscribers (IronMQ v3; docs/tutorial-queues.md)": show_queue,
    "An order through two services (hub protocol; docs/tutorial-stores.md)": show_order,
    "A consumer that loses its connection (Notifications 2.0; docs/tutorial-topics.md)": show_consumer,
    "A signed webhook (Svix API; docs/tutorial-webhooks.md)": show_webhook,
}
"""The parts of the demonstration by title."""
