"""Commands that are imported when they are used, each with ``--json``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import click

from pushhub.base.errors import HubError

from .dry import NotDone


def _as_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.obj.as_json = True


def _profile(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.obj.profile = value


class Command(click.Command):
    """A command that also accepts ``--json`` and ``--profile`` after its name. With ``--json`` one that has nothing to
    show prints an empty list.
    """

    prints_itself = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        as_json = click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_as_json, help="Print results as JSON."
        )
        profile = click.Option(["--profile"], expose_value=False, callback=_profile, help="One of your profiles.")
        self.params += [as_json, profile]

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. A dry run ends where something would be changed, which is said. What was changed is kept in the audit
        trail, with how it ended.
        """
        ended: int | None = None
        try:
            code = super().invoke(ctx)
            ended = code if isinstance(code, int) else 0
            if ctx.obj is not None and not self.prints_itself:
                ctx.obj.show_in_json()
        except NotDone as done:
            ctx.obj.show_not_done(done)
            return 0
        except (click.ClickException, HubError):
            ended = 1
            raise
        else:
            return code
        finally:
            if ctx.obj is not None and ctx.obj.trail is not None:
                ctx.obj.trail.ended(ended)


class Printing(Command):
    """A command whose output is no list: a line for each event, another program's, or none of ours."""

    prints_itself = True


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


class LazyGroup(Group):
    """A group whose commands are imported when they are used: talking to a hub needs none of what operating one
    needs.

    Args:
        lazy: Where each command is below this package, ``module:name``, and its line in the list of commands, which is
            shown without importing them all.
    """

    def __init__(self, *arguments: Any, lazy: dict[str, tuple[str, str]], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order they were given."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is typed; for one that there is not, say which it may have been."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            # click knows those that are imported already, which are none.
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])


def destructive(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--yes`` for a command that removes something; without it, a person is asked and a script is refused."""
    return click.option("--yes", is_flag=True, help="Do not ask.")(command)


def ask(question: str, *, yes: bool) -> None:
    """Ask before something is removed.

    Raises:
        click.Abort: The answer is no.
        click.UsageError: There is nobody to answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("use --yes: there is nobody to ask")
    click.confirm(question, abort=True)
