"""Receivers of queues and stores, as the commands of signatures and gates set what they demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from ..answers import section, sections, text
from ..rest import Rest, typed

_UNSEEN = (
    "schemes of subscribers and services are not shown, so none is added to them, ended or removed by itself: set all "
    "with `pushhub signatures set`, or end them with `pushhub signatures off`"
)


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """A subscriber of a queue, or a service of a store.

    Attributes:
        name: As it is called.
        shown: As its API shows it.
        change: Changes some of its fields.
    """

    name: str
    shown: dict[str, Any]
    change: Callable[[dict[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Whose:
    """Whose signatures or gates a command is about, as it was typed.

    Attributes:
        app: Application, by id or uid.
        endpoint: Endpoint, by id or uid.
        operational: Whether it is one of operational webhooks.
        queue: Queue of a subscriber.
        subscriber: Name of the subscriber.
        mapping: Service of the store, by name or id of its mapping.
    """

    app: str | None = None
    endpoint: str | None = None
    operational: bool = False
    queue: str | None = None
    subscriber: str | None = None
    mapping: str | None = None

    def check(self, *, one: bool) -> None:
        """Check that it is clear whose they are."""
        if (self.queue is None) != (self.subscriber is None):
            raise click.UsageError("a subscriber needs --queue and --subscriber")
        ways = (self.app or self.endpoint or self.operational, self.queue, self.mapping)
        if sum(bool(each) for each in ways) > 1:
            raise click.UsageError("choose an endpoint, a subscriber or a mapping, and only one of them")
        if self.is_receiver:
            return
        if one and self.endpoint is None:
            raise click.UsageError("one of --endpoint, --queue with --subscriber, and --mapping is needed")
        if self.endpoint is not None and (self.app is None) != self.operational:
            raise click.UsageError("an endpoint needs either --app or --operational")
        if self.operational and (self.app is not None or self.endpoint is None):
            raise click.UsageError("--operational needs --endpoint, and no --app")

    @property
    def is_receiver(self) -> bool:
        """Whether it is a subscriber of a queue or a service of a store."""
        return self.queue is not None or self.mapping is not None

    @property
    def called(self) -> str:
        """Its name as it was typed."""
        return self.endpoint or self.subscriber or self.mapping or self.app or "the project"

    def path(self, rest: str) -> str:
        """Path of something of an endpoint, an application or the project.

        Raises:
            click.UsageError: It is of a subscriber or a service, of which schemes cannot be changed one by one.
        """
        if self.is_receiver:
            raise click.UsageError(_UNSEEN)
        path = "/api/v1"
        if self.operational:
            path += "/operational-webhook"
        if self.app is not None:
            path += f"/app/{typed(self.app)}"
        if self.endpoint is not None:
            path += f"/endpoint/{typed(self.endpoint)}"
        return f"{path}/{rest}"

    def receiver(self, rest: Rest) -> Receiver | None:
        """The subscriber or service; None for an endpoint."""
        if self.queue is not None:
            return self._subscriber(rest, self.queue)
        return self._service(rest, self.mapping) if self.mapping is not None else None

    def _subscriber(self, rest: Rest, name: str) -> Receiver:
        queue = section(rest.call("GET", rest.queue(name)), "queue")
        subscribers = sections(queue["push"], "subscribers") if "push" in queue else []
        found = [each for each in subscribers if each.get("name") == self.subscriber]
        if len(found) != 1:
            raise click.ClickException(f"{len(found) or 'no'} subscribers of {name} are called {self.subscriber}")
        [shown] = found
        path = rest.queue(name, "/subscribers")
        return Receiver(
            name=text(shown, "name"),
            shown=shown,
            change=lambda changed: rest.call("POST", path, {"subscribers": [{**shown, **changed}]}),
        )

    def _service(self, rest: Rest, name: str) -> Receiver:
        mappings = sections({"mappings": rest.call("GET", f"{rest.store}/mappings")}, "mappings")
        found = [each for each in mappings if name in (each.get("id"), each.get("name"))]
        if len(found) != 1:
            raise click.ClickException(f"{len(found) or 'no'} mappings are called {name}")
        [shown] = found
        path = f"{rest.store}/mappings/{typed(text(shown, 'id'))}"
        return Receiver(
            name=text(shown, "name"),
            shown=shown,
            change=lambda changed: rest.call("PUT", path, {"mapping": changed}),
        )


def chosen(*, one: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that choose whose signatures or gates it is about; the command gets them as ``whose``.

    Args:
        one: Whether it has to be one receiver, not what many inherit.
    """

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        def choosing(*given: Any, **options: Any) -> Any:
            names = ("app", "endpoint", "operational", "queue", "subscriber", "mapping")
            whose = Whose(**{name: options.pop(name) for name in names})
            whose.check(one=one)
            return command(*given, whose=whose, **options)

        choosing.__doc__ = command.__doc__
        choosing.__dict__.update(command.__dict__)
        needed = "" if one else " Without it, what an application's endpoints inherit, or the project's."
        options = (
            click.option("--app", help="The application, by id or uid."),
            click.option("--operational", is_flag=True, help="It is one of operational webhooks."),
            click.option("--endpoint", help=f"The endpoint, by id or uid.{needed}"),
            click.option("--queue", help="The queue of a subscriber."),
            click.option("--subscriber", help="The subscriber, by name."),
            click.option("--mapping", help="The mapping of a store's service, by name or id."),
        )
        options_added: Callable[..., Any] = choosing
        for option in reversed(options):
            options_added = option(options_added)
        return options_added

    return with_options
