"""Puts the script and the libraries of the report job where it looks for them: ``python -m local.report_upload STACK``.

``sam deploy`` uploads a file under its digest alone, without the end of its name, by which Spark knows Python and Glue
a zip of wheels. So these two are put into the stack's records bucket by name, after a deployment, with the caller's AWS
configuration.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from glue_jobs.bundle import bundle
from glue_jobs.libraries import PLATFORM, WANTED

from local.errors import LocalError
from local.place import REPOSITORY

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

SCRIPT = "jobs/delivery_report.py"
LIBRARIES = "jobs/libraries.gluewheels.zip"
LOCK = REPOSITORY / "requirements" / "glue.txt"
DOWNLOAD_SECONDS = 300


def pinned(lock: str, names: Sequence[str]) -> str:
    """The part of a lock file that is about some packages, with their hashes."""
    blocks = {found[1]: block for block in re.split(r"\n(?=\w)", lock) if (found := re.match(r"([\w-]+)==", block))}
    missing = [name for name in names if name not in blocks]
    if missing:
        raise LocalError(f"the lock file has no {', '.join(missing)}")
    return "\n".join(blocks[name] for name in names) + "\n"


def zip_of_wheels(wheels: Path, lock: str, target: Path) -> None:
    """Pack downloaded wheels as Glue 5 installs them: with a list of those to install,
    which it does without a package index.
    """
    wanted = re.findall(r"^[\w-]+==[^\s\\]+", pinned(lock, WANTED), flags=re.MULTILINE)
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("wheels/requirements.txt", "\n".join(wanted) + "\n")
        for wheel in sorted(wheels.glob("*.whl")):
            archive.write(wheel, f"wheels/{wheel.name}")


def download(lock: str, folder: Path) -> None:
    """Fetch the wheels for Glue's Python and processor."""
    requirements = folder / "requirements.txt"
    requirements.write_text(pinned(lock, WANTED), encoding="utf-8")
    python, *platforms = PLATFORM
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    options += ["--python-version", python, *(word for each in platforms for word in ("--platform", each))]
    options += ["--dest", str(folder), "-r", str(requirements)]
    command = [sys.executable, "-m", "pip", "download", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS)
    if done.returncode:
        raise LocalError(f"the report's libraries cannot be fetched: {done.stderr.strip().splitlines()[-1]}")


def upload(stack: str, cloudformation: CloudFormationClient, s3: S3Client, files: dict[str, Path]) -> str:
    """Put files, by their keys, into a stack's records bucket; gives its name."""
    (found,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
    if "RecordsBucketName" not in outputs:
        raise LocalError(f"the stack {stack} has no output RecordsBucketName")
    for key, path in files.items():
        s3.upload_file(str(path), outputs["RecordsBucketName"], key)
    return outputs["RecordsBucketName"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Make both and upload them."""
    parser = argparse.ArgumentParser(prog="python -m local.report_upload", description=__doc__.split("\n\n")[0])
    parser.add_argument("stack", help="name of the deployed stack")
    parser.add_argument("--region", help="its region; that of the AWS configuration if not given")
    parser.add_argument("--profile", help="profile of the AWS configuration")
    given = parser.parse_args(arguments)
    lock = LOCK.read_text(encoding="utf-8")
    try:
        session = boto3.Session(profile_name=given.profile, region_name=given.region)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            download(lock, folder)
            zip_of_wheels(folder, lock, folder / "libraries.zip")
            files = {SCRIPT: bundle(folder / "glue"), LIBRARIES: folder / "libraries.zip"}
            bucket = upload(given.stack, session.client("cloudformation"), session.client("s3"), files)
    except (LocalError, BotoCoreError, ClientError, subprocess.TimeoutExpired) as error:
        print(f"pushhub: {error}", file=sys.stderr)
        return 1
    print(f"The report job has what it needs, in s3://{bucket}/jobs/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
