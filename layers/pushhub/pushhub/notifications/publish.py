"""Publishes a project's notifications to every topic that one of its subscriptions selects for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid, TooLarge, Unavailable
from pushhub.base.ids import new_reservation_id
from pushhub.base.json_text import members, object_of, write
from pushhub.base.steps import MOST_STEPS, Steps
from pushhub.engine.component import Component
from pushhub.notifications.model.request import PublishRequest
from pushhub.notifications.model.subscription import Subscription, copied, published_as
from pushhub.notifications.model.topic import Line, Notification, Topic
from pushhub.notifications.wire.errors import BacklogFull
from pushhub.notifications.wire.frames import FRAME_BYTES, frame_size
from pushhub.notifications.wire.publish import Draft, one_line

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.notifications.log import TopicLog
    from pushhub.notifications.ports import RequestStore, SubscriptionStore

_LINES_PER_DRAFT = 1 << 16
"""More entries than one notification can produce in one topic."""

PUBLISH_STEPS = MOST_STEPS
"""Steps for comparing the notifications of a request with the subscriptions, and writing their bodies: enough for a
hundred notifications and 250 subscriptions, or one and 25,000.
"""
_STEPS_PER_RULE = 2
_JSON_PER_STEP = 50
"""Characters of a body that are written for a step."""

Plan = Mapping[Topic, Sequence[Line]]
"""The lines of a request that each topic is to take."""


def checked(topic: Topic, notification: Notification) -> Notification:
    """The notification, once its size is checked.

    Raises:
        TooLarge: Its frame would be larger than a WebSocket message may be.
    """
    size = frame_size(topic, notification)
    if size > FRAME_BYTES:
        raise TooLarge(FRAME_BYTES, f"A notification of {size} bytes with its headers")
    return notification


class NotificationPublish(Component):
    """Publishes notifications."""

    subscriptions: SubscriptionStore
    requests: RequestStore  # Tracks requests that may be repeated.
    log: TopicLog
    next_id: Callable[[], str]  # Makes ids, 19 decimal digits.
    quotas: Quotas  # Bounds what projects publish.
    clock: Clock

    def publish(self, project_id: str, drafts: Sequence[Draft], *, key: str = "") -> list[str]:
        """Publish notifications in order. Returns an id for each: its id in the records of the (first) topic it went
        to.

        A full topic does not affect the others: each topic takes all of the request or nothing. A request repeated with
        its key reaches only those topics that have not taken it, and returns the original ids.

        Args:
            drafts: 1..100 notifications.
            key: Idempotency key of the request; empty when it has none.

        Raises:
            QuotaExceeded: The project publishes more than it may; nothing was published.
            Invalid: The key was used for a different request.
            TooMuchWork: They are to be compared with too many subscriptions at once; nothing was published.
            TooLarge: One does not fit into a frame; nothing was published.
            BacklogFull: Topics are full; the error names them, and the key with which a repetition reaches only them.
        """
        self.quotas.take(project_id, len(drafts))
        request = PublishRequest(
            project=project_id, key=key, digest=_digest(drafts), ids=tuple(self.next_id() for _ in drafts)
        )
        rules = {
            source: self.subscriptions.concerning(project_id, source)
            for source in dict.fromkeys(each.source for each in drafts)
        }
        plan = self._plan(drafts, rules, request.ids)
        if key:
            noted = self.requests.note(request, self.clock.now())
            if noted.digest != request.digest:
                raise Invalid("Idempotency-Key was used for another request")
            if noted.ids != request.ids:
                request, plan = noted, self._plan(drafts, rules, noted.ids)
        self._append(request, plan)
        return list(request.ids)

    def _append(self, request: PublishRequest, plan: Plan) -> None:
        full: list[Topic] = []
        taken: dict[Topic, int] = {}
        refused: BacklogFull | None = None
        for topic, lines in plan.items():
            try:
                self.log.append(topic, lines, key=request.key, taken=request.taken.get(topic, 0))
            except BacklogFull as error:
                refused = error
                full.append(topic)
            else:
                taken[topic] = lines[-1].number + 1
        if refused is not None:
            key = request.key or self._key_to_repeat(request, taken)
            raise BacklogFull(full, refused.quota, taken=tuple(taken), ids=request.ids, key=key) from refused

    def _key_to_repeat(self, request: PublishRequest, taken: Mapping[Topic, int]) -> str:
        """A key for a request that came without one and was only partly taken.

        Empty when none could be stored, or none is needed.
        """
        if not taken:
            return ""
        key = new_reservation_id()
        with suppress(Unavailable):
            noted = PublishRequest(
                project=request.project, key=key, digest=request.digest, ids=request.ids, taken=taken
            )
            self.requests.note(noted, self.clock.now())
            return key
        return ""

    def _plan(self, drafts: Sequence[Draft], rules: Mapping[str, Sequence[Subscription]], ids: Sequence[str]) -> Plan:
        """The notifications that each topic is to take.

        Raises:
            TooLarge: A notification does not fit into a frame.
            TooMuchWork: There are too many notifications for so many subscriptions.
        """
        steps = Steps(PUBLISH_STEPS)
        plan: dict[Topic, list[Line]] = {}
        for index, (draft, first_id) in enumerate(zip(drafts, ids, strict=True)):
            message_id = first_id
            for number, (topic, api, body) in enumerate(_wanted(draft, rules[draft.source], steps)):
                notification = Notification(
                    message_id=message_id, api=api, source=draft.source, action=draft.action, body=body
                )
                line = Line(index * _LINES_PER_DRAFT + number, checked(topic, notification))
                plan.setdefault(topic, []).append(line)
                message_id = self.next_id()
        return plan


def _wanted(draft: Draft, rules: Sequence[Subscription], steps: Steps) -> Sequence[tuple[Topic, str, str]]:
    """Topic, type and body of everything that a notification is published as, without duplicates."""
    wanted: dict[tuple[Topic, str, str], None] = {}
    # Most subscriptions copy the same fragments, or everything.
    bodies: dict[tuple[str, ...], str] = {}
    for rule in rules:
        steps.spend(_STEPS_PER_RULE)
        for api in published_as(rule, api=draft.api, source=draft.source, action=draft.action, data=draft.data):
            if rule.fragments not in bodies:
                body = _body(draft, rule)
                # The first one is no longer than the request, whose size is limited.
                steps.spend(len(body) // _JSON_PER_STEP if bodies else 0)
                bodies[rule.fragments] = body
            wanted[rule.topic, api, bodies[rule.fragments]] = None
    return [*wanted]


def _body(draft: Draft, rule: Subscription) -> str:
    if draft.base64_data is not None:
        return draft.base64_data
    if not rule.fragments or not isinstance(draft.data, dict):
        return one_line(draft.data_text)
    return one_line(object_of(copied(members(draft.data_text), rule.fragments)))


def _digest(drafts: Sequence[Draft]) -> str:
    content = hashlib.sha256()
    for each in drafts:
        data = one_line(each.data_text) if each.base64_data is None else f"base64 {each.base64_data}"
        content.update(write([each.api, each.source, each.action, data]).encode("utf-8", "surrogatepass"))
    return content.hexdigest()
