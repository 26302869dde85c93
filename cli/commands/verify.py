"""``pushhub verify``."""

from __future__ import annotations

import sys
import time
from typing import BinaryIO

import click

from ..framework import Command
from ..hub import HubOptions
from ..messages.signatures import TOLERANCE_S, Signed, findings

HEADERS = {"id": "message_id", "timestamp": "timestamp", "signature": "signature"}


@click.command(cls=Command)
@click.option(
    "--secret",
    envvar="PUSHHUB_SIGNING_SECRET",
    prompt=True,
    hide_input=True,
    help="whsec_..., or whpk_... for Ed25519. Default: PUSHHUB_SIGNING_SECRET, or you are asked for it.",
)
@click.option("--id", "message_id", help="Header webhook-id.")
@click.option("--timestamp", help="Header webhook-timestamp.")
@click.option("--signature", help="Header webhook-signature.")
@click.option("--body", type=click.File("rb"), help="A file with the exact body; by default standard input.")
@click.option(
    "--request",
    type=click.File("rb"),
    help="A whole request instead of the other four: headers, an empty line, the body.",
)
@click.option(
    "--tolerance", type=int, default=TOLERANCE_S, show_default=True, help="Seconds that the timestamp may be off."
)
@click.pass_obj
def verify(
    hub: HubOptions,
    *,
    secret: str,
    message_id: str | None,
    timestamp: str | None,
    signature: str | None,
    body: BinaryIO | None,
    request: BinaryIO | None,
    tolerance: int,
) -> int:
    """Check a webhook's signature (Standard Webhooks, Svix), and say which part is wrong: timestamp, id, key or body.

    The exit code is 1 if the request must be refused.
    """
    if request is not None:
        if any((message_id, timestamp, signature, body)):
            raise click.UsageError("--request contains all parts: give no others")
        signed = read_request(request.read())
    else:
        content = (body or sys.stdin.buffer).read()
        signed = Signed(message_id=message_id or "", timestamp=timestamp or "", signature=signature or "", body=content)
    found = findings(signed, secret, int(time.time()), tolerance)
    hub.show({"part": each.part, "state": "wrong" if each.wrong else "ok", "says": each.says} for each in found)
    return 1 if any(each.wrong for each in found) else 0


def read_request(raw: bytes) -> Signed:
    """The signed parts of a request as it went over the wire, its headers named in either way."""
    ends = [(raw.find(end), end) for end in (b"\r\n\r\n", b"\n\n") if end in raw]
    at, end = min(ends, default=(len(raw), b""))
    parts = dict.fromkeys(HEADERS.values(), "")
    for line in raw[:at].decode("latin-1").splitlines():
        name, colon, value = line.partition(":")
        prefix, _, kind = name.strip().lower().partition("-")
        if colon and prefix in ("webhook", "svix") and kind in HEADERS:
            parts[HEADERS[kind]] = value.strip()
    return Signed(**parts, body=raw[at + len(end) :])
