"""``pushhub report``."""

from __future__ import annotations

import subprocess
import time
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError

from pushhub.base.json_text import stored

from ..clone import folder
from ..dry import NotDone, changes
from ..framework import Printing
from ..hub import HubOptions
from ..operators.deployment import Deployment, deployment

LINK_S = 900
"""How long a link to a page is valid, seconds."""
LOOK_S = 10
DONE = ("SUCCEEDED", "FAILED", "STOPPED", "ERROR", "TIMEOUT")


@click.command(cls=Printing)
@click.option("--from", "first", metavar="DATE", help="First day, 2026-11-01.")
@click.option("--link", is_flag=True, help="Make no report; show a link to the newest page, valid for 15 minutes.")
@click.option("--wait", is_flag=True, help="For a deployed hub: wait until the job has finished.")
@changes
@click.pass_obj
def report(hub: HubOptions, first: str | None, *, link: bool, wait: bool) -> int:
    """Make the delivery report: every message accounted for. Uses a deployed hub's Glue job, or Spark on this machine.

    It covers all projects, so it needs an operator's rights. Projects see their own part in the console.
    """
    if link:
        hub.show([newest_page(deployment(hub))])
        return 0
    if not hub.settings().stack:
        clone = folder()
        if clone is None:
            raise click.ClickException("for a deployed hub say --stack NAME; a local one's report needs its clone")
        command = ["make", "report", *([f"ARGS=--date-from {first}"] if first else [])]
        if hub.dry_run:
            raise NotDone(" ".join(command))
        return subprocess.run(command, cwd=clone, check=False).returncode  # noqa: S603 (what make is, the person says)
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


def newest_page(hub: Deployment) -> dict[str, str]:
    """The newest report's verdict, and a link to its page that is valid for :data:`LINK_S`.

    Anyone who has the link can see the page.
    """
    s3, bucket = hub.client("s3", signature_version="s3v4"), hub.outputs["RecordsBucketName"]
    try:
        newest = stored(s3.get_object(Bucket=bucket, Key="reports/latest.json")["Body"].read())
        name = newest["report"].rpartition("/")[2]
        if not newest["page"]:
            raise click.ClickException(f"the page of {name} could not be written, but its tables exist")
        key = f"reports/{name}/report.html"
        url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=LINK_S)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            raise click.ClickException("there is no report yet: pushhub report makes one") from error
        raise click.ClickException(f"the report cannot be read: {error}") from error
    except BotoCoreError as error:
        raise click.ClickException(f"the report cannot be read: {error}") from error
    return {"report": name, "verdict": newest["verdict"]["sentence"], "link": url}
