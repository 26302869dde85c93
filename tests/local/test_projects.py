"""Projects made on this machine are known to the stack again when it has lost everything."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from local.aws import Aws
from tests.cloud.aws_services import CONFIG_TABLE, dynamodb

from local import projects
from pushhub.cloud.clock import SystemClock
from pushhub.engine.projects.tokens import is_allowed
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore


def through(client: Any) -> Aws:
    return cast(Aws, SimpleNamespace(dynamodb=lambda: client))


def test_projects_are_made_again_with_their_tokens_when_everything_was_lost(tmp_path: Path) -> None:
    # Given a project that was made here, with its token
    file = tmp_path / "projects.json"
    with dynamodb() as client:
        project = projects.make(through(client), CONFIG_TABLE, "shop", file)
    # When the stack has lost everything, and is brought up twice
    with dynamodb() as client:
        for _ in range(2):
            projects.restore(through(client), CONFIG_TABLE, file)
        # Then it is there once, under its name, and the old token works
        store = DynamoDBConfigStore(client, CONFIG_TABLE, SystemClock())
        assert [(each.project_id, each.name) for each in store.projects()] == [(project.project_id, "shop")]
        assert is_allowed(store, project.project_id, project.token)
        assert not is_allowed(store, project.project_id, "another")
