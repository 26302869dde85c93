"""Commands run against a hub on fakes here, too."""

from __future__ import annotations

from tests.cli.conftest import calls, hub, typed

__all__ = ["calls", "hub", "typed"]
