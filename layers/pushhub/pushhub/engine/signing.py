"""Signatures for subscribers of any kind (Standard Webhooks 1.0.0): their keys,
stored encrypted beside their other settings, and the headers of a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.signing import KeyRing, SigningChange, TooManyKeys, signatures
from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pushhub.base.ports import Clock, Vault


class Signing:
    """Manages keys and signs requests.

    Args:
        vault: Makes the vault that encrypts keys, when the first key is used: most hubs have none.
        clock: Provides the signature timestamps.
    """

    def __init__(self, *, vault: Callable[[], Vault], clock: Clock) -> None:
        self._vault = vault
        self._clock = clock

    def changed(self, project_id: str, sealed: bytes, change: SigningChange) -> bytes:
        """A subscriber's encrypted keys after a change; empty for none.

        Args:
            project_id: Owner.
            sealed: Its encrypted keys so far; empty for none.
            change: The requested change.

        Raises:
            Invalid: Signing is requested without a key, or too many old keys are still valid.
            Unavailable: The keys could not be encrypted or decrypted.
        """
        if change.on is None:
            return sealed
        if not change.on:
            return b""
        if change.key is None:
            if not sealed:
                raise Invalid("signing needs a secret: whsec_ and base64 of 24 to 75 random bytes")
            return sealed
        if not sealed:
            return self._vault().seal(project_id, KeyRing(change.key).encode())
        ring = KeyRing.decode(self._vault().open(project_id, sealed))
        if ring.current == change.key:
            return sealed
        try:
            ring = ring.rotated(change.key, grace_ms=change.grace_s * 1000, now=self._clock.now())
        except TooManyKeys as error:
            raise Invalid(
                f"Too many old secrets are still in use; the next one expires at {iso_time(error.next_expiry)}"
            ) from error
        return self._vault().seal(project_id, ring.encode())

    def headers(self, project_id: str, sealed: bytes, *, message_id: str, body: bytes) -> Mapping[str, str]:
        """The headers that sign a request made now; none if there is no key.

        Args:
            project_id: Owner.
            sealed: The subscriber's keys, encrypted; empty for none.
            message_id: The same at every attempt.
            body: The exact bytes that are sent.

        Raises:
            Unavailable: The keys could not be decrypted.
        """
        if not sealed:
            return {}
        now = self._clock.now()
        keys = KeyRing.decode(self._vault().open(project_id, sealed)).live(now)
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(now // 1000),
            "webhook-signature": signatures(keys, message_id, now // 1000, body),
        }
