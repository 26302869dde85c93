"""Applications on the wire."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.times import iso_time
from pushhub.engine.model.search import HEADER, MAX_FIELDS
from pushhub.engine.model.search import is_path as is_field
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.redaction import MAX_PATHS, Redaction, is_path
from pushhub.webhooks.wire.settings import SettingsFields

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.webhooks.wire.fields import Fields


def _redaction(fields: Fields, name: str) -> Redaction:
    given = fields.section(name)
    return (
        Redaction() if given is None else Redaction(payload=_paths(given, "payload"), answers=_paths(given, "answers"))
    )


def _search_fields(fields: Fields, name: str) -> tuple[str, ...]:
    given = fields.raw(name)
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MAX_FIELDS:
        raise fields.refuse(f"A list of up to {MAX_FIELDS} fields is required", name)
    if not all(is_field(each) and not each.startswith(HEADER) for each in given):
        raise fields.refuse("A field is a path such as order.id, of at most 100 bytes", name)
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


_SETTINGS = SettingsFields(
    ApplicationFields,
    read={
        "uid": lambda fields, name: fields.uid(name, IdPrefix.APPLICATION),
        "redaction": _redaction,
        "search_fields": _search_fields,
    },
    show={
        "redaction": lambda value: {"payload": list(value.payload), "answers": list(value.answers)},
        "search_fields": list,
    },
)


def parse_application(fields: Fields) -> ApplicationFields:
    """Read an application to be created or replaced."""
    return ApplicationFields(**_SETTINGS.given(fields, all_of_them=True))


def parse_application_patch(fields: Fields, stored: ApplicationFields) -> ApplicationFields:
    """Read a change of an application: the stored fields, updated with those that were sent."""
    return replace(stored, **_SETTINGS.given(fields))


def brought_application(fields: Fields) -> Callable[[str], ApplicationFields] | None:
    """What reads the application that a request brings for the case that there is none of the name in its path; None if
    it brings none. It raises ``Unprocessable`` if a field breaks a rule, or its uid is not that name.
    """
    brought = fields.section("application")
    return None if brought is None else partial(_brought, brought)


def _brought(fields: Fields, name: str) -> ApplicationFields:
    given = parse_application(fields)
    if given.uid is None:
        raise fields.refuse("The application needs a uid", "uid", kind="application_uid_missing")
    if given.uid != name:
        raise fields.refuse("The uid differs from the one in the path", "uid", kind="application_uid_mismatch")
    return given


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
    return shown | dict(_SETTINGS.additions(fields))
