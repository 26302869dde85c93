"""Stream records of the table of notifications, with binary values as Lambda delivers them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.contract.notification_samples import NOW, a_backlog, a_busy_backlog, a_commit, a_connection, a_subscription

from pushhub.base.errors import Unreadable
from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.store._items import (
    encode_backlog,
    encode_commit,
    encode_connection,
    encode_subscription,
)
from pushhub.notifications.store.changes import notification_change


def as_lambda_has_it(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_lambda_has_it(each) for name, each in value.items()}
    return [as_lambda_has_it(each) for each in value] if isinstance(value, list) else value


def stream_record(before: Any = None, after: Any = None) -> dict[str, Any]:
    images = {"OldImage": before, "NewImage": after}
    present = {name: as_lambda_has_it(image) for name, image in images.items() if image}
    return {"dynamodb": {"ApproximateCreationDateTime": NOW / 1000, **present}}


def test_a_commit_is_written_and_removed() -> None:
    item = encode_commit(a_commit(7))
    written = CommitChange(commit=a_commit(7), removed=False, changed_at=NOW)
    assert notification_change(stream_record(after=item)) == written
    assert notification_change(stream_record(before=item)) == CommitChange(
        commit=a_commit(7), removed=True, changed_at=NOW
    )


def test_a_backlog_changes() -> None:
    before, after = a_busy_backlog(version=3), a_backlog(version=4, next=9)
    change = notification_change(stream_record(encode_backlog(before), encode_backlog(after)))
    assert change == BacklogChange(before=before, after=after, changed_at=NOW)
    assert notification_change(stream_record(after=encode_backlog(after))) == BacklogChange(
        before=None, after=after, changed_at=NOW
    )


def test_other_items_say_nothing() -> None:
    for item in (encode_connection(a_connection()), encode_subscription(a_subscription()), {"pk": {"S": "x"}}):
        assert notification_change(stream_record(after=item)) is None


def test_what_cannot_be_read_is_an_error() -> None:
    item = encode_commit(a_commit(7))
    del item["notifications"]
    with pytest.raises(Unreadable):
        notification_change(stream_record(after=item))
