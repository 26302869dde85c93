"""What every store of workers' numbers does."""

from __future__ import annotations

from pushhub.engine.acceptance.ports import Workers


def test_worker_numbers_never_repeat(config_store: Workers) -> None:
    given = [config_store.next_worker() for _ in range(5)]
    assert len(set(given)) == 5
