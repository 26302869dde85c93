"""``pushhub listen``."""

from __future__ import annotations

import getpass
import os
import re
import signal
import socket
import threading
import time
from typing import Any

import click

from ..framework import Printing
from ..hub import HubOptions
from ..messages.listening import Listening, Target, signing_key
from ..terminal import printable


def _default_subscriber() -> str:
    return re.sub(r"[^ -~]", "-", f"listen-{getpass.getuser()}-{socket.gethostname()}")[:200]


@click.command(cls=Printing)
@click.argument("topic")
@click.option(
    "--forward", required=True, metavar="URL", help="Gets a POST for each message, for example http://localhost:3000."
)
@click.option(
    "--subscriber",
    default=_default_subscriber,
    show_default="listen-USER-HOST",
    help="The hub keeps the messages that this subscriber has not acknowledged.",
)
@click.option("--secret", envvar="PUSHHUB_LISTEN_SECRET", help="Sign what is forwarded (Standard Webhooks): whsec_...")
@click.option("--skip-failed", is_flag=True, help="Also acknowledge messages that were not answered with 2xx.")
@click.option("--websocket-url", default="", help="The stack's output WebSocketUrl, if the hub has no EdgeUrl.")
@click.pass_obj
def listen(
    hub: HubOptions,
    *,
    topic: str,
    forward: str,
    subscriber: str,
    secret: str | None,
    websocket_url: str,
    skip_failed: bool,
) -> None:
    """Forward the messages of a topic to a program on this machine, as a WebSocket consumer.

    A 2xx acknowledges a message. After any other answer it is tried again, in order. Nothing is lost when the
    connection breaks or this command ends: from the first connection on, the hub keeps what was not acknowledged.
    """
    if not forward.startswith(("http://", "https://")):
        raise click.UsageError("--forward must begin with http:// or https://")
    try:
        key = signing_key(secret) if secret else b""
    except ValueError as error:
        raise click.UsageError("--secret is not base64 after whsec_") from error
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # What is being forwarded is finished and acknowledged first; a second time ends it at once.
        signal.signal(number, lambda *_: os._exit(130) if stopped.is_set() else stopped.set())
    target = Target(forward, topic, key=key, now=lambda: int(time.time()))

    def say(event: str, fields: dict[str, Any]) -> None:
        shown = " ".join(f"{name}={printable(value)}" for name, value in fields.items())
        if event == "forwarded":
            state = "ok" if fields["taken"] else "failed"
            shown = f"{fields['action']} {printable(fields['from'])} {fields['status'] or 'no answer'} {state}"
        if event != "acknowledged" or hub.as_json:
            hub.event({"event": event, **fields}, f"{time.strftime('%H:%M:%S')} {event} {shown}")

    Listening(
        hub.rest(),
        topic=topic,
        subscriber=subscriber,
        post=target.post,
        say=say,
        stopped=stopped,
        skip_failed=skip_failed,
        websocket_url=websocket_url,
    ).run()
