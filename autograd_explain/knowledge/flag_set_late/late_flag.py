"""A tensor that is asked for its gradient only after the result was computed from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autograd_explain.inspect.dataflow import ExprAt
from autograd_explain.inspect.dataflow.reaching_definitions import head_of
from autograd_explain.inspect.dataflow.syntax import statements_of
from autograd_explain.inspect.scene import Scene
from autograd_explain.program import Source, called_name

_FLAG = "requires_grad"


@dataclass(frozen=True, eq=False)
class LateFlag:
    """`flag` asks for the gradient of `tensor`, after `use` had read the values without it."""

    tensor: ast.expr
    flag: ExprAt
    use: ExprAt

    @property
    def name(self) -> str:
        return ast.unparse(self.tensor)


@dataclass(frozen=True, eq=False)
class _Step:
    """A statement, with the names that it reads and gives a value."""

    source: Source
    statement: ast.stmt
    reads: frozenset[str]
    gives: frozenset[str]

    @property
    def at(self) -> tuple[int, int]:
        return self.source.cell or 0, self.statement.lineno


def late_flag(scene: Scene, root: ExprAt, tensor: ExprAt | None = None) -> LateFlag | None:
    """What was asked for its gradient too late for `root`: `tensor`, or any of its scope."""
    if tensor is not None and tensor.scope.body is not root.scope.body:
        return None
    steps = list(_steps(scene, root))
    wanted = {n.id for n in ast.walk(root.node) if isinstance(n, ast.Name)}
    for number in reversed(range(len(steps))):
        flagged = _flagged(steps[number].statement)
        if flagged is None or (tensor is not None and not _same(tensor.node, flagged)):
            continue
        use = _use_before(steps, number, ast.unparse(flagged), wanted)
        if use is not None:
            return LateFlag(flagged, _spot(scene, steps[number]), _spot(scene, use))
    return None


def _steps(scene: Scene, root: ExprAt) -> Iterator[_Step]:
    """The statements of the function that `root` stands in, or of the cells up to it."""
    scope = root.scope
    top = isinstance(scope.body, ast.Module)
    sources = scene.index.namespace(scope.source) if top else (scope.source,)
    end = scope.source.cell or 0, root.node.lineno
    steps = [
        _Step(source, statement, *_names(statement))
        for source in sources
        for statement in statements_of(source.tree if top else scope.body)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))
    ]
    yield from (step for step in sorted(steps, key=lambda s: s.at) if step.at <= end)


def _names(statement: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    names = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
    targets = [*getattr(statement, "targets", ()), getattr(statement, "target", None)]
    given = {head_of(ast.unparse(t)) for t in _leaves(targets)}
    read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    read |= given if isinstance(statement, ast.AugAssign) else set()
    return frozenset(read), frozenset(given - {""})


def _leaves(targets: Sequence[ast.expr | None]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from _leaves(target.elts)
        elif target is not None:
            yield target.value if isinstance(target, ast.Starred) else target


def _flagged(statement: ast.stmt) -> ast.expr | None:
    """`x` of `x.requires_grad_()`, `x.requires_grad = True` and
    `x = x.clone().requires_grad_()`."""
    value = getattr(statement, "value", None)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if isinstance(target, ast.Attribute) and target.attr == _FLAG:
        on = isinstance(value, ast.Constant) and value.value is True
        return target.value if on else None
    if not isinstance(value, ast.Call) or not _asks(value):
        return None
    if isinstance(statement, ast.Expr) and isinstance(value.func, ast.Attribute):
        return value.func.value
    read = target is not None and any(_same(n, target) for n in ast.walk(value))
    return target if read else None


def _same(one: ast.AST, other: ast.AST) -> bool:
    return isinstance(one, ast.expr) and ast.unparse(one) == ast.unparse(other)


def _asks(call: ast.Call) -> bool:
    off = any(isinstance(a, ast.Constant) and a.value is False for a in call.args)
    if called_name(call) == f"{_FLAG}_":
        return not off
    given = (k.value for k in call.keywords if k.arg == _FLAG)
    return any(isinstance(v, ast.Constant) and v.value is True for v in given)


def _use_before(steps: Sequence[_Step], flag: int, name: str, wanted: set[str]) -> _Step | None:
    """The first statement that read the values before the flag was set, where what is wanted was
    computed from what it gave."""
    head = head_of(name)
    own = {head} if name == head else set()
    made = [n for n in range(flag) if head in steps[n].gives and not steps[n].reads & {head} - own]
    first, tainted = None, set[str]()
    for number in range(made[-1] + 1 if made else 0, len(steps)):
        step = steps[number]
        fed = not step.reads.isdisjoint(tainted) or (number < flag and head in step.reads)
        if fed and step.gives - own:
            first = step if first is None else first
            tainted |= step.gives - own
    return first if not wanted.isdisjoint(tainted) else None


def _spot(scene: Scene, step: _Step) -> ExprAt:
    value = step.statement.value  # type: ignore[attr-defined]
    return scene.slicer.at(step.source, value)
