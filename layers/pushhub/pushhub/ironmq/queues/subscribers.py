"""Subscribers of push queues: checks at registration, and adding, replacing and removing them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import MASK, masked_url, place_of, user_of, with_user
from pushhub.base.errors import Invalid, NotFound, QueueNotFound
from pushhub.base.gates import KEEP_GATES, OPEN
from pushhub.base.ids import new_uid
from pushhub.engine.component import Component
from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.ironmq.wire.errors import NO_SUBSCRIBERS
from pushhub.ironmq.wire.subscribers import (
    NO_SUBSCRIBER,
    AskedSubscriber,
    check_gated,
    check_signed,
    check_subscribers_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.gates import Gated
    from pushhub.engine.model.subscriber_health import SubscriberHealth
    from pushhub.engine.ports import ProjectStore, QueueStore
    from pushhub.engine.projects.queue_copies import QuietQueues
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.gates import GateSettings
    from pushhub.engine.security.signing import Signing
    from pushhub.engine.security.stranger_calls import StrangerCalls
    from pushhub.engine.target import Targets
    from pushhub.engine.waiting.health import SubscriberHealths
    from pushhub.ironmq.queues.queue_changes import Admit

PROTOCOL = "ironmq"
"""Whose subscribers they are, in the lists of what ends."""


class Registration(Component):
    """Checks new subscribers and assigns their ids."""

    targets: Targets
    config: ProjectStore  # For the project's allowed targets.
    calls: StrangerCalls  # Checks where URLs lead.
    signing: Signing
    gates: Callable[[], GateSettings]  # Manages their gates; made when the first one is asked for.
    credentials: Credentials  # Opens what the present ones hide.

    def of(self, project_id: str, queue_name: str, *, adding: bool = False) -> Admit:
        """The check for one queue, as a function of the new subscribers and the present ones.

        Args:
            adding: Whether the new ones join the present ones, replacing those they match; otherwise they are the whole
                list.
        """

        def admit(new: Sequence[AskedSubscriber], push: PushSettings) -> tuple[Subscriber, ...]:
            stored = {each.subscriber_id: each for each in push.subscribers}
            opened = {each.subscriber_id: each for each in self.opened(project_id, push)}
            meant = _with_users(new, list(opened.values()))
            named = _with_ids(meant, list(opened.values()), same_url_is_renamed=not adding)
            named = tuple(_with_headers(each, opened.get(each.subscriber_id)) for each in named)
            check_subscribers_size(named)
            self._check(project_id, queue_name, named)
            admitted = tuple(
                self._admitted(
                    project_id, queue_name, each, stored.get(each.subscriber_id), opened.get(each.subscriber_id)
                )
                for each in named
            )
            others = set(stored) - {each.subscriber_id for each in admitted} if adding else ()
            check_signed(
                sum(bool(each.sealed) for each in admitted) + sum(bool(stored[each].sealed) for each in others)
            )
            check_gated((*admitted, *(stored[each] for each in others)))
            return admitted

        return admit

    def opened(self, project_id: str, push: PushSettings) -> tuple[Subscriber, ...]:
        """The present subscribers of a queue with what their settings hide."""
        return tuple(self.credentials.opened(project_id, push, each) for each in push.subscribers)

    def _admitted(
        self,
        project_id: str,
        queue_name: str,
        asked: AskedSubscriber,
        stored: Subscriber | None,
        opened: Subscriber | None,
    ) -> Subscriber:
        """The subscriber in stored form, given its present one, as stored and opened.

        What it hides is not sealed again if it stays the same, so that a request that changes nothing writes nothing.
        """
        keys = self.signing.changed(project_id, stored.sealed if stored else b"", asked.signing, others=asked.headers)
        if keys and not self.targets.signs(asked.url):
            raise Invalid("Requests to subscribers of this kind cannot be signed; set signing to false")
        http = asked.url.lower().startswith(("http://", "https://"))
        # A queue would hand a signature on, in which nothing says what was hashed.
        if keys and not http and self.signing.has_schemes(project_id, keys):
            raise Invalid("signing.signatures: subscribers of this kind are signed as Standard Webhooks specifies only")
        same = opened is not None and (opened.url, opened.headers) == (asked.url, asked.headers)
        # One that is there already with headers may be sent back as it was read.
        if asked.headers and not same and not self.targets.carries_headers(asked.url):
            raise Invalid("Subscribers of this kind have no headers, as nothing would carry them")
        kept = stored if same and stored is not None else asked
        gates = self._gated(project_id, queue_name, asked, stored)
        return Subscriber(
            subscriber_id=asked.subscriber_id,
            name=asked.name,
            url=kept.url,
            headers=kept.headers,
            timeout_s=asked.timeout_s,
            paused=stored is not None and stored.paused,
            sealed=keys,
            signing_ends=stored.signing_ends
            if stored is not None and stored.sealed == keys
            else self.signing.ends(project_id, keys, protocol=PROTOCOL, place=(queue_name, asked.subscriber_id)),
            oauth=gates.oauth,
            certificate=gates.certificate,
            identity=gates.identity,
        )

    def _gated(self, project_id: str, queue_name: str, asked: AskedSubscriber, stored: Subscriber | None) -> Gated:
        """Its gates. Who has none, and wants none, pays nothing."""
        has = stored is not None and (stored.oauth or stored.certificate)
        if asked.gates == KEEP_GATES and not has:
            return OPEN
        return self.gates().changed(
            project_id,
            stored,
            asked.gates,
            protocol=PROTOCOL,
            place=(queue_name, asked.subscriber_id),
            url=asked.url,
            headers=asked.headers,
        )

    def _check(self, project_id: str, queue_name: str, new: Sequence[Subscriber]) -> None:
        to_ask: dict[str, str] = {}
        for subscriber in new:
            target = self.targets.registered(subscriber.url, Reach.PROJECT)
            reached = target.reaches(subscriber.url, project=project_id, queue=queue_name)
            if reached is not None:
                # The guard's answer depends on scheme, host and port only.
                to_ask.setdefault("/".join(reached.split("/", 3)[:3]), reached)
        if not to_ask:
            return
        allowed = allowed_targets(self.config, project_id, Reach.PROJECT)
        refusal = self.calls.refusal(project_id, list(to_ask.values()), allowed)
        if refusal is not None:
            raise Invalid(f"Subscriber url cannot be used: {refusal}")


def _with_users(new: Sequence[AskedSubscriber], opened: Sequence[Subscriber]) -> list[AskedSubscriber]:
    """New subscribers with the user information that ``********`` in their URLs stands for: that of the present
    subscriber that a client was shown.

    Raises:
        Invalid: There is no such subscriber.
    """
    left = [each for each in opened if user_of(each.url)]
    found: list[AskedSubscriber] = []
    for each in new:
        if user_of(each.url) != MASK:
            found.append(each)
            continue
        meant = _shown_as(each, left)
        if meant is None:
            raise Invalid(f"{MASK} in a subscriber url stands for a stored value, and there is none for this url")
        left.remove(meant)
        found.append(replace(each, url=with_user(each.url, user_of(meant.url) or "")))
    return found


def _shown_as(new: Subscriber, present: Sequence[Subscriber]) -> Subscriber | None:
    """The present subscriber that a new one with a hidden part was read from, perhaps with another name or path."""
    same_url = [each for each in present if masked_url(each.url) == new.url]
    # What is hidden never goes to another host, which may belong to somebody else.
    same_place = [each for each in present if new.name and place_of(each.url) == place_of(new.url)]
    named = (each for each in (*same_url, *same_place) if each.name == new.name)
    return next(named, same_url[0] if same_url else None)


def _with_headers(new: AskedSubscriber, opened: Subscriber | None) -> AskedSubscriber:
    """A new subscriber with the values that ``********`` in its headers stands for: those of the present one that it
    replaces.

    Raises:
        Invalid: There is no such header, or it was given for another host.
    """
    # What is hidden never goes to another host, which may belong to somebody else.
    same_place = opened is not None and place_of(opened.url) == place_of(new.url)
    present = {name.lower(): value for name, value in opened.headers.items()} if opened and same_place else {}
    headers: dict[str, str] = {}
    for name, value in new.headers.items():
        if value == MASK and name.lower() not in present:
            raise Invalid(
                f"{MASK} in subscriber header {name} stands for a stored value, and there is none for this url"
            )
        headers[name] = present[name.lower()] if value == MASK else value
    return replace(new, headers=headers)


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


class Subscribers(Component):
    """Changes the subscribers of a push queue; raises ``NotFound`` or ``QueueNotFound`` for what is not there."""

    config: QueueStore
    registration: Registration
    quiet: QuietQueues  # Lets changes wait for copies.
    healths: Callable[[], SubscriberHealths]  # How they are doing; made on first use.

    def add(self, project_id: str, queue_name: str, new: Sequence[AskedSubscriber]) -> Queue:
        """Add subscribers; one whose name exists already replaces that subscriber (among several with that name, the
        one with the same URL, if any).

        Raises:
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self.registration.of(project_id, queue_name, adding=True)

        def added(push: PushSettings) -> tuple[Subscriber, ...]:
            replaced = {each.subscriber_id: each for each in admit(new, push)}
            kept = tuple(replaced.pop(each.subscriber_id, each) for each in push.subscribers)
            subscribers = (*kept, *replaced.values())
            check_subscribers_size(self.registration.opened(project_id, replace(push, subscribers=subscribers)))
            return subscribers

        return self._change(project_id, queue_name, added)

    def replace(self, project_id: str, queue_name: str, new: Sequence[AskedSubscriber]) -> Queue:
        """Set the whole list.

        Raises:
            Invalid: A pull queue, or a subscriber is not acceptable.
        """
        admit = self.registration.of(project_id, queue_name)
        return self._change(project_id, queue_name, lambda push: admit(new, push))

    def pause(self, project_id: str, queue_name: str, name: str, *, paused: bool) -> Queue:
        """Pause or resume subscribers by name. Safe to repeat.

        Raises:
            Invalid: A pull or unicast queue.
        """

        def changed(queue: Queue, push: PushSettings) -> tuple[Subscriber, ...]:
            if queue.type is QueueType.UNICAST:
                raise Invalid("Subscribers of unicast queues cannot be paused; remove the subscriber instead")
            if not any(each.name == name for each in push.subscribers):
                raise NotFound("Subscriber not found")
            return tuple(replace(each, paused=paused) if each.name == name else each for each in push.subscribers)

        return self._change_queue(project_id, queue_name, changed)

    def health(self, queue: Queue) -> list[tuple[Subscriber, SubscriberHealth]]:
        """The subscribers of a queue, and how they are doing. What waits in a unicast queue is owed to no one of them:
        it follows at the end, with a subscriber without a name.

        Raises:
            Invalid: A pull queue.
        """
        if queue.push is None:
            raise Invalid(NO_SUBSCRIBERS)
        (healths,) = self.healths_in([queue])
        return healths

    def healths_in(self, queues: Sequence[Queue]) -> list[list[tuple[Subscriber, SubscriberHealth]]]:
        """The same of several push queues of one project, in their order."""
        from pushhub.engine.waiting.health import Watched  # noqa: PLC0415 (few requests ask for it)

        asked = [(queue, each) for queue in queues for each in _asked(queue)]
        watched = [
            Watched(
                key=_key(queue, each),
                tokens=each.subscriber_id if each.oauth else "",
                paused=each.paused,
                limits=each.limits,
                certificate_ends_at=each.certificate.ends_at if each.certificate else None,
                cleared_at=queue.cleared_at,
            )
            for queue, each in asked
        ]
        healths = self.healths().of(queues[0].project, watched) if queues else []
        found: dict[str, list[tuple[Subscriber, SubscriberHealth]]] = {queue.name: [] for queue in queues}
        for (queue, subscriber), health in zip(asked, healths, strict=True):
            found[queue.name].append((subscriber, health))
        return [*found.values()]

    def remove(self, project_id: str, queue_name: str, removals: Sequence[tuple[str, str]]) -> Queue:
        """Remove subscribers by name or by URL; unknown ones are ignored.

        Args:
            removals: (name, url) of each. With a name, the URL matters only where several subscribers share it; without
                a name, all with that URL are removed.

        Raises:
            Invalid: A pull queue, or no subscriber would be left.
        """

        def rest(push: PushSettings) -> tuple[Subscriber, ...]:
            present = self.registration.opened(project_id, push)
            gone = {each.subscriber_id for name, url in removals for each in _meant(present, name, url)}
            return tuple(each for each in push.subscribers if each.subscriber_id not in gone)

        return self._change(project_id, queue_name, rest)

    def _change(
        self, project_id: str, queue_name: str, change: Callable[[PushSettings], tuple[Subscriber, ...]]
    ) -> Queue:
        return self._change_queue(project_id, queue_name, lambda _, push: change(push))

    def _change_queue(
        self, project_id: str, queue_name: str, change: Callable[[Queue, PushSettings], tuple[Subscriber, ...]]
    ) -> Queue:
        def once() -> Queue:
            queue = self.config.queue(project_id, queue_name, fresh=True)
            if queue is None:
                raise QueueNotFound
            if queue.push is None:
                raise Invalid(NO_SUBSCRIBERS)
            subscribers = change(queue, queue.push)
            if not subscribers:
                raise Invalid(NO_SUBSCRIBER)
            changed = replace(queue, push=queue.push.with_subscribers(subscribers))
            return self.quiet.save(queue, changed)

        return until_saved(once, doing="changing a queue under contention")


def _meant(subscribers: Sequence[Subscriber], name: str, url: str) -> list[Subscriber]:
    """The subscribers that a removal refers to, by a URL as it was given or as it is shown."""
    if not name:
        return [each for each in subscribers if url in (each.url, masked_url(each.url))]
    named = [each for each in subscribers if each.name == name]
    # Clients send the URL along whether or not it is still right.
    if not url or len(named) == 1:
        return named
    return [each for each in named if url in (each.url, masked_url(each.url))]


def _asked(queue: Queue) -> list[Subscriber]:
    """The subscribers of a push queue; of a unicast queue also the one that what waits there is owed to: anyone."""
    asked = [*queue.push.subscribers] if queue.push else []
    return [*asked, Subscriber(subscriber_id="*", name="", url="")] if queue.type is QueueType.UNICAST else asked


def _key(queue: Queue, subscriber: Subscriber) -> SubscriberKey:
    return SubscriberKey(
        project=queue.project, queue=queue.name, queue_uid=queue.uid, subscriber_id=subscriber.subscriber_id
    )
