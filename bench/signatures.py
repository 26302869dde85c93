"""What signing a request to an endpoint costs in CPU: nothing but a look for who has no schemes, and a second HMAC.

    .venv/bin/python -m bench.signatures [--rounds 15] [--save docs/figures/signatures.md]

The calls are those of ``WebhookTarget`` for a body of 1 KB: the keys are decoded, the schemes looked for, and the
headers made. Secrets are open already, as the vault keeps them for an hour; nothing is sent. The rows take turns, round
after round, and the medians of the rounds are compared: on a machine that others use, too, their ratios say more than
their microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.harness import Page, cells, cpu_medians
from pushhub.base.signature_schemes import PRESETS, Scheme, SecretRing, Unsigned, encode_rings
from pushhub.base.signing import KeyRing, SigningKey, signatures
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.signatures import secrets_of, signed

CALLS = 2_000
"""Calls of a row in a round."""
BODY = b"x" * 1_024
AT = 1_800_000_000_000
ENDPOINT = Endpoint(
    project="5f0000000000000000000001",
    app_id="app_1",
    endpoint_id="ep_1",
    fields=EndpointFields(url="https://a.example/in"),
    reach=Reach.PROJECT,
    sealed=KeyRing(SigningKey(b"k" * 24)).encode(),
    created_at=AT,
    updated_at=AT,
)
REQUEST = Unsigned(message_id="msg_1", event_id="msg_1", event_type="order.paid", at=AT, url="", body=BODY)
STANDARD, STRIPE, GITHUB = PRESETS["standard-webhooks"], PRESETS["stripe"], PRESETS["github"]


class OpenVault:
    """A vault whose secrets are open: what is kept in memory for an hour."""

    def open(self, project_id: str, sealed: bytes) -> bytes:  # noqa: ARG002 (one project)
        """The same bytes."""
        return sealed

    def seal(self, project_id: str, content: bytes) -> bytes:  # noqa: ARG002 (one project)
        """The same bytes."""
        return content


VAULT = OpenVault()


def own(*schemes: Scheme) -> Endpoint:
    """The endpoint with schemes of its own."""
    rings = [None if each.standard else SecretRing("whsec_0123456789") for each in schemes]
    return replace(ENDPOINT, signatures=schemes, scheme_secrets=encode_rings(rings))


def before_there_were_schemes() -> None:
    """Sign by Standard Webhooks, and look for nothing else."""
    keys = KeyRing.decode(VAULT.open(ENDPOINT.project, ENDPOINT.sealed))
    signatures(keys.live(AT), "msg_1", AT // 1000, BODY)


def signing(endpoint: Endpoint, *defaults: tuple[Scheme, ...]) -> Callable[[], None]:
    """What ``WebhookTarget`` does to sign a request to an endpoint."""

    def sign() -> None:
        schemes = endpoint.signed_by(*defaults)
        keys = None
        if not endpoint.signatures or any(each.standard for each in schemes):
            keys = KeyRing.decode(VAULT.open(endpoint.project, endpoint.sealed))
        pairs = secrets_of(endpoint, schemes, keys, VAULT, AT) if schemes else []
        if keys and (not pairs or any(each.standard and each.signs_at(AT) for each in schemes)):
            signatures(keys.live(AT), "msg_1", AT // 1000, BODY)
        if pairs:
            signed(endpoint.fields.url, pairs, REQUEST)

    return sign


ROWS: dict[str, Callable[[], None]] = {
    "Standard Webhooks, nothing looked for": before_there_were_schemes,
    "no schemes anywhere": signing(ENDPOINT, (), ()),
    "one of its own instead": signing(own(STRIPE)),
    "one that ends, and Standard Webhooks": signing(own(replace(STRIPE, ends_at=AT + 1), STANDARD)),
    "two of its own": signing(own(STRIPE, GITHUB)),
    "inherited, and Standard Webhooks": signing(ENDPOINT, (), (STRIPE, STANDARD)),
}


def main() -> None:
    """Measure, print and save."""
    page = Page("What signatures cost", __doc__, rounds=15)
    found = cpu_medians({name: (sign, CALLS) for name, sign in ROWS.items()}, page.options.rounds)
    first = next(iter(found.values()))
    rows = [[name, *cells(".1f", each, each - first), f"{each / first:.2f}"] for name, each in found.items()]
    page.table(["an endpoint with", "µs a request", "µs more", "to the first row"], rows)
    page.save()


if __name__ == "__main__":
    main()
