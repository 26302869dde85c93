"""Subscribers of push queues: checks at registration, and adding, replacing and removing them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Invalid, QueueNotFound
from pushhub.base.ids import new_uid
from pushhub.engine.model.queue import PushSettings, Queue, Subscriber
from pushhub.engine.projects import allowed_targets
from pushhub.ironmq.wire.subscribers import NO_SUBSCRIBER, AskedSubscriber, check_signed, check_subscribers_size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import CheckUrl, Clock
    from pushhub.engine.ports import ProjectStore, QueueStore
    from pushhub.engine.queue_copies import QuietQueues
    from pushhub.engine.signing import Signing
    from pushhub.engine.target import Targets
    from pushhub.ironmq.queue_changes import Admit

CHECKED_WITHIN_MS = 10_000
"""Time limit for looking up the hosts of new subscribers.

Hosts not checked by then are accepted, because the guard checks each request again.
"""


class Registration:
    """Checks new subscribers and assigns their ids.

    Args:
        targets: All kinds of subscribers.
        config: For the project's allowed targets.
        check_url: The egress guard's check at registration.
        signing: Manages their signing keys.
    """

    def __init__(
        self, *, targets: Targets, config: ProjectStore, check_url: CheckUrl, signing: Signing, clock: Clock
    ) -> None:
        self._signing = signing
        self._targets = targets
        self._config = config
        self._check_url = check_url
        self._clock = clock

    def of(self, project_id: str, queue_name: str, *, adding: bool = False) -> Admit:
        """The check for one queue, as a function of the new subscribers and the present ones.

        Args:
            project_id: Owner.
            queue_name: The queue.
            adding: Whether the new ones join the present ones, replacing those they match; otherwise they are the whole
                list.
        """

        def admit(new: Sequence[AskedSubscriber], stored: Sequence[Subscriber]) -> tuple[Subscriber, ...]:
            check_subscribers_size(new)
            self._check(project_id, queue_name, new)
            named = _with_ids(new, stored, same_url_is_renamed=not adding)
            keys = {each.subscriber_id: each.sealed for each in stored}
            admitted = tuple(self._admitted(project_id, each, keys.get(each.subscriber_id, b"")) for each in named)
            others = set(keys) - {each.subscriber_id for each in admitted} if adding else ()
            check_signed(sum(bool(each.sealed) for each in admitted) + sum(bool(keys[each]) for each in others))
            return admitted

        return admit

    def _admitted(self, project_id: str, asked: AskedSubscriber, sealed: bytes) -> Subscriber:
        """The subscriber in stored form, given its present keys."""
        keys = self._signing.changed(project_id, sealed, asked.signing)
        if keys and not self._targets.signs(asked.url):
            raise Invalid("Requests to subscribers of this kind cannot be signed; set signing to false")
        return Subscriber(
            subscriber_id=asked.subscriber_id,
            name=asked.name,
            url=asked.url,
            headers=asked.headers,
            timeout_s=asked.timeout_s,
            sealed=keys,
        )

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


def _with_ids(
    new: Sequence[AskedSubscriber], stored: Sequence[Subscriber], *, same_url_is_renamed: bool
) -> tuple[AskedSubscriber, ...]:
    """New subscribers with ids. One that matches a present subscriber keeps that one's id, and with it its deliveries.

    A match has the same name and URL; failing that, the same name (with a changed URL); failing that, if requested, the
    same URL (with a changed name).
    """
    left = list(stored)
    ids: dict[int, str] = {}
    rules = [_same, _same_name, _same_url] if same_url_is_renamed else [_same, _same_name]
    for rule in rules:
        for position, each in enumerate(new):
            found = next((known for known in left if position not in ids and rule(each, known)), None)
            if found is not None:
                left.remove(found)
                ids[position] = found.subscriber_id
    return tuple(replace(each, subscriber_id=ids.get(position) or new_uid()) for position, each in enumerate(new))


def _same(new: Subscriber, stored: Subscriber) -> bool:
    return (new.name, new.url) == (stored.name, stored.url)


def _same_name(new: Subscriber, stored: Subscriber) -> bool:
    return new.name == stored.name != ""


def _same_url(new: Subscriber, stored: Subscriber) -> bool:
    return new.url == stored.url


class Subscribers:
    """Changes the subscribers of a push queue.

    Args:
        registration: Checks new subscribers.
        quiet: Lets changes wait for copies.
    """

    def __init__(self, *, config: QueueStore, registration: Registration, quiet: QuietQueues) -> None:
        self._config = config
        self._registration = registration
        self._quiet = quiet

    def add(self, project_id: str, queue_name: str, new: Sequence[AskedSubscriber]) -> Queue:
        """Add subscribers; one whose name exists already replaces that subscriber (among several with that name, the
        one with the same URL, if any).

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self._registration.of(project_id, queue_name, adding=True)

        def added(push: PushSettings) -> tuple[Subscriber, ...]:
            replaced = {each.subscriber_id: each for each in admit(new, push.subscribers)}
            kept = tuple(replaced.pop(each.subscriber_id, each) for each in push.subscribers)
            subscribers = (*kept, *replaced.values())
            check_subscribers_size(subscribers)
            return subscribers

        return self._change(project_id, queue_name, added)

    def replace(self, project_id: str, queue_name: str, new: Sequence[AskedSubscriber]) -> Queue:
        """Set the whole list.

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self._registration.of(project_id, queue_name)
        return self._change(project_id, queue_name, lambda push: admit(new, push.subscribers))

    def remove(self, project_id: str, queue_name: str, removals: Sequence[tuple[str, str]]) -> Queue:
        """Remove subscribers by name or by URL; unknown ones are ignored.

        Args:
            project_id: Owner.
            queue_name: The queue.
            removals: (name, url) of each. With a name, the URL matters only where several subscribers share it; without
                a name, all with that URL are removed.

        Raises:
            QueueNotFound: No such queue.
            Invalid: A pull queue, or no subscriber would be left.
        """

        def rest(push: PushSettings) -> tuple[Subscriber, ...]:
            gone = {each.subscriber_id for name, url in removals for each in _meant(push.subscribers, name, url)}
            return tuple(each for each in push.subscribers if each.subscriber_id not in gone)

        return self._change(project_id, queue_name, rest)

    def _change(
        self, project_id: str, queue_name: str, change: Callable[[PushSettings], tuple[Subscriber, ...]]
    ) -> Queue:
        def once() -> Queue:
            queue = self._config.queue(project_id, queue_name, fresh=True)
            if queue is None:
                raise QueueNotFound
            if queue.push is None:
                raise Invalid("Pull queues cannot have subscribers")
            subscribers = change(queue.push)
            if not subscribers:
                raise Invalid(NO_SUBSCRIBER)
            changed = replace(queue, push=replace(queue.push, subscribers=subscribers))
            return self._quiet.save(queue, changed)

        return until_saved(once, doing="changing a queue under contention")


def _meant(subscribers: Sequence[Subscriber], name: str, url: str) -> list[Subscriber]:
    """The subscribers that a removal refers to."""
    if not name:
        return [each for each in subscribers if each.url == url]
    named = [each for each in subscribers if each.name == name]
    # Clients send the URL along whether or not it is still right.
    return [each for each in named if each.url == url] if url and len(named) > 1 else named
