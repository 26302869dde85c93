"""One request to the webhooks API on its way to a use case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pushhub.engine.model.reach import Reach
from pushhub.web.api import Call
from pushhub.webhooks.messages.idempotency import request_key
from pushhub.webhooks.model.internal_queues import OPERATIONAL_APP
from pushhub.webhooks.model.portal import Capability
from pushhub.webhooks.model.refusals import not_found
from pushhub.webhooks.model.rights import Rights
from pushhub.webhooks.wire.fields import Fields, flag_in_query, names_in_query, parse_body

if TYPE_CHECKING:
    from pushhub.webhooks.ports import RequestKey

ROOT = "/api/v1"
APP = ROOT + "/app/{app}"
ENDPOINT = APP + "/endpoint/{endpoint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller.

    Attributes:
        project: The project it acts for; empty on routes without authentication.
        app_id: The one application it may act on; None for all.
        flags: Feature flags of an application's token; None for the organization's.
        capabilities: What an application's token may do; None for everything.
        frame: Public id of the frame that an application's portal may be shown in; empty for none.
        holder: Id of the integration or autoconfiguration whose key it shows; empty for none.
    """

    project: str
    app_id: str | None = None
    flags: frozenset[str] | None = None
    capabilities: frozenset[str] | None = None
    frame: str = ""
    holder: str = ""

    @property
    def reach(self) -> Reach:
        """Where it may have messages sent."""
        return Reach.PROJECT if self.app_id is None else Reach.PORTAL


@dataclass(kw_only=True)
class WebhooksCall(Call):
    """A request whose caller is known. What cannot be read is refused (:mod:`pushhub.webhooks.wire`)."""

    caller: Caller

    @property
    def project(self) -> str:
        """The project the caller acts for."""
        return self.caller.project

    @property
    def rights(self) -> Rights:
        """What the caller may choose for an endpoint."""
        caller = self.caller
        reads_secrets = caller.capabilities is None or Capability.VIEW_SECRET in caller.capabilities
        return Rights(reach=caller.reach, flags=caller.flags, reads_secrets=reads_secrets)

    @property
    def app(self) -> str:
        """Id or uid of the application in the path. The application of operational endpoints has its own routes, whose
        paths have none, and is not found in others.
        """
        if self.names.get("app") == OPERATIONAL_APP:
            raise not_found()
        return self.names.get("app", OPERATIONAL_APP)

    @property
    def stream(self) -> str:
        """Id or uid of the stream in the path."""
        return self.names["stream"]

    @property
    def endpoint(self) -> str:
        """Id or uid of the endpoint in the path."""
        return self.names["endpoint"]

    @property
    def message(self) -> str:
        """Id of the message in the path, either ours or the producer's."""
        return self.names["message"]

    @property
    def repeatable(self) -> RequestKey | None:
        """What identifies repetitions of the request; None without ``Idempotency-Key``."""
        request, key = self.request, self.request.headers.get("idempotency-key", "")
        if not key:
            return None
        caller = request.headers.get("authorization", "")
        return request_key(caller, key, request.path, request.pairs, request.body)

    @property
    def query(self) -> Mapping[str, str]:
        """The query; if a name occurs twice, the first value."""
        return self.request.query

    @cached_property
    def fields(self) -> Fields:
        """The body, which must be an object."""
        return Fields(parse_body(self.request.body))

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean of the query."""
        return flag_in_query(self.query, name, default=default)

    def listed(self, name: str) -> Sequence[str]:
        """A list of names of the query."""
        return names_in_query(self.request.pairs, name)
