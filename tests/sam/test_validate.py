"""The template passes SAM's own checks with its loops written out, too (``tests/paths``: as it is written).

The emulator reads its loops as we do.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from samtranslator.yaml_helper import yaml_parse
from tests.sam.toolbox import ROOT, sam

from local import language_extensions, macros, template

TEMPLATE = ROOT / "template.yaml"
EMULATORS = """
import json, sys
from ministack.services.cloudformation import language_extensions
json.dump(language_extensions.apply(json.load(sys.stdin), {}), sys.stdout)
"""


@pytest.mark.slow
def test_sam_validate_finds_nothing_in_the_template_as_it_is_deployed() -> None:
    # Given
    subprocess.run(["make", "--silent", "deployable"], cwd=ROOT, check=True, timeout=240)
    # When, with what samconfig.toml says
    result = sam("validate")
    # Then
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{Path('build') / 'template.json'} is a valid SAM Template" in result.stdout


def test_the_emulator_writes_the_loops_out_alike() -> None:
    # Given the template as CloudFormation gets it
    written = yaml_parse(TEMPLATE.read_text(encoding="utf-8"))
    emulator = os.environ.get("PUSHHUB_EMULATOR", str(ROOT / ".venv-ministack" / "bin" / "python"))
    # When the emulator applies its own transform, modelled on AWS
    command = [emulator, "-c", EMULATORS]
    done = subprocess.run(command, input=json.dumps(written), capture_output=True, text=True, check=True, timeout=60)
    # Then the result is the same, except for strings that we join at once
    theirs, ours = json.loads(done.stdout), template.load(TEMPLATE)
    joined = language_extensions.expand({**theirs, "Transform": [language_extensions.TRANSFORM]})
    made = macros.write_out(joined, lambda location: yaml_parse((ROOT / location).read_text(encoding="utf-8")))
    for section in ("Conditions", "Resources", "Outputs"):
        assert made[section] == json.loads(json.dumps(ours[section]))
