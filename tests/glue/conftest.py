"""Tests of the delivery report. They need Spark, so they run in a separate environment: ``make test-report``."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The main environment has no Spark, so it skips this folder.
collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Py4J leaves the sockets of fetched results to the garbage collector, which warns about each."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests, on the wheel's Java, because the machine may have none."""
    from glue_jobs.delivery_report.run.session import FOR_LITTLE, open_session  # noqa: PLC0415 (absent from the main environment)
    from glue_jobs.local_spark import use_bundled_java  # noqa: PLC0415

    kept = dict(os.environ)
    os.environ.pop("JAVA_HOME", None)
    tools = tmp_path_factory.mktemp("bin")
    for folder in reversed(kept["PATH"].split(":")):
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith(("java", "jre")):
                (tools / tool.name).unlink(missing_ok=True)
                (tools / tool.name).symlink_to(tool)
    os.environ["PATH"] = str(tools)
    use_bundled_java()
    # Compiling Java's code well takes more CPU than it saves even here: 40 s more in the first three minutes, and as
    # much for each night from then on (2026-11-29).
    session = open_session("local[2]", settings={**FOR_LITTLE, "spark.driver.memory": "1g"})
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(kept)
