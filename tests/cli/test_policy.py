"""``pushhub policy``: the sentence that the report has about a subscriber."""

from __future__ import annotations

from typing import Any

from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.engine.world import PROJECT

SAID = "Down once in 30 days, longest 4 h; its retries last 1 h 5 min; 2 messages were given up meanwhile."
ROW: dict[str, Any] = {
    **{"project": PROJECT, "queue": "orders", "subscriber_id": "sub1", "subscriber": "shop", "sentence": SAID},
    **{"times_down": 1, "given_up": 2},
}


def reported(hub: ServedHub, *rows: dict[str, Any]) -> None:
    hub.worlds["ironmq"].world.ports.reports.tables["outages"] = [*rows]


def test_a_person_is_told_the_sentence_and_a_program_the_numbers(hub: ServedHub, typed: Typed) -> None:
    # Given last night's report, which has a sentence about a subscriber
    reported(hub, ROW)
    # Then it is told by the subscriber's name and by its id, with the time of the report beside it
    assert typed("policy", "orders", "shop") == typed("policy", "orders", "sub1") == f"{SAID}\n"
    assert "As of 2026-11-22" in typed.errors
    [shown] = typed.json("policy", "orders", "shop")["outages"]
    assert (shown["times_down"], shown["given_up"]) == (1, 2)


def test_what_is_not_known_is_said(hub: ServedHub, typed: Typed) -> None:
    reported(hub, ROW)
    assert "no attempt to it" in typed("policy", "orders", "nobody")
    hub.worlds["ironmq"].world.ports.reports.report = None
    typed("policy", "orders", "shop", code=1)
    assert "no delivery report yet" in typed.errors


def test_a_text_that_would_move_the_cursor_is_made_visible(hub: ServedHub, typed: Typed) -> None:
    reported(hub, {**ROW, "sentence": "\x1b[2J"})
    assert "\x1b" not in typed("policy", "orders", "shop")
