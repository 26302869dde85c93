"""Delivers to a service of AWS: one signed request through the guarded sender."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.ports import PushRequest
from pushhub.base.sink_url import parse_sink_url
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.attempts.traces import trace_headers
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import NOTHING_ASKED, Asked, Stops
from pushhub.engine.model.message import HOPS_HEADER
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.target import Outcome, PushOrder
from pushhub.sinks.model.kind import ManyKind, SinkMessage, Unfit
from pushhub.sinks.roles import NoKeys
from pushhub.sinks.together import PATIENCE, Bounds, Together
from pushhub.sinks.wire.options import wants_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.base.ports import Clock, Sender
    from pushhub.base.sink_url import SinkUrl
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.signing import Signing
    from pushhub.sinks.keys import Asking, SinkKeys
    from pushhub.sinks.model.kind import Kind, ServiceFault, SinkCall
    from pushhub.sinks.ports import AwsKeys, Sign

UNFIT = "unfit"
"""Why a delivery ends whose message its subscriber will never take."""

THROTTLED_MS = 5_000
"""Least time, milliseconds, after which a message is tried again that a service was too busy for; up to twice as long,
at random.
"""

ANSWER_LIMIT = 4_096
MANY_ANSWER_LIMIT = 32_768
"""Bytes that are read of an answer, and of one to a call for several messages."""

BATCH_ANSWER_LIMIT = 262_144
"""The answer to a batch says of each message what became of it."""
EVENT_TYPE = "webhook-event-type"
_LEAST_LEFT_MS = 1_000


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt, ready to be sent."""

    order: PushOrder
    message: SinkMessage
    call: SinkCall
    begun: int
    ends: int


@dataclass(frozen=True, slots=True)
class _Request:
    """A call, and how the answer to it is read."""

    call: SinkCall
    judge: Callable[[Answer], ServiceFault | None]
    answer_limit: int = ANSWER_LIMIT


class SinkTarget(Component):
    """Implements :class:`pushhub.engine.target.Target` for one kind of subscriber on AWS."""

    kind: Kind
    sender: Sender
    keys: SinkKeys
    sign: Callable[[], Sign]  # Loads the SDK's signer, for the first request.
    signing: Signing  # Signs messages of owners' queues, for who reads them.
    projects: ProjectStore  # For the project's allowed targets.
    clock: Clock

    def __post_init__(self) -> None:
        self._many_kind = self.kind if isinstance(self.kind, ManyKind) else None
        self._together = Together[_Attempt, Outcome | None]()

    @property
    def dialect(self) -> str:
        """The kind's scheme."""
        return self.kind.scheme

    def check(self, url: str) -> None:
        """Requires a well-formed URL with keys or a role, but not with a role of the hub's own account."""
        place = parse_sink_url(url)
        unknown = place.options.keys() - set(self.kind.options)
        if unknown:
            raise Invalid(f"The url has an option that {place.scheme} does not know; it knows {self._known_options()}")
        self.kind.check(place)
        self.keys.check(place)
        if place.endpoint:
            check_endpoint(place.endpoint)

    def _known_options(self) -> str:
        return ", ".join(("role", "endpoint", *self.kind.options))

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all queues)
        """Where the service is called."""
        return self._base(parse_sink_url(url))

    def _base(self, place: SinkUrl) -> str:
        return (place.endpoint or f"https://{self.kind.host}.{place.region}.{place.domain}").rstrip("/")

    def deliver(self, order: PushOrder) -> Outcome:
        """Hand the message to the service, and interpret what it says."""
        begun = self.clock.now()
        ends = begun + round(order.subscriber.timeout_s * 1000)
        place = parse_sink_url(order.subscriber.url)
        try:
            message = self._message(order, place)
            call = self.kind.call(place, message)
        except Unfit as error:
            return self._ended(error.reason, begun)
        asking = self.keys.asking(order.queue, place, self.kind.grants(place))
        attempt = _Attempt(order, message, call, begun, ends)
        try:
            return self._with_others(attempt, place, asking) or self._alone(attempt, place, asking)
        except NoKeys as error:
            return self._not_sent(error.reason, begun, Asked(wait_ms=error.wait_ms))

    def _with_others(self, attempt: _Attempt, place: SinkUrl, asking: Asking) -> Outcome | None:
        """Send a message with those of the same subscriber that wait at the same time; None if it is to go alone."""
        kind, order = self._many_kind, attempt.order
        if kind is None:
            return None
        return self._together.send(
            (order.queue.project, order.queue.name, order.reach, order.subscriber.url),
            attempt,
            size=kind.size(place, attempt.message),
            bounds=Bounds(most=kind.most, most_bytes=kind.most_bytes),
            patience_s=order.subscriber.timeout_s * PATIENCE,
            call=lambda attempts: self._many(kind, attempts, place, asking),
        )

    def _many(
        self, kind: ManyKind, attempts: Sequence[_Attempt], place: SinkUrl, asking: Asking
    ) -> Sequence[Outcome | None]:
        """Send several messages with one call; each has an outcome of its own."""
        if len(attempts) == 1:
            return [self._alone(attempts[0], place, asking)]
        call = kind.call_many(place, [each.message for each in attempts])
        request = _Request(call, kind.refusal, MANY_ANSWER_LIMIT)
        answer, fault = self._answered(attempts[0].order, place, request, asking, min(each.ends for each in attempts))
        if fault is not None and fault.lasting:
            # It may be one message that is not taken: each is asked for by itself.
            return [None] * len(attempts)
        shared = replace(answer, bytes_out=answer.bytes_out // len(attempts), bytes_in=answer.bytes_in // len(attempts))
        faults = [fault] * len(attempts)
        if fault is None and not answer.error_class:
            faults = kind.faults(answer, len(attempts))
        return [
            self._outcome(replace(shared, started_at=each.begun), of_it)
            for each, of_it in zip(attempts, faults, strict=True)
        ]

    def _alone(self, attempt: _Attempt, place: SinkUrl, asking: Asking) -> Outcome:
        limit = BATCH_ANSWER_LIMIT if attempt.order.batch else ANSWER_LIMIT
        request = _Request(attempt.call, self.kind.fault, limit)
        answer, fault = self._answered(attempt.order, place, request, asking, attempt.ends)
        return self._outcome(replace(answer, started_at=attempt.begun), fault)

    def _answered(
        self, order: PushOrder, place: SinkUrl, request: _Request, asking: Asking, ends: int
    ) -> tuple[Answer, ServiceFault | None]:
        """What the service says to a call."""
        keys = asking()
        answer, fault = self._sent(order, place, request, keys, ends)
        if fault is not None and fault.expired and ends - self.clock.now() > 2 * _LEAST_LEFT_MS:
            # A role's keys may have been taken back before their end: others may do.
            fresh = asking(instead_of=keys)
            if fresh != keys:
                return self._sent(order, place, request, fresh, ends)
        return answer, fault

    def _outcome(self, answer: Answer, fault: ServiceFault | None) -> Outcome:
        if answer.error_class:
            return Outcome(answer=answer, verdict=Verdict.FAILED)
        if fault is None:
            return Outcome(answer=answer, verdict=Verdict.DELIVERED)
        return Outcome(answer=_shown(answer, fault), verdict=Verdict.FAILED, asked=self._asked(fault))

    def _message(self, order: PushOrder, place: SinkUrl) -> SinkMessage:
        message = order.message
        signature = self.signing.signature(
            message.project,
            order.subscriber.sealed,
            message_id=message.message_id,
            body=order.body,
            kind=order.queue.name,
            url=order.subscriber.url,
        )
        headers = _layered(
            message.headers,
            order.subscriber.headers,
            trace_headers(self.projects, order, own=True),
            signature.headers,
            # A queue may lead back to a hub.
            {HOPS_HEADER: str(message.hops + 1)},
        )
        if wants_envelope(place):
            # What is signed is the payload alone, which nobody could check.
            headers = {name: value for name, value in headers.items() if name != "webhook-signature"}
        message_id = headers.get("webhook-id", message.message_id)
        return SinkMessage(
            message_id=message_id,
            # An endpoint's messages, in a queue of the hub's own, have ids that it has made.
            own_id=message_id if "/" in order.queue.name else message.message_id,
            about=headers.get(EVENT_TYPE, order.queue.name),
            at=message.accepted_at,
            body=order.body,
            headers=headers,
            group=message.ordering.key if message.ordering else None,
            once=_once(order),
            receiver=order.subscriber.subscriber_id,
            batch=order.batch,
            content=order.content,
        )

    def _sent(
        self, order: PushOrder, place: SinkUrl, request: _Request, keys: AwsKeys, ends: int
    ) -> tuple[Answer, ServiceFault | None]:
        call = request.call
        url = f"{self._base(place)}{call.path}"
        sign = self.sign()
        headers = sign(
            keys,
            service=self.kind.service,
            region=place.region,
            method=call.method,
            url=url,
            headers=call.headers,
            body=call.body,
        )
        answer = self.sender.send(
            PushRequest(
                url=url,
                method=call.method,
                body=call.body,
                headers={"User-Agent": "Pushhub", **headers},
                timeout_s=max(_LEAST_LEFT_MS, ends - self.clock.now()) / 1000,
                answer_limit=request.answer_limit,
                allowed_targets=allowed_targets(self.projects, order.queue.project, order.reach),
            )
        )
        return answer, None if answer.error_class else request.judge(answer)

    def _asked(self, fault: ServiceFault) -> Asked:
        if fault.lasting:
            return Asked(stops=Stops.DELIVERY, reason=UNFIT)
        if fault.throttled:
            return Asked(wait_ms=round(THROTTLED_MS * (1 + self.clock.jitter())))
        return NOTHING_ASKED

    def _ended(self, reason: str, begun: int) -> Outcome:
        """The outcome for a message that the service would never take: it is not sent."""
        answer = self._answer(begun, message=reason, status_code=400, body=reason.encode())
        asked = Asked(stops=Stops.DELIVERY, reason=UNFIT)
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=asked, reached=False)

    def _not_sent(self, reason: str, begun: int, asked: Asked = NOTHING_ASKED) -> Outcome:
        answer = self._answer(begun, message=f"credentials: {reason}", error_class="credentials")
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=asked, reached=False)

    def _answer(
        self, begun: int, *, message: str, status_code: int = 0, error_class: str = "", body: bytes = b""
    ) -> Answer:
        return Answer(
            status_code=status_code,
            message=message[:200],
            error_class=error_class,
            body=body,
            started_at=begun,
            finished_at=self.clock.now(),
        )


def check_endpoint(endpoint: str) -> None:
    """Check the form of a place where a service is called instead of AWS's own.

    Raises:
        Invalid: Nothing could ever be sent there, or it is more than a scheme, a host and a port.
    """
    from pushhub.egress.guard import unusable  # noqa: PLC0415 (few URLs have one)
    from pushhub.egress.url import parse_target  # noqa: PLC0415

    refused = unusable(endpoint)
    if refused is not None:
        raise Invalid(f"endpoint cannot be used: {refused}")
    target = parse_target(endpoint)
    if target.authorization or target.path not in ("", "/") or "#" in endpoint or "?" in endpoint:
        raise Invalid("endpoint must be http(s)://host[:port], and nothing more")
    inside = target.host == "localhost" or (target.address is not None and not target.address.is_global)
    if target.scheme != "https" and not inside:
        raise Invalid("endpoint must begin with https://")


def _once(order: PushOrder) -> str:
    """The same for each automatic try of a delivery, and for no other.

    Two subscribers may lead to one queue, which would drop the second one's message as a duplicate. So would it what a
    person has sent again. The hub's own id is what counts: a producer may give many messages the same ``webhook-id``.
    """
    owed = f"{order.message.message_id}/{order.subscriber.subscriber_id}"
    asked_at = order.delivery.asked_at
    return owed if asked_at is None else f"{owed}/{asked_at}"


def _layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Headers of several layers; those of a later one win, however their names are written. Those that the hub itself
    reads and sets are in lower case, or a consumer would find two.
    """
    found: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            lower = name.lower()
            found[lower] = (lower if lower.startswith("webhook-") else name, value)
    return dict(found.values())


def _shown(answer: Answer, fault: ServiceFault) -> Answer:
    """The answer as owners are shown it: an error's full text may repeat what was signed. What a service refuses in an
    answer that is right by its status is shown with the status that means the same.
    """
    status = answer.status_code if answer.status_code >= 400 else 500
    return replace(answer, status_code=status, message=fault.message, body=fault.message.encode(), headers={})
