"""Endpoints, to be sealed anew, and attempts at them, to be masked."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.credentials import MASK, hidden_in, masked_url, user_of
from pushhub.base.errors import Conflict
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.reseal import SealedItem
from pushhub.webhooks.credentials import opened, sealed, without_secrets
from pushhub.webhooks.store._items import decode_endpoint, encode_endpoint
from pushhub.webhooks.store.dynamodb_logs import attempts_item, logged_attempts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.credentials import Credentials
    from pushhub.webhooks.model.attempt import LoggedAttempt
    from pushhub.webhooks.model.endpoint import Endpoint


class SealedEndpoints:
    """All endpoints, also those of deleted applications, and deleted ones that show a password."""

    def __init__(
        self, client: DynamoDBClient, table: str, clock: Clock, vault: Vault, credentials: Credentials
    ) -> None:
        self._table = Table(client, table, clock)
        self._vault = vault
        self._credentials = credentials

    def items(self) -> Iterator[SealedItem]:
        """The items, one after the other."""
        scanned = self._table.scan(
            FilterExpression="begins_with(pk, :app) AND (begins_with(sk, :endpoint) OR begins_with(sk, :deleted))",
            ExpressionAttributeValues={":app": text("A#"), ":endpoint": text("EP#"), ":deleted": text("EPX#")},
        )
        for item in scanned:
            endpoint = decode_endpoint(item)
            held = endpoint.credentials, endpoint.sealed, endpoint.scheme_secrets, endpoint.oauth, endpoint.identity
            texts = tuple(filter(None, held))
            plain = bool(hidden_in(endpoint.fields.url, endpoint.headers))
            if texts or plain:
                name = f"endpoint {endpoint.endpoint_id} of project {endpoint.project}"
                yield SealedItem(name, endpoint.project, texts, plain, partial(self._write, item, endpoint))

    def _write(self, item: Item, endpoint: Endpoint) -> None:
        written = {name: item[name] for name in ("pk", "sk")} | encode_endpoint(self._anew(endpoint))
        try:
            self._table.put(
                written,
                ConditionExpression="#version = :before",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={":before": number(endpoint.version)},
            )
        except ConditionRefused as refused:
            raise Conflict("the endpoint has changed") from refused

    def _anew(self, endpoint: Endpoint) -> Endpoint:
        raised = replace(endpoint, version=endpoint.version + 1)
        if endpoint.deleted:
            # Nothing is sent to it any more.
            shown = replace(endpoint.fields, url=masked_url(endpoint.fields.url))
            return replace(without_secrets(raised), fields=shown)

        def again(text: bytes) -> bytes:
            return self._vault.seal(endpoint.project, self._vault.open(endpoint.project, text)) if text else b""

        plain = replace(opened(raised, self._credentials), credentials=b"")
        return replace(
            sealed(plain, self._credentials),
            sealed=again(endpoint.sealed),
            scheme_secrets=again(endpoint.scheme_secrets),
            oauth=again(endpoint.oauth),
            identity=again(endpoint.identity),
        )


def masked_attempts(client: DynamoDBClient, table: str, clock: Clock) -> Iterator[SealedItem]:
    """All items of attempts that show a password in a URL; to be written with a mask."""
    store = Table(client, table, clock)
    scanned = store.scan(
        FilterExpression="begins_with(pk, :attempts) AND begins_with(sk, :attempts)",
        ExpressionAttributeValues={":attempts": text("T#")},
    )
    for item in scanned:
        logged = logged_attempts(item)
        if any(user_of(each.url) not in (None, MASK) for each in logged):
            last = logged[-1]
            name = f"attempts up to {last.attempt_id} of project {last.project}"
            yield SealedItem(name, last.project, (), plain=True, write=partial(_mask, store, item, logged))


def _mask(store: Table, item: Item, logged: Sequence[LoggedAttempt]) -> None:
    # Several attempts are together in one attribute.
    held = "group" if "group" in item else "doc"
    try:
        store.put(
            item | attempts_item(logged),
            ConditionExpression="#held = :before",
            ExpressionAttributeNames={"#held": held},
            ExpressionAttributeValues={":before": item[held]},
        )
    except ConditionRefused as refused:
        raise Conflict("the attempts have changed") from refused
