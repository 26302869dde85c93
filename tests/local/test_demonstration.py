"""The demonstration checks its own claims, on messages as they occur in the world."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp.test_utils import make_mocked_request
from local.demo import demonstration
from local.demo.demonstration import MANNERS, RETRIES, Subscribers, check, table, verified
from local.errors import LocalError
from tests.webhooks.live import LiveWorld

POSTED = {"1": "one", "2": "zwölf"}
Bodies = dict[tuple[str, str], str]


def shown() -> tuple[Subscribers, Bodies]:
    """A demonstration of two messages in which everything went well: what arrived, and what is in the error queue."""
    accepted = {(name, each): body for name in MANNERS if name != "dead" for each, body in POSTED.items()}
    subscribers = Subscribers(tries=Counter(healthy=2, flaky=3, later=2), accepted=accepted)
    return subscribers, {("dead", each): body for each, body in POSTED.items()}


def problems(subscribers: Subscribers, given_up: Bodies, dead_tries: int = RETRIES + 1) -> list[str]:
    return check(POSTED, subscribers, given_up, dead_tries=dead_tries)


def test_when_all_is_well_there_is_nothing_to_complain_about() -> None:
    # Given all went well, when it is checked, then nothing is found
    assert problems(*shown()) == []


def test_a_changed_or_missing_body_is_found() -> None:
    # Given a changed body, one that the healthy subscriber lacks, and another body in the error queue
    subscribers, given_up = shown()
    subscribers.accepted["flaky", "2"] = "zwolf"
    del subscribers.accepted["healthy", "1"]
    given_up["dead", "1"] = "zwölf"
    # When it is checked, then all three are found
    assert sorted(problems(subscribers, given_up)) == [
        "1 for dead holds another body",
        "2 for flaky holds another body",
        "healthy lacks 1",
    ]


def test_a_wrong_error_queue_is_found() -> None:
    # Given an error queue without one of the messages, and a dead subscriber tried too seldom
    subscribers, given_up = shown()
    del given_up["dead", "2"]
    # When it is checked, then both are found
    assert problems(subscribers, given_up, 2) == ["the error queue lacks 2 for dead", "dead was tried 2 times"]


def test_a_message_that_could_not_be_acknowledged_in_time_may_be_in_the_error_queue() -> None:
    # Given a message that a subscriber lacks, and that is in the error queue
    subscribers, given_up = shown()
    given_up["later", "1"] = subscribers.accepted.pop(("later", "1"))
    # When it is checked, then that is as it should be, and the table tells it
    assert problems(subscribers, given_up) == []
    cells = {
        line.split()[0]: line.split("  ")[-1].strip() for line in table(POSTED, subscribers, given_up).split("\n")[3:-1]
    }
    assert cells == {"healthy": "0", "flaky": "0", "later": "1", "dead": "2"}


def test_what_a_failed_post_had_stored_all_the_same_is_no_fault() -> None:
    # Given a post that was made again, and a message of the first one that arrived as well
    subscribers, given_up = shown()
    subscribers.accepted["healthy", "3"] = given_up["dead", "3"] = "one"
    # When it is checked, then that is no fault, unless it is something that nobody posted
    assert problems(subscribers, given_up) == []
    subscribers.accepted["healthy", "3"] = "another"
    assert problems(subscribers, given_up) == ["3 for healthy holds another body"]


def test_the_flaky_subscriber_refuses_each_third_message_once() -> None:
    # Given the subscribers
    subscribers = Subscribers()

    async def push(number: int) -> int:
        request = make_mocked_request(
            "POST", "/flaky", headers={"Iron-Message-Id": str(number)}, match_info={"name": "flaky"}
        )
        request._read_bytes = b"body"
        return (await subscribers.take(request)).status

    async def play() -> list[int]:
        return [await push(number) for number in (1, 2, 3, 3)]

    # When three messages are pushed to the flaky one, then the third comes twice
    assert asyncio.run(play()) == [200, 200, 503, 200]
    assert len(subscribers.accepted) == 3


def test_the_messages_are_many_of_several_kinds_and_sizes_and_not_only_ascii() -> None:
    # Given the messages that are posted, when they are counted
    lines = [json.loads(line) for line in demonstration.MESSAGES.read_text(encoding="utf-8").strip("\n").split("\n")]
    sizes = [len(line["body"].encode()) for line in lines]
    # Then there is some of everything
    assert len(lines) >= 100
    assert len({line["kind"] for line in lines}) >= 8
    assert min(sizes) == 0
    assert sum(10_000 <= size <= 120_000 for size in sizes) >= 4
    assert sum(not line["body"].isascii() for line in lines) >= 50
    assert [line["body"] for line in lines] == demonstration.load()


@pytest.mark.parametrize("content", ["", "{}", '{"body": 1', "[]"])
def test_messages_that_cannot_be_read_are_one_line(tmp_path: Path, content: str) -> None:
    # Given a damaged file, when it is read, then the message names it
    path = tmp_path / "messages.jsonl"
    path.write_text(content)
    with pytest.raises(LocalError, match=r"messages cannot be read: .*messages\.jsonl"):
        demonstration.load(path)


def test_the_published_signature_is_verified_and_no_other() -> None:
    # Given the vector of Svix's documentation
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    # When it is verified, then it fits, and fits nothing else
    assert verified(secret, headers, body)
    assert not verified(secret, headers, body + b" ")
    assert not verified(secret, {**headers, "webhook-timestamp": "1614265331"}, body)


def test_the_webhook_part_shows_a_delivery_whose_signature_fits() -> None:
    # Given a hub in real time, when the part about webhooks is shown with it, twice
    said: list[str] = []
    with LiveWorld() as hub:
        stack = SimpleNamespace(base_url=hub.base_url, token=hub.make_token())
        for _ in range(2):
            asyncio.run(demonstration.show_webhook(stack, said.append))  # type: ignore[arg-type]
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

    async def play() -> list[bool]:
        return [await demonstration._delivered(Hub(), "msg_1") for _ in range(3)]  # type: ignore[arg-type]

    # When it is asked, then the delivery is told when the hub tells it
    assert asyncio.run(play()) == [False, False, True]
