"""``pushhub queues``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pushhub.base.errors import Invalid
from pushhub.ironmq.wire.names import check_queue_name

from ..answers import Odd, number, section, sections, text
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from ..json_files import json_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..rest import Rest

PAGE = 100
MOST_PAGES = 10_000
OF_PUSHES = ("retries", "retries_delay", "error_queue", "eager")
"""Settings of a queue that are among its ``push``."""
_NOT_SETTINGS = ("push", "name", "subscribers")


def pages(rest: Rest, prefix: str = "", **wanted: str) -> Iterator[list[dict[str, Any]]]:
    """All queues, page by page.

    Args:
        wanted: What else to ask for: ``health="true"``.

    Raises:
        Odd: It does not end, or is no list.
    """
    query = {"per_page": str(PAGE), "prefix": prefix, **wanted}
    for _ in range(MOST_PAGES):
        page = sections(rest.call("GET", rest.queues, query=query), "queues")
        yield page
        if len(page) < PAGE:
            break
        last = text(page[-1], "name")
        if last == query.get("previous"):
            raise Odd("a page of queues follows itself")
        query["previous"] = last


def names(rest: Rest, prefix: str = "") -> list[str]:
    """All queues by name."""
    return [text(each, "name") for page in pages(rest, prefix) for each in page]


def how_many_wait(given: Mapping[str, Any]) -> int | str:
    """What waits, as the hub says it: a number, or of how many it stopped counting."""
    waiting = number(given, "waiting")
    return waiting if given.get("complete") is True else f"{waiting} or more"


class QueueName(click.ParamType[str]):
    """A queue's name, by the hub's own rule: a wrong one is told before anything is asked."""

    name = "queue"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as it is."""
        if value in (".", ".."):
            self.fail(f"{value!r} cannot be a part of a URL", param, ctx)
        try:
            return check_queue_name(value, "a queue's name")
        except Invalid as error:
            self.fail(f"{value!r}: {error}", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names of queues that begin like this; none if the hub does not answer."""
        return complete(ctx, param, incomplete)


QUEUE_NAME = QueueName()


def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of queues that begin like this, for what may also be something else's name; none if the hub does not
    answer.
    """
    root = context.find_root().params
    try:
        hub = HubOptions(profile=root.get("profile"), stack=root.get("stack"))
        return [CompletionItem(each) for each in names(hub.rest(), incomplete)]
    except click.ClickException:
        return []


@click.group(cls=Group)
def queues() -> None:
    """Queues of the project."""


@queues.command("list")
@click.option("--prefix", default="", help="Only names that begin with this.")
@click.pass_obj
def list_queues(hub: HubOptions, prefix: str) -> None:
    """List all queues, with what waits in each and how its subscribers are doing."""
    hub.show(
        {
            "name": text(each, "name"),
            "type": each.get("type"),
            "waiting": how_many_wait(each),
            "subscribers": each.get("subscribers"),
            "state": section(each, "health").get("text") if each.get("health") else None,
        }
        for page in pages(hub.rest(), prefix, health="true")
        for each in page
    )


@queues.command("show")
@click.argument("name", type=QUEUE_NAME)
@click.pass_obj
def show_queue(hub: HubOptions, name: str) -> None:
    """Show a queue with its settings and subscribers."""
    rest = hub.rest()
    queue = section(rest.call("GET", rest.queue(name)), "queue")
    if hub.as_json:
        hub.show([queue])
        return
    hub.show([_row(queue)])
    click.echo()
    settings = {**queue, **queue.get("push", {})}
    hub.show({"setting": key, "value": value} for key, value in settings.items() if key not in _NOT_SETTINGS)
    if "push" in queue:
        click.echo()
        hub.show(sections(queue["push"], "subscribers"))


@queues.command("create")
@click.argument("name", type=QUEUE_NAME)
@click.option(
    "--type", type=click.Choice(["pull", "multicast", "unicast"]), help="pull by default, multicast with --push."
)
@click.option("--push", multiple=True, metavar="URL", help="A subscriber; NAME=URL gives it a name. Repeatable.")
@click.option("--retries", type=int, help="Tries after the first.")
@click.option("--retries-delay", type=int, help="Seconds between tries.")
@click.option("--error-queue", help="The queue in which failed messages are reported.")
@click.option(
    "--eager/--not-eager",
    default=None,
    help="Whether posts send the first orders themselves: faster on AWS, for one more SQS message.",
)
@click.option("--timeout", "message_timeout", type=int, help="Seconds that a reservation lasts.")
@click.option("--expiration", "message_expiration", type=int, help="Seconds that a message lives.")
@click.option("--convert", is_flag=True, help="Turn a pull queue of that name into a push queue; nothing is lost.")
@click.option("--from", "file", type=click.File("rb"), help="All settings as JSON, in the API's format under 'queue'.")
@changes
@click.pass_obj
def create_queue(
    hub: HubOptions, /, *, name: str, push: tuple[str, ...], convert: bool, file: Any, **given: Any
) -> None:
    """Create or change a queue."""
    settings = _read(file) if file else {}
    pushes = dict(settings.get("push") or {})
    given = {name: value for name, value in given.items() if value is not None}
    pushes |= {name: given.pop(name) for name in OF_PUSHES if name in given}
    if push:
        pushes["subscribers"] = [_subscriber(each) for each in push]
    settings |= given | ({"push": pushes} if pushes else {}) | ({"convert": True} if convert else {})
    rest = hub.rest()
    queue = section(rest.call("PUT", rest.queue(name), {"queue": settings}), "queue")
    hub.show([_row(queue)])
    if left := queue.get("left"):
        hub.note(f"{left} messages are still held for consumers: repeat this to have them pushed, too")


@queues.command("delete")
@click.argument("name", type=QUEUE_NAME)
@changes
@destructive
@click.pass_obj
def delete_queue(hub: HubOptions, name: str, *, yes: bool) -> None:
    """Delete a queue and its messages."""
    ask(f"Delete the queue {name} and all its messages?", yes=yes or hub.dry_run)
    rest = hub.rest()
    rest.call("DELETE", rest.queue(name))


def _read(file: Any) -> dict[str, Any]:
    given = json_in(file, "--from")
    if not isinstance(given, dict):
        raise click.UsageError("--from must hold an object")
    inside = given.get("queue", given)
    return dict(inside) if isinstance(inside, dict) else {}


def _subscriber(given: str) -> dict[str, str]:
    name, equals, url = given.partition("=")
    # An equals sign in a URL's query names nothing.
    return {"name": name, "url": url} if equals and "://" not in name else {"name": "", "url": given}


def _row(queue: dict[str, Any]) -> dict[str, Any]:
    subscribers = sections(queue["push"], "subscribers") if "push" in queue else []
    return {
        "name": text(queue, "name"),
        "type": text(queue, "type"),
        "size": queue.get("size"),
        "total_messages": queue.get("total_messages"),
        "subscribers": len(subscribers),
    }
