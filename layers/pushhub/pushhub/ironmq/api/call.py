"""One request to the queue API, prepared for a use case."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pushhub.base.errors import Invalid, MessageNotFound
from pushhub.ironmq.wire.names import check_queue_name, is_message_id
from pushhub.web.api import Call
from pushhub.web.json import parse_object

QUEUES = "/3/projects/{project}/queues"
QUEUE = QUEUES + "/{queue}"
"""The paths of all queues of a project, and of one."""

SCHEMES = ("oauth", "bearer")


@dataclass(kw_only=True)
class IronCall(Call):
    """A request with the names in its path (``project``, ``queue``, ``message``) and its contents.

    Attributes:
        json_body: Whether the route reads a JSON body; otherwise a body is ignored.
        authorized: Whether the request has a token of the project.
    """

    json_body: bool
    authorized: bool = False

    @property
    def project(self) -> str:
        """The project's id as given in the path."""
        return self.names["project"]

    @cached_property
    def queue(self) -> str:
        """The queue's name, validated.

        Raises:
            Invalid: It is not a valid queue name.
        """
        return check_queue_name(self.names["queue"])

    @property
    def message_id(self) -> str:
        """The message's id.

        Raises:
            MessageNotFound: It is not a valid message id.
        """
        if not is_message_id(self.names["message"]):
            raise MessageNotFound
        return self.names["message"]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The JSON body.

        Raises:
            Invalid: It cannot be read.
        """
        return parse_object(self.request.body)

    def token(self) -> str:
        """The request's token: from the ``Authorization`` header, the query, or the body (IronMQ's PHP client); or
        empty.
        """
        scheme, _, credentials = self.request.headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() in SCHEMES and credentials.strip():
            return credentials.strip()
        if self.request.query.get("oauth"):
            return self.request.query["oauth"]
        if not self.json_body:
            return ""
        try:
            in_body = self.fields.get("oauth")
        except Invalid:
            return ""
        return in_body if isinstance(in_body, str) else ""
