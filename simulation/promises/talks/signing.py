"""Signature schemes: what receivers of each preset, and of a scheme of one's own, can verify.

Sources: docs/signatures.md; the presets' own senders for how each is verified (Stripe, GitHub, Shopify, Slack, Twilio,
Convoy, Hook0); Standard Webhooks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

KEY, NEXT_KEY = "key of a receiver", "the next one's key"
ENDPOINT_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOST = "talk-signs.example"
URL = f"https://{HOST}/in"
KIND = "signs.made"
APP, PATH = "/app/signs", "/app/signs/endpoint/one"
Verify = Callable[[Came, str], bool]


def _mac(key: str | bytes, signed: str | bytes, hash_name: str = "sha256") -> bytes:
    key, signed = (each.encode() if isinstance(each, str) else each for each in (key, signed))
    return hmac.digest(key, signed, hash_name)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _of(came: Came, name: str) -> str:
    return came.headers.get(name, "")


def stripe(came: Came, key: str) -> bool:
    """Whether a request is signed as Stripe signs."""
    fields = [each.partition("=") for each in _of(came, "stripe-signature").split(",")]
    at = next((text for name, _, text in fields if name == "t"), "")
    own = _mac(key, f"{at}.".encode() + came.body).hex()
    return at == _of(came, "webhook-timestamp") and own in {text for name, _, text in fields if name == "v1"}


def _github(came: Came, key: str) -> bool:
    named = (_of(came, "x-github-event"), _of(came, "x-github-delivery"))
    signed = _of(came, "x-hub-signature-256") == f"sha256={_mac(key, came.body).hex()}"
    return signed and named == (KIND, _of(came, "webhook-id"))


def _shopify(came: Came, key: str) -> bool:
    named = [_of(came, f"x-shopify-{name}") for name in ("topic", "webhook-id", "shop-domain", "api-version")]
    signed = _of(came, "x-shopify-hmac-sha256") == _base64(_mac(key, came.body))
    return signed and named == [KIND, _of(came, "webhook-id"), "a.example", "2026-10"]


def _slack(came: Came, key: str) -> bool:
    at = _of(came, "x-slack-request-timestamp")
    own = _mac(key, f"v0:{at}:".encode() + came.body).hex()
    return _of(came, "x-slack-signature") == f"v0={own}" and at == _of(came, "webhook-timestamp")


def _twilio(came: Came, key: str) -> bool:
    url = f"{URL}?bodySHA256={hashlib.sha256(came.body).hexdigest()}"
    return _of(came, "x-twilio-signature") == _base64(_mac(key, url, "sha1"))


def _convoy_simple(came: Came, key: str) -> bool:
    return _of(came, "x-convoy-signature") == _mac(key, came.body).hex()


def _convoy_advanced(came: Came, key: str) -> bool:
    at, *signatures = _of(came, "x-convoy-signature").split(",")
    own = _mac(key, at.removeprefix("t=").encode() + b"," + came.body).hex()
    return at == f"t={_of(came, 'webhook-timestamp')}" and f"v1={own}" in signatures


def _outpost(came: Came, key: str) -> bool:
    signatures = _of(came, "x-outpost-signature").removeprefix("v0=").split(",")
    named = (_of(came, "x-outpost-topic"), _of(came, "x-outpost-event-id")) == (KIND, _of(came, "webhook-id"))
    at = f"{int(datetime.fromisoformat(_of(came, 'x-outpost-timestamp')).timestamp())}"
    return named and at == _of(came, "webhook-timestamp") and _mac(key, came.body).hex() in signatures


def _hook0(came: Came, key: str) -> bool:
    found = re.fullmatch(r"t=(\d+),h=([a-z0-9 -]*),v1=([0-9a-f]+)", _of(came, "x-hook0-signature"))
    if found is None:
        return False
    at, names, signature = found.groups()
    values = ".".join(_of(came, name) for name in names.split())
    named = (_of(came, "x-event-type"), at) == (KIND, _of(came, "webhook-timestamp"))
    return named and signature == _mac(key, f"{at}.{names}.{values}.".encode() + came.body).hex()


def _hmac_body(came: Came, key: str) -> bool:
    return _of(came, "x-own") == f"sig={_base64(_mac(key, came.body, 'sha512'))}"


def _standard(came: Came, key: str) -> bool:
    same = all(_of(came, f"svix-{each}") == _of(came, f"webhook-{each}") for each in ("id", "timestamp", "signature"))
    return same and is_signed(came, key)


OWN: Mapping[str, Any] = {
    "content": "{{{id}}}.{ts}.{ts_ms}.{ts_iso}.{event_type}.{event_id}.{header:x-more}.{url}.{body}",
    "hash": "sha1",
    "legacy": True,
    "encoding": "base64",
    "key": {"prefix": "hex_", "encoding": "hex"},
    "header": {
        "name": "X-Acme-Signature",
        "value": "t={ts};{signatures}",
        "each": "v1={signature}",
        "joiner": " ",
        "keys": "all",
    },
    "headers": {"X-More": "{event_type}/{event_id}", "X-Times": "{ts} {ts_ms} {ts_iso}", "X-Brace": "{{}}"},
}
HEX_KEY, NEXT_HEX_KEY = "hex_00112233445566778899aabbccddeeff", "hex_ffeeddccbbaa99887766554433221100"


def _own(came: Came, key: str) -> bool:
    at, at_ms, iso = _of(came, "x-times").split(" ")
    message_id, event_id = _of(came, "webhook-id"), json.loads(came.body)["eventId"] or _of(came, "webhook-id")
    more = f"{KIND}/{event_id}"
    parts = (f"{{{message_id}}}", at, at_ms, iso, KIND, event_id, more, URL)
    own = _base64(_mac(bytes.fromhex(key.removeprefix("hex_")), ".".join(parts).encode() + b"." + came.body, "sha1"))
    time = datetime.fromisoformat(iso)
    times = (at, at_ms[:-3], f"{int(time.timestamp())}") == (_of(came, "webhook-timestamp"), at, at)
    begins, _, signatures = _of(came, "x-acme-signature").partition(";")
    named = (_of(came, "x-more"), _of(came, "x-brace"), begins) == (more, "{}", f"t={at}")
    return times and named and f"v1={own}" in signatures.split(" ")


SCHEMES: Mapping[str, tuple[Mapping[str, Any], Verify, tuple[str, str], bool]] = {
    "stripe": ({"preset": "stripe"}, stripe, (KEY, NEXT_KEY), True),
    "github": ({"preset": "github"}, _github, (KEY, NEXT_KEY), False),
    "shopify": (
        {"preset": "shopify", "headers": {"X-Shopify-Shop-Domain": "a.example", "X-Shopify-API-Version": "2026-10"}},
        _shopify,
        (KEY, NEXT_KEY),
        False,
    ),
    "slack": ({"preset": "slack"}, _slack, (KEY, NEXT_KEY), False),
    "twilio": ({"preset": "twilio"}, _twilio, (KEY, NEXT_KEY), False),
    "convoy-simple": ({"preset": "convoy-simple"}, _convoy_simple, (KEY, NEXT_KEY), False),
    "convoy-advanced": ({"preset": "convoy-advanced"}, _convoy_advanced, (KEY, NEXT_KEY), True),
    "outpost": ({"preset": "outpost"}, _outpost, (KEY, NEXT_KEY), True),
    "hook0": ({"preset": "hook0"}, _hook0, (KEY, NEXT_KEY), False),
    "hmac-body": (
        {
            "preset": "hmac-body",
            "header": {"name": "X-Own", "value": "sig={signatures}"},
            "hash": "sha512",
            "encoding": "base64",
        },
        _hmac_body,
        (KEY, NEXT_KEY),
        False,
    ),
    "own": (OWN, _own, (HEX_KEY, NEXT_HEX_KEY), True),
}
"""Each scheme, how its receiver verifies, two secrets, and whether its header has room for several signatures."""


def webhooks(talk: Talk) -> None:
    """All that endpoints can be signed with."""
    talk.through(_begun, _each, _two, _inherited, _ended, _keys, _refused, _over)


def _begun(talk: Talk) -> None:
    talk.ask("POST", "/event-type", {"name": KIND, "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Signs", "uid": "signs"}, status=201)
    talk.ask("POST", f"{APP}/endpoint", {"url": URL, "uid": "one", "secret": ENDPOINT_KEY}, status=201)


def _over(talk: Talk) -> None:
    talk.ask("DELETE", APP, status=204)
    talk.ask("DELETE", f"/event-type/{KIND}?expunge=true", status=204)


def _sent(talk: Talk, came: Sequence[Came], event_id: str | None = None) -> Came:
    """Post a message, and wait for what comes of it."""
    begins = len(came)
    payload = {"eventId": event_id, "text": "é"}
    talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "payload": payload, "eventId": event_id}, status=202)
    talk.sleep(5)
    talk.came("one request", 1, len(came) - begins)
    return came[-1]


def _each(talk: Talk) -> None:
    """What each scheme's receiver verifies; another secret; what is shown of it, which may be sent back."""
    came = talk.listen(HOST, lambda _: (200, b""))
    standard = {"signatures": [{"preset": "standard-webhooks"}]}
    for name, (scheme, verify, (key, next_key), several) in SCHEMES.items():
        # A scheme is known by its header: one that comes after another of that name would go on with its secret
        talk.ask("PUT", f"{PATH}/signatures", {"signatures": []}, shows=standard)
        whole = {"signatures": [{**scheme, "secret": key}]}
        shown = talk.ask("PUT", f"{PATH}/signatures", whole, shows={"signatures": [{**scheme}]})
        talk.is_so(f"{name}: no secret", False, key in json.dumps(shown))
        talk.is_so(f"{name}: shown so", lambda each, shown=shown: each == shown, talk.ask("GET", f"{PATH}/signatures"))
        one = _sent(talk, came, f"{name}-1")
        talk.came(f"{name} is verified", (True, False), (verify(one, key), verify(one, next_key)))
        others = {each for each in one.headers if each.startswith("svix-") or each == "webhook-signature"}
        talk.came(f"{name}: none of the standard's", set(), others)
        talk.came(f"{name}: what stays", {"webhook-id": str, "webhook-timestamp": str}, one.headers)
        talk.ask("GET", f"{PATH}/secret", shows={"key": key})
        talk.ask("POST", f"{PATH}/secret/rotate", {}, status=400)
        # Sent back as it is shown, nothing changes
        talk.ask("PUT", f"{PATH}/signatures", {"signatures": shown["signatures"]})
        talk.came(f"{name}: the stored secret", True, verify(_sent(talk, came), key))
        changed = {**scheme, "secret": next_key}
        graceful = {"signatures": [{**changed, "gracePeriodSeconds": 120}]}
        talk.ask("PUT", f"{PATH}/signatures", graceful, status=200 if several else 422)
        if not several:
            talk.ask("PUT", f"{PATH}/signatures", {"signatures": [changed]})
        one = _sent(talk, came)
        talk.came(f"{name}: both sign if there is room", (several, True), (verify(one, key), verify(one, next_key)))
        if several:
            talk.sleep(120)
            one = _sent(talk, came)
            talk.came(f"{name}: for a while", (False, True), (verify(one, key), verify(one, next_key)))
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": []}, shows=standard)
    talk.came("the standard again", True, _standard(_sent(talk, came), ENDPOINT_KEY))


def _two(talk: Talk) -> None:
    """Two schemes sign each request; each way of naming them; attempts say by which they were signed."""
    came = talk.listen(HOST, lambda _: (200, b""))
    both = {"signatures": [{"preset": "stripe", "secret": KEY}, {"preset": "standard-webhooks"}]}
    talk.ask(
        "PUT", f"{PATH}/signatures", both, shows={"signatures": [{"preset": "stripe"}, {"preset": "standard-webhooks"}]}
    )
    one = _sent(talk, came)
    talk.came("both", (True, True), (stripe(one, KEY), _standard(one, ENDPOINT_KEY)))
    attempts = talk.ask("GET", f"{APP}/attempt/endpoint/one?limit=1", shows={"data": [{"signedBy": [..., ...]}]})
    talk.is_so("signed by", ["standard-webhooks", "stripe"], sorted(attempts["data"][0]["signedBy"]))
    # The standard's secret is the endpoint's own, and is the one that is shown and rotated
    talk.ask("GET", f"{PATH}/secret", shows={"key": ENDPOINT_KEY})
    talk.ask("POST", f"{PATH}/secret/rotate", {"key": OTHER_SECRET}, shows={"key": OTHER_SECRET})
    one = _sent(talk, came)
    signed = (stripe(one, KEY), _standard(one, ENDPOINT_KEY), _standard(one, OTHER_SECRET))
    talk.came("the standard's rotates", (True, True, True), signed)
    # For a day, by default
    talk.sleep(86_400 - 120, exactly=True)
    one = _sent(talk, came)
    talk.came("nearly a day", (True, True), (_standard(one, ENDPOINT_KEY), _standard(one, OTHER_SECRET)))
    talk.sleep(180, exactly=True)
    one = _sent(talk, came)
    talk.came("after a day", (False, True), (_standard(one, ENDPOINT_KEY), _standard(one, OTHER_SECRET)))
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": []})
    talk.ask("POST", f"{PATH}/secret/rotate", {"key": ENDPOINT_KEY, "gracePeriodSeconds": 0})
    one = _sent(talk, came)
    talk.came("at once", (True, False), (_standard(one, ENDPOINT_KEY), _standard(one, OTHER_SECRET)))
    talk.ask("GET", f"{APP}/attempt/endpoint/one?limit=1", shows={"data": [lambda each: "signedBy" not in each]})


def _inherited(talk: Talk) -> None:
    """An endpoint's own schemes first, then its application's, then the project's."""
    came = talk.listen(HOST, lambda _: (200, b""))
    decoded = {"content": "{ts}.{body}", "header": {"name": "X-App"}, "key": {"prefix": "whsec_", "encoding": "base64"}}
    for path in ("/signatures", f"{APP}/signatures"):
        talk.ask("GET", path, shows={"signatures": []})
        for bad in ({"preset": "stripe", "secret": KEY}, {"preset": "twilio"}, {**decoded, "key": {"prefix": "x"}}):
            talk.ask("PUT", path, {"signatures": [bad]}, status=422)
    talk.ask("PUT", "/signatures", {"signatures": [{"preset": "stripe"}]}, shows={"signatures": [{"preset": "stripe"}]})
    talk.sleep(2)
    talk.ask("GET", f"{PATH}/signatures", shows={"signatures": [{"preset": "stripe"}], "inheritedFrom": "project"})
    one = _sent(talk, came)
    talk.came("the project's", (True, False), (stripe(one, ENDPOINT_KEY), "webhook-signature" in one.headers))
    talk.ask("PUT", f"{APP}/signatures", {"signatures": [decoded]}, shows={"signatures": [decoded]})
    talk.sleep(2)
    talk.ask("GET", f"{PATH}/signatures", shows={"signatures": [decoded], "inheritedFrom": "application"})
    one = _sent(talk, came)
    key = base64.b64decode(ENDPOINT_KEY.removeprefix("whsec_"))
    own = _mac(key, f"{_of(one, 'webhook-timestamp')}.".encode() + one.body).hex()
    talk.came("the application's", (own, False), (_of(one, "x-app"), "stripe-signature" in one.headers))
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": [{"preset": "standard-webhooks"}]})
    shown = talk.ask("GET", f"{PATH}/signatures", shows={"signatures": [{"preset": "standard-webhooks"}]})
    talk.is_so("its own", False, "inheritedFrom" in shown)
    one = _sent(talk, came)
    talk.came("its own", (True, False), (_standard(one, ENDPOINT_KEY), "x-app" in one.headers))
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": []}, shows={"inheritedFrom": "application"})
    for path in (f"{APP}/signatures", "/signatures"):
        talk.ask("PUT", path, {"signatures": []}, shows={"signatures": []})
    talk.sleep(2)
    talk.came("none of them", True, _standard(_sent(talk, came), ENDPOINT_KEY))


def _ended(talk: Talk) -> None:
    """A scheme with an end signs until then, and not after it."""
    came = talk.listen(HOST, lambda _: (200, b""))
    ends = datetime.fromtimestamp(talk.epoch_s() + 600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    both = [{"preset": "stripe", "secret": KEY, "endsAt": ends}, {"preset": "standard-webhooks"}]
    shown = talk.ask("PUT", f"{PATH}/signatures", {"signatures": both}, shows={"signatures": [{"endsAt": str}, ...]})
    talk.is_so("its end", True, shown["signatures"][0]["endsAt"].startswith(ends[:-1]))
    talk.ask("GET", f"{PATH}/health", shows={"signaturesEnd": {"Stripe-Signature": str}})
    talk.sleep(560, exactly=True)
    one = _sent(talk, came)
    talk.came("before its end", (True, True), (stripe(one, KEY), _standard(one, ENDPOINT_KEY)))
    talk.sleep(60, exactly=True)
    one = _sent(talk, came)
    talk.came("after it", (False, True), ("stripe-signature" in one.headers, _standard(one, ENDPOINT_KEY)))
    talk.ask("GET", f"{PATH}/signatures", shows={"signatures": [{"preset": "standard-webhooks"}]})
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": []})


SEED = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
"""The key pair of Standard Webhooks' documentation."""


def _keys(talk: Talk) -> None:
    """An Ed25519 key: its public half is shown, at a URL without a token, too; it signs beside the old one."""
    came = talk.listen(HOST, lambda _: (200, b""))
    talk.ask("POST", f"{PATH}/secret/rotate", {"key": SEED, "gracePeriodSeconds": 60}, shows={"key": PUBLIC})
    shown = talk.ask("GET", f"{PATH}/secret", shows={"key": PUBLIC, "publicKeysUrl": str})
    public = "/" + shown["publicKeysUrl"].split("/", 3)[3]
    raw = base64.b64decode(PUBLIC.removeprefix("whpk_"))
    x = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    thumbprint = hashlib.sha256(json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":")).encode())
    kid = base64.urlsafe_b64encode(thumbprint.digest()).decode().rstrip("=")
    key = {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "whpk": PUBLIC}
    nobody = talk.at("").with_headers(authorization="")
    nobody.ask("GET", public, shows={"keys": [key]})
    nobody.ask("GET", public.rpartition("/")[0] + "/ep_none", status=404)
    cached = nobody.answered("GET", public).headers.get("cache-control", "")
    talk.is_so("for five minutes", True, "max-age=300" in cached)
    one = _sent(talk, came)
    kinds = [each.partition(",")[0] for each in one.headers["webhook-signature"].split(" ")]
    talk.came("the new key first", (["v1a", "v1"], True), (kinds, is_signed(one, ENDPOINT_KEY)))
    talk.sleep(60)
    one = _sent(talk, came)
    talk.came("then alone", ["v1a"], [each.partition(",")[0] for each in one.headers["webhook-signature"].split(" ")])
    talk.ask(
        "POST", f"{PATH}/secret/rotate", {"key": ENDPOINT_KEY, "gracePeriodSeconds": 0}, shows={"key": ENDPOINT_KEY}
    )
    nobody.ask("GET", public, shows={"keys": []})
    for bad in (SEED[:-4] + "AA==", "whsk_AAAA", "whpk_" + PUBLIC[5:], "x"):
        talk.ask("POST", f"{PATH}/secret/rotate", {"key": bad}, status=422)


GOOD: Mapping[str, Any] = {"content": "{body}", "header": {"name": "X-A"}, "secret": "12345678"}
BAD: tuple[tuple[Any, str], ...] = (
    ([{"preset": "nobody", "secret": KEY}], "preset"),
    ([{"preset": "stripe", "secret": ""}], "secret"),
    ([{"preset": "standard-webhooks", "secret": KEY}], "secret"),
    ([{"preset": "shopify", "secret": KEY, "content": "{body}"}], "headers"),
    ([{**GOOD, "secret": "1234567"}], "secret"),
    ([{**GOOD, "content": "{ts}"}], "content"),
    ([{**GOOD, "content": "{body}{body}"}], "content"),
    ([{**GOOD, "content": "{body}{nothing}"}], "content"),
    ([{**GOOD, "content": "{body"}], "content"),
    ([{**GOOD, "hash": "sha1"}], "hash"),
    ([{**GOOD, "hash": "md5"}], "hash"),
    ([{**GOOD, "encoding": "base32"}], "encoding"),
    ([{**GOOD, "key": {"encoding": "hex"}}], "secret"),
    ([{**GOOD, "key": {"prefix": "x_"}}], "secret"),
    ([{**GOOD, "header": {}}], "header"),
    ([{**GOOD, "header": {"name": "a b"}}], "header"),
    ([{**GOOD, "header": {"name": "Content-Type"}}], "header"),
    ([{**GOOD, "header": {"name": "webhook-id"}}], "header"),
    ([{**GOOD, "header": {"name": "X-A", "value": "none"}}], "header"),
    ([{**GOOD, "header": {"name": "X-A", "value": "{signatures}{signatures}"}}], "header"),
    ([{**GOOD, "header": {"name": "X-A", "each": "none"}}], "header"),
    ([{**GOOD, "header": {"name": "X-A", "keys": "oldest"}}], "header"),
    ([{**GOOD, "headers": {"X-B": "a\nb"}}], "headers"),
    ([{**GOOD, "headers": {"X-B": 4_097 * "b"}}], "headers"),
    ([{**GOOD, "headers": {"X-B": "{body}"}}], "headers"),
    ([{**GOOD, "headers": {"X-A": "b"}}], "headers"),
    ([GOOD, GOOD], "signatures"),
    ([GOOD, {"preset": "stripe", "secret": KEY}, {"preset": "github", "secret": KEY}], "signatures"),
    ([{**GOOD, "gracePeriodSeconds": -1}], "gracePeriodSeconds"),
    ([{**GOOD, "gracePeriodSeconds": 604_801}], "gracePeriodSeconds"),
    ([{"content": "{body}", "header": {"name": "X-New"}}], "secret"),
)
"""Schemes that are none, and what of each is wrong."""


def _refused(talk: Talk) -> None:
    """What is no scheme, with the field that is wrong; the stored ones stay."""
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": [GOOD]})
    before = talk.ask("GET", f"{PATH}/signatures")
    for bad, field in BAD:
        answer = talk.ask("PUT", f"{PATH}/signatures", {"signatures": bad}, status=422)
        talk.is_so(f"{str(bad)[:80]} names {field}", True, field in answer["detail"][0]["loc"])
    talk.is_so("what is stored", lambda each: each == before, talk.ask("GET", f"{PATH}/signatures"))
    # One that has no secret any more, and so is new again
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": [{key: GOOD[key] for key in ("content", "header")}]})
    talk.ask("PUT", f"{PATH}/signatures", {"signatures": []})


__all__ = ["ENDPOINT_KEY", "KEY", "NEXT_KEY", "SEED", "stripe", "webhooks"]
