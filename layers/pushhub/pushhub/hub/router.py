"""Comparing an incoming message with its store's mappings: one accepted copy for each that wants it.

Every step is idempotent: identities are claimed for the incoming message, the ids of copies are derived from it, and
its delivery is done only when all of that is written. If a mapping changes before a repetition, the repetition uses the
new version.

A fault of ours is not a filter result: if it is unknown whether a message passes, or a mapping cannot be read, it is
compared with that mapping again later, and the other mappings get it meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Invalid
from pushhub.base.steps import Steps
from pushhub.engine.component import Component
from pushhub.hub.model.filters import passes
from pushhub.hub.model.identifiers import identity_of
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.notice import Level, Notice
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.ports import CountNotices, Entries, IdentityClaims, RoutedMappings

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.model.mapping import ServiceMapping

ROUTING_MS = 30_000
"""How long one message is compared at a time, milliseconds; the rest is compared in the next attempt."""

SHOWN_REASONS = 5
"""Reasons named for a message that goes nowhere; there may be a mapping for each of hundreds of services."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """The result of comparing a message with the mappings.

    Attributes:
        copies: Decimal ids of the copies that exist now.
        summary: One-line summary for people.
        finished: Whether every mapping was compared; if not, route again later.
    """

    copies: Collection[str]
    summary: str
    finished: bool = True


class RoutingSettings(RoutedMappings, IdentityClaims, Protocol):
    """Mappings, and the identities claimed for them."""


class RoutingLog(Entries, CountNotices, Protocol):
    """Records what a message led to, and what its owner is shown."""


class HubRouter(Component):
    """Routes incoming messages."""

    settings: RoutingSettings
    log: RoutingLog
    intake: HubIntake
    clock: Clock

    def route(self, incoming: Message, body: bytes, *, attempt: int = 1) -> Routed:
        """Make the copies of an incoming message.

        Args:
            attempt: Number of the attempt; from the second on, existing copies are not made again.

        Raises:
            Unavailable: Repeat.
        """
        message = HubMessage.decode(body)
        self.intake.note_type(incoming.project, message.type)
        until = self.clock.now() + ROUTING_MS
        # Also those for mappings that want it no longer.
        copies = dict.fromkeys(self._earlier_copies(incoming) if attempt > 1 else ())
        reasons: list[str] = []
        mappings, unread = self.settings.routed_mappings(incoming.project)
        unfinished = f"{unread} mappings cannot be read: the operator has to mend them" if unread else ""
        for mapping in mappings:
            if not mapping.wants(message.type):
                continue
            if self.clock.now() >= until:
                unfinished = f"Compared for {ROUTING_MS // 1000} s; the remaining mappings are compared next"
                break
            copy_id = self.intake.copy_id(incoming, mapping.mapping_id)
            if copy_id not in copies:
                try:
                    reason = self._refusal(incoming, message, mapping)
                except Invalid as error:
                    self._tell(incoming, mapping, str(error))
                    unfinished = f"{mapping.name}: {error}"
                    continue
                if reason:
                    reasons.append(reason)
                    continue
                copy_id = self.intake.copy(incoming, message, mapping).message_id
            copies[copy_id] = None
        if copies:
            self.log.add_children(incoming.project, incoming.message_id, list(copies))
        return Routed(
            copies=copies,
            summary=unfinished or _summary(message.type, len(copies), reasons),
            finished=not unfinished,
        )

    def _earlier_copies(self, incoming: Message) -> Collection[str]:
        entry = self.log.entry(incoming.project, incoming.message_id)
        return entry.children if entry else ()

    def _refusal(self, incoming: Message, message: HubMessage, mapping: ServiceMapping) -> str:
        """Why a message does not go to a mapping that wants its type; empty when it does.

        Filters come first: a message that is filtered out must not use up the identity of one that passes later.
        """
        as_sent, steps = message.as_sent(to_object_id(incoming.message_id)), Steps()
        if not passes(mapping.filters, as_sent, steps):
            return f"Filtered out by {mapping.name}"
        identity = identity_of(mapping.identifiers, as_sent, steps)
        if identity is None:
            return ""
        holder = self.settings.claim(incoming.project, mapping.mapping_id, identity, incoming.message_id)
        if holder == incoming.message_id:
            return ""
        return f"{mapping.name} already has message {to_object_id(holder)} with the same identifiers"

    def _tell(self, incoming: Message, mapping: ServiceMapping, problem: str) -> None:
        subject = f"Not yet sent to {mapping.name}"
        self.log.count_notification(
            Notice.once(
                incoming.project,
                incoming.message_id,
                Level.ERROR,
                subject,
                description=problem,
                origin=mapping.name,
                at=self.clock.now(),
            )
        )


def _summary(message_type: str, copies: int, reasons: list[str]) -> str:
    if copies:
        return f"Routed to {copies} services"
    if not reasons:
        return f"No mapping wants {message_type}"
    further = len(reasons) - SHOWN_REASONS
    return "; ".join([*reasons[:SHOWN_REASONS], *([f"and {further} more"] if further > 0 else [])])
