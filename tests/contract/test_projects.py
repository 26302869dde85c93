"""What every store of projects and tokens does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.cloud import aws_services as aws
from tests.contract.samples import NOW, OTHER_PROJECT, PROJECT
from tests.fakes import FakeClock

from pushhub.base.errors import Conflict, NotFound
from pushhub.base.signature_schemes import PRESETS
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Mark, Quota
from pushhub.engine.model.span_export import SpanExport
from pushhub.engine.ports import ProjectDirectory
from pushhub.engine.projects.copies import PROJECT as COPIED
from pushhub.engine.projects.copies import ChangeNotes, Changes, CopiedProjects
from pushhub.engine.projects.ports import QuotaStore
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.stores import ConfigStore


def test_a_project_is_found_again_and_replaced(config_store: ProjectDirectory) -> None:
    # Given a stored project
    project = Project(project_id=PROJECT, name="Café", created_at=NOW, allowed_targets=("10.0.0.0/8", "intern"))
    config_store.put_project(project)
    # Then it is found, and no other project
    assert config_store.project(PROJECT) == project
    assert config_store.project(OTHER_PROJECT) is None
    # When it is stored again with another name, then that is what is found
    renamed = replace(project, name="Tea")
    config_store.put_project(renamed)
    assert config_store.project(PROJECT) == renamed


def test_where_a_project_exports_spans_to_is_found_replaced_and_removed(config_store: ConfigStore) -> None:
    # Given a project that exports nothing
    assert config_store.span_export(PROJECT) is None
    # When it sets something, it is there at once, and no other project's
    export = SpanExport(
        project=PROJECT, url="https://otel.example/v1/traces", headers={"X-Key": "********"}, credentials=b"\0sealed"
    )
    config_store.put_span_export(export)
    for fresh in (False, True):
        assert config_store.span_export(PROJECT, fresh=fresh) == export
        assert config_store.span_export(OTHER_PROJECT, fresh=fresh) is None
    # And it can be replaced, and removed (twice)
    off = replace(export, on=False, headers={}, credentials=b"")
    config_store.put_span_export(off)
    assert config_store.span_export(PROJECT) == off
    config_store.remove_span_export(PROJECT)
    config_store.remove_span_export(PROJECT)
    assert config_store.span_export(PROJECT) is None


def test_the_schemes_of_a_project_are_changed_and_nothing_else_of_it(config_store: ProjectDirectory) -> None:
    # Given a project that was changed since it was read
    project = Project(project_id=PROJECT, name="Café", created_at=NOW)
    config_store.put_project(project)
    config_store.put_project(replace(project, suspended_at=NOW))
    # When its schemes are set
    schemes = (replace(PRESETS["stripe"], ends_at=NOW), PRESETS["standard-webhooks"])
    config_store.sign_project(PROJECT, schemes)
    # Then they are found, and the change is, too
    assert config_store.project(PROJECT) == replace(project, suspended_at=NOW, signatures=schemes)
    # And they stay with the project when it is stored again
    found = config_store.project(PROJECT, within_ms=0)
    assert found is not None
    config_store.put_project(replace(found, name="Tea"))
    assert config_store.project(PROJECT, within_ms=0) == replace(found, name="Tea")
    # When they are removed, or belong to nobody
    config_store.sign_project(PROJECT, ())
    assert config_store.project(PROJECT) == replace(found, name="Tea", signatures=())
    with pytest.raises(Conflict):
        config_store.sign_project(OTHER_PROJECT, schemes)
    assert config_store.project(OTHER_PROJECT) is None


def test_a_project_is_changed_and_nothing_that_others_change_meanwhile(config_store: ProjectDirectory) -> None:
    # Given a project
    project = Project(project_id=PROJECT, name="Café", created_at=NOW, external_secret="s3cret")
    schemes = (PRESETS["stripe"],)
    others: list[Callable[[], object]] = [
        lambda: config_store.sign_project(PROJECT, schemes),
        lambda: config_store.change_project(PROJECT, lambda stored: replace(stored, suspended_at=NOW)),
        lambda: config_store.change_project(PROJECT, lambda stored: replace(stored, name="Milk", quota=Quota.of(5))),
        lambda: config_store.change_project(PROJECT, lambda stored: replace(stored, suspended_at=None)),
    ]
    config_store.put_project(project)
    rounds = []

    def renamed(stored: Project) -> Project:
        rounds.append(stored)
        if others:
            others.pop(0)()
        return replace(stored, name="Tea")

    # When it is changed while others change it
    changed = config_store.change_project(PROJECT, renamed)
    # Then it is decided again each time, and nothing of the others' is lost
    assert changed == replace(project, name="Tea", signatures=schemes, quota=Quota.of(5))
    assert config_store.project(PROJECT) == config_store.project(PROJECT, within_ms=0) == changed
    assert len(rounds) == 5
    # When nothing changes, or what the change raises
    assert config_store.change_project(PROJECT, lambda stored: stored) == changed
    with pytest.raises(ZeroDivisionError):
        config_store.change_project(PROJECT, lambda stored: replace(stored, created_at=1 // 0))
    # Then it is as it was, and what is not there is not made
    assert config_store.project(PROJECT, within_ms=0) == changed
    with pytest.raises(NotFound):
        config_store.change_project(OTHER_PROJECT, renamed)
    assert config_store.project(OTHER_PROJECT) is None


def test_a_token_ends_no_later_and_does_not_come_back(config_store: ProjectDirectory) -> None:
    # Given tokens without an end, with a sooner and a later one, and one that was revoked
    for token_hash, expires_at in (("ab" * 32, None), ("cd" * 32, NOW + 1), ("ef" * 32, NOW + 9)):
        config_store.put_token(PROJECT, token_hash, "laptop", NOW, expires_at=expires_at)
    config_store.put_token(PROJECT, "0f" * 32, "", NOW)
    tokens = config_store.tokens(PROJECT)
    config_store.remove_token(PROJECT, "0f" * 32)
    # When all are to end at a time, even twice
    for token in [*tokens, *tokens]:
        assert config_store.has_token(PROJECT, token.token_hash) == (token.token_hash != "0f" * 32)
        config_store.end_token(PROJECT, token, NOW + 5)
    # Then each ends no later than that, and what was revoked stays so
    assert [(each.label, each.expires_at) for each in config_store.tokens(PROJECT)] == [
        ("laptop", NOW + 5),
        ("laptop", NOW + 1),
        ("laptop", NOW + 5),
    ]
    assert not config_store.has_token(PROJECT, "0f" * 32)


def test_an_environment_that_makes_attempts_knows_new_schemes_within_a_second(clock: FakeClock) -> None:
    with aws.dynamodb() as client:
        # Given an environment that has made attempts for a project, and another that changes it
        here, there = (DynamoDBConfigStore(client, aws.CONFIG_TABLE, clock) for _ in range(2))
        here.put_project(Project(project_id=PROJECT, created_at=NOW))
        attempts = CopiedProjects(there, there, Changes(there, clock), clock)
        assert not attempts.is_suspended(PROJECT, since=clock.now() - 1)
        # When its schemes are set
        ChangeNotes(here, clock).note(PROJECT, COPIED)
        here.sign_project(PROJECT, (PRESETS["stripe"],))
        clock.advance(ms=1_000)
        # Then an attempt that asks, as each does, whether the project is suspended, goes by them
        attempts.is_suspended(PROJECT, since=clock.now() - 500)
        project = there.project(PROJECT)
        assert project is not None
        assert project.signatures == (PRESETS["stripe"],)


def test_a_token_acts_for_its_own_project_until_it_is_removed(config_store: ProjectDirectory) -> None:
    # Given a token of one project
    token_hash = "ab" * 32
    config_store.put_token(PROJECT, token_hash, "laptop", NOW)
    # Then it acts for that project only, and other tokens do not
    assert config_store.has_token(PROJECT, token_hash)
    assert not config_store.has_token(OTHER_PROJECT, token_hash)
    assert not config_store.has_token(PROJECT, "cd" * 32)
    # When it is removed (twice), then it no longer acts
    config_store.remove_token(PROJECT, token_hash)
    config_store.remove_token(PROJECT, token_hash)
    assert not config_store.has_token(PROJECT, token_hash)


def test_a_token_that_expired_does_not_act(config_store: ProjectDirectory) -> None:
    # Given tokens that expire now, a second later, and never
    for token_hash, expires_at in (("ab" * 32, NOW), ("cd" * 32, NOW + 1_000), ("ef" * 32, None)):
        config_store.put_token(PROJECT, token_hash, "", NOW, expires_at=expires_at)
    # Then only the others act, and all are listed
    assert [config_store.has_token(PROJECT, each * 32) for each in ("ab", "cd", "ef")] == [False, True, True]
    assert config_store.project_of("ab" * 32) is None
    assert [each.expires_at for each in config_store.tokens(PROJECT)] == [NOW, NOW + 1_000, None]


def test_tokens_are_listed_by_age_for_their_own_project(config_store: ProjectDirectory) -> None:
    config_store.put_token(PROJECT, "cd" * 32, "new", NOW + 1)
    config_store.put_token(PROJECT, "ef" * 32, "old", NOW)
    config_store.put_token(OTHER_PROJECT, "ab" * 32, "other", NOW)
    assert [(each.token_id, each.label) for each in config_store.tokens(PROJECT)] == [
        ("ef" * 6, "old"),
        ("cd" * 6, "new"),
    ]


def test_projects_are_listed_by_age(config_store: ProjectDirectory) -> None:
    for project_id, created_at in ((PROJECT, NOW + 1), (OTHER_PROJECT, NOW)):
        config_store.put_project(Project(project_id=project_id, created_at=created_at))
    config_store.put_token(PROJECT, "ab" * 32, "", NOW)
    assert [each.project_id for each in config_store.projects()] == [OTHER_PROJECT, PROJECT]


def test_a_token_tells_its_project(config_store: ProjectDirectory) -> None:
    config_store.put_token(PROJECT, "ab" * 32, "laptop", NOW)
    assert config_store.project_of("ab" * 32) == PROJECT
    assert config_store.project_of("cd" * 32) is None
    config_store.remove_token(PROJECT, "ab" * 32)
    assert config_store.project_of("ab" * 32) is None


def test_a_project_keeps_its_quota(config_store: ProjectDirectory) -> None:
    # Given projects with a quota, without a limit, and without a setting
    project = Project(project_id=PROJECT, created_at=NOW)
    for quota in (Quota.of(100, 5_000), Quota.of(0), None):
        config_store.put_project(replace(project, quota=quota))
        assert [each.quota for each in config_store.projects()] == [quota]


def test_a_mark_moves_with_what_is_posted_and_no_further_than_it_may(config_store: QuotaStore) -> None:
    def moved(by_us: int, now: int, *, ahead: bool, project: str = PROJECT) -> Mark:
        return config_store.move_mark(project, by_us, now=now, most_us=100, ahead=ahead)

    # Given an unused quota, then the mark begins now, whatever was guessed
    now = NOW * 1000
    for ahead, project in ((True, PROJECT), (False, OTHER_PROJECT)):
        assert moved(40, now, ahead=ahead, project=project) == Mark(until=now + 40, moved=True)
    # When more is taken, then the mark moves on from where it is, up to the limit
    assert moved(40, now, ahead=True) == Mark(until=now + 80, moved=True)
    assert moved(21, now, ahead=True) == Mark(until=now + 80, moved=False)
    assert moved(21, now, ahead=False) == Mark(until=now + 80, moved=False)
    assert moved(20, now, ahead=False) == Mark(until=now + 100, moved=True)
    # When time passes, then there is room again, and a mark in the past begins anew
    assert moved(30, now + 30, ahead=True) == Mark(until=now + 130, moved=True)
    assert moved(100, now + 130, ahead=True) == Mark(until=now + 230, moved=True)
    assert moved(1, now + 500, ahead=False) == Mark(until=now + 501, moved=True)
