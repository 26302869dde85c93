"""What a run of push asks its hands to do, and what it hears of each. Pure.

A step of :class:`pushhub.engine.model.run.Run` yields actions; the hands (``push.py``) do each and send its answer
back. To an action of which the answer may be None, None says that the call failed, with unknown effect.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, dataclass_transform

from pushhub.engine.model.received import Loaded

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Generator, Mapping, Sequence

    from pushhub.base.errors import Unreadable
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.flow import Terms
    from pushhub.engine.model.following import Ended, Following, Wait
    from pushhub.engine.model.keys import Addressee, DeliveryKey, MessageKey
    from pushhub.engine.model.lease import Lease
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.received import Received
    from pushhub.engine.model.work import WorkOrder

_T = TypeVar("_T")


@dataclass_transform(eq_default=True, frozen_default=True)
class Action(Generic[_T]):
    """Something to be done; ``yield from`` it gives its answer.

    Type checkers see a frozen dataclass; a real one for each action would cost a cold start (docs/decisions/house.md).
    """

    _names: ClassVar[tuple[str, ...]] = ()
    failure: ClassVar[str] = ""
    """The log event of a call that fails."""

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)

    def __init__(self, *values: object) -> None:
        self.__dict__.update(zip(self._names, values, strict=True))

    def __iter__(self) -> Generator[Action[Any], Any, _T]:
        answer: _T = yield self
        return answer

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    @property
    def identity(self) -> Mapping[str, object]:
        """What a log event says of it when its call fails."""
        return {}


class To(Enum):
    """A queue to which orders are sent."""

    RETRY = auto()
    POLL = auto()
    SLOW_LANE = auto()


# -- what is heard


class Completions(NamedTuple):
    """What has finished meanwhile.

    Attributes:
        ended: Attempts by number, each with what comes next for its delivery.
        received: Orders that were received.
        over: Whether a receive is over; without orders received, it failed.
    """

    ended: Mapping[int, Following]
    received: Sequence[Received] | None = None
    over: bool = False

    @property
    def nothing(self) -> bool:
        """Whether nothing has."""
        return not (self.ended or self.over)


class Granted(NamedTuple):
    """A lease was asked for.

    Attributes:
        lease: The lease; None if somebody else has it.
        places: How many concurrent attempts the subscriber had earned; 0 if nobody has had the lease before.
    """

    lease: Lease | None
    places: int = 0


class States(NamedTuple):
    """Deliveries were read, and messages with them.

    Attributes:
        found: Those that are stored.
        damaged: Those whose items cannot be read.
        messages: The messages that are there.
        read_at: When, epoch milliseconds.
    """

    found: Mapping[DeliveryKey, Delivery]
    damaged: Mapping[DeliveryKey, Unreadable]
    messages: Mapping[MessageKey, Message]
    read_at: int

    def loaded(self, received: Received) -> Loaded:
        """An order with what was read for it."""
        key = received.order.key
        return Loaded(received, self.found.get(key), self.messages.get(key.message), self.read_at)


# -- attempts, and time


class Begin(Action[None]):
    """Begin an attempt in a thread of its own."""

    number: int
    loaded: Loaded
    lease: Lease | None


class AnyUnderWay(Action[bool]):
    """Find out whether any of these attempts has not finished."""

    numbers: Collection[int]


class Await(Action[Completions]):
    """Wait until something finishes, for so many seconds at most."""

    at_most_s: float


class Sleep(Action[None]):
    """Let so many seconds pass."""

    seconds: float


# -- SQS messages


class Receive(Action[None]):
    """Receive further orders meanwhile, waiting for them for so many seconds."""

    wait_s: int


class Hide(Action[None]):
    """Hide the messages in hand for longer, but for those that are kept."""

    kept: Collection[str]
    failure = "visibility_unchanged"


class Delete(Action[None]):
    """Let go of messages, and delete those that are not kept. One that cannot be deleted comes back: harmless.

    Attributes:
        handles: Receipt handles by SQS id.
    """

    handles: Mapping[str, str]
    kept: Collection[str]
    failure = "orders_not_deleted"

    @property
    def identity(self) -> Mapping[str, object]:
        """What it was about."""
        return {"orders": len(self.handles.keys() - self.kept)}


class Arrange(Action["set[str]"]):
    """Arrange what comes next for orders; the answer names messages and places to keep."""

    ended: Sequence[Ended]


class Keep(Action["set[str]"]):
    """Make orders wait where they came from; the answer names their messages and places."""

    waits: Sequence[Wait]


class Send(Action[bool]):
    """Send an order, with a delay in seconds; the answer is whether that worked."""

    order: WorkOrder
    delay_s: int
    to: To


class ToSlowLane(Action[bool]):
    """Send orders to the slow lane, packed; the answer is whether that worked."""

    orders: Sequence[WorkOrder]


# -- deliveries, and slow subscribers


class Read(Action["States | None"]):
    """Read deliveries, and messages that their orders do not carry.

    Attributes:
        orders: How many orders it is for.
    """

    keys: Sequence[DeliveryKey]
    messages: Sequence[MessageKey]
    orders: int
    failure = "states_unreadable"

    @property
    def identity(self) -> Mapping[str, object]:
        """What it was about."""
        return {"orders": self.orders}


class Glance(Action["Mapping[DeliveryKey, Delivery]"]):
    """Read deliveries as they were a moment ago, at half the price; nothing is found if that fails."""

    keys: Sequence[DeliveryKey]


class ReadSlowList(Action["Mapping[Addressee, int]"]):
    """Read again who is slow, and until when, if so many orders are worth it."""

    orders: int


class ListSlow(Action["Mapping[Addressee, int]"]):
    """Tell all environments who was found to be slow; answers as above."""

    addressees: Sequence[Addressee]


# -- leases and backlogs


class Take(Action["Granted | None"]):
    """Take a lease.

    Attributes:
        fields: Whose it is, for a log event.
    """

    addressee: Addressee
    queue: str
    terms: Terms
    part: int
    fields: Mapping[str, object]
    failure = "lease_not_taken"

    @property
    def identity(self) -> Mapping[str, object]:
        """What it was about."""
        return self.fields


class AnswerWakeUp(Action["Granted | None"]):
    """Take the lease that a wake-up is for."""

    order: WorkOrder
    failure = "lease_not_taken"

    @property
    def identity(self) -> Mapping[str, object]:
        """What it was about."""
        return self.order.identity


class Hold(Action[bool]):
    """Extend a lease in time; the answer is whether an attempt may begin within it."""

    lease: Lease


class GiveBack(Action[bool]):
    """Give a lease back.

    Attributes:
        places: Concurrent attempts that the subscriber has earned.
        wake_up_ms: In how many milliseconds another run is woken; None if nothing waits.
        to: Where the wake-up goes.
        attempted: Orders whose attempts are in progress.

    The answer is whether something was put into the backlog meanwhile, and no wake-up was sent.
    """

    lease: Lease
    places: int
    wake_up_ms: int | None
    to: To
    attempted: Sequence[Received]


class AddToBacklog(Action["list[int] | None"]):
    """Put orders into a backlog; the answer names parts whose leases nobody has."""

    addressee: Addressee
    orders: Sequence[Received]
    failure = "not_added_to_backlog"

    @property
    def identity(self) -> Mapping[str, object]:
        """What it was about."""
        return {"orders": len(self.orders), **self.orders[0].order.identity}


class Look(Action[None]):
    """Fetch orders from the backlog of a lease, if some could soon begin and it is time."""

    lease: Lease


class ClearOut(Action[None]):
    """Move orders from the backlog of a part that there is no more, but for these."""

    lease: Lease
    busy: Sequence[Received]


class Settle(Action[None]):
    """An order from the backlog is done, or its entry is kept because of an error."""

    lease: Lease
    received: Received
    keep: bool


class SettleDuplicates(Action[None]):
    """Duplicates leave the backlog once the run is done with their first orders."""

    lease: Lease
    in_hand: Container[DeliveryKey]


class Arranged(Action[None]):
    """The next step of an order under a lease is arranged; if it could not be, it stays."""

    lease: Lease
    received: Received
    keep: bool


class SettleAside(Action[None]):
    """Orders that were set aside are done, or wait elsewhere."""

    orders: Sequence[Received]


# -- telemetry


class Count(Action[None]):
    """Count something."""

    name: str
    number: int


class TellFault(Action[None]):
    """An order cannot be worked on before somebody has mended something."""

    received: Received
    error: Unreadable
