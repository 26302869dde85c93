"""Sources in the shell, against a hub on fakes."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from cli.commands.sources import KINDS
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cli.test_webhooks import asked, secret_file

from pushhub.base.webhook_senders import SENDERS


def test_the_kinds_that_can_be_typed_are_those_of_the_hub() -> None:
    assert {*KINDS} == {*SENDERS}


def test_a_source_is_created_shown_rotated_and_deleted(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    # When one is created with its sender's secret and an endpoint
    where = ("--secret-file", secret_file(tmp_path, "a-secret"), "--to", "https://a.example/in")
    [created] = typed.json("sources", "create", "Repos", "github", "--uid", "repos", *where)
    assert (created["uid"], created["type"], created["verified"]) == ("repos", "github", True)
    assert "/ingest/in/" in created["ingestUrl"]
    # Then it is listed, and has the endpoint
    assert typed.json("sources", "list") == typed.json("sources", "show", "repos") == [created]
    [endpoint] = asked(hub, "GET", "/source/repos/endpoint", api="/ingest/api/v1")["data"]
    assert endpoint["url"] == "https://a.example/in"
    # When its URL is rotated, then it has another one
    [rotated] = typed.json("sources", "rotate", "repos", "--yes")
    assert rotated["ingestUrl"] != created["ingestUrl"]
    # When it is deleted, it is gone, and a dry run deletes nothing
    typed("sources", "delete", "repos", "--dry-run")
    assert typed.json("sources", "list")
    typed("sources", "delete", "repos", "--yes")
    assert typed.json("sources", "list") == []
    typed("sources", "show", "repos", code=1)


def test_what_a_source_has_turned_away_is_shown_by_day(hub: ServedHub, typed: Typed) -> None:
    signature = json.dumps({"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"})
    given = ("sources", "create", "Own", "generic-webhook", "--signature-file", "-")
    [created] = typed.json(*given, given=signature.encode())
    answer = hub.answer("POST", urlsplit(created["ingestUrl"]).path, {}, b'"x"')
    assert answer is not None
    assert answer[0] == 400
    [day] = typed.json("sources", "refused", created["id"])
    assert (day["unsigned"], day["forged"]) == (1, 0)
    typed(*given, given=b"{", code=2)
