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


def test_distances_are_those_of_the_scale_only() -> None:
    distances = [
        value.strip() for name, more, value in _DECLARATION.findall(CSS) if name in ("padding", "margin", "gap")
    ]
    assert len(distances) > 50
    assert [each for each in distances if re.search(r"\d(?:rem|em)\b", each)] == []
