"""A dry run changes nothing, whichever command it is: commands and their options are taken from the parser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import click
import pytest
from cli.__main__ import main
from tests.cli.conftest import Typed
from tests.cli.served_hub import TOKEN, ServedHub
from tests.cli.test_messages import failed, given_up, waiting
from tests.cli.test_projects import Operator, operator
from tests.cli.test_webhooks import GATE, OPERATIONAL, SHOP, asked, with_endpoints
from tests.cloud import aws_services as aws
from tests.engine.world import PROJECT
from tests.fakes.private_keys import identity

__all__ = ["operator"]

READS = {
    "status": "asks whether the hub answers",
    "profiles list": "reads one's own file",
    "projects list": "reads a table",
    "tokens list": "reads a table",
    "queues list": "gets",
    "queues show": "gets",
    "alerts list": "gets",
    "traces show": "gets",
    "signatures show": "gets",
    "gates show": "gets",
    "gates external-id": "gets",
    "frames show": "gets",
    "transformations show": "gets",
    "transformations try": "its POST runs code, and sends and stores nothing",
    "sources list": "gets",
    "sources show": "gets",
    "sources refused": "gets",
    "streams list": "gets",
    "streams show": "gets",
    "streams events": "gets",
    "streams sinks": "gets",
    "topics": "gets",
    "health": "reads how subscribers are doing",
    "attempts": "gets",
    "events": "gets",
    "search": "reads the index, or the records: its POST starts a query that changes nothing",
    "tail": "reads the records",
    "audit": "reads the trail",
    "verify": "computes",
    "policy": "gets",
    "cost": "computes",
    "simulate hub": "computes",
    "completion": "prints",
    "projects export": "reads the tables and buckets, and writes a folder of one's own",
}
"""Commands that change nothing, and why not."""
WITHOUT = {
    "up": "starts what is on this machine; 'down' takes it back",
    "down": "stops what is on this machine and keeps its state; 'up' takes it back",
    "listen": "to receive is all it does: a dry run would show nothing",
    "profiles set": "writes one's own file",
    "profiles remove": "writes one's own file",
    "deploy doctor": "has to send its message to see it arrive, into queues of its own that it deletes again",
    "deploy table": "only adds what a table lacks, and says each step; nothing else works until it has",
}
"""Commands that change something and have no dry run, with the reason."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group."""

    def below(group: click.Group, before: str) -> Iterator[tuple[str, click.Command]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from below(command, f"{before}{name} ")
            else:
                yield f"{before}{name}", command

    return below(main, "")


def dry() -> set[str]:
    return {name for name, command in commands() if any("--dry-run" in each.opts for each in command.params)}


def test_every_command_either_has_a_dry_run_or_a_reason_to_have_none() -> None:
    names = {name for name, _ in commands()}
    assert dry() | READS.keys() | WITHOUT.keys() == names
    assert not dry() & (READS.keys() | WITHOUT.keys())
    assert not READS.keys() & WITHOUT.keys()


WEBHOOK = ("--app", "a", "--endpoint", "e")
SUBSCRIBER = ("--queue", "orders", "--subscriber", "shop")
GATED = ("--app", "acme", "--endpoint", "gated")
ON_THE_HUB: dict[str, tuple[tuple[str, ...], ...]] = {
    "queues create": (("new", "--push", "https://x.example"), ("orders", "--retries", "5")),
    "queues delete": (("orders", "--yes"), ("orders",)),
    "pause": (("orders", "shop"),),
    "resume": (("orders", "shop"),),
    "alerts set": (
        ("new", "given-up", "5", "--url", "https://x.example"),
        ("here", "given-up", "5", "--url", "https://x.example"),
    ),
    "alerts delete": (("here", "--yes"), ("here",)),
    "alerts test": (("here",),),
    "traces export": (("https://x.example/v1/traces", "-H", "x-key=s3cret"),),
    "traces stop": ((),),
    "signatures add": (("standard-webhooks", "--app", "acme"), ("github",)),
    "signatures set": (("SCHEMES", *SHOP), ("SCHEMES", *SUBSCRIBER)),
    "signatures off": ((*SUBSCRIBER, "--yes"), SUBSCRIBER),
    "signatures end": (("stripe", "never", *SHOP),),
    "signatures remove": (("stripe", *SHOP, "--yes"), ("stripe", *SHOP)),
    "gates oauth": (
        (*GATE, "--secret-file", "SECRET", *SHOP),
        (*GATE, "--secret-file", "SECRET", *OPERATIONAL),
        (*GATE, "--secret-file", "SECRET", *SUBSCRIBER),
    ),
    "gates certificate": (("IDENTITY", *SHOP), ("IDENTITY", *SUBSCRIBER)),
    "gates remove": (("oauth", *GATED, "--yes"), ("certificate", *GATED)),
    "frames set": (("https://app.example.com",), ("--app", "acme")),
    "transformations set": (("--app", "acme", "--endpoint", "shop", "--enable", "--variable", "K=v"),),
    "sources create": (("Repos", "github", "--secret-file", "SECRET", "--to", "https://a.example/in"),),
    "sources rotate": (("repos", "--yes"), ("repos",)),
    "sources delete": (("repos", "--yes"), ("repos",)),
    "streams create": (("Orders",),),
    "streams delete": (("orders", "--yes"), ("orders",)),
    "streams post": (("orders", "order.paid", "{}"),),
    "streams add-sink": (("orders", "poller"),),
    "streams retry": (("orders", "own"),),
    "streams skip": (("orders", "own", "--yes"), ("orders", "own")),
    "streams remove-sink": (("orders", "own", "--yes"), ("orders", "own")),
    "post": (("orders", "x"), ("orders", "--ndjson", "LINES"), ("new", "x"), ("orders", "--file", "BINARY")),
    "retry": (("MESSAGE",), ("--waiting",), ("MESSAGE", *WEBHOOK)),
    "replay": (
        ("errors",),
        ("errors", "--to", "other"),
        ("--queue", "orders", "--subscriber", "shop"),
        (*WEBHOOK, "--since", "2h"),
        (*WEBHOOK, "--since", "2h", "--missing"),
    ),
    "expunge": (("MESSAGE", "--queue", "orders"), ("MESSAGE", "--app", "a", "--yes")),
    "shovel": (("new", "--from", "THERE", "--project", PROJECT, "--token", TOKEN, "--queue-there", "errors"),),
    "import": (("--from", "THERE", "--token", "t"),),
}
"""Ways to use each command that changes something on the hub."""
BY_OPERATORS: dict[str, tuple[tuple[str, ...], ...]] = {
    "projects make": (("new", "--allow", "10.0.0.0/8"),),
    "projects rename": (("PROJECT", "other"),),
    "projects allow": (("PROJECT", "10.0.0.0/8"),),
    "projects suspend": (("PROJECT",),),
    "projects resume": (("PROJECT",),),
    "projects quota": (("PROJECT", "5"), ("PROJECT", "none")),
    "projects traces": (("PROJECT", "all"),),
    "tokens make": (("PROJECT", "--label", "x"),),
    "tokens revoke": (("PROJECT", "TOKEN"),),
    "tokens rotate": (("PROJECT", "TOKEN"),),
}
"""The same for what operators change."""
ELSEWHERE = {
    "projects delete": "compares the tables and buckets: test_erasing.py",
    "projects import": "compares the tables and buckets: test_moving.py",
    "rebuild": "compares the table: test_rebuild.py",
    "reseal": "compares the tables: test_reseal.py",
    "report": "starts a job: test_report.py",
    "signing-secret rotate": "compares the item: test_signing_secret.py",
}


def test_every_dry_run_is_tried() -> None:
    assert dry() == ON_THE_HUB.keys() | BY_OPERATORS.keys() | ELSEWHERE.keys()


def files(hub: ServedHub, folder: Path) -> dict[str, str]:
    """What the words stand for: files, and endpoints that are there."""
    with_endpoints(hub)
    asked(hub, "POST", "/app/acme/endpoint", {"url": "https://b.example/in", "uid": "gated"})
    asked(hub, "PUT", "/stream/orders", {"name": "Orders", "uid": "orders"})
    asked(hub, "PUT", "/stream/orders/sink/own", {"type": "poller", "uid": "own"})
    asked(hub, "POST", "/stream/orders/events", {"events": [{"eventType": "order.paid", "payload": "{}"}]})
    # A sink reads what is some seconds old.
    hub.worlds["webhooks"].world.clock.advance(ms=5_000)
    asked(hub, "PUT", "/source/repos", {"name": "Repos", "uid": "repos", "type": "github"}, api="/ingest/api/v1")
    oauth = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": "c", "clientSecret": "s"}
    asked(hub, "PUT", "/app/acme/endpoint/gated/oauth", {**oauth, "tokenUrl": "https://login.example/token"})
    contents = {"LINES": b"a\nb\n" * 150, "BINARY": b"\xff", "SCHEMES": b"[]", "SECRET": b"hush\n"}
    contents["IDENTITY"] = identity().encode()
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: str(folder / name) for name in contents}


@pytest.mark.parametrize(
    ("command", "words"), [(name, words) for name, ways in ON_THE_HUB.items() for words in ways], ids=str
)
def test_a_dry_run_writes_nothing_to_the_hub(
    hub: ServedHub, typed: Typed, tmp_path: Path, command: str, words: tuple[str, ...]
) -> None:
    # Given a hub with something of everything
    given_up(hub, 2)
    typed("post", "errors", failed("gone", body="x"))
    typed("alerts", "set", "here", "given-up", "5", "--url", "https://x.example")
    message = waiting(hub)
    places = files(hub, tmp_path)
    hub.answers[("GET", "/api/v1/event-type")] = (200, b'{"data": [{"name": "a", "description": "x"}], "done": true}')
    hub.answers[("GET", "/api/v1/event-type/a")] = (404, b"{}")
    hub.answers[("GET", "/api/v1/app")] = (200, b'{"data": [], "done": true}')
    places |= {"MESSAGE": message, "THERE": hub.base_url}
    typed_words = [*command.split(), *(places.get(each, each) for each in words), "--dry-run"]
    before = len(hub.writes)
    # When the command is run dry
    shown = typed(*typed_words)
    # Then it says something, and nothing that could change the hub was asked for
    assert shown.strip() or typed.errors.strip()
    assert hub.writes[before:] == []
    json.loads(typed(*typed_words, "--json").splitlines()[0])
    assert hub.writes[before:] == []


def test_a_dry_run_says_what_would_be_done(hub: ServedHub, typed: Typed) -> None:
    given_up(hub, 3)
    typed("post", "errors", failed("gone", body="x", subscribers=[{"name": "a"}]))
    typed("post", "errors", "[]")
    assert typed.json("replay", "errors", "--dry-run") == [
        {"queue": "orders", "subscriber": "shop", "messages": 3},
        {"queue": "gone", "subscriber": "a", "messages": 1},
        {"queue": "-", "subscriber": "no error messages", "messages": 1},
    ]
    assert typed.json("replay", "errors", "--limit", "2", "--dry-run")[0]["messages"] == 2
    [shown] = typed.json("queues", "create", "new", "--dry-run")
    assert shown["would"].startswith("PUT /3/projects/")
    assert typed.json("retry", "--waiting", "--dry-run") == []


@pytest.mark.parametrize(
    ("command", "words"), [(name, words) for name, ways in BY_OPERATORS.items() for words in ways], ids=str
)
def test_a_dry_run_writes_nothing_to_a_table(operator: Operator, command: str, words: tuple[str, ...]) -> None:
    # Given a project with a token
    [project] = operator.run("projects", "make", "Acme")
    [token] = operator.run("tokens", "list", project["project"])
    places = {"PROJECT": project["project"], "TOKEN": token["token_id"]}
    given = [*command.split(), *(places.get(each, each) for each in words)]
    before = content()
    # When the command is run dry, then the table is as it was, and what would be done is said
    [shown] = operator.run(*given, "--dry-run")
    assert shown["would"].startswith("dynamodb ")
    assert content() == before
    # And without it the table is not
    operator.run(*given)
    assert content() != before


def content() -> str:
    found: Callable[..., object] = boto3.client("dynamodb").scan
    return json.dumps(found(TableName=aws.CONFIG_TABLE)["Items"], sort_keys=True, default=str)  # type: ignore[index]
