"""Messages as CloudEvents 1.0: the same bytes with attributes in headers (binary),
or an object that holds both (structured).

Ids, event types, times and the hub's own URL are printable ASCII without spaces, quotes and percent signs, so that as
headers they need none of the escapes of the HTTP binding (section 3.1.3.2).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base.json_text import NotJson, read, write
from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from pushhub.engine.model.trace import Trace

SPEC_VERSION = "1.0"
STRUCTURED_TYPE = "application/cloudevents+json; charset=utf-8"


class Mode(StrEnum):
    """Whether the attributes are sent as headers or in the body (HTTP binding, section 1.3)."""

    BINARY = "binary"
    STRUCTURED = "structured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvents:
    """How an endpoint wants CloudEvents.

    Attributes:
        mode: Where the attributes go.
        consent: Whether it is asked for its consent, and told the sender's origin (CloudEvents' HTTP webhooks, section
            4).
        callback: Whether it may consent later, by calling a URL that it is given.
    """

    mode: Mode
    consent: bool = False
    callback: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """One message as an event.

    Attributes:
        identifier: The message's id; with ``source`` it is unique, and the same at each attempt.
        source: URI of the application.
        time: When the message was accepted, epoch milliseconds.
        content_type: Of the data.
        data: The exact bytes.
        trace: The trace that the message came with, which the event keeps (distributed tracing extension).
    """

    identifier: str
    source: str
    type: str
    time: int
    content_type: str
    data: bytes
    trace: Trace | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The attributes as headers in binary mode; the data's content type is that of the request."""
        return {f"ce-{name}": value for name, value in self._attributes().items()}

    @property
    def structured(self) -> bytes:
        """The whole event as JSON; JSON data is included exactly as it was written."""
        members = {**self._attributes(), "datacontenttype": self.content_type}
        name, text = self._data_member()
        return write(members, ascii_only=True).encode()[:-1] + f',"{name}":'.encode() + text + b"}"

    def _attributes(self) -> Mapping[str, str]:
        return {
            "specversion": SPEC_VERSION,
            "id": self.identifier,
            "source": self.source,
            "type": self.type,
            "time": iso_time(self.time),
            **(self.trace.headers if self.trace else {}),
        }

    def _data_member(self) -> tuple[str, bytes]:
        """Name and JSON of the member that holds the data (JSON event format, section 3.1)."""
        if _is_json(self.content_type):
            return ("data", self.data) if _parses(self.data) else ("data_base64", _base64(self.data))
        try:
            return "data", write(self.data.decode()).encode()
        except UnicodeDecodeError:
            return "data_base64", _base64(self.data)


def _is_json(content_type: str) -> bool:
    media = content_type.partition(";")[0].strip().lower()
    return media.endswith(("/json", "+json"))


def _parses(data: bytes) -> bool:
    try:
        read(data, last_wins=True)
    except NotJson:
        return False
    return True


def _base64(data: bytes) -> bytes:
    return write(base64.b64encode(data).decode()).encode()
