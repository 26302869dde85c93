"""Projects as items of the configuration table."""

from __future__ import annotations

from pushhub.cloud.table import Item, number, text, texts
from pushhub.engine.model.project import Project


def encode_project(project: Project) -> Item:
    """All attributes of a project except its keys."""
    return {
        "name": text(project.name),
        "created_at": number(project.created_at),
        "allowed_targets": texts(project.allowed_targets),
    }


def decode_project(item: Item, project_id: str) -> Project:
    """The project from its item."""
    return Project(
        project_id=project_id,
        name=item["name"]["S"],
        created_at=int(item["created_at"]["N"]),
        allowed_targets=tuple(each["S"] for each in item["allowed_targets"]["L"]),
    )
