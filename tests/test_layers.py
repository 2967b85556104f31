"""Imports point one way: each stage knows the data and the stages before it, never those after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import autograd_explain

ROOT = Path(autograd_explain.__file__).parent
DATA = {"model", "program", "incident", "settings", "nodes"}
#: What a part of the package may import when it runs; imports for annotations alone are free.
MAY_IMPORT = {
    **dict.fromkeys(DATA, DATA),
    "match": DATA,
    "rewrite": DATA,
    "inspect": DATA | {"match"},
    "record": DATA | {"inspect"},
    "verify": DATA | {"rewrite"},
    "knowledge": DATA | {"inspect", "rewrite", "match"},
    "render": DATA | {"knowledge"},
    "search": DATA | {"match", "knowledge", "render"},
    "intercept": DATA | {"inspect", "record", "verify", "render", "search"},
    "pipeline": DATA
    | {"match", "inspect", "rewrite", "verify", "render", "knowledge", "intercept"},
}
#: They put everything together, so they may know everything.
ABOVE_ALL = {"__init__", "__main__", "cli", "docs"}


def imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """The part of the package that each import names; blocks under TYPE_CHECKING left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            names = [module] if node.module else [f"{module}.{a.name}" for a in node.names]
        else:
            yield from imports(node, package)
            continue
        for name in names:
            head, _, rest = name.partition(".")
            if head == "autograd_explain" and rest:
                yield rest.partition(".")[0]


MODULES = [p for p in ROOT.rglob("*.py") if p.name not in ("case.py", "fixed.py")]


def part_of(module: Path) -> str:
    return module.relative_to(ROOT).with_suffix("").parts[0]


def test_every_part_has_its_place() -> None:
    assert {part_of(m) for m in MODULES} <= MAY_IMPORT.keys() | ABOVE_ALL


def test_imports_point_one_way() -> None:
    backwards = []
    for module in MODULES:
        part = part_of(module)
        if part not in ABOVE_ALL:
            package = ("autograd_explain", *module.relative_to(ROOT).parent.parts)
            found = set(imports(ast.parse(module.read_text("utf-8")), package))
            backwards += [f"{module}: {x}" for x in found - MAY_IMPORT[part] - {part}]
    assert not backwards
