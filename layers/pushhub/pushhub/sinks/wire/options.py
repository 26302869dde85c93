"""The option of queues' and topics' URLs that says what a message's body is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid

if TYPE_CHECKING:
    from pushhub.base.sink_url import SinkUrl

BODY = "body"
"""The name of the option."""

ENVELOPE = "envelope"
"""The body holds event type and payload, as Svix sends them."""


def check_body(url: SinkUrl) -> None:
    """Refuse, as ``Invalid``, another value than the one there is."""
    if url.options.get(BODY, ENVELOPE) != ENVELOPE:
        raise Invalid(f"The option {BODY} of the url can only be {ENVELOPE}; without it the body is sent as it is")


def wants_envelope(url: SinkUrl) -> bool:
    """Whether the body holds event type and payload; otherwise it is what was posted."""
    return BODY in url.options
