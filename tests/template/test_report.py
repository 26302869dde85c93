"""The delivery report: pinned, once a night, watched, and able to read what it needs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from tests.template.cloudformation import of_type, references, resources

from pushhub.cloud.clients import Clients
from pushhub.engine.store.aws_nights import GlueRuns

ALARMS = of_type("AWS::CloudWatch::Alarm")
RULES = of_type("AWS::Events::Rule")
(JOB,) = of_type("AWS::Glue::Job").values()


def test_the_job_runs_the_pinned_platform_and_a_script_that_is_known_for_python() -> None:
    assert JOB["GlueVersion"] == "5.1"
    # Spark recognizes a Python script by its name.
    assert JOB["Command"]["ScriptLocation"] == {"Fn::Sub": "s3://${RecordsBucket}/jobs/delivery_report.py"}


def test_the_libraries_come_with_it_and_not_from_a_package_index() -> None:
    # A zip of wheels is recognized by its suffix.
    arguments = JOB["DefaultArguments"]
    assert arguments["--additional-python-modules"] == {
        "Fn::Sub": "s3://${RecordsBucket}/jobs/libraries.gluewheels.zip"
    }
    assert arguments["--python-modules-installer-option"] == "--no-index"


def test_it_may_read_both_and_they_stay() -> None:
    (policy,) = of_type("AWS::IAM::Role")["ReportRole"]["Policies"]
    jobs = [each for each in policy["PolicyDocument"]["Statement"] if "/jobs/" in str(each)]
    assert [(each["Action"], each["Resource"]) for each in jobs] == [
        (["s3:GetObject"], {"Fn::Sub": "${RecordsBucket.Arn}/jobs/*"})
    ]
    rules = resources()["RecordsBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert not [each for each in rules if "ExpirationInDays" in each and "jobs/".startswith(each["Prefix"])]


def test_one_run_at_a_time_is_started_by_sweep_alone() -> None:
    # Whether a night has something to prove is decided by sweep, which runs each hour
    assert not of_type("AWS::Glue::Trigger")
    sweep = resources()["SweepFunction"]["Properties"]["Environment"]["Variables"]
    assert sweep["REPORT_JOB"] == {"Ref": "ReportJob"}
    # It goes by the tables that the job compares with
    assert references(sweep["PULSED_TABLES"]) == references(JOB["DefaultArguments"]["--tables"])
    assert JOB["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert JOB["MaxRetries"] == 0


def test_a_quiet_night_counts_as_a_run_that_succeeded() -> None:
    # Given the event that sweep sends on such a night
    sent: list[dict[str, Any]] = []

    def put_events(*, Entries: list[dict[str, Any]]) -> dict[str, int]:  # noqa: N803 (the SDK's name)
        sent.extend(Entries)
        return {"FailedEntryCount": 0}

    events = SimpleNamespace(put_events=put_events)
    GlueRuns(cast(Clients, SimpleNamespace(of=lambda _: events)), "job").quiet()
    # Then the rule that the alarm of missing reports counts by matches it
    (event,) = sent
    pattern = RULES["ReportRunsSucceeded"]["EventPattern"]
    assert event["Source"] in pattern["source"]
    assert event["DetailType"] in pattern["detail-type"]
    detail = json.loads(event["Detail"])
    assert detail["state"] in pattern["detail"]["state"]
    assert (detail["jobName"], pattern["detail"]["jobName"]) == ("job", [{"Ref": "ReportJob"}])
    # And sweep may send no other, and only that rule takes it
    statements = of_type("AWS::IAM::Role")["SweepFunctionRole"]["Policies"][0]["PolicyDocument"]["Statement"]
    (allowed,) = (each for each in statements if "events:PutEvents" in each.get("Action", ()))
    assert allowed["Condition"] == {"StringEquals": {"events:source": event["Source"]}}
    assert [name for name, each in RULES.items() if event["Source"] in each["EventPattern"]["source"]] == [
        "ReportRunsSucceeded"
    ]


def test_it_reads_the_records_and_writes_beside_them() -> None:
    arguments = JOB["DefaultArguments"]
    assert arguments["--input"] == {"Fn::Sub": "s3://${RecordsBucket}/records"}
    assert arguments["--output"] == {"Fn::Sub": "s3://${RecordsBucket}"}
    assert references(arguments) >= {"RecordsBucket"}


def test_its_logs_are_kept_as_long_as_all_others() -> None:
    prefix = JOB["DefaultArguments"]["--custom-logGroup-prefix"]["Fn::Sub"]
    groups = {each["LogGroupName"]["Fn::Sub"]: each for each in of_type("AWS::Logs::LogGroup").values()}
    for end in ("output", "error"):
        assert groups[f"{prefix}/{end}"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_its_role_may_make_the_log_groups_it_is_given() -> None:
    # Glue requires this right although they exist (AWSGlueServiceRole has it, too).
    (policy,) = of_type("AWS::IAM::Role")["ReportRole"]["Policies"]
    (logs,) = (each for each in policy["PolicyDocument"]["Statement"] if "logs:" in str(each))
    assert logs["Action"] == ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
    assert logs["Resource"] == [{"Fn::GetAtt": [name, "Arn"]} for name in ("ReportLogs", "ReportSystemLogs")]


def states(rule: str, job: dict[str, Any]) -> list[str]:
    pattern: dict[str, Any] = RULES[rule]["EventPattern"]
    assert "aws.glue" in pattern["source"]
    assert "Glue Job State Change" in pattern["detail-type"]
    assert pattern["detail"]["jobName"] == [job]
    found: list[str] = pattern["detail"]["state"]
    return found


def test_every_end_of_a_run_is_watched() -> None:
    # The job ends with a status other than 0 when conservation is broken, which Glue calls FAILED: sweep counts it.
    assert sorted(states("ReportRunsFailed", {"Ref": "ReportJob"})) == ["FAILED", "STOPPED", "TIMEOUT"]
    assert states("ReportRunsSucceeded", {"Ref": "ReportJob"}) == ["SUCCEEDED"]
    (dimension,) = ALARMS["ReportMissing"]["Dimensions"]
    assert dimension["Value"] == {"Ref": "ReportRunsSucceeded"}
    assert (ALARMS["ReportMissing"]["Namespace"], ALARMS["ReportMissing"]["MetricName"]) == (
        "AWS/Events",
        "TriggeredRules",
    )
    missing = ALARMS["ReportMissing"]
    assert missing["TreatMissingData"] == "breaching"
    # Longer than a day, shorter than two, and no longer than CloudWatch can look back.
    assert 24 < missing["EvaluationPeriods"] * missing["Period"] / 3600 < 48


def test_athena_finds_the_days_by_their_names() -> None:
    for table in of_type("AWS::Glue::Table").values():
        described = table["TableInput"]
        assert described["Parameters"]["projection.enabled"] == "true"
        stored = described["StorageDescriptor"]
        location = stored["Location"]["Fn::Sub"]
        if described["Name"] == "raw_records":
            # As the function records writes them, by hour; what is quarantined lies beside the days.
            assert [each["Name"] for each in described["PartitionKeys"]] == ["dt", "hour"]
            assert location == "s3://${RecordsBucket}/records/"
            continue
        assert described["PartitionKeys"] == [{"Name": "dt", "Type": "string"}]
        # Of each table a day is what its list names.
        assert stored["InputFormat"] == "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"
        assert location == f"s3://${{RecordsBucket}}/curated/days/{described['Name']}/"


def test_what_the_job_writes_leaves_by_lifecycle() -> None:
    rules = resources()["RecordsBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {"curated/", "reports/", "quarantine/", "work/", "searches/"} <= {each.get("Prefix") for each in rules}
