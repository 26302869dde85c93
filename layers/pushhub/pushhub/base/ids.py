"""Identifiers: what they look like on the wire and how they are made.

* Message ids are decimal strings of at most 19 digits that fit a signed 64-bit integer, because IronMQ clients
  cast them (IronMQ v3: ``"6112035678239908289"``). Layout: 41 bits milliseconds since 2020, 13 bits worker,
  9 bits sequence, so ids of one worker rise with time and two workers never make the same id.
* Reservation ids are 32 lower-case hex characters (IronMQ v3). A push reservation is *derived*, not stored: an
  HMAC over message, subscriber and attempt number with the queue's own key. So an acknowledgement that arrives while
  the push is still open can be checked before anything was written about that attempt.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

EPOCH_MS = 1_577_836_800_000
"""2020-01-01T00:00:00Z in epoch milliseconds."""

WORKER_BITS = 13
SEQUENCE_BITS = 9
_LOW_BITS = WORKER_BITS + SEQUENCE_BITS
_FIRST_MS = 10**18 >> _LOW_BITS
"""Offset that keeps every id at exactly 19 digits, as IronMQ's are, from the first one on."""


def _compose(now_ms: int, low: int) -> str:
    return str(((now_ms - EPOCH_MS + _FIRST_MS) << _LOW_BITS) | low)


class MessageIds:
    """Makes message ids for one worker (one Lambda execution environment).

    Args:
        worker: Number of this worker, unique among live ones; only its lowest 13 bits are used.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker % (1 << WORKER_BITS)
        self._last_ms = 0
        self._sequence = 0

    def next(self, now_ms: int) -> str:
        """The next id.

        Args:
            now_ms: Epoch milliseconds. A clock that stands still or goes backwards is harmless: ids keep increasing.
        """
        if now_ms > self._last_ms:
            self._last_ms, self._sequence = now_ms, 0
        else:
            self._sequence += 1
            if self._sequence >= 1 << SEQUENCE_BITS:
                self._last_ms, self._sequence = self._last_ms + 1, 0
        return _compose(self._last_ms, (self._worker << SEQUENCE_BITS) | self._sequence)


def derived_message_id(at_ms: int, cause: str, bump: int = 0) -> str:
    """The id of a message made by the hub itself; always the same for the same cause.

    Args:
        at_ms: When the cause happened, epoch milliseconds (stored with it, so it does not change on a retry).
        cause: What the message is made for, e.g. a delivery id; hashed.
        bump: Incremented when the id turns out to be taken by a message with another cause.
    """
    low = int.from_bytes(hashlib.sha256(f"{cause}#{bump}".encode()).digest()[:4]) % (1 << _LOW_BITS)
    return _compose(at_ms, low)


def time_of_message_id(message_id: str) -> int:
    """When an id was made, epoch milliseconds."""
    return (int(message_id) >> _LOW_BITS) - _FIRST_MS + EPOCH_MS


def first_message_id(at_ms: int) -> str:
    """The lowest id possible at a given time (epoch milliseconds, 2020 at the earliest); lower ids are older.

    It has 19 digits, as ids have, so that it compares with them as text: the very first one begins with a zero.
    """
    return _compose(max(at_ms, EPOCH_MS), 0).zfill(19)


def id_before(at_ms: int) -> str:
    """Lower than all ids made at a given time (epoch milliseconds) or after it, and not lower than older ones."""
    return f"{int(first_message_id(at_ms)) - 1:019d}"


def push_reservation_id(key: str, message_id: str, subscriber_id: str, attempt: int) -> str:
    """The reservation id sent with one push attempt (``Iron-Reservation-Id``).

    Args:
        key: The queue's secret.
        message_id: The message pushed.
        subscriber_id: The hub's id of the subscriber pushed to.
        attempt: Number of the attempt, from 1.
    """
    text = f"{message_id}/{subscriber_id}/{attempt}"
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


def new_reservation_id() -> str:
    """A new reservation id for a message reserved from a pull queue."""
    return secrets.token_hex(16)


def new_uid() -> str:
    """A short internal id (12 hex) for a queue's generation or a subscriber."""
    return secrets.token_hex(6)


def new_secret() -> str:
    """A secret for keyed hashes (32 hex)."""
    return secrets.token_hex(16)


_PROJECT_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


def is_project_id(text: str) -> bool:
    """Whether a project could have this id."""
    return _PROJECT_ID.fullmatch(text) is not None
