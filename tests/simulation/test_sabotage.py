"""A simulator that finds nothing proves nothing: a reintroduced defect is found, by the rule it breaks."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from simulation.run import SMALL_WORLDS, WORLDS
from simulation.strangers.diffs import ROOT as LAYER
from simulation.strangers.diffs import DoesNotFit, Hunk, Known, changed, known
from tests.simulation.commands import python

SAMPLE = os.environ.get("SABOTAGE_SAMPLE", "1")
SEED = os.environ.get("SABOTAGE_FROM", "20261171")
"""What draws the sample (docs/simulation.md). By default it is one that is found within seconds, as this runs beside
all other tests; ``make sabotage KNOWN=all`` looks for them all.
"""


@pytest.mark.parametrize("defect", known(), ids=lambda each: each.name)
def test_a_known_defect_fits_the_code(defect: Known) -> None:
    # Given the modules as they are, when the defect is put back, then each is another program
    assert defect.world in WORLDS | SMALL_WORLDS
    assert defect.modules
    for module, hunks in defect.modules.items():
        source = (LAYER / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        assert ast.dump(ast.parse(changed(source, hunks))) != ast.dump(ast.parse(source))


def test_a_diff_whose_lines_are_gone_or_twice_there_does_not_fit() -> None:
    hunk = Hunk("a\nb\n", "a\nc\n")
    assert changed("x\na\nb\n", (hunk,)) == "x\na\nc\n"
    for source in ("x\n", "a\nb\na\nb\n", "xa\nb\n"):
        with pytest.raises(DoesNotFit):
            changed(source, (hunk,))


def test_a_sample_of_the_known_defects_is_found() -> None:
    # Given the hub with some of its known defects, which a seed drew, one at a time
    run = python("-m", "simulation.strangers", "--known", SAMPLE, "--seed", SEED, "--processes", "1")
    # Then runs of the simulator report a rule that each of them breaks
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(run.stdout.splitlines()) == 2 + int(SAMPLE)
