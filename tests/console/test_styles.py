"""The console's pages share one scale of letters and one of distances."""

from __future__ import annotations

import re
from pathlib import Path

CSS = (Path(__file__).parents[2] / "functions" / "console" / "static" / "console.css").read_text(encoding="utf-8")
MOST_SIZES = 6

_DECLARATION = re.compile(r"(?<![\w-])(font|font-size|padding|margin|gap)((?:-[a-z]+)*): *([^;}]+)")


def test_letters_have_the_sizes_of_the_scale_only() -> None:
    # Given every declaration of the size of letters
    sizes = [value.strip() for name, more, value in _DECLARATION.findall(CSS) if name + more in ("font", "font-size")]
    assert len(sizes) > 10
    # Then each is what stands around it, or one of the scale, which has few
    assert [each for each in sizes if each != "inherit" and "var(--size-" not in each] == []
    assert re.findall(r"font(?:-size)?:[^;}]*\d(?:rem|em|px|pt|%)", CSS) == []
    assert len(set(re.findall(r"(--size-[a-z]+):", CSS))) <= MOST_SIZES
    # And all that are used are there
    assert set(re.findall(r"var\((--[a-z0-9-]+)\)", CSS)) <= set(re.findall(r"(--[a-z0-9-]+):", CSS))


def test_what_moves_is_not_painted_anew_for_each_frame() -> None:
    """On a machine without a graphics card that takes a whole processor for as long as a page waits."""
    frames = dict(re.findall(r"@keyframes (\S+) \{((?: *[^{}]+\{[^{}]*\})+) *\}", CSS))
    assert frames.keys() == {*re.findall(r"@keyframes (\S+)", CSS)} != set()
    moved = {name for each in frames.values() for name in re.findall(r"([a-z-]+):", each)}
    assert moved <= {"opacity", "transform"}


def test_distances_are_those_of_the_scale_only() -> None:
    distances = [
        value.strip() for name, more, value in _DECLARATION.findall(CSS) if name in ("padding", "margin", "gap")
    ]
    assert len(distances) > 50
    assert [each for each in distances if re.search(r"\d(?:rem|em)\b", each)] == []
