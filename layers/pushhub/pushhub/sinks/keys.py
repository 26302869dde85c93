"""The keys that sign the requests to a subscriber: its own access key, or those of the role that it names. Never the
hub's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.errors import Invalid
from pushhub.base.sink_url import account_of
from pushhub.engine.component import Component
from pushhub.sinks.ports import AwsKeys, RoleWanted
from pushhub.sinks.roles import NoKeys, RoleKeys

if TYPE_CHECKING:
    from pushhub.base.sink_url import SinkUrl
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.security.external_ids import ExternalIds


class Asking(Protocol):
    """Asks for the keys of one attempt."""

    def __call__(self, *, instead_of: AwsKeys | None = None) -> AwsKeys:
        """The keys.

        Args:
            instead_of: Keys that the service has refused; the same are returned if there are no others.

        Raises:
            NoKeys: There are none now.
            Unavailable: STS could not be asked.
        """


class SinkKeys(Component):
    """Provides keys, and says which may be named."""

    roles: Callable[[], RoleKeys]  # Made when the first subscriber has a role.
    external_ids: ExternalIds
    own_roles: tuple[str, ...]  # Roles of the hub's own account that its operator opens.

    def check(self, place: SinkUrl) -> None:
        """Check what a subscriber's requests are to be signed with.

        Raises:
            Invalid: Neither or both of role and access key are given, or the role may not be named.
        """
        if bool(place.role) == bool(place.key_id):
            raise Invalid("The url needs either a role (role=arn:aws:iam::...) or an access key (KEY_ID:SECRET@)")
        if place.role and self._is_closed(place.role):
            raise Invalid("The role is of the account that this hub runs in, and its operator has not opened it")

    def _is_closed(self, role: str) -> bool:
        return account_of(role) == self.external_ids.account and role not in self.own_roles

    def asking(self, queue: Queue, place: SinkUrl, grants: Sequence[Mapping[str, object]]) -> Asking:
        """What asks for the keys of an attempt.

        Args:
            queue: The message's.
            grants: Statements of the policy that bounds what a role's keys can do.
        """
        if not place.role:
            own = AwsKeys(key_id=place.key_id, secret=place.secret)
            return lambda *, instead_of=None: own  # noqa: ARG005 (there are no others)
        wanted = RoleWanted(
            role=place.role,
            external_id=self.external_ids.of(queue.project, queue.name),
            session=f"pushhub-{queue.project}"[:64],
            policy=json_text.write({"Version": "2012-10-17", "Statement": list(grants)}),
        )

        def ask(*, instead_of: AwsKeys | None = None) -> AwsKeys:
            # Checked again: the operator may have closed it since the URL was set.
            if self._is_closed(wanted.role):
                raise NoKeys("the role is of the account that this hub runs in", 0)
            if not wanted.external_id:
                # A role without the condition would let in whoever names it.
                raise NoKeys("the project has no external id", 0)
            roles = self.roles()
            if instead_of is not None:
                roles.forget(wanted, instead_of)
            return roles.keys(wanted)

        return ask
