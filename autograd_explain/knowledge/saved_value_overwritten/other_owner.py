"""Where a written tensor is kept beside the name under which it is written: `self.state` of
`s = self.state`, `velocity[k]` of `v = velocity[k]`."""

from __future__ import annotations

import ast

import torch

from autograd_explain.arguments import parameters
from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import FUNCTIONS, Body, How
from autograd_explain.inspect.dataflow.syntax import names_in
from autograd_explain.inspect.scene import Scene
from autograd_explain.model import Place
from autograd_explain.program import Source, blocks

_PATH = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
#: They give a tensor, or its memory, another look.
_LOOKS = frozenset("T mT H mH data real imag".split())


def other_owner(scene: Scene, tensor: torch.Tensor, write: Place | None, target: str) -> str:
    """The attribute or item that gave the name `target` its tensor, which the statement at `write`
    writes to, where others may look for it there and it can be given another; "" where there is
    none, or it may be a part of a tensor."""
    at = _written_name(scene, write, target)
    if at is None or not _is_whole(tensor):
        return ""
    given = [b for scope, b in scene.slicer.bindings(at, at.text) if scope.body is at.scope.body]
    if len(given) != 1 or given[0].how is not How.ASSIGN or given[0].path:
        return ""
    owner, source = _owner(given[0].value), at.scope.source
    writing = scene.slicer.statement(at)
    if (
        owner is None
        or writing is None
        or not _is_same_between(source, given[0].statement, writing, owner)
    ):
        return ""
    if isinstance(owner, ast.Subscript):
        place = source.place(given[0].statement.lineno)
        known = ast.unparse(owner.value) not in scene.inferred.tuples((place,))
    else:
        known = not _is_fixed(scene, owner.attr)
    return ast.unparse(owner) if known and _is_seen(at.scope.body, owner) else ""


def _written_name(scene: Scene, place: Place | None, target: str) -> ExprAt | None:
    source, statement = scene.program.source_at(place), scene.program.statement_at(place)
    if source is None or statement is None:
        return None
    names = (n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == target)
    return next((scene.slicer.at(source, n) for n in names), None)


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether it is all of its memory: an item of a tensor is a part."""
    return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def _owner(value: ast.expr | None) -> ast.Attribute | ast.Subscript | None:
    """`self.state`, `velocity[k]`, and the latter of `velocity.setdefault(k, zeros)`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in ("get", "setdefault") or not value.args:
            return None
        value = ast.Subscript(value.func.value, value.args[0], ast.Load())
    if not isinstance(value, (ast.Attribute, ast.Subscript)):
        return None
    path = all(isinstance(n, _PATH) for n in ast.walk(value))
    return None if not path or getattr(value, "attr", "") in _LOOKS else value


def _is_same_between(source: Source, made: ast.stmt, write: ast.stmt, owner: ast.expr) -> bool:
    """Whether the path means the same at the write, which stands behind in the same block."""
    for block in blocks(source.parents[write]):
        if made in block and write in block:
            between = block[block.index(made) + 1 : block.index(write)]
            stored = {n.id for s in between for n in names_in(s) if isinstance(n.ctx, ast.Store)}
            return stored.isdisjoint(n.id for n in names_in(owner))
    return False


def _is_fixed(scene: Scene, name: str) -> bool:
    """Whether a class of the program has a property of this name, or objects that stay as they
    are."""
    if scene.index.functions(name):
        return True
    for _, node in scene.index.nodes(ast.ClassDef):
        fields = {ast.unparse(s.target) for s in node.body if isinstance(s, ast.AnnAssign)}
        said = " ".join(ast.unparse(e) for e in (*node.bases, *node.decorator_list))
        if name in fields and ("NamedTuple" in said or "frozen=True" in said):
            return True
    return False


def _is_seen(body: Body, owner: ast.expr) -> bool:
    """Whether somebody else may look there: not at a container of the function's own that nothing
    else reads."""
    head = next(names_in(owner)).id
    uses = [n for n in names_in(body) if n.id == head]
    own = isinstance(body, FUNCTIONS) and head not in parameters(body)
    own = own and any(isinstance(n.ctx, ast.Store) for n in uses)
    return not own or sum(isinstance(n.ctx, ast.Load) for n in uses) > 1
