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

import sys

import click

from cli.framework import LazyGroup
from cli.hub import HubOptions
from pushhub.base.errors import HubError

COMMANDS = {
    "up": "cli.commands.stack:up",
    "down": "cli.commands.stack:down",
    "status": "cli.commands.stack:status",
    "profiles": "cli.commands.profiles:profiles",
    "projects": "cli.commands.projects:projects",
    "tokens": "cli.commands.tokens:tokens",
    "queues": "cli.commands.queues:queues",
    "post": "cli.commands.post:post",
    "tail": "cli.commands.tail:tail",
    "listen": "cli.commands.listen:listen",
    "verify": "cli.commands.verify:verify",
    "retry": "cli.commands.messages:retry",
    "replay": "cli.commands.messages:replay",
    "expunge": "cli.commands.messages:expunge",
    "import": "cli.commands.migrate:migrate",
    "simulate": "cli.commands.simulate:simulate",
    "report": "cli.commands.tools:report",
    "rebuild": "cli.commands.rebuild:rebuild",
    "deploy": "cli.commands.deploy:deploy",
    "completion": "cli.commands.completion:completion",
}

EPILOG = (
    "Exit codes: 0 done; 1 refused, failed, or the answer is no; 2 wrong usage; 3 no hub, or no answer; "
    "130 interrupted."
)


@click.group(cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.option("--profile", help="One of your profiles (pushhub profiles). Default: PUSHHUB_URL, or this machine.")
@click.option("--stack", help="Name of a deployed stack, for operators' commands. Default: the profile's.")
@click.option("--aws-profile", help="Profile of your AWS configuration.")
@click.option("--region", help="Region of the deployed stack.")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
@click.pass_context
def main(
    context: click.Context,
    *,
    profile: str | None,
    stack: str | None,
    aws_profile: str | None,
    region: str | None,
    as_json: bool,
) -> None:
    """Use and operate a Pushhub: the one on this machine, or a deployed one."""
    context.obj = HubOptions(stack, profile, aws_profile, region, as_json)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code. Errors of the hub are reported in one line."""
    try:
        code = main(args=arguments, prog_name="pushhub", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HubError as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    except (click.Abort, KeyboardInterrupt):
        return 130
    return code if isinstance(code, int) else 0


def entry() -> None:
    """The entry point ``pushhub``."""
    sys.exit(run())


if __name__ == "__main__":
    entry()
