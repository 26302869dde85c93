"""The signature schemes of endpoints, as their owners ask for them and are shown them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import FieldRefused
from pushhub.base.times import iso_time
from pushhub.web.signatures import check_ends, read_signatures, scheme_view

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme, SecretRing
    from pushhub.base.signing_change import WantedSignature
    from pushhub.webhooks.wire.fields import Fields

FIELD = "signatures"


def parse_signatures(fields: Fields, *, required: bool = False) -> tuple[WantedSignature, ...]:
    """Read the schemes that an owner asks for; none for those of the application or project."""
    if required and not fields.has(FIELD):
        raise fields.refuse("A list of signatures is required", FIELD)
    try:
        return read_signatures(fields.raw(FIELD))
    except FieldRefused as refused:
        raise fields.refuse(refused.text, FIELD, *refused.place) from refused


def parse_defaults(fields: Fields, now: int) -> tuple[Scheme, ...]:
    """Read the schemes that endpoints are to inherit. They have no secrets: each endpoint's own signs."""
    wanted = parse_signatures(fields, required=True)
    for number, each in enumerate(wanted):
        if each.secret is not None:
            raise fields.refuse("Each endpoint's own secret signs, so none is given here", FIELD, str(number), "secret")
        if each.scheme.query:
            raise fields.refuse("It adds to the URL, which only an endpoint can say", FIELD, str(number), "preset")
        if not each.scheme.standard and not _takes_keys(each.scheme):
            raise fields.refuse("Endpoints' secrets are whsec_ and base64", FIELD, str(number), "key")
    try:
        check_ends(wanted, now)
    except FieldRefused as refused:
        raise fields.refuse(refused.text, FIELD, *refused.place) from refused
    return tuple(each.scheme for each in wanted)


def _takes_keys(scheme: Scheme) -> bool:
    return (scheme.key_prefix, scheme.key_encoding) in (("", "utf8"), ("whsec_", "utf8"), ("whsec_", "base64"))


def schemes_view(schemes: Sequence[Scheme], now: int) -> list[Mapping[str, Any]]:
    """Schemes without secrets as they are shown."""
    return [scheme_view(each) for each in schemes if each.signs_at(now)]


def secret_scheme_view(scheme: Scheme, ring: SecretRing | None, now: int) -> Mapping[str, Any]:
    """A scheme of an endpoint's own, without its secrets, as it is shown."""
    ends = [] if ring is None else [iso_time(ends_at) for _, ends_at in ring.old if ends_at > now]
    return {**scheme_view(scheme), "oldSecretsEnd": ends}
