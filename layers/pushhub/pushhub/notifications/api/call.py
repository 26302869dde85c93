"""One request to the REST API on its way to a use case."""

from __future__ import annotations

from dataclasses import dataclass

from pushhub.web.api import Call

ROOT = "/notification2"


@dataclass(kw_only=True)
class NotificationsCall(Call):
    """A request whose caller is known.

    Attributes:
        project: The tenant it acts for; empty if the request carries its own token.
        issued_by: Hash of the tenant's token; empty in that case, too.
    """

    project: str
    issued_by: str = ""
