"""Senders of webhooks as data: how each of them signs, names its events, and asks whether a URL is really its user's.

A kind is one entry of :data:`SENDERS`; the names are those of Svix's API for sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from pushhub.base.cloud_events import STRUCTURED, ArrivedEvent, event_in, events_in, id_of, is_batch
from pushhub.base.credentials import MASK
from pushhub.base.json_text import NotJson, read
from pushhub.base.signature_check import Doubt, SignedPost, Unverified, verify
from pushhub.base.signature_schemes import PRESETS, STANDARD, Malformed, Scheme

GENERIC: Final = "generic-webhook"
"""The kind without a sender: whoever knows the URL, unless a scheme of its owner's is to be verified."""

MOST_SECRET = 256
"""Longest secret, in characters."""

_NAME = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9\-_.]")


class Challenge(StrEnum):
    """How a sender asks whether a URL wants what it sends."""

    NONE = ""
    SLACK = "slack"
    """A signed event ``url_verification`` whose ``challenge`` is to be sent back."""
    ZOOM = "zoom"
    """A signed event ``endpoint.url_validation`` whose ``plainToken`` is to be hashed."""
    META = "meta"
    """A GET with ``hub.verify_token``, whose ``hub.challenge`` is to be sent back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSender:
    """A kind of sender.

    Attributes:
        name: Its name in Svix's API.
        schemes: How it may sign: the first whose header a request has is verified. None where its owner says how.
        demands_secret: Whether there is none of its sources without a secret.
        prefix: What a secret may begin with that does not belong to the key.
        event_id: Where it puts an id that is the same when it sends an event again: ``header:NAME``,
            ``body:PATH``, several of these with a space between to be joined. The first that a request has counts.
        event_type: Where it names the kind of an event, in the same way.
        passed: Beginnings of the names of headers that receivers get, too, in lower case.
        challenge: How it asks about a URL.
    """

    name: str
    schemes: tuple[Scheme, ...] = ()
    demands_secret: bool = True
    prefix: str = ""
    event_id: tuple[str, ...] = ()
    event_type: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    challenge: Challenge = Challenge.NONE

    def scheme_of(self, request: SignedPost) -> Scheme:
        """The scheme with which a request seems to be signed.

        Raises:
            Unverified: None.
        """
        for scheme in self.schemes:
            if scheme.header.lower() in request.headers:
                return scheme
        raise Unverified(Doubt.UNSIGNED)

    def places_of_id(self, request: SignedPost) -> tuple[str, ...]:
        """Where a request has its event's id: where it is signed, or anybody could send it again with another."""
        try:
            scheme = self.scheme_of(request)
        except Unverified:
            return self.event_id
        signed = tuple(f"header:{name.lower()}" for name, template in scheme.companions if template == "{id}")
        return signed or self.event_id

    def check_secret(self, secret: str) -> None:
        """Check that a secret has the form in which the sender hands it out.

        Raises:
            Malformed: It has another, or is a mask that stands for a stored one.
        """
        if secret == MASK:
            raise Malformed(f"{MASK} is no secret; leave it out to keep the stored one")
        if not 1 <= len(secret) <= MOST_SECRET:
            raise Malformed(f"The secret must have 1 to {MOST_SECRET} characters")
        if not self.schemes[0].key(secret.removeprefix(self.prefix)):
            raise Malformed(f"There is no key behind {self.prefix}: anybody could sign with that")

    def verify(self, secret: str, request: SignedPost) -> None:
        """Check that a request is the sender's.

        Args:
            secret: As the sender has handed it out.

        Raises:
            Unverified: It is not.
        """
        verify(self.scheme_of(request), [secret.removeprefix(self.prefix)], request)


def _scheme(header: str, content: str = "{body}", **more: Any) -> Scheme:
    return Scheme(header=header, content=content, **more)


_STANDARD = replace(PRESETS[STANDARD], preset="", key_prefix="")
_SVIX_SCHEMES = (
    replace(_STANDARD, header="svix-signature", companions=(("svix-id", "{id}"), ("svix-timestamp", "{ts}"))),
    _STANDARD,
)
_SVIX = WebhookSender(
    name="svix",
    schemes=_SVIX_SCHEMES,
    prefix="whsec_",
    event_id=("header:svix-id", "header:webhook-id"),
    event_type=("body:type", "body:eventType", "body:event_type"),
)
_SENT_BY_SVIX = (
    *("beehiiv", "brex", "clerk", "guesty", "incident-io", "lithic", "nash", "open-ai", "pleo", "psi-fi"),
    *("render", "replicate", "resend", "safebase", "sardine", "stych"),
)
"""Senders whose webhooks Svix sends, or that follow Standard Webhooks."""

SENDERS: Mapping[str, WebhookSender] = {
    each.name: each
    for each in (
        WebhookSender(
            name=GENERIC,
            demands_secret=False,
            event_id=(
                *("header:webhook-id", "header:ce-source header:ce-id", "header:idempotency-key"),
                "header:x-amz-sns-message-id",
            ),
            event_type=("header:ce-type",),
            passed=("ce-", "x-"),
        ),
        _SVIX,
        *(replace(_SVIX, name=name) for name in _SENT_BY_SVIX),
        WebhookSender(
            name="github",
            schemes=(PRESETS["github"],),
            demands_secret=False,
            event_id=("header:x-github-delivery",),
            event_type=("header:x-github-event",),
            passed=("x-github-", "x-hub-signature"),
        ),
        WebhookSender(
            name="stripe",
            schemes=(PRESETS["stripe"],),
            event_id=("body:id",),
            event_type=("body:type",),
            passed=("stripe-signature",),
        ),
        WebhookSender(
            name="shopify",
            schemes=(PRESETS["shopify"],),
            event_id=("header:x-shopify-webhook-id",),
            event_type=("header:x-shopify-topic",),
            passed=("x-shopify-",),
        ),
        WebhookSender(
            name="slack",
            schemes=(PRESETS["slack"],),
            event_id=("body:event_id",),
            event_type=("body:event.type", "body:type"),
            passed=("x-slack-",),
            challenge=Challenge.SLACK,
        ),
        WebhookSender(
            name="hubspot",
            schemes=(
                _scheme(
                    "X-HubSpot-Signature-v3",
                    "POST{url}{body}{ts_ms}",
                    encoding="base64",
                    companions=(("X-HubSpot-Request-Timestamp", "{ts_ms}"),),
                ),
            ),
            demands_secret=False,
            passed=("x-hubspot-",),
        ),
        WebhookSender(
            name="meta",
            schemes=(_scheme("X-Hub-Signature-256", value="sha256={signatures}"),),
            event_type=("body:object",),
            passed=("x-hub-signature",),
            challenge=Challenge.META,
        ),
        WebhookSender(
            name="zoom",
            schemes=(
                _scheme(
                    "x-zm-signature",
                    "v0:{ts}:{body}",
                    value="v0={signatures}",
                    companions=(("x-zm-request-timestamp", "{ts}"),),
                ),
            ),
            event_type=("body:event",),
            passed=("x-zm-",),
            challenge=Challenge.ZOOM,
        ),
    )
}
"""All kinds of senders, by name."""

MOST_PASSED = 20
MOST_PASSED_BYTES = 4_096
"""How many headers of a request are passed on, and how many bytes their names and values may have together; what is
more is left out.
"""

_KEPT = re.compile(r"[\x20-\x7e]*")
_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}")
_NEVER_PASSED = (
    *("x-amz", "x-forwarded", "x-http-method", "x-real-ip", "x-request", "x-scheme", "x-original", "x-envoy"),
    *("x-augury-", "x-azure-", "x-fd-", "x-gfe", "x-goog", "x-google", "x-svix-", "x-client-ip", "x-cluster-"),
)
"""What proxies add on the way, and what only this hub may say to its receivers."""


def passed_on(sender: WebhookSender, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request that its receivers get, too: the signature's among them, so that they may verify it."""
    found: dict[str, str] = {}
    left = MOST_PASSED_BYTES
    for name in sorted(headers):
        value = headers[name].strip()
        wanted = name.startswith(sender.passed) and not name.startswith(_NEVER_PASSED) if sender.passed else False
        size = len(name) + len(value)
        if not wanted or size > left or len(found) == MOST_PASSED:
            continue
        if _HEADER_NAME.fullmatch(name) and _KEPT.fullmatch(value):
            found[name] = value
            left -= size
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What a request says of the event that it tells.

    Attributes:
        event_id: The same when the sender sends it again; None if there is no such id.
        event_type: In the form of an event type's name; the kind's name if the sender does not say.
        value: The body as JSON; None if it is none.
    """

    event_id: str | None
    event_type: str
    value: Any


def event_of(sender: WebhookSender, request: SignedPost) -> Event:
    """The event that a request tells."""
    try:
        value = read(request.body, last_wins=True)
    except NotJson:
        value = None
    event_id = _first(sender.places_of_id(request), request.headers, value)
    event_type = _first(sender.event_type, request.headers, value)
    single = event_in(request.headers, request.body) if sender.name == GENERIC else None
    if single is not None:
        event_id, event_type = event_id or single.event_id, event_type or single.event_type
    return Event(
        event_id=as_id(event_id) if event_id else None,
        event_type=as_type(event_type or sender.name),
        value=value,
    )


def batch_of(sender: WebhookSender, request: SignedPost) -> list[tuple[Event, SignedPost]] | None:
    """The events of a batch of CloudEvents, each with the request that would have brought it alone; None for whatever
    is no batch.

    Raises:
        MalformedBatch: It says that it is one.
    """
    if sender.name != GENERIC or not is_batch(request.headers):
        return None
    headers = {**request.headers, "content-type": f"{STRUCTURED}; charset=utf-8"}
    return [
        (_of_cloud_event(sender, each), replace(request, headers=headers, body=each.body))
        for each in events_in(request.body)
    ]


def _of_cloud_event(sender: WebhookSender, event: ArrivedEvent) -> Event:
    return Event(
        event_id=as_id(event.event_id) if event.event_id else None,
        event_type=as_type(event.event_type or sender.name),
        value=event.value,
    )


_SNS_TYPE = "SubscriptionConfirmation"
_SNS_URL = re.compile(r"https://sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?/\?[!-~]{1,2000}")


def sns_confirmation(request: SignedPost, event: Event) -> str | None:
    """The URL with which a subscription of Amazon SNS is confirmed, if a request asks for that.

    Raises:
        Unverified: The URL is not SNS's own.
    """
    value = event.value if isinstance(event.value, dict) else {}
    if request.headers.get("x-amz-sns-message-type") != _SNS_TYPE or value.get("Type") != _SNS_TYPE:
        return None
    url = value.get("SubscribeURL")
    if not isinstance(url, str) or _SNS_URL.fullmatch(url) is None:
        raise Unverified(Doubt.FORGED)
    return url


def as_type(text: str) -> str:
    """A text in the form of an event type's name."""
    return _UNNAMEABLE.sub(".", text)[:256]


def as_id(text: str) -> str:
    """An id in the form of ids that producers give messages: as it is, or its digest."""
    return text if _NAME.fullmatch(text) else sha256(text.encode(errors="surrogatepass")).hexdigest()


def _first(places: Sequence[str], headers: Mapping[str, str], value: Any) -> str:
    for place in places:
        found = [_at(each, headers, value) for each in place.split()]
        if all(found):
            return id_of(*found)
    return ""


def _at(place: str, headers: Mapping[str, str], value: Any) -> str:
    where, _, name = place.partition(":")
    if where == "header":
        return headers.get(name, "").strip()
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
