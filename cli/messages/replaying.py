"""Replays an error queue: each failed message once more, to the subscriber that missed it and to no other.

What is in the error queue at the beginning is taken out once, so a subscriber that goes on failing does not keep the
replay busy. An error message is deleted when its message has arrived; all others stay in the error queue.
"""

from __future__ import annotations

import base64
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pushhub.base.json_text import NotJson, read

from ..answers import number, section, sections, text
from ..rest import Refused, Rest, segment

BATCH = 50
RESERVED_S = 600
LOOKS = 60
"""How often the outcome of the tries of a batch is asked for, a second apart."""
PEEKED = 100
_ARRIVED = ("delivered", "acknowledged")


class Stays(Exception):
    """A message cannot be sent again; it stays in the error queue."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The failed message that a message of an error queue describes.

    Attributes:
        queue: Where it failed.
        subscribers: Names of those that did not accept it: one, or all in a unicast queue.
        headers: Sent with each push.
        error_message: The whole error message.
    """

    message_id: str
    queue: str
    subscribers: tuple[str, ...]
    headers: dict[str, str]
    error_message: Mapping[str, Any]

    @classmethod
    def of(cls, body: str) -> Failed:
        """Read the body of an error message."""
        try:
            error_message = read(body, last_wins=True)
        except NotJson:
            error_message = None
        if not isinstance(error_message, dict) or not isinstance(error_message.get("source_msg_id"), str):
            raise Stays("it is not an error message")
        subscribers, headers = error_message.get("subscribers"), error_message.get("headers")
        asked = subscribers if isinstance(subscribers, list) else []
        names = [each.get("name") for each in asked if isinstance(each, dict)]
        return cls(
            error_message["source_msg_id"],
            str(error_message.get("queue", "")),
            tuple(each for each in names if isinstance(each, str)),
            {str(name): str(value) for name, value in headers.items()} if isinstance(headers, dict) else {},
            error_message,
        )

    def body(self) -> bytes:
        """Its body."""
        exact = self.error_message.get("body_base64")
        try:
            found = base64.b64decode(exact, validate=True) if exact else str(self.error_message["body"]).encode()
        except (KeyError, TypeError, ValueError) as error:
            raise Stays("its body is not in the error message") from error
        if self.error_message.get("body_left_out"):
            raise Stays("its body is not in the error message")
        return found


@dataclass(slots=True)
class _Tried:
    """A message that is tried again at one subscriber.

    Attributes:
        error: The message of the error queue, as reserved.
        failed: What it describes.
        tries: How often the subscriber was asked before.
    """

    error: dict[str, Any]
    failed: Failed
    tries: int


@dataclass(kw_only=True)
class ErrorQueue:
    """An error queue that is replayed.

    Attributes:
        target: Post the messages to this queue, as new ones, instead of to who missed them; None for these.
        send: Posts a body with headers to a queue.
        say: Told why a message stays.
    """

    rest: Rest
    name: str
    target: str | None
    send: Callable[[str, bytes, dict[str, str]], object]
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    _kinds: dict[str, str] = field(default_factory=dict)
    _left: list[dict[str, Any]] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def look(self, limit: int) -> list[dict[str, Any]]:
        """Whereto the first messages would be sent, and how many; nothing is changed."""
        there = self._size()
        found = sections(
            self.rest.call("GET", self._path("/messages"), query={"n": str(min(PEEKED, max(1, limit)))}), "messages"
        )
        counted: Counter[tuple[str, str]] = Counter()
        for each in found[:limit]:
            try:
                failed = Failed.of(text(each, "body"))
            except Stays:
                counted["-", "no error messages"] += 1
                continue
            counted[self.target or failed.queue, "-" if self.target else ", ".join(failed.subscribers)] += 1
        if there > sum(counted.values()):
            self.say(f"{there} are in {self.name}; these are the first that nobody has reserved")
        return [{"queue": queue, "subscriber": name, "messages": count} for (queue, name), count in counted.items()]

    def run(self, limit: int) -> Counter[str]:
        """Send what is there once, at most ``limit`` messages; how many were sent and how many stay."""
        counted: Counter[str] = Counter(sent=0, left=0)
        more = min(limit, self._size())
        while more > 0:
            wanted = {"n": min(BATCH, more), "timeout": RESERVED_S}
            taken = sections(self.rest.call("POST", self._path("/reservations"), wanted), "messages")
            ids = {text(each, "id") for each in taken}
            if ids <= self._taken:
                # Nothing is left, or only what this replay has had.
                break
            self._taken |= ids
            more -= len(taken)
            tried = []
            for each in taken:
                try:
                    asked = self._asked(each)
                except Stays as reason:
                    self._stays(each, str(reason))
                    counted["left"] += 1
                    continue
                if asked is None:
                    self._done(each)
                    counted["sent"] += 1
                else:
                    tried.append(asked)
            self._await(tried, counted)
        for each in self._left:
            self._release(each)
        return counted

    def _asked(self, error: dict[str, Any]) -> _Tried | None:
        """Send a message again; None if it is accepted already, else its outcome is to be awaited."""
        failed = Failed.of(text(error, "body"))
        kind = "" if self.target else self._kind(failed.queue)
        if self.target or kind == "unicast":
            # None of its subscribers has it, so whichever gets it is the right one.
            self.send(self.target or failed.queue, failed.body(), failed.headers)
            return None
        if kind != "multicast":
            raise Stays(f"{failed.queue or 'its queue'} is no push queue any more: --to QUEUE posts it anew")
        if len(failed.subscribers) != 1:
            raise Stays("it does not say which subscriber missed it")
        state, tries, _ = self._state(failed)
        if state in _ARRIVED:
            return None
        body = {"subscriber": failed.subscribers[0], "message_ids": [failed.message_id]}
        try:
            replayed = number(self.rest.call("POST", self._of(failed, "/replay"), body), "replayed")
        except Refused as refused:
            raise Stays(refused.message) from refused
        if replayed != 1:
            raise Stays(f"its delivery is {state}")
        return _Tried(error, failed, tries)

    def _await(self, tried: list[_Tried], counted: Counter[str]) -> None:
        """Wait for the outcomes, and delete the error messages of what arrived."""
        for look in range(LOOKS):
            if look and tried:
                self.sleep(1)
            waiting = []
            for each in tried:
                try:
                    state, tries, said = self._state(each.failed)
                except Stays as reason:
                    self._stays(each.error, str(reason))
                    counted["left"] += 1
                    continue
                if state in _ARRIVED:
                    self._done(each.error)
                    counted["sent"] += 1
                elif tries > each.tries:
                    self._stays(each.error, f"{each.failed.subscribers[0]} failed again: {said}")
                    counted["left"] += 1
                else:
                    waiting.append(each)
            tried = waiting
        for each in tried:
            self._stays(each.error, f"{each.failed.subscribers[0]} has not answered yet")
            counted["left"] += 1

    def _state(self, failed: Failed) -> tuple[str, int, str]:
        """State of the delivery, how often its subscriber was asked, and what that answered.

        Raises:
            Stays: The message is gone.
        """
        path = self._of(failed, f"/messages/{segment(failed.message_id)}/subscribers")
        try:
            shown = sections(self.rest.call("GET", path), "subscribers")
        except Refused as refused:
            raise Stays("its message has expired or was deleted: --to QUEUE posts it anew") from refused
        found = next((each for each in shown if each.get("name") == failed.subscribers[0]), None)
        if found is None:
            raise Stays(f"it is not owed to {failed.subscribers[0]}")
        return text(found, "state"), number(found, "tries"), f"{found.get('status_code', '')} {found.get('msg', '')}"

    def _kind(self, queue: str) -> str:
        """The type of a queue; empty when there is none."""
        if queue not in self._kinds:
            try:
                self._kinds[queue] = text(section(self.rest.call("GET", self.rest.queue(queue)), "queue"), "type")
            except Refused as refused:
                if refused.status != 404:
                    raise
                self._kinds[queue] = ""
        return self._kinds[queue]

    def _size(self) -> int:
        return number(section(self.rest.call("GET", self._path()), "queue"), "size")

    def _stays(self, error: dict[str, Any], reason: str) -> None:
        self.say(f"{text(error, 'id')} stays in {self.name}: {reason}")
        self._left.append(error)

    def _done(self, error: dict[str, Any]) -> None:
        reservation = {"reservation_id": text(error, "reservation_id")}
        self.rest.call("DELETE", self._path(f"/messages/{segment(text(error, 'id'))}"), reservation)

    def _release(self, error: dict[str, Any]) -> None:
        """Show a message to others again, at the end, so that this replay does not take it twice."""
        body = {"reservation_id": text(error, "reservation_id"), "delay": 0}
        try:
            self.rest.call("POST", self._path(f"/messages/{segment(text(error, 'id'))}/release"), body)
        except Refused:
            # Its reservation has ended by itself.
            return

    def _path(self, rest: str = "") -> str:
        return self.rest.queue(self.name, rest)

    def _of(self, failed: Failed, rest: str) -> str:
        return self.rest.queue(failed.queue, rest)
