"""The layer is built for its runtime and processor; what could not be imported there is refused at the build."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from local.errors import LocalError
from local.layer import MOST_BYTES, Target, build, leave_out, problems, read_target, this_machine

from local import layer

TARGET = Target(13, "arm64")


def elf(machine: int = 183, *symbols: bytes) -> bytes:
    """The beginning of a compiled file, and the names that it wants of the C library."""
    return b"\x7fELF\x02\x01\x01" + bytes(11) + machine.to_bytes(2, "little") + b"\0".join(symbols)


def installed(folder: Path, *tags: str, files: dict[str, bytes] | None = None) -> Path:
    """A folder in which one package was installed."""
    (folder / "dep-1.0.dist-info").mkdir(parents=True)
    (folder / "dep-1.0.dist-info" / "WHEEL").write_text("".join(f"Tag: {each}\n" for each in tags))
    for name, content in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("tag", "runs"),
    [
        ("py3-none-any", True),
        ("cp313-cp313-manylinux_2_28_aarch64", True),
        ("cp313-cp313-manylinux_2_34_aarch64", True),
        ("cp313-cp313-manylinux2014_aarch64", True),
        ("cp311-abi3-manylinux_2_17_aarch64", True),
        ("cp313-cp313-manylinux_2_35_aarch64", False),
        ("cp313-cp313-manylinux_2_28_x86_64", False),
        ("cp313-cp313-musllinux_1_2_aarch64", False),
        ("cp313-cp313-macosx_11_0_arm64", False),
        ("cp313-cp313t-manylinux_2_28_aarch64", False),
        ("cp312-cp312-manylinux_2_28_aarch64", False),
        ("cp314-abi3-manylinux_2_28_aarch64", False),
        ("pp311-pypy311_pp73-manylinux_2_28_aarch64", False),
        ("py2-none-any", False),
    ],
)
def test_the_tags_of_wheels_that_run_on_a_target(tag: str, runs: bool) -> None:
    assert TARGET.runs(tag) is runs


def test_a_wheel_needs_one_tag_that_fits(tmp_path: Path) -> None:
    # Given a wheel with several tags
    many = ("cp313-cp313-manylinux_2_17_aarch64", "cp313-cp313-manylinux2014_aarch64")
    assert list(problems(installed(tmp_path / "fits", *many, "py2-none-any"), TARGET)) == []
    # When none fits, then it is named with the target
    (reported,) = problems(installed(tmp_path / "not", "cp311-cp311-manylinux_2_17_x86_64"), TARGET)
    assert reported == (
        "dep-1.0 is built for cp311-cp311-manylinux_2_17_x86_64, which does not run on python3.13 on arm64"
    )


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("dep/a.abi3.so", elf(183, b"GLIBC_2.17", b"GLIBC_2.34"), ""),
        ("dep/a.cpython-313-aarch64-linux-gnu.so", elf(), ""),
        ("dep/a.abi3.so", elf(62), "is not compiled for arm64"),
        ("dep/a.abi3.so", b"\xcf\xfa\xed\xfe", "is not compiled for arm64"),
        ("dep/a.cpython-311-aarch64-linux-gnu.so", elf(), "is not compiled for Python 3.13"),
        ("dep/a.abi3.so", elf(183, b"GLIBC_2.4", b"GLIBC_2.38"), "wants glibc 2.38"),
    ],
)
def test_compiled_files_are_read_whatever_their_wheel_says(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    # Given a wheel that says it is for everybody, when its compiled file is not
    found = list(problems(installed(tmp_path, "py3-none-any", files={name: content}), TARGET))
    # Then it is named
    assert len(found) == bool(reason)
    assert all(each.startswith(name) and reason in each for each in found)


def test_what_cannot_be_imported_is_left_out(tmp_path: Path) -> None:
    files = dict.fromkeys(("cffi/api.py", "dep/a.pyi", "dep/a.py", "bin/dep"), b"")
    leave_out(installed(tmp_path, files=files))
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["WHEEL", "a.py"]


def test_a_target_is_a_runtime_of_the_template_and_a_processor() -> None:
    assert read_target("python3.14-x86_64") == Target(14, "x86_64")
    assert read_target("machine") == this_machine()
    # python3.11 has glibc 2.26 on AWS, for which google-re2 has no wheel
    for name in ("python3.11-arm64", "python3.13-riscv", "nodejs24.x-arm64", "targets", ""):
        with pytest.raises(LocalError, match="no runtime for a layer"):
            read_target(name)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"dep/a.abi3.so": elf(62)}, "dep/a.abi3.so is not compiled for arm64"),
        ({"dep/big": bytes(1_001)}, "bytes, and 1,000 are the most"),
    ],
)
def test_a_layer_that_would_fail_at_the_first_message_is_refused_at_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, bytes], reason: str
) -> None:
    # Given packages that pip installs without a word
    def install(_lock: Path, folder: Path, _target: Target, _python: Path) -> None:
        installed(folder, "py3-none-any", files=content)

    monkeypatch.setattr(layer, "install", install)
    monkeypatch.setattr(layer, "MOST_BYTES", 1_000)
    source = tmp_path / "source"
    (source / "pushhub").mkdir(parents=True)
    # When, then
    with pytest.raises(LocalError, match="cannot be deployed: .*" + reason):
        build(source, tmp_path / "built", TARGET, Path(sys.executable))


def test_the_budget() -> None:
    assert MOST_BYTES <= 40 * 1024 * 1024
