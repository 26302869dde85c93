"""Seals what opens something in the settings of subscribers: user information of URLs, and values of headers.

A stored queue shows ``********`` in their place and holds the values in one encrypted text. They are sealed where a
queue is written, so that no way of changing one can forget it, and opened for each attempt and for owners' changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.base.cache import ExpiringCache
from pushhub.base.credentials import MASK, USER, hidden_in, masked_headers, masked_url, revealed, user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.model.queue import PushSettings, Queue, Subscriber

Hidden = dict[str, dict[str, str]]
"""What opens something, by its holder and then by name (:func:`pushhub.base.credentials.hidden_in`)."""

_KEPT_MS = 600_000
_KEPT = 200
"""How long, and how many, opened texts are remembered: those of a queue with many subscribers are large."""


class Credentials:
    """Seals and opens. Thread-safe.

    Args:
        vault: Makes the vault when something is sealed or opened for the first time: many functions never do.
        clock: Tells how long opened texts are remembered.
    """

    def __init__(self, *, vault: Callable[[], Vault], clock: Clock) -> None:
        self._vault = vault
        self._opened: ExpiringCache[Hidden] = ExpiringCache(clock, ttl_ms=_KEPT_MS, capacity=_KEPT)

    def seal(self, project_id: str, hidden: Hidden) -> bytes:
        """Encrypt; empty for nothing."""
        kept = {holder: values for holder, values in hidden.items() if values}
        return self._vault().seal(project_id, json_text.write(kept).encode()) if kept else b""

    def open(self, project_id: str, sealed: bytes) -> Hidden:
        """Decrypt what :meth:`seal` made."""
        if not sealed:
            return {}
        opened = self._opened.get((project_id, sealed))
        if opened is None:
            opened = json_text.stored(self._vault().open(project_id, sealed))
            self._opened.put((project_id, sealed), opened)
        return opened

    def sealed(self, queue: Queue) -> Queue:
        """A queue as it is stored."""
        push = queue.push
        if push is None:
            return queue
        before = self.open(queue.project, push.credentials)
        hidden = {
            each.subscriber_id: still_hidden(each.url, each.headers, before.get(each.subscriber_id, {}))
            for each in push.subscribers
        }
        masked = tuple(
            replace(each, url=masked_url(each.url), headers=masked_headers(each.headers)) for each in push.subscribers
        )
        same = {holder: values for holder, values in hidden.items() if values} == before
        credentials = push.credentials if same else self.seal(queue.project, hidden)
        return replace(queue, push=replace(push, subscribers=masked, credentials=credentials))

    def opened(self, project_id: str, push: PushSettings, subscriber: Subscriber) -> Subscriber:
        """A subscriber with its hidden values, for an attempt or its owner's change."""
        hidden = self.open(project_id, push.credentials).get(subscriber.subscriber_id)
        if not hidden:
            return subscriber
        url, headers = revealed(subscriber.url, subscriber.headers, hidden)
        return replace(subscriber, url=url, headers=headers)


def still_hidden(url: str, headers: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """What is to be hidden of a URL and headers: what is new in them, and what they hid before and still show as
    ``********``.
    """
    user = user_of(url) == MASK
    kept = {name: value for name, value in before.items() if (user if name == USER else headers.get(name) == MASK)}
    return {**kept, **hidden_in(url, headers)}
