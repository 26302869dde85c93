"""How a subscriber is doing, in one word, and the same word wherever it is shown: lists, pages, answers, commands.

Pure, no clock, no I/O. :mod:`pushhub.engine.waiting.health` gathers what this is derived from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.engine.model.circuit import CircuitState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.activity import SubscriberActivity
    from pushhub.engine.model.circuit import Health


class HealthState(StrEnum):
    """What is the matter with a subscriber. If several are, the first of these is told."""

    DISABLED = "disabled"
    """Nothing is sent to it, and what is owed to it ends."""
    AWAITS_CONSENT = "awaits_consent"
    """It has not consented yet to being sent anything."""
    SUSPENDED = "suspended"
    """Its project is suspended; deliveries wait."""
    PAUSED = "paused"
    """Deliveries wait until it is resumed."""
    CERTIFICATE_ENDED = "certificate_ended"
    """Nothing can be sent to it without another client certificate."""
    TOKEN_SERVER_DOWN = "token_server_down"  # noqa: S105 (a state)
    """Nothing can be sent to it until its token server gives a token."""
    CIRCUIT_OPEN = "circuit_open"
    """It fails, and gets only a probe now and then; deliveries wait."""
    CATCHING_UP = "catching_up"
    """It is back, and gets what waited, more each minute."""
    FAILING = "failing"
    """It has accepted nothing since its first failure, or in this hour and the one before; each delivery is tried again
    by its own waits.
    """
    RETRYING = "retrying"
    """Some deliveries failed and are tried again."""
    RATE_LIMITED = "rate_limited"
    """Deliveries wait for their turn by its limits."""
    DELIVERING = "delivering"
    """Nothing is the matter."""


TEXTS = {
    HealthState.DISABLED: "disabled",
    HealthState.AWAITS_CONSENT: "waits for its consent",
    HealthState.SUSPENDED: "project suspended",
    HealthState.PAUSED: "paused",
    HealthState.CERTIFICATE_ENDED: "client certificate ended",
    HealthState.TOKEN_SERVER_DOWN: "waits for its token server",
    HealthState.CIRCUIT_OPEN: "failing, circuit open",
    HealthState.CATCHING_UP: "catching up",
    HealthState.FAILING: "failing",
    HealthState.RETRYING: "delivering, some are retried",
    HealthState.RATE_LIMITED: "delivering, rate limited",
    HealthState.DELIVERING: "delivering",
}
"""The words that people read for each."""

WELL = frozenset({HealthState.DELIVERING, HealthState.RATE_LIMITED, HealthState.RETRYING})
"""States in which a subscriber accepts messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOutage:
    """A token server that gives no token. Times are epoch milliseconds.

    Attributes:
        since: When it first refused.
        ask_at: When it is asked again.
    """

    since: int
    ask_at: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """Deliveries to a subscriber that wait, each counted once wherever it waits.

    Attributes:
        waiting: All of them.
        retried: Those that have failed at least once.
        in_line: Those that wait for their turn by its limits.
        oldest_at: When the oldest one that has failed was accepted, epoch milliseconds; None if none has.
        complete: Whether these are all; otherwise there are more.
    """

    waiting: int = 0
    retried: int = 0
    in_line: int = 0
    oldest_at: int | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberHealth:
    """How a subscriber is doing. Times are epoch milliseconds.

    Attributes:
        since: Since when, where that is known: the first failure, or the acceptance of the oldest delivery that is
            retried.
        until: When it is tried next, where all deliveries wait for one time; None if that is now, or nobody knows.
        reason: What the token server said, or the like; empty where the state says it all.
        owed: What waits for it.
        stored: What the engine has stored of it; None if it never failed.
    """

    state: HealthState
    since: int | None = None
    until: int | None = None
    reason: str = ""
    owed: Owed = Owed()
    stored: Health | None = None

    @property
    def text(self) -> str:
        """The words that people read."""
        return TEXTS[self.state]

    @property
    def well(self) -> bool:
        """Whether it accepts messages."""
        return self.state in WELL

    def next_attempt(self, due_at: int | None, now: int) -> int | None:
        """When a delivery that is due at a time is attempted, at the earliest; never in the past. None if it waits for
        a person, or is not attempted any more.
        """
        if due_at is None or self.state in _WAIT_FOR_PEOPLE:
            return None
        return max(due_at, self.until or now)


def worst_of(healths: Sequence[SubscriberHealth]) -> SubscriberHealth:
    """How several subscribers are doing, as one: the worst state of any, since when the first of those has it, and what
    waits for all of them. None at all are well.
    """
    order = [*HealthState]
    worst = min((order.index(each.state) for each in healths), default=order.index(HealthState.DELIVERING))
    those = [each for each in healths if each.state is order[worst]]
    first = min(those, key=lambda each: (each.since is None, each.since or 0), default=None)
    return SubscriberHealth(
        state=order[worst],
        since=first.since if first else None,
        until=first.until if first and len(those) == 1 else None,
        reason=first.reason if first else "",
        owed=Owed(
            waiting=sum(each.owed.waiting for each in healths),
            retried=sum(each.owed.retried for each in healths),
            in_line=sum(each.owed.in_line for each in healths),
            oldest_at=min((each.owed.oldest_at for each in healths if each.owed.oldest_at is not None), default=None),
            complete=all(each.owed.complete for each in healths),
        ),
    )


_WAIT_FOR_PEOPLE = frozenset(
    {
        HealthState.DISABLED,
        HealthState.AWAITS_CONSENT,
        HealthState.SUSPENDED,
        HealthState.PAUSED,
        HealthState.CERTIFICATE_ENDED,
    }
)


def health_of(
    *,
    now: int,
    stored: Health | None = None,
    outage: TokenOutage | None = None,
    owed: Owed = Owed(),
    lately: SubscriberActivity | None = None,
    disabled: bool = False,
    awaits_consent: bool = False,
    suspended: bool = False,
    paused: bool = False,
    certificate_ends_at: int | None = None,
) -> SubscriberHealth:
    """The health of a subscriber.

    Args:
        now: Epoch milliseconds.
        stored: What the engine has stored of it; None if it never failed.
        outage: Its token server's, if that gives no token.
        owed: What waits for it.
        lately: What happened there in the last one to two hours; None if nothing did. It tells of a subscriber that
            has no circuit, and gave up all it was owed.
        certificate_ends_at: When its client certificate ends, epoch milliseconds; None if it has none.
    """
    circuit = stored.state if stored else CircuitState.CLOSED
    failing_since = stored.failing_since if stored else None
    changed_at, probe_at = (stored.changed_at, stored.probe_at) if stored else (None, None)
    accepts_nothing = lately is not None and lately.failed > 0 and lately.delivered == 0
    ended = certificate_ends_at is not None and certificate_ends_at <= now
    # The first that applies is told: whether it does, the state, since when and until when.
    found: tuple[tuple[bool, HealthState, int | None, int | None], ...] = (
        (disabled, HealthState.DISABLED, None, None),
        (awaits_consent, HealthState.AWAITS_CONSENT, None, None),
        (suspended, HealthState.SUSPENDED, None, None),
        (paused, HealthState.PAUSED, None, None),
        (ended, HealthState.CERTIFICATE_ENDED, certificate_ends_at, None),
        (
            outage is not None,
            HealthState.TOKEN_SERVER_DOWN,
            outage.since if outage else None,
            outage.ask_at if outage else None,
        ),
        (circuit is CircuitState.OPEN, HealthState.CIRCUIT_OPEN, failing_since or changed_at, probe_at),
        (circuit is CircuitState.RAMPING, HealthState.CATCHING_UP, changed_at, None),
        (failing_since is not None, HealthState.FAILING, failing_since, None),
        (accepts_nothing, HealthState.FAILING, owed.oldest_at, None),
        (owed.retried > 0, HealthState.RETRYING, owed.oldest_at, None),
        (owed.in_line > 0, HealthState.RATE_LIMITED, None, None),
        (True, HealthState.DELIVERING, None, None),
    )
    state, since, until = next(each[1:] for each in found if each[0])
    return SubscriberHealth(
        state=state,
        since=since,
        until=until if until is not None and until > now else None,
        reason=outage.reason if outage and state is HealthState.TOKEN_SERVER_DOWN else "",
        owed=owed,
        stored=stored,
    )
