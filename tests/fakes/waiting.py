"""Tells a test that a thread waits for a read that another thread makes."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from pushhub.base import shared_reads


def waits_for_a_read(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """From now on, a thread that waits for a shared read sets the event returned here."""
    waits = threading.Event()

    class Noting(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            waits.set()
            return super().result(timeout)

    monkeypatch.setattr(shared_reads, "Future", Noting)
    return waits
