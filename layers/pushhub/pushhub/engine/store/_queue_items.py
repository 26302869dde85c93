"""Projects and queues as items of the configuration table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Item, number, numbers, text, texts
from pushhub.engine.model.answer_rules import NO_RULES, AnswerRules, OnStatus, StatusRule
from pushhub.engine.model.backoff import Exponential, FixedDelay, RetryPolicy, Schedule
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.queue import Alert, DeadLetter, FormerSubscriber, PushSettings, Queue, QueueType, Subscriber

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CIRCUIT_NUMBERS = ("failures", "least", "window_s", "probe_s", "most_probe_s")


def encode_queue(queue: Queue) -> Item:
    """All attributes of a queue except its keys."""
    item: Item = {
        "uid": text(queue.uid),
        "line_uid": text(queue.pull_uid),
        "type": text(queue.type),
        "message_timeout": number(queue.message_timeout),
        "message_expiration": number(queue.message_expiration),
        "secret": text(queue.secret),
        "cleared_at": number(queue.cleared_at),
        **({"uncopied_until": number(queue.uncopied_until)} if queue.uncopied_until else {}),
        **({"converted_at": number(queue.converted_at)} if queue.converted_at else {}),
        "created_at": number(queue.created_at),
        "version": number(queue.version),
    }
    if queue.push is not None:
        item["push"] = {
            "M": {
                "subscribers": {"L": [_encode_subscriber(each) for each in queue.push.subscribers]},
                "retries": number(queue.push.retries),
                "retries_delay": number(queue.push.retries_delay),
                "error_queue": text(queue.push.error_queue),
                **_encode_retry(queue.push.retry),
                **_encode_circuit(queue.push.circuit),
                **_encode_rules(None if queue.push.rules == NO_RULES else queue.push.rules),
                **({"credentials": {"B": queue.push.credentials}} if queue.push.credentials else {}),
                **({"former": {"L": [*map(_encode_former, queue.push.former)]}} if queue.push.former else {}),
                **({"eager": {"BOOL": True}} if queue.push.eager else {}),
            }
        }
    if queue.dead_letter is not None:
        item["dead_letter"] = {
            "M": {
                "queue_name": text(queue.dead_letter.queue_name),
                "max_reservations": number(queue.dead_letter.max_reservations),
            }
        }
    if queue.alerts:
        item["alerts"] = {"L": [_encode_alert(each) for each in queue.alerts]}
    if queue.search_fields:
        item["search_fields"] = texts(queue.search_fields)
    return item


def decode_queue(item: Item, project_id: str, name: str) -> Queue:
    """The queue from its item."""
    push: PushSettings | None = None
    if "push" in item:
        fields = item["push"]["M"]
        push = PushSettings(
            subscribers=tuple(_decode_subscriber(each["M"]) for each in fields["subscribers"]["L"]),
            retries=int(fields["retries"]["N"]),
            retries_delay=int(fields["retries_delay"]["N"]),
            error_queue=fields["error_queue"]["S"],
            retry=_decode_retry(fields),
            rules=_decode_rules(fields) or NO_RULES,
            circuit=_decode_circuit(fields),
            credentials=bytes(fields["credentials"]["B"]) if "credentials" in fields else b"",
            former=tuple(_decode_former(each["M"]) for each in fields["former"]["L"]) if "former" in fields else (),
            eager="eager" in fields,
        )
    dead_letter: DeadLetter | None = None
    if "dead_letter" in item:
        fields = item["dead_letter"]["M"]
        dead_letter = DeadLetter(
            queue_name=fields["queue_name"]["S"], max_reservations=int(fields["max_reservations"]["N"])
        )
    return Queue(
        project=project_id,
        name=name,
        uid=item["uid"]["S"],
        pull_uid=item["line_uid"]["S"],
        type=QueueType(item["type"]["S"]),
        message_timeout=int(item["message_timeout"]["N"]),
        message_expiration=int(item["message_expiration"]["N"]),
        push=push,
        dead_letter=dead_letter,
        alerts=tuple(_decode_alert(each["M"]) for each in item["alerts"]["L"]) if "alerts" in item else (),
        search_fields=tuple(each["S"] for each in item["search_fields"]["L"]) if "search_fields" in item else (),
        secret=item["secret"]["S"],
        cleared_at=int(item["cleared_at"]["N"]),
        uncopied_until=int(item["uncopied_until"]["N"]) if "uncopied_until" in item else 0,
        converted_at=int(item["converted_at"]["N"]) if "converted_at" in item else 0,
        created_at=int(item["created_at"]["N"]),
        version=int(item["version"]["N"]),
    )


def _encode_former(former: FormerSubscriber) -> Item:
    return {
        "M": {"subscriber_id": text(former.subscriber_id), "name": text(former.name), "url": text(former.url)},
    }


def _decode_former(fields: Item) -> FormerSubscriber:
    return FormerSubscriber(
        subscriber_id=fields["subscriber_id"]["S"], name=fields["name"]["S"], url=fields["url"]["S"]
    )


def _encode_subscriber(subscriber: Subscriber) -> Item:
    return {
        "M": {
            "subscriber_id": text(subscriber.subscriber_id),
            "name": text(subscriber.name),
            "url": text(subscriber.url),
            "headers": _encode_headers(subscriber.headers),
            "timeout_s": number(subscriber.timeout_s),
            **_encode_retry(subscriber.retry),
            **_encode_rules(subscriber.rules),
            **_encode_limits(subscriber.limits),
            **({"disabled": {"BOOL": True}} if subscriber.disabled else {}),
            **({"paused": {"BOOL": True}} if subscriber.paused else {}),
            **({"sealed": {"B": subscriber.sealed}} if subscriber.sealed else {}),
        }
    }


def _decode_subscriber(fields: Item) -> Subscriber:
    return Subscriber(
        subscriber_id=fields["subscriber_id"]["S"],
        name=fields["name"]["S"],
        url=fields["url"]["S"],
        headers={name: value["S"] for name, value in fields["headers"]["M"].items()},
        timeout_s=int(fields["timeout_s"]["N"]),
        retry=_decode_retry(fields),
        rules=_decode_rules(fields),
        limits=_decode_limits(fields),
        disabled="disabled" in fields,
        paused="paused" in fields,
        sealed=bytes(fields["sealed"]["B"]) if "sealed" in fields else b"",
    )


def _encode_retry(policy: RetryPolicy | None) -> Item:
    """The attribute ``retry``, if any: most queues have no policy beyond their number of retries."""
    fields: Item
    match policy:
        case None:
            return {}
        case FixedDelay():
            fields = {"retries": number(policy.retries), "delay_s": number(policy.delay_s)}
        case Exponential():
            fields = {"base_s": _decimal(policy.base_s), "cap_s": _decimal(policy.cap_s)}
            fields |= {"spread": _decimal(policy.spread), "holds": {"BOOL": policy.holds}}
            if policy.max_attempts is not None:
                fields["max_attempts"] = number(policy.max_attempts)
        case Schedule():
            fields = {"waits_s": _decimals(policy.waits_s), "spread": _decimals(policy.spread)}
            fields["holds"] = {"BOOL": policy.holds}
    return {"retry": {"M": fields}}


def _decode_retry(holder: Item) -> RetryPolicy | None:
    if "retry" not in holder:
        return None
    fields: Item = holder["retry"]["M"]
    if "retries" in fields:
        return FixedDelay(retries=int(fields["retries"]["N"]), delay_s=int(fields["delay_s"]["N"]))
    if "base_s" in fields:
        return Exponential(
            base_s=float(fields["base_s"]["N"]),
            cap_s=float(fields["cap_s"]["N"]),
            max_attempts=numbers(fields, "max_attempts"),
            spread=float(fields["spread"]["N"]),
            holds=fields["holds"]["BOOL"],
        )
    least, greatest = (float(each["N"]) for each in fields["spread"]["L"])
    return Schedule(
        waits_s=tuple(float(each["N"]) for each in fields["waits_s"]["L"]),
        spread=(least, greatest),
        holds=fields["holds"]["BOOL"],
    )


def _encode_rules(rules: AnswerRules | None) -> Item:
    """The attribute ``rules``, if answers may ask for anything."""
    if rules is None:
        return {}
    fields: Item = {
        "retry_after": {"BOOL": rules.retry_after},
        "slow_down_s": _decimal(rules.slow_down_s),
        "gone_disables": {"BOOL": rules.gone_disables},
        "delivery_header": {"BOOL": rules.delivery_header},
        "on_status": {
            "L": [
                {"M": {"first": number(each.first), "last": number(each.last), "then": text(each.then)}}
                for each in rules.on_status
            ]
        },
    }
    return {"rules": {"M": fields}}


def _decode_rules(holder: Item) -> AnswerRules | None:
    if "rules" not in holder:
        return None
    fields: Item = holder["rules"]["M"]
    return AnswerRules(
        retry_after=fields["retry_after"]["BOOL"],
        slow_down_s=float(fields["slow_down_s"]["N"]),
        gone_disables=fields["gone_disables"]["BOOL"],
        delivery_header=fields["delivery_header"]["BOOL"],
        on_status=tuple(
            StatusRule(
                first=int(each["M"]["first"]["N"]),
                last=int(each["M"]["last"]["N"]),
                then=OnStatus(each["M"]["then"]["S"]),
            )
            for each in fields["on_status"]["L"]
        ),
    )


def _encode_circuit(circuit: Circuit | None) -> Item:
    if circuit is None:
        return {}
    fields: Item = {name: number(getattr(circuit, name)) for name in _CIRCUIT_NUMBERS}
    fields["share"] = _decimal(circuit.share)
    if circuit.disable_after_s is not None:
        fields["disable_after_s"] = number(circuit.disable_after_s)
    return {"circuit": {"M": fields}}


def _decode_circuit(holder: Item) -> Circuit | None:
    if "circuit" not in holder:
        return None
    fields: Item = holder["circuit"]["M"]
    return Circuit(
        share=float(fields["share"]["N"]),
        disable_after_s=numbers(fields, "disable_after_s"),
        **{name: int(fields[name]["N"]) for name in _CIRCUIT_NUMBERS},
    )


def _encode_limits(limits: Limits | None) -> Item:
    if limits is None:
        return {}
    fields: Item = {}
    if limits.rate_per_s is not None:
        fields["rate_per_s"] = _decimal(limits.rate_per_s)
    if limits.concurrency is not None:
        fields["concurrency"] = number(limits.concurrency)
    return {"limits": {"M": fields}}


def _decode_limits(holder: Item) -> Limits | None:
    if "limits" not in holder:
        return None
    fields: Item = holder["limits"]["M"]
    rate = float(fields["rate_per_s"]["N"]) if "rate_per_s" in fields else None
    return Limits(rate_per_s=rate, concurrency=numbers(fields, "concurrency"))


def _decimal(value: float) -> Item:
    return {"N": repr(value)}


def _decimals(values: Iterable[float]) -> Item:
    return {"L": [_decimal(each) for each in values]}


def _encode_headers(headers: Mapping[str, str]) -> Item:
    return {"M": {name: text(value) for name, value in headers.items()}}


def _encode_alert(alert: Alert) -> Item:
    return {
        "M": {
            "alert_id": text(alert.alert_id),
            "type": text(alert.type),
            "trigger": number(alert.trigger),
            "direction": text(alert.direction),
            "queue": text(alert.queue),
            "snooze": number(alert.snooze),
            "fired_at": number(alert.fired_at),
        }
    }


def _decode_alert(fields: Item) -> Alert:
    return Alert(
        alert_id=fields["alert_id"]["S"],
        type=fields["type"]["S"],
        trigger=int(fields["trigger"]["N"]),
        direction=fields["direction"]["S"],
        queue=fields["queue"]["S"],
        snooze=int(fields["snooze"]["N"]),
        fired_at=int(fields["fired_at"]["N"]),
    )
