"""A name of one's own, AWS WAF, and the gateway's limits: by parameter, and nothing of it by default."""

from __future__ import annotations

from typing import Any

from tests.template.cloudformation import deployed

NAMED = {"DomainName": "hub.example.com", "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1"}
LIMITS = {"ApiRequestsPerSecond": "5", "WebSocketMessagesPerSecond": "7"}


def distribution(**parameters: str) -> dict[str, Any]:
    edge = deployed(EdgeDistribution="true", **parameters)["Edge"]
    config: dict[str, Any] = edge["Properties"]["DistributionConfig"]
    return config


def test_by_default_there_is_none_of_it() -> None:
    there = deployed()
    assert not {"ApiDomain", "ApiDomainMapping", "Edge"} & there.keys()
    for name in ("HttpApiStage", "WebSocketStage"):
        assert "DefaultRouteSettings" not in there[name]["Properties"]
    assert not {"Aliases", "ViewerCertificate", "WebACLId"} & distribution().keys()


def test_without_a_distribution_the_name_is_the_http_apis() -> None:
    there = deployed(**NAMED)
    assert there.keys() - deployed().keys() == {"ApiDomain", "ApiDomainMapping"}
    [config] = there["ApiDomain"]["Properties"]["DomainNameConfigurations"]
    assert config["SecurityPolicy"] == "TLS_1_2"
    assert there["ApiDomainMapping"]["Properties"]["ApiId"] == {"Ref": "HttpApi"}


def test_with_a_distribution_the_name_is_both_apis() -> None:
    there = deployed(EdgeDistribution="true", **NAMED)
    assert "ApiDomain" not in there
    config = distribution(**NAMED)
    assert config["Aliases"] == [{"Ref": "DomainName"}]
    assert config["ViewerCertificate"]["AcmCertificateArn"] == {"Ref": "CertificateArn"}
    assert config["ViewerCertificate"]["MinimumProtocolVersion"] == "TLSv1.2_2021"


def test_a_web_acl_is_on_the_distribution() -> None:
    acl = "arn:aws:wafv2:us-east-1:123456789012:global/webacl/a/1"
    assert distribution(WebAclArn=acl)["WebACLId"] == {"Ref": "WebAclArn"}
    assert deployed(WebAclArn=acl) == deployed()


def test_the_gateways_limits_are_those_of_their_api() -> None:
    there, before = deployed(**LIMITS), deployed()
    assert {name for name in there if there[name] != before[name]} == {"HttpApiStage", "WebSocketStage"}
    for stage, rate in (("HttpApiStage", "ApiRequestsPerSecond"), ("WebSocketStage", "WebSocketMessagesPerSecond")):
        settings = there[stage]["Properties"]["DefaultRouteSettings"]
        # A rate without a burst would be one of 0, and refuse everything
        assert settings == {"ThrottlingRateLimit": {"Ref": rate}, "ThrottlingBurstLimit": {"Ref": rate}}


def test_the_name_of_the_edges_function_fits_whatever_the_stack_is_called() -> None:
    """CloudFront takes 64 characters, and a stack's name may have 128."""
    [rewrite] = (
        each["Properties"]
        for each in deployed(EdgeDistribution="true").values()
        if each["Type"].endswith("t::Function")
    )
    text, values = rewrite["Name"]["Fn::Sub"]
    assert "AWS::StackName" not in text
    # The end of a stack's id is a UUID
    assert values == {"Id": {"Fn::Select": [2, {"Fn::Split": ["/", {"Ref": "AWS::StackId"}]}]}}
    assert len(text.replace("${Id}", "8aa2b5c0-0000-11ef-9a6c-0a1b2c3d4e5f")) <= 64
