"""Where a project exports the spans of its attempts to, as its owner sets it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.credentials import MASK, masked_headers, place_of
from pushhub.base.errors import Invalid
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.ports import ProjectStore, SpanExports
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.security.credentials import still_hidden
from pushhub.ironmq.model.span_export import HOURS, ShownExport
from pushhub.ironmq.model.spans import SPANS_UID

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.engine.attempts.ports import Unsettled
    from pushhub.engine.model.span_export import SpanExport
    from pushhub.engine.records.activity import ProjectActivity
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.stranger_calls import StrangerCalls


class _Config(SpanExports, ProjectStore, Protocol):
    """Exports of spans, and projects."""


class SpanSettings(Component):
    """An owner's export of spans."""

    config: _Config  # Where it is kept, and the project's allowed targets.
    messages: Unsettled  # Finds requests that failed.
    calls: StrangerCalls  # Checks where URLs lead.
    credentials: Credentials  # Seals the values of headers.
    activity: Callable[[], ProjectActivity]  # Counts what was exported; made on first use.

    def show(self, project_id: str) -> ShownExport | None:
        """What is set, or None."""
        export = self.config.span_export(project_id, fresh=True)
        if export is None:
            return None
        hours = [each for _, each in self.activity().at_subscriber(project_id, SPANS_UID, HOURS).hours]
        found, _ = self.messages.unsettled(project_id, SPANS_UID, limit=1)
        return ShownExport(
            export=export,
            exported=max(0, sum(each.delivered for each in hours)),
            dropped=sum(each.given_up for each in hours),
            waiting=found[0] if found and not found[0].settled else None,
        )

    def set(self, wanted: SpanExport) -> None:
        """Set it. It takes effect within half a minute.

        Args:
            wanted: With the values of its headers; ``********`` stands for the stored one.

        Raises:
            Invalid: The URL cannot be used, or a value is not stored, or was meant for another place.
        """
        project, before = wanted.project, self.config.span_export(wanted.project, fresh=True)
        hidden = self.credentials.open(project, before.credentials).get(SPANS_UID, {}) if before else {}
        same_place = before is not None and place_of(before.url) == place_of(wanted.url)
        for name, value in wanted.headers.items():
            if value == MASK and not (same_place and name in hidden):
                raise Invalid(f"{MASK} in header {name} stands for a stored value, and there is none for this url")
        allowed = allowed_targets(self.config, project, Reach.PROJECT)
        refusal = self.calls.refusal(project, [wanted.url], allowed)
        if refusal is not None:
            raise Invalid(f"url cannot be used: {refusal}")
        sealed = self.credentials.seal(project, {SPANS_UID: still_hidden(wanted.url, wanted.headers, hidden)})
        self.config.put_span_export(replace(wanted, headers=masked_headers(wanted.headers), credentials=sealed))

    def remove(self, project_id: str) -> None:
        """Export no spans any more; those that wait are dropped. Safe to repeat."""
        self.config.remove_span_export(project_id)
