"""Svix's own client of today, unmodified, against the running stack: the checks of the protocol's list that depend on
more than the API. (All of the list, with each client, on fakes: test_svix_clients.py; deliveries: tests/paths.)
"""

from __future__ import annotations

import pytest
from tests.stack.running import RunningStack
from tests.stack.webhooks import clients

pytestmark = [pytest.mark.stack, pytest.mark.slow]

CHECKS = (
    # Requests that meet each other in the tables
    *("check_04_one_of_five_", "check_19_two_", "check_31_", "check_37_"),
    # What goes through every function: bytes, retries, replays, streams, operational events, sources
    *("check_30_", "check_32_", "check_34_only_", "check_38_", "check_44_operational_events_", "check_52_"),
    "check_53_a_source_",
    *clients.ONLY_ON_A_STACK,
)


def test_what_depends_on_the_stack_passes_on_it(stack: RunningStack) -> None:
    # Given two projects
    tokens = [stack.make_project().token for _ in range(2)]
    # When these checks of tests/stack/webhooks/judge are made through the client
    failed = clients.judged_by_python(2, stack.base_url, tokens, *CHECKS)
    # Then none failed
    assert all(any(name.startswith(each) for name in failed) for each in CHECKS)
    wrong = [why for why in failed.values() if why]
    assert not wrong, "\n".join(wrong)


def test_what_one_portal_asks_delays_no_other_project(stack: RunningStack) -> None:
    # Given a project whose portal has many endpoints asked that do not answer, and another project
    tokens = [stack.make_project().token for _ in range(2)]
    # When the other one works, then it waits for none of them
    failed = clients.judged_by_python(2, stack.base_url, tokens, "stack_")
    assert len(failed) == 1
    assert not any(failed.values()), "\n".join(failed.values())
