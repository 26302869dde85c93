"""IAM's own rules, by the examples of its documentation: what is allowed, what is refused, what is not understood."""

from __future__ import annotations

from typing import Any

import pytest
from local.iam.policies import Context, Need, Policies, Right, UnknownPolicy, matches_arn

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Books"


def statement(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": ["dynamodb:GetItem"], "Resource": TABLE, **more}


def policies(*statements: dict[str, Any]) -> Policies:
    return Policies([{"Version": "2012-10-17", "Statement": [*statements]}])


def allows(given: Policies, action: str = "dynamodb:GetItem", resource: str = TABLE, **context: Any) -> bool:
    return bool(given.granting(Need(action, resource, context)))


def on(condition: dict[str, Any]) -> Policies:
    return policies(statement(Condition=condition))


def holds(condition: dict[str, Any], context: Context) -> bool:
    return bool(on(condition).granting(Need("dynamodb:GetItem", TABLE, context)))


def test_what_no_statement_allows_is_refused() -> None:
    assert not allows(policies())
    assert not allows(policies(statement()), "dynamodb:PutItem")
    assert not allows(policies(statement()), resource=f"{TABLE}2")
    assert allows(policies(statement()))


def test_what_a_statement_denies_no_other_one_allows() -> None:
    denied = statement(Effect="Deny", Action="dynamodb:*", Resource="*")
    assert not allows(policies(statement(), denied))
    assert not allows(policies(denied, statement()))
    # Also if it is in another policy of the role
    documents = [{"Version": "2012-10-17", "Statement": each} for each in (statement(), denied)]
    assert not allows(Policies(documents))
    # But only where it applies
    assert allows(policies(statement(), statement(Effect="Deny", Action="dynamodb:PutItem")))


def test_actions_are_compared_without_regard_to_case_and_resources_with_it() -> None:
    assert allows(policies(statement(Action="DynamoDB:getitem")))
    assert not allows(policies(statement()), resource=TABLE.replace("Books", "books"))


@pytest.mark.parametrize(
    ("pattern", "arn", "stands_for_it"),
    [
        ("*", "arn:aws:s3:::shelf/a", True),
        ("arn:aws:s3:::shelf/*", "arn:aws:s3:::shelf/a/b/c", True),
        ("arn:aws:s3:::shelf/*", "arn:aws:s3:::shelf", False),
        ("arn:aws:s3:::shelf/*", "arn:aws:s3:::shelf2/a", False),
        ("arn:aws:s3:::shelf/dt=*", "arn:aws:s3:::shelf/dt=2026-11-28/x", True),
        ("arn:aws:s3:::shelf/a?c", "arn:aws:s3:::shelf/abc", True),
        ("arn:aws:s3:::shelf/a?c", "arn:aws:s3:::shelf/ac", False),
        ("arn:aws:sqs:*:123456789012:line", "arn:aws:sqs:eu-west-1:123456789012:line", True),
        # A wildcard in one part does not reach over a colon into the next one.
        ("arn:aws:sqs:*:line", "arn:aws:sqs:eu-west-1:123456789012:line", False),
        (
            "arn:aws:lambda:us-east-1:123456789012:function:*",
            "arn:aws:lambda:us-east-1:123456789012:function:f:7",
            True,
        ),
        # Nothing else is special.
        ("arn:aws:s3:::shelf/a.c", "arn:aws:s3:::shelf/abc", False),
        ("arn:aws:s3:::shelf/[ab]", "arn:aws:s3:::shelf/a", False),
    ],
)
def test_wildcards_of_resources(pattern: str, arn: str, stands_for_it: bool) -> None:
    assert matches_arn(pattern, arn) is stands_for_it


def test_every_operator_and_every_key_must_hold_and_one_value_is_enough() -> None:
    condition = {"StringEquals": {"a": ["1", "2"], "b": "3"}, "StringLike": {"c": "x*"}}
    assert holds(condition, {"a": "2", "b": "3", "c": "xyz"})
    assert not holds(condition, {"a": "4", "b": "3", "c": "xyz"})
    assert not holds(condition, {"a": "2", "b": "4", "c": "xyz"})
    assert not holds(condition, {"a": "2", "b": "3", "c": "yz"})


def test_a_key_that_is_not_in_the_request_is_equal_to_nothing() -> None:
    for operator in ("StringEquals", "StringLike", "Bool", "ArnEquals"):
        assert not holds({operator: {"a": "*"}}, {})


def test_names_of_condition_keys_are_compared_without_regard_to_case() -> None:
    assert holds({"StringEquals": {"kms:EncryptionContext:Project": "1"}}, {"kms:encryptioncontext:project": "1"})


def test_null_asks_whether_a_key_is_in_the_request() -> None:
    assert holds({"Null": {"a": "true"}}, {})
    assert not holds({"Null": {"a": "true"}}, {"a": "1"})
    assert holds({"Null": {"a": "false"}}, {"a": ""})
    assert not holds({"Null": {"a": False}}, {})


def test_all_of_no_values_are_as_wanted_and_none_is() -> None:
    all_of = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["pulse#*"]}}
    any_of = {"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": ["pulse#*"]}}
    for values, all_are, one_is in (
        (("pulse#1", "pulse#2"), True, True),
        (("pulse#1", "other"), False, True),
        (("other",), False, False),
        ((), True, False),
    ):
        assert holds(all_of, {"dynamodb:leadingkeys": values}) is all_are
        assert holds(any_of, {"dynamodb:leadingkeys": values}) is one_is
    assert holds(all_of, {})
    assert not holds(any_of, {})


def test_arns_of_conditions_are_compared_part_by_part() -> None:
    condition = {"ArnEquals": {"lambda:FunctionArn": "arn:aws:lambda:*:123456789012:function:f"}}
    assert holds(condition, {"lambda:functionarn": "arn:aws:lambda:us-east-1:123456789012:function:f"})
    assert not holds(condition, {"lambda:functionarn": "arn:aws:lambda:us-east-1:123456789012:function:g"})


def test_every_right_that_allows_a_call_is_named() -> None:
    given = policies(statement(), statement(Action=["dynamodb:Get*", "dynamodb:PutItem"]))
    assert given.granting(Need("dynamodb:GetItem", TABLE)) == [
        Right("dynamodb:GetItem", TABLE),
        Right("dynamodb:Get*", TABLE),
    ]
    assert len(given.rights) == 3


@pytest.mark.parametrize(
    "unknown",
    [
        {"Condition": {"NumericLessThan": {"a": "1"}}},
        {"Condition": {"StringEqualsIfExists": {"a": "1"}}},
        {"Condition": {"ForSomeValues:StringEquals": {"a": "1"}}},
        {"NotAction": "dynamodb:GetItem"},
        {"Principal": "*"},
        {"Effect": "Maybe"},
        {"Resource": "arn:aws:s3:::${aws:username}/*"},
    ],
)
def test_what_is_not_known_is_an_error_and_not_a_guess(unknown: dict[str, Any]) -> None:
    with pytest.raises(UnknownPolicy):
        policies(statement(**unknown))


def test_a_policy_of_another_language_is_not_known() -> None:
    assert allows(Policies([{"Statement": [statement()]}]))
    with pytest.raises(UnknownPolicy):
        Policies([{"Version": "2030-01-01", "Statement": [statement()]}])


def test_one_value_is_not_compared_with_several() -> None:
    with pytest.raises(UnknownPolicy):
        holds({"StringEquals": {"a": "1"}}, {"a": ("1",)})
