"""Requests repeated with the same ``Idempotency-Key``: executed once, and always given the first answer. The key with
another body is refused (422): a producer that uses a key twice would otherwise lose the second message unseen.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Contended
from pushhub.engine.component import Component
from pushhub.webhooks.messages.ports import IdempotencyKeys, KeyBusy, KeyReused
from pushhub.webhooks.model.refusals import Unprocessable, unprocessable
from pushhub.webhooks.ports import KeptAnswer, RequestKey

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault

LOCKED_MS = 30_000
"""How long the first of several requests with a key holds it exclusively, milliseconds: longer than a request may take,
as another one would do the same once more. Who dies with a key holds its repetitions up for that long.
"""

POLL_S = 0.2
ROUNDS = 35
"""How often the others check whether it is done: together a little longer than it usually takes."""

LARGEST_KEPT = 300_000
"""Maximum size of a stored answer, in characters; a table item is limited to 400 KB."""


def request_key(authorization: str, key: str, path: str, pairs: Sequence[tuple[str, str]], body: bytes) -> RequestKey:
    """What identifies a request: its caller, key and URL, and apart from these its body, byte for byte."""
    parts = (authorization, key, path, *(part for pair in pairs for part in pair))
    content = b"".join(b"%d:%s" % (len(each), each) for each in (part.encode(errors="surrogatepass") for part in parts))
    return RequestKey(hashlib.sha256(content).hexdigest(), hashlib.sha256(body).hexdigest())


class Repeats(Component):
    """Answers repeated requests."""

    keys: IdempotencyKeys
    clock: Clock
    kept_ms: int  # How long an answer is kept, milliseconds.
    # Creates the encryption for answers that contain a secret, when the first one is stored. A function that only
    # accepts messages has none.
    vault: Callable[[], Vault]

    def run(
        self, project_id: str, key: RequestKey, work: Callable[[], KeptAnswer], *, secret: bool = False
    ) -> KeptAnswer:
        """Execute a request, or return the first answer.

        Only successes are stored: a refused request does not use up its key, and a failed one may be repeated.

        Args:
            key: See :func:`request_key`.
            work: Produces the answer; if it raises, the key is released.
            secret: Whether the answer contains a secret and has to be stored encrypted.

        Raises:
            Unprocessable: The key was used for another request.
            Contended: The first request with the key has not finished in time.
        """
        for _ in range(ROUNDS):
            try:
                kept = self.keys.begin(project_id, key, now=self.clock.now(), locked_ms=LOCKED_MS)
            except KeyReused as error:
                raise _reused() from error
            except KeyBusy:
                self.clock.sleep(POLL_S)
                continue
            return self._opened(project_id, kept, secret) if kept else self._first(project_id, key, work, secret)
        raise Contended("waiting for a request with the same idempotency key")

    def _opened(self, project_id: str, kept: KeptAnswer, secret: bool) -> KeptAnswer:
        if not secret:
            return kept
        return replace(kept, body=self.vault().open(project_id, base64.b64decode(kept.body)).decode())

    def _sealed(self, project_id: str, answer: KeptAnswer, secret: bool) -> KeptAnswer:
        if not secret:
            return answer
        return replace(answer, body=base64.b64encode(self.vault().seal(project_id, answer.body.encode())).decode())

    def _first(self, project_id: str, key: RequestKey, work: Callable[[], KeptAnswer], secret: bool) -> KeptAnswer:
        try:
            answer = work()
        except Exception:
            self.keys.release(project_id, key)
            raise
        if 200 <= answer.status < 300 and len(answer.body) <= LARGEST_KEPT:
            kept = self._sealed(project_id, answer, secret)
            self.keys.keep(project_id, key, kept, until=self.clock.now() + self.kept_ms)
        else:
            self.keys.release(project_id, key)
        return answer

    def message(self, project_id: str, key: RequestKey, message_id: str) -> str:
        """The engine's id of the message that a request makes: the given one, or that of the first request with the
        key.

        Raises:
            Unprocessable: The key was used for another request.
        """
        return self._noted(project_id, key, message_id)

    def task(self, project_id: str, key: RequestKey, task_id: str) -> str:
        """The id of the task that a request starts; see :meth:`message`."""
        return self._noted(project_id, key, task_id)

    def _noted(self, project_id: str, key: RequestKey, new_id: str) -> str:
        now = self.clock.now()
        try:
            return self.keys.note_id(project_id, key, new_id, now=now, until=now + self.kept_ms)
        except KeyReused as error:
            raise _reused() from error

    def release(self, project_id: str, key: RequestKey) -> None:
        """Allow a refused request to be made again."""
        self.keys.release(project_id, key)


def _reused() -> Unprocessable:
    return unprocessable("Idempotency-Key was used for another request", "header", "idempotency-key")
