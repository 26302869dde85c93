"""Endpoints and sources, to be sealed anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unreadable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.engine.security.reseal import SealedItem, damaged_item
from pushhub.webhooks.endpoints.credentials import opened, sealed
from pushhub.webhooks.store._items import decode_application, decode_endpoint, encode_application, encode_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint


class SealedSources:
    """All sources."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, vault: Vault) -> None:
        self._table = Table(client, table, clock)
        self._vault = vault

    def items(self) -> Iterator[SealedItem]:
        """The items, one after the other."""
        scanned = self._table.scan(
            FilterExpression="begins_with(pk, :project) AND begins_with(sk, :source)",
            ExpressionAttributeValues={":project": text("P#"), ":source": text("APP#src_")},
        )
        for item in scanned:
            try:
                application = decode_application(item)
            except Unreadable:
                yield damaged_item(item["pk"]["S"], item["sk"]["S"])
                continue
            if application.source is not None:
                name = f"source {application.app_id} of project {application.project}"
                write = partial(self._write, item, application)
                yield SealedItem(name, application.project, (application.source.sealed,), write)

    def _write(self, item: Item, application: Application) -> None:
        source, project = application.source, application.project
        assert source is not None
        again = replace(source, sealed=self._vault.seal(project, self._vault.open(project, source.sealed)))
        written = item | encode_application(replace(application, source=again))
        try:
            self._table.put(
                written | {"version": number(application.version + 1)},
                ConditionExpression="#version = :before AND endpoints = :endpoints",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={
                    ":before": number(application.version),
                    ":endpoints": number(application.endpoints),
                },
            )
        except ConditionRefused as refused:
            raise Conflict("the source has changed") from refused


class SealedEndpoints:
    """All endpoints. Deleted ones hold nothing sealed."""

    def __init__(
        self, client: DynamoDBClient, table: str, clock: Clock, vault: Vault, credentials: Credentials
    ) -> None:
        self._table = Table(client, table, clock)
        self._vault = vault
        self._credentials = credentials

    def items(self) -> Iterator[SealedItem]:
        """The items, one after the other."""
        scanned = self._table.scan(
            FilterExpression="begins_with(pk, :app) AND begins_with(sk, :endpoint)",
            ExpressionAttributeValues={":app": text("A#"), ":endpoint": text("EP#")},
        )
        for item in scanned:
            try:
                endpoint = decode_endpoint(item)
            except Unreadable:
                yield damaged_item(item["pk"]["S"], item["sk"]["S"])
                continue
            held = endpoint.credentials, endpoint.sealed, endpoint.scheme_secrets, endpoint.oauth, endpoint.identity
            texts = tuple(filter(None, (*held, endpoint.transformation)))
            if texts:
                name = f"endpoint {endpoint.endpoint_id} of project {endpoint.project}"
                yield SealedItem(name, endpoint.project, texts, partial(self._write, item, endpoint))

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

        def again(text: bytes) -> bytes:
            return self._vault.seal(endpoint.project, self._vault.open(endpoint.project, text)) if text else b""

        plain = replace(opened(raised, self._credentials), credentials=b"")
        return replace(
            sealed(plain, self._credentials),
            sealed=again(endpoint.sealed),
            scheme_secrets=again(endpoint.scheme_secrets),
            oauth=again(endpoint.oauth),
            identity=again(endpoint.identity),
            transformation=again(endpoint.transformation),
        )
