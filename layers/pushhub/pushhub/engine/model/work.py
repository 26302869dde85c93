"""What travels through SQS: "look at this delivery", with all that a first attempt needs, so that it reads nothing."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.numerals import digits
from pushhub.engine.model.deflated import Deflated, StoredBody
from pushhub.engine.model.keys import Addressee, DeliveryKey
from pushhub.engine.model.message import DESCENDANTS, BodyRef, Message, Ordering
from pushhub.engine.model.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_ID_DIGITS = 19
"""Digits of a message's id (:mod:`pushhub.base.ids`)."""

PACK_ORDERS = 10
"""Maximum number of orders in one SQS message."""

PACK_SECONDS = 100
"""The same of second orders, which carry no message, and of which nearly none leads to an attempt."""

PACK_BYTES = 60_000
"""Maximum size of a pack of several orders: SQS bills each 64 KB of payload as a request."""

GROUPS_OF_A_PROJECT = 4
"""Message groups of a project. SQS considers a group noisy once it has a tenth of all messages in flight; with this few
groups, each group of a project that alone has a backlog counts as noisy.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """One delivery to look at. Stale, early and duplicate orders are harmless: the stored state decides.

    Attributes:
        message: The whole message, including its body or claim check, so that a first attempt reads nothing else. None:
            it is read from the store.
        manual: The order is for a manual try only; the automatic tries have orders of their own.
        version: The only version of the delivery that the order is for; if the delivery has changed when the order is
            first received, the order is void. None: for any version.
        wakes: The order is for no delivery: it wakes a run that takes the lease at its subscriber
            (:mod:`pushhub.engine.flow.leases`).
        part: Which part of the subscriber's rate a wake-up is for.
        until: The order makes the delivery's first try before that time (epoch milliseconds), or none: another one will
            come (:mod:`pushhub.engine.model.eager`). None: it is the only one.
        second: It is that other one: void when it is first received if the delivery has been tried.
    """

    key: DeliveryKey
    queue: str
    message: Message | None = None
    manual: bool = False
    version: int | None = None
    wakes: bool = False
    part: int = 0
    until: int | None = None
    second: bool = False

    @classmethod
    def wake_up(cls, key: DeliveryKey, queue: str, part: int = 0) -> WorkOrder:
        """Wakes a run that takes the lease at the subscriber of a delivery, or of a part of its rate."""
        return cls(key=key._replace(message_id=""), queue=queue, wakes=True, part=part)

    @classmethod
    def carrying(cls, message: Message, subscriber_id: str) -> WorkOrder:
        """The order for a delivery of a message, with the message in it."""
        return cls(key=message.delivery_key(subscriber_id), queue=message.queue, message=message)

    @property
    def for_any_state(self) -> WorkOrder:
        """The order for its delivery in whatever state it is: for orders that have been received before, or go on in
        another message.
        """
        return replace(self, version=None, second=False)

    @property
    def identity(self) -> dict[str, str]:
        """The log fields that identify the delivery."""
        return {
            "project": self.key.project,
            "queue": self.queue,
            "message_id": self.key.message_id,
            "subscriber_id": self.key.subscriber_id,
        }

    @property
    def addressee(self) -> Addressee:
        """The subscriber: orders for the same one may share an SQS message."""
        return self.key.project, self.key.queue_uid, self.key.subscriber_id

    @property
    def group(self) -> str:
        """``MessageGroupId``: the project, and one of a few parts of its subscribers.

        SQS fair queues thus see a project as a few tenants, however many queues it has, and a busy subscriber delays at
        most a part of the project's other subscribers (docs/decisions/projects.md).
        """
        part = zlib.crc32("/".join(self.addressee).encode()) % GROUPS_OF_A_PROJECT
        return f"{self.key.project}.{part}"

    def encode(self) -> str:
        """The SQS message body (JSON)."""
        fields: dict[str, Any] = {
            "project": self.key.project,
            "queue": self.queue,
            "queue_uid": self.key.queue_uid,
            "message_id": self.key.message_id,
            "subscriber_id": self.key.subscriber_id,
        }
        if self.manual:
            fields["manual"] = True
        if self.wakes:
            fields["call"] = True
        if self.part:
            fields["part"] = self.part
        if self.version is not None:
            fields["version"] = self.version
        if self.until is not None:
            fields["until"] = self.until
        if self.second:
            fields["second"] = True
        if self.message is not None:
            fields |= _carried(self.message, self.key.subscriber_id)
        return _dumped(fields)

    @classmethod
    def decode(cls, text: str) -> WorkOrder:
        """Read an SQS message body.

        Raises:
            ValueError: It is not one of our work orders (the caller leaves it to the dead-letter queue).
        """
        return cls.read(json_text.stored(text))

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> WorkOrder:
        """Read the JSON object of an order. Raises like :meth:`decode`."""
        try:
            key = DeliveryKey(*(str(fields[name]) for name in DeliveryKey._fields))
            # Runs reckon with the time in it, and one order must not end a run with all others in it.
            if not fields.get("call") and digits(key.message_id, MOST_ID_DIGITS) is None:
                raise ValueError("not a work order: message_id is no number")
            return cls(
                key=key,
                queue=fields["queue"],
                message=_message(fields, key) if any(each in fields for each in _BODIES) else None,
                manual=bool(fields.get("manual")),
                version=fields.get("version"),
                wakes=bool(fields.get("call")),
                part=int(fields.get("part", 0)),
                until=fields.get("until"),
                second=bool(fields.get("second")),
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"not a work order: {error!r}") from error


_BODIES = ("body", "body_base64", "body_deflated", "body_ref")
"""Fields of an order that can hold its message's body; only one of them is set. The order for a message that was
deleted before it was dispatched has none, so the message is read, and found to be gone.
"""


def _carried(message: Message, subscriber_id: str) -> dict[str, Any]:
    """The fields of an order that carry its message."""
    fields: dict[str, Any] = {
        "accepted_at": message.accepted_at,
        "due_at": message.due_at,
        "expires_at": message.expires_at,
        "body_size": message.body_size,
    }
    if message.unicast:
        fields["targets"] = list(message.subscriber_ids)
    if message.headers:
        fields["headers"] = dict(message.headers)
    if message.hops:
        fields["hops"] = message.hops
    if message.root is not None:
        fields["root"] = message.root
    if message.ordering is not None:
        before = message.ordering.previous.get(subscriber_id)
        fields["ordering"] = [message.ordering.key, message.ordering.sequence, *([before] if before else [])]
    if message.trace is not None:
        fields["trace"] = message.trace.text
    # The reader of the order knows about one delivery only, so the allowance of the others is subtracted here.
    allowance = message.allowance(subscriber_id)
    if allowance != DESCENDANTS:
        fields["descendants"] = allowance
    if message.body_ref is not None:
        ref = message.body_ref
        fields["body_ref"] = [ref.key, ref.offset, ref.length]
    elif message.body is not None:
        fields |= _carried_body(message.body)
    return fields


def _carried_body(body: StoredBody) -> dict[str, str]:
    if isinstance(body, Deflated):
        return {"body_deflated": base64.b64encode(body.content).decode()}
    text = _as_text(body)
    return {"body_base64": base64.b64encode(body).decode()} if text is None else {"body": text}


def _message(fields: Mapping[str, Any], key: DeliveryKey) -> Message:
    body: StoredBody | None = None
    if "body_deflated" in fields:
        content = base64.b64decode(fields["body_deflated"], validate=True)
        body = Deflated(content, int(fields["body_size"]))
    elif "body" in fields:
        body = fields["body"].encode()
    elif "body_base64" in fields:
        body = base64.b64decode(fields["body_base64"], validate=True)
    ref = fields.get("body_ref")
    unicast = key.subscriber_id == "*"
    return Message(
        project=key.project,
        queue=fields["queue"],
        queue_uid=key.queue_uid,
        message_id=key.message_id,
        body=body,
        body_ref=BodyRef(key=ref[0], offset=ref[1], length=ref[2]) if ref else None,
        body_size=int(fields["body_size"]),
        headers=fields.get("headers", {}),
        accepted_at=int(fields["accepted_at"]),
        due_at=int(fields["due_at"]),
        expires_at=int(fields["expires_at"]),
        subscriber_ids=tuple(fields["targets"]) if unicast else (key.subscriber_id,),
        unicast=unicast,
        hops=int(fields.get("hops", 0)),
        root=fields.get("root"),
        ordering=_ordering(fields["ordering"], key.subscriber_id) if "ordering" in fields else None,
        descendants=int(fields.get("descendants", DESCENDANTS)),
        trace=Trace.read(fields["trace"]) if "trace" in fields else None,
    )


def _ordering(place: Sequence[Any], subscriber_id: str) -> Ordering:
    key, sequence, *before = place
    return Ordering(key=str(key), sequence=int(sequence), previous={subscriber_id: str(before[0])} if before else {})


def _as_text(body: bytes) -> str | None:
    """The body as text, or None when base64 is shorter (control characters take six bytes each) or it is not text."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    quotes = 2
    return text if len(_dumped(text).encode()) <= -(-len(body) // 3) * 4 + quotes else None


def _dumped(value: Any) -> str:
    text = json_text.write(value)
    # SQS refuses these two characters, although JSON strings may contain them.
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def pack(orders: Sequence[WorkOrder]) -> list[tuple[str, str]]:
    """Pack orders for the same subscriber into shared SQS messages, because SQS bills by message.

    Returns:
        (``MessageGroupId``, SQS message body) of each pack; orders for one subscriber stay in their order.
    """
    together: dict[tuple[Addressee, bool], list[WorkOrder]] = {}
    for order in orders:
        together.setdefault((order.addressee, order.second), []).append(order)
    return [
        (each[0].group, text)
        for (_, second), each in together.items()
        for text in _packed([order.encode() for order in each], PACK_SECONDS if second else PACK_ORDERS)
    ]


def _packed(texts: Sequence[str], most: int) -> Iterator[str]:
    waiting: list[str] = []
    size = 0
    for text in texts:
        bytes_ = len(text.encode())
        if waiting and (len(waiting) == most or size + bytes_ > PACK_BYTES):
            yield _joined(waiting)
            waiting, size = [], 0
        waiting.append(text)
        size += bytes_ + 1
    if waiting:
        yield _joined(waiting)


def _joined(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"


def decode_pack(text: str) -> list[WorkOrder]:
    """Read an SQS message body of one or several orders.

    Raises:
        ValueError: It is neither.
    """
    if not text.startswith("["):
        return [WorkOrder.decode(text)]
    fields = json_text.stored(text)
    return [WorkOrder.read(each) for each in fields]
