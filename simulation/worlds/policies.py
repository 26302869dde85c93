"""Queues with protection: ordering keys, circuits, limits, answers that are obeyed; and an owner who empties them.

IronMQ's API has no words for these settings, so an operator writes them, and producers of ordered messages are programs
inside the hub.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from pushhub.engine.model.answer_rules import AnswerRules
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.message import Message, NewMessage
from pushhub.ironmq.wiring import Ironmq
from pushhub.runtime.hub import Pushhub
from simulation.endpoints import Asked, Endpoint, Mood, Reply, life
from simulation.functions import RunFailed
from simulation.policies import in_order, left_alone
from simulation.promises.flow import Waiting
from simulation.promises.ironmq import Queue as MadeQueue
from simulation.promises.judgement import Exchange, Post, Violation
from simulation.promises.push import LATE_S
from simulation.promises.talks import in_force, queue_orders, queue_signing, queue_turns, requests
from simulation.promises.talks import pushes as talks
from simulation.scheduler import SECOND
from simulation.worlds.ironmq import IronMqWorld, Posted, PushQueue
from simulation.worlds.world import Owed

MOODS = tuple(each for each in Mood if each not in {Mood.LATER, Mood.FORGETS, Mood.RACES, Mood.GONE})

BURST = 40
"""Messages that now and then arrive in one request: more than a ramp releases in its first minutes."""

KEYS = ("a", "b", "c", "stuck")
STUCK = "stuck"
"""Messages with this key are always refused by the endpoints of the first queue."""

FASTER = 4
"""Producers post this many times as often as those of other worlds: a circuit needs traffic."""

CIRCUIT = Circuit(failures=3, share=0.6, least=6, window_s=60, probe_s=60, most_probe_s=900, disable_after_s=None)
SLOW_DOWN_S = 20
RULES = AnswerRules(retry_after=True, slow_down_s=SLOW_DOWN_S)
LIMITS = (Limits(concurrency=2), Limits(rate_per_s=0.1))

RATE_WINDOW_S = 60
"""Window for counting the requests of a rate."""


class PoliciesWorld(IronMqWorld):
    """Queues with ordering keys; with a circuit; with both; with limits on concurrency and rate."""

    name = "policies"
    producers = 5

    def set_up(self) -> None:
        """Create the queues, and have an operator write the settings that IronMQ has no words for."""
        super().set_up()
        config = self._operator.config
        for number, queue in enumerate(self.queues):
            stored = config.queue(self._project, queue.name, fresh=True)
            assert stored is not None
            assert stored.push is not None
            push = stored.push
            if number in (1, 2):
                push = replace(push, circuit=CIRCUIT, rules=RULES)
            if number >= 3:
                limits = LIMITS[number - 3]
                push = replace(push, subscribers=tuple(replace(each, limits=limits) for each in push.subscribers))
            config.update_queue(replace(stored, push=push))

    def _queue(self, number: int) -> PushQueue:
        queue = PushQueue(f"queue-{number}", "multicast", {})
        subscribers = [self._subscriber(queue, f"s{number}-{place}") for place in range(1 if number >= 3 else 2)]
        delays = (120, 60, 60, 60, 60)
        push = {
            "subscribers": subscribers,
            "retries": (3, 50, 10, 3, 3)[number],
            "retries_delay": delays[number],
            "error_queue": "errors",
            "eager": self._eager(number),
        }
        queue.settings = {"type": "multicast", "message_expiration": 604_800, "push": push}
        return queue

    def _subscriber(self, queue: PushQueue, name: str) -> dict[str, Any]:
        given = super()._subscriber(queue, name)
        endpoint = queue.endpoints[name]
        endpoint.moods = life(self._random, self._hours, MOODS)
        if name.startswith("s0"):
            endpoint.answers = _refuses_stuck
        if name.startswith("s3"):
            given["timeout"] = 30
            endpoint.answers = _takes_its_time
        return given

    def _as_made(self, queue: PushQueue) -> MadeQueue:
        """Keys, circuits and limits hold messages up; two queues obey what endpoints ask for."""
        settings = replace(super()._as_made(queue), prompt=False)
        return (
            replace(settings, obeys=True, slow_down_s=SLOW_DOWN_S) if self.queues.index(queue) in (1, 2) else settings
        )

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each queue, and the owner."""
        acts = dict(super().actors())
        for number, queue in enumerate(self.queues):
            random = self._chance(f"producer-{number}")
            posts = {0: self._post_ordered, 1: self._post_much, 2: self._post_ordered}
            post = partial(posts.get(number, self._post), queue, random)
            often = partial(self._each_while_traffic, random, post, an_hour=self._rate * FASTER)
            acts[f"producer-{number}"] = often
        return acts

    def _own(self, random: Random) -> None:
        changes = (self._clear, self._delete_message, self._delete_message, self._remove_subscriber)
        self._each_while_traffic(
            random, lambda: random.choice(changes)(random.choice(self.queues[:3]), random), an_hour=0.7
        )

    def _post_much(self, queue: PushQueue, random: Random) -> None:
        """Post a few messages, or now and then very many."""
        if random.random() >= 0.06:
            self._post(queue, random)
            return
        began = self._account.scheduler.now
        self._post_all(queue, [{"body": self._text(10)} for _ in range(BURST)], began)

    def _post_ordered(self, queue: PushQueue, random: Random) -> None:
        """Post messages of one key, as a program inside the hub in an environment of ingest.

        Repeats until they are known to be stored.
        """
        key, count = random.choice(KEYS), random.choice((1, 1, 2, 4))
        bodies = [json.dumps({"key": key, "number": next(self._numbers)}).encode() for _ in range(count)]
        new = [NewMessage(body=each, order_key=key) for each in bodies]
        began = self._account.scheduler.now

        def post(hub: Pushhub) -> list[str]:
            return hub.part(Ironmq).post.post(self._project, queue.name, new)

        for again in range(6):
            asked, ids = self._account.scheduler.now, []
            with suppress(RunFailed):
                ids = self._account.functions["ingest"].invoke({}, instead=post)
            now = self._account.scheduler.now
            self._posts.append(Post(queue.name, Exchange(asked, now, 201 if ids else 0), bodies, [0] * count, ids))
            if not ids:
                self._account.scheduler.sleep(2**again * SECOND)
                continue
            self.posted += [Posted(queue.name, each, began, now, key) for each in ids]
            return

    def talk(self) -> None:
        """What pushes of all protocols share, talked through; an operator writes what IronMQ has no words for. And what
        Svix's API takes and refuses.
        """
        talk = self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"})
        project = self._talked_to

        def change(name: str, **fields: Any) -> None:
            config = self._operator.config
            stored = config.queue(project, name, fresh=True)
            assert stored is not None
            assert stored.push is not None
            config.update_queue(replace(stored, push=replace(stored.push, **fields)))

        def limit(name: str, rate: float) -> None:
            stored = self._operator.config.queue(project, name, fresh=True)
            assert stored is not None
            assert stored.push is not None
            limits = Limits(rate_per_s=rate)
            change(name, subscribers=tuple(replace(each, limits=limits) for each in stored.push.subscribers))

        spares = talks.Circuit(CIRCUIT.failures, CIRCUIT.probe_s, CIRCUIT.most_probe_s)
        protect = partial(change, circuit=CIRCUIT, rules=RULES)
        talks.through(talk, talks.Protection(spares, protect, limit))
        queue_orders.through(talk)
        queue_turns.through(talk)
        queue_signing.through(talk)
        one = self._talking_webhooks()
        requests.webhooks(one)
        in_force.webhooks(one)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        # What is judged of limits is part of the whole.
        self._limited()
        yield from super().check()
        yield from self._ordered()
        for number, queue in enumerate(self.queues):
            for name, endpoint in queue.endpoints.items():
                yield from self._spared(number, queue, name, endpoint)

    def _spared(self, number: int, queue: PushQueue, name: str, endpoint: Endpoint) -> Iterator[Violation]:
        clocks_off = self._clocks_off
        ids = {
            each.subscriber_id
            for _, stored in self._truth.queues[queue.name]
            if stored is not None and stored.push is not None
            for each in stored.push.subscribers
            if each.name == name
        }
        if number in (1, 2):
            for subscriber_id in ids:
                # A subscriber that was removed and added again is a different one at the same endpoint: only one of
                # them can be judged by it.
                if len(ids) == 1:
                    yield from left_alone(self._truth, endpoint, subscriber_id, clocks_off)

    def _limited(self) -> None:
        for limits, queue in zip(LIMITS, self.queues[3:], strict=False):
            waiting = [
                # A delayed one may be a minute late before it waits for the limit alone.
                Waiting(message_id, post.exchange.answered + (delay_s + LATE_S if delay_s else 0) * SECOND)
                for post in self._posts
                if post.queue == queue.name
                for message_id, delay_s in zip(post.ids, post.delays_s, strict=False)
            ]
            for endpoint in queue.endpoints.values():
                self._judge_flow(endpoint, limits, waiting, window_s=RATE_WINDOW_S)

    def _ordered(self) -> Iterator[Violation]:
        requests: dict[Owed, list[Asked]] = {}
        messages: list[Message] = []
        for accepted, owed in self._owed():
            if accepted.message.ordering is not None:
                messages.append(accepted.message)
                requests[owed] = self._asked(accepted.message, self._name(accepted.message.queue, owed[1]))
        yield from in_order(self._truth, messages, requests)
        by_key: dict[tuple[str, str, str], list[tuple[Posted, int]]] = defaultdict(list)
        for each in self.posted:
            stored = self._truth.pushed.get(each.message_id)
            if each.key and stored is not None and stored.ordering is not None:
                by_key[each.queue, stored.queue_uid, each.key].append((each, stored.ordering.sequence))
        for posts in by_key.values():
            posts.sort(key=lambda pair: pair[1])
            for (earlier, _), (later, place) in pairwise(posts):
                if later.at < earlier.began:
                    yield Violation(
                        "placed before what was posted before it", earlier.message_id, f"{later} at {place}"
                    )


def _refuses_stuck(seen: Asked, random: Random) -> Reply:
    return Reply(500 if STUCK.encode() in seen.body else random.choice((200, 204)), takes=0)


def _takes_its_time(seen: Asked, random: Random) -> Reply:  # noqa: ARG001 (as every endpoint's)
    return Reply(200, takes=random.choice((1, 3, 20)) * SECOND)
