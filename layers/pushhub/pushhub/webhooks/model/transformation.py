"""Transformations: code of an endpoint's owner that changes what the endpoint is sent, or has it sent nothing."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.credentials import MASK
from pushhub.engine.model.reach import Reach

if TYPE_CHECKING:
    from pushhub.engine.model.batch_content import BatchContent

METHODS = ("POST", "PUT", "PATCH")
"""With which a transformation may have an endpoint asked."""
_LEAST_HIDDEN = 4
"""Shorter values of variables would hide ordinary words."""


class Language(StrEnum):
    """What code is written in."""

    JAVASCRIPT = "javascript"
    JSONATA = "jsonata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """An endpoint's transformation.

    Attributes:
        code: Empty for none.
        enabled: Whether its owner wants it applied.
        variables: What the code finds in ``env``: they may be secrets.
        reach: How far whoever set the code may have messages sent.
        updated_at: Epoch milliseconds; 0 if it was never set.
    """

    code: str = ""
    language: Language = Language.JAVASCRIPT
    enabled: bool = False
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    reach: Reach = Reach.PORTAL
    updated_at: int = 0

    @property
    def applies(self) -> bool:
        """Whether it changes anything."""
        return self.enabled and bool(self.code)

    def encode(self) -> bytes:
        """As it is sealed."""
        written = [self.code, self.language, self.enabled, dict(self.variables), self.reach, self.updated_at]
        return zlib.compress(json_text.write(written).encode(errors="surrogatepass"))

    @classmethod
    def decode(cls, content: bytes) -> Transformation:
        """From what :meth:`encode` made."""
        code, language, enabled, variables, reach, at = json_text.stored(zlib.decompress(content).decode())
        return cls(
            code=code,
            language=Language(language),
            enabled=enabled,
            variables=variables,
            reach=Reach(reach),
            updated_at=at,
        )

    def without_secrets(self, text: str) -> str:
        """What the code says, in which values of its variables are hidden."""
        for value in sorted(self.variables.values(), key=len, reverse=True):
            if len(value) >= _LEAST_HIDDEN:
                text = text.replace(value, MASK)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """What code is given.

    Attributes:
        url: Without its user information.
        payload: JSON, or any other text.
        is_json: Which of them it is.
    """

    url: str
    payload: str
    is_json: bool
    event_type: str

    def input(self, variables: Mapping[str, str]) -> str:
        """As an endpoint's handler gets it: JSON in which the payload is as it was posted."""
        about = {
            "method": METHODS[0],
            "url": self.url,
            "eventType": self.event_type,
            "env": dict(variables),
            "transformationsParams": {},
        }
        return f'{json_text.write(about)[:-1]},"payload":{self._payload}}}'

    @property
    def event(self) -> str:
        """As it is among the events of a batch, JSON."""
        return f'{{"eventType":{json_text.write(self.event_type)},"payload":{self._payload}}}'

    @property
    def _payload(self) -> str:
        return self.payload if self.is_json else json_text.write(self.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """What the code of a destination or of a stream's sink is given.

    Attributes:
        events: In their order; a destination gets one at a time.
        url: Where they are posted, without user information; empty for what is not asked by HTTP.
    """

    events: tuple[Webhook, ...]
    url: str = ""

    def input(self, variables: Mapping[str, str]) -> str:
        """As a handler gets it: JSON in which payloads are as they were posted."""
        url = f'"url":{json_text.write(self.url)},' if self.url else ""
        env, events = json_text.write(dict(variables)), ",".join(each.event for each in self.events)
        return f'{{{url}"env":{env},"events":[{events}]}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChanges:
    """What code makes of a webhook or a batch of events; None for what it leaves as it is.

    Attributes:
        cancel: Whether nothing is sent; then nothing else is said.
        headers: These win over the endpoint's own.
        batch: What takes the place of a batch's events, in a bucket or data stream.
    """

    cancel: bool = False
    method: str = METHODS[0]
    url: str | None = None
    payload: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    batch: BatchContent | None = None

    @property
    def shown(self) -> str | None:
        """The payload, for people."""
        return self.batch.whole.decode() if self.batch is not None else self.payload


class CodeFailed(Exception):
    """Code did not do its work.

    Attributes:
        text: Why, for its owner.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
