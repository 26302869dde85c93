"""A hub on fakes, and commands that may ask AWS for what the table of rights has."""

from __future__ import annotations

from tests.cli import conftest

hub, typed, calls = conftest.hub, conftest.typed, conftest.calls
