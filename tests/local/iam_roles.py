"""Roles for the functions of tests, on an emulator."""

from __future__ import annotations

import json
from typing import Any

import boto3
from local.aws import Aws

ASSUMED_BY_LAMBDA = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}],
}


def make_role(aws: Aws, name: str = "all", action: Any = "*", resource: Any = "*") -> str:
    """A role, with everything unless another right is named; its ARN."""
    iam = boto3.client("iam", **aws.arguments)
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(ASSUMED_BY_LAMBDA))["Role"]["Arn"]
    grant(aws, name, action, resource)
    return str(arn)


def grant(aws: Aws, name: str, action: Any, resource: Any) -> None:
    """From now on, a role has this right and no other."""
    statement = {"Effect": "Allow", "Action": action, "Resource": resource}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    iam = boto3.client("iam", **aws.arguments)
    iam.put_role_policy(RoleName=name, PolicyName="only", PolicyDocument=json.dumps(document))
