"""Counts what the tests try in order to get in, or to break something, by area: ``python -m tests.probes``.

A test counts as one probe, or, if it tries more, as what it tried while it ran: the examples that Hypothesis made, and
the requests whose answers were compared with the described schema. Tests on a running stack are only listed here, not
run, so each case of theirs counts once.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from local.place import REPOSITORY

AREAS = {
    "requests: every value, query, name and body of every route": ("tests/exhaustive/test_shapes.py",),
    "who is admitted, and what each caller reaches": (
        "tests/web/test_callers.py",
        "tests/web/test_strangers.py",
        "tests/engine/model/test_reach.py",
        "tests/webhooks/test_reach.py",
        "tests/webhooks/applications/test_portal.py",
        "tests/webhooks/applications/test_portal_api.py",
    ),
    "addresses that nothing may be sent to": (
        "tests/egress/test_guard.py",
        "tests/egress/test_guard_properties.py",
        "tests/egress/test_lookup.py",
        "tests/egress/test_sender_guard.py",
    ),
    "endpoints that misbehave": ("tests/egress/test_sender_hostile.py", "tests/egress/test_sender_tls.py"),
    "rules of tenants that cost work": (
        "tests/base/test_steps.py",
        "tests/base/test_nesting.py",
        "tests/webhooks/model",
        "tests/hub/model/test_filters.py",
        "tests/hub/model/test_identifiers.py",
    ),
    "signatures, tokens and keys": (
        "tests/base/test_signing.py",
        "tests/functions/test_credentials.py",
        "tests/dialects",
        "tests/ironmq/test_signing.py",
        "tests/notifications/wire/test_tokens.py",
        "tests/notifications/store/test_secret_keys.py",
    ),
    "roles of functions against the calls they make": (
        "tests/functions/test_policies.py",
        "tests/functions/test_api_policies.py",
    ),
    "the command line against a hub that lies, and its dry runs": (
        "tests/exhaustive/cli/test_hostile_hub.py",
        "tests/cli/test_dry_runs.py",
    ),
}
"""Tests that run without a stack, by area."""
ON_A_STACK = (
    "tests/stack/test_ironmq_hostile.py",
    "tests/stack/test_notifications_hostile.py",
    "tests/stack/test_local_doors.py",
)
"""Tests on a running stack."""
SAYS = re.compile(r"^(\d+) probes in (\d+) tests$", re.MULTILINE)

_tried = 0
_probes: list[int] = []


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*arguments: Any, **named: Any) -> Any:
        global _tried  # noqa: PLW0603 (a plugin of pytest is a module)
        _tried += 1
        return function(*arguments, **named)

    return counted


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count what tests of many probes call for each."""
    seen: set[int] = set()
    for item in session.items:
        module, test = getattr(item, "module", None), getattr(item, "obj", None)
        if module is not None and id(module) not in seen and hasattr(module, "violation"):
            module.violation = _counting(module.violation)
        created = getattr(test, "hypothesis", None)
        if created is not None and id(created) not in seen:
            created.inner_test = _counting(created.inner_test)
        seen |= {id(module), id(created)}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test is at least one probe."""
    before = _tried
    yield
    _probes.append(max(1, _tried - before))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many there were."""
    terminalreporter.write_line(f"{sum(_probes)} probes in {len(_probes)} tests")


def main() -> int:
    """Run the tests of each area and print a table of Markdown."""
    sys.stdout.write("| area | probes | tests |\n|---|---|---|\n")
    failed = False
    for area, paths in AREAS.items():
        words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.probes", "-p", "no:cacheprovider", *paths]
        done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        found = SAYS.search(done.stdout)
        failed |= done.returncode != 0
        probes, tests = map(int, found.groups()) if found else (0, 0)
        sys.stdout.write(f"| {area} | {probes:,} | {tests:,} |{'' if done.returncode == 0 else ' FAILED'}\n")
        sys.stdout.flush()
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", *ON_A_STACK]
    listed = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout
    cases = sum("::" in line for line in listed.splitlines())
    sys.stdout.write(f"| on a running stack (cases) | {cases:,} | {cases:,} |\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
