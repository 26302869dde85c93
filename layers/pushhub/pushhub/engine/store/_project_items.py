"""Projects as items of the configuration table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.table import Item, number, numbers, text, texts
from pushhub.cloud.unreadable import decodes
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.engine.model.span_export import SpanExport
from pushhub.engine.model.trace import Traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.signature_schemes import Scheme


OPTIONAL = ("quota", "quota_burst", "suspended_at", "erased_since", "traces", "signs", "external")
"""Attributes that not every project has."""


def encode_project(project: Project) -> Item:
    """All attributes of a project except its keys."""
    quota = project.quota
    own = {} if quota is None else {"quota": number(quota.per_second), "quota_burst": number(quota.burst)}
    for name, at in (("suspended_at", project.suspended_at), ("erased_since", project.erased_since)):
        if at is not None:
            own[name] = number(at)
    if project.traces is not Traces.OWN:
        own["traces"] = text(project.traces.value)
    if project.signatures:
        own["signs"] = encode_schemes(project.signatures)
    if project.external_secret:
        own["external"] = text(project.external_secret)
    return own | {
        "name": text(project.name),
        "created_at": number(project.created_at),
        "allowed_targets": texts(project.allowed_targets),
    }


@decodes
def decode_project(item: Item, project_id: str) -> Project:
    """The project from its item."""
    return Project(
        project_id=project_id,
        name=item["name"]["S"],
        created_at=int(item["created_at"]["N"]),
        allowed_targets=tuple(each["S"] for each in item["allowed_targets"]["L"]),
        quota=_quota(item),
        suspended_at=numbers(item, "suspended_at"),
        erased_since=numbers(item, "erased_since"),
        traces=Traces(item["traces"]["S"]) if "traces" in item else Traces.OWN,
        signatures=_schemes(item["signs"]["S"]) if "signs" in item else (),
        external_secret=item["external"]["S"] if "external" in item else "",
    )


def encode_span_export(export: SpanExport) -> Item:
    """All attributes of where a project exports spans to, except its keys."""
    sealed: Item = {"credentials": {"B": export.credentials}} if export.credentials else {}
    headers = {name: text(value) for name, value in export.headers.items()}
    return {"url": text(export.url), "headers": {"M": headers}, "on": {"BOOL": export.on}} | sealed


@decodes
def decode_span_export(item: Item, project_id: str) -> SpanExport:
    """Where a project exports spans to, from its item."""
    return SpanExport(
        project=project_id,
        url=item["url"]["S"],
        headers={name: each["S"] for name, each in item["headers"]["M"].items()},
        credentials=bytes(item["credentials"]["B"]) if "credentials" in item else b"",
        on=item["on"]["BOOL"],
    )


def encode_schemes(schemes: Sequence[Scheme]) -> dict[str, str]:
    """The attribute ``signs``."""
    return text(json_text.write([each.encode() for each in schemes]))


def _schemes(stored: str) -> tuple[Scheme, ...]:
    from pushhub.base.signature_schemes import Scheme  # noqa: PLC0415 (few projects have any)

    return tuple(map(Scheme.decode, json_text.stored(stored)))


def _quota(item: Item) -> Quota | None:
    if "quota" not in item:
        return None
    return Quota(per_second=int(item["quota"]["N"]), burst=int(item["quota_burst"]["N"]))
