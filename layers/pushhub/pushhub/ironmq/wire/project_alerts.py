"""Alerts of projects on the wire, and what they tell: as JSON, or as a message of Slack's incoming webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from pushhub.base import json_text
from pushhub.base.credentials import user_of
from pushhub.base.errors import Invalid
from pushhub.base.times import end_in_words, iso_time
from pushhub.ironmq.model.project_alert import AlertEvent, AlertSettings, Format, Measure
from pushhub.ironmq.wire.names import check_queue_name
from pushhub.ironmq.wire.urls import check_callable
from pushhub.web.gates import certificate_view
from pushhub.web.json import integer, section, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.base.gates import ClientCertificate
    from pushhub.ironmq.model.project_alert import AlertNotification, ProjectAlert

MAX_ALERT_NAME = 100
MAX_ALERT_URL = 2_000
MAX_SUBSCRIBER = 500
DEFAULT_MINUTES, MIN_MINUTES, MAX_MINUTES = 15, 5, 60
MAX_THRESHOLD = {Measure.FAILURE_RATE: 100, Measure.GIVEN_UP: 1_000_000, Measure.OLDEST_WAITING: 2_592_000}

_Choice = TypeVar("_Choice", Measure, Format)


def parse_alert(fields: Mapping[str, Any]) -> AlertSettings:
    """Read an alert."""
    given = section(fields, "alert")
    if given is None:
        raise Invalid("alert is required")
    measure = _chosen(given, "measure", Measure)
    threshold = integer(given, "threshold", least=1, most=MAX_THRESHOLD[measure])
    if threshold is None:
        raise Invalid("threshold is required")
    queue, subscriber = text(given, "queue") or "", text(given, "subscriber") or ""
    if queue:
        check_queue_name(queue, "queue")
    if measure is Measure.OLDEST_WAITING and (not queue or subscriber):
        raise Invalid("oldest_waiting needs a queue, and no subscriber")
    if len(subscriber) > MAX_SUBSCRIBER:
        raise Invalid(f"subscriber may have at most {MAX_SUBSCRIBER} characters")
    return AlertSettings(
        name=_bounded(given, "name", MAX_ALERT_NAME),
        measure=measure,
        threshold=threshold,
        minutes=integer(given, "minutes", least=MIN_MINUTES, most=MAX_MINUTES) or DEFAULT_MINUTES,
        queue=queue,
        subscriber=subscriber,
        url=_url(given),
        format=_chosen(given, "format", Format, Format.JSON),
    )


def _url(given: Mapping[str, Any]) -> str:
    url = _bounded(given, "url", MAX_ALERT_URL)
    if url.partition(":")[0].lower() not in ("http", "https"):
        raise Invalid("url must begin with https:// or http://")
    if user_of(url):
        raise Invalid("url may not hold a user name or password")
    check_callable(url)
    return url


def _bounded(given: Mapping[str, Any], name: str, most: int) -> str:
    value = (text(given, name) or "").strip()
    if not 0 < len(value) <= most:
        raise Invalid(f"{name} must have 1 to {most} characters")
    return value


def _chosen(given: Mapping[str, Any], name: str, kind: type[_Choice], default: _Choice | None = None) -> _Choice:
    value = text(given, name)
    if value is None and default is not None:
        return default
    try:
        return kind(value or "")
    except ValueError as error:
        raise Invalid(f"{name} must be one of {', '.join(kind)}") from error


def render_alert(alert: ProjectAlert) -> dict[str, object]:
    """An alert with its state."""
    state = alert.state
    return {
        "id": alert.alert_id,
        **_about(alert),
        "url": alert.url,
        "format": alert.format.value,
        "state": "firing" if state.firing_since else "quiet",
        "since": iso_time(state.firing_since) if state.firing_since else None,
        "value": state.value,
    }


def _about(alert: ProjectAlert) -> dict[str, object]:
    return {
        "name": alert.name,
        "measure": alert.measure.value,
        "threshold": alert.threshold,
        "minutes": alert.minutes,
        "queue": alert.queue,
        "subscriber": alert.subscriber,
    }


def notification_body(alert: ProjectAlert, notification: AlertNotification, base_url: str) -> bytes:
    """What is posted to the alert's URL."""
    link = f"{base_url}/console#/{_page(alert)}"
    content: dict[str, object] = {
        "state": notification.happened.value,
        "alert": {"id": alert.alert_id, **_about(alert)},
        "value": notification.value,
        "at": iso_time(notification.at),
        "text": sentence(alert, notification),
        "project": alert.project,
        "link": link,
    }
    if alert.format is Format.SLACK:
        mark = {AlertEvent.FIRING: ":red_circle:", AlertEvent.RESOLVED: ":large_green_circle:"}.get(
            notification.happened, ":wave:"
        )
        content = {"text": f"{mark} {_slack(sentence(alert, notification))} <{link}|Console>"}
    return json_text.write(content, spaced=True).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOf:
    """Whose the end is that is told of.

    Attributes:
        queue: The subscriber's queue; empty for what all receivers of the project inherit.
        subscriber: Name of the subscriber.
        days_left: Days until the end; 0 when it has come.
        at: Since when that is to be told, epoch milliseconds.
    """

    queue: str
    subscriber: str
    days_left: int
    at: int
    base_url: str

    def said(self, what: str, ended: str = "") -> str:
        """A sentence for people."""
        whose = f"for {self.subscriber or 'a subscriber'} of queue {self.queue}" if self.queue else "of the project"
        return f"The {what} {whose} {end_in_words(self.days_left)}{'' if self.days_left else ended}."


def certificate_body(alert: ProjectAlert, certificate: ClientCertificate, end: EndOf) -> bytes:
    """What is posted to an alert's URL about a client certificate that ends."""
    said = end.said("client certificate", ": nothing is sent")
    return _end_body(alert, "certificate_ending", said, end, certificate=certificate_view(certificate))


def signature_body(alert: ProjectAlert, header: str, ends_at: str, end: EndOf) -> bytes:
    """What is posted to an alert's URL about a signature scheme that ends."""
    signature = {"header": header, "ends_at": ends_at}
    return _end_body(alert, "signature_ending", end.said(f"signature {header}"), end, signature=signature)


def _end_body(alert: ProjectAlert, state: str, said: str, end: EndOf, **what: object) -> bytes:
    page = f"queues/{quote(end.queue, safe='')}" if end.queue else "apps"
    link = f"{end.base_url}/console#/{page}"
    content: dict[str, object] = {
        "state": state,
        "alert": {"id": alert.alert_id, **_about(alert)},
        "value": end.days_left,
        "at": iso_time(end.at),
        "text": said,
        "project": alert.project,
        "link": link,
        "queue": end.queue,
        "subscriber": end.subscriber,
        **what,
    }
    if alert.format is Format.SLACK:
        content = {"text": f":warning: {_slack(said)} <{link}|Console>"}
    return json_text.write(content, spaced=True).encode()


def sentence(alert: ProjectAlert, notification: AlertNotification) -> str:
    """What happened, for people."""
    begins = {
        AlertEvent.FIRING: f"{alert.name} is firing",
        AlertEvent.RESOLVED: f"{alert.name} is resolved",
        AlertEvent.TEST: f"A test of {alert.name}",
    }[notification.happened]
    reached = notification.value
    at = f"at {alert.subscriber}" if alert.subscriber else ""
    of = f"of queue {alert.queue}" if alert.queue else "" if alert.subscriber else "of the project"
    scope = " ".join(each for each in (at, of) if each)
    value = {
        Measure.FAILURE_RATE: f"{reached} % of the attempts {scope} failed in {alert.minutes} minutes",
        Measure.GIVEN_UP: f"{reached} deliveries {scope} were given up in {alert.minutes} minutes",
        Measure.OLDEST_WAITING: f"the oldest message that waits {scope.replace('of', 'in', 1)} is {reached} s old",
    }[alert.measure]
    limit = f"{alert.threshold}{' %' if alert.measure is Measure.FAILURE_RATE else ''}"
    return f"{begins}: {value} (limit {limit}{' s' if alert.measure is Measure.OLDEST_WAITING else ''})."


def _page(alert: ProjectAlert) -> str:
    if alert.measure is Measure.OLDEST_WAITING:
        return f"queues/{quote(alert.queue, safe='')}"
    chosen = {"queue": alert.queue, "subscriber": alert.subscriber}
    query = urlencode({name: value for name, value in chosen.items() if value})
    return f"charts?{query}" if query else "charts"


def _slack(said: str) -> str:
    """Text in which nothing is a link or calls a channel: names are chosen by people."""
    return said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
