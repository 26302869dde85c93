"""External ids: one for each customer, which nobody can guess or choose."""

from __future__ import annotations

from tests.fakes import FakeClock, FakeConfigStore

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.engine.security.external_ids import ExternalIds

APP, OTHER = "webhooks/app_2yZwUhtgs5Ai8T9yRQJXAabcdef", "webhooks/app_2yZwUhtgs5Ai8T9yRQJXAabcdeg"
SOURCE, STREAM = (APP.replace("app_", each) for each in ("src_", "strm_"))
OPERATIONAL = "webhooks/app_" + "0" * 27


def test_a_project_and_each_of_its_applications_have_their_own() -> None:
    # Given two projects
    clock = FakeClock()
    config = FakeConfigStore(clock)
    projects = Projects(config=config, clock=clock)
    first, second = projects.make(), projects.make()
    ids = ExternalIds(projects=config, account="999999999999")
    # Then every customer has an external id that STS takes, and no two the same
    queues = ("", APP, OTHER, SOURCE, STREAM)
    found = [ids.of(each.project_id, queue) for each in (first, second) for queue in queues]
    assert len(set(found)) == 10
    assert all(2 <= len(each) <= 1_224 and each.isalnum() for each in found)
    # And it stays the same; queues of the project and its operational endpoints have the project's
    assert ids.of(first.project_id, APP) == found[1]
    assert {ids.of(first.project_id, each) for each in ("orders", "a/b", OPERATIONAL)} == {found[0]}
    assert ids.principal == "arn:aws:iam::999999999999:root"


def test_nobody_has_one_whose_project_is_not_there_or_has_no_secret() -> None:
    config = FakeConfigStore(FakeClock())
    config.put_project(Project(project_id="p", created_at=0))
    ids = ExternalIds(projects=config, account="999999999999")
    assert (ids.of("p"), ids.of("q")) == ("", "")
