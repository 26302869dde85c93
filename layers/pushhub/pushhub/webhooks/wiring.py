"""Puts webhooks together: their contributions to the engine, and their API."""

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
from pushhub.webhooks.model.internal_queues import CONSENT_SCHEME, PROTOCOL, READER_SCHEME, queue_of, queue_uid

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.ends import EndNote, EndNotes, Ends
    from pushhub.engine.ports import BodyStore
    from pushhub.web.api import Api, Route
    from pushhub.web.description import ApiDescription
    from pushhub.webhooks.api.api import WebhooksApi
    from pushhub.webhooks.api.dialect import WebhooksDialect
    from pushhub.webhooks.applications.applications import WebhooksApplications
    from pushhub.webhooks.applications.connectors import Connectors, ConnectorStore
    from pushhub.webhooks.applications.event_types import WebhooksEventTypes
    from pushhub.webhooks.applications.integrations import AppIntegrations, AppIntegrationStore
    from pushhub.webhooks.applications.portal import Portal, PortalFrames, PortalTokens
    from pushhub.webhooks.endpoints.autoconfigs import Autoconfigs, AutoconfigStore
    from pushhub.webhooks.endpoints.consent import ConsentTarget
    from pushhub.webhooks.endpoints.destinations import Destinations
    from pushhub.webhooks.endpoints.disabling import WebhooksDisabling
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.endpoints.gates import EndpointGates
    from pushhub.webhooks.endpoints.signature_defaults import SignatureDefaults
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.endpoints.transformations import Transformations
    from pushhub.webhooks.messages.consumers import ConsumerStore, PollingConsumers
    from pushhub.webhooks.messages.consuming import ApplicationTakesIn
    from pushhub.webhooks.messages.idempotency import Repeats
    from pushhub.webhooks.messages.intake import WebhooksIntake
    from pushhub.webhooks.messages.listing import Listing
    from pushhub.webhooks.messages.messages import WebhooksMessages
    from pushhub.webhooks.messages.named_fields import WebhooksFields
    from pushhub.webhooks.messages.poller import Places, WebhooksPoller
    from pushhub.webhooks.messages.ports import AttemptLog, IdempotencyKeys, MessageLog
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.messages.search import WebhooksFinder
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.operational.operational import Operational, OperationalCounts
    from pushhub.webhooks.ports import Applications, Endpoints, EventTypes, RequestKey, Scripts
    from pushhub.webhooks.queues import WebhooksQueues
    from pushhub.webhooks.resending.tasks import TaskRuns, Tasks, TaskStore
    from pushhub.webhooks.sending.target import WebhookTarget
    from pushhub.webhooks.sources.arrivals import ArrivalCounts, Arrivals
    from pushhub.webhooks.sources.sources import WebhooksSources
    from pushhub.webhooks.store.dynamodb_logs import DynamoDBWebhooksLogs
    from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings
    from pushhub.webhooks.streams.events import StreamEvents
    from pushhub.webhooks.streams.kicks import Kicks
    from pushhub.webhooks.streams.log import StreamLog
    from pushhub.webhooks.streams.reading import Readers, ReaderTarget
    from pushhub.webhooks.streams.sinks import StreamSinks
    from pushhub.webhooks.streams.streams import WebhooksStreams


WEBHOOKS_TABLE = text("WEBHOOKS_TABLE")
IDEMPOTENCY_HOURS = number("IDEMPOTENCY_HOURS", least=1, most=336)
"""Hours for which a request is recognized by its idempotency key."""
WAKE_FUNCTION = text("WAKE_FUNCTION")
"""The function that works on background tasks. It does not have this setting itself: that would be a circle."""
TRANSFORM_FUNCTION = text("TRANSFORM_FUNCTION")
"""The function that runs the code of endpoints."""


PATHS = ("/api/v1/", "/ingest/api/v1/", "/ingest/in/")
"""Beginnings of the paths of the API: Svix's, those of its ingest, and the URLs of sources."""


class AwsWebhooksPorts:
    """What webhooks need besides the engine's ports, on AWS."""

    def __init__(self, aws: AwsEnginePorts) -> None:
        self._aws = aws

    @property
    def _table(self) -> tuple[DynamoDBClient, str, Clock]:
        return self._aws.table(WEBHOOKS_TABLE)

    @cached_property
    def _settings(self) -> DynamoDBWebhooksSettings:
        from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings

        return DynamoDBWebhooksSettings(*self._table, self._aws.credentials)

    @property
    def applications(self) -> Applications:
        """Applications, on DynamoDB."""
        return self._settings

    @property
    def endpoints(self) -> Endpoints:
        """Endpoints, on DynamoDB."""
        return self._settings

    @property
    def event_types(self) -> EventTypes:
        """Event types, on DynamoDB."""
        return self._settings

    @cached_property
    def idempotency_keys(self) -> IdempotencyKeys:
        """Requests that may be repeated, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_keys import DynamoDBIdempotencyKeys

        return DynamoDBIdempotencyKeys(*self._table)

    @cached_property
    def portal_tokens(self) -> PortalTokens:
        """Tokens of the owners of applications, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_portal import DynamoDBPortalTokens

        return DynamoDBPortalTokens(*self._table)

    @cached_property
    def portal_frames(self) -> PortalFrames:
        """Who may show portals in frames, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames

        return DynamoDBPortalFrames(*self._table)

    @cached_property
    def integration_store(self) -> AppIntegrationStore:
        """Integrations, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_integrations import DynamoDBAppIntegrations

        return DynamoDBAppIntegrations(*self._table)

    @cached_property
    def connector_store(self) -> ConnectorStore:
        """Connectors, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_connectors import DynamoDBConnectors

        return DynamoDBConnectors(*self._table)

    @cached_property
    def autoconfig_store(self) -> AutoconfigStore:
        """Autoconfigurations, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_autoconfigs import DynamoDBAutoconfigs

        return DynamoDBAutoconfigs(*self._table)

    @cached_property
    def task_store(self) -> TaskStore:
        """Background tasks, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_tasks import DynamoDBTasks

        return DynamoDBTasks(*self._table)

    @property
    def task_runs(self) -> TaskRuns:
        """Starts runs that work on background tasks, on Lambda."""
        from pushhub.webhooks.store.lambda_task_runs import LambdaTaskRuns

        return LambdaTaskRuns(self._aws.clients, self._aws.settings.get(WAKE_FUNCTION, ""))

    @property
    def scripts(self) -> Scripts:
        """Runs the code of endpoints, on Lambda."""
        from pushhub.webhooks.store.lambda_scripts import LambdaScripts

        return LambdaScripts(self._aws.clients, self._aws.settings[TRANSFORM_FUNCTION])

    @cached_property
    def operational_counts(self) -> OperationalCounts:
        """Counts of operational events sent, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_tasks import DynamoDBOperationalCounts

        return DynamoDBOperationalCounts(*self._table)

    @cached_property
    def arrival_counts(self) -> ArrivalCounts:
        """Counts of what sources have turned away, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_arrivals import DynamoDBArrivalCounts

        return DynamoDBArrivalCounts(*self._table)

    @cached_property
    def places(self) -> Places:
        """Places of consumers, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_places import DynamoDBPlaces

        return DynamoDBPlaces(*self._table)

    @cached_property
    def consumers(self) -> ConsumerStore:
        """Consumers of polling endpoints, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_consumers import DynamoDBConsumers

        return DynamoDBConsumers(*self._table)

    @cached_property
    def readers(self) -> Readers:
        """Where the sinks of streams are, on DynamoDB."""
        from pushhub.webhooks.store.dynamodb_readers import DynamoDBReaders

        return DynamoDBReaders(*self._table)

    @cached_property
    def end_notes(self) -> EndNotes:
        """What is to be told of certificates' ends, on DynamoDB."""
        from pushhub.engine.store.dynamodb_ends import DynamoDBEndNotes

        return DynamoDBEndNotes(*self._table)

    @cached_property
    def scheme_end_notes(self) -> EndNotes:
        """What is to be told of signature schemes' ends, on DynamoDB."""
        from pushhub.engine.store.dynamodb_ends import SCHEMES, DynamoDBEndNotes

        return DynamoDBEndNotes(*self._table, SCHEMES)

    @cached_property
    def _logs(self) -> DynamoDBWebhooksLogs:
        from pushhub.webhooks.store.dynamodb_logs import DynamoDBWebhooksLogs

        return DynamoDBWebhooksLogs(*self._table)

    @property
    def message_log(self) -> MessageLog:
        """Messages as they are listed, on DynamoDB."""
        return self._logs

    @property
    def attempt_log(self) -> AttemptLog:
        """Attempts, on DynamoDB."""
        return self._logs

    @cached_property
    def webhook_bodies(self) -> BodyStore:
        """Bodies that are kept as long as messages of webhooks, on S3 under a prefix whose objects are kept longer."""
        from pushhub.engine.store.s3_bodies import S3BodyStore

        return S3BodyStore(self._aws.clients.of("s3"), self._aws.settings[BODIES_BUCKET], prefix=PROTOCOL)

    @property
    def idempotency_ms(self) -> int:
        """How long a request is recognized by its key, milliseconds."""
        return self._aws.settings[IDEMPOTENCY_HOURS] * 3_600_000


class Webhooks:
    """The use cases of webhooks, each made on first use."""

    aws_ports = AwsWebhooksPorts
    settings: ClassVar[dict[str, tuple[EnvironmentSetting[Any], ...]]] = {
        "ingest": (WEBHOOKS_TABLE, IDEMPOTENCY_HOURS),
        "control": (WEBHOOKS_TABLE, IDEMPOTENCY_HOURS, WAKE_FUNCTION, TRANSFORM_FUNCTION),
        "push": (WEBHOOKS_TABLE, TRANSFORM_FUNCTION),
        "poll": (WEBHOOKS_TABLE, TRANSFORM_FUNCTION),
        "wake": (WEBHOOKS_TABLE,),
    }

    @staticmethod
    def routes() -> Sequence[Route[Any, Any]]:
        """Every route of the webhooks API."""
        from pushhub.webhooks.api.api import ROUTES

        return ROUTES

    @staticmethod
    def description() -> ApiDescription:
        """The webhooks API's descriptions for the OpenAPI document."""
        from pushhub.webhooks.api.description import DESCRIPTION

        return DESCRIPTION

    def __init__(self, ports: AwsWebhooksPorts, engine: Engine) -> None:
        self.ports = ports
        self._engine = engine
        self._outside = engine.ports

    @cached_property
    def protocol(self) -> WireProtocol:
        """Webhooks' contributions to the engine."""
        return WireProtocol(
            name=PROTOCOL,
            targets=(
                TargetOffer((PROTOCOL,), self._target, self._scope, public=False),
                # Endpoints are asked at HTTP URLs only.
                TargetOffer((CONSENT_SCHEME,), self._consent_target, Scope.PUBLIC, public=False),
                TargetOffer((READER_SCHEME,), self._reader_target, self._scope, public=False),
                # Nothing is ever pushed to a poller.
                TargetOffer(("poller",), self._reader_target, Scope.PUBLIC, public=False, headers=False),
            ),
            queue_source=self._queues,
            finder=self._finder,
            own_ids=self._own_ids,
            subscriber_events=self._disabling,
            watchers=(lambda: self.operational,),
            ticks=(lambda: self.tasks, lambda: self.certificate_ends, lambda: self.signature_ends),
            end_notes=lambda: self.ports.scheme_end_notes,
            project_work=(lambda: self.tasks,),
            apis=dict.fromkeys(PATHS, lambda: self.api),
            producer_apis=dict.fromkeys(PATHS, lambda: self.posting_api),
            takes_in={"applications": lambda: self.takes_in},
        )

    @cached_property
    def applications(self) -> WebhooksApplications:
        """Applications."""
        from pushhub.webhooks.applications.applications import WebhooksApplications

        return WebhooksApplications(
            store=self.ports.applications, notes=self._engine.change_notes, clock=self._outside.clock
        )

    @cached_property
    def event_types(self) -> WebhooksEventTypes:
        """Event types."""
        from pushhub.webhooks.applications.event_types import WebhooksEventTypes

        return WebhooksEventTypes(store=self.ports.event_types, clock=self._outside.clock)

    @cached_property
    def endpoints(self) -> WebhooksEndpoints:
        """Endpoints."""
        from pushhub.webhooks.endpoints.consent import Questions
        from pushhub.webhooks.endpoints.endpoint_changes import EndpointChanges
        from pushhub.webhooks.endpoints.endpoint_checks import EndpointChecks
        from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints

        ports = self.ports
        return WebhooksEndpoints(
            applications=ports.applications,
            store=ports.endpoints,
            checks=EndpointChecks(missing_types=self.event_types.missing, targets=lambda: self._engine.targets),
            changes=EndpointChanges(
                store=ports.endpoints,
                notes=self._engine.change_notes,
                signatures=self.signatures,
                credentials=self._engine.credentials,
                tell=self.operational.endpoint,
                hurry=self._hurry,
                clock=self._outside.clock,
            ),
            signatures=self.signatures,
            credentials=self._engine.credentials,
            questions=Questions(
                accept=self._engine.accept,
                messages=self._outside.messages,
                vault=self._outside.vault,
                clock=self._outside.clock,
            ),
            clock=self._outside.clock,
        )

    @cached_property
    def signatures(self) -> EndpointSignatures:
        """What signs the requests of endpoints."""
        from pushhub.webhooks.endpoints.signatures import EndpointSignatures

        outside = self._outside
        return EndpointSignatures(vault=outside.vault, note_end=self._note_scheme_end, clock=outside.clock)

    def _note_scheme_end(self, note: EndNote) -> None:
        if note.group:
            self.ports.scheme_end_notes.note_end(note)
        else:
            self._engine.note_inherited_end(note)

    @cached_property
    def signature_defaults(self) -> SignatureDefaults:
        """How endpoints are signed: each by itself, by application, and by project."""
        from pushhub.webhooks.endpoints.signature_defaults import SignatureDefaults

        return SignatureDefaults(
            applications=self.ports.applications,
            endpoints=self.endpoints,
            signatures=self.signatures,
            projects=self._outside.config,
            notes=self._engine.change_notes,
            note_end=self._note_scheme_end,
            clock=self._outside.clock,
        )

    @cached_property
    def signature_ends(self) -> Ends:
        """Tells of the ends of signature schemes."""
        from pushhub.engine.ends import Ends
        from pushhub.webhooks.operational.ends import SignatureEnds

        found = SignatureEnds(
            endpoints=self.ports.endpoints,
            applications=self.ports.applications,
            projects=self._outside.config,
            operational=self.operational,
        )
        return Ends(notes=self.ports.scheme_end_notes, find=found.find, clock=self._outside.clock)

    @cached_property
    def _destinations(self) -> Destinations:
        from pushhub.webhooks.endpoints.destinations import Destinations

        return Destinations(
            endpoints=self.endpoints,
            credentials=self._engine.credentials,
            external_ids=self._engine.external_ids,
        )

    @cached_property
    def _transformations(self) -> Transformations:
        from pushhub.webhooks.endpoints.transformations import Transformations

        outside = self._outside
        return Transformations(
            endpoints=self.endpoints,
            scripts=self.ports.scripts,
            vault=outside.vault,
            credentials=self._engine.credentials,
            within=self._engine.targets.within,
            clock=outside.clock,
        )

    @cached_property
    def gates(self) -> EndpointGates:
        """What the receivers of endpoints demand."""
        from pushhub.webhooks.endpoints.gates import EndpointGates

        return EndpointGates(
            endpoints=self.endpoints,
            vault=self._outside.vault,
            projects=self._outside.config,
            refusal=self._engine.stranger_calls.refusal,
            within=self._engine.targets.within,
            notes=self.ports.end_notes,
            clock=self._outside.clock,
        )

    @cached_property
    def certificate_ends(self) -> Ends:
        """Tells of certificates' ends."""
        from pushhub.engine.ends import Ends
        from pushhub.webhooks.operational.ends import EndpointEnds

        ends = EndpointEnds(endpoints=self.ports.endpoints, tell=self.operational.found_out)
        return Ends(notes=self.ports.end_notes, find=ends.find, clock=self._outside.clock)

    @cached_property
    def repeats(self) -> Repeats:
        """Answers repeated requests."""
        from pushhub.webhooks.messages.idempotency import Repeats

        ports = self.ports
        return Repeats(
            keys=ports.idempotency_keys,
            clock=self._outside.clock,
            kept_ms=ports.idempotency_ms,
            vault=lambda: self._outside.vault,
        )

    @cached_property
    def portal(self) -> Portal:
        """Tokens of the owners of applications."""
        from pushhub.webhooks.applications.portal import Portal

        return Portal(tokens=self.ports.portal_tokens, frames=self.ports.portal_frames, clock=self._outside.clock)

    @cached_property
    def integrations(self) -> AppIntegrations:
        """Integrations, each with a key to its application."""
        from pushhub.webhooks.applications.integrations import AppIntegrations

        return AppIntegrations(store=self.ports.integration_store, portal=self.portal, clock=self._outside.clock)

    @cached_property
    def connectors(self) -> Connectors:
        """Connectors, templates of transformations."""
        from pushhub.webhooks.applications.connectors import Connectors

        return Connectors(store=self.ports.connector_store, clock=self._outside.clock)

    @cached_property
    def autoconfigs(self) -> Autoconfigs:
        """Autoconfigurations, each with a key that sets up one endpoint."""
        from pushhub.webhooks.endpoints.autoconfigs import Autoconfigs

        return Autoconfigs(
            store=self.ports.autoconfig_store,
            portal=self.portal,
            endpoints=self.endpoints,
            base_url=self._outside.base_url,
            clock=self._outside.clock,
        )

    @cached_property
    def listing(self) -> Listing:
        """Messages as they are listed."""
        from pushhub.webhooks.messages.listing import Listing

        return Listing(
            messages=self._outside.messages,
            lines=self.ports.message_log,
            next_id=self._engine.accept.next_id,
            clock=self._outside.clock,
        )

    @cached_property
    def operational(self) -> Operational:
        """Sends operational events to projects."""
        from pushhub.webhooks.operational.operational import Operational, OperationalPosts

        ports, outside = self.ports, self._outside
        posts = OperationalPosts(intake=self.intake, endpoints=ports.endpoints)
        return Operational(
            applications=ports.applications,
            say=posts.say,
            counts=ports.operational_counts,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )

    @cached_property
    def tasks(self) -> Tasks:
        """Background tasks."""
        from pushhub.webhooks.model.task import TaskKind
        from pushhub.webhooks.resending.replay import Counting, EngineTries, Erasing, Replay
        from pushhub.webhooks.resending.tasks import Tasks

        ports, clock = self.ports, self._outside.clock
        log = self.listing

        def replay() -> Replay:
            tries = EngineTries(
                messages=self.messages,
                deliveries=self._outside.messages,
                resend=self._engine.resend,
                bodies=ports.webhook_bodies,
            )
            return Replay(
                endpoints=ports.endpoints, log=log, tries=tries, flags_for=self.event_types.flags_for, clock=clock
            )

        def counting() -> Counting:
            return Counting(next_app=self.applications.next_after, log=log, clock=clock)

        def note_id(project_id: str, key: RequestKey, new_id: str) -> str:
            # The function that works on tasks answers no requests, and has no setting for how long they are known.
            return self.repeats.task(project_id, key, new_id)

        return Tasks(
            store=ports.task_store,
            runs=ports.task_runs,
            note_id=note_id,
            workers={
                TaskKind.RECOVER: replay,
                TaskKind.REPLAY_MISSING: replay,
                TaskKind.BULK_REPLAY: replay,
                TaskKind.EXPUNGE: lambda: Erasing(log=log, expunge=self.messages.expunge, clock=clock),
                TaskKind.APP_STATS: counting,
                TaskKind.EVENT_TYPES: counting,
            },
            ended=self.operational.task,
            clock=clock,
        )

    @cached_property
    def dialect(self) -> WebhooksDialect:
        """Authenticates callers."""
        from pushhub.webhooks.api.dialect import WebhooksDialect

        return WebhooksDialect(
            tokens=self._outside.config,
            portal=lambda: self.portal,
            applications=self.ports.applications,
            endpoints=self.ports.endpoints,
            targets=lambda: self._engine.targets,
        )

    @cached_property
    def posting(self) -> WebhooksPosting:
        """Accepts messages."""
        from pushhub.webhooks.messages.payload_check import PayloadCheck
        from pushhub.webhooks.messages.posting import WebhooksPosting
        from pushhub.webhooks.messages.recipients import Recipients

        ports, outside = self.ports, self._outside
        payloads = PayloadCheck(event_types=ports.event_types, telemetry=outside.telemetry, clock=outside.clock)
        return WebhooksPosting(
            applications=self.applications,
            payloads=payloads,
            recipients=Recipients(endpoints=ports.endpoints, type_flags=payloads.flags, clock=outside.clock),
            intake=self.intake,
            log=self.listing,
            repeats=self.repeats,
            quotas=lambda: self._engine.quotas,
        )

    @cached_property
    def takes_in(self) -> ApplicationTakesIn:
        """Takes in what the hub consumes for applications."""
        from pushhub.webhooks.messages.consuming import ApplicationTakesIn

        return ApplicationTakesIn(applications=self.applications, posting=self.posting, projects=self._outside.config)

    @cached_property
    def sources(self) -> WebhooksSources:
        """Sources."""
        from pushhub.webhooks.sources.sources import WebhooksSources

        outside = self._outside
        return WebhooksSources(
            store=self.ports.applications,
            notes=self._engine.change_notes,
            vault=outside.vault,
            base_url=outside.base_url,
            clock=outside.clock,
        )

    @cached_property
    def streams(self) -> WebhooksStreams:
        """Streams."""
        from pushhub.webhooks.streams.streams import WebhooksStreams

        return WebhooksStreams(
            store=self.ports.applications, notes=self._engine.change_notes, clock=self._outside.clock
        )

    @cached_property
    def stream_events(self) -> StreamEvents:
        """Accepts events of streams."""
        from pushhub.webhooks.streams.events import StreamEvents

        return StreamEvents(
            streams=self.streams,
            recipients=self.posting.recipients,
            intake=self.intake,
            quotas=lambda: self._engine.quotas,
            kicks=lambda: self._kicks,
            clock=self._outside.clock,
        )

    @cached_property
    def _kicks(self) -> Kicks:
        from pushhub.webhooks.streams.kicks import Kicks

        outside = self._outside
        return Kicks(accept=self._engine.accept, messages=outside.messages, clock=outside.clock)

    @cached_property
    def _stream_log(self) -> StreamLog:
        from pushhub.webhooks.streams.log import StreamLog

        return StreamLog(
            messages=self._outside.messages,
            lines=self.listing,
            bodies=self.ports.webhook_bodies,
            clock=self._outside.clock,
        )

    @cached_property
    def _stream_sinks(self) -> StreamSinks:
        from pushhub.webhooks.streams.sinks import StreamSinks

        return StreamSinks(
            endpoints=self.endpoints,
            readers=self.ports.readers,
            kicks=self._kicks,
            log=self._stream_log,
            credentials=self._engine.credentials,
            external_ids=self._engine.external_ids,
            clock=self._outside.clock,
        )

    def _reader_target(self) -> ReaderTarget:
        from pushhub.webhooks.streams.forms import BatchForms
        from pushhub.webhooks.streams.reading import ReaderTarget

        return ReaderTarget(
            applications=self.ports.applications,
            endpoints=self.ports.endpoints,
            readers=self.ports.readers,
            log=self._stream_log,
            credentials=self._engine.credentials,
            forms=BatchForms(vault=self._outside.vault, scripts=lambda: self.ports.scripts),
            targets=lambda: self._engine.targets,
            clock=self._outside.clock,
        )

    @cached_property
    def arrivals(self) -> Arrivals:
        """Takes in what comes to sources."""
        from pushhub.webhooks.sources.arrivals import Arrivals

        outside = self._outside
        return Arrivals(
            applications=self.ports.applications,
            projects=outside.config,
            vault=lambda: outside.vault,
            posting=self.posting,
            counts=self.ports.arrival_counts,
            sender=lambda: outside.sender,
            telemetry=outside.telemetry,
            clock=outside.clock,
        )

    @cached_property
    def intake(self) -> WebhooksIntake:
        """Accepts messages into applications."""
        from pushhub.webhooks.messages.intake import WebhooksIntake

        return WebhooksIntake(
            accept=self._engine.accept_bodies(self.ports.webhook_bodies),
            messages=self._outside.messages,
            log=self.listing,
            search_fields=self._search_fields,
            first_orders=lambda: self._engine.first_orders,
        )

    @cached_property
    def _search_fields(self) -> WebhooksFields:
        from pushhub.webhooks.messages.named_fields import WebhooksFields

        return WebhooksFields(lambda: self._outside.search_index)

    @staticmethod
    def _own_ids() -> OwnIds:
        from pushhub.webhooks.messages.search import KIND
        from pushhub.webhooks.model.ids import engine_id, message_id

        return OwnIds(kind=KIND, has_owner=True, to_engine=engine_id, from_engine=message_id)

    def _finder(self) -> WebhooksFinder:
        from pushhub.webhooks.messages.search import WebhooksFinder

        return WebhooksFinder(
            applications=self.ports.applications,
            endpoints=self.ports.endpoints,
            log=self.listing,
            messages=self._outside.messages,
            shown=lambda: self.messages,
            now=self._outside.clock.now,
        )

    @cached_property
    def messages(self) -> WebhooksMessages:
        """Shows and expunges messages."""
        from pushhub.webhooks.messages.messages import WebhooksMessages

        ports, outside = self.ports, self._outside
        return WebhooksMessages(
            applications=ports.applications,
            log=self.listing,
            messages=outside.messages,
            bodies=ports.webhook_bodies,
            search_fields=self._search_fields,
            retry_queue=lambda: outside.retry_queue,
            clock=outside.clock,
        )

    @cached_property
    def posting_api(self) -> Api[Any, Any]:
        """The part of the API that producers call."""
        from pushhub.web.api import Api
        from pushhub.webhooks.api import arrivals, posting
        from pushhub.webhooks.api.use_cases import WebhooksPostingUseCases

        use_cases = WebhooksPostingUseCases(
            clock=self._outside.clock,
            posting=self.posting,
            messages=self.messages,
            arrivals=lambda: self.arrivals,
            base_url=self._outside.base_url,
        )
        return Api(routes=(*posting.ROUTES, *arrivals.ROUTES), use_cases=use_cases, dialect=self.dialect)

    @cached_property
    def api(self) -> WebhooksApi:
        """The whole API."""
        from pushhub.web.misspelt import Misspelt
        from pushhub.webhooks.api.api import WebhooksApi
        from pushhub.webhooks.api.use_cases import WebhooksUseCases
        from pushhub.webhooks.applications.environment import Environments
        from pushhub.webhooks.endpoints.health import WebhooksHealth
        from pushhub.webhooks.messages.attempts import WebhooksAttempts
        from pushhub.webhooks.messages.examples import WebhooksExamples
        from pushhub.webhooks.resending.resending import WebhooksResending

        ports, outside = self.ports, self._outside
        use_cases = WebhooksUseCases(
            clock=outside.clock,
            applications=self.applications,
            endpoints=self.endpoints,
            destinations=lambda: self._destinations,
            gates=lambda: self.gates,
            transformations=lambda: self._transformations,
            signatures=lambda: self.signatures,
            signature_defaults=lambda: self.signature_defaults,
            event_types=self.event_types,
            posting=self.posting,
            messages=self.messages,
            attempts=WebhooksAttempts(
                applications=ports.applications,
                endpoints=ports.endpoints,
                messages=self.messages,
                log=self.listing,
                attempts=ports.attempt_log,
                deliveries=outside.messages,
                clock=outside.clock,
            ),
            resending=WebhooksResending(
                applications=ports.applications,
                endpoints=ports.endpoints,
                messages=self.messages,
                deliveries=outside.messages,
                resend=self._engine.resend,
                flags_for=self.event_types.flags_for,
            ),
            examples=WebhooksExamples(
                applications=ports.applications,
                endpoints=ports.endpoints,
                event_types=self.event_types,
                posting=self.posting,
            ),
            health=WebhooksHealth(
                applications=ports.applications,
                endpoints=ports.endpoints,
                healths=lambda: self._engine.healths,
                keys=self.endpoints.keys,
                projects=outside.config,
                executor=outside.executor,
                clock=outside.clock,
            ),
            repeats=self.repeats,
            portal=self.portal,
            integrations=lambda: self.integrations,
            autoconfigs=lambda: self.autoconfigs,
            connectors=lambda: self.connectors,
            environments=Environments(
                event_types=self.event_types, connectors=lambda: self.connectors, clock=outside.clock
            ),
            operational=self.operational,
            tasks=self.tasks,
            poller=self._poller,
            consumers=lambda: self._consumers,
            arrivals=lambda: self.arrivals,
            sources=lambda: self.sources,
            streams=lambda: self.streams,
            stream_events=lambda: self.stream_events,
            sinks=lambda: self._stream_sinks,
            base_url=outside.base_url,
        )
        return WebhooksApi(use_cases=use_cases, dialect=self.dialect, warnings=Misspelt(self.description))

    @cached_property
    def _poller(self) -> WebhooksPoller:
        from pushhub.webhooks.messages.poller import WebhooksPoller

        ports = self.ports
        return WebhooksPoller(
            applications=ports.applications,
            endpoints=ports.endpoints,
            log=self.listing,
            places=ports.places,
            flags_for=self.event_types.flags_for,
            clock=self._outside.clock,
        )

    @cached_property
    def _consumers(self) -> PollingConsumers:
        from pushhub.webhooks.messages.consumers import PollingConsumers

        return PollingConsumers(poller=self._poller, store=self.ports.consumers, clock=self._outside.clock)

    def _hurry(self, endpoint: Endpoint) -> None:
        key = endpoint.project, queue_uid(endpoint.app_id), endpoint.endpoint_id
        self._engine.wake_ups.hurry(key, queue_of(endpoint.app_id))

    def _queues(self) -> WebhooksQueues:
        from pushhub.webhooks.queues import WebhooksQueues

        return WebhooksQueues(
            applications=self.ports.applications,
            endpoints=self.ports.endpoints,
            changes=self._engine.changes,
            clock=self._outside.clock,
        )

    def _disabling(self) -> WebhooksDisabling:
        from pushhub.webhooks.endpoints.disabling import WebhooksDisabling

        return WebhooksDisabling(
            endpoints=self.ports.endpoints, notes=self._engine.change_notes, tell=self.operational.found_out
        )

    def _scope(self, url: str) -> Scope:
        """Whose the destination of an endpoint is, by the URL of its subscriber."""
        return self._engine.targets.scope(url.partition(":")[2])

    def _consent_target(self) -> ConsentTarget:
        from pushhub.webhooks.endpoints.consent import Consents, ConsentTarget

        outside = self._outside
        return ConsentTarget(
            consents=Consents(
                endpoints=self.ports.endpoints,
                notes=self._engine.change_notes,
                changed=self.operational.endpoint,
                clock=outside.clock,
            ),
            projects=outside.config,
            sending=self._engine.gate_sending,
            vault=outside.vault,
            credentials=self._engine.credentials,
            base_url=outside.base_url,
            clock=outside.clock,
        )

    def _target(self) -> WebhookTarget:
        from pushhub.webhooks.sending.attempt_groups import AttemptGroups
        from pushhub.webhooks.sending.signed_requests import SignedRequests
        from pushhub.webhooks.sending.target import WebhookTarget

        ports, outside = self.ports, self._outside
        return WebhookTarget(
            projects=outside.config,
            credentials=self._engine.credentials,
            requests=SignedRequests(
                projects=outside.config,
                vault=outside.vault,
                scripts=lambda: ports.scripts,
                base_url=outside.base_url,
                clock=outside.clock,
            ),
            attempts=AttemptGroups(log=ports.attempt_log, clock=outside.clock),
            sending=self._engine.gate_sending,
            targets=lambda: self._engine.targets,
            clock=outside.clock,
            telemetry=outside.telemetry,
        )
