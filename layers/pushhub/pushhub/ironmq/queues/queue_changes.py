"""Applies requested settings to queues: pure functions from the stored and the requested state to the new state.

Creating and updating follow the same rules, except that only a new queue can choose its type, and a new push queue
needs a subscriber. Settings missing from the request stay unchanged (IronMQ v3: PUT on an existing queue merges).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Forbidden, Invalid
from pushhub.base.ids import new_secret, new_uid
from pushhub.engine.model.queue import Alert, DeadLetter, PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.projects.queue_copies import uncopied_from_now
from pushhub.ironmq.wire.alerts import alert_key
from pushhub.ironmq.wire.subscribers import NO_SUBSCRIBER, AskedSubscriber

if TYPE_CHECKING:
    from pushhub.ironmq.wire.queues import QueueSettings
    from pushhub.web.settings import Given

Admit = Callable[[Sequence[AskedSubscriber], PushSettings], tuple[Subscriber, ...]]
"""Checks new subscribers and assigns ids, given the present settings: see :mod:`pushhub.ironmq.queues.subscribers`."""


def pull_queue(project_id: str, name: str, now: int) -> Queue:
    """A new pull queue with default settings."""
    return Queue(project=project_id, name=name, uid=new_uid(), pull_uid=new_uid(), secret=new_secret(), created_at=now)


def new_queue(project_id: str, name: str, settings: QueueSettings, *, admit: Admit, now: int) -> Queue:
    """A queue as requested; ``multicast`` when the request has push settings but no type.

    Args:
        admit: Checks subscribers.

    Raises:
        Invalid: A push queue without subscribers, or settings for another type of queue.
    """
    implied = QueueType.MULTICAST if settings.push is not None else QueueType.PULL
    queue = replace(pull_queue(project_id, name, now), type=settings.type or implied)
    if queue.is_push:
        if settings.push is None or not settings.push.subscribers:
            raise Invalid(NO_SUBSCRIBER)
        queue = replace(queue, push=PushSettings(subscribers=()))
    return uncopied_from_now(_with_settings(queue, settings, admit), now)


def changed_queue(queue: Queue, settings: QueueSettings, *, admit: Admit, now: int) -> Queue:
    """A stored queue with the requested changes. With ``convert``, a pull queue becomes a push queue.

    Args:
        queue: As stored.
        admit: Checks subscribers.

    Raises:
        Forbidden: The requested type differs from the queue's.
        Invalid: Settings for another type of queue.
    """
    if settings.convert and not queue.is_push and settings.type is not QueueType.PULL:
        return _converted(queue, settings, admit, now)
    if settings.type is not None and settings.type is not queue.type:
        raise Forbidden("Trying to Change Immutable Queue Parameters")
    return _with_settings(queue, settings, admit)


def _converted(queue: Queue, settings: QueueSettings, admit: Admit, now: int) -> Queue:
    """The push queue that a pull queue becomes; what only pull queues have ends."""
    if settings.push is None or not settings.push.subscribers:
        raise Invalid(NO_SUBSCRIBER)
    kind = settings.type or QueueType.MULTICAST
    bare = replace(queue, type=kind, push=PushSettings(subscribers=()), dead_letter=None, alerts=(), converted_at=now)
    return _with_settings(bare, settings, admit)


def _with_settings(queue: Queue, settings: QueueSettings, admit: Admit) -> Queue:
    return settings.own.applied(
        queue,
        push=_push(queue, settings.push, admit),
        dead_letter=_dead_letter(queue, settings.dead_letter),
        alerts=_alerts(queue, settings.alerts),
        search_fields=queue.search_fields if settings.search_fields is None else settings.search_fields,
    )


def _push(queue: Queue, given: Given[PushSettings] | None, admit: Admit) -> PushSettings | None:
    if given is None:
        return queue.push
    if queue.push is None:
        raise Invalid("Pull queues cannot have subscribers")
    push = queue.push
    if given.subscribers is not None:
        if not given.subscribers:
            raise Invalid(NO_SUBSCRIBER)
        push = push.with_subscribers(admit(given.subscribers, push))
    if given.error_queue == queue.name:
        raise Invalid("A queue cannot be its own error queue")
    return given.applied(push, subscribers=push.subscribers)


def _dead_letter(queue: Queue, given: Given[DeadLetter] | None) -> DeadLetter | None:
    if given is None:
        return queue.dead_letter
    if queue.is_push:
        raise Invalid("Push queues cannot have a dead letter queue; use error_queue")
    stored = queue.dead_letter
    if given.queue_name == "" and stored is not None:
        return None
    if given.queue_name == queue.name:
        raise Invalid("A queue cannot be its own dead letter queue")
    name = given.queue_name or (stored.queue_name if stored else "")
    if not name:
        raise Invalid("dead_letter.queue_name must not be empty")
    return given.applied(stored or DeadLetter(queue_name=name), queue_name=name)


def _alerts(queue: Queue, given: Sequence[Alert] | None) -> tuple[Alert, ...]:
    """The new alerts; one that existed before keeps its id and the time it last fired."""
    if given is None:
        return queue.alerts
    if queue.is_push:
        if given:
            raise Invalid("Push queues do not support alerts.")
        return ()
    stored = {alert_key(each): each for each in queue.alerts}
    return tuple(
        replace(stored[alert_key(each)], queue=each.queue, snooze=each.snooze)
        if alert_key(each) in stored
        else replace(each, alert_id=new_uid())
        for each in given
    )
