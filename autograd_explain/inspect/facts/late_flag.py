"""A tensor that is asked for its gradient only after the result was computed from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from ...arguments import parameters
from ...model import Place
from ...program import Source, called_name
from ..dataflow import ExprAt, Scope
from ..dataflow.cut_kinds import is_about_shape
from ..dataflow.grad_mode import switched_off_around
from ..dataflow.reaching_definitions import FUNCTIONS, all_bindings, head_of, key_of
from ..dataflow.syntax import returns, statements_of
from ..scene import Scene
from .early_values import early_values
from .failing_loops import failing_loops
from .torch_call import handed_on

_FLAG = "requires_grad"


@dataclass(frozen=True, eq=False)
class Use:
    """An expression that read the values too early, what the function around it calls them, and
    the statement before which they can be flagged."""

    given: str
    spot: ExprAt
    ahead: Place


@dataclass(frozen=True, eq=False)
class LateFlag:
    """`flag` asks for the gradient of `tensor`, after `use` had read the values without it that
    `root` was computed from.

    Where `tensor` is a copy, the values are those of `source`, else its own.  Where `flag` stands
    in a function that got them together with what had been computed from them, `callers` has that
    use, and what the function was given in other calls next to that one; `again` are the statements
    before the flag that copy them.  A flag that is to be `kept` was set by a function that the root
    does not stand in.  `anew` computes what was computed too early from the flagged tensor, for the
    statement at `reader`, which reads that behind the flag; `apart` says that the flag can't simply
    go ahead: what read too early ran elsewhere, or once for all that a loop goes through.
    """

    root: ExprAt
    tensor: ast.expr
    source: str
    flag: ExprAt
    use: ExprAt
    callers: tuple[Use, ...] = ()
    again: tuple[ExprAt, ...] = ()
    kept: bool = False
    anew: str = ""
    reader: ExprAt | None = None
    apart: bool = False

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


def late_flag(scene: Scene, roots: list[ExprAt], tensor: ExprAt | None = None) -> LateFlag | None:
    """What was asked for its gradient too late for one of the roots: `tensor`, or any of its scope;
    in the function that asks, else where that only hands on what it was given."""
    handed = handed_on(scene, roots, tensor)
    for given, asked in ((roots, tensor), *([handed] if handed[1] is not tensor else ())):
        found = next((f for root in given for f in _late_for(scene, root, asked)), None)
        if found is not None:
            return found
    return None


def flags_beside(scene: Scene, late: LateFlag) -> list[LateFlag]:
    """The other tensors that are asked for their gradients too late for the same root, by flags of
    the same function."""
    found = _late_for(scene, late.root, None)
    return [f for f in found if f.flag.node is not late.flag.node and f.name != late.name]


def _late_for(scene: Scene, root: ExprAt, tensor: ExprAt | None) -> Iterator[LateFlag]:
    """The newest first."""
    if tensor is not None and tensor.scope.body is not root.scope.body:
        return
    steps = list(_steps(scene, root))
    wanted = {n.id for n in ast.walk(root.node) if isinstance(n, ast.Name)}
    for number in reversed(range(len(steps))):
        flag = _flag(scene, root, steps[number], tensor)
        if flag is None or (tensor is not None and not _any_same(flag.names, tensor.node)):
            continue
        late = LateFlag(root, flag.tensor, flag.source, flag.spot, root, kept=flag.by_call)
        use = _use_before(scene, steps, number, flag.source, wanted)
        if use is not None:
            early = _used(scene, _spot(scene, use), _spot(scene, steps[number]), flag.source)
            if not (flag.by_call and _was_leaf(scene, early.spot, flag.source)):
                found = replace(late, use=early.spot, callers=(early,) if flag.by_call else ())
                many = _is_before_rounds(scene, early.spot) or _is_of_each(scene, flag, early.spot)
                once = many and not flag.by_call
                yield _anew(scene, found, steps[number + 1 :]) or found if once else found
            continue
        again = _copies(root.scope, steps[:number], flag.source)
        if again is None or _has_history(scene, late):
            continue
        of_caller = _OfCaller(scene, flag.source, _behind(steps, wanted))
        sooner = of_caller.use(root.scope)
        if sooner is None and not flag.by_call:
            anew = _anew(scene, late, steps[number + 1 :])
            yield from [anew] if anew is not None else []
        if sooner is not None:
            beside = (use for use in of_caller.beside(root.scope) if use.given != sooner.given)
            copies = tuple(_spot(scene, step) for step in again)
            found = replace(late, use=sooner.spot, callers=(sooner, *beside), again=copies)
            yield _anew_by_caller(scene, found) or found


def _anew(scene: Scene, late: LateFlag, behind: Sequence[_Step]) -> LateFlag | None:
    """The same with what computes the early values anew, for the first statement behind the flag on
    the way to the root that reads them."""
    wanted = _behind(behind, {n.id for n in ast.walk(late.root.node) if isinstance(n, ast.Name)})
    on_the_way = (step for step in behind if step.gives & wanted and step.reads)
    for read in (*(_spot(scene, step) for step in on_the_way), late.root):
        early = early_values(scene, late.flag, late.source, read)
        if early is not None:
            return replace(late, use=early.use, anew=early.code, reader=read, apart=True)
    return None


def _anew_by_caller(scene: Scene, late: LateFlag) -> LateFlag | None:
    """The same where the function got both from a caller that goes on to call it in a loop: there
    the flag is set and what is handed in computed before the call."""
    call, given = late.root.scope.call, late.callers[0].given
    once = not late.again and len(late.callers) == 1 and _is_before_rounds(scene, late.use)
    early = early_values(scene, call, given, call) if call is not None and once else None
    if early is None or not early.code:
        return None
    anew = f"{given}.{_FLAG}_()\n{early.code}"
    return replace(late, anew=anew, reader=call, apart=True)


def _is_before_rounds(scene: Scene, use: ExprAt) -> bool:
    """Whether a loop around a failing line does not hold the use."""
    return any(not loop.holds(scene.slicer.place(use)) for loop in failing_loops(scene).loops)


def _is_of_each(scene: Scene, flag: _Flag, use: ExprAt) -> bool:
    """Whether a loop flags one tensor after the other, `for p in items: p.x.requires_grad_()`,
    and what read them stands outside: there the flag of one says nothing of the others."""
    around = scene.slicer.index(flag.spot.scope.source).ancestors(flag.spot.node)
    loops = (n for n in around if isinstance(n, ast.For) and use.node not in ast.walk(n))
    named = (n for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name))
    return any(n.id == head_of(flag.source) for n in named)


def _used(scene: Scene, spot: ExprAt, until: ExprAt, path: str) -> Use:
    """A use, with the outermost statement around it that stands before `until`: a flag that is set
    in one branch holds in that alone."""
    index = scene.slicer.index(spot.scope.source)
    ahead = index.statement(spot.node) or spot.node
    for outer in index.ancestors(ahead):
        given = getattr(outer, "target", outer)
        bound = any(isinstance(n, ast.Name) and n.id == head_of(path) for n in ast.walk(given))
        if isinstance(outer, FUNCTIONS) or (given is not outer and bound):
            break
        if any(node is until.node for node in ast.walk(outer)):
            break
        ahead = outer if isinstance(outer, ast.stmt) else ahead
    nodes = (n for n in ast.walk(spot.node) if isinstance(n, ast.expr) and ast.unparse(n) == path)
    written = next((spot.inside(n).text for n in nodes), path)
    return Use(written, spot, scene.slicer.place_of(spot.scope, ahead))


@dataclass(frozen=True, eq=False)
class _Flag:
    """What a statement flags under which names; `by_call`: in a function that it calls."""

    tensor: ast.expr
    source: str
    names: tuple[ast.expr, ...]
    spot: ExprAt
    by_call: bool = False


def _flag(scene: Scene, root: ExprAt, step: _Step, wanted: ExprAt | None) -> _Flag | None:
    targets = tuple(getattr(step.statement, "targets", ()))
    tensor, source = _flagged(step.statement)
    if tensor is not None:
        return _Flag(tensor, source, (tensor, *targets), _spot(scene, step))
    value = getattr(step.statement, "value", None)
    called = None
    if isinstance(value, ast.Call) and wanted and _any_same(ast.walk(value), wanted.node):
        called = scene.slicer.callee(root.inside(value))
    if called is None:
        return None
    for statement in statements_of(called.body):
        tensor, source = _flagged(statement)
        path = _given(scene, called, source) if tensor is not None and _is_own(statement) else ""
        if path and isinstance(statement, (ast.Assign, ast.Expr)):
            given = ast.parse(path, mode="eval").body
            return _Flag(given, path, (given, *targets), ExprAt(called, statement.value), True)
    return None


def _is_own(statement: ast.stmt) -> bool:
    """Whether a statement that flags gives no name a value: the tensor itself is flagged."""
    targets = getattr(statement, "targets", ())
    return all(isinstance(t, ast.Attribute) and t.attr == _FLAG for t in targets)


def _has_history(scene: Scene, late: LateFlag) -> bool:
    """Whether the flag changed nothing: its tensor is the result of an operation."""
    asked = scene.slicer.imagined(late.root, late.tensor)
    value = scene.slicer.value(asked) if late.name == late.source else None
    return getattr(value, "grad_fn", None) is not None


@dataclass(frozen=True, eq=False)
class _OfCaller:
    """What callers call `name` of a function, and where they read it for one of its parameters that
    is among what is `behind` a root."""

    scene: Scene
    name: str
    behind: set[str]

    def use(self, scope: Scope) -> Use | None:
        """The first of these expressions in the caller of a function, or in the caller of one that
        only hands on what it was given."""
        path, call = _given(self.scene, scope, self.name), scope.call
        if not path or call is None:
            return None
        handed = [
            given
            for n in sorted(_parameters(scope) & self.behind - {head_of(self.name)})
            if (given := self.scene.slicer.argument(scope, n)) is not None
        ]
        around = self.scene.slicer.statement(call)
        steps = [step for step in _steps(self.scene, call) if step.statement is not around]
        wanted = {n.id for o in handed for n in ast.walk(o.node) if isinstance(n, ast.Name)}
        step = _use_before(self.scene, steps, len(steps), path, wanted)
        within = next((o for o in handed if _reads_path(o.node, path)), None)
        use = within if step is None else _spot(self.scene, step)
        if use is not None:
            early = _was_leaf(self.scene, use, path)
            return None if early else _used(self.scene, use, call, path)
        made = next((step for step in reversed(steps) if head_of(path) in step.gives), None)
        if made is not None:
            return _used_where_made(self.scene, made, path, wanted)
        return _OfCaller(self.scene, path, _behind(steps, wanted)).use(call.scope)

    def beside(self, scope: Scope) -> Iterator[Use]:
        """The same for the other calls of the function next to the one that entered it."""
        call = scope.call
        others = () if call is None else ast.walk(call.scope.body)
        for node in others:
            if call is not None and isinstance(node, ast.Call) and node is not call.node:
                if _any_same([node.func], getattr(call.node, "func", node)):
                    use = self.use(replace(scope, call=call.inside(node)))
                    yield from [use] if use is not None else []


def _used_where_made(scene: Scene, made: _Step, path: str, wanted: set[str]) -> Use | None:
    """Where one call gives both, `x, u = sampled()`: the first expression of its function that
    reads what it returns as the one for what it returns as the other."""
    target, spot = next(iter(getattr(made.statement, "targets", ())), None), _spot(scene, made)
    called = scene.slicer.callee(spot)
    ends = [] if called is None else returns(called.body)
    if called is None or len(ends) != 1 or not isinstance(target, ast.Tuple):
        return None
    given = ends[0].elts if isinstance(ends[0], ast.Tuple) else []
    parts = {ast.unparse(t): g for t, g in zip(target.elts, given, strict=False)}
    kept = parts.get(path)
    if not isinstance(kept, ast.Name) or len(given) != len(target.elts):
        return None
    own = kept.id
    end, made_of = ExprAt(called, ends[0]), [parts[w] for w in wanted if w in parts]
    steps = [*_steps(scene, end)]
    read = {n.id for part in made_of for n in ast.walk(part) if isinstance(n, ast.Name)}
    step = _use_before(scene, steps, len(steps), own, read)
    within = next((end.inside(part) for part in made_of if _reads_path(part, own)), None)
    early = within if step is None else _spot(scene, step)
    return None if early is None else _used(scene, early, end, own)


def _was_leaf(scene: Scene, use: ExprAt, path: str) -> bool:
    """Whether what is read there was made with the flag."""
    read = scene.slicer.imagined(use, ast.parse(path, mode="eval").body)
    makers = scene.slicer.makers(read)
    return any(isinstance(m.node, ast.Call) and _asks(m.node) for m in makers)


def _given(scene: Scene, scope: Scope, name: str) -> str:
    """What the caller calls what a function has under a name: a parameter, or a part of one."""
    name = _of_parameter(scope, name)
    given = scene.slicer.argument(scope, head_of(name)) if name and scope.call is not None else None
    path = None if given is None else key_of(given.node)
    return "" if given is None or path is None else _joined(ast.unparse(given.node), name)


def _joined(path: str, name: str) -> str:
    """`frame.pos` of `frame` for `batch.pos`"""
    return path + name.removeprefix(head_of(name))


def _of_parameter(scope: Scope, name: str) -> str:
    """The path from a parameter that a name of a function stands for; "" if that is not known."""
    head = head_of(name)
    if head in _parameters(scope):
        return name
    bindings = list(all_bindings(scope.body, head))
    value = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    return _of_parameter(scope, _joined(ast.unparse(value), name)) if _is_path(value) else ""


def _copies(scope: Scope, steps: Sequence[_Step], name: str) -> list[_Step] | None:
    """The statements that give a parameter a copy of its own value; None where one computes."""
    if head_of(name) not in _parameters(scope):
        return []  # another name for a part of one
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
    names = [n for n in _valued(statement) if isinstance(n, ast.Name)]
    targets = [*getattr(statement, "targets", ()), getattr(statement, "target", None)]
    given = {head_of(ast.unparse(t)) for t in _leaves(targets)}
    read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    read |= given if isinstance(statement, ast.AugAssign) else set()
    return frozenset(read), frozenset(given - {""})


def _valued(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement but for those that are only asked for their form (`x.shape`)."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not is_about_shape(child):
            yield from _valued(child)


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


def _is_path(node: ast.AST | None) -> TypeGuard[ast.expr]:
    """`x`, `frame.pos`, `batch["pos"]`"""
    return node is not None and key_of(node) is not None


def _asks(call: ast.Call) -> bool:
    off = any(isinstance(a, ast.Constant) and a.value is False for a in call.args)
    if called_name(call) == f"{_FLAG}_":
        return not off
    if called_name(call) == "Parameter" and not call.keywords:
        return True
    given = (k.value for k in call.keywords if k.arg == _FLAG)
    return any(isinstance(v, ast.Constant) and v.value is True for v in given)


def _use_before(
    scene: Scene, steps: Sequence[_Step], flag: int, name: str, wanted: set[str]
) -> _Step | None:
    """The first recorded statement that read the values before the flag was set for something that
    what is wanted was computed from."""
    head = head_of(name)
    own = {head} if name == head else set()
    made = [n for n in range(flag) if head in steps[n].gives and not steps[n].reads & {head} - own]
    first, needed = None, set(wanted)
    for number in reversed(range(made[-1] + 1 if made else 0, len(steps))):
        step = steps[number]
        if not needed.isdisjoint(step.gives - own) and _is_recorded(scene, step):
            first = step if number < flag and _reads(step, name) else first
            needed |= step.reads
    return first


def _is_recorded(scene: Scene, step: _Step) -> bool:
    if getattr(step.statement, "value", None) is None:
        return False  # `h: Tensor` computes nothing
    return switched_off_around(scene.slicer, _spot(scene, step)) is None


def _reads(step: _Step, name: str) -> bool:
    """Whether a statement reads what a name or a path holds."""
    if head_of(name) not in step.reads or name.isidentifier():
        return name in step.reads
    return _reads_path(step.statement, name)


def _reads_path(node: ast.AST, name: str) -> bool:
    """Whether a path is read, or all that holds it is handed on (`net(batch)`)."""
    paths = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
    owners = {id(n.value) for n in paths if not isinstance(n, ast.Name)}
    read = {ast.unparse(n): n for n in paths if isinstance(n.ctx, ast.Load)}
    whole = (key for key, n in read.items() if id(n) not in owners)
    return name in read or any(name.startswith((f"{key}.", f"{key}[")) for key in whole)


def _spot(scene: Scene, step: _Step) -> ExprAt:
    value = step.statement.value  # type: ignore[attr-defined]
    return scene.slicer.at(step.source, value)
