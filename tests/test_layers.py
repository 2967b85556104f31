"""The house: imports point one way, nothing goes in circles, what is shared has two users."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import autograd_explain

PACKAGE = "autograd_explain"
ROOT = Path(autograd_explain.__file__).parent
DATA = {
    *("model", "program", "loaded", "incident", "settings", "nodes", "isolation"),
    *("custom_function", "arguments", "live_definitions", "program_index", "traceback_text"),
    *("set_aside", "forward_flow", "hooks", "library_switch"),
}
INSPECT = {"inspect.history", "inspect.live", "inspect.dataflow", "inspect.shadow", "inspect.scene"}
REWRITE = {"rewrite", "rewrite.engine", "rewrite.analysis", "rewrite.transforms"}
#: What a part of the package may import when it runs; imports for annotations alone are free.
MAY_IMPORT = {
    **dict.fromkeys(DATA, DATA),
    "match": DATA,
    "inspect.live": DATA,
    "inspect.history": DATA | {"inspect.live"},
    "inspect.dataflow": DATA,
    "inspect.shadow": DATA | {"inspect.history", "inspect.live"},
    "inspect.scene": DATA | INSPECT | {"match"},
    "inspect.facts": DATA | INSPECT | {"match"},
    "record": DATA | {"inspect.history", "inspect.live", "inspect.dataflow", "inspect.facts"},
    "rewrite.engine": DATA,
    "rewrite.analysis": DATA | {"rewrite.engine"},
    "rewrite.transforms": DATA | {"rewrite.engine", "rewrite.analysis"},
    "rewrite.operators": DATA | REWRITE,
    "rewrite": DATA | REWRITE,
    "verification": DATA | REWRITE,
    "repair": DATA | REWRITE | {"rewrite.operators", "verification", "match"},
    "knowledge": DATA | INSPECT | REWRITE | {"inspect.facts", "match"},
    "warm_up": DATA | {"match", "knowledge", "render"},
    "loss_path": DATA | INSPECT | {"inspect.facts"},
    "no_tensor": DATA | INSPECT,
    "render": DATA | {"knowledge"},
    "search": DATA | {"match", "knowledge", "render"},
    "intercept": DATA | INSPECT | {"record", "verification", "repair", "render", "search"},
    "script": DATA | {"intercept"},
    "ranks": DATA | {"match", "search", "render"},
    "pipeline": DATA
    | INSPECT
    | REWRITE
    | {"inspect.facts", "match", "verification", "repair", "render", "knowledge", "intercept"}
    | {"loss_path", "no_tensor"},
}
#: Parts whose folders are parts of their own.
DIVIDED = {"inspect", "rewrite"}
#: They put everything together, so they may know everything.
ABOVE_ALL = {"__init__", "__main__", "cli", "docs", "pytest_plugin", "training"}
MODULES = {
    ".".join((PACKAGE, *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in ROOT.rglob("*.py")
    if path.name not in ("case.py", "fixed.py")
}


def part_of(module: str) -> str:
    parts = module.split(".")[1:] or ["__init__"]
    inner = MODULES[module].parent.name != PACKAGE and len(parts) > 1
    return ".".join(parts[:2]) if parts[0] in DIVIDED and inner else parts[0]


def imported(tree: ast.AST, package: tuple[str, ...], at_run_time: bool) -> Iterator[str]:
    """The modules of the package that are imported, wherever the import stands."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and at_run_time:
            continue
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            for alias in node.names:
                yield from _known(module, alias.name)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        else:
            yield from imported(node, package, at_run_time)


def _known(module: str, name: str) -> Iterator[str]:
    """The module itself, or its submodule of that name."""
    if f"{module}.{name}" in MODULES:
        yield f"{module}.{name}"
    elif module in MODULES:
        yield module


@cache
def imports_of(module: str, at_run_time: bool = False) -> frozenset[str]:
    path = MODULES[module]
    package = (PACKAGE, *path.relative_to(ROOT).parent.parts)
    return frozenset(imported(tree_of(path), package, at_run_time)) - {module}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@pytest.fixture(autouse=True, scope="module")
def _no_tree_stays() -> Iterator[None]:
    """For the tests that follow they would be objects to look at."""
    yield
    tree_of.cache_clear()


def test_every_part_has_its_place() -> None:
    assert {part_of(m) for m in MODULES} <= MAY_IMPORT.keys() | ABOVE_ALL | {"inspect"}


def test_imports_point_one_way() -> None:
    backwards = []
    for module in MODULES:
        part = part_of(module)
        if part in ABOVE_ALL:
            continue
        for target in imports_of(module, at_run_time=True) - {PACKAGE}:
            if part_of(target) not in MAY_IMPORT[part] | {part}:
                backwards.append(f"{module}: {target}")
    assert not backwards


def test_no_circles() -> None:
    """Not even for annotations, nor inside functions."""
    graph = {
        module: imports_of(module) - {PACKAGE}
        for module in MODULES
        if part_of(module) not in ABOVE_ALL
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_what_is_shared_has_two_users() -> None:
    """Code for one cause lies in its folder: what lies elsewhere serves two causes, or a stage."""
    users: dict[str, set[str]] = {module: set() for module in MODULES}
    for module in MODULES:
        for target in imports_of(module):
            users[target].add(module)
    lonely = {m for m in MODULES if _is_shared(m) and len(_served(m, users)) < 2}
    assert not lonely


def _is_shared(module: str) -> bool:
    """Operators serve the search alone, which may try them on behalf of any cause."""
    name, parts = MODULES[module].name, module.split(".")
    if parts[1:3] == ["rewrite", "operators"]:
        return False
    return parts[1:2] in (["inspect"], ["rewrite"]) and name != "__init__.py"


def _served(module: str, users: dict[str, set[str]]) -> set[str]:
    """The causes, or the other stages, that use a module, directly or through others."""
    served, seen, todo = set(), {module}, [module]
    while todo:
        for user in users[todo.pop()] - seen:
            seen.add(user)
            parts = user.split(".")
            if len(parts) > 3 and parts[1] == "knowledge":
                served.add(parts[2])
            elif part_of(user).partition(".")[0] in DIVIDED:
                todo.append(user)
            else:
                served.add(user)
    return served


def test_one_index_reads_the_program() -> None:
    """Who calls, defines or assigns what is asked of the index: it knows files and what lives."""
    read = {(name, m) for m, path in MODULES.items() for name in _texts_of_programs(path)}
    assert {m for name, m in read if name == "cells"} == {f"{PACKAGE}.program_index"}
    # The slicer orders the sources by when they ran, as reaching definitions need them.
    dataflow = f"{PACKAGE}.inspect.dataflow."
    assert all(m.startswith(dataflow) for name, m in read if name == "sources")


def test_calls_of_a_library_say_of_which() -> None:
    """By the last name alone `np.load` is `torch.load`, and the user's `checkpoint` is torch's."""
    asked = [(m, call) for m, path in MODULES.items() for call in _asked_calls(path)]
    of_no_package = {"append"}
    unsaid = [
        (m, call.lineno)
        for m, call in asked
        if not any(k.arg == "of" for k in call.keywords)
        for given in call.args
        if isinstance(given, ast.Starred)
        or (isinstance(given, ast.Constant) and given.value not in of_no_package)
    ]
    assert asked and unsaid == []


def _asked_calls(path: Path) -> Iterator[ast.Call]:
    """`index.calls(…)`, `index_of(program).calls(…)`"""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "calls" and "index" in ast.unparse(node.func.value):
                yield node


def _texts_of_programs(path: Path) -> Iterator[str]:
    """`cells` of `program.cells`, `sources` of `slicer.sources()`."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute):
            owner = getattr(node.value, "attr", getattr(node.value, "id", "")).strip("_")
            if (owner, node.attr) in (("program", "cells"), ("slicer", "sources")):
                yield node.attr


def test_no_function_of_verification_is_called_like_a_module() -> None:
    """Importing the module later would put it in the function's place."""
    import autograd_explain.verification as package

    modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")}
    assert not modules & set(package.__all__)
