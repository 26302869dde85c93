"""Applications on the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.engine.model.search import HEADER, MAX_FIELDS
from pushhub.engine.model.search import is_path as is_field
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import Kind
from pushhub.webhooks.model.redaction import MAX_PATHS, Redaction, is_path

if TYPE_CHECKING:
    from pushhub.webhooks.wire.fields import Fields

MAX_RATE = 65_535


def rate(fields: Fields) -> int | None:
    """Messages per second, under its new name or its old one."""
    return fields.whole(fields.chosen("throttleRate", "rateLimit"), least=1, most=MAX_RATE)


def parse_application(fields: Fields) -> ApplicationFields:
    """Read an application to be created or replaced.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    return ApplicationFields(
        name=fields.text("name", least=1),
        uid=fields.uid("uid", Kind.APPLICATION),
        throttle_rate=rate(fields),
        metadata=fields.texts_by_name("metadata"),
        redaction=_redaction(fields),
        search_fields=_search_fields(fields),
        portal_consent=fields.flag("portalConsent", default=False),
        eager=fields.flag("eager", default=False),
    )


def parse_application_patch(fields: Fields, stored: ApplicationFields) -> ApplicationFields:
    """Read a change of an application: the stored fields, updated with those that were sent.

    Raises:
        Unprocessable: A field breaks a rule.
    """
    changed = stored
    if fields.has("name"):
        changed = replace(changed, name=fields.text("name", least=1))
    if fields.has("uid"):
        changed = replace(changed, uid=fields.uid("uid", Kind.APPLICATION))
    if fields.has("throttleRate") or fields.has("rateLimit"):
        changed = replace(changed, throttle_rate=rate(fields))
    if fields.has("metadata"):
        changed = replace(changed, metadata=fields.texts_by_name("metadata"))
    if fields.has("redaction"):
        changed = replace(changed, redaction=_redaction(fields))
    if fields.has("searchFields"):
        changed = replace(changed, search_fields=_search_fields(fields))
    if fields.has("portalConsent"):
        changed = replace(changed, portal_consent=fields.flag("portalConsent", default=False))
    if fields.has("eager"):
        changed = replace(changed, eager=fields.flag("eager", default=False))
    return changed


def _redaction(fields: Fields) -> Redaction:
    given = fields.section("redaction")
    return (
        Redaction() if given is None else Redaction(payload=_paths(given, "payload"), answers=_paths(given, "answers"))
    )


def _search_fields(fields: Fields) -> tuple[str, ...]:
    given = fields.raw("searchFields")
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MAX_FIELDS:
        raise fields.refuse(f"A list of up to {MAX_FIELDS} fields is required", "searchFields")
    if not all(is_field(each) and not each.startswith(HEADER) for each in given):
        raise fields.refuse("A field is a path such as order.id, of at most 100 bytes", "searchFields")
    return tuple(dict.fromkeys(given))


def _paths(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.raw(name)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_PATHS:
        raise fields.refuse(f"A list of up to {MAX_PATHS} paths is required", name)
    if not all(isinstance(each, str) and is_path(each) for each in value):
        raise fields.refuse("A path is names separated by dots, such as user.email, items.*.card or **.email", name)
    return tuple(dict.fromkeys(value))


def application_view(application: Application) -> dict[str, Any]:
    """An application as old and new clients read it."""
    fields = application.fields
    shown: dict[str, Any] = {
        "id": application.app_id,
        "name": fields.name,
        "throttleRate": fields.throttle_rate,
        "metadata": dict(fields.metadata),
        "createdAt": iso_time(application.created_at),
        "updatedAt": iso_time(application.updated_at),
    }
    if fields.uid is not None:
        shown["uid"] = fields.uid
    if fields.throttle_rate is not None:
        shown["rateLimit"] = fields.throttle_rate
    if fields.redaction != Redaction():
        shown["redaction"] = {"payload": list(fields.redaction.payload), "answers": list(fields.redaction.answers)}
    if fields.search_fields:
        shown["searchFields"] = list(fields.search_fields)
    if fields.portal_consent:
        shown["portalConsent"] = True
    if fields.eager:
        shown["eager"] = True
    return shown
