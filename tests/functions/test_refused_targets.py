"""The reason given for a refused subscriber URL."""

from __future__ import annotations

import pytest
from tests.functions.conftest import Functions, start_afresh, whole

HINT = "; ask the operator"


def reason(monkeypatch: pytest.MonkeyPatch, url: str) -> str | None:
    monkeypatch.setenv("ALLOWED_TARGETS", "loopback,!loopback:4577")
    monkeypatch.setenv("REFUSED_TARGET_HINT", HINT)
    start_afresh()
    return whole().engine.ports.check_url(url, ())


def test_the_operators_hint_follows_the_reason(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an operator's hint, when a subscriber elsewhere in the network is checked, then the reason ends with the
    # hint
    refused = reason(monkeypatch, "http://10.1.2.3/")
    assert refused == "10.1.2.3 is a private address, which is not allowed; ask the operator"


@pytest.mark.parametrize("url", ["http://127.0.0.1:4577/", "ftp://10.1.2.3/"])
def test_where_allowing_would_not_help_there_is_no_hint(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    # Given a port that is never open, or an invalid target, when it is checked, then only the reason is given
    refused = reason(monkeypatch, url)
    assert refused is not None
    assert HINT not in refused


def test_what_is_allowed_needs_no_hint(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reason(monkeypatch, "http://127.0.0.1:4578/") is None
