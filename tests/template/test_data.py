"""Tables and buckets: keys and indexes as the architecture says, encrypted, kept, private."""

from __future__ import annotations

import pytest
from tests.template.cloudformation import Resource, deployed, of_type, parameter, resolved, resources

from pushhub.engine.model.message import KEPT_AFTER_EXPIRY_MS
from pushhub.engine.model.queue import MAX_EXPIRATION_S
from pushhub.ironmq.wire.messages import MAX_DELAY_S

TABLES = of_type("AWS::DynamoDB::Table")
BUCKETS = of_type("AWS::S3::Bucket")
KEY = {"Ref": "KmsKeyArn"}


def keys(schema: Resource) -> tuple[str, ...]:
    return tuple(each["AttributeName"] for each in schema["KeySchema"])


def is_kept(resource: Resource) -> bool:
    """Whether it outlives its stack, unless the stack's creation failed: what that leaves is empty and in the way."""
    return (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_nothing_else_is_kept_in_the_way_of_the_next_deployment() -> None:
    # Given the resources that stay when a stack is removed
    kept = {name for name, each in resources().items() if each.get("DeletionPolicy", "Delete") != "Delete"}
    # Then that is data and the key of some of it; and versions of functions, each of which has a number of its own
    versions = {*of_type("AWS::Lambda::Version")}
    assert kept == {*TABLES, *BUCKETS, *versions, "WebhooksKey"}
    assert all(is_kept(resources()[name]) for name in kept - versions)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_billed_by_use_kept_and_protected(name: str) -> None:
    resource, table = resources()[name], TABLES[name]
    assert keys(table) == ("pk", "sk")
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert is_kept(resource)
    assert resolved(table, ProtectsTables=True)["DeletionProtectionEnabled"] is True
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert parameter("DeletionProtection")["Default"] == "true"


@pytest.mark.parametrize("name", ["MessagesTable", "PullTable", "BacklogsTable"])
def test_messages_leave_by_themselves_and_every_change_is_told(name: str) -> None:
    assert TABLES[name]["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert TABLES[name]["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_the_schedule_is_written_once_and_leaves_by_itself() -> None:
    table = TABLES["ScheduleTable"]
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table.keys().isdisjoint({"GlobalSecondaryIndexes", "LocalSecondaryIndexes", "StreamSpecification"})


def test_configuration_neither_expires_nor_streams() -> None:
    assert TABLES["ConfigTable"].keys().isdisjoint({"TimeToLiveSpecification", "StreamSpecification"})


def test_indexes_hold_what_their_readers_decode_and_no_more() -> None:
    (unsettled,) = TABLES["MessagesTable"]["GlobalSecondaryIndexes"]
    assert (unsettled["IndexName"], *keys(unsettled), unsettled["Projection"]) == (
        "unsettled",
        "unsettled_queue",
        "unsettled_key",
        {"ProjectionType": "KEYS_ONLY"},
    )
    (idle,) = TABLES["BacklogsTable"]["GlobalSecondaryIndexes"]
    assert (idle["IndexName"], *keys(idle)) == ("idle", "idle_shard", "check_at")
    assert idle["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    # An item collection with a local index is limited to 10 GB and one partition's throughput
    assert TABLES["PullTable"].keys().isdisjoint({"GlobalSecondaryIndexes", "LocalSecondaryIndexes"})


def test_own_key_reaches_everything_that_rests() -> None:
    """Without it, each service's own key is used, so data at rest is always encrypted."""
    for table in TABLES.values():
        sse = resolved(table, HasKmsKey=True)["SSESpecification"]
        assert sse == {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}
    for queue in of_type("AWS::SQS::Queue").values():
        assert resolved(queue, HasKmsKey=False)["SqsManagedSseEnabled"] is True
        assert resolved(queue, HasKmsKey=True)["KmsMasterKeyId"] == KEY
    for bucket in BUCKETS.values():
        for has_key, algorithm in ((False, "AES256"), (True, "aws:kms")):
            decided = resolved(bucket, HasKmsKey=has_key)
            (rule,) = decided["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == algorithm
        assert rule["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] == KEY
    (topic,) = of_type("AWS::SNS::Topic").values()
    assert resolved(topic, HasKmsKey=False)["KmsMasterKeyId"] == {"Ref": "WebhooksKey"}
    assert resolved(topic, HasKmsKey=True)["KmsMasterKeyId"] == KEY


@pytest.mark.parametrize("wanted", [False, True])
def test_the_own_key_rotates_only_if_wanted_as_that_costs(wanted: bool) -> None:
    (own,) = of_type("AWS::KMS::Key").values()
    assert resolved(own, RotatesKey=wanted)["EnableKeyRotation"] is wanted
    assert parameter("KeyRotation")["Default"] == "false"


@pytest.mark.parametrize("name", BUCKETS)
def test_a_bucket_is_private_kept_and_reached_by_tls_only(name: str) -> None:
    assert set(BUCKETS[name]["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(BUCKETS[name]["PublicAccessBlockConfiguration"]) == 4
    assert BUCKETS[name]["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
    assert is_kept(resources()[name])
    assert {"Ref": name} in [each["Bucket"] for each in of_type("AWS::S3::BucketPolicy").values()]


def test_objects_leave_by_lifecycle() -> None:
    # A message may be delayed first, and its life is counted from when it is due
    longest_life_days = (MAX_DELAY_S + MAX_EXPIRATION_S + KEPT_AFTER_EXPIRY_MS // 1000) / 86_400
    bodies = BUCKETS["BodiesBucket"]["LifecycleConfiguration"]["Rules"]
    (kept,) = [rule["ExpirationInDays"] for rule in bodies if rule.get("Prefix") == "bodies/"]
    assert longest_life_days + 1 <= kept <= longest_life_days + 3
    records = BUCKETS["RecordsBucket"]["LifecycleConfiguration"]["Rules"]
    assert [rule["ExpirationInDays"] for rule in records if rule.get("Prefix") == "records/"] == [
        {"Ref": "RecordsRetentionDays"}
    ]


def former_versions(**parameters: str) -> Resource:
    """The rule that ends them."""
    rules = deployed(**parameters)["BodiesBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    (found,) = (each for each in rules if each["Id"] == "drop-former-versions")
    return dict(found)


def test_removed_bodies_can_be_had_back_for_as_long_as_is_asked() -> None:
    without, there = (deployed(**more)["BodiesBucket"]["Properties"] for more in ({}, {"BodyVersionsDays": "7"}))
    assert "VersioningConfiguration" not in without
    assert there["VersioningConfiguration"] == {"Status": "Enabled"}
    assert former_versions(BodyVersionsDays="7") == {
        "Id": "drop-former-versions",
        "Status": "Enabled",
        "NoncurrentVersionExpiration": {"NoncurrentDays": {"Ref": "BodyVersionsDays"}},
        "ExpiredObjectDeleteMarker": True,
    }
    # And nothing else changes
    before, after = deployed(), deployed(BodyVersionsDays="7")
    assert {name for name in before if before[name] != after[name]} == {"BodiesBucket"}
    assert before.keys() == after.keys()


def test_former_bodies_go_when_versions_are_no_longer_wanted() -> None:
    # Given a bucket that had versions and is to have none: S3 keeps those of before until a rule ends them
    assert former_versions(BodyVersionsDays="0")["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert former_versions()["Status"] == "Enabled"
