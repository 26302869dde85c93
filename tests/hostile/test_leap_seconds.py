"""A leap second is a time that Python knows not: it is refused with a text, or read as the second before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.engine.world import PROJECT
from tests.fakes.gateway import http_event
from tests.web.protocols import SHOWN, served

from pushhub.base.errors import FieldRefused, Invalid
from pushhub.base.http_dates import http_date_ms
from pushhub.base.times import epoch_ms
from pushhub.engine.model.answer_rules import retry_after_ms
from pushhub.web.json import moment
from pushhub.web.signatures import read_signatures
from pushhub.webhooks.model.refusals import Refused, Unprocessable
from pushhub.webhooks.wire.fields import Fields, moment_in_query

LEAP = "2016-12-31T23:59:60Z"
IN_HEADERS = "Sat, 31 Dec 2016 23:59:60 GMT"
NOW = 1_483_228_789_000
"""Ten seconds before the second that comes before it, in epoch milliseconds."""

READERS = {
    "layers/pushhub/pushhub/base/http_dates.py": "answers of receivers and token servers",
    "layers/pushhub/pushhub/hub/api/call.py": "the hub protocol",
    "layers/pushhub/pushhub/web/json.py": "queues",
    "layers/pushhub/pushhub/web/signatures.py": "the end of a signature scheme",
    "layers/pushhub/pushhub/webhooks/wire/fields.py": "webhooks",
}
"""Files that read a stranger's time, and whose it is. Notifications take no time of their clients'."""
OUR_OWN = {
    "layers/pushhub/pushhub/base/times.py": "times that the hub wrote",
    "layers/pushhub/pushhub/engine/store/aws_nights.py": "files of the hub's own report",
    "layers/pushhub/pushhub/runtime/source_addresses.py": "a setting of the stack",
}


def test_every_place_that_reads_a_time_is_known() -> None:
    root = Path(__file__).parents[2]
    found = {
        str(each.relative_to(root))
        for folder in ("layers/pushhub/pushhub", "cli")
        for each in (root / folder).rglob("*.py")
        if any(name in each.read_text() for name in ("fromisoformat(", "parsedate_to_datetime(", "strptime("))
    }
    assert found == READERS.keys() | OUR_OWN.keys()


@pytest.mark.parametrize(
    ("read", "refusal"),
    [
        (lambda: moment({"until": LEAP}, "until"), Invalid),
        (lambda: read_signatures([{"preset": "outpost", "endsAt": LEAP}]), FieldRefused),
        (lambda: moment_in_query({"before": LEAP}, "before"), Refused),
        (lambda: Fields({"since": LEAP}).required_moment("since"), Unprocessable),
    ],
    ids=["queues", "signatures", "query of webhooks", "body of webhooks"],
)
def test_a_leap_second_in_a_request_is_refused(read: Callable[[], object], refusal: type[Exception]) -> None:
    with pytest.raises(refusal, match=r"20\d\d-\d\d-\d\d"):
        read()


def test_the_hub_protocol_refuses_it_in_its_own_shape() -> None:
    world = served("hub")
    path, shown = f"/api/stores/{PROJECT}/queues/accepted.json", SHOWN["hub"](PROJECT, world.token)
    answer = world.api.handle(http_event("GET", path, query=f"start_date={LEAP}", headers=shown))
    assert answer["statusCode"] == 422
    assert "is not a time such as" in answer["body"]


def test_a_leap_second_in_an_answer_is_the_second_before() -> None:
    assert http_date_ms(IN_HEADERS) == epoch_ms("2016-12-31T23:59:59Z")
    assert retry_after_ms(IN_HEADERS, NOW) == 10_000
    # But no other minute has more than 60 seconds, and what is no date is none
    assert http_date_ms("Sat, 31 Dec 2016 23:59:61 GMT") is None
    assert http_date_ms("60:60:60") is None
