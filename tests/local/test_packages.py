"""Packages for Lambda: complete, built once, importable wherever they are unpacked."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from local.deploy.packages import build_function, build_layer, forget_old
from local.errors import LocalError

PYTHON = Path(sys.executable)
TAG = sys.implementation.cache_tag


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "functions" / "greet"
    (folder / "inner" / "__pycache__").mkdir(parents=True)
    (folder / "handler.py").write_text(
        "from inner import word\n\n\ndef handler(event, context):\n    return word.WORD\n"
    )
    (folder / "inner" / "__init__.py").touch()
    (folder / "inner" / "word.py").write_text("WORD = 'grüß dich'\n")
    (folder / "inner" / "data.json").write_text("{}")
    (folder / "inner" / "__pycache__" / f"word.{TAG}.pyc").write_bytes(b"stale")
    return folder


def test_a_package_holds_the_folder_and_compiled_modules(source: Path, tmp_path: Path) -> None:
    # Given a function's folder, when it is packaged
    package = build_function(source, tmp_path / "builds", PYTHON)
    # Then all of it is there, compiled anew
    with zipfile.ZipFile(package.path) as content:
        assert sorted(content.namelist()) == [
            f"__pycache__/handler.{TAG}.pyc",
            "handler.py",
            "inner/__init__.py",
            f"inner/__pycache__/__init__.{TAG}.pyc",
            f"inner/__pycache__/word.{TAG}.pyc",
            "inner/data.json",
            "inner/word.py",
        ]
        assert content.read(f"inner/__pycache__/word.{TAG}.pyc") != b"stale"


def test_unpacked_it_runs_without_being_compiled_again(source: Path, tmp_path: Path) -> None:
    # Given a package that is unpacked
    package = build_function(source, tmp_path / "builds", PYTHON)
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(package.path) as content:
        content.extractall(unpacked)
    # When it is imported, verbosely
    code = "import handler; print(ascii(handler.handler({}, None)))"
    result = subprocess.run(
        [PYTHON, "-v", "-c", code], cwd=unpacked, check=True, capture_output=True, text=True, timeout=60
    )
    # Then its compiled modules are used
    assert result.stdout == ascii("grüß dich") + "\n"
    assert f"word.{TAG}.pyc matches" in result.stderr


def test_an_unchanged_folder_is_not_packaged_again(source: Path, tmp_path: Path) -> None:
    # Given a package
    first = build_function(source, tmp_path / "builds", PYTHON)
    first.path.write_bytes(b"not built again")
    # When the folder has not changed
    again = build_function(source, tmp_path / "builds", PYTHON)
    # Then the package is the same, and after a change it is another
    assert again == first
    assert again.path.read_bytes() == b"not built again"
    (source / "inner" / "word.py").write_text("WORD = 'moin'\n")
    changed = build_function(source, tmp_path / "builds", PYTHON)
    assert changed.digest != first.digest
    assert changed.path != first.path


def test_renaming_a_file_is_a_change(source: Path, tmp_path: Path) -> None:
    # Given a package, when a file gets another name, then it is another package
    first = build_function(source, tmp_path / "builds", PYTHON)
    (source / "inner" / "data.json").rename(source / "inner" / "date.json")
    assert build_function(source, tmp_path / "builds", PYTHON).digest != first.digest


def test_a_layer_holds_its_modules_and_what_its_lock_file_names(tmp_path: Path) -> None:
    # Given a layer that needs a package
    wheel = tmp_path / "dep-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("dep.py", "VALUE = 1\n")
        content.writestr("dep-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: dep\nVersion: 1.0\n")
        content.writestr(
            "dep-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        content.writestr("dep-1.0.dist-info/RECORD", "dep.py,,\n")
    layer = tmp_path / "layers" / "shared"
    (layer / "shared").mkdir(parents=True)
    (layer / "shared" / "__init__.py").write_text("import dep\n")
    digest = subprocess.run(["sha256sum", wheel], check=True, capture_output=True, text=True).stdout.split()[0]
    (layer / "requirements.txt").write_text(f"dep @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    # When it is packaged
    package = build_layer(layer, tmp_path / "builds", pip_python())
    # Then both are where Lambda looks for them
    with zipfile.ZipFile(package.path) as content:
        assert {"python/dep.py", "python/shared/__init__.py"} <= set(content.namelist())
        assert f"python/__pycache__/dep.{TAG}.pyc" in content.namelist()
    # And a wrong hash is one line
    (layer / "requirements.txt").write_text(f"dep @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(LocalError, match=r"^the layer's dependencies cannot be installed: "):
        build_layer(layer, tmp_path / "builds", pip_python())


def pip_python() -> Path:
    """An interpreter with pip: this environment may have been made without."""
    has_pip = subprocess.run([PYTHON, "-m", "pip", "--version"], check=False, capture_output=True).returncode == 0
    return PYTHON if has_pip else Path(sys._base_executable)  # type: ignore[attr-defined]


def test_a_module_that_does_not_compile_is_named(source: Path, tmp_path: Path) -> None:
    # Given a module with a mistake, when it is packaged, then the message names it, and nothing is left behind
    (source / "handler.py").write_text("def handler(:\n")
    with pytest.raises(LocalError, match=r"greet/handler\.py does not compile: .*line 1"):
        build_function(source, tmp_path / "builds", PYTHON)
    assert list((tmp_path / "builds").iterdir()) == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_without_files_is_named(tmp_path: Path, exists: bool) -> None:
    # Given a folder that is empty or missing, when it is packaged, then the message names it
    folder = tmp_path / "nothing"
    if exists:
        folder.mkdir()
    with pytest.raises(LocalError, match=r"^nothing to package in .*nothing$"):
        build_function(folder, tmp_path / "builds", PYTHON)


def test_packages_long_unused_are_forgotten(source: Path, tmp_path: Path) -> None:
    # Given packages of several versions
    builds, paths = tmp_path / "builds", []
    for number in range(4):
        (source / "handler.py").write_text(f"NUMBER = {number}\n")
        paths.append(build_function(source, builds, PYTHON).path)
    # When all but two are forgotten
    forget_old(builds, keep=2)
    # Then the newest are left
    assert set(builds.glob("*.zip")) == set(paths[-2:])
