"""The statements that compute anew what was computed from a tensor before its flag was set.

`edge = pos[j] - pos[i]` of an earlier cell, of a function that returned both, of a constructor or a
transform that stored both in one object.  Told from the text; nothing is run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...arguments import parameters
from ...program import own_nodes
from ..dataflow import ExprAt, Scope
from ..dataflow.cut_kinds import cut_of, is_about_shape
from ..dataflow.grad_mode import switched_off_around
from ..dataflow.reaching_definitions import FUNCTIONS, Body, all_bindings, head_of, key_of
from ..dataflow.safe_lookup import is_module
from ..dataflow.syntax import returns, statements_of, stored
from ..scene import Scene

_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.Try, ast.With, ast.AsyncWith)
_INNER = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.Lambda)

#: Statements by cell and line.
_Lines = dict[tuple[int, int], ast.Assign]


@dataclass(frozen=True, eq=False)
class EarlyValues:
    """`use` read the tensor's values first; `code` computes what came of it anew where the flag is
    set, "" where that can't be said there."""

    use: ExprAt
    code: str


def early_values(scene: Scene, flag: ExprAt, path: str, read: ExprAt) -> EarlyValues | None:
    """What `read`, which stands behind the flag of `path`, gets that was computed before it."""
    found = [e for name in _names(read.node) for e in _of_name(scene, flag, path, name, read)]
    found += _of_fields(scene, flag, path, read)
    if not found:
        return None
    known = all(early.code for early in found)
    lines = dict.fromkeys(line for e in found for line in e.code.splitlines())
    return EarlyValues(found[0].use, "\n".join(lines) if known else "")


@dataclass(frozen=True, eq=False)
class _Made:
    """A statement that gives a name, or a part of an object, its value."""

    scope: Scope
    statement: ast.Assign

    @property
    def at(self) -> tuple[int, int]:
        return self.scope.source.cell or 0, self.statement.lineno


@dataclass(frozen=True, eq=False)
class _Text:
    """The cells, or a function, that computed from the tensor, which they call `tensors`.

    `names` are what the words of this text are where the flag is set (`data` is `batch`); `extra`
    are values that it gives a call or a display, by the field that they become.
    """

    scene: Scene
    scope: Scope
    flag: ExprAt
    read: ExprAt
    tensors: frozenset[str]
    names: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, ast.Assign] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)

    @property
    def is_apart(self) -> bool:
        """Whether it is another function than the one that sets the flag."""
        body = self.scope.body
        return isinstance(body, FUNCTIONS) and body is not self.flag.scope.body

    def made(self, key: str) -> _Made | None:
        """The one statement that gives a value to it, if that stands in no loop and no branch."""
        if key in self.extra:
            return _Made(self.scope, self.extra[key])
        if self.is_apart:
            found = [(self.scope, b) for b in all_bindings(self.scope.body, key)]
        else:
            node = ast.parse(key, mode="eval").body
            found = self.scene.slicer.bindings(self.scene.slicer.imagined(self.read, node), key)
        if len(found) != 1:
            return None
        scope, binding = found[0]
        statement = binding.statement
        if not isinstance(statement, ast.Assign) or statement.value is not binding.value:
            return None
        around = self.scene.slicer.index(scope.source).parents.get(statement)
        return None if isinstance(around, _BLOCKS) else _Made(scope, statement)

    def is_early(self, key: str) -> bool:
        """Whether it was computed from the tensor before the flag, by operations that are recorded
        and have a derivative."""
        if key not in self._known:
            self._known[key] = False  # of a circle nothing is known
            made = self.made(key)
            self._known[key] = made is not None and self._computes(made)
        return self._known[key]

    def _computes(self, made: _Made) -> bool:
        spot, slicer = ExprAt(made.scope, made.statement.value), self.scene.slicer
        if made.scope.body is self.flag.scope.body and made.scope.source is self.flag.scope.source:
            if made.statement.lineno >= self.flag.node.lineno:
                return False
        if not any(self._leads(path) for path in _paths(spot.node)):
            return False
        nodes = [n for n in ast.walk(spot.node) if isinstance(n, ast.expr)]
        cut = any(cut_of(slicer, spot.inside(n)) is not None for n in nodes)
        return not cut and switched_off_around(slicer, spot) is None

    def _leads(self, path: str) -> bool:
        return any(p in self.tensors or self.is_early(p) for p in _prefixes(path))

    def values(self, keys: Sequence[str]) -> EarlyValues:
        """What computes these anew, each of which is early."""
        lines = _Lines()
        fresh = dict[str, str]()
        known = [self._add(key, lines, fresh) for key in keys]
        ordered = [lines[at] for at in sorted(lines)]
        made = next(m for k in keys if (m := self.made(k)) is not None)
        first = next((s for s in ordered if self._reads_tensor(s)), made.statement)
        words = {**fresh, **self.names}
        code = "\n".join(_in_words(s, words) for s in ordered)
        code = code if all(known) and not self._of_one_sample(ordered) else ""
        return EarlyValues(self.scene.slicer.at(made.scope.source, first.value), code)

    def _of_one_sample(self, statements: Sequence[ast.Assign]) -> bool:
        """Whether a data set's item was computed by positions of dimensions: what a loader stacks
        of such items has one more in front."""
        nodes = (n for s in statements for n in ast.walk(s.value))
        by_place = any(isinstance(n, ast.Subscript) and key_of(n) is None for n in nodes)
        return self.scope.function == "__getitem__" and by_place

    def _reads_tensor(self, statement: ast.Assign) -> bool:
        found = (p for path in _paths(statement.value) for p in _prefixes(path))
        return any(p in self.tensors for p in found)

    def _add(self, key: str, lines: _Lines, fresh: dict[str, str]) -> bool:
        """Puts what is needed for it into `lines`; False where that is not there any more."""
        made = self.made(key)
        if made is None:
            return False
        # Names of its own, which a comprehension has, are not told from those that become others.
        if self.is_apart and any(isinstance(n, _INNER) for n in ast.walk(made.statement.value)):
            return False
        if made.at in lines:
            return True
        lines[made.at] = made.statement
        for target in made.statement.targets if self.is_apart and key not in self.extra else ():
            own = (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
            fresh.update((n, self._free(n)) for n in own if n not in self.names)
        return all(self._has(path, lines, fresh) for path in _paths(made.statement.value))

    def _has(self, path: str, lines: _Lines, fresh: dict[str, str]) -> bool:
        """Whether what a path means is there where the flag is set, or can be computed there."""
        parts, body = list(_prefixes(path)), self.scope.body
        if any(p in self.tensors for p in parts):
            return True
        early = next((p for p in parts if self.is_early(p)), None)
        if early is not None:
            return self._add(early, lines, fresh)
        head = head_of(path)
        if head in self.names or not self.is_apart:
            return True
        if isinstance(body, FUNCTIONS) and head in parameters(body):
            return False
        return self._add(head, lines, fresh) if all_bindings(body, head) else self._is_seen()

    def _is_seen(self) -> bool:
        """Whether the text that sets the flag has the same globals."""
        return self.scope.source in self.scene.index.namespace(self.flag.scope.source)

    def _free(self, name: str) -> str:
        """A name of its own for a local value, where the text that sets the flag has another."""
        scope = self.flag.scope
        while name in scope.values or all_bindings(scope.body, name):
            name += "_"
        return name


def _in_words(statement: ast.Assign, names: Mapping[str, str]) -> str:
    return ast.unparse(_InWords(names).visit(copy.deepcopy(statement)))


class _InWords(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        spelled = self.names.get(node.id)
        return node if spelled is None else ast.parse(spelled, mode="eval").body


# -- a name that the text with the flag reads -----------------------------------------------------


def _of_name(
    scene: Scene, flag: ExprAt, path: str, name: str, read: ExprAt
) -> Iterator[EarlyValues]:
    """What gave the name its value: a statement, or a function that returned the tensor with it."""
    text = _Text(scene, flag.scope, flag, read, frozenset({path}))
    live = scene.slicer.value(scene.slicer.imagined(read, ast.Name(name, ast.Load())))
    if name == head_of(path) or is_module(live):
        return
    if text.is_early(name):
        yield text.values([name])
    elif (inner := _returned(text, name, path)) is not None:
        own = [k for k, given in inner.names.items() if given == name and inner.is_early(k)]
        yield from [inner.values(own)] if own else []


def _returned(text: _Text, name: str, path: str) -> _Text | None:
    """The function of the user's whose one call gave both the name and the tensor."""
    made = text.made(name)
    target = None if made is None else made.statement.targets[0]
    if made is None or not isinstance(target, ast.Tuple):
        return None
    called = text.scene.slicer.callee(ExprAt(made.scope, made.statement.value))
    ends = [] if called is None else returns(called.body)
    given = ends[0].elts if len(ends) == 1 and isinstance(ends[0], ast.Tuple) else []
    if called is None or len(given) != len(target.elts):
        return None
    pairs = zip(given, target.elts, strict=True)
    names = {g.id: ast.unparse(t) for g, t in pairs if isinstance(g, ast.Name)}
    tensors = frozenset(own for own, there in names.items() if there == path)
    return _Text(text.scene, called, text.flag, text.read, tensors, names) if tensors else None


# -- fields of one object -------------------------------------------------------------------------


def _of_fields(scene: Scene, flag: ExprAt, path: str, read: ExprAt) -> Iterator[EarlyValues]:
    """What the object that holds the tensor holds beside it, computed by the function that stored
    both; where all of it is handed on, what somebody reads of it."""
    owner, own = _taken_apart(path)
    parts = [p for found in _paths(read.node) for p in _prefixes(found)]
    wanted = {f for p in parts for o, f in [_taken_apart(p)] if own and o == owner}
    whole = own != "" and owner in _paths(read.node)
    for body in _bodies(scene) if wanted or whole else ():
        for text, fields in _stores(scene, body, flag, path, read):
            asked = (f for f in fields if f in wanted or (whole and _is_read(scene, f)))
            early = [fields[f] for f in asked if f != own and text.is_early(fields[f])]
            yield from [text.values(early)] if early else []


def _bodies(scene: Scene) -> Iterator[tuple[Scope, Body]]:
    at, nodes = scene.slicer.scope_of, scene.index.nodes
    yield from ((at(source, body), body) for source, body in nodes(ast.FunctionDef))
    yield from ((at(source, body), body) for source, body in nodes(ast.Module))


def _is_read(scene: Scene, name: str) -> bool:
    items = (n for _, n in scene.index.nodes(ast.Subscript) if isinstance(n.ctx, ast.Load))
    by_key = any(isinstance(n.slice, ast.Constant) and n.slice.value == name for n in items)
    return by_key or next(scene.index.reads(name), None) is not None


def _taken_apart(path: str) -> tuple[str, str]:
    """`batch` and `pos` of `batch.pos` and of `batch['pos']`; two empty texts for a name."""
    node = ast.parse(path, mode="eval").body if path else None
    if isinstance(node, ast.Attribute):
        return ast.unparse(node.value), node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return ast.unparse(node.value), str(node.slice.value)
    return "", ""


def _stores(
    scene: Scene, where: tuple[Scope, Body], flag: ExprAt, path: str, read: ExprAt
) -> Iterator[tuple[_Text, dict[str, str]]]:
    """The objects in which a function has, or stores, the tensor among others, each of which it
    stores; with what it calls these."""
    owner, own = _taken_apart(path)
    scope, body = where
    for holder, values in _stored_fields(body):
        tensor = values.get(own)
        of_holder = f"{holder}.{own}" if holder else ""
        if not holder and not isinstance(tensor, ast.Name):
            continue
        plain = {f: v.id for f, v in values.items() if isinstance(v, ast.Name)}
        names = {n: _spelled(path, f) for f, n in plain.items()}
        names |= {holder: owner} if holder else {}
        known = {of_holder, tensor.id if isinstance(tensor, ast.Name) else ""} - {""}
        others = {} if holder else {f: v for f, v in values.items() if f not in plain}
        extra = {f"@{f}": _assigned(_spelled(path, f), v) for f, v in others.items()}
        keys = {f: plain.get(f) or (f"{holder}.{f}" if holder else f"@{f}") for f in values}
        yield _Text(scene, scope, flag, read, frozenset(known), names, extra), keys


def _assigned(target: str, value: ast.expr) -> ast.Assign:
    stored = ast.parse(f"{target} = None").body[0]
    assert isinstance(stored, ast.Assign)
    return ast.copy_location(ast.Assign(stored.targets, value), value)


def _spelled(path: str, name: str) -> str:
    """Another field of the object, as the tensor's is written."""
    owner, own = _taken_apart(path)
    return f"{owner}.{name}" if path == f"{owner}.{own}" else f"{owner}[{name!r}]"


def _stored_fields(body: Body) -> Iterator[tuple[str, dict[str, ast.expr]]]:
    """What a function stores in one object: as attributes of a name, which is told, as keywords of
    a call or keys of a display."""
    holders = dict[str, dict[str, ast.expr]]()
    for statement in statements_of(body):
        for target, value, part in stored(statement):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                own = target if part or not isinstance(value, ast.Name) else value
                holders.setdefault(target.value.id, {})[target.attr] = own
    yield from holders.items()
    for node in own_nodes(body):
        if isinstance(node, ast.Call):
            yield "", {k.arg: k.value for k in node.keywords if k.arg}
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            texts = ((k.value, v) for k, v in pairs if isinstance(k, ast.Constant))
            yield "", {k: v for k, v in texts if isinstance(k, str)}


# -- paths ----------------------------------------------------------------------------------------


def _paths(node: ast.AST) -> list[str]:
    """The names and paths that are read, each as far as it goes, but for the form of a tensor."""
    if is_about_shape(node):
        return []
    key = key_of(node)
    if key is not None and any(is_about_shape(n) for n in ast.walk(node)):
        return []
    found = [] if key is None else [key]
    return found or [p for child in ast.iter_child_nodes(node) for p in _paths(child)]


def _prefixes(path: str) -> Iterator[str]:
    """`data`, `data.pos` and `data.pos.norm`"""
    node: ast.expr = ast.parse(path, mode="eval").body
    found = [path]
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        found.append(ast.unparse(node))
    yield from reversed(found)


def _names(node: ast.AST) -> list[str]:
    return list(dict.fromkeys(map(head_of, _paths(node))))
