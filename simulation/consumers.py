"""What consumers of notifications did, and what came on their connections: kept for whoever compares it with what the
hub has written of it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from simulation.promises.judgement import Exchange

POSITION_BYTES, ACK_CHARACTERS = 8, 16
"""An acknowledgement's id has so many characters; the position is in the first bytes."""

UNSUBSCRIBE_PATH, UNSUBSCRIBE = "/notification2/unsubscribe", "unsubscribe_subscriber"
"""How a subscriber is removed: by a request with its token, or a frame on its connection."""


class Subscriber(NamedTuple):
    """A subscriber of a topic, as its consumers name it."""

    project: str
    topic: str
    name: str


@dataclass
class Connection:
    """A handshake and what followed.

    Attributes:
        id: The connection's id.
        subscriber: Whose it is.
        shared: Whether others may be connected beside it.
        persistent: Whether its topic keeps what nobody gets.
        asked: When the handshake began, microseconds.
        answered: When it ended; None while it is going on.
        opened: When it was open; None if it was refused.
        ended: When it was over, or the client had vanished; None while it is not.
    """

    id: str
    subscriber: Subscriber
    shared: bool
    persistent: bool
    asked: int
    answered: int | None = None
    opened: int | None = None
    ended: int | None = None


@dataclass(frozen=True)
class Sent:
    """A frame that the hub has sent; whether it arrived, nobody knows where a client vanished without a word.

    Attributes:
        at: When, microseconds.
        connection: The connection's id.
        ack_id: What acknowledges it.
        position: Its place in the topic.
        size: Bytes of its body.
    """

    at: int
    connection: str
    ack_id: str
    position: int
    size: int


@dataclass
class Acknowledged:
    """An acknowledgement that a consumer has sent.

    Attributes:
        at: When, microseconds.
        connection: The connection's id.
        ack_id: What it acknowledges.
        position: Its place in the topic.
        heard: When it had certainly been heard; None if nobody knows.
    """

    at: int
    connection: str
    ack_id: str
    position: int
    heard: int | None = None


@dataclass(frozen=True)
class Removal:
    """Somebody asked to remove a subscriber.

    Attributes:
        subscriber: Which one.
        exchange: The request; without a status for a frame.
    """

    subscriber: Subscriber
    exchange: Exchange


class Consumers:
    """All consumers of an account.

    Args:
        now: The time, microseconds.

    Attributes:
        connections: By id.
        sent: What was sent, in order.
        acknowledged: What was acknowledged, in order.
        removals: Requests to remove subscribers.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.connections: dict[str, Connection] = {}
        self.sent: list[Sent] = []
        self.acknowledged: list[Acknowledged] = []
        self.removals: list[Removal] = []

    def connects(self, connection_id: str, token: str) -> None:
        """A handshake begins."""
        claims = _claims(token)
        if claims:
            subscriber, persistent = _subscriber(claims), claims.get("volatile") != "true"
            shared = claims.get("shared") == "true"
            self.connections[connection_id] = Connection(connection_id, subscriber, shared, persistent, self._now())

    def answered(self, connection_id: str, *, opened: bool) -> None:
        """A handshake has ended."""
        if connection_id in self.connections:
            connection = self.connections[connection_id]
            connection.answered = self._now()
            connection.opened = connection.answered if opened else None

    def ends(self, connection_id: str) -> None:
        """A connection is over, or its client has vanished."""
        connection = self.connections.get(connection_id)
        if connection is not None and connection.ended is None:
            connection.ended = self._now()

    def gets(self, connection_id: str, frame: str) -> None:
        """The hub has sent a frame."""
        header, _, body = frame.partition("\n\n")
        ack_id = header.partition("\n")[0]
        position = position_of(ack_id)
        if position is not None:
            self.sent.append(Sent(self._now(), connection_id, ack_id, position, len(body.encode())))

    def sends(self, connection_id: str, frame: str) -> Callable[[], None]:
        """A consumer has sent a frame; what is returned is called once it has certainly been heard."""
        now, acknowledged = self._now(), list[Acknowledged]()
        for line in map(str.strip, frame.split("\n")):
            position = position_of(line)
            if position is not None:
                acknowledged.append(Acknowledged(now, connection_id, line, position))
        self.acknowledged += acknowledged
        connection = self.connections.get(connection_id)
        if frame.strip() == UNSUBSCRIBE and connection is not None:
            self.removals.append(Removal(connection.subscriber, Exchange(now, now, 0)))

        def heard() -> None:
            for each in acknowledged:
                each.heard = self._now()

        return heard

    def heard(self, method: str, path: str, exchange: Exchange) -> None:
        """Somebody asked for something over HTTP, and it was answered."""
        raw, _, query = path.partition("?")
        if (method, raw) == ("POST", UNSUBSCRIBE_PATH):
            claims = _claims(parse_qs(query).get("token", [""])[0])
            if claims:
                self.removals.append(Removal(_subscriber(claims), exchange))


def position_of(ack_id: str) -> int | None:
    """The position in a topic that an acknowledgement's id names; None if it is no such id."""
    if len(ack_id) != ACK_CHARACTERS:
        return None
    try:
        return int.from_bytes(base64.b64decode(ack_id, validate=True)[:POSITION_BYTES])
    except (binascii.Error, ValueError):
        return None


def _subscriber(claims: Mapping[str, Any]) -> Subscriber:
    project, _, topic = claims["topic"].split("/", 2)
    return Subscriber(project, topic, claims["sub"])


def _claims(token: str) -> Mapping[str, Any]:
    """What a token says; nothing if it cannot be read."""
    if re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token, re.ASCII) is None:
        return {}
    with suppress(ValueError):
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        if isinstance(claims, dict) and {"sub", "topic"} <= claims.keys() and claims["topic"].count("/") > 1:
            return claims
    return {}


__all__ = ["Acknowledged", "Connection", "Consumers", "Removal", "Sent", "Subscriber"]
