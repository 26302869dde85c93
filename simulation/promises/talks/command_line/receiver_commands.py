"""What receivers demand: signatures, and tokens of their token servers."""

from __future__ import annotations

import json

from simulation.promises.talks.command_line.printed import REFUSED, WRONG_USAGE, would
from simulation.promises.talks.talk import Talk


def receiver_signed(talk: Talk, whose: tuple[str, ...]) -> None:
    """All schemes of a subscriber or a service are replaced, or ended."""
    unsigned, signed = ([{"header": None, "endsAt": None, "signed": each}] for each in (False, True))
    talk.typed("signatures", "show", *whose, shows=unsigned)
    stripe = json.dumps([{"preset": "stripe", "secret": "12345678"}])
    talk.typed("signatures", "set", "-", *whose, "--dry-run", given=stripe, shows=would("P"))
    talk.typed("signatures", "show", *whose, shows=unsigned)
    talk.typed("signatures", "set", "-", *whose, given=stripe, shows=signed)
    talk.typed("signatures", "add", "github", *whose, code=WRONG_USAGE)
    talk.typed("signatures", "off", *whose, code=WRONG_USAGE)
    talk.typed("signatures", "off", *whose, "--yes")
    talk.typed("signatures", "show", *whose, shows=unsigned)


def gated(talk: Talk, whose: tuple[str, ...]) -> None:
    """Tokens of a receiver's token server."""
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, {"gate": "mtls", "enabled": False}])
    oauth = ("gates", "oauth", "--token-url", "https://typed-login.example/t", "--client-id", "pushhub", "--scope", "a")
    talk.typed(*oauth, "--secret-file", "-", "--dry-run", *whose, given="hush\n")
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, ...])
    says = "Tokens of https://typed-login.example/t are sent from now on"
    talk.typed(*oauth, *whose, "--secret-file", "-", given="hush\n", says=says)
    talk.typed(*oauth, *whose, says=says)
    shown = talk.typed(
        "gates", "show", *whose, shows=[{"gate": "oauth", "enabled": True}, {"gate": "mtls", "enabled": False}]
    )
    talk.is_so("no secret", False, "hush" in json.dumps(shown))
    talk.typed("gates", "oauth", "--token-url", "http://a.example/", "--client-id", "x", *whose, code=REFUSED)
    talk.typed("gates", "remove", "oauth", *whose, code=WRONG_USAGE)
    talk.typed("gates", "remove", "oauth", *whose, "--dry-run", shows=would())
    talk.typed("gates", "remove", "oauth", *whose, "--yes")
    talk.typed("gates", "remove", "oauth", *whose, "--yes", code=REFUSED)
    talk.typed("gates", "show", *whose, shows=[{"gate": "oauth", "enabled": False}, ...])
    talk.typed("gates", "show", code=WRONG_USAGE)


__all__ = ["gated", "receiver_signed"]
