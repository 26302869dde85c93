"""Sinks on AWS and streams: what is posted to applications, streams and sources arrives in queues, buses, buckets and
data streams of other people's accounts, whatever is wrong there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any
from urllib.parse import quote

from pushhub.engine.model.message import Message
from pushhub.webhooks.model.ids import engine_id
from simulation.promises.judgement import Exchange, Violation
from simulation.promises.sinks import FOREVER, Looked, Order, Sent, Sinks, Taken
from simulation.promises.talks import (
    arrivals,
    aws_calls,
    aws_destinations,
    aws_receivers,
    senders,
    stream_meanwhile,
    streams,
    written,
)
from simulation.receivers import Form, Receiver, Trouble, troubles
from simulation.scheduler import SECOND
from simulation.worlds.world import PushWorld

ACCOUNT, REGION = "111122223333", "eu-west-1"
TYPE = "order.paid"
KEYS = ("a", "b")
WAITS_S = 10
"""``maxWaitSecs`` of the bucket."""

LOOKS_AN_HOUR = 60.0
CODED = "coded"
"""The receiver of an endpoint with code, at a URL."""

CODE = """function handler(webhook) {
  if (Number(webhook.payload.marker.split("-")[1]) % 3 === 0) return { cancel: true };
  webhook.payload.type = webhook.eventType;
  webhook.payload.drawn = [Date.now(), Math.random()];
  return webhook;
}"""

REPEATED = 0.5
"""How often a provider sends an event of its own twice."""

PLACES: Mapping[str, tuple[str, Form]] = {
    "fifo": ("sqs:orders.fifo", Form.SQS),
    "queue": ("sqs:orders", Form.SQS),
    "bus": ("events:orders", Form.EVENTS),
    "topic": ("sns:orders.fifo", Form.SNS),
    "function": ("lambda:orders", Form.LAMBDA),
}
"""Receivers of the application, with scheme and name."""

FIFO = {"fifo", "topic"}
WRAPPED = "fifo, in envelopes"
"""What another endpoint sends to the same queue."""

OF_STREAM = ("bucket", "shards", "url")
OF_QUEUE: Mapping[str, tuple[str, Form]] = {"tens": ("sqs:tens", Form.SQS), "tens-bus": ("events:tens", Form.EVENTS)}
"""Receivers of a project's queue, to which messages are posted in tens: so several go in one call."""

READS_EVERY_S = 600


class SinksWorld(PushWorld):
    """An application with receivers on AWS, a stream with sinks, and a source with a URL."""

    name = "sinks"
    of_application: tuple[str, ...] = (*PLACES,)
    wraps = True
    """Whether two endpoints lead to one queue."""

    tens = True
    """Whether a project's queue has receivers, too."""

    coded = True
    """Whether an endpoint has code."""

    polled = True
    """Whether somebody reads the stream."""

    def set_up(self) -> None:
        """Create all of them, before any weather."""
        self.sent: dict[str, list[Sent]] = {"app": [], "stream": [], "source": [], "queue": []}
        self.receivers: dict[str, Receiver] = {}
        self._read: list[Taken] = []
        self._looked: dict[str, list[tuple[int, str]]] = {}
        self._paths: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._make_project()
        self._in_good_weather(self._make_all, seconds=120)
        assert self._paths.keys() >= {"app", "stream", "source", *OF_STREAM}

    def _ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        given = {"authorization": f"Bearer {self._token}", **headers}
        return self._account.http(method, path, body, headers=given)

    def _create(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self._ask("POST", path, body)
        assert answer.status == 201, answer
        return answer.body

    def _receiver(self, name: str, form: Form, place: str = "") -> Receiver:
        """A receiver, with a role of its own, at a resource that has an ARN."""
        role = "" if form is Form.HTTP else f"arn:aws:iam::{ACCOUNT}:role/{name}"
        # What has code fails besides, so that it might be given up.
        spells = troubles(self._chance(name), self._hours, outages=name != CODED)
        receiver = Receiver(
            self._account, self._account.sts, f"{name}.example", form, spells, role=role, fifo=name in FIFO, place=place
        )
        self.receivers[name] = self._account.endpoints.known[receiver.name] = receiver
        return receiver

    def _lets_in(self, receiver: Receiver, of: str) -> None:
        """Have its role let in with the external id that the hub has made; ``of`` is whose it is, as a path."""
        said = self._ask("GET", f"{of}/external-id").body
        external_id = said["externalId"] if "externalId" in said else said["external_id"]
        receiver.external_id = self._account.sts.external_ids[receiver.role] = external_id

    def _make_all(self) -> None:
        self._create("/api/v1/event-type", {"name": TYPE, "description": "paid"})
        self._make_application()
        self._make_stream()
        self._make_source()
        if self.tens:
            self._make_queue()

    def _make_application(self) -> None:
        app = self._paths["app"] = self._create("/api/v1/app", {"name": "shop"})["id"]
        for name in self.of_application:
            url = self._url(name, *PLACES[name], of=f"/api/v1/app/{app}")
            self._create(f"/api/v1/app/{app}/endpoint", {"url": url})
            if name == "fifo" and self.wraps:
                self._create(f"/api/v1/app/{app}/endpoint", {"url": f"{url}&body=envelope"})
        if self.coded:
            self._make_coded(f"/api/v1/app/{app}/endpoint")

    def _make_coded(self, path: str) -> None:
        receiver = self._receiver(CODED, Form.HTTP)
        endpoint = self._create(path, {"url": f"https://{receiver.name}/in"})
        answer = self._ask("PATCH", f"{path}/{endpoint['id']}/transformation", {"code": CODE, "enabled": True})
        assert answer.status == 204, answer

    def _url(self, name: str, place: str, form: Form, *, of: str) -> str:
        """The URL of a new receiver that lets somebody in."""
        receiver = self._receiver(name, form, _arn(*place.split(":")))
        self._lets_in(receiver, of)
        options = f"role={quote(receiver.role, safe='')}&endpoint={quote(f'https://{receiver.name}', safe='')}"
        return f"{place.replace(':', f'://{REGION}/{ACCOUNT}/')}?{options}"

    def _make_queue(self) -> None:
        project = f"/3/projects/{self._project}"
        to = [{"name": name, "url": self._url(name, *place, of=project)} for name, place in OF_QUEUE.items()]
        self._paths["queue"] = f"{project}/queues/tens"
        push = {"subscribers": to, "retries": 100, "retries_delay": 3600}
        answer = self._ask("PUT", self._paths["queue"], {"queue": {"type": "multicast", "push": push}})
        assert answer.status in {200, 201}, answer

    def _make_stream(self) -> None:
        stream = self._paths["stream"] = self._create("/api/v1/stream", {"name": "sales"})["id"]
        configs: dict[str, tuple[str, Form, dict[str, Any]]] = {
            "bucket": ("amazonS3", Form.S3, {"bucket": "sales"}),
            "shards": ("kinesis", Form.KINESIS, {"streamName": "sales"}),
            "url": ("http", Form.HTTP, {}),
        }
        arns = {"bucket": "arn:aws:s3:::sales/*", "shards": f"arn:aws:kinesis:{REGION}:*:stream/sales"}
        for name, (kind, form, config) in configs.items():
            receiver = self._receiver(name, form, arns.get(name, ""))
            if form is Form.HTTP:
                config["url"] = f"https://{receiver.name}/in"
            else:
                self._lets_in(receiver, f"/api/v1/stream/{stream}")
                config |= {"region": REGION, "roleArn": receiver.role, "endpointUrl": f"https://{receiver.name}"}
            wanted = {"type": kind, "config": config, "batchSize": 4}
            if name == "bucket":
                wanted["maxWaitSecs"] = WAITS_S
            path = f"/api/v1/stream/{stream}/sink"
            self._paths[name] = f"{path}/{self._create(path, wanted)['id']}"
            self._looked[name] = []
        if self.polled:
            poller = self._create(f"/api/v1/stream/{stream}/sink", {"type": "poller", "config": {}})
            self._paths["poller"] = f"/api/v1/stream/{stream}/sink/{poller['id']}"
            self._looked["poller"] = []

    def _make_source(self) -> None:
        source = self._create("/ingest/api/v1/source", {"name": "theirs", "type": "generic-webhook"})
        self._paths["source"] = "/" + source["ingestUrl"].split("/", 3)[3]
        receiver = self._receiver("passed-on", Form.HTTP)
        path = f"/ingest/api/v1/source/{source['id']}/endpoint"
        self._create(path, {"url": f"https://{receiver.name}/in"})

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Producers of messages, events and webhooks of others; who looks how far sinks are; who reads a stream."""
        acts: dict[str, Callable[[], object]] = {}
        for name, act in {
            "app": self._post,
            "stream": self._post_events,
            "source": self._come,
            "queue": self._post_tens,
        }.items():
            random = self._chance(f"producer-{name}")
            acts[f"producer-{name}"] = partial(
                self._each_while_traffic, random, partial(self._several, random, act), an_hour=self._rate
            )
        random = self._chance("watcher")
        acts["watcher"] = partial(self._each_while_traffic, random, partial(self._look, random), an_hour=LOOKS_AN_HOUR)
        acts["reader"] = self._read_on
        return acts

    def _read_on(self) -> None:
        """Read the stream, a few events at a time, from behind what was read; without an end."""
        iterator = ""
        while True:
            asked = f"?limit=7&iterator={iterator}" if iterator else "?limit=7"
            answer = self._ask("GET", f"{self._paths['poller']}/events{asked}")
            now = self._account.scheduler.now
            if answer.status == 200:
                iterator = answer.body["iterator"]
                self._read += [_read(now, each) for each in answer.body["data"]]
            if answer.status != 200 or answer.body["done"]:
                self._account.scheduler.sleep(READS_EVERY_S * SECOND)

    def _several(self, random: Random, act: Callable[[Random], None]) -> None:
        """One, or several at once, so that batches come about."""
        for _ in range(random.choice((1, 1, 6))):
            self._account.scheduler.spawn(partial(act, random))

    def _new(self, of: str) -> tuple[str, dict[str, str]]:
        self._numbers[of] += 1
        marker = f"{of}-{self._numbers[of]}"
        return marker, {"marker": marker, "text": "grüß dich"}

    def _until_taken(self, of: str, payload: Mapping[str, str], ask: Callable[[], Any], key: str = "") -> None:
        """Post until there is an answer."""
        began = self._account.scheduler.now
        taken = self._until({"app": 202, "stream": 202, "source": 200}[of], ask, tries=8)
        exchange = Exchange(began, self._account.scheduler.now, 202 if taken else 0)
        self.sent[of].append(Sent(payload["marker"], json.dumps(payload), exchange, key))

    def _post(self, random: Random) -> None:
        self._post_keyed(random.choice(("", *KEYS)))

    def _post_keyed(self, key: str) -> None:
        """Post a message with an ordering key, or without."""
        marker, payload = self._new("app")
        body = {"eventType": TYPE, "payload": payload} | ({"orderingKey": key} if key else {})
        path = f"/api/v1/app/{self._paths['app']}/msg"
        self._until_taken("app", payload, lambda: self._ask("POST", path, body, **{"idempotency-key": marker}), key)

    def _post_events(self, random: Random) -> None:  # noqa: ARG002 (as the others)
        marker, payload = self._new("stream")
        body = {"events": [{"eventType": TYPE, "payload": json.dumps(payload)}]}
        path = f"/api/v1/stream/{self._paths['stream']}/events"
        self._until_taken("stream", payload, lambda: self._ask("POST", path, body, **{"idempotency-key": marker}))

    def _post_tens(self, random: Random) -> None:
        """Post several messages with one request, once: what is not answered may be there or not."""
        messages = [self._new("queue") for _ in range(random.randrange(4, 11))]
        began = self._account.scheduler.now
        body = {"messages": [{"body": json.dumps(payload)} for _, payload in messages]}
        answer = self._ask("POST", f"{self._paths['queue']}/messages", body)
        exchange = Exchange(began, self._account.scheduler.now, answer.status)
        self.sent["queue"] += [Sent(marker, json.dumps(payload), exchange) for marker, payload in messages]

    def _come(self, random: Random, often: float = REPEATED) -> None:
        """A webhook of somebody else, who may send it again though it was taken."""
        marker, payload = self._new("source")
        send = partial(self._account.http, "POST", self._paths["source"], payload, headers={"webhook-id": marker})
        self._until_taken("source", payload, send)
        if random.random() < often:
            self._account.scheduler.sleep(random.choice((0, 5, 600)) * SECOND)
            self._account.note(f"provider repeats {marker}: {send().status}")

    def _look(self, random: Random) -> None:
        self._look_at(random.choice([*self._looked]))

    def _look_at(self, name: str) -> None:
        """Ask how far a sink is."""
        answer = self._ask("GET", self._paths[name])
        if answer.status == 200:
            self._looked[name].append((self._account.scheduler.now, answer.body["currentIterator"]))

    def _is_own(self, message: Message) -> bool:
        return message.project == self._project

    def talk(self) -> None:
        """Streams, sources and receivers on AWS, talked through."""
        talk = self._talking_webhooks()
        streams.webhooks(talk)
        senders.webhooks(talk)
        arrivals.webhooks(talk)
        aws_receivers.webhooks(talk)
        aws_calls.webhooks(talk)
        aws_destinations.webhooks(talk)
        written.webhooks(talk)
        stream_meanwhile.webhooks(talk)

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        faults = self._faults()
        calm = not self._account.weather.storms
        model = Sinks(self.judgement, faults, calm=calm)
        places = self._places()
        off_s = self._clocks_off_s + 0.1
        if self.coded:
            self._check_coded(model)
        for name, receiver in self.receivers.items():
            if name == CODED:
                continue
            of = (
                "source"
                if name == "passed-on"
                else "app"
                if name in PLACES
                else "queue"
                if name in OF_QUEUE
                else "stream"
            )
            order = Order(keyed=name in FIFO, whole=of == "stream", off_s=off_s)
            well_until = next((at for at, each in receiver.troubles if each is not Trouble.NONE), FOREVER)
            taken = _taken(receiver)
            if name == "fifo" and self.wraps:
                wrapped = [each for each in taken if _is_wrapped(each.body)]
                taken = [each for each in taken if not _is_wrapped(each.body)]
                sent = [replace(each, body=_wrapped(each.body)) for each in self.sent[of]]
                model.judge(WRAPPED, sent, wrapped, order, well_until=well_until)
            looked = self._looks(name, places)
            model.judge(name, self.sent[of], taken, order, well_until=well_until, looked=looked)
        if self.polled:
            whole = Order(whole=True, off_s=off_s)
            looked = self._looks("poller", places)
            model.judge("poller", self.sent["stream"], self._read, whole, well_until=0, looked=looked)
        yield from self.judgement.total()
        for receiver in self.receivers.values():
            for each in receiver.misused:
                yield Violation("keys that do not open it", receiver.name, each)
        for _, owed in self._owed():
            if not self._has_ended(owed):
                yield self._never_ended(owed, owed[1])

    def _check_coded(self, model: Sinks) -> None:
        """What has code gets what the code makes of each message, the same at each try, and nothing that it cancels."""
        taken, drawn = [], dict[str, Any]()
        for each in _taken(self.receivers[CODED]):
            said = json.loads(each.body)
            chance = said.pop("drawn", None)
            same = drawn.setdefault(each.marker, chance) == chance
            self.judgement.fact(same, "another form at a sink", each.marker, str(chance))
            self.judgement.fact(not _cancels(each.marker), "arrived though cancelled", each.marker, CODED)
            taken.append(replace(each, body=json.dumps(said)))
        sent = [replace(each, body=json.dumps({**json.loads(each.body), "type": TYPE})) for each in self.sent["app"]]
        # A try whose code fails may be late.
        model.judge(CODED, [each for each in sent if not _cancels(each.marker)], taken, Order(), well_until=0)

    def _looks(self, name: str, places: Mapping[str, str]) -> list[Looked]:
        """How far a sink was said to be, each time."""
        return [
            Looked(at, frozenset(marker for marker, place in places.items() if place <= (engine_id(position) or "")))
            for at, position in self._looked.get(name, ())
        ]

    def _places(self) -> dict[str, str]:
        """The hub's own id of each event of the stream, by its marker, as its receivers were told."""
        arrived = [each for name in ("bucket", "shards") for each in self.receivers[name].taken]
        return {each.marker: engine_id(each.message_id) or "" for each in arrived}


def _arn(service: str, name: str) -> str:
    """The ARN of a queue, topic, bus or function of a name."""
    kinds = {"events": "event-bus/", "lambda": "function:"}
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{kinds.get(service, '')}{name}"


def _cancels(marker: str) -> bool:
    """Whether the code cancels a message."""
    return int(marker.rpartition("-")[2]) % 3 == 0


def _wrapped(body: str) -> str:
    """A payload in its envelope."""
    return f'{{"payload":{body},"eventType":"{TYPE}"}}'


def _is_wrapped(body: str) -> bool:
    return body.startswith('{"payload":')


def _read(at: int, event: Mapping[str, Any]) -> Taken:
    """An event that was read."""
    payload = event["payload"]
    return Taken(at, json.loads(payload)["marker"], "", payload, sure=True)


def _taken(receiver: Receiver) -> list[Taken]:
    """What a receiver took, as the model wants it; of requests whose answer came, it is sure."""
    return [
        Taken(
            each.seen.at,
            each.marker,
            engine_id(each.message_id) or each.message_id,
            each.body,
            each.acknowledged and each.seen.answered_at is not None,
            each.group,
            each.place,
        )
        for each in receiver.taken
    ]


class SmallSinksWorld(SinksWorld):
    """A few of each, the same each time: half of what is sent together is refused, keys end, an answer is lost, and a
    bus is down for a day; the others are well.
    """

    name = "small sinks"
    of_application = ("fifo", "queue", "bus")
    wraps = tens = polled = coded = False
    most_excused = 6
    struck_s = 5

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """The script alone."""
        return {"script": self._script}

    def _script(self) -> None:
        scheduler, random = self._account.scheduler, self._random
        self._begin_troubles(scheduler.now)
        for keys, events in ((("a", "a", ""), 2), (("a",), 1)):
            for key in keys:
                scheduler.spawn(partial(self._post_keyed, key))
            scheduler.spawn(partial(self._post_in_a_row, random, events))
            scheduler.spawn(partial(self._come, random, often=1))
            for wait in (2, 3, 4):
                scheduler.sleep(wait * SECOND)
                for name in self._looked:
                    self._look_at(name)

    def _post_in_a_row(self, random: Random, count: int) -> None:
        for _ in range(count):
            self._post_events(random)

    def _begin_troubles(self, now: int) -> None:
        spells: dict[str, list[tuple[int, Trouble, int]]] = {
            "fifo": [(0, Trouble.HALF, 12), (15, Trouble.KEYS, 40)],
            "queue": [(0, Trouble.HALF, 12)],
            "bucket": [(0, Trouble.LOSES, 15)],
            "shards": [(0, Trouble.HALF, 12), (15, Trouble.THROTTLES, 40)],
            "bus": [(10, Trouble.DOWN, 90)],
        }
        for name, receiver in self.receivers.items():
            receiver.troubles = [(0, Trouble.NONE)]
            for begins, trouble, ends in spells.get(name, ()):
                receiver.troubles += [(now + begins * SECOND, trouble), (now + ends * SECOND, Trouble.NONE)]


__all__ = ["SinksWorld", "SmallSinksWorld"]
