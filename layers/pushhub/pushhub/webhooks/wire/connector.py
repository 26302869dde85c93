"""Connectors on the wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pushhub.base.times import iso_time
from pushhub.webhooks.model.connector import Connector, ConnectorFields, ConnectorKind, ConnectorProduct
from pushhub.webhooks.model.ids import IdPrefix
from pushhub.webhooks.model.refusals import unprocessable
from pushhub.webhooks.wire.fields import NAME, Fields, size_of
from pushhub.webhooks.wire.portal import MAX_FLAGS
from pushhub.webhooks.wire.transformation import CODE_CHARACTERS

MAX_CONNECTOR_NAME = 256
"""Characters of a name."""
MAX_EVENT_TYPES = 1_000
"""Event types of one connector."""
MAX_CONNECTORS = 1_000
"""Connectors of one imported document."""
_PICTURES = ("https://", "http://", "data:image/")
"""What portals may show: the hub asks for none of them."""
_LEAST_CODE, _MOST_CODE = CODE_CHARACTERS


def _kind(fields: Fields, name: str) -> ConnectorKind:
    given = fields.raw(name)
    if given is not None and given not in list(ConnectorKind):
        raise fields.refuse(f"One of {', '.join(ConnectorKind)} is required", name)
    return ConnectorKind(given or ConnectorKind.CUSTOM)


def _product(fields: Fields, name: str) -> ConnectorProduct:
    given = fields.raw(name)
    if given is not None and given not in list(ConnectorProduct):
        raise fields.refuse(f"One of {', '.join(ConnectorProduct)} is required", name)
    return ConnectorProduct(given or ConnectorProduct.DISPATCH)


def _logo(fields: Fields, name: str) -> str | None:
    logo = fields.optional_text(name)
    if logo is not None and (not logo.startswith(_PICTURES) or not logo.isprintable()):
        raise fields.refuse("A URL that begins with https://, http:// or data:image/ is required", name)
    return logo


def _names(most: int) -> Callable[[Fields, str], tuple[str, ...] | None]:
    return lambda fields, name: None if fields.raw(name) == [] else fields.names(name, NAME, most=most)


def _text(fields: Fields, name: str) -> str:
    return fields.optional_text(name) or ""


_READ: Final[Mapping[str, tuple[str, Callable[[Fields, str], Any]]]] = {
    "name": ("name", lambda fields, name: fields.text(name, least=1, most=MAX_CONNECTOR_NAME)),
    "kind": ("kind", _kind),
    "logo": ("logo", _logo),
    "description": ("description", _text),
    "instructions": ("instructions", _text),
    "allowedEventTypes": ("event_types", _names(MAX_EVENT_TYPES)),
    "transformation": ("code", lambda fields, name: fields.text(name, least=_LEAST_CODE, most=_MOST_CODE)),
    "featureFlags": ("flags", lambda fields, name: _names(MAX_FLAGS)(fields, name) or ()),
}
"""What may be changed: the attribute that a field becomes, and what reads it."""


def parse_connector(fields: Fields) -> ConnectorFields:
    """A connector to be made."""
    return ConnectorFields(
        uid=fields.uid("uid", IdPrefix.CONNECTOR),
        product=_product(fields, "productType"),
        **{attribute: read(fields, name) for name, (attribute, read) in _READ.items()},
    )


def parse_connector_replacement(fields: Fields) -> Callable[[ConnectorFields | None, str], ConnectorFields]:
    """A connector that replaces one, or is made. What it becomes follows from the one before and its name in the path:
    without a name of its own it keeps the one before's, or has that.
    """
    optional = {each: read for each, read in _READ.items() if each != "name"}
    given = {attribute: read(fields, name) for name, (attribute, read) in optional.items()}
    named = None if fields.raw("name") is None else _READ["name"][1](fields, "name")

    def replaced(before: ConnectorFields | None, path_name: str) -> ConnectorFields:
        if before is None:
            return ConnectorFields(name=named or path_name, uid=path_name, **given)
        return replace(before, name=named or before.name, **given)

    return replaced


def parse_connector_patch(fields: Fields) -> Callable[[ConnectorFields], ConnectorFields]:
    """The fields of a connector that were sent."""
    given = {attribute: read(fields, name) for name, (attribute, read) in _READ.items() if fields.has(name)}
    return lambda before: replace(before, **given)


def parse_connectors(fields: Fields) -> list[ConnectorFields]:
    """The connectors of an exported document."""
    listed = fields.raw("connectors")
    if listed is None:
        return []
    if not isinstance(listed, list) or len(listed) > MAX_CONNECTORS:
        raise fields.refuse(f"A list of at most {MAX_CONNECTORS} connectors is required", "connectors")
    return [parse_connector(Fields(each, "body", "connectors", str(number))) for number, each in enumerate(listed)]


def parse_product(query: Mapping[str, str]) -> ConnectorProduct | None:
    """The product whose connectors a query asks for; None for all."""
    given = query.get("product_type", "")
    if given and given not in list(ConnectorProduct):
        raise unprocessable(f"One of {', '.join(ConnectorProduct)} is required", "query", "product_type")
    return ConnectorProduct(given) if given else None


def connector_bytes(fields: ConnectorFields) -> int:
    """Bytes that what is said of a connector takes as JSON."""
    texts = [fields.name, fields.logo, fields.description, fields.instructions, fields.code]
    return size_of([*texts, *(fields.event_types or ()), *fields.flags])


def connector_view(connector: Connector) -> dict[str, Any]:
    """A connector as clients read it."""
    fields = connector.fields
    return {
        "id": connector.connector_id,
        "orgId": IdPrefix.ORGANIZATION + connector.project,
        "uid": fields.uid,
        "name": fields.name,
        "kind": fields.kind,
        "logo": fields.logo,
        "description": fields.description,
        "instructions": fields.instructions,
        "allowedEventTypes": None if fields.event_types is None else list(fields.event_types),
        "transformation": fields.code,
        "featureFlags": list(fields.flags) or None,
        "productType": fields.product,
        "createdAt": iso_time(connector.created_at),
        "updatedAt": iso_time(connector.updated_at),
        "transformationUpdatedAt": iso_time(connector.code_updated_at),
    }
