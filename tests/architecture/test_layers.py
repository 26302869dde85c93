"""The import rules of docs/architecture.md."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tests.fakes.ports import FakePorts

from pushhub.engine.wiring import AwsEnginePorts
from pushhub.runtime.hub import PROTOCOLS as ALL_PROTOCOLS

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers/pushhub/pushhub"

SDKS = frozenset({"boto3", "botocore", "requests", "urllib3", "aws_lambda_powertools"})

FOUNDATION = {
    "base": set(),
    "cloud": {"base"},
    "egress": {"base"},
    "web": {"base", "cloud"},
    "engine": {"base", "cloud", "egress", "web"},
}
"""The packages that everything else builds on, and which packages each of them may import besides itself."""
PROTOCOLS = {
    path.name for path in LAYER.iterdir() if path.is_dir() and path.name not in {*FOUNDATION, "runtime", "__pycache__"}
}
"""Every other package is a protocol: it may import the whole foundation, but no other protocol."""

ROOMED = ("engine", "ironmq", "webhooks")
"""Packages whose use cases are in rooms."""
INNER = {
    "model": {"model"},
    "wire": {"model", "wire"},
    "": {"model", "wire", ""},
    "store": {"model", "store", ""},
    "api": {"model", "wire", "", "api"},
}
"""Which parts of its own package each part may import; that of use cases and ports has no name."""
MODULES_OF_A_ROOM = 15
"""How many modules a reader can hold in mind at once (docs/decisions/house.md)."""
BESIDE_THE_LAYER = ("cli", "local")
"""Other packages whose modules are in rooms; what all of them need, and what is run by its name, is in the root."""
BY_NAME = {"cli/commands": "a command's module is found by the command's name"}
"""Folders that are looked up and not read, and so may be larger."""


@cache
def tree_of(path: Path) -> ast.Module:
    """A file of Python; each is read once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, in the order of ``ast.walk``; nobody changes them."""
    return tuple(ast.walk(tree_of(path)))


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module a file imports, including those in type-checking blocks and late imports."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            found |= {module_of(node.module or "", each.name) for each in node.names}
    return frozenset(found)


def module_of(module: str, name: str) -> str:
    """What ``from module import name`` imports: one of our submodules, or the module itself."""
    below = LAYER.parent / Path(*module.split("."), f"{name}.py")
    return f"{module}.{name}" if module.startswith("pushhub") and below.exists() else module


@cache
def modules() -> list[Path]:
    return sorted(path for path in LAYER.rglob("*.py") if path.stem != "__init__")


def folder(parts: tuple[str, ...]) -> str:
    """The folder of its package that a module is in; none for the root."""
    return parts[1] if len(parts) > 2 else ""


def part(parts: tuple[str, ...]) -> str:
    """The part of its package that a module is in: ``model``, ``wire``, ``store``, ``api``, or none for use cases,
    which are in the root or in a room: a folder of one subject.
    """
    return folder(parts) if folder(parts) in INNER else ""


def room(module: str) -> str:
    """The room that a module of the layer is in, as ``package.room``; none if it is in none."""
    own = tuple(module.split(".")[1:])
    return f"{own[0]}.{folder(own)}" if own and own[0] in ROOMED and folder(own) and not part(own) else ""


def dotted(path: Path) -> str:
    """A module's name in Python."""
    return ".".join(path.relative_to(LAYER.parent).with_suffix("").parts)


def name_of(path: Path) -> str:
    return str(path.relative_to(LAYER))


def refused(rule: Callable[[tuple[str, ...], str], bool]) -> list[str]:
    """What modules import and may not, by a rule over the parts of a module's path and the name of what it imports."""
    return [
        f"{name_of(path)} may not import {module}"
        for path in modules()
        for module in sorted(imports(path))
        if not rule(path.relative_to(LAYER).parts, module)
    ]


def test_a_module_imports_only_what_its_package_may() -> None:
    def may(own: tuple[str, ...], module: str) -> bool:
        if own[0] == "runtime" or module.split(".", maxsplit=1)[0] != "pushhub":
            return True
        allowed = FOUNDATION[own[0]] if own[0] in FOUNDATION else set(FOUNDATION)
        return module.split(".")[1] in allowed | {own[0]}

    assert refused(may) == []


def test_the_engine_asks_web_for_nothing_but_signature_schemes() -> None:
    # Given the modules of the engine, then only one knows the web package: what an API writes is read where APIs are
    engine = [path for path in modules() if path.is_relative_to(LAYER / "engine")]
    found = {name_of(path) for path in engine if any(each.startswith("pushhub.web") for each in imports(path))}
    assert found == {"engine/security/signing.py"}


def test_a_part_of_a_package_imports_only_the_parts_it_may() -> None:
    def may(own: tuple[str, ...], module: str) -> bool:
        if own[-1] == "wiring.py" or own[0] in {"runtime", "base", "cloud", "egress", "web"}:
            return True
        return not module.startswith(f"pushhub.{own[0]}.") or part(tuple(module.split(".")[1:])) in INNER[part(own)]

    assert refused(may) == []


def test_rooms_of_a_package_import_each_other_in_one_direction_only() -> None:
    # Given what the modules of each room import, also for types only
    graph: dict[str, set[str]] = {}
    for path in modules():
        own = room(dotted(path))
        if own:
            graph.setdefault(own, set()).update({room(each) for each in imports(path)} - {own, ""})
    assert {"engine.flow", "engine.attempts"} <= graph.keys()
    # Then no room is reached from itself
    for start, imported in graph.items():
        reached, ahead = set[str](), [*imported]
        while ahead:
            here = ahead.pop()
            assert here != start, f"{start} is imported by what it imports: {sorted(reached)}"
            if here not in reached:
                reached.add(here)
                ahead += graph.get(here, set())


def test_what_rooms_share_knows_no_room() -> None:
    # Given the modules beside the rooms, then only what puts rooms together imports what is in one
    def may(own: tuple[str, ...], module: str) -> bool:
        shared = own[0] in ROOMED and not folder(own) and own[-1] not in {"wiring.py", "stores.py"}
        return not (shared and room(module).startswith(f"{own[0]}."))

    assert refused(may) == []


def test_no_use_case_asks_for_a_whole_store() -> None:
    # Given the ports that one table has for several rooms, then use cases ask for what they need of them
    asking = {name_of(path) for path in modules() if any(each.endswith(".stores") for each in imports(path))}
    assert {each.rpartition("/")[2] for each in asking} == {"wiring.py"}


@pytest.mark.parametrize("package", ROOMED)
def test_a_room_can_be_held_in_mind(package: str) -> None:
    own = (path.relative_to(LAYER).parts for path in modules())
    sizes = Counter(folder(each) for each in own if each[0] == package)
    rooms = {each: count for each, count in sizes.items() if each == "" or each not in INNER}
    assert {each: count for each, count in rooms.items() if count > MODULES_OF_A_ROOM} == {}


@pytest.mark.parametrize("package", BESIDE_THE_LAYER)
def test_a_room_beside_the_layer_can_be_held_in_mind(package: str) -> None:
    # Given the folders of a package
    folders = [each.parent for each in (ROOT / package).rglob("__init__.py")]
    assert len(folders) > 1
    sizes = {str(each.relative_to(ROOT)): len({*each.glob("*.py")} - {each / "__init__.py"}) for each in folders}
    # Then none has more than a reader can hold in mind, and each says what it is about
    assert {each: size for each, size in sizes.items() if size > MODULES_OF_A_ROOM and each not in BY_NAME} == {}
    assert [str(each) for each in folders if not ast.get_docstring(tree_of(each / "__init__.py"))] == []
    assert {each.parent for each in (ROOT / package).rglob("*.py")} == {*folders}


@pytest.mark.parametrize("package", BESIDE_THE_LAYER)
def test_rooms_beside_the_layer_import_each_other_in_one_direction_only(package: str) -> None:
    # Given what the modules of each room import at their start; the root, which puts them together, is none
    root = ROOT / package
    graph: dict[Path, set[Path]] = {}
    for path in root.rglob("*.py"):
        if path.parent != root:
            graph.setdefault(path.parent, set()).update({each.parent for each in _eager(path, root)})
    for each, imported in graph.items():
        imported -= {each, root}
    # Then they can be put into an order in which each imports only earlier ones
    assert [*TopologicalSorter(graph).static_order()]


def use_cases() -> set[tuple[str, str]]:
    """Classes of the packages' roots and rooms that are made from ports, with their modules."""
    found: set[tuple[str, str]] = set()
    for path in modules():
        own = path.relative_to(LAYER).parts
        if own[0] not in PROTOCOLS | {"engine"} or part(own) or own[-1] == "wiring.py":
            continue
        ports = {
            each.name
            for node in nodes_of(path)
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".ports")
            for each in node.names
        }
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and ports & {*_given(node)}:
                found.add((dotted(path), node.name))
    return found


def _given(cls: ast.ClassDef) -> Iterator[str]:
    """The names in the annotations of what a class is made from."""
    for each in cls.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            for argument in (*each.args.args, *each.args.kwonlyargs):
                yield from (node.id for node in ast.walk(argument) if isinstance(node, ast.Name))
        elif isinstance(each, ast.AnnAssign):
            yield from (node.id for node in ast.walk(each.annotation) if isinstance(node, ast.Name))


def test_handlers_make_no_use_case() -> None:
    # Given the use cases of all packages
    known = use_cases()
    assert {("pushhub.engine.attempts.deliver", "Deliver"), ("pushhub.hub.notices", "HubNotices")} <= known
    # Then no module that knows HTTP imports one to make it: only wiring does
    for path in modules():
        if part(path.relative_to(LAYER).parts) != "api":
            continue
        called = {
            each.func.id for each in nodes_of(path) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
        }
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                constructed = {each.name for each in node.names if (node.module, each.name) in known} & called
                assert not constructed, f"{name_of(path)} makes {constructed}"


def test_use_cases_take_values_and_no_requests() -> None:
    # Given what is a request's fields in each package, and what reads them
    readers = {
        (f"pushhub.{own[0]}.wire.{path.stem}", each.name)
        for path in modules()
        if part(own := path.relative_to(LAYER).parts) == "wire"
        for each in tree_of(path).body
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and _reads_requests(each)
    }
    assert {
        *(("pushhub.hub.wire.fields", "CheckedFields"), ("pushhub.hub.wire.mapping", "read_mapping")),
        *(("pushhub.webhooks.wire.fields", "Fields"), ("pushhub.webhooks.wire.endpoint", "parse_endpoint")),
        *(("pushhub.webhooks.wire.message", "parse_message"), ("pushhub.ironmq.wire.queues", "parse_queue")),
    } <= readers
    # Then no use case knows any of it
    for path in modules():
        if part(path.relative_to(LAYER).parts):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                known = {each.name for each in node.names if (node.module, each.name) in readers}
                assert not known, f"{name_of(path)} reads requests: {known}"


READ_FIELD_BY_FIELD = frozenset({"CheckedFields", "Fields"})
"""The fields of a request, as the hub protocol and webhooks read them."""


def _reads_requests(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether something is the fields of a request, or reads them or a request's body."""
    if isinstance(node, ast.ClassDef):
        return node.name in READ_FIELD_BY_FIELD
    arguments = {each.arg: ast.unparse(each.annotation or each) for each in (*node.args.args, *node.args.kwonlyargs)}
    return not READ_FIELD_BY_FIELD.isdisjoint(arguments.values()) or (
        node.name.startswith(("parse_", "read_")) and "body" in arguments
    )


def test_the_fakes_have_every_port() -> None:
    # Given the ports that use cases are made from, as they are on AWS
    ports = {
        name
        for of_aws in (AwsEnginePorts, *(each.aws_ports for each in ALL_PROTOCOLS))
        for name in vars(of_aws)
        if not name.startswith("_")
    }
    # Then there is a fake of each; what only stores on AWS need is no port
    assert ports - {"table", "credentials"} - {*dir(FakePorts())} == set()


def test_only_stores_egress_and_the_cloud_package_know_sdks() -> None:
    def may(own: tuple[str, ...], module: str) -> bool:
        if own[0] in {"cloud", "egress", "runtime"} or part(own) == "store":
            return True
        return module.split(".", maxsplit=1)[0] not in SDKS or own[-1] == "wiring.py"

    assert refused(may) == []


@pytest.mark.parametrize("folder", ["layers/pushhub/pushhub", "cli", "local", "bench", "simulation", "glue_jobs"])
def test_no_modules_import_each_other_in_a_circle(folder: str) -> None:
    """Given the imports of modules (not late ones), those for types included, then they form no circle."""
    root = ROOT / folder
    graph = {path: _eager(path, root) for path in sorted(root.rglob("*.py"))}
    assert any(graph.values())
    done: set[Path] = set()

    def visit(path: Path, trail: tuple[Path, ...]) -> None:
        assert path not in trail, " -> ".join(str(each.relative_to(root)) for each in (*trail, path))
        if path in done:
            return
        for other in graph.get(path, set()):
            visit(other, (*trail, path))
        done.add(path)

    for path in graph:
        visit(path, ())


REPORT = ROOT / "glue_jobs/delivery_report"
OF_THE_REPORT = ("storage", "run", "records", "proof", "figures", "anomalies", "page")
"""Folders of the delivery report, each built on those before it."""


def test_folders_of_the_report_are_its_architecture() -> None:
    """Given the report's folders, then each is built on those before it, begins with one sentence, and is small."""
    assert {each.parent.name for each in REPORT.glob("*/__init__.py")} == set(OF_THE_REPORT)
    assert {each.stem for each in REPORT.glob("*.py")} == {"__init__", "job", "erasures"}
    for place, name in enumerate(OF_THE_REPORT):
        modules = sorted((REPORT / name).glob("*.py"))
        assert len(modules) <= 16, name  # fifteen, and the one with the sentence
        assert (REPORT / name / "__init__.py").read_text().count(".") == 1, name
        for path in modules:
            used = {each.relative_to(REPORT).parts[0] for each in _eager(path, REPORT)}
            assert used <= set(OF_THE_REPORT[: place + 1]), f"{path.name} uses {used}"


def _eager(path: Path, root: Path) -> set[Path]:
    """The modules of a package that one of its modules imports at its start, those for types included."""
    found: set[Path] = set()
    body = tree_of(path).body
    typed = [each for block in body if isinstance(block, ast.If) for each in block.body]
    for node in [*body, *typed]:
        if isinstance(node, ast.Import):
            found |= {root.parent.joinpath(*each.name.split(".")) for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = path.parents[node.level - 1] if node.level else root.parent
            module = above.joinpath(*(node.module or "").split("."))
            found |= {module, *(module / each.name for each in node.names)}
    files = {each.with_suffix(".py") for each in found}
    return {each for each in files if each.is_file() and each.is_relative_to(root)}


@pytest.mark.parametrize("path", sorted(ROOT.glob("functions/*/*.py")), ids=lambda path: path.parent.name)
def test_a_function_imports_the_runtime_only(path: Path) -> None:
    for module in imports(path):
        assert module in {"__future__", "typing"} or module.startswith("pushhub.runtime"), module


def test_every_function_is_one_thin_handler() -> None:
    for folder in sorted(ROOT.glob("functions/*/")):
        assert [each.name for each in folder.glob("*.py")] == ["handler.py"], folder
        assert len((folder / "handler.py").read_text().splitlines()) <= 40, folder


def test_what_judges_the_hub_owes_nothing_to_it() -> None:
    # Given the models of what the protocols promise
    models = sorted((ROOT / "simulation/promises").rglob("*.py"))
    assert models
    # Then they import nothing of the hub, and of the simulator only each other
    for path in models:
        for module in imports(path):
            own = module.split(".")[0]
            assert own != "pushhub", f"{path} imports {module}"
            assert own != "simulation" or module.startswith("simulation.promises"), f"{path} imports {module}"
