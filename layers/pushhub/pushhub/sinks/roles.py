"""Keys of roles: asked for once in their lifetime, by one thread of an execution environment for all others."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.sinks.ports import RoleRefused

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.sinks.ports import AssumeRole, AwsKeys, RoleWanted

MARGIN_MS = 300_000
"""How long before their end keys are replaced, milliseconds."""

REFUSED_MS = 60_000
"""How long a role that does not let the hub in is not asked again, milliseconds."""

_REMEMBERED = 1_000


class NoKeys(Exception):
    """There are no keys now, so nothing can be sent.

    Args:
        reason: Why, for the subscriber's owner.
        wait_ms: Milliseconds after which the role is asked again.
    """

    def __init__(self, reason: str, wait_ms: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_ms = wait_ms


@dataclass(slots=True)
class _Known:
    """What is known of a role; guarded by its lock while it is asked."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: AwsKeys | None = None
    usable_until: int = 0
    ask_at: int = 0
    reason: str = ""


class RoleKeys(Component):
    """Obtains keys of roles. Thread-safe."""

    assume: AssumeRole
    clock: Clock
    telemetry: Telemetry

    def __post_init__(self) -> None:
        self._roles: OrderedDict[RoleWanted, _Known] = OrderedDict()
        self._lock = threading.Lock()

    def keys(self, wanted: RoleWanted) -> AwsKeys:
        """Keys that can be used now.

        Raises:
            NoKeys: The role does not let the hub in.
            Unavailable: STS could not be asked; the role is not to blame.
        """
        known = self._known(wanted)
        with known.lock:
            now = self.clock.now()
            if known.keys is not None and now < known.usable_until:
                return known.keys
            if now < known.ask_at:
                raise NoKeys(known.reason, known.ask_at - now)
            return self._asked(known, wanted)

    def forget(self, wanted: RoleWanted, keys: AwsKeys) -> None:
        """Use some keys no more, because a service has refused them."""
        known = self._known(wanted)
        with known.lock:
            if known.keys == keys:
                known.keys = None

    def _known(self, wanted: RoleWanted) -> _Known:
        with self._lock:
            known = self._roles.setdefault(wanted, _Known())
            self._roles.move_to_end(wanted)
            if len(self._roles) > _REMEMBERED:
                self._roles.popitem(last=False)
            return known

    def _asked(self, known: _Known, wanted: RoleWanted) -> AwsKeys:
        self.telemetry.count("RolesAssumed")
        known.keys = None
        try:
            keys, ends_at = self.assume(wanted)
        except RoleRefused as error:
            known.ask_at = self.clock.now() + REFUSED_MS
            known.reason = f"the role cannot be assumed: {error.code}"
            self.telemetry.count("RolesRefused")
            self.telemetry.event("no_keys", role=wanted.role, session=wanted.session, reason=error.code)
            raise NoKeys(known.reason, REFUSED_MS) from error
        known.keys, known.usable_until, known.ask_at = keys, ends_at - MARGIN_MS, 0
        return keys
