"""A tensor that is asked for its gradient only after the result was computed from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...arguments import parameters
from ...program import Source, called_name
from ..dataflow import ExprAt, Scope
from ..dataflow.reaching_definitions import FUNCTIONS, head_of
from ..dataflow.syntax import statements_of
from ..scene import Scene

_FLAG = "requires_grad"


@dataclass(frozen=True, eq=False)
class LateFlag:
    """`flag` asks for the gradient of `tensor`, after `use` had read the values without it.

    Where `tensor` is a copy, the values are those of `source`, else its own.  `given` is what the
    caller calls them, where `use` stands there and `flag` in a function that got them together with
    what had been computed from them; `again` are the statements before the flag that copy them.
    """

    tensor: ast.expr
    source: str
    flag: ExprAt
    use: ExprAt
    given: str = ""
    again: tuple[ExprAt, ...] = ()

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
        flagged, source = _flagged(steps[number].statement)
        names = (flagged, *getattr(steps[number].statement, "targets", ()))
        if flagged is None or (tensor is not None and not _any_same(names, tensor.node)):
            continue
        flag, use = _spot(scene, steps[number]), _use_before(steps, number, source, wanted)
        if use is not None:
            return LateFlag(flagged, source, flag, _spot(scene, use))
        given, sooner = _use_in_caller(scene, root, source, _behind(steps, wanted))
        again = _copies(steps[:number], source)
        if sooner is not None and again is not None:
            copies = tuple(_spot(scene, step) for step in again)
            return LateFlag(flagged, source, flag, sooner, given, copies)
    return None


def _use_in_caller(
    scene: Scene, root: ExprAt, name: str, behind: set[str]
) -> tuple[str, ExprAt | None]:
    """What the caller calls a parameter, and the first expression there that read it for one of the
    other parameters that the root is computed from."""
    scope, call = root.scope, root.scope.call
    own = _parameters(scope)
    given = scene.slicer.argument(scope, name) if call is not None and name in own else None
    if call is None or given is None or not isinstance(given.node, ast.Name):
        return "", None
    handed = (scene.slicer.argument(scope, n) for n in sorted(own & behind - {name}))
    others = {o: {n.id for n in ast.walk(o.node) if isinstance(n, ast.Name)} for o in handed if o}
    around = scene.slicer.statement(call)
    steps = [step for step in _steps(scene, call) if step.statement is not around]
    use = _use_before(steps, len(steps), given.node.id, set().union(*others.values()))
    within = (o for o, names in others.items() if given.node.id in names)
    return given.node.id, next(within, None) if use is None else _spot(scene, use)


def _copies(steps: Sequence[_Step], name: str) -> list[_Step] | None:
    """The statements that give a name a copy of its own value; None where one computes."""
    found = [step for step in steps if name in step.gives]
    values = [_copied(getattr(step.statement, "value", None)) for step in found]
    return found if all(isinstance(v, ast.Name) and v.id == name for v in values) else None


def _copied(node: ast.expr | None) -> ast.expr | None:
    """`x` of `nn.Parameter(x.detach().clone())`."""
    while isinstance(node, ast.Call) and called_name(node) in _COPIES:
        method = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
        inner = node.func.value if method and isinstance(node.func, ast.Attribute) else None
        node = inner or next(iter(node.args), None)
        node = node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node
    return node


_METHODS = ("detach", "clone", "requires_grad_", "numpy", "contiguous")
_COPIES = (*_METHODS, "tensor", "as_tensor", "from_numpy", "Parameter", "Variable", "deepcopy")


def _parameters(scope: Scope) -> set[str]:
    return set(parameters(scope.body)) if isinstance(scope.body, FUNCTIONS) else set()


def _behind(steps: Sequence[_Step], wanted: set[str]) -> set[str]:
    """The names that the wanted ones were computed from."""
    found = set(wanted)
    for step in reversed(steps):
        found |= step.reads if step.gives & found else set()
    return found


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


def _flagged(statement: ast.stmt) -> tuple[ast.expr | None, str]:
    """`x` of `x.requires_grad_()`, `x.requires_grad = True` and `x = x.clone().requires_grad_()`,
    and what holds its values: `x` of `leaf = x.clone().requires_grad_()`.  In
    `leaf = x.requires_grad_()` that is x itself."""
    value = getattr(statement, "value", None)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    on, flagged = isinstance(value, ast.Constant) and value.value is True, None
    if isinstance(target, ast.Attribute) and target.attr == _FLAG:
        flagged = target.value if on else None
    elif isinstance(value, ast.Call) and _asks(value):
        flagged = target
        if isinstance(statement, ast.Expr) and isinstance(value.func, ast.Attribute):
            flagged = value.func.value
    if flagged is None or value is None:
        return None, ""
    if flagged is not target or _any_same(ast.walk(value), target):
        return flagged, ast.unparse(flagged)
    source = _copied(value)
    if source is None or not _is_path(source):
        return None, ""
    itself = isinstance(value, ast.Call) and getattr(value.func, "value", None) is source
    return (source if itself else flagged), ast.unparse(source)


def _any_same(nodes: Iterable[ast.AST | None], wanted: ast.AST) -> bool:
    text = ast.unparse(wanted)
    return any(isinstance(node, ast.expr) and ast.unparse(node) == text for node in nodes)


def _is_path(node: ast.expr) -> bool:
    """`x`, `frame.pos`"""
    return isinstance(node.value if isinstance(node, ast.Attribute) else node, ast.Name)


def _asks(call: ast.Call) -> bool:
    off = any(isinstance(a, ast.Constant) and a.value is False for a in call.args)
    if called_name(call) == f"{_FLAG}_":
        return not off
    if called_name(call) == "Parameter" and not call.keywords:
        return True
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
        fed = not step.reads.isdisjoint(tainted) or (number < flag and _reads(step, name))
        if fed and step.gives - own:
            first = step if first is None else first
            tainted |= step.gives - own
    return first if not wanted.isdisjoint(tainted) else None


def _reads(step: _Step, name: str) -> bool:
    """Whether a statement reads what a name or a path holds."""
    if head_of(name) not in step.reads or name.isidentifier():
        return name in step.reads
    paths = (n for n in ast.walk(step.statement) if isinstance(n, (ast.Attribute, ast.Subscript)))
    return any(isinstance(n.ctx, ast.Load) and ast.unparse(n) == name for n in paths)


def _spot(scene: Scene, step: _Step) -> ExprAt:
    value = step.statement.value  # type: ignore[attr-defined]
    return scene.slicer.at(step.source, value)
