"""One request to the hub's API on its way to a use case."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from pushhub.base.errors import Invalid, NotFound
from pushhub.base.numerals import digits
from pushhub.hub.messages import Query
from pushhub.hub.model.log import HubState, Location
from pushhub.hub.model.object_ids import is_object_id
from pushhub.hub.notices import NoticeQuery
from pushhub.hub.wire.fields import InvalidObject
from pushhub.hub.wire.form import parse_form
from pushhub.hub.wire.json import parse_object
from pushhub.web.api import Call

STORE = "/api/stores/{store}"

MAX_PAGE = 1000


@dataclass(kw_only=True)
class HubCall(Call):
    """A request, the names in its path (``store`` and an id), and its fields. What cannot be read raises
    ``InvalidObject``, an id that no object can have ``NotFound``.

    Attributes:
        bare: The path ended in ``.json``: lists are answered as bare arrays, as the documentation shows them, instead
            of the objects with page numbers that the admin client reads.
    """

    bare: bool

    @property
    def store(self) -> str:
        """The store's id: the project."""
        return self.names["store"]

    @property
    def id(self) -> str:
        """The id in the path."""
        if not is_object_id(self.names["id"]):
            raise NotFound("Not found.")
        return self.names["id"]

    @cached_property
    def fields(self) -> dict[str, Any]:
        """The fields sent: those of the JSON or form body, which win over those of the query."""
        return self._fields(exact=False)

    @cached_property
    def exact_fields(self) -> dict[str, Any]:
        """The same, but numbers in JSON keep their text (:class:`pushhub.base.json_text.Verbatim`)."""
        return self._fields(exact=True)

    def _fields(self, *, exact: bool) -> dict[str, Any]:
        try:
            in_query = parse_form(urlencode(self.request.query))
            return in_query | self._in_body(exact)
        except Invalid as error:
            raise InvalidObject({"base": [f"The request {error.message}"]}) from error

    def _in_body(self, exact: bool) -> dict[str, Any]:
        body = self.request.body
        if not body.strip():
            return {}
        # The content decides, not the content type: the documentation's own examples post JSON labelled as a form.
        if body.lstrip()[:1] in (b"{", b"[", b"\xef"):
            return parse_object(body, exact=exact)
        try:
            return parse_form(body.decode())
        except UnicodeDecodeError as error:
            raise Invalid("is not valid Unicode text") from error

    def wrapped(self, name: str, *, exact: bool = False) -> dict[str, Any]:
        """The fields inside a wrapping object (``{"mapping": {...}}``), or the top-level fields when there is none.

        Args:
            exact: Whether numbers keep their text.
        """
        fields = self.exact_fields if exact else self.fields
        inside = fields.get(name)
        return inside if isinstance(inside, dict) else fields

    def chosen(self, *names: str) -> str | None:
        """The first of the named query values that is not empty. The admin client also nests them in ``q``."""
        query = self.request.query
        found = (query.get(name) or query.get(f"q[{name}]") for name in names)
        return next((each for each in found if each), None)

    def query(self, location: Location) -> Query:
        """The search parameters for a queue."""
        return Query(
            location=location,
            page=self._page(),
            type=self.chosen("message"),
            state=self._one_of("state", HubState, "filter_state", "state"),
            mapping_id=self.chosen("mapping_id", "consumer_class"),
            source=self._one_of("source", Location, "source"),
            message_id=self.chosen("message_id"),
            start_at=self._moment("start_date"),
            end_at=self._moment("end_date"),
        )

    def notification_query(self) -> NoticeQuery:
        """The search parameters for notifications."""
        return NoticeQuery(
            page=self._page(),
            level=self.chosen("level"),
            reference_type=self.chosen("reference_type"),
            reference_token=self.chosen("reference_token"),
            start_at=self._moment("start_date"),
            end_at=self._moment("end_date"),
        )

    def _page(self) -> int:
        page = digits(self.chosen("page") or "1", 9)
        if page is None or not 1 <= page <= MAX_PAGE:
            raise InvalidObject({"page": [f"must be from 1 to {MAX_PAGE}"]})
        return page

    def _one_of(self, field: str, kind: Any, *names: str) -> Any:
        value = self.chosen(*names)
        if value is None:
            return None
        if value not in list(kind):
            raise InvalidObject({field: [f"must be one of {' '.join(kind)}"]})
        return kind(value)

    def _moment(self, name: str) -> int | None:
        value = self.chosen(name)
        if value is None:
            return None
        try:
            # An unescaped plus sign arrives as a space.
            moment = datetime.fromisoformat(value.strip().replace(" ", "+"))
        except ValueError as error:
            raise InvalidObject({name: ["is not a time such as 2013-11-10T17:17:34+00:00"]}) from error
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(aware.timestamp() * 1000)
