"""Whoever waits at a terminal for longer than a second is told what for."""

from __future__ import annotations

import io
from collections.abc import Callable

from cli.patience import AFTER_S, patience


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Timer:
    """A timer whose time comes when a test says so."""

    def __init__(self) -> None:
        self.show: Callable[[], None] = lambda: None
        self.running = False

    def __call__(self, after_s: float, show: Callable[[], None]) -> Timer:
        assert after_s == AFTER_S
        self.show = show
        return self

    def start(self) -> None:
        self.running = True

    def cancel(self) -> None:
        self.running = False


def test_a_line_comes_after_a_second_and_is_gone_with_the_answer() -> None:
    terminal, timer = Terminal(), Timer()
    with patience("waiting for the hub", terminal, timer):
        assert terminal.getvalue() == ""
        # When a second has passed
        timer.show()
        assert terminal.getvalue() == "waiting for the hub ..."
    assert (terminal.getvalue().endswith("\r\x1b[K"), timer.running) == (True, False)


def test_a_quick_answer_shows_nothing_and_a_pipe_never_does() -> None:
    terminal, pipe, none = Terminal(), io.StringIO(), Timer()
    with patience("waiting", terminal, Timer()):
        pass
    with patience("waiting", pipe, none):
        none.show()
    assert (terminal.getvalue(), pipe.getvalue()) == ("", "")
