"""Deliveries as items of the messages table, with the keys of its sparse index."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from pushhub.base.credentials import masked_url
from pushhub.base.gates import NO_PROOF, Proof
from pushhub.base.verdict import Verdict
from pushhub.cloud.records import Record
from pushhub.cloud.table import Item, number, numbers, text, texts
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.delivery import (
    MOST_EARLIER,
    Attempt,
    Delivery,
    DeliveryState,
    EarlierAttempt,
    TargetStatus,
)
from pushhub.engine.model.message import kept_until
from pushhub.engine.model.trace import Span
from pushhub.engine.store._keys import delivery_key, key_of

FEW_SHARDS, SOME_SHARDS, MANY_SHARDS = 1, 8, 32
"""Partitions of a queue in the unsettled index: as long as hardly anything fails, when some deliveries fail together,
and when they fail by the thousand (:mod:`pushhub.engine.store._unsettled_spread`). Each number divides the next, so
that the fewer partitions are among the more.

One partition takes 1,000 writes a second, and when the index is throttled, so are the table's own writes. The outage of
one busy subscriber must not slow the others down.
"""

WAITING = "1#"
"""Prefix of ``unsettled_key`` while a delivery waits after its first attempt. Deliveries given up sort after these."""

GIVEN_UP = "2#"
"""Prefix of ``unsettled_key`` once a delivery was given up."""

_GROUPS = {
    DeliveryState.RETRYING: WAITING,
    DeliveryState.RESERVED: WAITING,
    DeliveryState.POLLING: WAITING,
    DeliveryState.EXHAUSTED: GIVEN_UP,
    DeliveryState.HELD: GIVEN_UP,
}
"""Where deliveries of these states stand in the unsettled index; those of others have no entry."""

_VERDICTS = {
    Verdict.DELIVERED: "d",
    Verdict.RESERVED: "r",
    Verdict.POLL: "w",
    Verdict.POSTPONED: "p",
    Verdict.FAILED: "f",
}
"""What an earlier attempt meant, in one letter; a capital one for a manual attempt."""

_PROOF = Record(Proof).kind

_MEANT = {letter: verdict for verdict, letter in _VERDICTS.items()}


def unsettled_partitions(project: str, queue_uid: str, shards: int) -> tuple[str, ...]:
    """Partition keys of a queue in the unsettled index."""
    return tuple(f"{project}#{queue_uid}#{shard}" for shard in range(shards))


def is_unsettled(delivery: Delivery) -> bool:
    """Whether a delivery has an entry in the unsettled index."""
    return delivery.state in _GROUPS


def kept_until_s(delivery: Delivery) -> int:
    """When a delivery's item goes by its time to live, epoch seconds."""
    return kept_until(delivery.delayed_until or delivery.accepted_at, delivery.expires_at) // 1000


def encode_delivery(delivery: Delivery, shards: int = FEW_SHARDS) -> Item:
    """The whole item.

    Args:
        shards: How many partitions of the unsettled index its entry is to be placed in one of.
    """
    item = delivery_key(delivery.key)
    item |= {
        "kind": text("delivery"),
        "queue": text(delivery.queue),
        "state": text(delivery.state.value),
        "version": number(delivery.version),
        "accepted_at": number(delivery.accepted_at),
        "expires_at": number(delivery.expires_at),
        "tries": number(delivery.tries),
        "attempts": number(delivery.attempts),
        "ttl": number(kept_until_s(delivery)),
    }
    optional = {
        "due_at": delivery.due_at,
        "delayed_until": delivery.delayed_until,
        "cursor": delivery.cursor or None,
        "acknowledged_attempt": delivery.acknowledged_attempt,
        "settled_at": delivery.settled_at,
        "changed_at": delivery.changed_at,
        "asked_at": delivery.asked_at,
        "sequence": delivery.sequence,
        "deferrals": delivery.deferrals or None,
    }
    item |= {name: number(value) for name, value in optional.items() if value is not None}
    if delivery.targets != (delivery.subscriber_id,):
        item["targets"] = texts(delivery.targets)
    if delivery.statuses:
        item["statuses"] = {"M": {target: _encode_status(each) for target, each in delivery.statuses.items()}}
    if delivery.last is not None:
        item["last"] = _encode_attempt(delivery.last, delivery.subscriber_id)
    if delivery.earlier:
        item["earlier"] = {"L": _encode_earlier(delivery)}
    if answers := _encode_answers(delivery):
        item["answers"] = {"L": answers}
    if delivery.order_key is not None:
        item["order_key"] = text(delivery.order_key)
    if delivery.behind is not None:
        item["behind"] = text(delivery.behind)
    if delivery.awaits is not None:
        item["awaits"] = text(delivery.awaits)
    if delivery.added:
        item["added"] = {"BOOL": True}
    if delivery.reason:
        item["reason"] = text(delivery.reason)
    if delivery.update_url is not None:
        item["update_url"] = text(delivery.update_url)
    if delivery.scheduled:
        item["scheduled"] = {"BOOL": True}
    return item | _unsettled_keys(delivery, shards)


@decodes
def decode_delivery(image: Item) -> Delivery:
    """The delivery in a table item, or in an image from the table's stream."""
    project, queue_uid, message_id, subscriber_id = key_of(image)
    targets = tuple(each["S"] for each in image["targets"]["L"]) if "targets" in image else (subscriber_id,)
    statuses = image["statuses"]["M"] if "statuses" in image else {}
    answers = _decode_answers(image["answers"]["L"]) if "answers" in image else ()
    return Delivery(
        project=project,
        queue=image["queue"]["S"],
        queue_uid=queue_uid,
        message_id=message_id,
        subscriber_id=subscriber_id,
        targets=targets,
        accepted_at=int(image["accepted_at"]["N"]),
        expires_at=int(image["expires_at"]["N"]),
        state=DeliveryState(image["state"]["S"]),
        due_at=numbers(image, "due_at"),
        delayed_until=numbers(image, "delayed_until"),
        tries=int(image["tries"]["N"]),
        attempts=int(image["attempts"]["N"]),
        cursor=numbers(image, "cursor") or 0,
        acknowledged_attempt=numbers(image, "acknowledged_attempt"),
        statuses={target: _decode_status(each["M"]) for target, each in statuses.items()},
        last=_decode_attempt(image["last"]["M"], subscriber_id, answers[:1]) if "last" in image else None,
        earlier=_decode_earlier(image["earlier"]["L"], subscriber_id, answers[1:]) if "earlier" in image else (),
        update_url=image["update_url"]["S"] if "update_url" in image else None,
        deferrals=numbers(image, "deferrals") or 0,
        settled_at=numbers(image, "settled_at"),
        changed_at=numbers(image, "changed_at"),
        added="added" in image,
        order_key=image["order_key"]["S"] if "order_key" in image else None,
        sequence=numbers(image, "sequence"),
        behind=image["behind"]["S"] if "behind" in image else None,
        awaits=image["awaits"]["S"] if "awaits" in image else None,
        asked_at=numbers(image, "asked_at"),
        reason=image["reason"]["S"] if "reason" in image else "",
        scheduled="scheduled" in image,
        version=int(image["version"]["N"]),
    )


def _unsettled_keys(delivery: Delivery, shards: int) -> Item:
    # A first success must not write to the index, so a delivery enters it with its first failure or reservation. Its
    # key stays the same while it waits, so further attempts cost no index write, unless its queue was spread meanwhile.
    if not is_unsettled(delivery):
        return {}
    shard = zlib.crc32(delivery.delivery_id.encode()) % shards
    return {
        "unsettled_queue": text(unsettled_partitions(delivery.project, delivery.queue_uid, shards)[shard]),
        "unsettled_key": text(f"{_GROUPS[delivery.state]}{delivery.message_id}#{delivery.subscriber_id}"),
    }


def _encode_status(status: TargetStatus) -> Item:
    fields: Item = {"tries": number(status.tries), "message": text(status.message)}
    if status.status_code is not None:
        fields["code"] = number(status.status_code)
    if status.last_try_at is not None:
        fields["at"] = number(status.last_try_at)
    if status.name is not None:
        fields["name"] = text(status.name)
    if status.url is not None:
        # Whoever made it: no password is stored in a delivery.
        fields["url"] = text(masked_url(status.url))
    return {"M": fields}


def _decode_status(fields: Item) -> TargetStatus:
    return TargetStatus(
        tries=int(fields["tries"]["N"]),
        status_code=numbers(fields, "code"),
        message=fields["message"]["S"],
        last_try_at=numbers(fields, "at"),
        name=fields["name"]["S"] if "name" in fields else None,
        url=fields["url"]["S"] if "url" in fields else None,
    )


def _encode_attempt(attempt: Attempt, subscriber_id: str) -> Item:
    fields: Item = {
        "number": number(attempt.number),
        "verdict": text(attempt.verdict.value),
        "code": number(attempt.status_code),
        "started_at": number(attempt.started_at),
        "finished_at": number(attempt.finished_at),
        "bytes_out": number(attempt.bytes_out),
        "bytes_in": number(attempt.bytes_in),
        "wait_before": number(attempt.wait_before_ms),
    }
    if attempt.error_class:
        fields["error_class"] = text(attempt.error_class)
    if attempt.wait_after_ms is not None:
        fields["wait_after"] = number(attempt.wait_after_ms)
    if attempt.subscriber_id != subscriber_id:
        fields["subscriber_id"] = text(attempt.subscriber_id)
    if attempt.subscriber:
        fields["subscriber"] = text(attempt.subscriber)
    if attempt.dialect != "raw":
        fields["dialect"] = text(attempt.dialect)
    if attempt.tries_max is not None:
        fields["tries_max"] = number(attempt.tries_max)
    if attempt.poll:
        fields["poll"] = {"BOOL": True}
    if attempt.manual:
        fields["manual"] = {"BOOL": True}
    if attempt.span:
        fields["span"] = text(attempt.span.text)
    if attempt.proof != NO_PROOF:
        fields["proof"] = _PROOF.encode(attempt.proof)
    return {"M": fields}


def _decode_attempt(fields: Item, subscriber_id: str, answers: Sequence[str]) -> Attempt:
    return Attempt(
        number=int(fields["number"]["N"]),
        subscriber_id=fields["subscriber_id"]["S"] if "subscriber_id" in fields else subscriber_id,
        verdict=Verdict(fields["verdict"]["S"]),
        status_code=int(fields["code"]["N"]),
        error_class=fields["error_class"]["S"] if "error_class" in fields else "",
        started_at=int(fields["started_at"]["N"]),
        finished_at=int(fields["finished_at"]["N"]),
        bytes_out=int(fields["bytes_out"]["N"]),
        bytes_in=int(fields["bytes_in"]["N"]),
        wait_before_ms=int(fields["wait_before"]["N"]),
        wait_after_ms=numbers(fields, "wait_after"),
        subscriber=fields["subscriber"]["S"] if "subscriber" in fields else "",
        dialect=fields["dialect"]["S"] if "dialect" in fields else "raw",
        tries_max=numbers(fields, "tries_max"),
        poll="poll" in fields,
        manual="manual" in fields,
        span=Span.read(fields["span"]["S"]) if "span" in fields else None,
        proof=_PROOF.decode(fields["proof"]) if "proof" in fields else NO_PROOF,
        answer="".join(answers),
    )


def _encode_answers(delivery: Delivery) -> list[Item]:
    """What is kept of answers, the newest first: each text, and how many answers in a row say it. Those that say
    nothing at the end are left out.
    """
    said = [delivery.last.answer if delivery.last else "", *(each.answer for each in reversed(delivery.earlier))]
    runs = [(each, sum(1 for _ in same)) for each, same in groupby(said)]
    while runs and not runs[-1][0]:
        runs.pop()
    return [part for each, times in runs for part in (text(each), number(times))]


def _decode_answers(items: list[Item]) -> Sequence[str]:
    runs = [(each["S"], int(times["N"])) for each, times in zip(items[::2], items[1::2], strict=True)]
    if any(times not in range(1, MOST_EARLIER + 2) for _, times in runs):
        # An import could bring any number, and this is read by functions that work for others, too.
        raise ValueError("more answers than there are attempts")
    return [each for each, times in runs for _ in range(times)]


def _encode_earlier(delivery: Delivery) -> list[Item]:
    """Earlier attempts, each a short list: a delivery with many retries is written as often as it is tried.

    In an outage one answer is like the other, so a message is stored only where it differs from the one before.
    """
    found: list[Item] = []
    before = ""
    for each in delivery.earlier:
        fields = [
            number(each.number),
            number(each.started_at),
            number(each.took_ms),
            number(each.status_code),
            text(_VERDICTS[each.verdict].upper() if each.manual else _VERDICTS[each.verdict]),
            text("" if each.subscriber_id == delivery.subscriber_id else each.subscriber_id),
        ]
        found.append({"L": fields if each.message == before else [*fields, text(each.message)]})
        before = each.message
    return found


def _decode_earlier(items: list[Item], subscriber_id: str, answers: Sequence[str]) -> tuple[EarlierAttempt, ...]:
    """Earlier attempts.

    Args:
        answers: What is kept of their answers, the newest first.
    """
    found: list[EarlierAttempt] = []
    message = ""
    for item in items:
        count, started_at, took_ms, code, verdict, asked, *said = item["L"]
        message = said[0]["S"] if said else message
        found.append(
            EarlierAttempt(
                number=int(count["N"]),
                subscriber_id=asked["S"] or subscriber_id,
                verdict=_MEANT[verdict["S"].lower()],
                status_code=int(code["N"]),
                message=message,
                started_at=int(started_at["N"]),
                took_ms=int(took_ms["N"]),
                manual=verdict["S"].isupper(),
            )
        )
    for place, answer in enumerate(answers[: len(found)], start=1):
        found[-place] = replace(found[-place], answer=answer)
    return tuple(found)
