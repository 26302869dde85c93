"""Roles through STS: who shows another external id than the trust policy demands does not get in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes.sts import FakeSts
from tests.sinks.examples import ACCOUNT, ROLE

from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.project import Project
from pushhub.sinks.store.sts_roles import StsRoles

HUB = "arn:aws:iam::999999999999:role/pushhub-PushFunctionRole"
OTHER_PROJECT = "5f0000000000000000000002"
URL = f"sqs://eu-west-1/{ACCOUNT}/orders?role={ROLE}"


@pytest.fixture
def sts() -> Iterator[FakeSts]:
    with FakeSts(HUB) as started:
        yield started


@pytest.fixture
def world(sts: FakeSts) -> World:
    """A hub that asks this STS, with two projects."""
    client: Any = boto3.client(
        "sts",
        "eu-west-1",
        endpoint_url=sts.url,
        aws_access_key_id="AKIA0000000000000000",
        aws_secret_access_key="s" * 40,
        config=Config(retries={"total_max_attempts": 1}),
    )
    world = World()
    world.ports.assume_role = StsRoles(lambda: client)  # type: ignore[assignment]
    for project, secret in ((PROJECT, "one"), (OTHER_PROJECT, "another")):
        world.config.put_project(Project(project_id=project, created_at=0, external_secret=secret))
    return world


def trust(principal: str, external_id: str | None) -> dict[str, Any]:
    """A trust policy, as docs/destinations.md has it."""
    condition = {} if external_id is None else {"Condition": {"StringEquals": {"sts:ExternalId": external_id}}}
    statement = {"Effect": "Allow", "Principal": {"AWS": principal}, "Action": "sts:AssumeRole", **condition}
    return {"Version": "2012-10-17", "Statement": [statement]}


def delivered(world: World) -> tuple[set[DeliveryState], int]:
    """The states of the delivery of a message that is posted now, and how many requests there were."""
    world.make_queue("q", subscribers(URL))
    [message] = world.post("q", b"x")
    world.run(seconds=5)
    return {each.state for each in world.deliveries(message)}, len(world.sender.requests)


def test_a_role_that_demands_the_projects_external_id_lets_its_hub_in(world: World, sts: FakeSts) -> None:
    external_id = world.hub.engine.external_ids.of(PROJECT)
    sts.trusts[ROLE] = trust(HUB, external_id)
    states, requests = delivered(world)
    assert (states, requests) == ({DeliveryState.DELIVERED}, 1)
    assert sts.asked == [external_id]
    # With the keys that the role has given
    assert world.sender.requests[0].headers["X-Amz-Security-Token"] == "t-1"


@pytest.mark.parametrize("whose", ["another project's", "another application's", "the owner's own"])
def test_a_role_that_demands_any_other_external_id_lets_nobody_in(world: World, sts: FakeSts, whose: str) -> None:
    # Given a role of another customer of the same hub, which a tenant has named
    ids = world.hub.engine.external_ids
    others = {
        "another project's": ids.of(OTHER_PROJECT),
        "another application's": ids.of(PROJECT, "webhooks/app_1"),
        "the owner's own": "chosen-by-hand",
    }
    sts.trusts[ROLE] = trust(HUB, others[whose])
    # When a message is to go there
    states, requests = delivered(world)
    # Then nothing is sent, and the delivery waits with the reason
    assert DeliveryState.DELIVERED not in states
    assert requests == 0
    assert sts.asked == [ids.of(PROJECT)]
    assert others[whose] != ids.of(PROJECT)


def test_a_role_that_trusts_somebody_else_or_is_not_there_lets_nobody_in(world: World, sts: FakeSts) -> None:
    sts.trusts[ROLE] = trust("arn:aws:iam::111122223333:root", world.hub.engine.external_ids.of(PROJECT))
    assert delivered(world)[1] == 0
    sts.trusts.clear()
    world.run(seconds=61)
    assert world.sender.requests == []
