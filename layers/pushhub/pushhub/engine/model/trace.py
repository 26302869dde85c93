"""The trace that a message belongs to (W3C Trace Context, https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"

KEPT_STATE: Final = 512
"""Characters of ``tracestate`` that are kept with a message: as many as a system has to pass on (section 3.3.1.5)."""

_MEMBERS = 32
_LONG_MEMBER = 128
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_MEMBER = re.compile(
    r"(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An attempt's place in its trace, kept with the attempt where the project exports its spans
    (docs/decisions/interfaces.md).

    Attributes:
        trace_id: 32 lower-case hex characters.
        parent_id: The span that posted the message, 16 lower-case hex characters.
        span_id: The attempt's own, the same that its receiver got as a parent.
    """

    trace_id: str
    parent_id: str
    span_id: str

    @classmethod
    def read(cls, text: str) -> Span:
        """What :attr:`text` wrote."""
        trace_id, parent_id, span_id = text.split("-")
        return cls(trace_id=trace_id, parent_id=parent_id, span_id=span_id)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.trace_id}-{self.parent_id}-{self.span_id}"


class Traces(StrEnum):
    """To whom a project's traces are passed on."""

    OFF = "off"
    OWN = "own"
    """Subscribers of queues and services of stores: what the project itself set up."""
    ALL = "all"
    """Endpoints of applications too, which belong to other companies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where a message stands in a trace.

    Attributes:
        trace_id: 32 lower-case hex characters.
        parent_id: The span that posted the message, 16 lower-case hex characters.
        flags: Two hex characters; the last bit says that the trace is sampled.
        state: ``tracestate``, empty if there is none.
    """

    trace_id: str
    parent_id: str
    flags: str
    state: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Trace | None:
        """The trace of a request; None without one, or with one that is not valid, as the rules ask (section 4.3).

        Args:
            headers: Names in lower case; repeated ones joined with commas, which no ``traceparent`` survives.
        """
        given = headers.get(TRACEPARENT)
        if given is None:
            return None
        match = _PARENT.fullmatch(given.strip())
        if match is None:
            return None
        version, trace_id, parent_id, flags, more = match.groups()
        if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not parent_id.strip("0"):
            return None
        # Of later versions only the parts of this one are known, and only this one's flags
        kept = f"{int(flags, 16) & 3:02x}"
        return cls(trace_id=trace_id, parent_id=parent_id, flags=kept, state=_state(headers.get(TRACESTATE, "")))

    @classmethod
    def read(cls, text: str) -> Trace:
        """What :attr:`text` wrote."""
        parent, _, state = text.partition(" ")
        _, trace_id, parent_id, flags = parent.split("-")
        return cls(trace_id=trace_id, parent_id=parent_id, flags=flags, state=state)

    @property
    def sampled(self) -> bool:
        """Whether the spans of this trace are kept, as the producer decided (the last bit of its flags)."""
        return bool(int(self.flags, 16) & 1)

    @property
    def text(self) -> str:
        """As it is stored."""
        return f"{self.traceparent} {self.state}".rstrip()

    @property
    def traceparent(self) -> str:
        """The header's value."""
        return f"00-{self.trace_id}-{self.parent_id}-{self.flags}"

    @property
    def headers(self) -> dict[str, str]:
        """The headers that pass it on."""
        return {TRACEPARENT: self.traceparent, **({TRACESTATE: self.state} if self.state else {})}


def _state(given: str) -> str:
    """The members that are kept, in order: none if one of them is not valid; long ones go first, then the last ones."""
    members = [each.strip(" \t") for each in given.split(",")]
    members = [each for each in members if each]
    names = {each.partition("=")[0] for each in members}
    if len(members) > _MEMBERS or len(names) < len(members) or not all(map(_MEMBER.fullmatch, members)):
        return ""
    if len(",".join(members)) > KEPT_STATE:
        members = [each for each in members if len(each) <= _LONG_MEMBER]
    while len(",".join(members)) > KEPT_STATE:
        members.pop()
    return ",".join(members)
