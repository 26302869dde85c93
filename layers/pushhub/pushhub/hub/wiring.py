"""Puts the hub protocol together: its contributions to the engine, and its API."""

# ruff: noqa: PLC0415 (a function imports only what it uses)

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pushhub.cloud.settings import EnvironmentSetting, number, text
from pushhub.engine.model.reach import Scope
from pushhub.engine.protocol import OwnIds
from pushhub.engine.protocol import Protocol as WireProtocol
from pushhub.engine.target import TargetOffer
from pushhub.engine.wiring import BODIES_BUCKET, AwsEnginePorts, Engine
from pushhub.hub.model.internal_queues import DIALECT, INCOMING_QUEUE, mapping_of_queue

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.ends import EndNotes, Ends
    from pushhub.engine.ports import BodyStore, Descendants
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.ports import HubLog, HubSettings, TickingSchedulers
    from pushhub.hub.queues import HubQueues
    from pushhub.hub.search import HubFinder
    from pushhub.hub.target import HubTarget
    from pushhub.hub.ticks import HubTicks
    from pushhub.hub.watch import HubWatch
    from pushhub.web.api import Api, Route
    from pushhub.web.description import ApiDescription


HUB_TABLE = text("HUB_TABLE")
DESCENDANTS_LIMIT = number("DESCENDANTS_LIMIT", least=1, most=1_000_000)
"""Messages that may follow from one accepted message."""


class AwsHubPorts:
    """The ports the hub needs besides the engine's, on AWS."""

    def __init__(self, aws: AwsEnginePorts) -> None:
        self._aws = aws

    @property
    def _table(self) -> tuple[DynamoDBClient, str, Clock]:
        return self._aws.table(HUB_TABLE)

    @cached_property
    def settings(self) -> HubSettings:
        """Mappings, integrations, schedulers and parameters, on DynamoDB."""
        from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings

        return DynamoDBHubSettings(*self._table, self._aws.credentials)

    @cached_property
    def schedulers(self) -> TickingSchedulers:
        """The schedulers among the settings, on DynamoDB."""
        from pushhub.hub.store.dynamodb_schedulers import DynamoDBSchedulers

        return DynamoDBSchedulers(*self._table)

    @cached_property
    def log(self) -> HubLog:
        """The log of messages, on DynamoDB."""
        from pushhub.hub.store.dynamodb_log import DynamoDBHubLog

        return DynamoDBHubLog(*self._table)

    @cached_property
    def kept_bodies(self) -> BodyStore:
        """Bodies that are kept as long as hub messages, on S3 under a prefix whose objects are kept longer."""
        from pushhub.engine.store.s3_bodies import S3BodyStore

        bucket = self._aws.settings[BODIES_BUCKET]
        return S3BodyStore(self._aws.clients.of("s3"), bucket, prefix="hub")

    @cached_property
    def descendants(self) -> Descendants:
        """Counts the descendants of accepted messages, on DynamoDB."""
        from pushhub.engine.store.dynamodb_descendants import DynamoDBDescendants

        most = self._aws.settings[DESCENDANTS_LIMIT]
        return DynamoDBDescendants(*self._table, most=most)


class Hub:
    """The hub's use cases, each created on first use."""

    aws_ports = AwsHubPorts
    settings: ClassVar[dict[str, tuple[EnvironmentSetting[Any], ...]]] = {
        **dict.fromkeys(("ingest", "control", "wake"), (HUB_TABLE,)),
        **dict.fromkeys(("push", "poll"), (HUB_TABLE, DESCENDANTS_LIMIT)),
    }

    @staticmethod
    def routes() -> Sequence[Route[Any, Any]]:
        """Every route of the hub's API."""
        from pushhub.hub.api.api import ROUTES

        return ROUTES

    @staticmethod
    def description() -> ApiDescription:
        """The hub API's descriptions for the OpenAPI document."""
        from pushhub.hub.api.description import DESCRIPTION

        return DESCRIPTION

    def __init__(self, ports: AwsHubPorts, engine: Engine) -> None:
        self.ports = ports
        self._engine = engine
        self._outside = engine.ports

    @cached_property
    def protocol(self) -> WireProtocol:
        """The hub protocol's contributions to the engine."""
        return WireProtocol(
            name=DIALECT,
            targets=(TargetOffer((DIALECT,), self._target, Scope.PUBLIC, public=False),),
            queue_source=self._queues,
            internal=lambda queue: queue == INCOMING_QUEUE,
            # A service has three minutes to answer.
            long=lambda queue: mapping_of_queue(queue) is not None,
            watchers=(self._watch,),
            finder=self._finder,
            own_ids=self._own_ids,
            ticks=(lambda: self.ticks, lambda: self.ends),
            end_notes=self._end_notes,
            apis={"/api/": lambda: self.api},
            producer_apis={"/api/": lambda: self.posting_api},
        )

    @cached_property
    def intake(self) -> HubIntake:
        """Accepts messages of the hub."""
        from pushhub.hub.intake import HubIntake

        outside = self._outside
        return HubIntake(
            accept=self._engine.accept_bodies(self.ports.kept_bodies),
            messages=outside.messages,
            settings=self.ports.settings,
            log=self.ports.log,
            quotas=lambda: self._engine.quotas,
            index=lambda: outside.search_index,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def ticks(self) -> HubTicks:
        """Makes the ticks of schedulers."""
        from pushhub.hub.ticks import HubTicks

        outside = self._outside
        return HubTicks(
            schedulers=self.ports.schedulers,
            projects=outside.config,
            intake=lambda: self.intake,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def ends(self) -> Ends:
        """Tells of the ends of services' certificates and signature schemes."""
        from pushhub.engine.ends import Ends
        from pushhub.hub.ends import ServiceEnds

        outside = self._outside
        found = ServiceEnds(
            settings=self.ports.settings,
            projects=outside.config,
            log=self.ports.log,
            intake=lambda: self.intake,
            telemetry=outside.telemetry,
        )
        return Ends(notes=self._end_notes(), find=found.find, clock=outside.clock)

    def _end_notes(self) -> EndNotes:
        return self._outside.ends_of(DIALECT)

    @cached_property
    def posting_api(self) -> Api[Any, Any]:
        """The part of the hub's API that producers call."""
        from pushhub.hub.api.dialect import HubDialect
        from pushhub.hub.api.posting import ROUTES
        from pushhub.hub.api.use_cases import HubPosting
        from pushhub.web.api import Api

        dialect = HubDialect(self._outside.config)
        return Api(routes=ROUTES, use_cases=HubPosting(intake=self.intake), dialect=dialect)

    @cached_property
    def api(self) -> Api[Any, Any]:
        """The hub's API."""
        from pushhub.hub.api.api import ROUTES
        from pushhub.hub.api.dialect import HubDialect
        from pushhub.hub.api.use_cases import HubUseCases
        from pushhub.hub.health import ServiceHealths
        from pushhub.hub.integrations import HubIntegrations
        from pushhub.hub.messages import HubMessages
        from pushhub.hub.notices import HubNotices
        from pushhub.hub.settings import HubSettingsOfStore
        from pushhub.web.api import Api
        from pushhub.web.misspelt import Misspelt

        outside, settings = self._outside, self.ports.settings
        use_cases = HubUseCases(
            config=outside.config,
            settings=settings,
            notices=HubNotices(self.ports.log),
            intake=self.intake,
            of_store=HubSettingsOfStore(
                settings=settings,
                config=outside.config,
                calls=self._engine.stranger_calls,
                signing=self._engine.signing,
                gates=lambda: self._engine.gate_settings,
                clock=outside.clock,
            ),
            integrations=HubIntegrations(
                settings=settings,
                config=outside.config,
                calls=self._engine.stranger_calls,
                sender=outside.sender,
                credentials=self._engine.credentials,
                clock=outside.clock,
            ),
            messages=HubMessages(
                log=self.ports.log,
                messages=outside.messages,
                bodies=outside.bodies,
                retry_queue=lambda: outside.retry_queue,
                clock=outside.clock,
            ),
            healths=ServiceHealths(healths=lambda: self._engine.healths),
        )
        dialect = HubDialect(outside.config)
        return Api(routes=ROUTES, use_cases=use_cases, dialect=dialect, warnings=Misspelt(self.description))

    def _queues(self) -> HubQueues:
        from pushhub.hub.queues import HubQueues

        return HubQueues(settings=self.ports.settings)

    @staticmethod
    def _own_ids() -> OwnIds:
        from pushhub.hub.model.object_ids import from_object_id, to_object_id
        from pushhub.hub.search import KIND

        return OwnIds(kind=KIND, has_owner=False, to_engine=from_object_id, from_engine=to_object_id)

    def _finder(self) -> HubFinder:
        from pushhub.hub.search import HubFinder

        return HubFinder(log=self.ports.log, messages=self._outside.messages, bodies=self.ports.kept_bodies)

    def _watch(self) -> HubWatch:
        from pushhub.hub.watch import HubWatch

        return HubWatch(log=self.ports.log, clock=self._outside.clock)

    def _target(self) -> HubTarget:
        from pushhub.hub.effects import HubEffects
        from pushhub.hub.recorded_answers import RecordedAnswers
        from pushhub.hub.router import HubRouter
        from pushhub.hub.service_requests import ServiceRequests
        from pushhub.hub.target import HubTarget

        outside, settings, log = self._outside, self.ports.settings, self.ports.log
        return HubTarget(
            requests=ServiceRequests(
                config=outside.config,
                settings=settings,
                sending=self._engine.gate_sending,
                signing=self._engine.signing,
                credentials=self._engine.credentials,
            ),
            answers=RecordedAnswers(
                log=log, bodies=outside.bodies, kept_bodies=self.ports.kept_bodies, clock=outside.clock
            ),
            router=HubRouter(settings=settings, log=log, intake=self.intake, clock=outside.clock),
            effects=HubEffects(settings=settings, log=log, intake=self.intake, descendants=self.ports.descendants),
            clock=outside.clock,
        )
