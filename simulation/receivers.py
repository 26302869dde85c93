"""Models of what is at the other end of a sink: queues, topics, event buses, functions, buckets and data streams of
other people's accounts, and URLs that take batches; their troubles, and what each has taken, which is the truth.

By the API references of SQS, SNS, EventBridge, Lambda, S3 and Kinesis. They know whose keys they are shown.
"""

from __future__ import annotations

import base64
import bisect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pushhub.base.ports import PushRequest
from simulation.conditions import Conditions
from simulation.endpoints import Asked, Endpoint, Reply
from simulation.scheduler import SECOND
from simulation.sts import Sts
from simulation.weather import HOUR, MINUTE

DROPS_S = 300
"""A FIFO queue drops what it has taken within so many seconds, by its id for deduplication."""

OUTAGE = 20 * HOUR
"""How long some receivers are down. An endpoint's eight tries take 22 hours at least, so none of them is given up."""
OUT = 0.1
"""How often a receiver is down for so long."""

_CREDENTIAL = re.compile(r"Credential=([^/]+)/")


class Trouble(StrEnum):
    """What is wrong with a receiver."""

    NONE = "none"
    THROTTLES = "throttles"
    DENIES = "denies"
    HALF = "half"
    """It takes every second entry of a batch."""
    KEYS = "keys"
    """It knows no key that was given before the trouble began."""
    ERRORS = "errors"
    DOWN = "down"
    """Nothing listens there."""
    LOSES = "loses"
    """It takes all of it, and its answer is lost."""


class Form(StrEnum):
    """How it is spoken to."""

    SQS = "sqs"
    SNS = "sns"
    LAMBDA = "lambda"
    EVENTS = "events"
    S3 = "s3"
    KINESIS = "kinesis"
    HTTP = "http"


@dataclass(frozen=True)
class Arrived:
    """Something that a receiver has taken.

    Attributes:
        seen: The request that brought it.
        marker: Which one it is, by the payload.
        message_id: The hub's id of it; empty if it was not told.
        body: The payload, as text.
        group: Its message group or partition.
        place: The object that it is in.
        acknowledged: Whether the answer said that it was taken.
    """

    seen: Asked
    marker: str
    message_id: str
    body: str
    group: str
    place: str
    acknowledged: bool


@dataclass(frozen=True)
class _Entry:
    message_id: str
    body: str
    group: str = ""
    place: str = ""
    once: str = ""


ACTIONS = {
    Form.SQS: "sqs:SendMessage",
    Form.SNS: "sns:Publish",
    Form.LAMBDA: "lambda:InvokeFunction",
    Form.EVENTS: "events:PutEvents",
    Form.S3: "s3:PutObject",
    Form.KINESIS: "kinesis:PutRecords",
}
"""The one action that the keys of a role may be used for."""

_REFUSED = {
    Trouble.THROTTLES: ("ThrottlingException", "SlowDown", 400, 503),
    Trouble.DENIES: ("AccessDeniedException", "AccessDenied", 400, 403),
    Trouble.KEYS: ("ExpiredTokenException", "ExpiredToken", 400, 400),
    Trouble.ERRORS: ("InternalFailure", "InternalError", 500, 500),
}
"""What each trouble is called in JSON and in XML, and with which status."""


class Receiver(Endpoint):
    """A receiver.

    Args:
        account: Where it lives.
        sts: Has given the keys.
        name: Name of its host.
        form: How it is spoken to.
        troubles: Its troubles in order, each with the time from which on it lasts (microseconds).
        role: The role that may write to it; empty for a URL.
        fifo: Whether it drops what it has taken already.
        place: The ARN of what the role's keys have to be bounded to; empty for anything.

    Attributes:
        taken: What it has taken, in order.
        misused: Requests with keys that do not open it, or had ended.
        external_id: With which its role lets in.
        sts: See above.
    """

    def __init__(
        self,
        account: Conditions,
        sts: Sts,
        name: str,
        form: Form,
        troubles: Sequence[tuple[int, Trouble]],
        *,
        role: str = "",
        fifo: bool = False,
        place: str = "",
    ) -> None:
        super().__init__(account, name, [])
        self.sts = sts
        self.form = form
        self.troubles = [*troubles]
        self.role = role
        self.fifo = fifo
        self.place = place
        self.taken: list[Arrived] = []
        self.misused: list[str] = []
        self.external_id = ""
        self._calls = 0
        self._once: dict[str, int] = {}

    def trouble(self) -> tuple[int, Trouble]:
        """Its trouble now, and since when."""
        found = bisect.bisect_right(self.troubles, self.account.scheduler.now, key=lambda each: each[0])
        return self.troubles[found - 1] if found else (0, Trouble.NONE)

    def listens(self) -> bool:
        """Whether anything listens there."""
        return self.trouble()[1] is not Trouble.DOWN

    def troubled(self, begins: int, ends: int) -> bool:
        """Whether it is in trouble at any time between two moments (microseconds)."""
        spells = zip(self.troubles, [*self.troubles[1:], (10**18, Trouble.NONE)], strict=True)
        return any(
            each is not Trouble.NONE and since <= ends and begins <= until for (since, each), (until, _) in spells
        )

    def asked(self, request: PushRequest, environment: str) -> tuple[Asked, Reply]:
        """See :meth:`Endpoint.asked`."""
        account = self.account
        account.asked += 1
        headers = {name.lower(): value for name, value in request.headers.items()}
        entries = self._entries(urlsplit(request.url).path, headers, request.body)
        ids = " ".join(each.message_id for each in entries)
        seen = Asked(account.scheduler.now, headers, request.body, ids, environment)
        self.log.append(seen)
        since, trouble = self.trouble()
        # One that is overloaded is slow, so that more waits together.
        quick = self._random.randrange(5_000, 200_000) + (SECOND if trouble is Trouble.HALF else 0)
        if trouble is Trouble.DOWN:
            seen.arrived = False
            return seen, Reply(error_class="connect", takes=quick)
        fresh = self._opens(headers, since)
        refused = _REFUSED.get(trouble)
        if refused is not None and not (trouble is Trouble.KEYS and fresh):
            reply = self._refusal(refused, quick)
        else:
            reply = self._take(seen, entries, trouble, quick)
        seen.status = 0 if reply.error_class else reply.status
        account.note(f"{self.name} asked {ids} {trouble} {reply.status} {reply.error_class}")
        return seen, reply

    def _opens(self, headers: Any, since: int) -> bool:
        """Check the keys of a request; returns whether they were given since a moment."""
        if not self.role:
            return True
        found = _CREDENTIAL.search(headers.get("authorization", ""))
        keys = self.sts.given.get(found[1]) if found else None
        now_ms = self.sts.now_ms()
        if keys is None or (keys.role, keys.external_id) != (self.role, self.external_id):
            self.misused.append(f"keys of {keys and keys.role} at {self.name}")
            return False
        if self.place and not keys.open_only(ACTIONS[self.form], self.place):
            self.misused.append(f"keys that open more than {self.place}: {keys.policy}")
        if keys.ends_at <= now_ms:
            self.misused.append(f"keys that ended {now_ms - keys.ends_at} ms ago at {self.name}")
        return keys.given_at >= now_ms - (self.account.scheduler.now - since) // 1000

    def _entries(self, path: str, headers: Any, body: bytes) -> list[_Entry]:
        if self.form is Form.S3:
            lines = map(json.loads, body.decode().splitlines())
            return [_Entry(each["id"], json.dumps(each["payload"]), place=path) for each in lines]
        if self.form is Form.SNS:
            return _published(dict(parse_qsl(body.decode())))
        said = json.loads(body)
        if self.form is Form.LAMBDA:
            return [_Entry(said["headers"]["webhook-id"], said["body"])]
        if self.form is Form.HTTP:
            events = said["events"] if "events" in said else [{"payload": json.dumps(said)}]
            return [_Entry(headers["webhook-id"], each["payload"]) for each in events]
        if self.form is Form.SQS:
            return [
                _Entry(
                    each["MessageAttributes"]["webhook-id"]["StringValue"],
                    each["MessageBody"],
                    each.get("MessageGroupId", ""),
                    once=each.get("MessageDeduplicationId", ""),
                )
                for each in said.get("Entries", [said])
            ]
        if self.form is Form.EVENTS:
            return [_Entry(each["Resources"][0], each["Detail"]) for each in said["Entries"]]
        records = [(json.loads(base64.b64decode(each["Data"])), each["PartitionKey"]) for each in said["Records"]]
        return [_Entry(each["id"], json.dumps(each["payload"]), key) for each, key in records]

    def _refusal(self, refused: tuple[str, str, int, int], quick: int) -> Reply:
        code, in_xml, status, xml_status = refused
        if self.form in {Form.S3, Form.SNS}:
            return Reply(xml_status, quick, body=f"<Error><Code>{in_xml}</Code></Error>".encode())
        return Reply(status, quick, body=json.dumps({"__type": f"com.amazonaws#{code}", "message": "no"}).encode())

    def _take(self, seen: Asked, entries: Sequence[_Entry], trouble: Trouble, quick: int) -> Reply:
        """Take entries: all of them, or half."""
        self._calls += 1
        half = trouble is Trouble.HALF and self.form not in {Form.S3, Form.HTTP}
        # Of one alone, every second call is refused.
        place = self._calls if len(entries) == 1 else 0
        failed = {number for number in range(len(entries)) if half and (number + place) % 2}
        for number, each in enumerate(entries):
            if number not in failed and not self._dropped(seen, each):
                # A data stream that took a part is sent all of it again.
                acknowledged = trouble is not Trouble.LOSES and not (failed and self.form is Form.KINESIS)
                said = json.loads(each.body)
                marker = said.get("payload", said)["marker"]
                self.taken.append(
                    Arrived(seen, marker, each.message_id, each.body, each.group, each.place, acknowledged)
                )
        if trouble is Trouble.LOSES:
            return Reply(error_class="reset", takes=quick)
        if failed and self.form is Form.LAMBDA:
            # It was run, and has raised an error.
            return Reply(200, quick, body=b"{}", headers={"x-amz-function-error": "Unhandled"})
        if failed and self.form in {Form.SQS, Form.SNS} and not _takes_several(seen):
            return self._refusal(_REFUSED[Trouble.ERRORS], quick)
        return Reply(200, quick, body=self._answer(seen, len(entries), failed))

    def _dropped(self, seen: Asked, entry: _Entry) -> bool:
        """Whether a FIFO queue has it already; otherwise it remembers it."""
        if not self.fifo:
            return False
        last = self._once.get(entry.once, -(10**18))
        if last > seen.at - DROPS_S * SECOND:
            return True
        self._once[entry.once] = seen.at
        return False

    def _answer(self, seen: Asked, count: int, failed: set[int]) -> bytes:
        """What it answers, by what became of each entry."""
        if self.form in {Form.S3, Form.HTTP, Form.LAMBDA}:
            return b""
        if self.form is Form.SNS:
            return _said_of(count, failed) if _takes_several(seen) else b"<PublishResponse/>"
        wrong = {"ErrorCode": "InternalFailure", "ErrorMessage": "not now"}
        if self.form is Form.EVENTS:
            said: dict[str, Any] = {"FailedEntryCount": len(failed)}
            said["Entries"] = [wrong if each in failed else {"EventId": f"e-{each}"} for each in range(count)]
        elif self.form is Form.KINESIS:
            taken = {"SequenceNumber": "1", "ShardId": "0"}
            said = {
                "FailedRecordCount": len(failed),
                "Records": [wrong if e in failed else taken for e in range(count)],
            }
        elif _takes_several(seen):
            said = {
                "Successful": [{"Id": str(each), "MessageId": "m"} for each in range(count) if each not in failed],
                "Failed": [{"Id": str(each), "Code": "InternalError", "Message": "not now"} for each in sorted(failed)],
            }
        else:
            said = {"MessageId": "m"}
        return json.dumps(said).encode()


def _takes_several(seen: Asked) -> bool:
    """Whether a request to a queue or topic is one for several messages."""
    return seen.headers.get("x-amz-target", "").endswith("Batch") or b"Action=PublishBatch" in seen.body


def _published(form: dict[str, str]) -> list[_Entry]:
    """The messages of a request to a topic."""
    places = {
        f"{found[0]}."
        for name in form
        if (found := re.match(r"PublishBatchRequestEntries\.member\.\d+", name)) is not None
    }
    return [
        _Entry(
            next(
                form[name.replace(".Name", ".Value.StringValue")]
                for name, value in form.items()
                if name.startswith(f"{place}MessageAttributes") and value == "webhook-id"
            ),
            form[f"{place}Message"],
            form.get(f"{place}MessageGroupId", ""),
            once=form.get(f"{place}MessageDeduplicationId", ""),
        )
        for place in sorted(places or {""}, key=lambda each: (len(each), each))
    ]


def _said_of(count: int, failed: set[int]) -> bytes:
    """What a topic says of several messages."""
    done = "".join(f"<member><Id>{each}</Id></member>" for each in range(count) if each not in failed)
    wrong = "".join(f"<member><Id>{each}</Id><Code>InternalError</Code></member>" for each in sorted(failed))
    return f"<PublishBatchResult><Successful>{done}</Successful><Failed>{wrong}</Failed></PublishBatchResult>".encode()


def troubles(random: Random, hours: float, *, outages: bool = True) -> list[tuple[int, Trouble]]:
    """The troubles of a receiver over some hours: none, with spells of one, or down for most of a day; none at the end.

    Args:
        outages: Whether it may be down for so long.
    """
    found = [(0, Trouble.NONE)]
    if random.random() < OUT and outages:
        at = round(random.random() * hours * HOUR)
        return [*found, (at, Trouble.DOWN), (at + OUTAGE, Trouble.NONE)]
    kinds = [each for each in Trouble if each is not Trouble.NONE]
    at, end = 0, round(hours * HOUR)
    while True:
        at += round(random.expovariate(1 / HOUR))
        if at >= end:
            return found
        found.append((at, random.choice(kinds)))
        at += round(min(random.expovariate(1 / (20 * MINUTE)), 6 * HOUR))
        found.append((min(at, end), Trouble.NONE))
