"""``pushhub deploy doctor`` says when a former key may go."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import boto3
import pytest
from cli.operators.deployment import Deployment
from cli.operators.former_keys import former_key_checks
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cloud import aws_services as aws
from tests.contract.samples import PROJECT
from tests.operating import test_doctor, test_reseal

stack = test_reseal.stack
account = test_doctor.account

LONG_AGO = 1_000
"""Days after which nothing is left of what ends by itself."""
OUTPUTS = {
    "ConfigTableName": aws.CONFIG_TABLE,
    "HubTableName": aws.HUB_TABLE,
    "WebhooksTableName": aws.WEBHOOKS_TABLE,
    "BodiesBucketName": aws.BUCKET,
    "RecordsBucketName": test_reseal.RECORDS_BUCKET,
}


def asked(here: test_reseal.Stack, changed: date | None = None) -> dict[str, tuple[str, str]]:
    """What the doctor says."""
    hub = Deployment("acme", {**OUTPUTS, "VaultKeyArn": here.first}, boto3.Session(), {})
    checks = former_key_checks(hub, changed=changed, now=datetime.now(UTC))
    return {each.name: (each.state, each.says) for each in checks}


@pytest.fixture
def here(stack: Callable[[], test_reseal.Stack]) -> test_reseal.Stack:
    """A stack whose key was changed long ago, and that knows the former one."""
    created = stack()
    created.chosen["OldKmsKeyArns"] = created.other
    created.deployed_days_ago = LONG_AGO
    return created


def test_without_former_keys_nothing_is_looked_at(here: test_reseal.Stack) -> None:
    here.chosen["OldKmsKeyArns"] = ""
    assert asked(here) == {"former keys": ("ok", "there are none")}


def test_a_key_may_go_when_nothing_is_sealed_or_encrypted_with_it(here: test_reseal.Stack) -> None:
    # Given values that it sealed, and objects without end that it encrypted
    test_reseal.seed(here, [f"secret-{number}" for number in range(10)], key=here.other)
    for name, bucket in test_reseal.LASTING.items():
        here.keeps(bucket, name, here.other)
    here.keeps(test_reseal.RECORDS_BUCKET, "jobs/report.py", here.other)
    # Then they are counted, with what does them
    [(state, says)] = asked(here).values()
    assert state == "warning"
    for each in (
        "sealed values (pushhub reseal)",
        "2 objects below hub/ (pushhub reseal)",
        "1 objects below settled/ (pushhub reseal)",
        "1 objects below jobs/ (make report-upload)",
    ):
        assert each in says
    # When that is done, then it may go
    here.keeps(test_reseal.RECORDS_BUCKET, "jobs/report.py", here.first)
    assert here.run()[0] == 0
    [(name, (state, says))] = asked(here).items()
    assert (name, state) == (f"former key {here.other}", "ok")
    assert "may go" in says


def test_what_ends_by_itself_is_waited_for(here: test_reseal.Stack) -> None:
    # Given a key that was changed fifty days ago, in a hub that keeps payloads of webhooks for longer than that
    here.deployed_days_ago = 50
    here.chosen |= {"RecordsRetentionDays": "30", "BodyVersionsDays": "0"}
    for name in (f"bodies/{PROJECT}/1", f"webhooks/{PROJECT}/1"):
        here.keeps(aws.BUCKET, name, here.first)
    over = datetime.now(UTC).date() - timedelta(days=50) + timedelta(days=462)
    assert [*asked(here).values()] == [("warning", f"wait for what ends by itself: payloads of webhooks until {over}")]
    # And an update since does not begin the time again, if it is said when the key changed
    here.deployed_days_ago = 0
    [(_, says)] = asked(here).values()
    assert "messages in queues until" in says
    [(state, says)] = asked(here, datetime.now(UTC).date() - timedelta(days=LONG_AGO)).values()
    assert (state, "may go" in says) == ("ok", True)


def test_former_versions_of_bodies_are_waited_for(here: test_reseal.Stack) -> None:
    here.deployed_days_ago = 50
    here.chosen |= {"RecordsRetentionDays": "30", "BodyVersionsDays": "20"}
    here.keeps(aws.BUCKET, f"bodies/{PROJECT}/1", here.first)
    [(_, says)] = asked(here).values()
    assert "bodies until" in says


def test_what_cannot_be_opened_keeps_every_key(here: test_reseal.Stack) -> None:
    test_reseal.seed(here, [f"secret-{number}" for number in range(10)], key=here.other)
    here.gone.add(here.other)
    [(state, says)] = asked(here).values()
    assert (state, "keep every key" in says) == ("wrong", True)


def test_the_doctor_asks_of_every_stack(
    account: test_doctor.Account, hub: ServedHub, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PUSHHUB_URL")
    assert test_doctor.found(typed, "--stack", "acme", "--role-arn", "none")["former keys"][0] == "ok"
