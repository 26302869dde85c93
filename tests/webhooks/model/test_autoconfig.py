"""Tokens of autoconfigurations, as Svix's clients read them."""

from __future__ import annotations

import base64
import json

from pushhub.base.signing import parse_key
from pushhub.webhooks.model.autoconfig import Autoconfig, autoconfig_token, signing_secret


def test_a_token_holds_what_a_client_needs() -> None:
    autoconfig = Autoconfig(project="p", app_id="app_a", autoconfig_id="autocfg_b", created_at=1)
    token = autoconfig_token(autoconfig, "key", "https://hub.example")
    assert token.startswith("auto_v2_")
    assert json.loads(base64.b64decode(token.removeprefix("auto_v2_"))) == {
        "aid": "app_a",
        "sid": "autocfg_b",
        "surl": "https://hub.example",
        "esec": signing_secret("key"),
        "tok": "key",
    }


def test_each_key_has_a_secret_of_its_own_that_can_sign() -> None:
    secrets = [signing_secret(each) for each in ("key", "key2", "")]
    assert len({*secrets}) == 3
    assert signing_secret("key") == secrets[0]
    assert {len(parse_key(each).private) for each in secrets} == {32}
