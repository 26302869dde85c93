"""FIFO queues under failures: a thousand messages of twenty keys, in order, once."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.engine.world import PROJECT, World, subscribers
from tests.fakes.clock import FakeClock
from tests.sinks.examples import ACCOUNT, ROLE

from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.project import Project

FIVE_MINUTES_MS = 300_000
MESSAGES, KEYS = 1_000, 20
ERRORS = ("RequestThrottled", "AccessDenied", "ExpiredToken", "InternalFailure", "QueueDoesNotExist")


class Fifo:
    """A FIFO queue of SQS behind a bad network: a third of the calls fail, before or after it took the messages, and
    some messages of a call for several.

    Attributes:
        groups: The bodies that each group holds, in order.
        failed: How often a call, or a message of one, failed.
        calls: How many messages each call had.
    """

    def __init__(self, clock: FakeClock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        self.groups: dict[str, list[str]] = defaultdict(list)
        self.failed = 0
        self.calls: list[int] = []
        self._under_way: set[str] = set()

    def send(self, request: PushRequest) -> Answer:
        """Take messages, or fail."""
        said = json.loads(request.body)
        entries = said.get("Entries", [said])
        groups = [each["MessageGroupId"] for each in entries]
        with self._lock:
            # Two messages of a group are never under way at the same time
            assert len({*groups}) == len(groups)
            assert not self._under_way & {*groups}
            self._under_way |= {*groups}
            self.calls.append(len(entries))
        # Others come meanwhile
        threading.Event().wait(0.001)
        try:
            return self._taken(entries, many="Entries" in said)
        finally:
            with self._lock:
                self._under_way -= {*groups}

    def _taken(self, entries: list[dict[str, Any]], *, many: bool) -> Answer:
        with self._lock:
            now = self._clock.now()
            draw = self._chance.random()
            if draw < 0.25:
                self.failed += 1
                error = {"__type": f"com.amazonaws.sqs#{self._chance.choice(ERRORS)}"}
                return self._answer(now, 400, json.dumps(error).encode())
            done, lost = [], []
            for each in entries:
                if many and self._chance.random() < 0.1:
                    self.failed += 1
                    lost.append({"Id": each["Id"], "Code": "InternalError", "SenderFault": False})
                    continue
                once = each["MessageDeduplicationId"]
                if self._seen.get(once, -FIVE_MINUTES_MS) + FIVE_MINUTES_MS <= now:
                    self._seen[once] = now
                    self.groups[each["MessageGroupId"]].append(each["MessageBody"])
                done.append({"Id": each.get("Id"), "MessageId": "1"})
            if draw < 0.35:
                # It was taken, and the answer is lost.
                self.failed += 1
                return self._answer(now, 0, b"", "reset")
            return self._answer(now, 200, json.dumps({"Successful": done, "Failed": lost}).encode())

    def _answer(self, now: int, status: int, body: bytes, error_class: str = "") -> Answer:
        return Answer(
            status_code=status, message=error_class, error_class=error_class, body=body, started_at=now, finished_at=now
        )


def test_a_thousand_messages_of_twenty_keys_arrive_once_and_in_order() -> None:
    # Given a FIFO queue of SQS behind a bad network, a project's queue that sends there, and attempts side by side
    world = World()
    world.ports.executor = ThreadPoolExecutor(32)
    fifo = Fifo(world.clock, random.Random())
    world.ports.sender = fifo
    world.config.put_project(Project(project_id=PROJECT, created_at=0, external_secret="s"))
    world.ports.roles.trusting[ROLE] = world.hub.engine.external_ids.of(PROJECT)
    url = f"sqs://eu-west-1/{ACCOUNT}/orders.fifo?role={ROLE}"
    world.make_queue("q", subscribers(url), retry=FixedDelay(retries=100, delay_s=3))
    # When messages of many keys are posted at random
    posted: dict[str, list[str]] = defaultdict(list)
    ids = []
    for number in range(MESSAGES):
        key = f"key-{random.randrange(KEYS)}"
        posted[key].append(str(number))
        ids += world.post("q", str(number).encode(), order_key=key)
    world.run(seconds=3_000)
    # Then each is there once, and in the order of its key, however often the calls failed
    assert fifo.groups == posted
    assert fifo.failed > MESSAGES / 10
    # And those of different keys went together
    assert max(fifo.calls) > 1
    states = {each.state for message in ids for each in world.deliveries(message)}
    assert states == {DeliveryState.DELIVERED}
