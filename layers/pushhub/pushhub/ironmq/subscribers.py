"""Subscribers of push queues: what is checked when one is registered, and adding, replacing, removing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pushhub.base.errors import Conflict, Invalid, QueueNotFound, Unavailable
from pushhub.base.ids import new_uid
from pushhub.base.ports import CheckUrl, Clock
from pushhub.engine.model.queue import PushSettings, Queue, Subscriber
from pushhub.engine.ports import ProjectStore, QueueStore
from pushhub.engine.projects import allowed_targets
from pushhub.engine.target import Targets
from pushhub.ironmq.queue_changes import Admit
from pushhub.ironmq.wire.subscribers import NO_SUBSCRIBER, check_subscribers_size

CHECKED_WITHIN_MS = 10_000
"""How long the hosts of new subscribers are looked up; what is not checked by then is taken, as the guard checks each request again."""

CHANGE_ROUNDS = 8
"""How often a change is made again on top of somebody else's before it is given up."""


class Registration:
    """Checks new subscribers and gives them their ids.

    Args:
        targets: All kinds of subscribers.
        config: For the project's allowed targets.
        check_url: The egress guard's check at registration.
        clock: Time.
    """

    def __init__(self, *, targets: Targets, config: ProjectStore, check_url: CheckUrl, clock: Clock) -> None:
        self._targets = targets
        self._config = config
        self._check_url = check_url
        self._clock = clock

    def of(self, project_id: str, queue_name: str) -> Admit:
        """The check for one queue, to be applied to new subscribers and those the queue has."""

        def admit(new: Sequence[Subscriber], stored: Sequence[Subscriber]) -> tuple[Subscriber, ...]:
            check_subscribers_size(new)
            self._check(project_id, queue_name, new)
            return _with_ids(new, stored)

        return admit

    def _check(self, project_id: str, queue_name: str, new: Sequence[Subscriber]) -> None:
        to_ask: dict[str, str] = {}
        for subscriber in new:
            target = self._targets.registered(subscriber.url)
            reached = target.reaches(subscriber.url, project=project_id, queue=queue_name)
            if reached is not None:
                # The guard's answer depends on scheme, host and port only.
                to_ask.setdefault("/".join(reached.split("/", 3)[:3]), reached)
        if not to_ask:
            return
        allowed = allowed_targets(self._config, project_id)
        ends_at = self._clock.now() + CHECKED_WITHIN_MS
        for url in to_ask.values():
            if self._clock.now() >= ends_at:
                break
            refusal = self._check_url(url, allowed)
            if refusal is not None:
                raise Invalid(f"Subscriber url cannot be used: {refusal}")


def _key(subscriber: Subscriber) -> tuple[str, str]:
    """What makes a subscriber the same one: its name, or its URL when it has none."""
    return (subscriber.name, "") if subscriber.name else ("", subscriber.url)


def _with_ids(new: Sequence[Subscriber], stored: Sequence[Subscriber]) -> tuple[Subscriber, ...]:
    """New subscribers with their ids: those the queue has already keep theirs, and with it their deliveries."""
    ids: dict[tuple[str, str], list[str]] = {}
    for each in reversed(stored):
        ids.setdefault(_key(each), []).append(each.subscriber_id)
    return tuple(
        replace(each, subscriber_id=ids[_key(each)].pop() if ids.get(_key(each)) else new_uid()) for each in new
    )


class Subscribers:
    """Changes the subscribers of a push queue.

    Args:
        config: Queues.
        registration: Checks new subscribers.
    """

    def __init__(self, *, config: QueueStore, registration: Registration) -> None:
        self._config = config
        self._registration = registration

    def add(self, project_id: str, queue_name: str, new: Sequence[Subscriber]) -> Queue:
        """Add subscribers; one whose name is there already takes that one's place.

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self._registration.of(project_id, queue_name)

        def added(push: PushSettings) -> tuple[Subscriber, ...]:
            replaced = {each.subscriber_id: each for each in admit(new, push.subscribers)}
            kept = tuple(replaced.pop(each.subscriber_id, each) for each in push.subscribers)
            subscribers = (*kept, *replaced.values())
            check_subscribers_size(subscribers)
            return subscribers

        return self._change(project_id, queue_name, added)

    def replace(self, project_id: str, queue_name: str, new: Sequence[Subscriber]) -> Queue:
        """Set the whole list.

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self._registration.of(project_id, queue_name)
        return self._change(project_id, queue_name, lambda push: admit(new, push.subscribers))

    def remove(self, project_id: str, queue_name: str, removals: Sequence[tuple[str, str]]) -> Queue:
        """Remove subscribers by name, or by URL those without one; unknown ones are ignored.

        Args:
            project_id: Owner.
            queue_name: The queue.
            removals: (name, url) of each; the URL counts only where the name is empty.

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or no subscriber would be left.
        """
        gone = {(name, "") if name else ("", url) for name, url in removals}

        def rest(push: PushSettings) -> tuple[Subscriber, ...]:
            return tuple(each for each in push.subscribers if _key(each) not in gone)

        return self._change(project_id, queue_name, rest)

    def _change(
        self, project_id: str, queue_name: str, change: Callable[[PushSettings], tuple[Subscriber, ...]]
    ) -> Queue:
        for _ in range(CHANGE_ROUNDS):
            queue = self._config.queue(project_id, queue_name, fresh=True)
            if queue is None:
                raise QueueNotFound
            if queue.push is None:
                raise Invalid("Pull queues cannot have subscribers")
            subscribers = change(queue.push)
            if not subscribers:
                raise Invalid(NO_SUBSCRIBER)
            try:
                return self._config.update_queue(replace(queue, push=replace(queue.push, subscribers=subscribers)))
            except Conflict:
                continue
        raise Unavailable("changing a queue under contention")
