"""Small worlds: a few things happen, the same in each run, so that every single call can be struck in turn
(:mod:`simulation.windows`).

Each is one of the other worlds with little in it and a script in place of chance, judged by all of its rules.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.model.circuit import Circuit
from pushhub.webhooks.model.ids import engine_id
from simulation.account import HttpAnswer
from simulation.endpoints import Asked, Endpoint, Mood, Reply
from simulation.promises.judgement import Post
from simulation.promises.notifications import Connection
from simulation.promises.pull import Got
from simulation.scheduler import SECOND
from simulation.worlds.hub import HubWorld, Service
from simulation.worlds.ironmq import IronMqWorld, PushQueue
from simulation.worlds.notifications import NotificationsWorld, Published, Subscriber
from simulation.worlds.policies import PoliciesWorld
from simulation.worlds.pull import PullWorld
from simulation.worlds.sinks import SmallSinksWorld
from simulation.worlds.webhooks import Customer, Resent, WebhooksWorld
from simulation.worlds.world import moment

EXCUSED = 6
"""Facts of one small run that may be excused: a single fault explains a few."""

ENDS_WITHIN_S = 3_600
"""Everything ends so soon after it was accepted: what nobody has forgotten needs no daily sweep."""

STAYS_S = 3_000
"""How long a consumer stays connected that came back, seconds."""

Act = Callable[[], object]


def refuses(*times: int, takes: int = 20_000) -> Callable[[Asked, Random], Reply]:
    """Answers of an endpoint, each after some microseconds: 500 to these of the requests for each message, counted from
    0; 200 to all others.
    """
    seen: dict[str, int] = {}

    def answer(asked: Asked, _: Random) -> Reply:
        number = seen[asked.message_id] = seen.get(asked.message_id, -1) + 1
        return Reply(500 if number in times else 200, takes=takes)

    return answer


def gone_until(ends: int) -> Callable[[Asked, Random], Reply]:
    """Answers of an endpoint that is broken until some moment (microseconds)."""
    return lambda asked, _: Reply(500 if asked.at < ends else 200, takes=20_000)


class _Small(IronMqWorld):
    """What small worlds with push queues share: queues as they are named, and a script."""

    creates: Mapping[str, Mapping[str, Any]] = {}
    """Settings of each queue; its subscribers by name, each with how it answers."""

    def set_up(self) -> None:
        """Make the project and its queues."""
        self.producers = len(self.creates)
        super().set_up()

    def _queue(self, number: int) -> PushQueue:
        queue = PushQueue(f"queue-{number}", "multicast", {})
        given = dict([*self.creates.values()][number])
        subscribers = []
        for name, answers in given.pop("endpoints").items():
            endpoint = self._account.endpoints.add(f"{name}.example", [(0, Mood.WELL)])
            if isinstance(answers, Mood):
                endpoint.moods = [(0, answers)]
                endpoint.later = partial(self._acknowledge_later, endpoint)
            else:
                endpoint.answers = answers
            queue.endpoints[name] = endpoint
            subscribers.append({"name": name, "url": f"https://{name}.example/in", "timeout": 10})
        kind = given.pop("type", "multicast")
        queue.kind = kind
        push = {"retries": 3, "retries_delay": 3, "error_queue": "", "eager": False, **given}
        expires = push.pop("expires", 3_600)
        queue.settings = {"type": kind, "message_expiration": expires, "push": {"subscribers": subscribers, **push}}
        return queue

    def actors(self) -> Mapping[str, Act]:
        """The script alone."""
        return {"script": self._script}

    def _script(self) -> None:
        raise NotImplementedError

    def _at_once(self, *acts: Act) -> None:
        for act in acts:
            self._account.scheduler.spawn(act)

    def _sleep(self, seconds: float) -> None:
        self._account.scheduler.sleep(round(seconds * SECOND))

    def _send(self, queue: int, *delays: int) -> None:
        """Post messages, each with its delay."""
        messages: list[dict[str, Any]] = [
            {"body": self._text(10)} | ({"delay": delay} if delay else {}) for delay in delays
        ]
        self._post_all(self.queues[queue], messages, self._account.scheduler.now)

    def _forget(self, queue: int, place: int) -> None:
        """Delete one of the messages that were posted."""
        own = [each for each in self.posted if each.queue == self.queues[queue].name]
        if len(own) > place:
            message_id = own[place].message_id
            ask = partial(self._ask, "DELETE", self.queues[queue], f"/messages/{message_id}", {})
            self._acts_on(self.queues[queue], "forget", ask, subject=message_id)


class PushedWorld(_Small):
    """Push queues: one message taken at the second try, one acknowledged later, one delayed, one given up."""

    name = "small pushes"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def set_up(self) -> None:
        """Make the queues."""
        self.creates = {
            "retried": {"endpoints": {"well": refuses(), "once": refuses(0)}},
            "given up": {"endpoints": {"never": refuses(*range(9))}, "retries": 1, "error_queue": "errors"},
            "later": {"endpoints": {"later": Mood.RACES}},
        }
        super().set_up()

    def _script(self) -> None:
        self._at_once(partial(self._send, 0, 0, 2), *(partial(self._send, number, 0) for number in (1, 2)))


class ScheduledWorld(_Small):
    """Push queues whose messages wait for longer than a queue of SQS delays: delayed, to be tried again, and deleted
    while they wait.
    """

    name = "small schedule"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S
    struck_s = 1_100

    def set_up(self) -> None:
        """Make the queues."""
        self.creates = {
            "again": {"endpoints": {"again": refuses(0)}, "retries_delay": 920},
            "delayed": {"endpoints": {"well-0": refuses(), "well-1": refuses()}},
        }
        super().set_up()

    def _script(self) -> None:
        self._at_once(partial(self._send, 0, 0), partial(self._send, 1, 910, 940, 970))
        self._sleep(900)
        self._forget(1, 2)


class EndedWorld(_Small):
    """Push queues in which messages end untried, or while they are tried: deleted, cleared, expired, taken back."""

    name = "small ends"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def set_up(self) -> None:
        """Make the queues."""
        self.creates = {
            "deleted": {"endpoints": {"well-0": refuses()}},
            "cleared": {"endpoints": {"once-1": refuses(0), "well-1": refuses()}},
            "expired": {"endpoints": {"never-2": refuses(*range(99))}, "expires": 60, "error_queue": "errors"},
            "one of two": {"endpoints": {"a-3": refuses(0), "b-3": refuses()}, "type": "unicast"},
            "superseded": {"endpoints": {"later-4": Mood.FORGETS}, "retries_delay": 5},
        }
        super().set_up()
        slow = self.queues[4].endpoints["later-4"]
        slow.later = partial(self._acknowledge_superseded, slow)
        slow.moods = [(0, Mood.LATER)]

    def _script(self) -> None:
        acts = [partial(self._send, 0, 5, 0), partial(self._send, 1, 0), partial(self._send, 2, 0)]
        self._at_once(*acts, partial(self._send, 3, 0), partial(self._send, 4, 0))
        self._sleep(1)
        self._at_once(partial(self._forget, 0, 0), partial(self._clear, self.queues[1], self._random))
        self._sleep(1)
        self._send(1, 0)

    def _acknowledge_superseded(self, endpoint: Endpoint, seen: Asked) -> None:
        """After the second request, the first one's reservation is none any more, and the second one's is one."""
        asked = endpoint.about_message[seen.message_id]
        if len(asked) == 2:
            self._account.scheduler.spawn(partial(self._acknowledge_both, *asked), after=3 * SECOND)

    def _acknowledge_both(self, first: Asked, second: Asked) -> None:
        url = first.headers["iron-subscriber-message-url"]
        # A first attempt that could not be stored is made again, with the same reservation.
        if url != second.headers["iron-subscriber-message-url"]:
            status = self._account.http("DELETE", url.removeprefix("https://hub.example")).status
            detail = f"{status} at {moment(self._account.scheduler.now)}"
            self.judgement.fact(
                status in (403, 0, 500, 503), "a superseded reservation counts", first.message_id, detail
            )
        self._acknowledge(second)


class ChangedWorld(_Small):
    """An owner who changes his mind each two seconds, while messages come: each change is in force a second later."""

    name = "small changes"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def set_up(self) -> None:
        """Make the queue."""
        self.creates = {"changed": {"endpoints": {"one": refuses(), "two": refuses(0)}}}
        super().set_up()

    def _script(self) -> None:
        queue = self.queues[0]
        for number in range(18):
            self._at_once(partial(self._send, 0, 0))
            if number % 4 == 2:
                self._at_once(partial(self._change_headers, queue, Random(number)))
            self._sleep(0.5)
        gone = {"subscribers": [{"name": "two"}]}
        remove = partial(self._ask, "DELETE", queue, "/subscribers", gone)
        self._acts_on(queue, "remove", remove, subject="two")
        self._sleep(1)
        self._send(0, 0)


class OrderedWorld(PoliciesWorld):
    """An ordering key at two subscribers: one fails once, one is slow; and one message is deleted in its place."""

    name = "small order"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S
    producers = 1

    def set_up(self) -> None:
        """Make the queue."""
        super().set_up()
        for place, endpoint in enumerate(self.queues[0].endpoints.values()):
            endpoint.moods = [(0, Mood.WELL)]
            # What comes second finds the first one under way, and it ends while the second is about to wait.
            endpoint.answers = refuses(0) if place else refuses(takes=SECOND)

    def _queue(self, number: int) -> PushQueue:
        queue = super()._queue(number)
        queue.settings["push"] |= {"retries_delay": 3, "eager": False}
        return queue

    def actors(self) -> Mapping[str, Act]:
        """Two producers of one key, and the owner."""
        return {"script": self._script}

    def _script(self) -> None:
        queue, scheduler = self.queues[0], self._account.scheduler
        for _ in range(2):
            scheduler.spawn(partial(self._post_ordered, queue, Random("a")))
        scheduler.sleep(SECOND)
        self._post_ordered(queue, Random("a"))
        # What waits behind the second is taken out of its line.
        message_id = self.posted[-1].message_id
        ask = partial(self._ask, "DELETE", queue, f"/messages/{message_id}", {})
        self._acts_on(queue, "forget", ask, subject=message_id)
        scheduler.sleep(4 * SECOND)
        self._post_ordered(queue, Random("a"))


class ExpiredWorld(OrderedWorld):
    """An ordering key whose first message fails until it expires, and so does what waits behind it, untried."""

    name = "small expiry"

    def _queue(self, number: int) -> PushQueue:
        queue = super()._queue(number)
        queue.settings["message_expiration"] = 60
        queue.settings["push"] |= {"retries": 100, "retries_delay": 20}
        return queue

    def _script(self) -> None:
        queue, scheduler = self.queues[0], self._account.scheduler
        broken = gone_until(scheduler.now + 65 * SECOND)
        for endpoint in queue.endpoints.values():
            endpoint.answers = broken
        for _ in range(2):
            self._post_ordered(queue, Random("a"))
        scheduler.sleep(70 * SECOND)
        self._post_ordered(queue, Random("a"))


class GuardedWorld(PoliciesWorld):
    """A circuit that opens and closes again, and a subscriber that takes one request at a time."""

    name = "small circuit"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S
    producers = 5

    def set_up(self) -> None:
        """Make the queues, with a circuit that opens soon."""
        super().set_up()
        config = self._operator.config
        quick = Circuit(failures=2, share=0.5, least=2, window_s=60, probe_s=60, most_probe_s=900, disable_after_s=None)
        stored = config.queue(self._project, self.queues[1].name, fresh=True)
        assert stored is not None
        assert stored.push is not None
        config.update_queue(replace(stored, push=replace(stored.push, circuit=quick)))
        for queue in self.queues:
            for endpoint in queue.endpoints.values():
                endpoint.moods, endpoint.answers = [(0, Mood.WELL)], refuses()

    def actors(self) -> Mapping[str, Act]:
        """A producer."""
        return {"script": self._script}

    def _script(self) -> None:
        scheduler, (_, broken, _, limited, _) = self._account.scheduler, self.queues
        for endpoint in broken.endpoints.values():
            endpoint.answers = gone_until(scheduler.now + 30 * SECOND)
        messages = [{"body": self._text(10)} for _ in range(3)]
        for queue in (broken, limited):
            scheduler.spawn(partial(self._post_all, queue, messages, scheduler.now))


class ReservedWorld(PullWorld):
    """A pull queue whose messages two consumers at once reserve, extend, give back and delete, until some are dead
    letters.
    """

    name = "small reservations"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def actors(self) -> Mapping[str, Act]:
        """The script alone."""
        return {"script": self._script}

    def begin(self, names: Collection[str]) -> None:
        """Let the script begin, and whoever empties the queues in the end."""
        for name in names:
            self._account.scheduler.spawn(self.actors()[name])

    def _script(self) -> None:
        scheduler = self._account.scheduler
        scheduler.spawn(self._post_some)
        scheduler.sleep(SECOND // 2)
        for place in range(2):
            scheduler.spawn(partial(self._consumes, f"c{place}", place))
        scheduler.sleep(20 * SECOND)
        for name in ("pull-0", "dead"):
            scheduler.spawn(partial(self._empties, name))

    def _post_some(self) -> None:
        """Post four messages, one of them a little later."""
        bodies = [f"message-{number}" for number in range(4)]
        delays = [0, 0, 0, 2]
        messages = [{"body": body, "delay": delay} for body, delay in zip(bodies, delays, strict=True)]

        def ask() -> HttpAnswer:
            answer = self._ask("POST", "pull-0", "/messages", {"messages": messages})
            ids = answer.body["ids"] if answer.status == 201 else ()
            self._posts.append(Post("pull-0", answer.exchange, [each.encode() for each in bodies], delays, ids))
            return answer

        self._until(201, ask)

    def _take(self, name: str, count: int, timeout: int = 30) -> list[Got]:
        return self._reserve("pull-0", name, count=count, timeout=timeout, wait=0, delete=False)

    def _consumes(self, name: str, place: int) -> None:
        for number, got in enumerate(self._take(name, 2)):
            new = self._act("touch", "pull-0", got.message_id, got.reservation_id, 30)
            # The reservation before is void: what is done with it has no effect.
            self._act("delete", "pull-0", got.message_id, got.reservation_id)
            named = new.body.get("reservation_id", "") if new.status == 200 else got.reservation_id
            if place or number:
                self._act("release", "pull-0", got.message_id, named)
            else:
                self._act("delete", "pull-0", got.message_id, named)
        # Until what is given back has been reserved too often, and becomes a dead letter.
        for _ in range(6):
            for got in self._take(name, 1):
                self._act("release", "pull-0", got.message_id, got.reservation_id)

    def _empties(self, queue: str) -> None:
        """Take what is there, until a day is over: what was left reserved becomes available again."""
        for _ in range(12):
            got = self._reserve(queue, f"{queue}-last", count=20, timeout=60, wait=0, delete=False)
            if got:
                self._delete_all(queue, got)
            self._account.scheduler.sleep((30 if got else 600) * SECOND)


class SentWorld(WebhooksWorld):
    """Webhooks: requests repeated with their keys in two applications at once, an order, resends while a try is under
    way, an endpoint that is turned off, and one that is told 410.
    """

    name = "small webhooks"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def set_up(self) -> None:
        """Make the applications."""
        super().set_up()
        for customer in self.customers:
            customer.endpoint.moods = [(0, Mood.WELL)]
            customer.endpoint.answers = refuses()
        # Slow, so that a person asks for a try while one is under way.
        self.customers[1].endpoint.answers = lambda _, __: Reply(200, takes=2 * SECOND)
        self.customers[3].endpoint.answers = refuses(0)

    def _make_endpoint(self, app: int, random: Random) -> bool:
        # Without filters, so that each message is owed to each endpoint.
        class All(Random):
            def random(self) -> float:
                return 0.9

        return super()._make_endpoint(app, All(random.random()))

    def actors(self) -> Mapping[str, Act]:
        """The script alone."""
        return {"script": self._script}

    def _script(self) -> None:
        scheduler = self._account.scheduler
        for number, app_id in enumerate(self._apps):
            # Both applications use the same keys, for idempotency and for their order.
            for place in range(2):
                body = self._drawn(number, place)
                scheduler.spawn(partial(self._post, number, app_id, body, f"{place}"))
            scheduler.spawn(partial(self._repeat, app_id, self._drawn(number, 0)))
        scheduler.sleep(round(1.5 * SECOND))
        # Once while the automatic try is under way, and once more while the one is that was asked for.
        for late in (0, 2.5):
            scheduler.spawn(partial(self._resend_to, self.customers[1]), after=round(late * SECOND))
        scheduler.spawn(partial(self._off_and_on, self.customers[2]))
        scheduler.spawn(partial(self._rotate, self.customers[0]))
        scheduler.sleep(round(1.5 * SECOND))
        for number, app_id in enumerate(self._apps):
            scheduler.spawn(partial(self._post, number, app_id, self._drawn(number, 2), "2"))

    def _drawn(self, app: int, place: int) -> dict[str, Any]:
        payload = {"marker": f"{app}-{place}", "padding": "x"}
        return {"eventType": "user.created", "payload": payload, "orderingKey": "a"}

    def _repeat(self, app_id: str, body: dict[str, Any]) -> None:
        """Another client makes the same request with the same key."""
        self._until(202, partial(self._ask, "POST", f"/app/{app_id}/msg", body, **{"idempotency-key": "0"}))

    def _resend_to(self, customer: Customer) -> None:
        own = [message for _, message in self.posted]
        stored = [self._truth.pushed.get(engine_id(each) or "") for each in own]
        for message, found in zip(own, stored, strict=True):
            if found is not None and customer.endpoint_id in found.delivery_subscribers:
                self._sends_again(message, customer)
                return

    def _sends_again(self, message: str, customer: Customer) -> None:
        path = f"/app/{self._apps[customer.app]}/msg/{message}/endpoint/{customer.endpoint_id}/resend"
        resent = Resent(engine_id(message) or "", customer.endpoint_id, self._account.scheduler.now, 0, accepted=False)
        self.resent.append(resent)
        for _ in range(4):
            resent.times += 1
            answer = self._ask("POST", path, {})
            self._by_hand[resent.message_id, customer.endpoint.name].append(answer.exchange)
            if answer.status not in (0, 500, 503):
                resent.accepted = answer.status == 202
                return
            self._account.scheduler.sleep(SECOND)
        self._account.unqueued.add(resent.message_id)

    def _rotate(self, customer: Customer) -> None:
        secret = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
        customer.secrets.append((None, secret))
        path = f"/app/{self._apps[customer.app]}/endpoint/{customer.endpoint_id}"
        if self._ask("POST", f"{path}/secret/rotate", {"key": secret}).status == 200:
            customer.secrets[-1] = self._account.scheduler.now, secret

    def _off_and_on(self, customer: Customer) -> None:
        customer.begins_to_change(self._account.scheduler.now)
        self._pause(f"/app/{self._apps[customer.app]}/endpoint/{customer.endpoint_id}", 3)
        customer.has_changed(self._account.scheduler.now)


class StoreWorld(HubWorld):
    """A store: a message routed to services that take it at once, later, and with a further message."""

    name = "small store"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def set_up(self) -> None:
        """Make the store."""
        super().set_up()
        for each in self.services:
            each.endpoint.moods = [(0, Mood.WELL)]

    def _make_service(self, number: int) -> Callable[[], None]:
        make = super()._make_service(number)
        service = self.services[number]
        service.settings["messages"] = ["order:new"] if number < 3 else ["child:made"]
        service.settings["options"] = {"retry_base": 1, "retry_cap": 60}
        return make

    def _answer(self, service: Service, seen: Asked, random: Random) -> Reply:
        first = service.polls[json.loads(seen.body)["message_id"]] == 0
        if service.name == "service-0" and first:
            service.polls[json.loads(seen.body)["message_id"]] += 1
            return Reply(500)
        return super()._answer(service, seen, random)

    def actors(self) -> Mapping[str, Act]:
        """A producer."""
        return {"script": partial(self._push, "order:new", Random("small"))}


class AtOnce(Random):
    """Draws that make a consumer acknowledge everything, without a wait."""

    def random(self) -> float:
        """The least."""
        return 0.0


class TopicsWorld(NotificationsWorld):
    """Topics: two publishers at once, one of which repeats its request; a consumer that reconnects, one that leaves as
    soon as its acknowledgements are heard, and two of one subscriber.
    """

    name = "small topics"
    most_excused = EXCUSED
    ends_within_s = ENDS_WITHIN_S

    def actors(self) -> Mapping[str, Act]:
        """The script alone."""
        return {"script": self._script}

    def begin(self, names: Collection[str]) -> None:
        """Let consumers connect, and the script begin."""
        reader, hasty, _, team = self.subscribers
        for subscriber, name in ((reader, "c0"), (team, "c0"), (team, "c1")):
            self._account.scheduler.spawn(partial(self._stays, subscriber, name))
        self._account.scheduler.spawn(partial(self._leaves, hasty))
        self.subscribers = [reader, hasty, team]
        for name in names:
            self._account.scheduler.spawn(self.actors()[name], after=2 * SECOND)

    def _stays(self, subscriber: Subscriber, name: str) -> None:
        """Connect, leave after some seconds, come back, and stay."""
        for stays_s in (6, STAYS_S):
            query = {"token": subscriber.token} | ({"consumer": name} if subscriber.shared else {})
            self._until_connected(subscriber, query, stays_s)

    def _leaves(self, subscriber: Subscriber) -> None:
        """Connect, acknowledge what comes at once, and leave when that is heard, though its sender may not know yet
        that it was sent; come back, and stay.
        """
        scheduler, query = self._account.scheduler, {"token": subscriber.token}
        connection, opened = self._opened(subscriber, query, AtOnce())
        until = opened + STAYS_S * SECOND
        while scheduler.now < until and connection in self._account.sockets.open:
            own = [each for each in subscriber.frames if each.connection == connection]
            if own and all(each.noted is not None for each in own):
                break
            scheduler.sleep(SECOND // 100)
        self._left(subscriber, connection, opened)
        self._until_connected(subscriber, query, STAYS_S)

    def _opened(self, subscriber: Subscriber, query: Mapping[str, str], chance: Random) -> tuple[str, int]:
        """A connection, and when it was opened."""
        scheduler, status, connection = self._account.scheduler, 0, ""
        while status != 200:
            status, connection = self._gateway.connect(query, partial(self._heard, subscriber, chance))
            scheduler.sleep(SECOND if status != 200 else 0)
        if subscriber.since is None:
            subscriber.since = scheduler.now
        return connection, scheduler.now

    def _left(self, subscriber: Subscriber, connection: str, opened: int) -> None:
        self._gateway.cut(connection)
        subscriber.connections.append(Connection(connection, opened, self._account.scheduler.now))

    def _until_connected(self, subscriber: Subscriber, query: Mapping[str, str], stays_s: int) -> None:
        scheduler = self._account.scheduler
        connection, opened = self._opened(subscriber, query, Random("all"))
        until = opened + stays_s * SECOND
        while scheduler.now < until and (socket := self._account.sockets.open.get(connection)) is not None:
            socket.active_at = self._account.now_ms()
            scheduler.sleep(min(until - scheduler.now, 50 * SECOND))
        self._left(subscriber, connection, opened)

    def _script(self) -> None:
        for publisher in range(2):
            post = partial(self._publish_one, publisher)
            self._account.scheduler.spawn(post)
        self._account.scheduler.spawn(partial(self._publish_one, 0))

    def _publish_one(self, publisher: int) -> None:
        """Publish to both topics in one request, twice to one of them."""
        began, drafts, published = self._account.scheduler.now, [], []
        for number, topic in enumerate(("orders", "machines", "orders"), start=1):
            data = {"p": publisher, "n": number, "text": "small"}
            self._contents[publisher, number] = json.dumps(data)
            drafts.append({"api": "events" if topic == "orders" else "alarms", "source": "111", "data": data})
            published.append(Published(publisher, number, topic, "111", began))
        post = partial(self._ask, "/notification2/notifications", drafts, **{"idempotency-key": f"{publisher}"})
        if self._until(201, post, tries=40) and not any(each.publisher == publisher for each in self.published):
            self.published += published


SMALL = (
    *(PushedWorld, ScheduledWorld, EndedWorld, ChangedWorld, OrderedWorld, ExpiredWorld, GuardedWorld),
    *(ReservedWorld, SentWorld, StoreWorld, TopicsWorld, SmallSinksWorld),
)
"""All small worlds."""

__all__ = ["SMALL"]
