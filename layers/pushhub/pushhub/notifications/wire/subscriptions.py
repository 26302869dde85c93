"""Subscriptions on the wire (Notifications 2.0): converts requests to rules and rules to answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pushhub.base.errors import Invalid
from pushhub.base.numerals import digits
from pushhub.notifications.model.subscription import ANY_API, APIS, Context, Subscription, parse_type_filter
from pushhub.web.json import Fields, boolean, listed, parse_object, section, text

SUBSCRIPTION_TYPE = "application/vnd.com.nsn.cumulocity.subscription+json"
COLLECTION_TYPE = "application/vnd.com.nsn.cumulocity.subscriptioncollection+json"

_PATH = "/notification2/subscriptions"
_NAME = re.compile(r"[a-zA-Z0-9]{1,200}")
_MAX_SOURCE = 200
_MAX_FRAGMENTS = 100
_MAX_TYPE_FILTER = 2000
_PAGE_SIZE = 5
_MAX_PAGE_SIZE = 2000
_MAX_PAGE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which subscriptions are selected; a field that is None does not restrict the selection."""

    context: Context | None = None
    source: str | None = None
    name: str | None = None
    type_filter: str | None = None

    def takes(self, rule: Subscription) -> bool:
        """Whether a subscription is selected."""
        return (
            self.context in (None, rule.context)
            and self.source in (None, rule.source or rule.project)
            and self.name in (None, rule.name)
            and self.type_filter in (None, rule.type_filter)
        )

    @property
    def query(self) -> dict[str, str]:
        """As query parameters."""
        given = {
            "context": self.context,
            "source": self.source,
            "subscription": self.name,
            "typeFilter": self.type_filter,
        }
        return {name: str(value) for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """Which page of a list is requested, and what is to be counted."""

    number: int = 1
    size: int = _PAGE_SIZE
    with_elements: bool = False
    with_pages: bool = False


def parse_name(value: object) -> str:
    """The name of a subscription, which is also its topic's: letters and digits."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Invalid("subscription must consist of 1 to 200 letters and digits")
    return value


def parse_source_id(value: object) -> str:
    """The id of a source: a string, or a number as some clients send.

    Raises:
        Invalid: Empty, too long, or with characters that would break a notification's header.
    """
    source = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(source, str) or not 1 <= len(source) <= _MAX_SOURCE:
        raise Invalid(f"source id must be a string of 1 to {_MAX_SOURCE} characters")
    if "/" in source or not source.isprintable():
        raise Invalid("source id must not hold slashes or control characters")
    return source


def parse_subscription(body: bytes, *, project: str, subscription_id: str = "", now: int = 0) -> Subscription:
    """A subscription to create; it gets its id and time when it is stored."""
    fields = parse_object(body)
    context = _context(fields.get("context"))
    source = section(fields, "source") or {}
    wants = section(fields, "subscriptionFilter") or {}
    type_filter = (text(wants, "typeFilter") or "").strip()
    if len(type_filter) > _MAX_TYPE_FILTER:
        raise Invalid(f"typeFilter must be at most {_MAX_TYPE_FILTER} characters")
    if type_filter:
        parse_type_filter(type_filter)
    if context is Context.MANAGED_OBJECT and source.get("id") is None:
        raise Invalid("source.id is required for subscriptions of context 'mo'")
    return Subscription(
        subscription_id=subscription_id,
        project=project,
        context=context,
        source=parse_source_id(source["id"]) if context is Context.MANAGED_OBJECT else "",
        name=parse_name(fields.get("subscription")),
        apis=_apis(wants),
        type_filter=type_filter,
        fragments=_fragments(fields),
        non_persistent=boolean(fields, "nonPersistent"),
        created_at=now,
    )


def _context(value: object) -> Context:
    if value not in tuple(Context):
        raise Invalid("context must be 'mo' or 'tenant'")
    return Context(str(value))


def _apis(wants: Fields) -> tuple[str, ...]:
    given = listed(wants, "apis") or ()
    if any(each not in (*APIS, ANY_API) for each in given):
        raise Invalid(f"apis must be of {', '.join(APIS)} or {ANY_API}")
    apis = tuple(dict.fromkeys(given))
    if ANY_API in apis and len(apis) > 1:
        raise Invalid(f"{ANY_API} cannot be combined with other apis")
    return apis


def _fragments(fields: Fields) -> tuple[str, ...]:
    given = listed(fields, "fragmentsToCopy") or ()
    if len(given) > _MAX_FRAGMENTS or any(not isinstance(each, str) or not each for each in given):
        raise Invalid(f"fragmentsToCopy must be at most {_MAX_FRAGMENTS} names")
    return tuple(dict.fromkeys(given))


def parse_selection(query: Mapping[str, str]) -> Selection:
    """Which subscriptions a list request selects.

    Raises:
        Invalid: An unknown context.
    """
    return Selection(
        context=_context(query["context"]) if query.get("context") else None,
        source=query.get("source") or None,
        name=query.get("subscription") or None,
        type_filter=query.get("typeFilter") or None,
    )


def parse_deletion(query: Mapping[str, str]) -> Selection:
    """Which subscriptions a delete request without an id selects.

    Raises:
        Invalid: It says neither context nor source, or a source is missing.
    """
    if not query.get("context") and not query.get("source"):
        raise Invalid("Either context or source must be given")
    context = _context(query.get("context") or Context.MANAGED_OBJECT)
    source = query.get("source") or None
    if context is Context.MANAGED_OBJECT and source is None:
        raise Invalid("source must be given for context 'mo'")
    return Selection(context=context, source=source)


def parse_page(query: Mapping[str, str]) -> PageRequest:
    """Which page is requested."""
    return PageRequest(
        number=_number(query, "currentPage", default=1, most=_MAX_PAGE),
        size=_number(query, "pageSize", default=_PAGE_SIZE, most=_MAX_PAGE_SIZE),
        with_elements=query.get("withTotalElements", "").lower() == "true",
        with_pages=query.get("withTotalPages", "").lower() == "true",
    )


def _number(query: Mapping[str, str], name: str, *, default: int, most: int) -> int:
    given = query.get(name, "")
    if not given:
        return default
    number = digits(given, len(str(most)))
    if number is None or not 1 <= number <= most:
        raise Invalid(f"{name} must be from 1 to {most}")
    return number


def print_subscription(rule: Subscription, base_url: str) -> dict[str, Any]:
    """A subscription as an answer gives it. ``source`` is always present: clients read it without checking."""
    answer: dict[str, Any] = {
        "id": rule.subscription_id,
        "self": f"{base_url}{_PATH}/{rule.subscription_id}",
        "source": {"id": rule.source or rule.project},
        "context": rule.context.value,
        "subscription": rule.name,
        "nonPersistent": rule.non_persistent,
    }
    if rule.source:
        answer["source"]["self"] = f"{base_url}/inventory/managedObjects/{rule.source}"
    if rule.fragments:
        answer["fragmentsToCopy"] = list(rule.fragments)
    if rule.apis or rule.type_filter:
        answer["subscriptionFilter"] = ({"apis": list(rule.apis)} if rule.apis else {}) | (
            {"typeFilter": rule.type_filter} if rule.type_filter else {}
        )
    return answer


def print_collection(
    rules: Sequence[Subscription], selection: Selection, page: PageRequest, base_url: str
) -> dict[str, Any]:
    """A page of subscriptions.

    Args:
        rules: All that are selected, in their order.
        selection: The selection requested.
        page: The page requested.
        base_url: Base URL of this hub.
    """
    start = (page.number - 1) * page.size
    shown = rules[start : start + page.size]

    def link(number: int) -> str:
        return f"{base_url}{_PATH}?{urlencode(selection.query | {'pageSize': page.size, 'currentPage': number})}"

    statistics = {"currentPage": page.number, "pageSize": page.size}
    if page.with_elements:
        statistics["totalElements"] = len(rules)
    if page.with_pages:
        statistics["totalPages"] = -(-len(rules) // page.size)
    answer: dict[str, Any] = {"self": link(page.number)}
    if start + page.size < len(rules):
        answer["next"] = link(page.number + 1)
    if page.number > 1:
        answer["prev"] = link(page.number - 1)
    return answer | {
        "subscriptions": [print_subscription(each, base_url) for each in shown],
        "statistics": statistics,
    }


def print_root(base_url: str) -> dict[str, str]:
    """What ``GET /notification2`` answers: URI templates."""
    url = f"{base_url}{_PATH}"
    return {
        "self": f"{base_url}/notification2",
        "notificationSubscriptions": url,
        "notificationSubscriptionsBySource": f"{url}?source={{source}}",
        "notificationSubscriptionsBySourceAndContext": f"{url}?source={{source}}&context={{context}}",
        "notificationSubscriptionsByContext": f"{url}?context={{context}}",
    }
