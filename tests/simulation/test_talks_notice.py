"""Each part of the talks that ask for listings, settings and effects notices answers that are not as documented."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest
from simulation.promises.judgement import Judgement
from simulation.promises.talks import (
    arrivals,
    aws_calls,
    aws_destinations,
    aws_receivers,
    certificate_warnings,
    certificates,
    changes,
    coded,
    conditions,
    consumed,
    deliveries,
    endpoint_health,
    in_force,
    inherited,
    ironmq_effects,
    ironmq_lists,
    ironmq_settings,
    lasting,
    lives,
    operational_events,
    project_alerts,
    queue_acknowledgements,
    queue_answers,
    queue_consumers,
    queue_ends,
    queue_found,
    queue_held,
    queue_looks,
    queue_orders,
    queue_replays,
    queue_rounds,
    queue_signing,
    queue_subscribers,
    queue_turns,
    queue_waiting,
    queued_events,
    rates,
    reader_places,
    redactions,
    replays,
    signing_meanwhile,
    store_choices,
    store_decisions,
    store_effects,
    store_lives,
    store_meanwhile,
    store_notices,
    store_settings,
    store_values,
    stream_meanwhile,
    tasks_meanwhile,
    tenancy,
    token_outages,
    token_owners,
    token_subscribers,
    tokens,
    topic_consumers,
    topic_rules,
    topics,
    topics_meanwhile,
    trace_paths,
    webhook_lives,
    wire_answers,
    wire_connections,
    wire_names,
    written,
)
from simulation.promises.talks.command_line import archive_commands, key_commands, recovery_commands, sender_commands
from simulation.promises.talks.pages import by_pages, chosen
from simulation.promises.talks.talk import OTHER_ANSWER, Surroundings, Talk
from tests.simulation.talked import IRONMQ, STORES, TOPICS, WEBHOOKS, one_higher, talked

Shown = Callable[[str, str], Mapping[str, str]]

SPOKEN: dict[ModuleType, tuple[str, Shown]] = {
    changes: IRONMQ,
    ironmq_lists: IRONMQ,
    ironmq_settings: IRONMQ,
    ironmq_effects: IRONMQ,
    queue_acknowledgements: IRONMQ,
    queue_answers: IRONMQ,
    queue_consumers: IRONMQ,
    queue_ends: IRONMQ,
    queue_looks: IRONMQ,
    queue_orders: IRONMQ,
    queue_replays: IRONMQ,
    queue_rounds: IRONMQ,
    queue_signing: IRONMQ,
    queue_turns: IRONMQ,
    queue_waiting: IRONMQ,
    queue_subscribers: IRONMQ,
    queue_held: IRONMQ,
    queue_found: IRONMQ,
    project_alerts: IRONMQ,
    trace_paths: IRONMQ,
    store_settings: STORES,
    store_effects: STORES,
    store_values: STORES,
    store_meanwhile: STORES,
    store_choices: STORES,
    store_decisions: STORES,
    store_notices: STORES,
    topics: TOPICS,
    deliveries: WEBHOOKS,
    coded: WEBHOOKS,
    conditions: WEBHOOKS,
    operational_events: WEBHOOKS,
    tokens: WEBHOOKS,
    certificates: WEBHOOKS,
    certificate_warnings: WEBHOOKS,
    token_outages: WEBHOOKS,
    endpoint_health: WEBHOOKS,
    token_subscribers: WEBHOOKS,
    token_owners: WEBHOOKS,
    replays: WEBHOOKS,
    tasks_meanwhile: WEBHOOKS,
    lasting: WEBHOOKS,
    in_force: WEBHOOKS,
    redactions: WEBHOOKS,
    inherited: WEBHOOKS,
    aws_receivers: WEBHOOKS,
    aws_calls: WEBHOOKS,
    aws_destinations: WEBHOOKS,
    stream_meanwhile: WEBHOOKS,
    written: WEBHOOKS,
    arrivals: WEBHOOKS,
    wire_answers: IRONMQ,
    wire_connections: IRONMQ,
    wire_names: IRONMQ,
    topics_meanwhile: TOPICS,
    topic_consumers: TOPICS,
    topic_rules: TOPICS,
    consumed: IRONMQ,
    lives: IRONMQ,
    store_lives: STORES,
    webhook_lives: WEBHOOKS,
    queued_events: IRONMQ,
    tenancy: IRONMQ,
    rates: WEBHOOKS,
    reader_places: WEBHOOKS,
    signing_meanwhile: WEBHOOKS,
    archive_commands: IRONMQ,
    recovery_commands: IRONMQ,
    key_commands: IRONMQ,
    sender_commands: WEBHOOKS,
}

ANSWERED_ALONE = {"_asked_otherwise", "_misspelt", "_registered", "_unknown", "_wrongly"}
"""Parts that look at statuses, headers and exit codes alone."""


def parts(module: ModuleType) -> list[Any]:
    """The parts of a talk: what takes a client, and for some somebody who connects, and nothing else."""
    found = vars(module).items()
    return [
        each
        for name, each in found
        if name.startswith("_")
        and name not in ANSWERED_ALONE
        and callable(each)
        and list(getattr(each, "__annotations__", {})) in (["talk", "return"], ["talk", "connect", "return"])
        and each.__annotations__["return"] == "None"
    ]


ALL = [(module, each) for module in SPOKEN for each in parts(module)]


def test_there_are_parts() -> None:
    assert {module: len(parts(module)) for module in SPOKEN} == {
        changes: 6,
        ironmq_lists: 3,
        ironmq_settings: 6,
        ironmq_effects: 9,
        queue_acknowledgements: 4,
        queue_answers: 7,
        queue_consumers: 8,
        queue_ends: 9,
        queue_looks: 6,
        queue_orders: 8,
        queue_replays: 2,
        queue_rounds: 2,
        queue_signing: 8,
        queue_turns: 6,
        queue_waiting: 4,
        queue_held: 7,
        queue_subscribers: 5,
        queue_found: 4,
        project_alerts: 4,
        trace_paths: 6,
        store_settings: 6,
        store_effects: 6,
        store_values: 9,
        store_meanwhile: 13,
        store_choices: 4,
        store_decisions: 5,
        store_notices: 5,
        topics: 13,
        deliveries: 10,
        coded: 6,
        conditions: 5,
        operational_events: 7,
        tokens: 8,
        certificate_warnings: 3,
        token_outages: 4,
        endpoint_health: 3,
        certificates: 4,
        token_subscribers: 3,
        token_owners: 2,
        inherited: 9,
        replays: 4,
        tasks_meanwhile: 5,
        lasting: 2,
        in_force: 3,
        redactions: 3,
        aws_receivers: 8,
        aws_calls: 8,
        aws_destinations: 4,
        stream_meanwhile: 10,
        written: 10,
        arrivals: 6,
        wire_answers: 9,
        wire_connections: 5,
        wire_names: 6,
        topics_meanwhile: 11,
        topic_consumers: 7,
        topic_rules: 9,
        consumed: 5,
        lives: 8,
        store_lives: 3,
        webhook_lives: 1,
        queued_events: 4,
        tenancy: 2,
        rates: 4,
        reader_places: 3,
        signing_meanwhile: 4,
        archive_commands: 3,
        recovery_commands: 1,
        key_commands: 1,
        sender_commands: 4,
    }


@pytest.mark.parametrize(("module", "part"), ALL, ids=[f"{module.__name__}{each.__name__}" for module, each in ALL])
def test_numbers_that_are_one_higher_are_noticed(module: ModuleType, part: Any) -> None:
    # Given a hub whose answers have each number one higher, and lack the last item of each list
    connects = "connect" in part.__annotations__
    # When a part is talked through, then it has something to say
    assert talked(part, SPOKEN[module], changed=one_higher, connects=connects)


def talk(judgement: Judgement) -> Talk:
    """A client that asks nobody."""
    return Talk(Surroundings(lambda *_: pytest.fail("asked"), lambda _: None, lambda: 0, lambda *_: []), judgement)


@pytest.mark.parametrize(
    ("pages", "kept"),
    [
        ([[1, 2], [3, 4], [5]], True),
        ([[1, 2], [3, 4]], False),
        ([[1, 2], [2, 3], [4, 5]], False),
        ([[1, 2, 3], [4, 5]], False),
        ([[2, 1], [3, 4], [5]], False),
    ],
)
def test_pages_together_are_the_whole(pages: list[list[int]], kept: bool) -> None:
    judgement = Judgement()

    def page(_: int, after: int | None) -> tuple[list[int], int | None]:
        place = after or 0
        return pages[place], place + 1 if place + 1 < len(pages) else None

    by_pages(talk(judgement), "numbers", [1, 2, 3, 4, 5], page, sizes=(2,))
    assert {each.rule for each in judgement.violations} == (set() if kept else {OTHER_ANSWER})


@pytest.mark.parametrize(("shown", "kept"), [([2, 4], True), ([2], False), ([4, 2], False), ([1, 2, 4], False)])
def test_a_filter_shows_what_it_chooses_of_the_whole(shown: list[int], kept: bool) -> None:
    judgement = Judgement()
    chosen(talk(judgement), "even", [1, 2, 3, 4], lambda: shown, lambda each: each % 2 == 0)
    assert (not judgement.violations) == kept


def test_a_filter_that_chooses_all_or_nothing_asks_nothing() -> None:
    for by in (lambda _: True, lambda _: False):
        judgement = Judgement()
        chosen(talk(judgement), "all", [1], lambda by=by: [1] if by(1) else [], by)  # type: ignore[misc]
        assert judgement.violations
