"""The demonstration checks its own claims, on messages as they occur in the world."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from local.demonstration import flow, webhook_flow
from local.demonstration.flow import Demonstration, Progress, Row, check, rows, table
from local.demonstration.hub import Hub
from local.demonstration.sinks import Flaky, Healthy, Push
from local.errors import LocalError
from tests.webhooks.live import LiveWorld

POSTED = {"1": b"one", "2": "zwölf".encode()}


def shown() -> tuple[Demonstration, list[dict[str, Any]], dict[str, int]]:
    """A demonstration in which everything went well."""
    show = Demonstration(hub=Hub("http://127.0.0.1:1", "p", "t"), queue="demo-1", bodies=["one", "zwölf"])
    show.posted = dict(POSTED)
    for sink in show.sinks:
        sink.accepted, sink.tries = dict(POSTED), Counter({"1": 1, "2": 2})
    errors = [
        {"source_msg_id": key, "body": body.decode(), "subscribers": [{"name": "dead", "code": 0}]}
        for key, body in POSTED.items()
    ]
    return show, errors, {"healthy": 3, "flaky": 3, "later": 3, "dead": 6}


def test_when_all_is_well_there_is_nothing_to_complain_about() -> None:
    # Given all went well, when it is checked, then nothing is found
    assert check(*shown()) == []


def test_a_changed_or_missing_body_is_found() -> None:
    # Given one changed and one missing body
    show, errors, tries = shown()
    show.sinks[0].accepted["2"] = b"zwolf"
    del show.sinks[1].accepted["1"]
    # When it is checked, then both are found
    assert check(show, errors, tries) == [
        "healthy has 1 messages changed and 0 missing",
        "flaky has 0 messages changed and 1 missing",
    ]


def test_a_message_that_could_not_be_acknowledged_in_time_may_be_in_the_error_queue() -> None:
    # Given a message that a subscriber lacks, and an error message about that
    show, errors, tries = shown()
    del show.sinks[2].accepted["1"]
    errors.append({"source_msg_id": "1", "body": "one", "subscribers": [{"name": "later", "code": 202}]})
    # When it is checked, then that is as it should be, and the table tells it
    assert check(show, errors, tries) == []
    assert [(row.subscriber, row.received, row.given_up) for row in rows(show, errors, tries)] == [
        ("healthy", "2 of 2", "0"),
        ("flaky", "2 of 2", "0"),
        ("later", "1 of 2", "1"),
        ("dead", "0 of 2", "2"),
    ]


def test_the_healthy_subscriber_has_to_have_everything() -> None:
    # Given a message of the healthy subscriber in the error queue
    show, errors, tries = shown()
    del show.sinks[0].accepted["1"]
    errors.append({"source_msg_id": "1", "body": "one", "subscribers": [{"name": "healthy", "code": 500}]})
    # When it is checked, then that is found
    assert check(show, errors, tries) == ["healthy received 1 of 2 messages"]


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda errors: errors.pop(), "not every message for dead is in the error queue"),
        (lambda errors: errors.append(errors[0]), "3 error messages are about 2 deliveries"),
        (lambda errors: errors[0].update(body="other"), "the error message of 1 holds another body"),
        (
            lambda errors: errors[1].update(subscribers=[{"name": "later"}]),
            "not every message for dead is in the error queue",
        ),
    ],
)
def test_a_wrong_error_queue_is_found(spoil: Any, complaint: str) -> None:
    # Given an error queue that is not as it should be
    show, errors, tries = shown()
    spoil(errors)
    # When it is checked, then that is found
    assert check(show, errors, tries) == [complaint]


def test_wrong_counts_of_tries_are_found() -> None:
    # Given push statuses that claim more than there was, and a dead subscriber tried too seldom
    show, errors, tries = shown()
    tries |= {"healthy": 4, "dead": 5}
    # When it is checked, then both are found
    assert check(show, errors, tries) == [
        "healthy was tried 3 times, its statuses say 4",
        "dead was tried 5 times",
    ]


def test_the_messages_are_many_of_several_kinds_and_sizes_and_not_only_ascii() -> None:
    # Given the messages that are posted, when they are counted
    lines = [json.loads(line) for line in flow.MESSAGES.read_text(encoding="utf-8").strip("\n").split("\n")]
    sizes = [len(line["body"].encode()) for line in lines]
    # Then there is some of everything
    assert len(lines) >= 100
    assert len({line["kind"] for line in lines}) >= 8
    assert min(sizes) == 0
    assert sum(10_000 <= size <= 120_000 for size in sizes) >= 4
    assert sum(not line["body"].isascii() for line in lines) >= 50
    assert [line["body"] for line in lines] == flow.load()


@pytest.mark.parametrize("content", ["", "{}", '{"body": 1', "[]"])
def test_messages_that_cannot_be_read_are_one_line(tmp_path: Path, content: str) -> None:
    # Given a damaged file, when it is read, then the message names it
    path = tmp_path / "messages.jsonl"
    path.write_text(content)
    with pytest.raises(LocalError, match=r"messages cannot be read: .*messages\.jsonl"):
        flow.load(path)


def test_the_flaky_sink_takes_everything_in_the_end() -> None:
    # Given the flaky sink
    async def push(message_id: str) -> int:
        sink.tries[message_id] += 1
        return await sink.take(Push(message_id, "r", "flaky", ""), b"body")

    async def run() -> list[list[int]]:
        return [[await push(str(message)) for message in range(1, 10)] for _ in range(3)]

    sink = Flaky()
    # When nine messages are pushed three times
    first, second, third = asyncio.run(run())
    # Then each third is refused once and the ninth twice
    assert first == [200, 200, 503, 200, 200, 503, 200, 200, 503]
    assert second == [200] * 8 + [503]
    assert third == [200] * 9
    assert len(sink.accepted) == 9


def test_without_a_terminal_progress_is_a_line_now_and_then() -> None:
    # Given no terminal, when progress is shown often
    stream = io.StringIO()
    progress = Progress(stream)
    for number in range(50):
        progress.show(f"healthy {number}/50")
    progress.end()
    # Then it does not fill the log
    assert stream.getvalue().count("\n") == 1
    assert "\r" not in stream.getvalue()


def test_the_table_is_aligned() -> None:
    # Given rows of different widths, when they are laid out
    text = table([Row(Healthy().name, "answers 200", "122 of 122", "122", "0"), Row("x", "y", "0 of 122", "366", "9")])
    # Then columns begin where their headings do
    lines = text.strip().split("\n")
    assert (
        len(
            {
                line.index(cell)
                for line, cell in zip([lines[0], *lines[2:]], ["received", "122 of", "0 of"], strict=True)
            }
        )
        == 1
    )
    assert not any(line.endswith(" ") for line in lines)


def test_what_a_failed_post_had_stored_all_the_same_is_no_fault() -> None:
    # Given a post that was made again, and a message of the first one that arrived as well
    show, errors, tries = shown()
    for sink in show.sinks:
        sink.accepted["3"], sink.tries["3"] = b"one", 1
    errors.append({"source_msg_id": "3", "body": "one", "subscribers": [{"name": "dead", "code": 0}]})
    # When it is checked, then a message that nobody has posted is found, unless a request was repeated
    assert check(show, errors, tries) != []
    show.hub.repeated = 1
    assert check(show, errors, tries) == []
    # And what came must still be something that was posted
    show.sinks[0].accepted["3"] = b"another"
    assert check(show, errors, tries) == ["healthy has 1 messages changed and 0 missing"]


def test_the_published_signature_is_verified_and_no_other() -> None:
    # Given the vector of Svix's documentation
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    # When it is verified, then it fits, and fits nothing else
    assert webhook_flow.verified(secret, headers, body)
    assert not webhook_flow.verified(secret, headers, body + b" ")
    assert not webhook_flow.verified(secret, {**headers, "webhook-timestamp": "1614265331"}, body)


def test_the_webhook_part_shows_a_delivery_whose_signature_fits() -> None:
    # Given a hub in real time, when the part about webhooks is shown with it, twice
    said: list[str] = []
    with LiveWorld() as hub:
        stack = SimpleNamespace(base_url=hub.base_url, token=hub.make_token())
        for _ in range(2):
            asyncio.run(webhook_flow.run(stack, said.append))  # type: ignore[arg-type]
    # Then it checked itself what was delivered
    assert not hub.faults
    assert [line.partition(":")[0] for line in said if line.startswith("Checked")] == ["Checked"] * 2
    assert sum("webhook-signature: v1," in line for line in said) == 2


def test_the_webhook_part_waits_until_the_delivery_is_stored() -> None:
    # Given a hub whose list of endpoints is empty at first, as the receiver was faster than its table
    answers: list[list[dict[str, str]]] = [[], [{"statusText": "pending"}], [{"statusText": "success"}]]

    class Hub:
        async def call(self, method: str, path: str) -> dict[str, list[dict[str, str]]]:
            return {"data": answers.pop(0)}

    # When the part waits for the hub's own word
    asyncio.run(webhook_flow.wait_until_stored(Hub(), "msg_1", time.monotonic()))  # type: ignore[arg-type]
    # Then it read on until the delivery was told
    assert not answers
