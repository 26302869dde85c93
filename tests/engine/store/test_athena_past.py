"""Searches with Athena: the query, and the answers that Athena's API is documented to give."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from tests.template.cloudformation import of_type

from pushhub.base.errors import Invalid, NotFound, TryLater, Unavailable
from pushhub.base.times import epoch_ms
from pushhub.engine.model.past import COLUMNS, PastPage, PastQuery, PastState
from pushhub.engine.store.athena_past import TABLE, AthenaPastRecords, statement

RUN = "6a1b2c3d-0000-4000-8000-000000000001"
QUERY = PastQuery(
    project="5f00",
    since=epoch_ms("2026-11-20T22:30:00.000Z"),
    until=epoch_ms("2026-11-21T01:00:00.000Z"),
    queue="orders",
)
HOSTILE = ["'", "' OR 1=1 --", "\\'; DROP TABLE raw_records", "?", "ä\u2028'", '"', "*/", "'||project||'"]


@pytest.fixture
def athena() -> Any:
    return boto3.client("athena", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def records(athena: Any) -> AthenaPastRecords:
    return AthenaPastRecords(athena, workgroup="pushhub-past", database="pushhub")


def execution(state: str, **more: Any) -> dict[str, Any]:
    statistics = {"DataScannedInBytes": 4096, "EngineExecutionTimeInMillis": 800}
    return {"QueryExecution": {"QueryExecutionId": RUN, "Status": {"State": state, **more}, "Statistics": statistics}}


def row(*values: str | None) -> dict[str, Any]:
    return {"Data": [{} if each is None else {"VarCharValue": each} for each in values]}


def look(athena: Any, *answers: tuple[str, dict[str, Any], dict[str, Any]], after: str | None = None) -> PastPage:
    with Stubber(athena) as stub:
        for operation, answer, expected in answers:
            stub.add_response(operation, answer, expected)
        page = records(athena).look(QUERY, RUN, after)
        stub.assert_no_pending_responses()
    return page


def test_a_query_is_started_in_the_workgroup_with_its_values_bound(athena: Any) -> None:
    text, parameters = statement(QUERY)
    expected = {
        "QueryString": text,
        "ExecutionParameters": parameters,
        "ClientRequestToken": "a" * 32,
        "QueryExecutionContext": {"Database": "pushhub"},
        "WorkGroup": "pushhub-past",
    }
    with Stubber(athena) as stub:
        stub.add_response("start_query_execution", {"QueryExecutionId": RUN}, expected)
        assert records(athena).start(QUERY, "a" * 32) == RUN


@pytest.mark.parametrize("name", ["message_id", "queue", "subscriber", "state", "project"])
@pytest.mark.parametrize("value", HOSTILE)
def test_the_text_is_the_same_whatever_is_looked_for_and_no_value_ends_its_literal(name: str, value: str) -> None:
    plain, _ = statement(replace(QUERY, **{name: "x"}))  # type: ignore[arg-type]
    text, parameters = statement(replace(QUERY, **{name: value}))  # type: ignore[arg-type]
    assert text == plain
    assert text.count("?") == len(parameters)
    assert all(re.fullmatch(r"'[^']*'", each) and "\\" not in each for each in parameters)
    # Athena takes parameters of 1,024 characters
    most, longest = statement(replace(QUERY, **{name: "ä" * 150}))  # type: ignore[arg-type]
    assert (most, max(map(len, longest)) <= 1_024) == (plain, True)


def test_only_the_days_asked_for_and_the_projects_own_records_are_read() -> None:
    text, parameters = statement(QUERY)
    assert "dt >= ? AND dt <= ?" in text
    assert "project = from_utf8(from_base64(?))" in text
    assert " OR " not in text
    assert parameters[:2] == ["'2026-11-20'", "'2026-11-21'"]
    # Within a day only its hours
    text, parameters = statement(replace(QUERY, since=epoch_ms("2026-11-21T00:10:00.000Z")))
    assert "hour >= ? AND hour <= ?" in text
    assert parameters[5:7] == ["'00'", "'00'"]


def test_the_table_has_the_columns_that_the_query_reads() -> None:
    (table,) = (
        each["TableInput"] for each in of_type("AWS::Glue::Table").values() if each["TableInput"]["Name"] == TABLE
    )
    columns = {each["Name"] for each in table["StorageDescriptor"]["Columns"]}
    assert columns == {*COLUMNS, "project", "record_id"}
    assert [each["Name"] for each in table["PartitionKeys"]] == ["dt", "hour"]


@pytest.mark.parametrize("state", ["QUEUED", "RUNNING"])
def test_one_that_runs_says_how_much_it_has_read(athena: Any, state: str) -> None:
    page = look(athena, ("get_query_execution", execution(state), {"QueryExecutionId": RUN}))
    assert page == PastPage(state=PastState.RUNNING, scanned_bytes=4096)


def test_results_come_page_by_page_without_the_columns_names(athena: Any) -> None:
    event = (
        "2026-11-20T23:00:00.000Z",
        "attempt",
        "orders",
        "1",
        "s1",
        "shop",
        "exhausted",
        None,
        "3",
        "500",
        "",
        "40",
    )
    done = ("get_query_execution", execution("SUCCEEDED"), {"QueryExecutionId": RUN})
    asked = {"QueryExecutionId": RUN, "MaxResults": 200}
    first = {"ResultSet": {"Rows": [row(*COLUMNS), row(*event)]}, "NextToken": "next+/="}
    page = look(athena, done, ("get_query_results", first, asked))
    assert (page.state, page.after, page.scanned_bytes) == (PastState.DONE, "next+/=", 4096)
    (found,) = page.events
    assert (found.at, found.attempt, found.status_code, found.reason) == (event[0], 3, 500, None)
    rest = {"ResultSet": {"Rows": [row(*event), row(*event)]}}
    page = look(athena, done, ("get_query_results", rest, asked | {"NextToken": "next+/="}), after="next+/=")
    assert (len(page.events), page.after) == (2, None)


def test_one_that_read_too_much_or_failed_says_so_without_names(athena: Any) -> None:
    reported = "Query cancelled! : Bytes scanned limit was exceeded in s3://pushhub-records"
    for state in ("CANCELLED", "FAILED"):
        page = look(
            athena, ("get_query_execution", execution(state, StateChangeReason=reported), {"QueryExecutionId": ANY})
        )
        assert page.state is PastState.FAILED
        assert page.reason
        assert "s3" not in page.reason


def test_what_athena_refuses_is_the_callers_only_where_it_can_be(athena: Any) -> None:
    with Stubber(athena) as stub:
        stub.add_client_error("start_query_execution", "TooManyRequestsException")
        with pytest.raises(TryLater):
            records(athena).start(QUERY, "a" * 32)
        stub.add_client_error("start_query_execution", "AccessDeniedException")
        with pytest.raises(Unavailable):
            records(athena).start(QUERY, "a" * 32)
        stub.add_client_error("get_query_execution", "InvalidRequestException")
        with pytest.raises(NotFound):
            records(athena).look(QUERY, RUN, None)
        stub.add_response("get_query_execution", execution("SUCCEEDED"))
        stub.add_client_error("get_query_results", "InvalidRequestException")
        with pytest.raises(Invalid):
            records(athena).look(QUERY, RUN, "another's")


@pytest.mark.parametrize("after", ["", "ä", "\n", "x" * 1_025])
def test_what_cannot_be_a_cursor_is_not_passed_on(athena: Any, after: str) -> None:
    with Stubber(athena), pytest.raises(Invalid):
        records(athena).look(QUERY, RUN, after)
