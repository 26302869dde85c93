"""Signatures for subscribers of any kind, by Standard Webhooks 1.0.0 or by schemes of their owners' choice: their keys,
stored encrypted beside their other settings, and the headers of a request.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from pushhub.base import json_text
from pushhub.base.errors import FieldRefused, Invalid
from pushhub.base.signing import KeyRing, TooManyKeys, signatures
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.ends import scheme_note, shown_ends

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pushhub.base.ports import Clock, Vault
    from pushhub.base.signature_schemes import Scheme, SecretRing
    from pushhub.base.signing_change import SigningChange
    from pushhub.engine.ends import EndNotes
    from pushhub.engine.ports import ProjectStore

MOST_BYTES = 2_000
"""Most bytes of the schemes and secrets of one subscriber: a queue is one item, and up to 50 of its subscribers are
signed for.
"""

_MOST_OF_A_KIND = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signed:
    """What signs a subscriber's requests.

    Attributes:
        ring: The keys of Standard Webhooks; None if it does not sign.
        schemes: All schemes, that one too; empty for those of the project.
        secrets: Of the schemes in their order; None for Standard Webhooks.
    """

    ring: KeyRing | None = None
    schemes: tuple[Scheme, ...] = ()
    secrets: tuple[SecretRing | None, ...] = ()

    def encode(self) -> bytes:
        """As bytes, ready to be sealed: those of the ring if there is nothing else."""
        ring = b"" if self.ring is None else self.ring.encode()
        if not self.schemes:
            return ring
        from pushhub.base.signature_schemes import encode_rings  # noqa: PLC0415 (only who has schemes pays)

        parts = [base64.b64encode(each).decode() for each in (ring, encode_rings(self.secrets))]
        return json_text.write({"keys": parts, "schemes": [each.encode() for each in self.schemes]}).encode()

    @classmethod
    def decode(cls, content: bytes) -> _Signed:
        """What :meth:`encode` wrote."""
        if content[:1] != b"{":
            return cls(ring=KeyRing.decode(content))
        from pushhub.base.signature_schemes import Scheme, decode_rings  # noqa: PLC0415

        stored = json_text.stored(content)
        ring, secrets = map(base64.b64decode, stored["keys"])
        return cls(
            ring=KeyRing.decode(ring) if ring else None,
            schemes=tuple(map(Scheme.decode, stored["schemes"])),
            secrets=tuple(decode_rings(secrets)),
        )


class Signature(NamedTuple):
    """What signs a request.

    Attributes:
        schemes: Names of the schemes.
    """

    headers: Mapping[str, str]
    schemes: tuple[str, ...]


UNSIGNED = Signature({}, ())
"""Nothing."""

STANDARD_WEBHOOKS = "standard-webhooks"
"""The scheme of whoever has no other."""


class Signing(Component):
    """Manages keys and signs requests."""

    vault: Callable[[], Vault]  # Makes the vault that encrypts keys, when the first key is used: most hubs have none.
    projects: ProjectStore  # Know the schemes of those who have none of their own.
    clock: Clock  # Provides the signature timestamps.
    notes: Callable[[str], EndNotes]  # Notes of what is to be told of schemes' ends, by protocol.

    def changed(self, project_id: str, sealed: bytes, change: SigningChange, *, others: Collection[str] = ()) -> bytes:
        """A subscriber's encrypted keys after a change; empty for none.

        Args:
            sealed: Its encrypted keys so far; empty for none.
            others: Names of the headers that its requests have anyway.

        Raises:
            Invalid: Signing is requested without a key, too many old keys are still valid, or the schemes do not go
                together with the other headers.
        """
        if change.on is False or not (sealed or change.on):
            return b""
        if not sealed and change.key is None and not change.schemes:
            raise Invalid("signing needs a secret: whsec_ and base64 of 24 to 75 random bytes")
        if sealed and change.key is None and not change.schemes and not others:
            return sealed
        before = self._opened(project_id, sealed)
        after = self._after(before, change)
        now = self.clock.now()
        names = {name for scheme in after.schemes if scheme.signs_at(now) for name in scheme.names}
        taken = {name.lower() for name in others} & names
        if taken:
            raise Invalid(f"Both headers and signing.signatures have {min(taken)}")
        if after == before:
            return sealed
        content = after.encode()
        if after.schemes and len(content) > MOST_BYTES:
            raise Invalid(f"signing.signatures and their secrets take more than {MOST_BYTES} bytes")
        return self.vault().seal(project_id, content)

    def _opened(self, project_id: str, sealed: bytes) -> _Signed:
        return _Signed.decode(self.vault().open(project_id, sealed)) if sealed else _Signed()

    def _after(self, before: _Signed, change: SigningChange) -> _Signed:
        if change.key is None and not change.schemes:
            return before
        ring = before.ring
        if change.key is not None:
            ring = self._rotated(ring, change)
        if not change.schemes:
            return _Signed(ring=ring)
        from pushhub.web.signatures import by_header, renewed  # noqa: PLC0415

        try:
            secrets = renewed(change.schemes, by_header(before.schemes, before.secrets), self.clock.now())
        except FieldRefused as refused:
            raise refused.within("signing", "signatures") from refused
        schemes = tuple(each.scheme for each in change.schemes)
        standard = any(each.standard for each in schemes)
        if standard and ring is None:
            raise Invalid("signing.secret is required for standard-webhooks")
        return _Signed(ring=ring if standard else None, schemes=schemes, secrets=tuple(secrets))

    def _rotated(self, ring: KeyRing | None, change: SigningChange) -> KeyRing:
        if change.key is None:
            raise TypeError("a change without a key rotates nothing")
        if ring is None:
            return KeyRing(change.key)
        if ring.current == change.key:
            return ring
        try:
            return ring.rotated(change.key, grace_ms=change.grace_s * 1000, now=self.clock.now())
        except TooManyKeys as error:
            raise Invalid(
                f"Too many old secrets are still in use; the next one expires at {iso_time(error.next_expiry)}"
            ) from error

    def has_schemes(self, project_id: str, sealed: bytes) -> bool:
        """Whether schemes other than Standard Webhooks sign."""
        return any(not each.standard for each in self._opened(project_id, sealed).schemes)

    def ends(self, project_id: str, sealed: bytes, *, protocol: str, place: tuple[str, str]) -> dict[str, str]:
        """When schemes of a subscriber end, by the header of their signature, as its owner is shown it.

        What is to be told of them is noted: before they are stored, as a note without its scheme tells nothing.

        Args:
            sealed: The subscriber's keys, encrypted; empty for none.
            protocol: Whose subscriber it is.
            place: Its queue and its id, by which it is found when a scheme ends.

        Raises:
            Unavailable: The keys could not be decrypted, or the notes not written.
        """
        ending = [each for each in self._opened(project_id, sealed).schemes if each.ends_at]
        for each in ending:
            note = scheme_note((project_id, *place), each.header, each.ends_at, self.clock.now())
            if note is not None:
                self.notes(protocol).note_end(note)
        return shown_ends(ending)

    def signature(
        self, project_id: str, sealed: bytes, *, message_id: str, body: bytes, kind: str, url: str
    ) -> Signature:
        """What signs a request made now; nothing if there is no key.

        Args:
            sealed: The subscriber's keys, encrypted; empty for none.
            message_id: The same at every attempt.
            kind: What ``{event_type}`` stands for in a scheme; escaped as in a URL.
            url: The URL that is called.
        """
        if not sealed:
            return UNSIGNED
        now, signed = self.clock.now(), self._opened(project_id, sealed)
        schemes = signed.schemes or self._inherited(project_id, url)
        pairs = self._secrets(signed, schemes, now) if schemes else []
        headers: dict[str, str] = {}
        if signed.ring is not None and (not pairs or any(each.standard and each.signs_at(now) for each in schemes)):
            headers = {
                "webhook-id": message_id,
                "webhook-timestamp": str(now // 1000),
                "webhook-signature": signatures(signed.ring.live(now), message_id, now // 1000, body),
            }
        standard = (STANDARD_WEBHOOKS,) if headers else ()
        if not schemes:
            return Signature(headers, standard)
        if not pairs:
            return Signature(headers, standard)
        from pushhub.base.signature_schemes import Unsigned, sign  # noqa: PLC0415
        from pushhub.egress.url import wire_url  # noqa: PLC0415

        request = Unsigned(
            message_id=message_id,
            event_id=message_id,
            event_type=quote(kind, safe="/:@,;=+ ")[:_MOST_OF_A_KIND].strip(),
            at=now,
            url=wire_url(url),
            body=body,
        )
        for scheme, secrets in pairs:
            headers |= sign(scheme, secrets, request)
        return Signature(headers, (*standard, *(scheme.name for scheme, _ in pairs)))

    def _inherited(self, project_id: str, url: str) -> tuple[Scheme, ...]:
        """The project's schemes; none for what is not sent to an HTTP URL."""
        project = self.projects.project(project_id)
        schemes = project.signatures if project else ()
        return schemes if schemes and url[:8].lower().startswith(("http://", "https://")) else ()

    @staticmethod
    def _secrets(signed: _Signed, schemes: Sequence[Scheme], now: int) -> list[tuple[Scheme, Sequence[str]]]:
        """The schemes that sign now, except Standard Webhooks, with their secrets, or with the subscriber's own key."""
        if signed.schemes:
            own = zip(signed.schemes, signed.secrets, strict=True)
            return [(scheme, ring.live(now)) for scheme, ring in own if ring is not None and scheme.signs_at(now)]
        texts = signed.ring.as_secrets(now) if signed.ring else []
        return [(each, texts) for each in schemes if not each.standard and each.signs_at(now)] if texts else []
