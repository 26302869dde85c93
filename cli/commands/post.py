"""``pushhub post``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import click

from cli.commands.queues import complete
from cli.framework import Command
from cli.hub import HubOptions
from cli.rest import Refused, Rest, Unreachable

BATCH = 100
"""Messages in one request: the hub's limit."""
BATCH_BYTES = 3_000_000
"""Bytes of bodies in one request, which may have 4 MiB in total."""
ESCAPED = 6
"""The most bytes of JSON that a byte of text can become."""


@click.command(cls=Command)
@click.argument("queue", shell_complete=complete)
@click.argument("body", required=False)
@click.option("--file", type=click.File("rb"), help="A file with the body; - is standard input.")
@click.option("--ndjson", type=click.File("rb"), help="A file with a message on each line; - is standard input.")
@click.option("--delay", type=int, default=0, help="Seconds before it is available.")
@click.option("--header", "-H", multiple=True, metavar="NAME=VALUE", help="Sent with each push. Repeatable.")
@click.option("--skip", type=int, default=0, help="With --ndjson: number of lines that are already in the queue.")
@click.pass_obj
def post(
    hub: HubOptions,
    *,
    queue: str,
    body: str | None,
    file: BinaryIO | None,
    ndjson: BinaryIO | None,
    delay: int,
    header: tuple[str, ...],
    skip: int,
) -> None:
    """Post a message, or one for each line of a file. Without BODY, it is read from standard input.

    Lines are posted in order, in requests of up to a hundred. If that fails half-way, the command says what to --skip.
    """
    if sum(each is not None for each in (body, file, ndjson)) > 1:
        raise click.UsageError("give one of BODY, --file and --ndjson")
    headers = dict(_header(each) for each in header)
    rest = hub.rest()
    if ndjson is not None:
        hub.show([{"posted": _post_lines(hub, rest, queue, ndjson, delay=delay, headers=headers, skip=skip)}])
        return
    content = body.encode() if body is not None else (file or sys.stdin.buffer).read()
    hub.show([{"id": send(rest, queue, content, delay=delay, headers=headers)}])


def send(rest: Rest, queue: str, content: bytes, *, delay: int = 0, headers: dict[str, str]) -> str:
    """Post one message with any bytes, and return its id.

    Raises:
        click.ClickException: The hub did not accept it.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        if delay:
            raise click.UsageError("a body that is not text cannot be delayed") from error
        shown = {f"X-Subscribers-{name}": value for name, value in headers.items()}
        shown["Content-Type"] = "application/octet-stream"
        ids: list[str] = rest.call("POST", rest.queue(queue, "/webhook"), content, headers=shown)["ids"]
        return ids[0]
    ids = rest.call("POST", rest.queue(queue, "/messages"), {"messages": [_message(text, delay, headers)]})["ids"]
    return ids[0]


def _post_lines(
    hub: HubOptions, rest: Rest, queue: str, file: BinaryIO, *, delay: int, headers: dict[str, str], skip: int
) -> int:
    posted = 0
    done = skip
    with click.progressbar(length=0, label="posting", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for lines in _batches(_lines(file, skip)):
            texts = [text for _, text in lines]
            try:
                rest.call(
                    "POST",
                    rest.queue(queue, "/messages"),
                    {"messages": [_message(each, delay, headers) for each in texts]},
                )
            except Refused as error:
                raise click.ClickException(f"{error.message}; posted {posted}, continue with --skip {done}") from error
            except Unreachable as error:
                perhaps = f"posted {posted}, and perhaps {len(lines)} more; continue with --skip {done}"
                raise Unreachable(f"{error.message}; {perhaps}") from error
            posted += len(lines)
            done = lines[-1][0]
            bar.length = posted
            bar.update(len(lines))
    if not sys.stderr.isatty():
        hub.note(f"posted {posted}")
    return posted


def _lines(file: Iterable[bytes], skip: int) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not empty.

    Raises:
        click.UsageError: A line is not text.
    """
    for number, line in enumerate(file, 1):
        if number <= skip or not line.strip():
            continue
        try:
            yield number, line.rstrip(b"\r\n").decode()
        except UnicodeDecodeError as error:
            raise click.UsageError(f"line {number} is not UTF-8") from error


def _batches(lines: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    batch: list[tuple[int, str]] = []
    size = 0
    for number, text in lines:
        length = len(text.encode())
        if batch and (len(batch) == BATCH or size + length > BATCH_BYTES // ESCAPED):
            yield batch
            batch, size = [], 0
        batch.append((number, text))
        size += length
    if batch:
        yield batch


def _message(text: str, delay: int, headers: dict[str, str]) -> dict[str, Any]:
    return {"body": text} | ({"delay": delay} if delay else {}) | ({"push_headers": headers} if headers else {})


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return name, value
