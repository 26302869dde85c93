"""Tells owners that signature schemes end: of their endpoints, and those that endpoints inherit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.certificate_ends import DAY_MS, tell_hourly
from pushhub.webhooks.signatures import ending, next_warning

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.certificate_ends import EndNote, EndNotes
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.operational import Operational
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

EVENT = "signature.ending"


class SignatureEnds:
    """Implements :class:`pushhub.engine.protocol.Tick`: looks once an hour, and tells a week and a day before an end.

    A note that no longer fits what is stored is dropped, so nothing has to be removed when a scheme is.

    Args:
        notes: What is to be told, and when.
        endpoints: Endpoints.
        applications: Applications.
        projects: Projects.
        operational: Sends events.
        clock: Time.
    """

    def __init__(
        self,
        *,
        notes: EndNotes,
        endpoints: ReadEndpoints,
        applications: ReadApplications,
        projects: ProjectStore,
        operational: Operational,
        clock: Clock,
    ) -> None:
        self._notes = notes
        self._endpoints = endpoints
        self._applications = applications
        self._projects = projects
        self._operational = operational
        self._clock = clock

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Tell what is due; returns how much that was.

        Raises:
            Unavailable: It failed; the next run continues, and tells nothing twice.
        """
        return tell_hourly(self._notes, self._clock.now(), remaining_ms, self._see_to)

    def _see_to(self, note: EndNote, now: int) -> int:
        about, schemes = self._stored(note)
        scheme = next((each for each in schemes if ending(each) == note.digest), None)
        if scheme is None or not scheme.signs_at(now):
            return 0
        self._operational.announce(
            note.project,
            EVENT,
            {
                **about,
                "preset": scheme.preset or None,
                "header": scheme.header,
                "endsAt": iso_time(scheme.ends_at),
                "daysLeft": -(-(scheme.ends_at - now) // DAY_MS),
            },
            cause=f"{EVENT}/{note.group}/{note.subscriber_id}/{note.digest}/{note.at}",
            at=note.at,
        )
        at = next_warning(scheme, now)
        if at is not None:
            self._notes.note_end(replace(note, at=at))
        return 1

    def _stored(self, note: EndNote) -> tuple[dict[str, object], Sequence[Scheme]]:
        """What a note is about, as an event names it, and its schemes."""
        if not note.group:
            project = self._projects.project(note.project, within_ms=0)
            return {"appId": None, "endpointId": None}, project.signatures if project else ()
        application = self._applications.application(note.project, note.group)
        about: dict[str, object] = {"appId": note.group, "appUid": application.uid if application else None}
        if application is None:
            return about, ()
        if not note.subscriber_id:
            return {**about, "endpointId": None}, application.signatures
        endpoint = self._endpoints.endpoint(note.project, note.group, note.subscriber_id)
        if endpoint is None:
            return about, ()
        return {**about, "endpointId": endpoint.endpoint_id, "endpointUid": endpoint.uid}, endpoint.signatures
