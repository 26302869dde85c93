"""CloudEvents of Azure's own client, taken in by the running hub: by a source, and by a queue."""

from __future__ import annotations

import pytest
from tests.stack.judges import judged
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


def test_azures_client_publishes_to_a_source_and_to_a_queue_and_nothing_comes_twice(stack: RunningStack) -> None:
    # Given a project of its own
    project = ProjectClient.another(stack)
    given = {"hub": stack.base_url, "project": project.project_id, "token": project.token, "queue": unique("azure")}
    # When the client publishes the same events twice, to a source's URL and to a queue's
    seen = judged("azure_events.py", given, seconds=240)
    # Then each has them once, under their own types and in their own order
    assert seen["source"] == ["order.new", "order.new", "order.paid"]
    assert seen["queue"] == [["order.new", {"n": 1}], ["order.paid", {"n": 2}], ["order.new", "grüß dich"]]
