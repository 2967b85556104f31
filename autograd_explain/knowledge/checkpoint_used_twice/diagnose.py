"""A value that a checkpoint recomputes was asked for a second time."""

import ast

from autograd_explain.inspect.facts.finding_from_message import finding_from_message
from autograd_explain.inspect.facts.user_definitions import functions
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Finding, Place
from autograd_explain.program import own_nodes

PATTERNS = (
    "checkpoint-unpacked-twice",
    "checkpoint-selective-extra-backward",
    "checkpoint-selective-mutated",
)

EXAMPLE: dict[str, str] = {}


def diagnose(scene: Scene) -> Finding | None:
    twice = scene.match.pattern == "checkpoint-unpacked-twice"
    at = _second_read(scene) if twice else None
    variant = "twice" if at is not None else ""
    return finding_from_message(scene, "checkpoint_used_twice", EXAMPLE, at=at, variant=variant)


def _second_read(scene: Scene) -> Place | None:
    for cls in functions(scene):
        backward = scene.index.method(cls, "backward")
        reads = [] if backward is None else [n for n in own_nodes(backward.node) if _reads(n)]
        if backward is not None and len(reads) > 1:
            return backward.at(reads[1])
    return None


def _reads(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "saved_tensors"
