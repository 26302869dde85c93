"""How an endpoint's tokens are obtained, in Svix's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import MASK, masked_headers, named_like_a_secret
from pushhub.base.grants import GrantFields, GrantWords, grant_request
from pushhub.base.oauth import BASIC, POST, PRIVATE_KEY_JWT

if TYPE_CHECKING:
    from pushhub.base.grants import GrantRequest
    from pushhub.base.oauth import Grant
    from pushhub.webhooks.wire.fields import Fields

WORDS = GrantWords(
    names=GrantFields(
        grant_type="grantType",
        auth_method="authMethod",
        client_id="clientId",
        client_secret="clientSecret",  # noqa: S106 (a name)
        token_url="tokenUrl",  # noqa: S106
        scopes="scopes",
        extra_params="extraParams",
        extra_headers="extraHeaders",
        refresh_token="refreshToken",  # noqa: S106
        assertion="jwtParams",
        key="secretBase64",
        algorithm="signingAlgorithm",
        key_id="secretId",
        assertion_s="tokenExpirySecs",
        audience="audience",
    ),
    client_credentials="clientCredentials",
    methods={BASIC: "clientSecretBasic", POST: "clientSecretPost", PRIVATE_KEY_JWT: "clientSecretJwt"},
)
"""Svix's names; ``clientSecretJwt`` is ``private_key_jwt`` of RFC 7523."""


def asked_grant(fields: Fields) -> GrantRequest:
    """The grant that a request asks for."""
    return grant_request(WORDS, fields.members)


def grant_view(grant: Grant) -> dict[str, Any]:
    """How a token is obtained, as its owner is shown it; may be sent back."""
    params = {name: MASK if named_like_a_secret(name) else each for name, each in grant.params.items()}
    return {
        WORDS.names.grant_type: WORDS.client_credentials,
        WORDS.names.auth_method: WORDS.methods[grant.method],
        WORDS.names.client_id: grant.client_id,
        WORDS.names.token_url: grant.token_url,
        WORDS.names.scopes: list(grant.scopes),
        WORDS.names.extra_params: params,
        WORDS.names.extra_headers: masked_headers(grant.headers),
    }
