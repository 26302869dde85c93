"""A simulator that finds nothing proves nothing: a reintroduced defect is found, by the rule it breaks."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.run import WORLDS
from simulation.strangers.diffs import ROOT as LAYER
from simulation.strangers.diffs import DoesNotFit, Hunk, Known, changed, known

ROOT = Path(__file__).parents[2]
SAMPLE = os.environ.get("SABOTAGE_SAMPLE", "2")
SEED = os.environ.get("SABOTAGE_FROM", "20261126")
"""What draws the sample: the day, where CI says so (docs/decisions/proving.md)."""


@pytest.mark.parametrize("defect", known(), ids=lambda each: each.name)
def test_a_known_defect_fits_the_code(defect: Known) -> None:
    # Given the modules as they are, when the defect is put back, then each is another program
    assert defect.world in WORLDS
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
    run = subprocess.run(
        [sys.executable, "-m", "simulation.strangers", "--known", SAMPLE, "--seed", SEED, "--processes", "1"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:."},
        capture_output=True,
        text=True,
        check=False,
    )
    # Then runs of the simulator report a rule that each of them breaks
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(run.stdout.splitlines()) == 2 + int(SAMPLE)
