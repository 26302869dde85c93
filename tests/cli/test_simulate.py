"""``pushhub simulate policy``: options, replays, charts; and requests to the hub's simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import boto3
import pytest
from cli.durations import worded
from cli.operator import Deployment
from cli.pictures import sparkline
from moto import mock_aws
from tests.cli.conftest import Typed
from tests.engine.test_history import URL, recorded
from tests.engine.world import PROJECT, World, subscribers
from tests.ironmq.api.hub import Hub
from tests.ironmq.api.test_policies import a_failure

from pushhub.base.times import iso_time
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.store.s3_records import S3RecordStore


def test_the_words_of_each_protocol_are_taken(typed: Typed) -> None:
    told = typed.json("simulate", "policy", "--retries", "1", "--retries-delay", "30", "--outage", "1m", "--rate", "2")
    assert told["plan"]["policy"] == {"retries": 1, "retries_delay": 30}
    assert told["forecast"]["accepted"] == 120
    assert told["compared"]["with"] == "default"
    told = typed.json("simulate", "policy", "--max-attempts", "4", "--retry-base", "5", "--outage", "1m")
    assert told["plan"]["policy"] == {"max_attempts": 4, "retry_base": 5.0, "retry_cap": 3600.0}
    told = typed.json("simulate", "policy", "--schedule", "5,60", "--outage", "1m", "--seed", "3")
    assert told["plan"]["policy"] == {"schedule": [5.0, 60.0]}
    assert (told["plan"]["circuit"], told["plan"]["seed"]) == (True, 3)
    assert told["compared"]["with"] == "no_circuit"


def test_times_of_trouble_are_typed_as_people_say_them(typed: Typed) -> None:
    words = ("--outage", "1h-2h:503,retry_after=60,share=0.5", "--outage", "0-30m:refuses,down=20,up=40")
    told = typed.json("simulate", "policy", *words, "--for", "10m", "--life", "1h", "--compare", "nothing")
    assert told["outage"] == [
        {
            "start": 3600,
            "end": 7200,
            "endpoint": "answers",
            "status": 503,
            "retry_after": 60,
            "takes": 0.05,
            "share": 0.5,
            "down": None,
            "up": None,
        },
        {
            "start": 0,
            "end": 1800,
            "endpoint": "refuses",
            "status": 503,
            "retry_after": None,
            "takes": 0.05,
            "share": 1.0,
            "down": 20,
            "up": 40,
        },
    ]
    assert told["compared"] is None
    # And the plan in the answer can be used as a request
    again = json.dumps({**told["plan"], "outage": told["outage"], "compare": "nothing"}).encode()
    assert typed.json("simulate", "policy", "--request", "-", given=again)["forecast"] == told["forecast"]


def test_a_person_sees_a_table_and_a_picture(typed: Typed, tmp_path: Path) -> None:
    picture = tmp_path / "load.svg"
    shown = typed("simulate", "policy", "--schedule", "svix", "--outage", "1h", "--rate", "5", "--svg", str(picture))
    assert "forecast" in shown.splitlines()[0]
    assert "no_circuit" in shown.splitlines()[0]
    assert "delay p90" in shown
    assert "█" in shown
    assert "list prices" in typed.errors
    drawn = ET.fromstring(picture.read_text())
    assert len(drawn.findall("{http://www.w3.org/2000/svg}path")) == 3


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--retries", "3", "--schedule", "svix"), 1, "mixes protocols"),
        (("--schedule", "none-such"), 1, "schedule must be one of"),
        (("--outage", "3x"), 2, "not a time span"),
        (("--outage", "1h:503,wind=2"), 2, "is not one of"),
        (("--outage", "1h:503,share=much"), 2, "not a number for share"),
        (("--outage", "1h:sleeps"), 1, "endpoint must be one of"),
        (("--rate", "100000"), 1, "rate must be from"),
        (("--request", "-"), 2, "not valid JSON"),
        (("--replay", "shop"), 2, "needs --queue and --since"),
        (("--replay", "shop", "--queue", "q", "--since", "soon"), 2, "is not a time"),
    ],
)
def test_what_cannot_be_simulated_is_said(typed: Typed, words: tuple[str, ...], code: int, said: str) -> None:
    typed("simulate", "policy", *words, code=code)
    assert said in typed.errors


def test_a_subscribers_own_history_is_the_outage(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a subscriber that was down for ten minutes of an hour, and its records
    world = World()
    world.make_queue("q", subscribers(URL), retry=FixedDelay(retries=5, delay_s=60))
    start = world.clock.now()
    for step in range(60):
        world.sender.script(URL, 503 if 20 <= step < 30 else 200)
        world.post("q", b"x")
        world.run(seconds=60)
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        s3.create_bucket(Bucket="records")
        lines = recorded(world)
        stored = S3RecordStore(s3, "records")
        for number, each in enumerate(lines):
            stored.write([_Line(each)], table="m", first=str(number), last=str(number))  # type: ignore[list-item]
        made = Deployment("acme", {"RecordsBucketName": "records"}, _Session(s3), {})
        monkeypatch.setattr("cli.commands.simulate.deployment", lambda _: made)
        # When another policy is tried against it
        words = ("--replay", "name-0", "--queue", "q", "--since", iso_time(start), "--retries", "30")
        told = typed.json("simulate", "policy", *words, "--retries-delay", "30")
        # Then the outage is its own, and so is the traffic
        assert told["plan"]["rate"] == pytest.approx(1 / 60, rel=0.05)
        [window] = told["outage"]
        assert (window["endpoint"], window["status"], window["share"]) == ("answers", 503, 1.0)
        assert window["end"] - window["start"] == pytest.approx(600, abs=60)
        assert told["forecast"]["given_up"] == 0
        assert told["forecast"]["failed_attempts"] > 50
        assert "outages: 1" in typed.errors
        # And a subscriber without records is reported as unknown
        typed("simulate", "policy", "--replay", "nobody", "--queue", "q", "--since", "2020-01-01", code=1)
        assert "no attempt to nobody" in typed.errors


def test_a_project_replays_what_the_hub_counted_of_its_own(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a project's endpoint that answered 503 for an hour, and a hub that counted it
    served = Hub()
    replay = a_failure(served)
    monkeypatch.setattr("cli.hub.HubOptions.rest", lambda _: _Project(served))
    # When its owner simulates another schedule
    words = ("--replay", replay["subscriber"], "--queue", replay["queue"], "--since", replay["since"], "--ask-hub")
    told = typed.json("simulate", "policy", *words, "--schedule", "7200", "--no-circuit", "--life", "1d")
    # Then outage and traffic are taken from the counts
    assert told["plan"]["rate"] == pytest.approx(1 / 60)
    [window] = told["outage"]
    assert (window["start"], window["end"], window["status"]) == (0, 3600, 503)
    assert (told["forecast"]["accepted"], told["forecast"]["attempts"]) == (60, 120)
    assert "60 of 60 attempts failed" in typed.errors


class _Project:
    """The hub's API, used with a project's token."""

    project = PROJECT

    def __init__(self, served: Hub) -> None:
        self._served = served

    def call(self, method: str, path: str, body: Any, *, reads: bool = False) -> Any:
        answer = self._served.send(method, path, json.dumps(body).encode(), token=self._served.token)
        assert answer.status == 200, answer
        return answer.body


class _Session:
    """A session whose only client is given."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def client(self, service: str, **options: Any) -> Any:
        return self._client


class _Line:
    """A record as it is read back, for the store to write again."""

    def __init__(self, fields: Any) -> None:
        self._fields = fields
        self.hour = (fields["at"][:10], fields["at"][11:13])

    def as_fields(self) -> Any:
        return self._fields


def test_the_whole_hubs_simulator_takes_its_own_words(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    class Done:
        returncode = 0

    def run(words: list[str], **_: object) -> Done:
        ran.append(words)
        return Done()

    monkeypatch.setattr("cli.commands.simulate.subprocess.run", run)
    typed("simulate", "hub", "--seed", "7", "--help")
    assert ran[0][1:] == ["-m", "simulation", "--seed", "7", "--help"]


def test_spans_and_blocks() -> None:
    assert [worded(each) for each in (0, 1500, 59_999, 60_000, 3_661_000, 90_000_000, 86_400_000)] == [
        "0 s",
        "1.5 s",
        "60 s",
        "1 min",
        "1 h 1 min",
        "1 d 1 h",
        "1 d",
    ]
    assert sparkline([]) == ""
    assert sparkline([0, 1, 8]) == "·▂█"
    assert sparkline([4], 8) == "▅"
    assert len(sparkline(range(1000))) == 100
