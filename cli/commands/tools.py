"""``pushhub simulate`` and ``report``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError
from local.place import REPOSITORY

from cli.framework import Command
from cli.hub import HubOptions
from cli.operator import deployment

AS_THEY_ARE = {"ignore_unknown_options": True, "help_option_names": []}
LOOK_S = 10
DONE = ("SUCCEEDED", "FAILED", "STOPPED", "ERROR", "TIMEOUT")


@click.command(cls=Command, context_settings=AS_THEY_ARE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def simulate(arguments: tuple[str, ...]) -> int:
    """Run the whole hub on simulated clocks, networks and faults; arguments go to the simulator (simulate --help)."""
    if importlib.util.find_spec("simulation") is None:
        raise click.ClickException("the simulator is not there: run this in a clone of the repository")
    return subprocess.run([sys.executable, "-m", "simulation", *arguments], cwd=REPOSITORY, check=False).returncode  # noqa: S603 (our own module)


@click.command(cls=Command)
@click.option("--from", "first", metavar="DATE", help="First day, 2026-11-01.")
@click.option("--wait", is_flag=True, help="Of a deployed hub: until the job is over.")
@click.pass_obj
def report(hub: HubOptions, first: str | None, *, wait: bool) -> int:
    """Make the delivery report: every message accounted for. Of a deployed hub by its Glue job, else here."""
    if not hub.settings().stack:
        arguments = [f"ARGS=--date-from {first}"] if first else []
        return subprocess.run(["make", "report", *arguments], cwd=REPOSITORY, check=False).returncode  # noqa: S603, S607 (what make is, the person says)
    found = deployment(hub)
    glue, job = found.client("glue"), found.outputs["ReportJobName"]
    try:
        run_id = glue.start_job_run(JobName=job, Arguments={"--date-from": first} if first else {})["JobRunId"]
        run: dict[str, Any] = {"JobRunState": "STARTING"}
        while wait and run["JobRunState"] not in DONE:
            run = glue.get_job_run(JobName=job, RunId=run_id)["JobRun"]
            if run["JobRunState"] not in DONE:
                time.sleep(LOOK_S)
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(f"the report job cannot be run: {error}") from error
    hub.show([{"job": job, "run": run_id, "state": run["JobRunState"], "error": run.get("ErrorMessage", "")}])
    return 0 if run["JobRunState"] in ("STARTING", "SUCCEEDED") else 1
