"""Carries out what a service's answer asks for, once: children, parameters, notifications.

The answer is recorded before it takes effect, and each effect is derived from it: a child's id comes from the delivery,
the attempt and its place in the answer; a parameter carries the time of its request; a notification counts each attempt
once. So everything here is idempotent and may be repeated, by a duplicate or after a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import read_change_save
from pushhub.engine.component import Component
from pushhub.hub.model.mapping import MAX_PARAMETERS
from pushhub.hub.model.message import MAX_CHAIN, HubMessage
from pushhub.hub.model.notice import (
    Level,
    Notice,
    ReturnedNotice,
    message_type,
    notification_id,
)
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.model.parameters import Parameter, ReturnedParameter, data_type_of, parameter_id
from pushhub.hub.ports import CountNotices, Mappings, Parameters, WriteEntries

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.engine.ports import Descendants
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.wire.answer import Child, ServiceAnswer

CHILDREN_AT_ONCE = 8
"""Children written in parallel, when there are more than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A recorded answer and what it belongs to.

    Attributes:
        message: The accepted copy.
        content: Its content.
        delivery: The delivery as it was when the attempt began.
        mapping: The mapping whose service answered.
        answer: The recorded answer.
        reading: What it means.
    """

    message: Message
    content: HubMessage
    delivery: Delivery
    mapping: ServiceMapping
    answer: Answer
    reading: ServiceAnswer

    @property
    def project(self) -> str:
        """The store."""
        return self.message.project

    @property
    def attempt(self) -> int:
        """Number of the attempt."""
        return self.delivery.attempts + 1


class EffectSettings(Mappings, Parameters, Protocol):
    """Stored parameters, and the mappings they are attached to."""


class EffectLog(WriteEntries, CountNotices, Protocol):
    """Children and notifications."""


class HubEffects(Component):
    """Does what answers ask for."""

    settings: EffectSettings
    log: EffectLog
    intake: HubIntake
    descendants: Descendants  # Counts the messages that descend from one message, to enforce the limit.

    def apply(self, answered: Answered) -> None:
        """Do everything.

        Raises:
            Unavailable: Some of it may have been done; call again.
        """
        notifications = list(answered.reading.notifications)
        if answered.reading.children:
            if answered.message.hops >= MAX_CHAIN:
                notifications.append(_loop(answered))
            elif self._may_have(answered, _children_cause(answered), len(answered.reading.children)):
                self._accept_children(answered)
            else:
                self._cut_off(answered)
        self._set_parameters(answered, answered.reading.parameters)
        for returned, times in _counted(notifications):
            self._notify(answered, returned, times)

    def _may_have(self, answered: Answered, cause: str, count: int) -> bool:
        return self.descendants.spend(answered.project, answered.message.root_id, cause=cause, count=count)

    def _cut_off(self, answered: Answered) -> None:
        """Note once, on the accepted message, that it has more descendants than allowed."""
        at, root_id = answered.answer.finished_at, answered.message.root_id
        notice = ReturnedNotice(
            level=Level.ERROR,
            subject="Cut off: too many messages followed from this one",
            description=f"What {answered.mapping.name} asked for in its answer to message "
            f"{to_object_id(answered.message.message_id)} was not accepted, and neither was anything after that",
        )
        stored = self.log.count_notification(
            Notice(
                project=answered.project,
                notification_id=notification_id(answered.project, root_id, notice.level, notice.subject),
                message_id=root_id,
                level=notice.level,
                subject=notice.subject,
                description=notice.description,
                origin=answered.mapping.name,
                occurrences=1,
                logged_at=at,
                updated_at=at,
                first_attempt=1,
                attempt=1,
            )
        )
        if not answered.content.quiet:
            self._raise(answered, stored, notice)

    def _accept_children(self, answered: Answered) -> None:
        children = list(enumerate(answered.reading.children))
        if len(children) <= CHILDREN_AT_ONCE:
            accepted = [self._accept_child(answered, *each) for each in children]
        else:
            with ThreadPoolExecutor(max_workers=CHILDREN_AT_ONCE) as side_by_side:
                accepted = list(side_by_side.map(lambda each: self._accept_child(answered, *each), children))
        self.log.add_children(answered.project, answered.message.message_id, [each.message_id for each in accepted])

    def _accept_child(self, answered: Answered, index: int, child: Child) -> Message:
        message = HubMessage(
            type=child.type,
            payload=child.payload,
            extra=child.extra,
            quiet=answered.content.quiet,
            delay_s=child.delay_s,
        )
        return self.intake.derive(
            answered.project,
            message,
            cause=f"{_children_cause(answered)}/{index}",
            # A millisecond apart, so that their ids follow the answer's order and never collide.
            at=answered.answer.finished_at + index,
            parent_id=answered.message.message_id,
            hops=answered.message.hops + 1,
            root=answered.message.root_id,
            trace=answered.message.trace,
        )

    def _set_parameters(self, answered: Answered, returned: Sequence[ReturnedParameter]) -> None:
        if not returned:
            return
        for each in returned:
            self.settings.set_parameter(
                Parameter(
                    project=answered.project,
                    name=each.name,
                    value=each.value,
                    data_type=data_type_of(each.value),
                    as_of=answered.answer.started_at,
                )
            )
        self._attach(answered, [parameter_id(answered.project, each.name) for each in returned])

    def _attach(self, answered: Answered, ids: Sequence[str]) -> None:
        """From now on, send the parameters to the answering service and to the other services of its integration."""
        mapping = answered.mapping
        mappings = [mapping]
        if mapping.integration_id is not None:
            mappings = [
                each
                for each in self.settings.mappings(answered.project)
                if each.integration_id == mapping.integration_id
            ]
        for each in mappings:
            self._attach_to(answered.project, each, ids)

    def _attach_to(self, project_id: str, mapping: ServiceMapping, ids: Sequence[str]) -> None:
        def attached(current: ServiceMapping | None) -> ServiceMapping | None:
            if current is None:
                return None
            # A service that names new ones in each answer would be sent ever more of them.
            most = max(MAX_PARAMETERS, len(current.parameter_ids))
            attached_ids = tuple(dict.fromkeys((*current.parameter_ids, *ids)))[:most]
            return None if attached_ids == current.parameter_ids else replace(current, parameter_ids=attached_ids)

        def save(changed: ServiceMapping | None) -> None:
            if changed is not None:
                self.settings.put_mapping(project_id, changed)

        if attached(mapping) is not None:
            read_change_save(
                lambda: self.settings.mapping(project_id, mapping.mapping_id),
                attached,
                save,
                doing="attaching a parameter to a mapping under contention",
            )

    def _notify(self, answered: Answered, returned: ReturnedNotice, times: int) -> None:
        at = answered.answer.finished_at
        message_id = answered.message.message_id
        stored = self.log.count_notification(
            Notice(
                project=answered.project,
                notification_id=notification_id(answered.project, message_id, returned.level, returned.subject),
                message_id=message_id,
                level=returned.level,
                subject=returned.subject,
                description=returned.description,
                extra=returned.extra,
                origin=answered.mapping.name,
                occurrences=times,
                logged_at=at,
                updated_at=at,
                first_attempt=answered.attempt,
                attempt=answered.attempt,
            )
        )
        # Only the first occurrence raises a message, and never one that descends from another notification's message: a
        # service that answers notifications with notifications would loop forever.
        if stored.first_attempt != answered.attempt or answered.content.quiet:
            return
        if self._may_have(answered, f"notification/{stored.notification_id}", 1):
            self._raise(answered, stored, returned)

    def _raise(self, answered: Answered, stored: Notice, returned: ReturnedNotice) -> None:
        message = HubMessage(
            type=message_type(stored.level),
            payload={"subject": returned.subject, "description": returned.description},
            source=answered.mapping.name,
            quiet=True,
        )
        self.intake.derive(
            answered.project,
            message,
            cause=f"notification/{stored.notification_id}",
            at=stored.logged_at,
            parent_id=stored.message_id,
            hops=answered.message.hops + 1,
            root=answered.message.root_id,
            trace=answered.message.trace,
        )


def _children_cause(answered: Answered) -> str:
    return f"child/{answered.delivery.delivery_id}/{answered.attempt}"


def _counted(notifications: Sequence[ReturnedNotice]) -> list[tuple[ReturnedNotice, int]]:
    """Each notification once, with the number of times it occurs in the answer."""
    times = Counter((each.level, each.subject) for each in notifications)
    firsts = {(each.level, each.subject): each for each in reversed(notifications)}
    return [(firsts[key], count) for key, count in times.items()]


def _loop(answered: Answered) -> ReturnedNotice:
    count = len(answered.reading.children)
    return ReturnedNotice(
        level=Level.ERROR,
        subject="Taken for a loop",
        description=f"{MAX_CHAIN} messages led to one another; the {count} that this answer asks for were not accepted",
    )
