"""``pushhub post``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import click

from ..answers import Odd, texts
from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..rest import Refused, Rest, Unreachable
from ..terminal import printable
from .queues import QUEUE_NAME

BATCH = 100
"""Messages in one request: the hub's limit."""
BATCH_BYTES = 3_000_000
"""Bytes of bodies in one request, which may have 4 MiB in total."""
ESCAPED = 6
"""The most bytes of JSON that a byte of text can become."""


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME)
@click.argument("body", required=False)
@click.option("--file", type=click.File("rb"), help="A file with the body; - is standard input.")
@click.option("--ndjson", type=click.File("rb"), help="A file with a message on each line; - is standard input.")
@click.option("--delay", type=int, default=0, help="Seconds before it is available.")
@click.option("--header", "-H", multiple=True, metavar="NAME=VALUE", help="Sent with each push. Repeatable.")
@changes
@click.option(
    "--skip", type=click.IntRange(0), default=0, help="With --ndjson: number of lines that are already in the queue."
)
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
    The hub makes a pull queue of a name that it does not know: this command asks first, or says so.
    """
    if sum(each is not None for each in (body, file, ndjson)) > 1:
        raise click.UsageError("give one of BODY, --file and --ndjson")
    headers = dict(_header(each) for each in header)
    rest = hub.rest()
    content = b""
    if ndjson is None:
        content = body.encode(errors="surrogateescape") if body is not None else _given(hub, file)
    _look_for(hub, rest, queue)
    if ndjson is not None:
        hub.show([{"posted": _post_lines(hub, rest, queue, ndjson, delay=delay, headers=headers, skip=skip)}])
        return
    hub.show([{"id": send(rest, queue, content, delay=delay, headers=headers)}])


def _given(hub: HubOptions, file: BinaryIO | None) -> bytes:
    """The body from a file or standard input.

    Raises:
        click.UsageError: Standard input is empty, as when the program before a pipe failed.
    """
    if file is not None:
        return file.read()
    if sys.stdin.isatty():
        hub.note("the body is read from here; Ctrl-D ends it")
    content = sys.stdin.buffer.read()
    if not content:
        raise click.UsageError('standard input is empty; for a message without a body give BODY as ""')
    return content


def _look_for(hub: HubOptions, rest: Rest, queue: str) -> None:
    """Ask before a message to a queue that does not exist makes one; where nobody can be asked, say so."""
    try:
        rest.call("GET", rest.queue(queue))
    except Refused as error:
        if error.status != 404:
            raise
        if sys.stdin.isatty() and not hub.dry_run:
            click.confirm(f"There is no queue {printable(queue)}. Make it, as a pull queue?", abort=True, err=True)
        else:
            hub.note(f"there was no queue {queue}: this makes it, as a pull queue")


def send(rest: Rest, queue: str, content: bytes, *, delay: int = 0, headers: dict[str, str]) -> str:
    """Post one message with any bytes, and return its id."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        if delay:
            raise click.UsageError("a body that is not text cannot be delayed") from error
        shown = {f"X-Subscribers-{name}": value for name, value in headers.items()}
        shown["Content-Type"] = "application/octet-stream"
        return _first_id(rest.call("POST", rest.queue(queue, "/webhook"), content, headers=shown))
    return _first_id(rest.call("POST", rest.queue(queue, "/messages"), {"messages": [_message(text, delay, headers)]}))


def _first_id(answer: Any) -> str:
    ids = texts(answer, "ids")
    if not ids:
        raise Odd("it names no message")
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
    """Number and text of each line that is not empty."""
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
    if not (equals and name.strip()):
        raise click.UsageError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()
