"""What the model of pull queues finds, and what it leaves alone, in a few lines of what consumers saw."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulation.promises.judgement import SECOND, Exchange, Judgement, Post
from simulation.promises.pull import Act, Clear, Got, PullQueues, Reserve, Settings

Seen = Post | Reserve | Act | Clear
QUEUES = {"q": Settings(3_600, "dead", 2), "dead": Settings(86_400)}


def exchange(at: int, status: int = 200, *struck: str) -> Exchange:
    return Exchange(at * SECOND, at * SECOND + 50_000, status, struck)


def post(at: int, message_id: str = "1", delay_s: int = 0) -> Post:
    return Post("q", exchange(at, 201), [b"the bytes"], [delay_s], [message_id])


def look(at: int, *got: Got, count: int = 5, queue: str = "q", delete: bool = False) -> Reserve:
    return Reserve(queue, exchange(at), count, 60, delete, got)


def got(reserved: int = 1, message_id: str = "1") -> Got:
    return Got(message_id, b"the bytes", reserved, f"r{reserved}")


def judged(*seen: Seen) -> Judgement:
    model = PullQueues(QUEUES, clocks_s=0, ends=10_000 * SECOND)
    return model.judge(
        [each for each in seen if isinstance(each, Post)],
        [each for each in seen if isinstance(each, Reserve)],
        [each for each in seen if isinstance(each, Act)],
        [each for each in seen if isinstance(each, Clear)],
    )


def rules(*seen: Seen) -> list[str]:
    return [each.rule for each in judged(*seen).violations]


DELETED = Act("delete", "q", exchange(105), "1", "r1")


def test_a_message_that_is_handed_out_and_deleted_breaks_nothing() -> None:
    assert rules(post(0), look(100, got()), DELETED, look(300)) == []


def test_a_message_lives_from_the_end_of_its_delay() -> None:
    assert rules(post(0, delay_s=900), look(1_000), look(4_000, got())) == ["there and not handed out"]
    assert rules(post(0, delay_s=900), look(800), look(4_000, got())) == []
    assert rules(post(0, delay_s=900), look(800), look(4_600, got())) == ["handed out after it expired"]


@pytest.mark.parametrize(
    ("seen", "rule"),
    [
        ([post(0), look(100)], "there and not handed out"),
        ([post(0), look(100, got()), look(300)], "there and not handed out"),
        ([post(0), post(1, "2"), look(100, got(message_id="2"), count=1)], "there and not handed out"),
        ([post(0), look(100, replace(got(), body=b"the byte"))], "other bytes than were posted"),
        ([post(0, delay_s=300), look(100, got())], "handed out too early"),
        ([post(0), look(100, got()), look(130, got(2))], "reserved by two"),
        ([post(0), look(100, got(2))], "reserved_count"),
        ([post(0), look(100, got()), look(200, got())], "reserved_count"),
        ([post(0), look(4_000, got())], "handed out after it expired"),
        ([post(0), look(100, got()), DELETED, look(300, got(2))], "handed out after it was deleted"),
        ([post(0), Clear("q", exchange(50)), look(100, got())], "handed out after it was cleared"),
        ([post(0), look(100, got()), replace(DELETED, exchange=exchange(105, 403))], "refused although reserved"),
        ([post(0), look(100, got()), replace(DELETED, exchange=exchange(170))], "a reservation that was over counts"),
        ([post(0), look(100, got()), look(200, got(2)), look(300, got(3))], "handed out too often"),
        ([post(0), look(100, got()), look(200, got(2), queue="dead")], "a dead letter too early"),
        (
            [post(0), look(100, got()), look(200, got(2)), look(300), look(400, queue="dead")],
            "a dead letter is missing",
        ),
        ([look(100, got())], "handed out and never posted"),
        ([post(0), post(1), look(100, got())], "an identifier twice"),
    ],
)
def test_a_promise_that_is_not_kept_is_told(seen: list[Seen], rule: str) -> None:
    assert rule in rules(*seen)


def test_a_dead_letter_in_its_time_breaks_nothing() -> None:
    # Given a message that was reserved as often as its queue allows, and moved to the dead letters by the next look
    seen: list[Seen] = [
        post(0),
        look(100, got()),
        look(200, got(2)),
        look(300),
        look(400, got(3), queue="dead", delete=True),
    ]
    assert rules(*seen) == []


def test_only_a_fault_of_the_plan_excuses() -> None:
    # Given a message that a consumer's request, which failed, may have reserved: nobody gets it for a minute
    failed = replace(look(100), exchange=exchange(100, 500, "crash"))
    deleted = replace(DELETED, exchange=exchange(305), reservation_id="r2")
    seen: list[Seen] = [post(0), failed, look(130), look(300, got(2)), deleted]
    excused = judged(*seen)
    # Then that is excused, and counted by the kind of the fault; that it reserved one message is known, and no more
    assert excused.violations == []
    assert excused.excused == {"there and not handed out, for crash": 1}
    none = [replace(each, count=0) if each is failed else each for each in seen]
    assert judged(*none).excused == {"there and not handed out, for crash": 1, "reserved_count, for crash": 1}
    # And is not when nothing was done to that request
    unharmed: list[Seen] = [replace(failed, exchange=exchange(100, 500)) if each is failed else each for each in seen]
    assert {each.rule for each in judged(*unharmed).violations} == {"there and not handed out", "reserved_count"}


def test_a_run_that_excuses_too_much_fails() -> None:
    # Given two facts in a hundred that only faults explain
    judgement = Judgement()
    for number in range(98):
        judgement.fact(True, "a rule", str(number), "")
    assert judgement.total() == []
    for number in range(2):
        judgement.fact(False, "a rule", str(number), "", [exchange(number, 0, "lost")])
    # Then that is told
    assert [each.rule for each in judgement.total()] == ["too much is excused"]
    # And not where others judged so much in the same run that it is less than one
    others = Judgement(most_excused=0)
    others.judged = 1_000
    assert judgement.total(beside=others) == []
    # Whose own excuses count, too
    others.excused.update({"another rule, for lost": 20})
    assert [each.rule for each in judgement.total(beside=others)] == ["too much is excused"]
