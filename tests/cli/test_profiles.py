"""Profiles: which hub is used, and that nobody else can read its token."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli.settings import Profile, Profiles
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT


def test_a_profile_is_kept_for_its_owner_alone(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    words = ("--url", "http://127.0.0.1:9/", "--project", "p", "--stack", "acme", "--token-stdin")
    typed("profiles", "set", 'live "one" 🜁', *words, given=b"s3cret\n")
    assert "not tried, as http://127.0.0.1:9 did not answer" in typed.errors
    file = tmp_path / "config" / "profiles.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert Profiles().get('live "one" 🜁') == Profile("http://127.0.0.1:9", "p", "s3cret", "acme")
    assert "s3cret" not in typed("profiles", "list", "--json")
    typed("profiles", "remove", 'live "one" 🜁')
    assert Profiles().all() == {}
    typed("profiles", "remove", "live", code=1)
    typed("profiles", "set", "a\x7f", *words, given=b"s3cret\n", code=2)
    assert Profiles().all() == {}


def test_a_token_that_the_hub_refuses_is_not_kept(hub: ServedHub, typed: Typed) -> None:
    words = ("--url", hub.base_url, "--project", PROJECT, "--token-stdin")
    typed("profiles", "set", "here", *words, given=b"wrong\n", code=1)
    assert "not kept: the hub says 401" in typed.errors
    assert Profiles().all() == {}
    typed("profiles", "set", "here", *words, given=b"t0ken\n")
    assert set(Profiles().all()) == {"here"}


def test_a_file_that_others_can_read_is_refused(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    typed("profiles", "set", "live", "--url", "http://127.0.0.1:9", "--project", "p", "--token-stdin", given=b"s\n")
    (tmp_path / "config" / "profiles.toml").chmod(0o640)
    typed("profiles", "list", code=1)
    assert "chmod 600" in typed.errors


def test_the_environment_names_the_file_itself(
    hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PUSHHUB_CONFIG", str(tmp_path / "mine"))
    typed("profiles", "set", "live", "--url", "http://127.0.0.1:9", "--project", "p", "--token-stdin", given=b"s\n")
    assert (tmp_path / "mine").is_file()
    # A folder is no file, which is said
    monkeypatch.setenv("PUSHHUB_CONFIG", str(tmp_path))
    typed("profiles", "list", code=1)
    assert f"{tmp_path} cannot be read" in typed.errors


@pytest.mark.parametrize(
    "content",
    [
        b"[",
        b"profiles = 1\n",
        b"[profiles]\nx = 1\n",
        b"\xff",
        b"[profiles.x]\nurl = 1\n",
        b'[profiles.x]\nodd = "1"\n',
    ],
)
def test_a_file_that_is_odd_is_told(hub: ServedHub, typed: Typed, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config" / "profiles.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    file.chmod(0o600)
    typed("profiles", "list", code=1)
    assert str(file) in typed.errors


def test_a_profile_goes_before_the_environment(hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an environment that points nowhere, and a profile that points to the hub
    words = ("--url", hub.base_url, "--project", PROJECT, "--token-stdin")
    typed("profiles", "set", "here", *words, given=b"t0ken\n")
    monkeypatch.setenv("PUSHHUB_URL", "http://127.0.0.1:9")
    # Then it is used when named
    typed("status", code=3)
    assert typed.json("--profile", "here", "status")[0]["state"] == "ok"
    assert typed.json("status", "--profile", "here")[0]["state"] == "ok"
    assert typed("queues", "list", "--profile", "here").strip() == "none"
    monkeypatch.setenv("PUSHHUB_PROFILE", "here")
    assert "ok" in typed("status")
    typed("--profile", "other", "status", code=1)


def test_a_wrong_token_is_told(hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUSHHUB_TOKEN", "wrong")
    typed("status", code=1)
    assert "the hub says 401" in typed.errors
    monkeypatch.delenv("PUSHHUB_TOKEN")
    typed("status", code=1)
    assert "PUSHHUB_TOKEN" in typed.errors
