"""The request a service is sent (hub protocol v5, "Consuming messages"): first delivery,
retry and poll are the same POST.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from pushhub.base.credentials import user_of
from pushhub.base.errors import Invalid
from pushhub.base.json_text import members, object_of, write
from pushhub.hub.model.parameters import Parameter, sent_parameters

if TYPE_CHECKING:
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.model.message import HubMessage

ANSWER_SECONDS = 180
"""How long the hub waits for an answer (hub protocol v5)."""

MAX_URL = 2048
"""Longest URL accepted, in characters."""


def request_body(message: HubMessage, object_id: str, parameters: Sequence[Parameter]) -> bytes:
    """The JSON body: ``message``, ``message_id``, ``payload`` with the parameters inside,
    and ``source`` where there is one. The payload's values are as they were written.

    ``payload.parameters`` is reserved for the hub: whatever a producer or parent put there is not sent, so that no
    service's secret reaches another through a copied payload.

    Args:
        object_id: Id of the accepted copy; the same for every retry and poll.
    """
    payload = message.payload_text
    texts = members(payload)
    if parameters or "parameters" in texts:
        texts.pop("parameters", None)
        payload = object_of(texts | ({"parameters": write(sent_parameters(parameters))} if parameters else {}))
    fields = {"message": write(message.type), "message_id": write(object_id), "payload": payload}
    if message.source is not None:
        fields["source"] = write(message.source)
    return object_of(fields).encode()


def request_headers(token: str) -> dict[str, str]:
    """The headers. The token's name is spelt with dashes: front-end servers drop names with underscores."""
    return {"Content-Type": "application/json", "Accept": "application/json", "X-Augury-Token": token}


def checked_url(url: str) -> str:
    """Check the form of a URL that the hub is to POST to. The egress guard checks where it leads.

    Raises:
        Invalid: Not ``http`` or ``https``, nothing that can be called, user information in it, control characters, or
            too long.
    """
    if not url.lower().startswith(("http://", "https://")):
        raise Invalid("must be an http or https URL")
    if user_of(url) is not None:
        raise Invalid("must not hold user information")
    if len(url) > MAX_URL:
        raise Invalid(f"is longer than {MAX_URL} characters")
    if not url.isprintable() or " " in url:
        raise Invalid("holds spaces or control characters")
    from pushhub.egress.guard import unusable  # noqa: PLC0415 (few functions read URLs)

    reason = unusable(url)
    if reason is not None:
        raise Invalid(f"cannot be called: {reason}")
    return url


def service_url(base_url: str, path: str) -> str:
    """The URL of a service: its endpoint's URL, including any path, followed by the service's path."""
    return f"{base_url.rstrip('/')}/{path.lstrip('/')}"


def poll_address(update_url: str, mapping: ServiceMapping) -> str:
    """The address that an answer's ``update_url`` stands for, resolved against the mapping's URL (RFC 3986).

    So ``/status/1`` starts at the root of the endpoint's host, ``status/1`` beside the service itself.

    Args:
        update_url: As answered, absolute or relative.

    Raises:
        Invalid: See :func:`checked_url`.
    """
    try:
        return checked_url(urljoin(mapping.url, update_url))
    except ValueError as error:
        raise Invalid("is not a URL") from error
