"""Messages of those who have little in flight are handed out first, and some runs are theirs."""

from __future__ import annotations

from typing import Any

from local.emulator.groups import LEFT_S, MANY, For, in_turn

NOW = 1_000_000.0


def waiting(group: str | None, *, sent: float = NOW, at: float = NOW) -> dict[str, Any]:
    return {"group_id": group, "receive_count": 0, "visible_at": at, "sent_at": sent}


def in_flight(group: str) -> dict[str, Any]:
    return {"group_id": group, "receive_count": 1, "visible_at": NOW + 30, "sent_at": NOW - 30}


def groups(messages: list[dict[str, Any]]) -> list[str | None]:
    return [each["group_id"] for each in messages]


def test_messages_of_the_owner_with_fewest_in_flight_come_first_and_those_of_a_backlog_do_not_share_their_run() -> None:
    # Given a backlog in several groups of one owner, and little of another one
    messages = [*[in_flight(f"busy.{each % 4}") for each in range(MANY + 1)], in_flight("some.0")]
    messages += [waiting("busy.3"), waiting("some.1"), waiting("quiet.0")]
    # Then the owner counts, not the group
    assert groups(in_turn(messages, For.RUN, NOW)) == ["quiet.0", "some.1"]
    # And once there is nothing of a quiet one, the backlog goes on
    assert groups(in_turn(messages[:-1], For.RUN, NOW)) == ["some.1", "busy.3"]


def test_a_spare_run_is_for_owners_with_nothing_in_flight() -> None:
    # Given an owner whose other groups have nothing in flight
    messages = [in_flight("busy.0"), waiting("busy.1"), waiting("quiet.0")]
    assert groups(in_turn(messages, For.SPARE_RUN, NOW)) == ["quiet.0"]
    assert in_turn(messages[:-1], For.SPARE_RUN, NOW) == []


def test_who_asks_for_messages_gets_those_of_quiet_owners_only_when_nobody_else_has_taken_them() -> None:
    messages = [in_flight("busy.0"), waiting("busy.1"), waiting("quiet.0"), waiting(None)]
    assert groups(in_turn(messages, For.CALLER, NOW)) == ["quiet.0", None, "busy.1"][1:]
    assert groups(in_turn(messages, For.CALLER, NOW + LEFT_S)) == ["quiet.0", None, "busy.1"]


def test_what_is_in_flight_or_delayed_is_not_handed_out() -> None:
    messages = [in_flight("one.0"), waiting("one.0", at=NOW + 1)]
    for taken_for in For:
        assert in_turn(messages, taken_for, NOW) == []
