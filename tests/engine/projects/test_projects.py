"""Projects and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.fakes import FakeClock, FakeConfigStore

from pushhub.base.errors import Conflict, NotFound
from pushhub.base.signature_schemes import PRESETS
from pushhub.engine.model.project import Project, ProjectToken
from pushhub.engine.model.quota import Quota
from pushhub.engine.model.trace import Traces
from pushhub.engine.ports import PROJECT_MS
from pushhub.engine.projects.projects import Projects
from pushhub.engine.projects.tokens import is_allowed, token_hash

PROJECT = "5f0000000000000000000001"


class Meanwhile(FakeConfigStore):
    """Somebody else comes between a read and what is written after it, each once."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.others: list[Callable[[], object]] = []

    def project(self, project_id: str, *, within_ms: int = PROJECT_MS) -> Project | None:
        found = super().project(project_id, within_ms=within_ms)
        if within_ms == 0:
            self._meanwhile()
        return found

    def tokens(self, project_id: str) -> list[ProjectToken]:
        found = super().tokens(project_id)
        self._meanwhile()
        return found

    def remove_project(self) -> None:
        self._projects.clear()

    def _meanwhile(self) -> None:
        if self.others:
            self.others.pop()()


def meanwhile() -> tuple[Projects, Meanwhile, Project]:
    clock = FakeClock()
    config = Meanwhile(clock)
    project = Project(project_id=PROJECT, name="old", created_at=clock.now())
    config.put_project(project)
    return Projects(config=config, clock=clock), config, project


CHANGES: dict[str, Callable[[Projects], Project]] = {
    "rename": lambda projects: projects.rename(PROJECT, "new"),
    "allow": lambda projects: projects.allow(PROJECT, ["10.0.0.1"]),
    "limit": lambda projects: projects.limit(PROJECT, Quota.of(5)),
    "trace": lambda projects: projects.trace(PROJECT, Traces.ALL),
    "suspend": lambda projects: projects.suspend(PROJECT),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("other", CHANGES.values(), ids=CHANGES)
def test_changes_of_a_project_that_cross_are_both_made(
    change: Callable[[Projects], Project], other: Callable[[Projects], Project]
) -> None:
    # Given a project that somebody changes, and its owner signs differently, while it is being changed
    projects, config, project = meanwhile()
    signatures = (PRESETS["stripe"],)
    config.others = [lambda: other(projects), lambda: config.sign_project(PROJECT, signatures)]
    # When it is changed
    after = change(projects)
    # Then everything is as it would be one after the other
    assert not config.others
    beside, there, _ = meanwhile()
    other(beside)
    change(beside)
    assert after == config.project(PROJECT) == replace(there.project(PROJECT) or project, signatures=signatures)


def test_a_project_that_begins_to_be_erased_is_not_resumed() -> None:
    # Given a suspended project whose erasure begins while it is being resumed
    projects, config, _ = meanwhile()
    projects.suspend(PROJECT)
    config.others = [lambda: projects.begin_erasure(PROJECT)]
    with pytest.raises(Conflict):
        projects.resume(PROJECT)
    found = config.project(PROJECT)
    assert found is not None
    assert found.suspended
    assert found.erased_since is not None


def test_a_project_that_is_resumed_while_its_erasure_begins_is_suspended() -> None:
    projects, config, _ = meanwhile()
    projects.suspend(PROJECT)
    config.others = [lambda: projects.resume(PROJECT)]
    found = projects.begin_erasure(PROJECT)
    assert found == config.project(PROJECT)
    assert found.suspended
    assert found.erased_since is not None


def test_a_token_that_is_revoked_while_it_is_rotated_stays_revoked() -> None:
    # Given a token that somebody revokes while it is being rotated
    projects, config, _ = meanwhile()
    old = projects.make_token(PROJECT, "leaked")
    old_id = token_hash(old)[:12]
    config.others = [lambda: projects.revoke_token(PROJECT, old_id)]
    # When it is rotated
    new = projects.rotate_token(PROJECT, old_id, overlap_ms=3_600_000)
    # Then only the new one acts
    assert not is_allowed(config, PROJECT, old)
    assert is_allowed(config, PROJECT, new)
    assert len(config.tokens(PROJECT)) == 1


def test_of_two_rotations_that_cross_the_old_token_ends_with_the_sooner() -> None:
    projects, config, _ = meanwhile()
    old = projects.make_token(PROJECT)
    old_id = token_hash(old)[:12]
    config.others = [lambda: projects.rotate_token(PROJECT, old_id, overlap_ms=0)]
    projects.rotate_token(PROJECT, old_id, overlap_ms=3_600_000)
    assert not is_allowed(config, PROJECT, old)
    assert len(config.tokens(PROJECT)) == 3


def test_a_project_that_is_gone_does_not_come_back_by_a_change() -> None:
    projects, config, _ = meanwhile()
    config.others = [config.remove_project]
    with pytest.raises(NotFound):
        projects.rename(PROJECT, "new")
    assert config.project(PROJECT) is None


def test_a_project_and_its_tokens() -> None:
    # Given a project created by command
    config, clock = FakeConfigStore(), FakeClock()
    projects = Projects(config=config, clock=clock)
    project = projects.make("mine", allowed_targets=["10.0.0.0/8"])
    assert re.fullmatch(r"[0-9a-f]{24}", project.project_id)
    assert config.project(project.project_id) == project
    assert (project.name, project.allowed_targets, project.created_at) == ("mine", ("10.0.0.0/8",), clock.now())
    # When it gets two tokens
    one, two = projects.make_token(project.project_id, "ci"), projects.make_token(project.project_id)
    # Then both act for it, and for no other project
    assert one != two
    assert min(len(one), len(two)) >= 32
    assert is_allowed(config, project.project_id, one)
    assert is_allowed(config, project.project_id, two)
    assert not is_allowed(config, projects.make().project_id, one)
    # And only their hashes are kept
    assert config.has_token(project.project_id, token_hash(one))
    assert not config.has_token(project.project_id, one)
    # And one can be revoked without the other
    projects.revoke_token(project.project_id, token_hash(one)[:12])
    assert not is_allowed(config, project.project_id, one)
    assert is_allowed(config, project.project_id, two)


def test_there_are_no_tokens_for_unknown_projects() -> None:
    with pytest.raises(NotFound):
        Projects(config=FakeConfigStore(), clock=FakeClock()).make_token("5f0000000000000000000001")


def test_an_empty_token_is_never_one() -> None:
    config = FakeConfigStore()
    config.put_token("p", token_hash(""), "", 0)
    assert not is_allowed(config, "p", "")
