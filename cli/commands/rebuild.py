"""``pushhub rebuild``."""

from __future__ import annotations

import click

from pushhub.cloud.clock import SystemClock
from pushhub.engine.records.rebuild import Rebuild
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_messages import DynamoDBMessageStore
from pushhub.engine.store.dynamodb_schedule import DynamoDBSchedule
from pushhub.engine.store.s3_bodies import S3BodyStore
from pushhub.engine.store.s3_records import S3Records

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..operators.deployment import TABLE_OUTPUT, deployment
from ..operators.passing_over import PassedOver


@click.command(cls=Command)
@click.option(
    "--since", required=True, metavar="DATE", help="Day of the oldest message with outstanding deliveries, 2026-11-01."
)
@changes
@click.pass_obj
def rebuild(hub: HubOptions, since: str) -> int:
    """Restore messages that the messages table has lost, from delivery records and the bodies bucket.

    What cannot be restored is listed, and so are records that cannot be read, which are passed over. First stop push,
    poll, errors and wake (docs/operations.md). What is in the table stays as it is, but for deliveries that a backup
    has as they were earlier.
    """
    found = deployment(hub)
    clock, dynamodb, s3 = SystemClock(), found.client("dynamodb"), found.client("s3")
    schedule = DynamoDBSchedule(dynamodb, found.outputs["ScheduleTableName"], clock)
    use_case = Rebuild(
        messages=DynamoDBMessageStore(dynamodb, found.outputs["MessagesTableName"], clock, lambda: schedule),
        bodies=S3BodyStore(s3, found.outputs["BodiesBucketName"]),
        queues=DynamoDBConfigStore(dynamodb, found.outputs[TABLE_OUTPUT], clock),
        clock=clock,
    )
    passed_over = PassedOver(hub)
    records = S3Records(s3, found.outputs["RecordsBucketName"]).read(since, passed_over)
    rebuilt = use_case.run(records, dry=hub.dry_run)
    for each in rebuilt.passed_over:
        passed_over(each)
    passed_over.summed_up()
    click.echo(
        f"{'would be ' if hub.dry_run else ''}put back: {rebuilt.messages} messages; deliveries that go on: "
        f"{rebuilt.resumed}, wait for a person: "
        f"{rebuilt.held}, given up without their body: {rebuilt.lost}, expired: {rebuilt.expired}; not lost: "
        f"{rebuilt.present} messages, with {rebuilt.updated} deliveries as they were earlier",
        err=True,
    )
    hub.show(
        [
            {"project": each.project, "queue": each.queue, "message": each.message_id, "not known": each.what}
            for each in rebuilt.unknown
        ]
    )
    return 1 if rebuilt.lost or passed_over.count else 0
