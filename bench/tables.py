"""Results as Markdown tables, printed and saved with the command and the machine that made them."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["options_of", "save", "table"]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with padded columns."""
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def options_of(about: str | None) -> argparse.ArgumentParser:
    """The options of a measurement: where its page is saved, and what the measurement adds.

    Args:
        about: Docstring of its module.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path)
    return parser


def save(path: Path | None, title: str, about: str, *tables: str) -> None:
    """Write a page with the results, and how, where and when they were measured.

    Args:
        path: Path of the page; None saves nothing.
        title: Heading.
        about: What is measured and how (a module's docstring).
        tables: Markdown tables, and the text that belongs to them.
    """
    if path is None:
        return
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    here = Path.cwd()
    python = Path(sys.executable).absolute()
    interpreter = python.relative_to(here) if python.is_relative_to(here) else python
    module = Path(sys.argv[0]).resolve().relative_to(here).with_suffix("").as_posix().replace("/", ".")
    command = " ".join([str(interpreter), "-m", module, *sys.argv[1:]])
    made = f"Made {datetime.now(UTC):%Y-%m-%d} by `{command}` on {machine}."
    path.write_text("\n\n".join([f"# {title}", made, about.strip(), *tables]) + "\n")
    print(f"saved to {path}")
