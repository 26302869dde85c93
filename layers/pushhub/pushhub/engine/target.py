"""Destinations of deliveries: one :class:`Target` per kind of subscriber, chosen by the scheme of its URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Invalid
from pushhub.base.gates import NO_PROOF, Proof
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.reach import Reach, Scope, may_reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pushhub.engine.model.answer_rules import Asked
    from pushhub.engine.model.batch_content import BatchContent
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import PushSettings, Queue, Subscriber


OUT_OF_REACH = "The url leads to a place that only a token of the project opens"
"""Why a URL is not accepted, or nothing is sent to it."""


class Declined(Exception):
    """A subscriber's own rules want none of a message: nothing is sent, and its delivery ends as cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedMessage:
    """One of several messages that are handed over in one request.

    Attributes:
        message_id: The same at each attempt.
        about: What it is about: its event type.
        at: When it was accepted, epoch milliseconds.
    """

    message_id: str
    about: str
    at: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOrder:
    """Everything one attempt needs.

    Attributes:
        queue: The queue pushed from.
        message: The message, with its body loaded.
        delivery: Its state before the attempt.
        reach: How far whoever set the subscriber's URL reaches.
        batch: The messages that are handed over together, in their order, instead of the one; empty for that one.
        content: What their receiver's code has made of them; None to hand over the messages themselves.
    """

    queue: Queue
    push: PushSettings
    subscriber: Subscriber
    message: Message
    body: bytes
    delivery: Delivery
    reach: Reach = Reach.PROJECT
    batch: tuple[BatchedMessage, ...] = ()
    content: BatchContent | None = None

    @property
    def manual(self) -> bool:
        """Whether this is a manual try."""
        return self.delivery.asked_at is not None

    @property
    def attempt(self) -> int:
        """Number of this attempt, from 1; a manual one may have the same number as an automatic one in progress at the
        same time.
        """
        return self.delivery.attempts + 1

    @property
    def allowance(self) -> int:
        """How many messages may derive from this delivery."""
        return self.message.allowance(self.delivery.subscriber_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an attempt.

    Attributes:
        reserve_ms: Milliseconds that a 202 reserves, or that a polling or postponing answer asks to wait.
        update_url: With ``Verdict.POLL``: where to poll for the outcome.
        asked: What else the answer asks for; None leaves that to the rules of the subscriber or queue.
        reached: Whether the subscriber was asked at all: only then is it to blame for a failure.
        proof: What it was shown of who asks.
    """

    answer: Answer
    verdict: Verdict
    reserve_ms: int = 0
    update_url: str | None = None
    asked: Asked | None = None
    reached: bool = True
    proof: Proof = NO_PROOF


def without_http(order: PushOrder, refusal: str | None, *, started_at: int, finished_at: int) -> Outcome:
    """The outcome of an attempt at what has no HTTP and so no status: it was taken, or refused for a reason. Owners are
    shown the status that means the same.
    """
    answer = Answer(
        status_code=200 if refusal is None else 500,
        message="OK" if refusal is None else refusal[:200],
        started_at=started_at,
        finished_at=finished_at,
        body=(refusal or "").encode(),
        bytes_out=len(order.body),
    )
    return Outcome(answer=answer, verdict=Verdict.DELIVERED if refusal is None else Verdict.FAILED)


class Target(Protocol):
    """One kind of subscriber.

    It contains everything the hub knows about that kind. URLs are checked once, at registration.
    """

    @property
    def dialect(self) -> str:
        """The dialect it sends, as delivery records name it."""

    def check(self, url: str) -> None:
        """Check at registration that a URL has the right form.

        Raises:
            Invalid: It does not. The error never repeats the URL, which may contain a password or token.
        """

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:
        """The ``http`` or ``https`` URL that pushes from a queue will reach, for the egress guard; None when they stay
        within this hub.

        Raises:
            Invalid: The queue would push to itself.
        """

    def deliver(self, order: PushOrder) -> Outcome:
        """Make one attempt. Raises ``Unavailable`` only when nothing was sent, for reasons of the hub's own, and
        :class:`Declined` when nothing is to be sent.
        """


@dataclass(frozen=True, slots=True)
class TargetOffer:
    """A kind of subscriber that a protocol contributes.

    Attributes:
        schemes: The URL schemes it handles.
        make: Makes the target on first use.
        scope: Whose the destinations of its URLs are, or a function that says so for a URL already checked.
        public: Whether owners may register it as a subscriber of their queues.
        signed: Whether its requests can carry a signature.
        headers: Whether they carry the subscriber's headers.
    """

    schemes: tuple[str, ...]
    make: Callable[[], Target]
    scope: Scope | Callable[[str], Scope]
    public: bool = True
    signed: bool = False
    headers: bool = True


class Targets:
    """All kinds of subscribers.

    Args:
        offers: Of all protocols; each scheme occurs only once.
    """

    def __init__(self, offers: Iterable[TargetOffer]) -> None:
        self._offers: dict[str, TargetOffer] = {}
        for offer in offers:
            for scheme in offer.schemes:
                if scheme in self._offers:
                    raise ValueError(f"two kinds of subscribers have the scheme {scheme}")
                self._offers[scheme] = offer
        self._targets: dict[TargetOffer, Target] = {}
        self._lock = Lock()

    @property
    def schemes(self) -> list[str]:
        """The schemes that owners may use, in the order of the offers."""
        return [scheme for scheme, offer in self._offers.items() if offer.public]

    def registered(self, url: str, reach: Reach) -> Target:
        """The target for a URL that a caller wants to register; checks the URL's form, and that the caller may.

        Raises:
            Invalid: No target has that scheme, the URL is malformed, or its destination is out of the caller's reach.
        """
        scheme, colon, _ = url.partition("://")
        if not colon or scheme.lower() not in self.schemes:
            *most, last = (f"{each}://" for each in self.schemes)
            raise Invalid(f"Subscriber url must begin with {', '.join(most)} or {last}")
        target = self.of(url)
        target.check(url)
        if not self.within(reach, url):
            raise Invalid(OUT_OF_REACH)
        return target

    def scope(self, url: str) -> Scope:
        """Whose the destination of a URL is, which was checked at registration."""
        offer = self._offers.get(url.partition(":")[0].lower())
        if offer is None:
            return Scope.ELSEWHERE
        return offer.scope if isinstance(offer.scope, Scope) else offer.scope(url)

    def within(self, reach: Reach, url: str) -> bool:
        """Whether a caller may have messages sent to a URL, which was checked at registration."""
        return may_reach(reach, self.scope(url))

    def of(self, url: str) -> Target:
        """The target for a stored subscriber's URL, which was checked at registration."""
        return self._of(self._offers[url.partition(":")[0].lower()])

    def signs(self, url: str) -> bool:
        """Whether requests to a URL (already checked) can carry a signature."""
        return self._offers[url.partition(":")[0].lower()].signed

    def carries_headers(self, url: str) -> bool:
        """Whether requests to a URL (already checked) carry the subscriber's headers."""
        return self._offers[url.partition(":")[0].lower()].headers

    def _of(self, offer: TargetOffer) -> Target:
        with self._lock:
            if offer not in self._targets:
                self._targets[offer] = offer.make()
            return self._targets[offer]
