"""`forward` of a Function in two: what it computes, and `setup_context` for what it keeps."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from autograd_explain.model import Edits, Place
from autograd_explain.program import Program
from autograd_explain.rewrite.analysis.effects import bound_in, effects, used_names
from autograd_explain.rewrite.engine.blocks import put_together
from autograd_explain.rewrite.engine.cst_tools import (
    called_name,
    dotted,
    make,
    positional_parameters,
    targets,
    unpacked,
    walk,
)
from autograd_explain.rewrite.engine.draft import Draft
from autograd_explain.rewrite.engine.imports import imports_at
from autograd_explain.rewrite.engine.tree import Statement, Tree, statement_at, statements_in
from autograd_explain.rewrite.transforms.remove_memoization import differs_each_time

_RULE = "generate_vmap_rule"
#: What a tensor tells that is no tensor.
_PLAIN = frozenset("shape dtype device ndim layout size dim numel stride is_contiguous".split())
_BLANK = cst.EmptyLine(indent=False)


def context_apart(
    program: Program, place: Place | None, tensors: Collection[str], batched: bool
) -> Edits | None:
    """`forward(ctx, x)` at `place` -> `forward(x)` and `setup_context(ctx, inputs, output)`, which
    gets the statements that speak to the context; with PyTorch's rule for `vmap` where it runs
    `batched`.

    `tensors` are the parameters that were given tensors.  What is kept that `forward` neither is
    given nor returns is computed once more.  None where that may give something else.
    """
    tree, forward = statement_at(program, place)
    owner = None if forward is None else tree.outer(forward)
    if not isinstance(forward, cst.FunctionDef) or not isinstance(owner, cst.ClassDef):
        return None
    parts = _Parts(tree, forward, frozenset(tensors))
    if not _is_plain(forward) or not _fits_defaults(forward, owner) or not parts.fit(batched):
        return None
    again = parts.computed_again(parts.needed - parts.known)
    if again is None or any(differs_each_time(imports_at(program, place), s) for s in again):
        return None
    draft = Draft(tree)
    for statement in parts.moved:
        draft.remove(statement)
    draft.change(forward, _without_context).after(forward, [_setup(draft, parts, again)])
    if batched and not has_rule(owner):
        draft.change(owner, with_rule)
    return draft.edits()


def has_rule(owner: cst.ClassDef) -> bool:
    """Whether a class says how it runs under `vmap`."""
    methods = (s for s in statements_in(owner.body) if isinstance(s, cst.FunctionDef))
    return _RULE in bound_in(owner.body) or any(m.name.value == "vmap" for m in methods)


def with_rule(owner: cst.ClassDef) -> cst.ClassDef:
    """`generate_vmap_rule = True` above what a class defines."""
    body = owner.body
    assert isinstance(body, cst.IndentedBlock)
    at = int(owner.get_docstring() is not None and len(body.body) > 1)
    first, leading = body.body[at], getattr(body.body[at], "leading_lines", ())
    rule = cst.SimpleStatementLine([make(f"{_RULE} = True")], leading_lines=leading)
    rest = (first.with_changes(leading_lines=[_BLANK]), *body.body[at + 1 :])
    return owner.with_changes(body=body.with_changes(body=[*body.body[:at], rule, *rest]))


@dataclass(frozen=True)
class _Parts:
    """The statements of a `forward`: those that speak to its context are moved."""

    tree: Tree
    forward: cst.FunctionDef
    tensors: frozenset[str]

    @cached_property
    def context(self) -> str:
        return next(iter(positional_parameters(self.forward)), "")

    @cached_property
    def inputs(self) -> list[str]:
        """What is given beside the context, `*xs` with its star."""
        rest = self.forward.params.star_arg
        more = [f"*{rest.name.value}"] if isinstance(rest, cst.Param) else []
        return [*positional_parameters(self.forward)[1:], *more]

    @cached_property
    def body(self) -> list[Statement]:
        return statements_in(self.forward.body)

    @cached_property
    def moved(self) -> list[Statement]:
        return [s for s in self.body if self.context in used_names(s)]

    @cached_property
    def kept(self) -> list[Statement]:
        return [s for s in self.body if self.context not in used_names(s)]

    @cached_property
    def outputs(self) -> list[str]:
        """The names of what is returned, "" for what has none."""
        last = self.body[-1]
        value = last.value if isinstance(last, cst.Return) else None
        found = [] if value is None else unpacked(value)
        return [dotted(n) or "" for n in found]

    @cached_property
    def own(self) -> frozenset[str]:
        """The names that what is kept gives values."""
        return frozenset().union(*map(bound_in, self.kept))

    @cached_property
    def given(self) -> frozenset[str]:
        return frozenset(n.lstrip("*") for n in self.inputs)

    @cached_property
    def needed(self) -> frozenset[str]:
        """What the moved statements read of the others."""
        return frozenset().union(*map(used_names, self.moved)) & (self.given | self.own)

    @cached_property
    def known(self) -> frozenset[str]:
        """The values of `forward` that `setup_context` is handed."""
        once = (n for n in self.outputs if len(list(self._giving(n))) == 1)
        return self.given | frozenset(n for n in once if n)

    def _giving(self, name: str) -> Iterator[Statement]:
        return (s for s in self.kept if name in bound_in(s))

    def fit(self, batched: bool) -> bool:
        """Whether the two parts do not need each other, and the context holds what it may."""
        returns = [n for s in self.body for n in walk(s) if isinstance(n, cst.Return)]
        if returns != [self.body[-1]] or self.body[-1] in self.moved or not self.inputs:
            return False
        bound = frozenset().union(*map(bound_in, self.moved))
        if bound & frozenset().union(*map(used_names, self.kept)) or self.given & self.own:
            return False
        if "output" in self.given and self.needed.intersection(self.outputs) - self.given:
            return False  # the name would stand for both
        return not (batched and any(self._holds_tensor(s) for s in self.moved))

    def computed_again(self, names: frozenset[str]) -> list[Statement] | None:
        """The statements that give these names their values; None where they do more, or others
        change these values."""
        found: dict[int, Statement] = {}
        pending = list(names)
        while pending:
            giving = list(self._giving(pending.pop()))
            if len(giving) != 1 or not isinstance(giving[0], cst.Assign):
                return None
            if id(giving[0]) not in found:
                found[id(giving[0])] = giving[0]
                pending += used_names(giving[0].value) & self.own - self.known
        if found and any(_does_more(s) for s in self.kept[:-1]):
            return None
        return [s for s in self.kept if id(s) in found]

    def _holds_tensor(self, statement: Statement) -> bool:
        """Whether an attribute of the context is given a tensor: under `vmap` only what
        `save_for_backward` keeps is taken out of the batch."""
        stored = [n for n in walk(statement) if isinstance(n, cst.Assign)]
        on_context = (n for n in stored if any(map(self._is_on_context, targets(n))))
        return any(self._reads_tensor(n.value, self.own) for n in on_context)

    def _is_on_context(self, target: cst.BaseExpression) -> bool:
        paths = (dotted(leaf) or "" for leaf in unpacked(target))
        return any(path.startswith(f"{self.context}.") for path in paths)

    def _reads_tensor(self, value: cst.CSTNode, unsure: frozenset[str]) -> bool:
        """Whether a value may be computed from more of a tensor than its shape; what `unsure` names
        are follows from what they were given."""
        for node in walk(value):
            if not isinstance(node, cst.Name) or self._is_plain(node):
                continue
            giving = list(self._giving(node.value)) if node.value in unsure else []
            if node.value in self.tensors or any(not isinstance(s, cst.Assign) for s in giving):
                return True
            less = unsure - {node.value}
            if any(isinstance(s, cst.Assign) and self._reads_tensor(s.value, less) for s in giving):
                return True
        return False

    def _is_plain(self, name: cst.Name) -> bool:
        """`x` in `x.shape`, `x.size(0)` and `len(x)`, and what is no name of a value."""
        parent = self.tree.parents[name]
        if isinstance(parent, cst.Attribute):
            return parent.attr is name or parent.attr.value in _PLAIN
        call = self.tree.parents[parent] if isinstance(parent, cst.Arg) else None
        return call is not None and called_name(call) == "len"


def _does_more(statement: Statement) -> bool:
    """Whether a statement changes more than the names that it gives values."""
    own = effects(statement)
    return own.barrier or not own.writes <= bound_in(statement)


def _is_plain(forward: cst.FunctionDef) -> bool:
    """Whether it is a static method, and nothing else, that takes what it is given by position."""
    decorators = [dotted(d.decorator) for d in forward.decorators]
    params = forward.params
    return decorators == ["staticmethod"] and not (params.kwonly_params or params.star_kwarg)


def _fits_defaults(forward: cst.FunctionDef, owner: cst.ClassDef) -> bool:
    """Whether `backward` has a gradient for the parameters that calls may leave out: with the
    context set up apart, PyTorch fills these in."""
    params = forward.params
    if not any(p.default is not None for p in (*params.posonly_params, *params.params)):
        return True
    backward = next((s for s in statements_in(owner.body) if _is_backward(s)), None)
    returned = [n.value for n in walk(backward) if isinstance(n, cst.Return)] if backward else []
    wanted = len(positional_parameters(forward)) - 1
    return bool(returned) and all(v and len(unpacked(v)) == wanted for v in returned)


def _is_backward(statement: Statement) -> bool:
    return isinstance(statement, cst.FunctionDef) and statement.name.value == "backward"


def _without_context(forward: cst.FunctionDef) -> cst.FunctionDef:
    params = forward.params
    where = "posonly_params" if params.posonly_params else "params"
    return forward.with_changes(params=params.with_changes(**{where: getattr(params, where)[1:]}))


def _setup(draft: Draft, parts: _Parts, again: list[Statement]) -> cst.FunctionDef:
    """`def setup_context(ctx, inputs, output)` with what it needs unpacked."""
    read = frozenset().union(parts.needed, *map(used_names, again))
    produced = [n if n in read and n not in parts.given else "" for n in parts.outputs]
    first = [*_unpacked(parts.inputs, read, "inputs"), *_taken(produced)]
    pieces = [draft.piece(s) for s in (*again, *parts.moved)]
    block = put_together(cst.IndentedBlock([]), pieces, ())
    lines = [cst.SimpleStatementLine([make(line)]) for line in first]
    return cst.FunctionDef(
        cst.Name("setup_context"),
        cst.Parameters([cst.Param(cst.Name(n)) for n in (parts.context, "inputs", "output")]),
        cst.IndentedBlock([*lines, *block.body]),
        decorators=[cst.Decorator(cst.Name("staticmethod"))],
        leading_lines=[_BLANK],
    )


def _unpacked(names: list[str], read: frozenset[str], of: str) -> list[str]:
    """`x, _ = inputs`, `(x,) = inputs`; nothing where none is read."""
    if read.isdisjoint(n.lstrip("*") for n in names):
        return []
    left = [n if n.lstrip("*") in read else "*_" if n.startswith("*") else "_" for n in names]
    return [f"({left[0]},) = {of}" if len(left) == 1 else f"{', '.join(left)} = {of}"]


def _taken(produced: list[str]) -> list[str]:
    """`y = output`, `y, _ = output`; nothing where none is read, or it is called so already."""
    if len(produced) == 1:
        return [f"{n} = output" for n in produced if n not in ("", "output")]
    return _unpacked(produced, frozenset(filter(None, produced)), "output")
