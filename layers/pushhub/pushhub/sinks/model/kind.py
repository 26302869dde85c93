"""What a kind of subscriber on AWS is: how its service is called with a message, and what its answer means. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pushhub.base.errors import THROTTLED

if TYPE_CHECKING:
    from pushhub.base.sink_url import SinkUrl
    from pushhub.base.verdict import Answer
    from pushhub.engine.model.batch_content import BatchContent
    from pushhub.engine.target import BatchedMessage

EXPIRED = frozenset(
    {
        *("ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"),
        *("InvalidToken", "RequestExpired", "InvalidSecurity"),
    }
)
"""What services call credentials that have ended, or that they no longer know."""


class Unfit(Exception):
    """A message can never be taken by a subscriber, however often it is tried.

    Args:
        reason: Why, for the subscriber's owner.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMessage:
    """A message on its way to a service.

    Attributes:
        message_id: The same at each attempt. A producer may have chosen it, and given it to others, too.
        own_id: The hub's own id, which no other message has; mostly the same.
        about: What it is about: the event type of an endpoint's message, the name of an owner's queue.
        at: When it was accepted, epoch milliseconds.
        group: Messages of one group stay in order; None for no order.
        once: A service that drops duplicates drops a second message with the same text. Each delivery has its own.
        receiver: The id of the subscriber that it goes to.
        batch: The messages of a batch, in their order; empty for a message that goes alone.
        content: What takes the place of a batch's messages; None for nothing.
    """

    message_id: str
    own_id: str
    about: str
    at: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str]
    group: str | None
    once: str
    receiver: str = ""
    batch: tuple[BatchedMessage, ...] = ()
    content: BatchContent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCall:
    """A request to a service, not signed yet.

    Attributes:
        path: With its query.
        method: HTTP method.
    """

    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    method: str = "POST"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFault:
    """Why a service has not taken a message.

    Attributes:
        code: What the service calls it.
        text: What it says about it.
        lasting: Whether this message will never be taken.
    """

    code: str
    text: str = ""
    lasting: bool = False

    @property
    def throttled(self) -> bool:
        """Whether the service was asked too often."""
        return self.code in THROTTLED

    @property
    def expired(self) -> bool:
        """Whether the credentials are to blame, and new ones may help."""
        return self.code in EXPIRED

    @property
    def message(self) -> str:
        """One line for people. What follows a first line may repeat what was signed."""
        first = self.text.strip().partition("\n")[0].strip()
        return (f"{self.code}: {first}" if first else self.code)[:200]


class Kind(Protocol):
    """One kind of subscriber on AWS."""

    @property
    def scheme(self) -> str:
        """The scheme of its URLs."""

    @property
    def service(self) -> str:
        """The service, as signatures name it."""

    @property
    def host(self) -> str:
        """The first part of the names of its hosts."""

    @property
    def options(self) -> Collection[str]:
        """Options that its URLs may have besides role and endpoint."""

    def check(self, url: SinkUrl) -> None:
        """Check its name and options.

        Raises:
            Invalid: They could not be right.
        """

    def grants(self, url: SinkUrl) -> list[Mapping[str, object]]:
        """The statements of a policy that allow what a call needs, and nothing else."""

    def call(self, url: SinkUrl, message: SinkMessage) -> SinkCall:
        """The request for a message.

        Raises:
            Unfit: The service would never take it.
        """

    def fault(self, answer: Answer) -> ServiceFault | None:
        """Why a message was not taken, by an answer of the service; None when it was."""


@runtime_checkable
class ManyKind(Kind, Protocol):
    """A kind whose service takes several messages with one call."""

    @property
    def most(self) -> int:
        """Messages of one call."""

    @property
    def most_bytes(self) -> int:
        """Bytes of all messages of one call."""

    def size(self, url: SinkUrl, message: SinkMessage) -> int:
        """The bytes that a message takes of that. Called for messages that :meth:`Kind.call` has not refused."""

    def call_many(self, url: SinkUrl, messages: Sequence[SinkMessage]) -> SinkCall:
        """The request for several messages."""

    def refusal(self, answer: Answer) -> ServiceFault | None:
        """Why a call for several was refused as a whole; None if it was not."""

    def faults(self, answer: Answer, count: int) -> list[ServiceFault | None]:
        """Why each of so many messages was not taken, in their order, by an answer that is right by its status; None
        for each that was.
        """
