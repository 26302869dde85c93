"""One stack and one browser for all tests in this folder; each test has its own project and tab."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from tests.browser.console import Console, Project, new_project, tab
from tests.stack.endpoints import Recorder
from tests.stack.running import RunningStack

# A loaded machine must not fail a test for being slow.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The running stack. Tests are kept apart by their projects."""
    running = RunningStack.start(tmp_path_factory.mktemp("browser"))
    yield running
    running.discard()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's chromium; without windows, if that is there, as that loads a page for half the CPU. Its sandbox needs a
    user that is not root, and what it opens here is our own.
    """
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def project(stack: RunningStack) -> Project:
    """A project with nothing in it."""
    return new_project(stack)


@pytest.fixture
def console(stack: RunningStack, chromium: Browser, project: Project) -> Iterator[Console]:
    """A tab that is not signed in."""
    with tab(stack, chromium, project) as opened:
        yield opened


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """A server for subscribers."""
    with Recorder() as started:
        yield started
