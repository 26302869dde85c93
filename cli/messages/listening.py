"""A consumer of Notifications 2.0 that forwards each message and acknowledges those that were accepted.

It continues after every loss of its connection.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import quote

import click
import requests
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import connect

from ..answers import sections, text
from ..rest import Refused, Rest, Unreachable, reason

OPEN_S = 40
LOOK_S = 0.5
LONGEST_WAIT_S = 30.0
ANSWER_S = 30
LONGEST_FRAME = 16 * 1024 * 1024
"""Bytes of a frame; a hub's are shorter than 1 MiB."""
_SHOWN = " !#$&'()*+,:;<=>?@[]^`{|}~\""
CONFLICT = 409
SERVER_ERROR = 500

Say = Callable[[str, dict[str, Any]], None]
"""Called for each event, with its name and details."""


@dataclass(frozen=True, slots=True)
class Notification:
    """The contents of a frame.

    Attributes:
        ack_id: Sent back, it acknowledges; it is the same if the notification comes again.
        description: ``/tenant/type/source``.
        action: ``CREATE``, ``UPDATE`` or ``DELETE``.
        body: One line.
    """

    ack_id: str
    description: str
    action: str
    body: str

    @classmethod
    def of_frame(cls, frame: str) -> Notification:
        """Read a frame.

        Raises:
            ValueError: It is invalid.
        """
        head, separator, body = frame.partition("\n\n")
        lines = head.split("\n")
        if not separator or len(lines) < 3:
            raise ValueError("no notification")
        return cls(lines[0], lines[1], lines[2], body.removesuffix("\n"))


def waits(longest: float = LONGEST_WAIT_S) -> Iterator[float]:
    """Seconds between tries: one, two, four ... and then always the longest."""
    wait = 1.0
    while True:
        yield min(wait, longest)
        wait = min(wait * 2, longest)


def signing_key(secret: str) -> bytes:
    """The bytes of a Standard Webhooks secret.

    Raises:
        ValueError: It is invalid.
    """
    return base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)


class Target:
    """Where messages are forwarded.

    Args:
        url: Gets a POST for each.
        topic: Where they come from.
        key: Signs them (Standard Webhooks) unless it is empty.
        now: Epoch seconds.
    """

    def __init__(self, url: str, topic: str, *, key: bytes = b"", now: Callable[[], int]) -> None:
        self._url, self._topic, self._key, self._now = url, topic, key, now
        self._session = requests.Session()
        self._session.trust_env = False

    def post(self, notification: Notification) -> int:
        """Forward a message and return the status of the answer, 0 for none."""
        body = notification.body.encode(errors="surrogatepass")
        try:
            answer = self._session.post(
                self._url,
                data=body,
                headers=self._headers(notification, body),
                timeout=ANSWER_S,
                allow_redirects=False,
            )
        except requests.RequestException:
            return 0
        return answer.status_code

    def _headers(self, notification: Notification, body: bytes) -> dict[str, str]:
        _, _, kind_and_source = notification.description.removeprefix("/").partition("/")
        kind, _, source = kind_and_source.partition("/")
        headers = {
            "Content-Type": "application/json" if body[:1] in b'{["' else "text/plain; charset=utf-8",
            # They may hold any character that can be printed, a header may not.
            "Pushhub-Topic": _in_header(self._topic, "/"),
            "Pushhub-Id": _in_header(notification.ack_id, "/"),
            "Pushhub-Action": _in_header(notification.action),
            "Pushhub-Type": _in_header(kind),
            "Pushhub-Source": _in_header(source),
        }
        if self._key:
            message_id, timestamp = f"msg_{notification.ack_id}", str(self._now())
            signed = f"{message_id}.{timestamp}.".encode() + body
            signature = base64.b64encode(hmac.digest(self._key, signed, hashlib.sha256)).decode()
            headers |= {
                "Webhook-Id": message_id,
                "Webhook-Timestamp": timestamp,
                "Webhook-Signature": f"v1,{signature}",
            }
        return headers


def _in_header(text: str, also: str = "") -> str:
    """A text as the value of a header, which can neither hold every character nor begin or end with a space."""
    bare = text.strip(" ")
    left = len(text) - len(text.lstrip(" "))
    return "%20" * left + quote(bare, safe=_SHOWN + also) + "%20" * (len(text) - len(bare) - left)


@dataclass
class Listening:
    """Receives, forwards and acknowledges messages in the order of the topic.

    A message that was not accepted is tried again before later ones. If one was accepted but could no longer be
    acknowledged, it is acknowledged and not forwarded again when it comes with the next connection.

    Attributes:
        subscriber: The subscriber's name; the hub keeps what it has not acknowledged.
        post: Forwards a message and returns the status of the answer, 0 for none.
        say: Called for each event.
        stopped: Set to end it.
        skip_failed: Whether messages that are not accepted are acknowledged all the same.
        websocket_url: Where consumers connect, if that is not below the hub's own URL.
        longest_wait: Maximum seconds between tries.
    """

    rest: Rest
    _: KW_ONLY
    topic: str
    subscriber: str
    post: Callable[[Notification], int]
    say: Say
    stopped: threading.Event
    skip_failed: bool = False
    websocket_url: str = ""
    longest_wait: float = LONGEST_WAIT_S
    _taken: set[str] = field(default_factory=set)
    _connected_once: bool = False

    @property
    def _url(self) -> str:
        return self.websocket_url or self.rest.base_url.replace("http", "ws", 1) + "/notification2/consumer/"

    def run(self) -> None:
        """Run until it is stopped.

        Raises:
            Refused: The hub does not let this consumer in.
            Unreachable: The first connection to the hub failed.
        """
        self._look_for_topic()
        pauses = waits(self.longest_wait)
        while not self.stopped.is_set():
            try:
                self._connection()
                pauses = waits(self.longest_wait)
            except InvalidURI as error:
                raise click.ClickException(f"{self._url} is not where consumers can connect") from error
            except (OSError, InvalidHandshake, ConnectionClosed, Unreachable, TimeoutError) as error:
                if isinstance(error, InvalidStatus):
                    self._look_at(error)
                elif not self._connected_once:
                    if isinstance(error, Unreachable):
                        raise
                    raise Unreachable(f"{self._url} did not answer: {reason(error)}") from error
                elif isinstance(error, ConnectionClosed):
                    pauses = waits(self.longest_wait)
                wait = next(pauses)
                self.say("disconnected", {"again_in_s": wait, "reason": type(error).__name__})
                self.stopped.wait(wait)

    def _look_for_topic(self) -> None:
        """Say so if no subscription has this name: a consumer of a misspelled topic waits for ever."""
        query = {"subscription": self.topic, "pageSize": "1"}
        if not sections(self.rest.call("GET", "/notification2/subscriptions", query=query), "subscriptions"):
            self.say("unknown", {"topic": self.topic, "so": "nothing comes, unless a queue feeds it"})

    @staticmethod
    def _look_at(error: InvalidStatus) -> None:
        status = error.response.status_code
        if status != CONFLICT and status < SERVER_ERROR:
            raise Refused(status, "the handshake was refused") from error

    def _connection(self) -> None:
        wanted = {"subscription": self.topic, "subscriber": self.subscriber}
        token = quote(text(self.rest.call("POST", "/notification2/token", wanted), "token"), safe="")
        # Pings keep the connection from being idle. Answers to them are not waited for: while a slow receiver has the
        # word nothing is read here, answers to pings neither.
        with connect(
            f"{self._url}?token={token}", open_timeout=OPEN_S, ping_timeout=None, proxy=None, max_size=LONGEST_FRAME
        ) as consumer:
            self._connected_once = True
            self.say("connected", {"topic": self.topic, "subscriber": self.subscriber})
            while not self.stopped.is_set():
                try:
                    frame = consumer.recv(timeout=LOOK_S)
                except TimeoutError:
                    continue
                try:
                    notification = Notification.of_frame(frame if isinstance(frame, str) else frame.decode())
                except ValueError:
                    # API Gateway's own words about a function that could not be run
                    self.say("odd", {"frame": str(frame)[:200]})
                    continue
                if not self._handed_on(notification):
                    return
                consumer.send(notification.ack_id)
                self._taken.discard(notification.ack_id)
                self.say("acknowledged", {"id": notification.ack_id})

    def _handed_on(self, notification: Notification) -> bool:
        """Whether it was accepted; False if this was stopped before."""
        if notification.ack_id in self._taken:
            return True
        for wait in waits(self.longest_wait):
            status = self.post(notification)
            taken = 200 <= status < 300
            what = {"id": notification.ack_id, "action": notification.action, "from": notification.description}
            self.say("forwarded", {**what, "status": status, "taken": taken})
            if taken or self.skip_failed:
                self._taken.add(notification.ack_id)
                return True
            if self.stopped.wait(wait):
                return False
        return False
