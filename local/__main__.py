"""The command line of the local stack; ``make`` calls it. ``python -m local --help`` lists the commands."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from botocore.exceptions import BotoCoreError, ClientError

from local import stack
from local.demo import demonstration
from local.emulator import lifecycle
from local.errors import LocalError
from local.place import Place
from local.projects import find, make
from local.stack import Description
from pushhub.base.errors import Unavailable

DEMONSTRATION = "demo"
"""Name of the demonstration's project."""


def say(text: str) -> None:
    """Write a line at once."""
    print(text, flush=True)


def up(place: Place, _: argparse.Namespace) -> None:
    """Bring the stack up and return once it is ready."""
    show(stack.up(place, say), place)


def down(place: Place, _: argparse.Namespace) -> None:
    """Stop the stack and keep its state."""
    ran = stack.down(place, say)
    say("Pushhub is down; 'make up' continues where it was." if ran else "Pushhub is not running.")


def clean(place: Place, _: argparse.Namespace) -> None:
    """Stop the stack and remove its state."""
    stack.clean(place)
    say(f"Removed {place.home}.")


def run(place: Place, _: argparse.Namespace) -> None:
    """Bring the stack up, show the main job, stay until Ctrl-C. With PUSHHUB_DEMO_ONLY=1 stop after the table."""
    # Terminals that close and 'kill' are to end it as Ctrl-C does; a script may have started it with Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    description = stack.up(place, say)
    show(description, place)
    failed = ""
    try:
        failed = demonstrate(description, place)
        if os.environ.get("PUSHHUB_DEMO_ONLY") != "1":
            show(description, place)
            if failed:
                say(f"The demonstration FAILED: {failed}. The hub itself is up; its logs: make logs")
            say("What became of every message, proved from the records: make report, in another terminal.")
            say("It stays up until Ctrl-C.")
            wait_while_up(place)
    except KeyboardInterrupt:
        say("")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("Stopping ...")
        stack.down(place, say)
    say("Pushhub is down; its state is kept.")
    if failed:
        raise LocalError(f"the demonstration failed: {failed}")


def demonstrate(description: Description, place: Place) -> str:
    """Show the main jobs on the running stack, in a project of their own: the user's stays empty until they begin.

    Returns:
        Why that failed, or an empty text.
    """
    own = demonstration_project(description, place)
    say(f"The demonstration works in the project {DEMONSTRATION}: {console(own)}")
    for title, part in demonstration.PARTS.items():
        say(f"\n{title}:")
        try:
            asyncio.run(part(own, say))
        except LocalError as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 (whatever happens to the demonstration, the hub stays up)
            return repr(error)
    return ""


def demonstration_project(description: Description, place: Place) -> Description:
    """How to reach the stack as the demonstration's project, which is made the first time."""
    credentials = find(DEMONSTRATION, place.projects)
    if credentials is None:
        credentials = make(
            stack.aws(description), description.outputs["ConfigTableName"], DEMONSTRATION, place.projects
        )
    return replace(description, project_id=credentials.project_id, token=credentials.token)


def console(description: Description) -> str:
    """The console's address, signed in: the part after # stays in the browser."""
    return f"{description.base_url}/console#project={description.project_id}&token={description.token}"


def wait_while_up(place: Place) -> None:
    """Sleep until interrupted."""
    while stack.is_up(place):
        time.sleep(1)
    # 'make down' in another terminal is not a fault.
    if place.description.exists():
        raise LocalError(f"a process of the stack has ended by itself: see {place.logs}")


def project(place: Place, arguments: argparse.Namespace) -> None:
    """Create another project with its own token."""
    description = stack.describe(place)
    credentials = make(stack.aws(description), description.outputs["ConfigTableName"], arguments.name, place.projects)
    say(f"  project   {credentials.project_id}\n  token     {credentials.token}")


def status(place: Place, _: argparse.Namespace) -> None:
    """Check whether the stack works, and show how to reach it."""
    description = stack.describe(place)
    problems = stack.problems(place)
    if problems:
        raise LocalError("; ".join(problems))
    show(description, place)
    saved = lifecycle.saved(stack.where_it_runs(place))
    if "taken_at" in saved:
        say(f"  saved     {lifecycle.at(saved['taken_at'])}, {saved['size'] / 1e6:.1f} MB")


def show(description: Description, place: Place) -> None:
    """Show how to reach the stack."""
    say(
        "\nPushhub is up.\n"
        f"  base URL  {description.base_url}\n"
        f"  project   {description.project_id}\n"
        f"  token     {description.token}\n"
        f"  console   {console(description)}\n"
        f"  all this and more in {place.description}\n"
    )


def logs(place: Place, _: argparse.Namespace) -> None:
    """Follow the logs of the running stack."""
    files = [place.logs / "emulator.log", place.logs / "front-door.log"]
    if not any((stack.front_door(place).pid(), lifecycle.daemon(place).pid())):
        last = f" (what the last one wrote is in {place.logs})" if files[0].exists() else ""
        raise LocalError(f"the stack is not running: start it with 'make up'{last}")
    os.execvp("tail", ["tail", "-n", "50", "-F", *map(str, files)])  # noqa: S606


_COMMANDS: dict[str, Callable[[Place, argparse.Namespace], None]] = {
    each.__name__: each for each in (up, run, down, clean, status, project, logs)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m local", description="Pushhub on one machine")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in _COMMANDS.items():
        subparser = commands.add_parser(name, help=(command.__doc__ or "").splitlines()[0])
        if name == "project":
            subparser.add_argument("name")
    parsed = parser.parse_args(arguments)
    return status_of(lambda: _COMMANDS[parsed.command](Place.from_environment(), parsed))


def status_of(command: Callable[[], object]) -> int:
    """Run a command; what stops it is one line, and an exit status."""
    try:
        command()
    except LocalError as error:
        reason = str(error)
    except (BotoCoreError, ClientError, Unavailable) as error:
        reason = f"the emulator does not do its work ('make status' looks): {LocalError(str(error))}"
    except OSError as error:
        reason = f"{error.strerror or error}: {error.filename}" if error.filename else str(error)
    except KeyboardInterrupt:
        return 130
    else:
        return 0
    print(f"pushhub: {reason}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
