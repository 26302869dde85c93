"""Projects and tokens."""

from __future__ import annotations

import re

import pytest
from tests.fakes import FakeClock, FakeConfigStore

from pushhub.base.errors import NotFound
from pushhub.engine.projects.projects import Projects
from pushhub.engine.projects.tokens import is_allowed, token_hash


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
