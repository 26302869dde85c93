"""``pushhub``, or ``python -m cli``: every command, and the meaning of its exit code.

======  ============================================================================
code    means
======  ============================================================================
0       done
1       refused, failed, or the answer is no (a wrong signature, a problem found)
2       wrong usage of the command
3       there is no hub to talk to, or it did not answer
130     interrupted
======  ============================================================================
"""

from __future__ import annotations

import importlib.metadata
import io
import sys
import tomllib

import click

from pushhub.base.errors import HubError

from .clone import folder
from .framework import LazyGroup
from .hub import HubOptions
from .terminal import printable, printable_lines

COMMANDS = {
    "up": ("commands.stack:up", "Start the hub on this machine"),
    "down": ("commands.stack:down", "Stop the hub on this machine and keep its state"),
    "status": ("commands.stack:status", "Check whether the hub answers, and as which project"),
    "profiles": ("commands.profiles:profiles", "The hubs you work with, by name"),
    "projects": ("commands.projects:projects", "Tenants (for operators)"),
    "tokens": ("commands.tokens:tokens", "Tokens of a project (for operators)"),
    "queues": ("commands.queues:queues", "Queues of the project"),
    "health": ("commands.health:health", "How subscribers and endpoints are doing"),
    "pause": ("commands.pause:pause", "Pause a subscriber: what it is owed waits"),
    "resume": ("commands.pause:resume", "Resume a paused subscriber"),
    "alerts": ("commands.alerts:alerts", "Alerts of the project"),
    "traces": ("commands.traces:traces", "Where spans of attempts are exported to"),
    "signatures": ("commands.webhooks:signatures", "What signs the requests to receivers"),
    "gates": ("commands.webhooks:gates", "What receivers demand: tokens, certificates"),
    "transformations": ("commands.transformations:transformations", "Code that changes what endpoints are sent"),
    "frames": ("commands.webhooks:frames", "Which pages may show portals in frames"),
    "sources": ("commands.sources:sources", "URLs that take in what other senders post"),
    "streams": ("commands.streams:streams", "Events in order, and the sinks that read them"),
    "post": ("commands.post:post", "Post a message, or one for each line of a file"),
    "search": ("commands.search:search", "Find messages, now or in the past"),
    "events": ("commands.search:events", "List what was accepted, newest first"),
    "attempts": ("commands.messages:attempts", "List the attempts to push a message"),
    "tail": ("commands.tail:tail", "Show what is happening (for operators)"),
    "listen": ("commands.listen:listen", "Forward the messages of a topic to a program"),
    "topics": ("commands.topics:topics", "What waits for the subscribers of topics"),
    "audit": ("commands.audit:audit", "Show who changed what in a project (for operators)"),
    "verify": ("commands.verify:verify", "Check a webhook's signature"),
    "retry": ("commands.messages:retry", "Try a message again now"),
    "replay": ("commands.messages:replay", "Send failed messages again"),
    "expunge": ("commands.messages:expunge", "Remove a message"),
    "import": ("commands.migrate:migrate", "Copy from Svix, or a server like it"),
    "shovel": ("commands.shovel:shovel", "Move a pull queue between servers"),
    "cost": ("commands.cost:cost", "What a month costs on AWS"),
    "policy": ("commands.policy:policy", "Whether retries last as long as a subscriber's outages"),
    "simulate": ("commands.simulate:simulate", "Run the whole hub through disasters"),
    "report": ("commands.tools:report", "Make the delivery report (for operators)"),
    "rebuild": ("commands.rebuild:rebuild", "Restore lost messages from the records (for operators)"),
    "reseal": ("commands.reseal:reseal", "Seal secrets with the stack's first key (for operators)"),
    "signing-secret": ("commands.signing_secret:signing_secret", "What signs consumers' tokens (for operators)"),
    "deploy": ("commands.deploy:deploy", "Check a deployment on AWS (for operators)"),
    "completion": ("commands.completion:completion", "Print the code for completion in a shell"),
}
"""Where each command is, and its line in the list of commands."""

EPILOG = (
    "Exit codes: 0 done; 1 refused, failed, or the answer is no; 2 wrong usage; 3 no hub, or no answer; "
    "130 interrupted."
)


def _show_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"pushhub {_version()}")
        context.exit()


def _version() -> str:
    """The version that is installed, or that of this clone."""
    clone = folder()
    if clone is not None:
        with (clone / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])
    return importlib.metadata.version("pushhub")


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.option("--profile", help="One of your profiles (pushhub profiles). Default: PUSHHUB_URL, or this machine.")
@click.option("--stack", help="Name of a deployed stack, for operators' commands. Default: the profile's.")
@click.option("--aws-profile", help="Profile of your AWS configuration.")
@click.option("--region", help="Region of the deployed stack.")
@click.option("--role-arn", help="Role that operators' commands assume, or none. Default: the stack's.")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show which.")
@click.pass_context
def main(
    context: click.Context,
    *,
    profile: str | None,
    stack: str | None,
    aws_profile: str | None,
    region: str | None,
    role_arn: str | None,
    as_json: bool,
) -> None:
    """Use and operate a Pushhub: the one on this machine, or a deployed one."""
    context.obj = HubOptions(stack, profile, aws_profile, region, role_arn, as_json)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Errors of the hub are reported in one line."""
    try:
        code = main(args=arguments, prog_name="pushhub", standalone_mode=False)
    except click.ClickException as error:
        # What a hub, a file or an environment says goes into these texts.
        said = io.StringIO()
        error.show(said)
        click.echo(printable_lines(said.getvalue()), err=True, nl=False)
        return error.exit_code
    except HubError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return 130
    except OSError as error:
        # A full disk, a folder that cannot be written.
        click.echo(f"Error: {printable(str(error))}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def entry() -> None:
    """The entry point ``pushhub``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Terminals that cannot show a letter get its number.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())


if __name__ == "__main__":
    entry()
