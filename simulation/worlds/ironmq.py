"""IronMQ: push queues of every kind with their producers, endpoints, and an owner who changes them; and the promises
made to them.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from random import Random
from typing import Any, Literal

from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Queue
from simulation.account import HttpAnswer
from simulation.bodies import text_body
from simulation.endpoints import Asked, Endpoint, Mood, life
from simulation.promises.ironmq import (
    Acknowledgement,
    Act,
    ErrorMessage,
    Pushed,
    PushQueues,
    is_taken,
    judge_headers,
)
from simulation.promises.ironmq import Queue as MadeQueue
from simulation.promises.judgement import Post, Violation
from simulation.promises.shown import OTHER_TOTAL, Shown, ShownPushes, judge_given_up, judge_settings
from simulation.promises.talks import (
    bounds,
    changes,
    command_line,
    ironmq_effects,
    ironmq_lists,
    ironmq_settings,
    lives,
    project_alerts,
    queue_acknowledgements,
    queue_answers,
    queue_ends,
    queue_found,
    queue_looks,
    queue_replays,
    queue_rounds,
    queue_subscribers,
    queue_waiting,
    trace_paths,
    traces,
)
from simulation.promises.talks import ironmq as talks
from simulation.scheduler import SECOND
from simulation.truth import Accepted
from simulation.weather import HOUR, Kind
from simulation.worlds import shown
from simulation.worlds.world import Owed, PushWorld, moment

EARLY_MS = 1_100
"""How much earlier than due a delivery may be tried: only by the whole seconds of streams and the difference of clocks,
see ``_clocks_off``.
"""

IN_FORCE = SECOND
"""A request goes by the settings that its owner had made up to this long before it began (microseconds)."""

CHANGES_AN_HOUR = 1.5
"""How often per hour the owner changes something."""

VERSION = "accept-language"
"""The header that tells for which version of its settings a subscriber was asked: one that is not sealed, so that the
judge can read it in what is stored.
"""

LEFT_ALONE = {"forget", "change"}
"""What an owner does to a queue that leaves what its other messages are shown with as it is."""

LOOKED_UP = 60
"""How many of the last messages of each queue are looked up."""

QUEUES = 6
MOODS = (*Mood, Mood.LATER, Mood.LATER)
RACING = 3
"""The endpoints of this queue acknowledge a message while the hub is still recording that they got it."""


@dataclass
class PushQueue:
    """A push queue as its owner knows it.

    Attributes:
        name: Its name.
        kind: ``multicast`` or ``unicast``.
        settings: The settings it was created with.
        endpoints: By name of the subscriber.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    endpoints: dict[str, Endpoint] = field(default_factory=dict)


@dataclass
class Posted:
    """A message that a producer was told was accepted.

    Attributes:
        queue: Its queue.
        message_id: The id in the answer.
        began: When it was first posted, microseconds.
        at: When the answer came, microseconds.
        key: Its ordering key, if it has one.
    """

    queue: str
    message_id: str
    began: int
    at: int
    key: str = ""


class IronMqWorld(PushWorld):
    """A project with push queues."""

    name = "ironmq"
    producers = QUEUES

    def set_up(self) -> None:
        """Make the project and its queues, before any weather."""
        self._make_project()
        self.posted: list[Posted] = []
        self._posts: list[Post] = []
        self._acts: list[Act] = []
        self._acknowledged: list[Acknowledgement] = []
        self._errors: dict[str, ErrorMessage] = {}
        self._shown: list[Shown] = []
        self._bodies = self._chance("bodies")
        self._numbers = itertools.count(1)
        self.queues = [self._queue(number) for number in range(self.producers)]
        self._in_good_weather(*(partial(self._make, each) for each in self.queues))
        assert all(self._truth.queues[each.name] for each in self.queues)

    def _queue(self, number: int) -> PushQueue:
        random = self._random
        unicast = number % 3 == 2
        queue = PushQueue(f"queue-{number}", "unicast" if unicast else "multicast", {})
        subscribers = [self._subscriber(queue, f"s{number}-{place}") for place in range(random.randint(1, 4))]
        push = {
            "subscribers": subscribers,
            "retries": random.choice((0, 1, 3, 3, 10)),
            "retries_delay": random.choice((3, 10, 60, 60, 300, 2000)),
            "error_queue": random.choice(("", "errors", "errors")),
            "eager": self._eager(number),
        }
        queue.settings = {
            "type": queue.kind,
            "message_expiration": random.choice((60, 600, 3600, 86_400, 604_800)),
            "push": push,
        }
        if number == 1:
            # Many short waits, which wear an order out.
            push |= {"retries": 100, "retries_delay": 3}
            queue.settings["message_expiration"] = 86_400
        return queue

    def _subscriber(self, queue: PushQueue, name: str) -> dict[str, Any]:
        endpoint = self._account.endpoints.add(f"{name}.example", life(self._random, self._hours, MOODS))
        if name.startswith(f"s{RACING}-"):
            endpoint.moods = [(0, Mood.RACES)]
        endpoint.later = partial(self._acknowledge_later, endpoint)
        queue.endpoints[name] = endpoint
        return {"name": name, "url": f"https://{name}.example/in", "timeout": self._random.choice((5, 10, 30, 60))}

    def _make(self, queue: PushQueue) -> None:
        answer = self._ask("PUT", queue, "", {"queue": queue.settings})
        assert answer.status == 200, answer

    def _ask(self, method: str, queue: PushQueue, path: str, body: object = None) -> HttpAnswer:
        whole = f"/3/projects/{self._project}/queues/{queue.name}{path}"
        return self._account.http(method, whole, body, token=self._token)

    def _name(self, queue: str, subscriber_id: str) -> str:
        """The owner's name for a subscriber, even a removed one; ``*`` for any one of several."""
        if subscriber_id == "*":
            return "*"
        settings = (each.push for _, each in self._truth.queues[queue] if each is not None and each.push is not None)
        return next(found.name for each in settings if (found := each.subscriber(subscriber_id)) is not None)

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """A producer for each queue, and the owner."""
        acts: dict[str, Callable[[], object]] = {
            f"producer-{number}": partial(self._produce, queue, self._chance(f"producer-{number}"))
            for number, queue in enumerate(self.queues)
        }
        return acts | {"owner": partial(self._own, self._chance("owner"))}

    def begin(self, names: Collection[str]) -> None:
        """Let all actors act from now on; once the traffic is over, somebody reads the error queue, and looks up what
        became of messages.
        """
        super().begin(names)
        self._account.scheduler.spawn(self._read_errors, after=round(self._hours * HOUR))

    def _look_up(self) -> None:
        """Messages that nobody deleted, and whose queues and subscribers are what they were; and what was set."""
        for queue in self.queues:
            self._look_at(queue)
            changed = max(
                (
                    each.exchange.answered
                    for each in self._acts
                    if each.queue == queue.name and each.kind not in LEFT_ALONE
                ),
                default=0,
            )
            forgotten = {each.subject for each in self._acts if each.kind == "forget"}
            looked_up: list[Shown] = []
            lives = (queue.settings["message_expiration"] + shown.LONGEST_READ_S) * SECOND
            for each in [each for each in self.posted if each.queue == queue.name][-LOOKED_UP:]:
                lasts = each.began + lives > self._account.scheduler.now
                if not lasts or each.began <= changed or each.message_id in forgotten:
                    continue
                ask = partial(self._ask, "GET", queue)
                acknowledged = [
                    (done.name, done.exchange) for done in self._acknowledged if done.message_id == each.message_id
                ]
                unicast = queue.kind == "unicast"
                looked_up.append(shown.pushed(ask, each.message_id, each.began, acknowledged, unicast=unicast))
            self._shown += looked_up
            listed = shown.given_up(partial(self._ask, "GET", queue))
            alive = self._account.scheduler.now - queue.settings["message_expiration"] * SECOND
            if listed is not None:
                judge_given_up(self.judgement, [each for each in looked_up if each.posted > alive], listed)

    def _read_errors(self) -> None:
        """Read error messages, and delete what was read.

        Who looks up messages begins here, not with the others: until then the runs are what they were without them.
        """
        self._account.scheduler.spawn(self._look_up, after=shown.AFTER_S * SECOND)
        queue = PushQueue("errors", "pull", {})
        while True:
            answer = self._ask("POST", queue, "/reservations", {"n": 100, "timeout": 600})
            got = answer.body["messages"] if answer.status == 200 else []
            for each in got:
                self._errors[each["id"]] = _error(json.loads(each["body"]))
            if got:
                ids = [{"id": each["id"], "reservation_id": each["reservation_id"]} for each in got]
                self._ask("DELETE", queue, "/messages", {"ids": ids})
            self._account.scheduler.sleep((1 if len(got) == 100 else 1_500) * SECOND)

    def _look_at(self, queue: PushQueue) -> None:
        """The settings of a queue that nobody made again, if its owner was told what became of each change."""
        acts = [each for each in self._acts if each.queue == queue.name and each.kind in {"retries", "delete", "make"}]
        answer = self._ask("GET", queue, "")
        if answer.status != 200 or any(each.kind != "retries" or each.exchange.unsure for each in acts):
            return
        shown = answer.body["queue"]
        push = {name: each for name, each in queue.settings["push"].items() if name not in {"subscribers", "eager"}}
        for each in acts:
            push |= {"retries": each.retries, "retries_delay": each.delay_s} if each.exchange.done else {}
        push["eager"] = queue.settings["push"]["eager"] or None
        whole = {name: each for name, each in queue.settings.items() if name != "push"}
        judge_settings(self.judgement, queue.name, whole, shown)
        judge_settings(self.judgement, queue.name, push, shown["push"])
        if not self._account.weather.storms and self._account.chosen is None:
            # A run that is repeated counts again what it had counted: the total is a statistic.
            posted = sum(each.queue == queue.name for each in self.posted)
            detail = f"{shown['total_messages']}, and {posted} were posted"
            self.judgement.fact(shown["total_messages"] == posted, OTHER_TOTAL, queue.name, detail)

    def _acts_on(
        self,
        queue: PushQueue,
        kind: Literal["retries", "remove", "add", "change", "clear", "delete", "make", "forget"],
        ask: Callable[[], HttpAnswer],
        **what: Any,
    ) -> HttpAnswer:
        """The owner does something, which is noted for the model."""
        answer = ask()
        self._acts.append(Act(kind, queue.name, answer.exchange, **what))
        self._note(f"{kind} {what.get('subject', '')} in", queue, answer)
        return answer

    def _produce(self, queue: PushQueue, random: Random) -> None:
        post = partial(self._post, queue, random)
        self._each_while_traffic(random, post, an_hour=self._rate)

    def _post(self, queue: PushQueue, random: Random) -> None:
        began, messages = self._account.scheduler.now, []
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            message: dict[str, Any] = {"body": self._text(random.choice((10, 10, 200, 9_000)))}
            if random.random() < 0.1:
                message["delay"] = random.choice((1, 60, 1_000, 7_200))
            messages.append(message)
        self._post_all(queue, messages, began)

    def _text(self, size: int) -> str:
        """A body of about that size, unlike any other; now and then a very large one."""
        return text_body(self._bodies, f"message-{next(self._numbers)}", size=size)

    def _post_all(self, queue: PushQueue, messages: list[dict[str, Any]], began: int) -> None:
        bodies, delays = [each["body"].encode() for each in messages], [each.get("delay", 0) for each in messages]

        def ask() -> HttpAnswer:
            answer = self._ask("POST", queue, "/messages", {"messages": messages})
            ids = answer.body["ids"] if answer.status == 201 else ()
            self._posts.append(Post(queue.name, answer.exchange, bodies, delays, ids))
            return answer

        answer = self._until(201, ask)
        for message_id in answer.body["ids"] if answer else ():
            self.posted.append(Posted(queue.name, message_id, began, self._account.scheduler.now))

    def _own(self, random: Random) -> None:
        """The owner changes a queue, a subscriber, or what is in a queue, in the middle of traffic."""
        changes = (
            self._change_retries,
            self._change_headers,
            self._change_headers,
            self._remove_subscriber,
            self._remove_subscriber,
            self._clear,
            self._delete_message,
            self._delete_message,
            self._delete_queue,
        )
        self._each_while_traffic(
            random, lambda: random.choice(changes)(random.choice(self.queues), random), an_hour=CHANGES_AN_HOUR
        )

    def _note(self, what: str, queue: PushQueue, answer: HttpAnswer) -> None:
        self._account.note(f"owner {what} {queue.name}: {answer.status}")

    def _change_retries(self, queue: PushQueue, random: Random) -> None:
        push = {"retries": random.choice((0, 3, 10)), "retries_delay": random.choice((3, 60, 2000))}
        change = partial(self._ask, "PATCH", queue, "", {"queue": {"push": push}})
        self._acts_on(queue, "retries", change, retries=push["retries"], delay_s=push["retries_delay"])

    def _change_headers(self, queue: PushQueue, random: Random) -> None:
        given = random.choice(queue.settings["push"]["subscribers"])
        changed = {**given, "headers": {VERSION: str(self._account.scheduler.now)}}
        change = partial(self._ask, "POST", queue, "/subscribers", {"subscribers": [changed]})
        self._acts_on(queue, "change", change, subject=given["name"])

    def _remove_subscriber(self, queue: PushQueue, random: Random) -> None:
        """Remove a subscriber, and add it again later: it is then a different one."""
        given = random.choice(queue.settings["push"]["subscribers"])
        gone = {"subscribers": [{"name": given["name"]}]}
        remove = partial(self._ask, "DELETE", queue, "/subscribers", gone)
        self._acts_on(queue, "remove", remove, subject=given["name"])
        self._account.scheduler.sleep(random.choice((5, 600, 4_000)) * SECOND)
        add = partial(self._ask, "POST", queue, "/subscribers", {"subscribers": [given]})
        self._until(200, lambda: self._acts_on(queue, "add", add, subject=given["name"]))

    def _clear(self, queue: PushQueue, random: Random) -> None:  # noqa: ARG002 (as the others)
        self._acts_on(queue, "clear", partial(self._ask, "DELETE", queue, "/messages", {}))

    def _delete_message(self, queue: PushQueue, random: Random) -> None:
        own = [each for each in self.posted if each.queue == queue.name][-20:]
        if own:
            message_id = random.choice(own).message_id
            forget = partial(self._ask, "DELETE", queue, f"/messages/{message_id}", {})
            self._acts_on(queue, "forget", forget, subject=message_id)

    def _delete_queue(self, queue: PushQueue, random: Random) -> None:
        """Delete a queue, and create it again under its name: the new one must show nothing of the old one."""
        self._acts_on(queue, "delete", partial(self._ask, "DELETE", queue, ""))
        self._account.scheduler.sleep(random.choice((0, 5, 300)) * SECOND)

        def make() -> HttpAnswer:
            answer = self._acts_on(queue, "make", partial(self._ask, "PUT", queue, "", {"queue": queue.settings}))
            if answer.status == 403:
                # A post in between created a pull queue.
                self._ask("DELETE", queue, "")
            return answer

        self._until(200, make, tries=12)

    def _acknowledge_later(self, endpoint: Endpoint, seen: Asked) -> None:
        random = self._random
        if endpoint.mood() is Mood.RACES:
            self._account.scheduler.spawn(lambda: self._acknowledge(seen))
        elif random.random() >= 0.15:
            after = random.choice((0, 0, 1, 20, 200))
            self._account.scheduler.spawn(lambda: self._acknowledge(seen), after=after * SECOND)

    def _acknowledge(self, seen: Asked) -> None:
        path = seen.headers["iron-subscriber-message-url"].removeprefix("https://hub.example")
        for _ in range(3):
            answer, who = self._account.http("DELETE", path), seen.headers["iron-subscriber-name"]
            self._acknowledged.append(Acknowledgement(seen.message_id, who, answer.exchange))
            if answer.status not in (0, 500, 503):
                return
            self._account.scheduler.sleep(self._random.randrange(1, 20) * SECOND)

    @cached_property
    def _by_name(self) -> Mapping[str, PushQueue]:
        return {each.name: each for each in self.queues}

    def _is_own(self, message: Message) -> bool:
        return message.queue in self._by_name

    def talk(self) -> None:
        """Push queues, talked through; and what an operator purges by mistake."""
        self._look_at_activity()
        talk, audited = (
            self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"})
            for _ in range(2)
        )
        changes.everything(audited)
        talks.push(talk)
        ironmq_settings.push(talk)
        ironmq_lists.push(talk)
        ironmq_effects.push(talk)
        queue_answers.through(talk)
        queue_acknowledgements.through(talk)
        queue_ends.through(talk)
        queue_rounds.through(talk)
        queue_replays.through(talk)
        queue_looks.through(talk)
        queue_found.through(talk)
        queue_subscribers.through(talk)
        queue_waiting.through(talk)
        project_alerts.through(talk)
        lives.push(talk)
        command_line.queues(talk)
        command_line.recorded(talk)
        traces.queues(talk)
        trace_paths.through(talk)
        bounds.swept(talk, partial(self._account.purge, "PushQueue"))

    def _look_at_activity(self) -> None:
        """What is counted by hour is what is recorded, however often a stream repeats it; what strikes the counting
        itself may lose some or repeat it.
        """
        path = f"/3/projects/{self._project}/activity?hours=168"
        hours = self._account.http("GET", path, None, token=self._token).body["hours"]
        tried = [
            each
            for each in self._truth.records()
            if each["project"] == self._project and each["kind"] == "attempt" and each["dialect"] == "raw"
        ]
        recorded = {"attempts": len(tried), "failed": sum(each["verdict"] == "failed" for each in tried)}
        counted = {name: sum(each[name] for each in hours) for name in recorded}
        struck = self._faults(("records",)).on("", 0, self._account.scheduler.now)
        because = [each for each in struck if each.kind != Kind.REPLAY]
        detail = f"{counted}, and {recorded} are recorded"
        self.judgement.fact(counted == recorded, "activity differs from the records", self.name, detail, because)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        model = PushQueues(
            {each.name: self._as_made(each) for each in self.queues},
            self.judgement,
            self._faults(),
            clocks_s=self._clocks_off_s,
            ends=self._account.scheduler.now,
        )
        requests = [
            seen
            for queue in self.queues
            for name, endpoint in queue.endpoints.items()
            for seen in self._requests(name, endpoint, queue.name)
        ]
        model.judge(self._posts, self._acts, requests, self._acknowledged, [*self._errors.values()])
        pushes = (
            Pushed(queue.name, name, seen.message_id, seen.headers)
            for queue in self.queues
            for name, endpoint in queue.endpoints.items()
            for seen in endpoint.log
        )
        judge_headers(self.judgement, pushes)
        shown = ShownPushes(requests, self.judgement, self._faults(), clocks_s=self._clocks_off_s, taken=is_taken)
        for each in self._shown:
            shown.judge(each)
        yield from self.judgement.total()
        for accepted, owed in self._owed():
            yield from self._delivery(accepted, owed)
        for key in self._truth.removed_early:
            yield Violation("removed before its end", key[0], f"{key} was removed by its time to live")

    def _as_made(self, queue: PushQueue) -> MadeQueue:
        """A queue as the model knows it."""
        push = queue.settings["push"]
        return MadeQueue(
            queue.kind == "unicast",
            [each["name"] for each in push["subscribers"]],
            push["retries"],
            push["retries_delay"],
            queue.settings["message_expiration"],
            push["error_queue"],
        )

    def _asked(self, message: Message, name: str) -> list[Asked]:
        """Every request for a delivery, in order."""
        endpoints = self._by_name[message.queue].endpoints
        chosen = endpoints.values() if name == "*" else [endpoints[name]]
        found = [seen for each in chosen for seen in each.about_message.get(message.message_id, ())]
        return sorted(found, key=lambda seen: seen.at)

    def _delivery(self, accepted: Accepted, owed: Owed) -> Iterator[Violation]:
        message, (message_id, subscriber_id) = accepted.message, owed
        name = self._name(message.queue, subscriber_id)
        where = f"{message.queue} to {name}"
        if not self._has_ended(owed):
            yield self._never_ended(owed, where)
            return
        history = self._truth.deliveries[owed]
        if sum(each.settled for each in history) > 1 and len({each.state for each in history if each.settled}) > 1:
            yield Violation("ended twice", message_id, str([each.state for each in history]))
        if any(later.version <= earlier.version for earlier, later in pairwise(history)):
            yield Violation("began anew", message_id, str([(each.version, each.state) for each in history]))
        yield from self._as_it_was_set(message, owed, where)

    def _as_it_was_set(self, message: Message, owed: Owed, where: str) -> Iterator[Violation]:
        """Every request goes to a subscriber, with its headers, as its owner had set it a second before or since."""
        name, history = self._name(message.queue, owed[1]), self._truth.queues[message.queue]
        for asked, endpoint in self._by_name[message.queue].endpoints.items():
            for seen in endpoint.about_message.get(message.message_id, ()) if name in ("*", asked) else ():
                ends = [*(at for at, _ in history[1:]), seen.at]
                in_force = (
                    queue
                    for (at, queue), end in zip(history, ends, strict=True)
                    if at <= seen.at and end >= seen.at - IN_FORCE
                )
                if not any(_is_so(each, message, owed[1], asked, seen) for each in in_force):
                    detail = f"{where} ({asked}) at {moment(seen.at)}, version {seen.headers.get(VERSION, 'none')}"
                    yield Violation("asked the old way", message.message_id, detail)

    @property
    def _clocks_off(self) -> int:
        """The most by which two clocks may differ, milliseconds."""
        worst = max((each.rate for each in self._account.weather.storms if each.kind == "clocks"), default=0)
        return EARLY_MS + round(2_000 * worst)


def _is_so(queue: Queue | None, message: Message, subscriber_id: str, name: str, seen: Asked) -> bool:
    """Whether a request fits a version of the queue that its message is in."""
    if queue is None or queue.push is None or queue.uid != message.queue_uid or message.accepted_at <= queue.cleared_at:
        return False
    wanted = (
        each for each in queue.push.subscribers if name == each.name and subscriber_id in ("*", each.subscriber_id)
    )
    return any(each.headers.get(VERSION) == seen.headers.get(VERSION) for each in wanted)


def _error(fields: Mapping[str, Any]) -> ErrorMessage:
    exact = fields.get("body_base64")
    text = fields.get("body")
    body = base64.b64decode(exact) if exact is not None else None if text is None else text.encode()
    names = tuple(each["name"] for each in fields["subscribers"])
    codes = tuple(each["code"] for each in fields["subscribers"])
    return ErrorMessage(fields["queue"], fields["source_msg_id"], names, body, codes)


__all__ = ["IronMqWorld", "Posted", "PushQueue"]
