"""REST API: subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.notifications.api.call import ROOT, NotificationsCall
from pushhub.notifications.wire.subscriptions import (
    COLLECTION_TYPE,
    SUBSCRIPTION_TYPE,
    parse_deletion,
    parse_page,
    parse_selection,
    parse_subscription,
    print_collection,
    print_root,
    print_subscription,
)
from pushhub.web.api import Body, Route
from pushhub.web.http import NO_CONTENT, Response

if TYPE_CHECKING:
    from pushhub.notifications.api.use_cases import NotificationsUseCases

SUBSCRIPTIONS = ROOT + "/subscriptions"
SUBSCRIPTION = SUBSCRIPTIONS + "/{subscription}"


def _root(hub: NotificationsUseCases, _: NotificationsCall) -> Response:
    return Response(status=200, body=print_root(hub.base_url))


def _create(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    rule = hub.subscriptions.create(parse_subscription(call.request.body, project=call.project))
    body = print_subscription(rule, hub.base_url)
    return Response(status=201, body=body, headers={"Content-Type": SUBSCRIPTION_TYPE, "Location": str(body["self"])})


def _list(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    selection, page = parse_selection(call.request.query), parse_page(call.request.query)
    rules = hub.subscriptions.select(call.project, selection)
    body = print_collection(rules, selection, page, hub.base_url)
    return Response(status=200, body=body, headers={"Content-Type": COLLECTION_TYPE})


def _show(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    rule = hub.subscriptions.get(call.project, call.names["subscription"])
    body = print_subscription(rule, hub.base_url)
    return Response(status=200, body=body, headers={"Content-Type": SUBSCRIPTION_TYPE})


def _delete(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    hub.subscriptions.delete(call.project, call.names["subscription"])
    return Response(status=NO_CONTENT, body={})


def _delete_selected(hub: NotificationsUseCases, call: NotificationsCall) -> Response:
    hub.subscriptions.delete_selected(call.project, parse_deletion(call.request.query))
    return Response(status=NO_CONTENT, body={})


ROUTES: tuple[Route[NotificationsUseCases, NotificationsCall], ...] = (
    Route("GET", ROOT, _root, name="notifications.root", summary="Show the API's resources"),
    Route(
        "POST",
        SUBSCRIPTIONS,
        _create,
        name="notifications.create_subscription",
        summary="Create a subscription",
        body=Body.JSON,
        status=201,
    ),
    Route(
        "GET",
        SUBSCRIPTIONS,
        _list,
        name="notifications.list_subscriptions",
        summary="List subscriptions",
        query=(
            "source",
            "context",
            "subscription",
            "typeFilter",
            "currentPage",
            "pageSize",
            "withTotalElements",
            "withTotalPages",
        ),
    ),
    Route(
        "DELETE",
        SUBSCRIPTIONS,
        _delete_selected,
        name="notifications.delete_subscriptions",
        summary="Delete the subscriptions of a source or context",
        query=("source", "context"),
        status=NO_CONTENT,
    ),
    Route("GET", SUBSCRIPTION, _show, name="notifications.show_subscription", summary="Show a subscription"),
    Route(
        "DELETE",
        SUBSCRIPTION,
        _delete,
        name="notifications.delete_subscription",
        summary="Delete a subscription",
        status=NO_CONTENT,
    ),
)
