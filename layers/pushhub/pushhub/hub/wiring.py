"""Builds the use cases of the hub protocol, as :mod:`pushhub.engine.wiring` does those of the engine."""

# ruff: noqa: PLC0415 (imports inside functions are the point of this module)

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pushhub.cloud.observability import telemetry
from pushhub.engine import wiring

if TYPE_CHECKING:
    from pushhub.engine.ports import BodyStore
    from pushhub.hub.api.api import HubApi
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.ports import HubLog, HubSettings
    from pushhub.hub.queues import HubQueues
    from pushhub.hub.target import HubTarget
    from pushhub.hub.ticks import HubTicks
    from pushhub.hub.watch import HubWatch

__all__ = ["hub_api", "hub_queues", "hub_target", "hub_ticks", "hub_watch"]


@cache
def _settings() -> HubSettings:
    from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings

    return DynamoDBHubSettings(wiring.client("dynamodb"), wiring.settings().text("HUB_TABLE"), wiring.clock())


@cache
def _log() -> HubLog:
    from pushhub.hub.store.dynamodb_log import DynamoDBHubLog

    return DynamoDBHubLog(wiring.client("dynamodb"), wiring.settings().text("HUB_TABLE"), wiring.clock())


@cache
def _kept_bodies() -> BodyStore:
    """Bodies that stay as long as messages of the hub do."""
    from pushhub.engine.store.s3_bodies import S3BodyStore

    return S3BodyStore(wiring.client("s3"), wiring.settings().text("BODIES_BUCKET"), prefix="hub")


@cache
def _intake() -> HubIntake:
    from pushhub.hub.intake import HubIntake

    return HubIntake(
        messages=wiring.message_store(),
        bodies=_kept_bodies(),
        settings=_settings(),
        log=_log(),
        clock=wiring.clock(),
        telemetry=telemetry,
        next_worker=wiring.config_store().next_worker,
    )


@cache
def hub_queues() -> HubQueues:
    """All queues, the hub's internal ones among them."""
    from pushhub.hub.queues import HubQueues

    return HubQueues(config=wiring.config_store(), settings=_settings())


@cache
def hub_watch() -> HubWatch:
    """Keeps the log in step with deliveries."""
    from pushhub.hub.watch import HubWatch

    return HubWatch(log=_log(), clock=wiring.clock())


@cache
def hub_target() -> HubTarget:
    """Delivers in the hub's dialect."""
    from pushhub.hub.effects import HubEffects
    from pushhub.hub.router import HubRouter
    from pushhub.hub.store.pattern_process import matches
    from pushhub.hub.target import HubTarget

    return HubTarget(
        config=wiring.config_store(),
        settings=_settings(),
        log=_log(),
        sender=wiring.sender(),
        bodies=wiring.body_store(),
        kept_bodies=_kept_bodies(),
        router=HubRouter(settings=_settings(), log=_log(), intake=_intake(), clock=wiring.clock(), matches=matches),
        effects=HubEffects(settings=_settings(), log=_log(), intake=_intake()),
        clock=wiring.clock(),
    )


@cache
def hub_ticks() -> HubTicks:
    """Makes the ticks of schedulers."""
    from pushhub.hub.ticks import HubTicks

    return HubTicks(settings=_settings(), intake=_intake(), clock=wiring.clock(), telemetry=telemetry)


@cache
def hub_api() -> HubApi:
    """The hub's API."""
    from pushhub.hub.api.api import HubApi
    from pushhub.hub.integrations import HubIntegrations
    from pushhub.hub.messages import HubMessages
    from pushhub.hub.settings import HubSettingsOfStore

    config, settings, clock = wiring.config_store(), _settings(), wiring.clock()
    return HubApi(
        config=config,
        settings=settings,
        log=_log(),
        intake=_intake(),
        of_store=HubSettingsOfStore(settings=settings, config=config, check_url=wiring.check_url, clock=clock),
        integrations=HubIntegrations(
            settings=settings, config=config, check_url=wiring.check_url, sender=wiring.sender(), clock=clock
        ),
        messages=HubMessages(
            log=_log(),
            messages=wiring.message_store(),
            bodies=wiring.body_store(),
            retry_queue=wiring.retry_queue,
            clock=clock,
        ),
    )
