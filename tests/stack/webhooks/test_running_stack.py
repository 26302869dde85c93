"""Svix's own client of today, unmodified, against the running stack: every check of the protocol's list."""

from __future__ import annotations

import pytest
from tests.stack.running import RunningStack
from tests.stack.webhooks import clients

pytestmark = [pytest.mark.stack, pytest.mark.slow]


def test_every_check_passes_on_the_running_stack(stack: RunningStack) -> None:
    # Given two projects
    tokens = [stack.make_project().token for _ in range(2)]
    # When each check of tests/stack/webhooks/judge is made through the client
    failed = clients.judged_by_python(2, stack.base_url, tokens)
    # Then none failed
    assert len(failed) >= 60
    wrong = [why for why in failed.values() if why]
    assert not wrong, "\n".join(wrong)


def test_what_one_portal_asks_delays_no_other_project(stack: RunningStack) -> None:
    # Given a project whose portal has many endpoints asked that do not answer, and another project
    tokens = [stack.make_project().token for _ in range(2)]
    # When the other one works, then it waits for none of them
    failed = clients.judged_by_python(2, stack.base_url, tokens, "stack_")
    assert len(failed) == 1
    assert not any(failed.values()), "\n".join(failed.values())
