"""Packs the job for Glue: one script that contains its package.

    python -m glue_jobs.bundle build/glue

``delivery_report.py`` is complete in itself, so a template only needs to name it in ``ScriptLocation``. It depends on
the sources alone.
"""

from __future__ import annotations

import base64
import io
import sys
import zipfile
from pathlib import Path
from typing import Final

from pushhub.engine.model import record

SOURCES: Final = Path(__file__).parent

PACKED: Final = (".py", ".html", ".css")
"""Files of the package that the job needs."""

_SCRIPT: Final = '''"""The delivery report as one Glue script. Made by glue_jobs/bundle.py; change the sources there."""

import base64
import hashlib
import pathlib
import sys
import tempfile

PACKAGE = """
{package}
"""

content = base64.b64decode(PACKAGE)
archive = pathlib.Path(tempfile.gettempdir()) / f"delivery_report-{{hashlib.sha256(content).hexdigest()[:16]}}.zip"
archive.write_bytes(content)
sys.path.insert(0, str(archive))

{script}'''


def bundle(folder: Path) -> Path:
    """Write the script into a folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "delivery_report.py"
    entry = (SOURCES / "run_delivery_report.py").read_text()
    body = entry[entry.index("import sys") :]
    content = base64.encodebytes(package()).decode().strip()
    script.write_text(_SCRIPT.format(package=content, script=body))
    return script


def package() -> bytes:
    """The package as a zip; names in order and no times, so that the same sources make the same bytes."""
    files = (SOURCES / "delivery_report").rglob("*")
    packed = {file.relative_to(SOURCES).as_posix(): file for file in files if file.suffix in PACKED}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted({**packed, **_of_the_layer()}.items()):
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    return written.getvalue()


def _of_the_layer() -> dict[str, Path]:
    """The record's fields are defined in the functions' layer, which Glue does not have: this module of it, which
    imports nothing else of it, and the packages it lies in, by their names in the archive.
    """
    file, depth = Path(str(record.__file__)), record.__name__.count(".")
    packages = [folder / "__init__.py" for folder in file.parents[:depth]]
    return {each.relative_to(file.parents[depth]).as_posix(): each for each in (*packages, file)}


if __name__ == "__main__":
    sys.stdout.write(f"{bundle(Path(sys.argv[1]))}\n")
