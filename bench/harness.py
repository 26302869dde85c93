"""What every measurement has: its options, the load it began under, its tables, and a page with the command, the date
and the machine that made them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = Path("docs/figures")


class Page:
    """A measurement: what it was asked for, and what it tells, which is printed at once and saved at its end.

    Args:
        title: Heading.
        about: What is measured and how (a module's docstring).
        saved: Name of its page in ``docs/figures``, which is written unless ``--save`` names another; None to write one
            only then.
        options: By name the default, or the type of what has none. A list takes several values, False is a switch.

    Attributes:
        options: What was chosen.
        load: Processes that wanted to run before it began, on average of a minute.
    """

    def __init__(self, title: str, about: str | None, *, saved: str | None = None, **options: Any) -> None:
        self._title, self._about = title, (about or "").strip()
        self._parts: list[str] = []
        self.load = os.getloadavg()[0]
        parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
        place = FIGURES / saved if saved else Path
        for name, default in {"save": place, **options}.items():
            more: dict[str, Any] = {"type": Path if name == "save" else type(default), "default": default}
            if default is False:
                more = {"action": "store_true"}
            elif isinstance(default, type):
                more = {"type": default}
            elif isinstance(default, list):
                more = {"type": type(default[0]), "nargs": "+", "default": default}
            parser.add_argument(f"--{name.replace('_', '-')}", **more)
        self.options = parser.parse_args()

    def tell(self, *parts: str) -> None:
        """Paragraphs and tables."""
        self._parts += parts
        print(*parts, sep="\n\n", flush=True)

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table."""
        self.tell(table(head, rows))

    def save(self) -> None:
        """Write the page with how, where and when all this was measured, if a place for it was given."""
        path: Path | None = self.options.save
        if path is None:
            return
        machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
        here, python = Path.cwd(), Path(sys.executable).absolute()
        interpreter = python.relative_to(here) if python.is_relative_to(here) else python
        module = Path(sys.argv[0]).resolve().relative_to(here).with_suffix("").as_posix().replace("/", ".")
        command = " ".join([str(interpreter), "-m", module, *sys.argv[1:]])
        case = f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}` on {machine}."
        path.write_text("\n\n".join([f"# {self._title}", case, self._about, *self._parts]) + "\n")
        print(f"saved to {path}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with padded columns."""
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def cells(form: str, *values: object) -> list[str]:
    """Cells of one form (as ``format`` reads it)."""
    return [format(each, form) for each in values]


def percentile(times: Sequence[float], share: float) -> float:
    """What this share stays below, by the nearest rank; of none 0."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] if times else 0.0


def percentiles(times: Sequence[float], *shares: float) -> list[str]:
    """Cells, in milliseconds, of times in seconds: half and 95 % of them, if nothing else is asked for."""
    return cells(".0f", *(1000 * percentile(times, each) for each in shares or (0.5, 0.95)))


class Context:
    """Lambda's context object, as at the start of a run."""

    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        """Plenty."""
        return 210_000


def handler_of(function: str) -> Callable[[Any, Context], Any]:
    """A function's handler. Its environment must be set before."""
    file = ROOT / "functions" / function / "handler.py"
    spec = importlib.util.spec_from_file_location(f"{function}_handler", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Callable[[Any, Context], Any] = module.handler
    return handler


def with_fixed_hashes(module: str) -> None:
    """Start the program again unless hashes of strings, and with them the order of sets, are the same each time."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Processes that keep the cores busy."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()
