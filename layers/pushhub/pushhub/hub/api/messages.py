"""Hub API: messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.hub.api.answers import icon_of
from pushhub.hub.api.call import STORE, HubCall
from pushhub.hub.api.posting import MESSAGES
from pushhub.hub.wire.fields import InvalidObject
from pushhub.hub.wire.views import is_hidden, message_view
from pushhub.web.api import Body, Route
from pushhub.web.http import Response

if TYPE_CHECKING:
    from collections.abc import Collection

    from pushhub.hub.api.use_cases import HubUseCases
    from pushhub.hub.model.log import RecordedAnswer

MESSAGE = MESSAGES + "/{id}"


def _show(hub: HubUseCases, call: HubCall) -> Response:
    details = hub.messages.details(call.store, call.id)
    entry = details.entry
    mapping = hub.settings.mapping(call.store, entry.mapping_id) if entry.mapping_id else None
    project = hub.config.project(call.store)
    view = message_view(
        entry,
        details.content,
        mapping=mapping,
        icon_url=icon_of(mapping, hub.settings.integrations(call.store)),
        recorded=details.recorded,
        secrets=_secrets(hub, call.store, details.recorded),
        request=details.open,
        children=details.children,
        notifications=details.notifications,
        store_name=project.name if project else "",
    )
    return Response(status=200, body=view)


def _secrets(hub: HubUseCases, store: str, recorded: RecordedAnswer | None) -> Collection[str]:
    """Names of the parameters whose values are never shown; looked up where an answer has any."""
    if recorded is None or b'"parameters"' not in recorded.answer.body:
        return ()
    return {each.name for each in hub.settings.parameters(store) if is_hidden(each)}


def _handle(hub: HubUseCases, call: HubCall) -> Response:
    wanted = {name for name in ("attempt_now", "archive") if str(call.fields.get(name)).lower() in ("true", "1")}
    if wanted == {"attempt_now"}:
        hub.messages.attempt_now(call.store, call.id)
    elif wanted == {"archive"}:
        hub.messages.archive(call.store, call.id)
    else:
        raise InvalidObject({"base": ["Send attempt_now=true or archive=true"]})
    return _show(hub, call)


def _types(hub: HubUseCases, call: HubCall) -> Response:
    return Response(status=200, body=hub.settings.types(call.store))


ROUTES: tuple[Route[HubUseCases, HubCall], ...] = (
    Route(
        "GET",
        MESSAGE,
        _show,
        name="hub.show_message",
        summary="Show a message with its attempts, children and notifications",
    ),
    Route(
        "PUT",
        MESSAGE,
        _handle,
        name="hub.handle_message",
        settings=False,
        summary="Try a message again now, or archive it",
        body=Body.JSON_OR_FORM,
        query=("attempt_now", "archive"),
    ),
    Route(
        "GET",
        STORE + "/available_messages",
        _types,
        name="hub.list_message_types",
        summary="List the message types seen",
    ),
)
