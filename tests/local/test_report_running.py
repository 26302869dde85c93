"""Two runs of the report at once: the second says who runs."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.delivery_report.run.arguments import BadInput
from glue_jobs.delivery_report.run.running import LONGEST, alone


def noted(folder: Path, **changes: Any) -> Path:
    """The note of another run, of this test's parent process unless said otherwise."""
    place = folder / "curated" / "running.json"
    place.parent.mkdir(parents=True)
    run = {"since": datetime.now(UTC).isoformat(), "process": os.getppid(), "host": socket.gethostname(), **changes}
    place.write_text(json.dumps(run))
    return place


def test_the_second_of_two_runs_says_who_runs_and_leaves_it_alone(tmp_path: Path) -> None:
    place = noted(tmp_path)
    before = place.read_text()
    with pytest.raises(BadInput, match=f"process {os.getppid()} of "), alone(f"file://{tmp_path}"):
        pytest.fail("two ran at once")
    assert place.read_text() == before


def test_a_run_elsewhere_counts_until_it_cannot_live_any_more(tmp_path: Path) -> None:
    noted(tmp_path, host="elsewhere")
    with pytest.raises(BadInput, match="of elsewhere"), alone(f"file://{tmp_path}"):
        pytest.fail("two ran at once")


@pytest.mark.parametrize(
    "of_it",
    [
        {"process": 2**22 + 1},
        {"host": "elsewhere", "since": (datetime.now(UTC) - LONGEST - timedelta(minutes=1)).isoformat()},
    ],
    ids=["its process is gone", "too long ago"],
)
def test_what_a_killed_run_has_left_stops_nobody(tmp_path: Path, of_it: dict[str, Any]) -> None:
    place = noted(tmp_path, **of_it)
    with alone(f"file://{tmp_path}"):
        assert json.loads(place.read_text())["process"] == os.getpid()
    # Then nothing of this run is left, whether it ends well or not
    assert not place.exists()
    with pytest.raises(ValueError, match="broken"), alone(f"file://{tmp_path}"):
        raise ValueError("broken")
    assert not place.exists()
