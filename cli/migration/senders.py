"""Outpost, Convoy, Hook0, IronMQ and QStash as sources of an import: what their APIs answer, in this hub's terms.

The answers are read without trust: what is missing or has another form is no reason to make something else of it.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import click

from pushhub.base import json_text
from pushhub.base.fields import settings_of
from pushhub.base.numerals import whole
from pushhub.engine.model.queue import PushSettings, Queue

from ..rest import Refused, Rest, segment
from .members import Members, not_copied
from .taking_over import (
    HIDDEN,
    MOST_PAGES,
    Lack,
    Source,
    TheirApplication,
    TheirEndpoint,
    TheirEventType,
    TheirQueue,
    patiently,
    text_of,
)

PAGE: Final = 100
_CHANNEL = re.compile(r"[^a-zA-Z0-9\-_.:+]")


def _settings(cls: type) -> set[str]:
    """What a kind of thing has that can be set, by the names that the queue API gives it."""
    return {name for field_name, _, _, setting in settings_of(cls) for name in setting.names(field_name)}


_FILTERED: Final = "its filter is not copied, so it is disabled: set payloadFilters, then enable it"
_TIMES: Final = dict.fromkeys(
    ("created_at", "updated_at", "deleted_at", "updated_by"), "when it was made and changed there"
)
_OF_THE_OWNER: Final = dict.fromkeys(
    ("project_id", "organization_id", "application_id", "group_id", "app_id", "tenant_id"), "whose it is there"
)
_STATE: Final = dict.fromkeys(
    (
        *("events", "event_count", "failure_rate", "last_delivery_at", "success_rate"),
        *("topics_count", "destinations_count", "quotas", "onboarding_steps", "consumption"),
    ),
    "what happened there so far",
)
_NOTHING: Final = {**_TIMES, **_OF_THE_OWNER, **_STATE}
_TENANT: Final = Members(
    copied={"id"}, nothing={**_NOTHING, "topics": "those of its destinations"}, words={"metadata": "metadata"}
)
_DESTINATION: Final = Members(
    copied={"id", "type", "topics", "config", "credentials", "disabled_at", "metadata", "delivery_metadata", "filter"},
    nothing={**_NOTHING, "target": "its URL, for people", "target_url": "a link for people"},
)
_DESTINATION_CONFIG: Final = Members(copied={"url", "custom_headers"})
_DESTINATION_CREDENTIALS: Final = Members(
    copied={"secret", "previous_secret"}, nothing={"previous_secret_invalid_at": "when that secret ends"}
)
_CONVOY_ENDPOINT: Final = Members(
    copied={
        *("uid", "owner_id", "url", "target_url", "name", "title", "description", "status", "secrets"),
        *("advanced_signatures", "rate_limit", "rate_limit_duration", "authentication", "content_type"),
        "mtls_client_cert",
    },
    nothing={**_NOTHING, "document_id": "its former id", "cached": "how the server answers"},
    words={
        "http_timeout": "timeout",
        "support_email": "support address",
        "slack_webhook_url": "Slack address",
    },
)
_SUBSCRIPTION: Final = Members(
    copied={"uid", "endpoint_id", "endpoint_metadata", "filter_config", "function"},
    nothing={
        **_NOTHING,
        "name": "its name for people",
        "source_id": "where messages come from: here, whoever posts them",
        "source_metadata": "the same",
        "type": "how it was made",
        "mode": "the same",
        "device_id": "a command line that listens, which has a place of its own",
        "device_metadata": "the same",
        "delivery_mode": "at least once, as here",
    },
    words={
        "retry_config": "retries",
        "alert_config": "alerts",
        "rate_limit_config": "rate by subscription",
    },
)
_HOOK0_APPLICATION: Final = Members(copied={"application_id", "name"}, nothing=_NOTHING)
_HOOK0_SUBSCRIPTION: Final = Members(
    copied={
        *("subscription_id", "is_enabled", "event_types", "description", "secret", "metadata", "target"),
        *("labels", "label_key", "label_value"),
    },
    nothing={**_NOTHING, "dedicated_workers": "which of its machines send"},
)
_HOOK0_TARGET: Final = Members(copied={"type", "method", "url", "headers"})
_GROUP: Final = Members(
    copied={"name", "endpoints"}, nothing={"createdAt": "when it was made there", "updatedAt": "the same"}
)
_GROUP_ENDPOINT: Final = Members(copied={"name", "url"})
_QUEUE: Final = Members(
    copied={"type", "push_type", "push", "dead_letter", "alerts", *_settings(Queue), "search_fields"},
    nothing={"id": "its number there"},
)
_PUSH: Final = Members(copied={"subscribers", "error_queue", *_settings(PushSettings)})
_GATES: Final = {
    "oauth": "its OAuth",
    "mtls": "its client certificate",
    "signing": "its signing (the secret there: pushhub signing-secret)",
}
"""What the receiver of a subscriber demands, of which another hub of this kind shows no secret."""
_SUBSCRIBER: Final = Members(
    copied={"name", "url", "headers", "timeout", "paused", *_GATES},
    nothing={"signing_ends": "what signs there ends there", "id": "its number there", "dialect": "raw, as here"},
)
_FILTERING: Final = ("headers", "body", "query", "path", "raw_headers", "raw_body")
_DURATION = re.compile(r"(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?")


class _Sender(Source):
    """What all of these do: ask."""

    url: ClassVar[str] = ""
    """Where its own service is; empty if everybody has a server of their own."""
    needs_project: ClassVar[bool] = False

    def __init__(self, there: Rest, sleep: Callable[[float], None] = time.sleep) -> None:
        self._there = there
        self._sleep = sleep

    def ask(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The JSON of an answer. Any server but this hub is shown one token, in one header."""
        return patiently(self._there, "GET", path, None, query, headers=self.shown(), sleep=self._sleep)

    def shown(self) -> Mapping[str, str]:
        """The headers that show the token."""
        return {"Authorization": f"Bearer {self._there.token}", "X-Augury-Token": ""}

    @property
    def project(self) -> str:
        """The project there, as a segment of a path."""
        return segment(self._there.project)


class Outpost(_Sender):
    """Hookdeck's Outpost: tenants with destinations. Requests are signed as its own are by default.

    Its API is below ``/api/v1`` on a server of one's own. The managed one has a date in its place, as in
    ``https://api.outpost.hookdeck.com/2025-07-01``: a URL with a path is taken as it is.
    """

    def __init__(self, there: Rest, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(there, sleep)
        self._root = "" if urlsplit(there.base_url).path.strip("/") else "/api/v1"

    def event_types(self) -> Iterator[TheirEventType]:
        """Its topics."""
        yield from (_event_type(each, "Outpost") for each in self._topics())

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        """Its tenants."""
        for tenant in self._tenants() if only is None else iter([{"id": only}]):
            uid = text_of(tenant, "id")
            listed = _list(self.ask(f"{self._root}/tenants/{segment(uid)}/destinations"), "destinations")
            yield TheirApplication(
                uid=uid,
                fields={"name": uid},
                endpoints=[self._endpoint(each) for each in listed],
                notes=not_copied([*_TENANT.left(tenant)]),
            )

    def _topics(self) -> list[str]:
        try:
            answer = self.ask(f"{self._root}/topics")
        except Refused as error:
            if error.status != 404:
                raise
            # Former versions know topics of tenants only; they are the same for all.
            first = next(self._tenants(), None)
            answer = [] if first is None else self.ask(f"{self._root}/tenants/{segment(text_of(first, 'id'))}/topics")
        return [each for each in answer if isinstance(each, str) and each != "*"] if isinstance(answer, list) else []

    def _tenants(self) -> Iterator[Mapping[str, Any]]:
        following: str | None = None
        for _ in range(MOST_PAGES):
            more = {} if following is None else {"next": following}
            answer = self.ask(f"{self._root}/tenants", {"limit": str(PAGE), **more})
            listed = answer.get("models", answer.get("data")) if isinstance(answer, dict) else answer
            yield from _list(listed, "tenants")
            paged = answer.get("pagination", answer) if isinstance(answer, dict) else {}
            last, following = following, _optional(paged, "next")
            if not following or following == last:
                return
        raise click.ClickException("the list of tenants does not end")

    def _endpoint(self, theirs: Mapping[str, Any]) -> TheirEndpoint:
        config, credentials = _section(theirs, "config"), _section(theirs, "credentials")
        uid, kind, notes = text_of(theirs, "id"), text_of(theirs, "type"), []
        if kind != "webhook":
            return TheirEndpoint(uid=uid, fields={}, unfit=f"it sends to {kind}: make what takes its place by hand")
        topics = theirs.get("topics")
        wanted = [topics] if isinstance(topics, str) else _names(topics, "topics")
        types = None if "*" in wanted else wanted
        if types and any("*" in each for each in types):
            known = self._topics()
            types = [each for each in known if any(_matches(pattern, each) for pattern in types)]
            notes.append("its patterns of topics are the topics of today")
        widened = bool(theirs.get("filter"))
        if widened:
            notes.append(_FILTERED)
        if types is not None and not types:
            notes.append("it gets no topic, so it is disabled")
        if credentials.get("previous_secret"):
            notes.append("its previous secret does not sign any more")
        left = [*_DESTINATION.left(theirs), *_DESTINATION_CONFIG.left(config)]
        left += _DESTINATION_CREDENTIALS.left(credentials)
        notes += [*_not_texts("custom headers", _parsed(config.get("custom_headers"))), *not_copied(left)]
        notes += _not_texts("metadata", theirs.get("metadata"))
        secret = text_of(credentials, "secret")
        return TheirEndpoint(
            uid=uid,
            fields={
                "url": text_of(config, "url"),
                "eventTypes": types or None,
                "disabled": bool(theirs.get("disabled_at")) or (types is not None and not types),
                "metadata": _texts(theirs.get("metadata")),
            },
            headers=_texts(_parsed(config.get("custom_headers"))) | _texts(theirs.get("delivery_metadata")),
            scheme={"preset": "outpost", "secret": secret},
            notes=notes,
            lacks=[Lack.FILTERS] if widened else [],
        )


@dataclass(slots=True)
class _Gets:
    """What an endpoint of Convoy gets, by all its subscriptions.

    Attributes:
        types: Event types; ``*`` for all.
        notes: What a person has to do, without repetitions.
        left: What is not copied and changes nothing of what it gets, in words.
        widened: Whether it would get more here.
    """

    types: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    widened: bool = False


class Convoy(_Sender):
    """Convoy: endpoints with owners, and subscriptions that say what they get. Signed as its project says."""

    needs_project = True

    def event_types(self) -> Iterator[TheirEventType]:
        """Its event types; those that subscriptions name, where there is no catalogue."""
        named = {each for gets in self._subscribed().values() for each in gets.types if each != "*"}
        yield from (_event_type(each, "Convoy") for each in sorted(named))

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        """Owners with their endpoints; an endpoint without an owner is one of its own."""
        scheme, gets = self._scheme(), self._subscribed()
        owners: dict[str, list[Mapping[str, Any]]] = {}
        for each in self._listed("endpoints"):
            owner = _optional(each, "owner_id") or text_of(each, "uid")
            if only in (None, owner):
                owners.setdefault(owner, []).append(each)
        for owner, listed in owners.items():
            name = owner if len(listed) > 1 or listed[0].get("owner_id") else _called(listed[0])
            endpoints = [self._endpoint(each, scheme, gets) for each in listed]
            yield TheirApplication(uid=owner, fields={"name": name}, endpoints=endpoints)

    def _listed(self, what: str) -> Iterator[Mapping[str, Any]]:
        following: str | None = None
        for _ in range(MOST_PAGES):
            more = {} if following is None else {"next_page_cursor": following, "direction": "next"}
            answer = self.ask(f"/api/v1/projects/{self.project}/{what}", {"perPage": str(PAGE), **more})
            data = _section(answer, "data")
            yield from _list(data.get("content"), what)
            paged = _section(data, "pagination")
            last, following = following, _optional(paged, "next_page_cursor")
            if paged.get("has_next_page") is not True or not following or following == last:
                return
        raise click.ClickException(f"the list of {what} does not end")

    def _subscribed(self) -> dict[str, _Gets]:
        """What each endpoint gets, by its id."""
        found: dict[str, _Gets] = {}
        for each in self._listed("subscriptions"):
            uid = _section(each, "endpoint_metadata").get("uid") or each.get("endpoint_id")
            if not isinstance(uid, str):
                continue
            config, gets = _section(each, "filter_config"), found.setdefault(uid, _Gets())
            gets.types |= {*_names(config.get("event_types") or ["*"], "event types")}
            if _filters(config.get("filter")) or any(map(_filters, self._filters_of(each))):
                gets.notes[_FILTERED] = None
            if each.get("function"):
                gets.notes["its function is not copied, so it is disabled: payloads would come as they are"] = None
            gets.widened = bool(gets.notes)
            gets.left |= dict.fromkeys(_SUBSCRIPTION.left(each))
        return found

    def _filters_of(self, subscription: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The filters of single event types, which have a path of their own; former versions have none."""
        uid = _optional(subscription, "uid")
        if uid is None:
            return []
        try:
            answer = self.ask(f"/api/v1/projects/{self.project}/subscriptions/{segment(uid)}/filters")
        except Refused as error:
            if error.status not in (404, 405):
                raise
            return []
        return _list(_section(answer, "").get("data"), "filters")

    def _scheme(self) -> Mapping[str, Any]:
        """How the project signs: the header, and the newest of its versions."""
        try:
            project = _section(self.ask(f"/api/v1/projects/{self.project}"), "data")
        except Refused as error:
            if error.status not in (401, 403, 404):
                raise
            raise click.ClickException(
                "how the project signs is not shown to this token: use a personal API key of an administrator"
            ) from error
        signature = _section(_section(project, "config"), "signature")
        versions = _list(signature.get("versions"), "versions")
        if not versions:
            raise click.ClickException("the project does not say how it signs")
        name, newest = _optional(signature, "header") or "X-Convoy-Signature", versions[-1]
        hashed = text_of(newest, "hash").lower()
        return {
            "header": {"name": name},
            "hash": hashed,
            "encoding": text_of(newest, "encoding").lower(),
            **({"legacy": True} if hashed == "sha1" else {}),
        }

    def _endpoint(
        self, theirs: Mapping[str, Any], scheme: Mapping[str, Any], subscribed: Mapping[str, _Gets]
    ) -> TheirEndpoint:
        uid, notes = text_of(theirs, "uid"), []
        secrets = [each for each in _list(theirs.get("secrets"), "secrets") if not _gone(each)]
        if not secrets:
            raise click.ClickException(f"the secret of endpoint {uid} is not shown to this token")
        if len(secrets) > 1:
            notes.append("its older secrets do not sign any more")
        gets = subscribed.get(uid, _Gets())
        if not gets.types:
            notes.append("it has no subscription, so it is disabled")
        notes += gets.notes
        lacks = [Lack.FILTERS] if gets.widened else []
        notes += not_copied([*gets.left, *_CONVOY_ENDPOINT.left(theirs)])
        if theirs.get("mtls_client_cert"):
            notes.append("set its client certificate again")
            lacks.append(Lack.CERTIFICATE)
        if theirs.get("content_type") not in (None, "", "application/json"):
            notes.append("requests here are JSON, not {}".format(theirs["content_type"]))
        headers, unknown = _authentication(_section(theirs, "authentication"))
        if unknown:
            notes.append(unknown)
            lacks.append(Lack.OAUTH if "oauth2" in unknown else Lack.KEY)
        count, seconds = theirs.get("rate_limit"), _seconds(theirs.get("rate_limit_duration"))
        rate = round(count / seconds) if isinstance(count, int) and count > 0 and seconds > 0 else 0
        if count and not rate:
            notes.append("its rate is less than one a second, and not copied")
        preset = "convoy-advanced" if theirs.get("advanced_signatures") else "convoy-simple"
        return TheirEndpoint(
            uid=uid,
            fields={
                "url": _optional(theirs, "url") or text_of(theirs, "target_url"),
                "description": _optional(theirs, "description") or "",
                "eventTypes": None if "*" in gets.types or not gets.types else sorted(gets.types),
                "disabled": not gets.types or theirs.get("status") in ("inactive", "paused"),
                "throttleRate": rate or None,
            },
            headers=headers,
            scheme={"preset": preset, **scheme, "secret": text_of(secrets[-1], "value")},
            notes=notes,
            lacks=lacks,
        )


class Hook0(_Sender):
    """Hook0: applications with subscriptions. Labels become a channel, which producers name with each message."""

    url = "https://app.hook0.com"
    needs_project = True

    def event_types(self) -> Iterator[TheirEventType]:
        """Those of all applications."""
        found: dict[str, None] = {}
        for app in self._applications():
            query = {"application_id": text_of(app, "application_id")}
            for each in _list(self.ask("/api/v1/event_types", query), "event types"):
                found[text_of(each, "event_type_name")] = None
        yield from (_event_type(each, "Hook0") for each in found)

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        """Its applications."""
        for app in self._applications():
            uid = text_of(app, "application_id")
            if only in (None, uid):
                listed = _list(self.ask("/api/v1/subscriptions", {"application_id": uid}), "subscriptions")
                name = _optional(app, "name") or uid
                endpoints = [_subscription(each) for each in listed]
                notes = not_copied([*_HOOK0_APPLICATION.left(app)])
                yield TheirApplication(uid=uid, fields={"name": name}, endpoints=endpoints, notes=notes)

    def _applications(self) -> list[Mapping[str, Any]]:
        return _list(self.ask("/api/v1/applications", {"organization_id": self._there.project}), "applications")


class IronMQ(_Sender):
    """IronMQ v3: queues with their settings and subscribers. What waits in them is moved by ``pushhub shovel``."""

    url = "https://mq-aws-us-east-1-1.iron.io"
    needs_project = True
    read_only: ClassVar[frozenset[str]] = frozenset({"name", "project_id", "id", "size", "total_messages", "left"})

    def shown(self) -> Mapping[str, str]:
        """The token as its clients show it."""
        return {"Authorization": f"OAuth {self._there.token}", "X-Augury-Token": ""}

    def queues(self) -> Iterator[TheirQueue]:
        """Its queues; the settings as they are shown."""
        last: str | None = None
        for _ in range(MOST_PAGES):
            more = {} if last is None else {"previous": last}
            answer = self.ask(f"/3/projects/{self.project}/queues", {"per_page": str(PAGE), **more})
            listed = _list(_section(answer, "").get("queues"), "queues")
            for each in listed:
                name = text_of(each, "name")
                queue = _section(self.ask(f"/3/projects/{self.project}/queues/{segment(name)}"), "queue")
                settings = {key: value for key, value in queue.items() if key not in self.read_only}
                if "alerts" in settings:
                    # Theirs are numbered by themselves.
                    alerts = _list(settings["alerts"], "alerts")
                    settings["alerts"] = [{key: each[key] for key in each if key != "id"} for each in alerts]
                waiting = queue.get("size")
                notes = [f"{waiting} messages wait there: pushhub shovel"] if waiting and "push" not in queue else []
                push = _section(settings, "push")
                left, paused = [*_QUEUE.left(settings), *_PUSH.left(push)], []
                hidden: dict[str, Sequence[str]] = {}
                for subscriber in _list(push.get("subscribers"), "subscribers"):
                    left += _SUBSCRIBER.left(subscriber)
                    headers = _section(subscriber, "headers")
                    hidden[str(subscriber.get("name"))] = [each for each in headers if headers[each] == HIDDEN]
                    lacking = _without_hidden(subscriber)
                    if lacking:
                        notes.append(
                            f"subscriber {subscriber.get('name')} is paused until you have set {lacking} again"
                        )
                    if lacking or subscriber.get("paused") is True:
                        paused.append(text_of(subscriber, "name"))
                notes += not_copied(left)
                yield TheirQueue(name=name, settings=settings, notes=notes, paused=paused, hidden=hidden)
            if len(listed) < PAGE or text_of(listed[-1], "name") == last:
                return
            last = text_of(listed[-1], "name")
        raise click.ClickException("the list of queues does not end")


class QStash(_Sender):
    """Upstash's QStash: URL groups become multicast queues. Queues and schedules have no place here of their own."""

    url = "https://qstash.upstash.io"
    unsigned: ClassVar[str] = "receivers that verify Upstash-Signature, a JWT, must verify something else (signing)"

    def queues(self) -> Iterator[TheirQueue]:
        """Its URL groups."""
        for each in _list(self.ask("/v2/topics"), "URL groups"):
            subscribers = []
            for number, endpoint in enumerate(_list(each.get("endpoints"), "endpoints"), 1):
                name = _optional(endpoint, "name") or f"endpoint-{number}"
                subscribers.append({"name": name, "url": text_of(endpoint, "url")})
            notes = [self.unsigned] if subscribers else []
            left = [*_GROUP.left(each)]
            for endpoint in _list(each.get("endpoints"), "endpoints"):
                left += _GROUP_ENDPOINT.left(endpoint)
            notes += not_copied(left)
            settings = {"type": "multicast", "push": {"subscribers": subscribers}}
            yield TheirQueue(name=text_of(each, "name"), settings=settings, notes=notes)

    def left(self) -> Iterator[tuple[str, str, str]]:
        """Queues, whose messages each have a URL of their own, and schedules."""
        for each in _list(self.ask("/v2/queues"), "queues"):
            note = "its messages each name their URL: make a push queue here for each URL, and post to it"
            yield "queue", text_of(each, "name"), note
        for each in _list(self.ask("/v2/schedules"), "schedules"):
            what = f"{_optional(each, 'cron') or '?'} to {_optional(each, 'destination') or '?'}"
            yield "schedule", text_of(each, "scheduleId"), f"{what}: let your own scheduler post it"


SENDERS: Mapping[str, type[_Sender]] = {
    "outpost": Outpost,
    "convoy": Convoy,
    "hook0": Hook0,
    "ironmq": IronMQ,
    "qstash": QStash,
}
"""By the name that ``--from`` takes."""


def _event_type(name: str, sender: str) -> TheirEventType:
    return TheirEventType(name=name, fields={"description": f"Copied from {sender}"})


def _not_texts(what: str, given: object) -> list[str]:
    """The note about members that are no texts, which are not copied."""
    texts, members = _texts(given), given if isinstance(given, Mapping) else {}
    return [f"{what} that are no texts are not copied: {', '.join(map(str, members.keys() - texts.keys()))}"] * (
        len(texts) < len(members)
    )


def _subscription(theirs: Mapping[str, Any]) -> TheirEndpoint:
    """A subscription of Hook0."""
    uid, target, notes = text_of(theirs, "subscription_id"), _section(theirs, "target"), []
    if target.get("type") != "http" or str(target.get("method")).upper() != "POST":
        return TheirEndpoint(uid=uid, fields={}, unfit=f"requests here are POST, not {target.get('method')}")
    given = theirs.get("labels")
    labels = _texts(given or {theirs.get("label_key"): theirs.get("label_value")})
    widened = bool(given) and (not isinstance(given, Mapping) or len(labels) < len(given))
    if widened:
        notes.append("labels that are no texts are not copied, so it is disabled: set its channels, then enable it")
    notes += _not_texts("headers", target.get("headers")) + _not_texts("metadata", theirs.get("metadata"))
    notes += not_copied([*_HOOK0_SUBSCRIPTION.left(theirs), *_HOOK0_TARGET.left(target)])
    types = sorted(_names(theirs.get("event_types"), "event types"))
    if not types:
        notes.append("it has no event type, so it is disabled")
    channel = "+".join(f"{_CHANNEL.sub('_', key)}:{_CHANNEL.sub('_', value)}" for key, value in sorted(labels.items()))
    if channel:
        notes.append(f"send messages with these labels with channels: [{json_text.write(channel[:128])}]")
    return TheirEndpoint(
        uid=uid,
        fields={
            "url": text_of(target, "url"),
            "description": _optional(theirs, "description") or "",
            "eventTypes": types or None,
            "channels": [channel[:128]] if channel else None,
            "disabled": theirs.get("is_enabled") is False or not types,
            "metadata": _texts(theirs.get("metadata")),
        },
        headers=_texts(target.get("headers")),
        scheme={"preset": "hook0", "secret": text_of(theirs, "secret")},
        notes=notes,
        lacks=[Lack.FILTERS] if widened else [],
    )


def _without_hidden(subscriber: Mapping[str, Any]) -> str:
    """Take out of a subscriber what another hub of this kind does not show; what that was, in words."""
    found, headers = [], subscriber.get("headers")
    if isinstance(headers, dict) and isinstance(subscriber, dict):
        for name in [name for name, value in headers.items() if value == HIDDEN]:
            del headers[name]
            found.append(name)
    found += [words for name, words in _GATES.items() if isinstance(subscriber, dict) and subscriber.pop(name, None)]
    return ", ".join(found)


def _authentication(given: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    """Convoy's authentication of an endpoint as a header, and what is not copied of it."""
    kind, key, basic = given.get("type"), _section(given, "api_key"), _section(given, "basic_auth")
    if kind == "api_key" and key.get("header_name"):
        return {text_of(key, "header_name"): text_of(key, "header_value")}, ""
    if kind in ("basic_auth", "basic") and basic:
        pair = f"{text_of(basic, 'username')}:{text_of(basic, 'password')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, ""
    return {}, f"its authentication ({kind}) is not copied" if kind else ""


def _filters(given: object) -> bool:
    """Whether a filter of Convoy's holds anything back: an empty one lets everything through."""
    return isinstance(given, Mapping) and any(value for name, value in given.items() if name in _FILTERING)


def _called(endpoint: Mapping[str, Any]) -> str:
    """The name of a Convoy endpoint, in its former field or the present one."""
    return _optional(endpoint, "name") or _optional(endpoint, "title") or text_of(endpoint, "uid")


def _gone(secret: Mapping[str, Any]) -> bool:
    """Whether a secret of Convoy's has been removed or has an end: the one that replaced it has none."""
    return any(secret.get(name) not in (None, "", "0001-01-01T00:00:00Z") for name in ("deleted_at", "expires_at"))


def _seconds(duration: object) -> int:
    """Seconds of a duration, as a number or as Go writes it (``1m0s``); 0 for anything else."""
    if isinstance(duration, int):
        return duration
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    hours, minutes, seconds = (whole(each or "0") for each in found.groups()) if found else (0, 0, 0)
    return hours * 3600 + minutes * 60 + seconds


def _matches(pattern: str, topic: str) -> bool:
    """Whether a pattern with asterisks means a topic."""
    if "*" not in pattern:
        return pattern == topic
    first, *middle, last = pattern.split("*")
    at, end = len(first), len(topic) - len(last)
    if not (topic.startswith(first) and topic.endswith(last)) or at > end:
        return False
    for each in middle:
        # The earliest place leaves the most for those that follow.
        found = topic.find(each, at, end)
        if found < 0:
            return False
        at = found + len(each)
    return True


def _parsed(value: object) -> object:
    """Outpost keeps maps of a destination's configuration as text."""
    if not isinstance(value, str):
        return value
    try:
        return json_text.read(value, last_wins=True)
    except json_text.NotJson:
        return None


def _texts(value: object) -> dict[str, str]:
    """The members of an object that are texts; of lists with one text, the text."""
    found: dict[str, str] = {}
    for name, each in value.items() if isinstance(value, Mapping) else ():
        single = each[0] if isinstance(each, list) and len(each) == 1 else each
        if isinstance(single, str):
            found[str(name)] = single
    return found


def _list(value: object, what: str) -> list[Mapping[str, Any]]:
    """A list of objects; null is an empty one, as Go writes it."""
    if value is None:
        return []
    if not isinstance(value, Sequence) or not all(isinstance(each, Mapping) for each in value):
        raise click.ClickException(f"the answer is no list of {what}")
    return [*value]


def _names(value: object, what: str) -> list[str]:
    """The texts of a list; null is an empty one."""
    if value is not None and not isinstance(value, list):
        raise click.ClickException(f"the answer is no list of {what}")
    return [each for each in value or () if isinstance(each, str)]


def _section(value: object, name: str) -> Mapping[str, Any]:
    """An object, or with a name one in it; an empty one if there is none."""
    inside = value.get(name) if name and isinstance(value, Mapping) else value
    return inside if isinstance(inside, Mapping) else {}


def _optional(value: Mapping[str, Any], name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) else None
