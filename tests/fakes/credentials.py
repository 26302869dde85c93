"""A vault, and credentials that it seals."""

from __future__ import annotations

from tests.fakes.clock import FakeClock

from pushhub.engine.security.credentials import Credentials

_SCRAMBLED = bytes(each ^ 0x5A for each in range(256))


class FakeVault:
    """Scrambles bytes, so that no plain text is found; opens them for their own project only."""

    def seal(self, project_id: str, content: bytes) -> bytes:
        return project_id.encode() + b"|" + content.translate(_SCRAMBLED)

    def open(self, project_id: str, sealed: bytes) -> bytes:
        owner, _, content = sealed.partition(b"|")
        assert owner == project_id.encode(), "sealed for another project"
        return content.translate(_SCRAMBLED)


def credentials() -> Credentials:
    """Seals so that no plain text is found."""
    return Credentials(vault=FakeVault, clock=FakeClock())
